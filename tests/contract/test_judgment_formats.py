"""What every format of judgments must satisfy; a new one is covered the day it registers, with a reader in `READERS`.

A reader loads the file as the program that it is for would, and returns the grades which that program holds then.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ir_measures
import pyarrow as pa
import pytest
from hypothesis import given

import prudent
from prudent.base.errors import PolicyError
from prudent.policies.judgments.formats import judgment_formats
from prudent.storage.manifest import Manifest
from tests.policies.export.policies import HOSTILE, NUMBERED, Lists, any_lists, few
from tests.strategies import plain_names

Held = dict[tuple[str, str], int]
PLAIN: Lists = {"shoes": ["i1", "i2"], "hats": ["i3"]}


def judge(lists: Lists) -> prudent.Judgments:
    """Judgments of items with these names; half of the first items are clicked."""
    rows = [
        {"context": context, "items": [*items], "clicks": [k, *([0] * (len(items) - 1))]}
        for context, items in lists.items()
        for k in (0, 1)
    ]
    return prudent.judge(pa.Table.from_pylist(rows), "cm", bound="bayes", thresholds=[0.1, 0.2, 0.4, 0.45])


def expected(judgments: prudent.Judgments) -> Held:
    rows = judgments.relation().project("context, item, grade").fetchall()
    return {(str(context), str(item)): grade for context, item, grade in rows}


def read_qrels(path: Path) -> Held:
    judged: Any = ir_measures.read_trec_qrels(str(path))  # type: ignore[no-untyped-call]
    return {(one.query_id, one.doc_id): one.relevance for one in judged}


READERS: dict[str, Callable[[Path], Held]] = {"trec-qrels": read_qrels}
every_format = pytest.mark.parametrize("name", list(judgment_formats))


@every_format
@pytest.mark.parametrize("lists", [PLAIN, HOSTILE, NUMBERED], ids=["plain", "hostile", "numbered"])
def test_judgments_are_held_or_refused(name: str, lists: Lists, tmp_path: Path) -> None:
    check(name, lists, tmp_path, may_refuse=lists is HOSTILE)


@every_format
@few
@given(lists=any_lists(plain_names))
def test_any_judgments_are_held_or_refused(name: str, lists: Lists, tmp_path: Path) -> None:
    check(name, lists, tmp_path, may_refuse=True)


def check(name: str, lists: Lists, folder: Path, may_refuse: bool) -> None:
    judgments, file = judge(lists), folder / "file"
    file.unlink(missing_ok=True)
    try:
        manifest = prudent.export(judgments, file, format=name)
    except PolicyError:
        assert may_refuse
        assert not file.exists()
        return
    assert READERS[name](file) == expected(judgments)
    assert Manifest.read(file) == manifest
    assert manifest.settings["judgments"]["thresholds"] == [0.1, 0.2, 0.4, 0.45]
    before = file.read_bytes()
    prudent.export(judgments, file, format=name)
    assert file.read_bytes() == before


def test_numbered_qrels_match_a_numbered_run(tmp_path: Path) -> None:
    lists: Lists = {"running shoes": ["a", "b"], "a hat": ["c"]}
    judgments = judge(lists)
    prudent.export(judgments, tmp_path / "j.qrels", format="trec-qrels(contexts=numbered)")
    assert (tmp_path / "j.qrels").read_text() == "1 0 c 4\n2 0 a 4\n2 0 b 2\n"
    with pytest.raises(PolicyError, match=r"trec-qrels\(contexts=numbered\)"):
        prudent.export(judgments, tmp_path / "j.qrels")
