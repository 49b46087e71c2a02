"""What every format of judgments must satisfy; a new one is covered the day it registers, with a reader in `READERS`.

A reader loads the file as the program that it is for would, and returns the grades which that program holds then.
"""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ir_measures
import pyarrow as pa
import pytest
from hypothesis import given

import prudent
from prudent.base.errors import PolicyError, UsageError
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


def read_workbench(path: Path) -> Held:
    """As the workbench reads the body of a request."""
    body = json.loads(path.read_bytes(), parse_constant=pytest.fail)
    assert {*body} == {"name", "description", "type", "judgmentRatings"}
    assert body["type"] == "IMPORT_JUDGMENT"
    rated = [(one["query"], rating) for one in body["judgmentRatings"] for rating in one["ratings"]]
    assert len({one["query"] for one in body["judgmentRatings"]}) == len(body["judgmentRatings"])
    return {(query, rating["docId"]): int(float(rating["rating"])) for query, rating in rated}


def read_rank_eval(path: Path) -> Held:
    body = json.loads(path.read_bytes(), parse_constant=pytest.fail)
    assert body["metric"] == {"dcg": {"k": 10, "normalize": True}}
    for one in body["requests"]:
        assert one["request"] == {"query": {"match": {"title": one["id"]}}}
    rated = [(one["id"], rating) for one in body["requests"] for rating in one["ratings"]]
    assert all(rating["_index"] == "items" for _, rating in rated)
    return {(query, rating["_id"]): rating["rating"] for query, rating in rated}


def read_quepid(path: Path) -> Held:
    rows = csv.DictReader(io.StringIO(path.read_bytes().decode(), newline=""), strict=True)
    return {(row["query"], row["docid"]): int(row["rating"]) for row in rows}


def read_letor(path: Path) -> Held:
    """Labels and queries as scikit-learn's reader of SVMLight splits a line; names from the comment."""
    held: Held = {}
    queries: dict[str, str] = {}
    for line in path.read_bytes().decode().split("\n")[:-1]:
        fields, _, comment = line.partition("#")
        label, query = fields.split()
        item, _, context = comment[1:].partition("\t")
        assert queries.setdefault(query, context) == context
        held[context, item] = int(label)
    assert len({*queries.values()}) == len(queries)
    return held


def read_lightgbm(path: Path) -> Held:
    rows = list(csv.DictReader(io.StringIO(path.read_bytes().decode(), newline=""), strict=True))
    assert [int(row["qid"]) for row in rows] == sorted(int(row["qid"]) for row in rows), "groups are contiguous"
    assert all(0 <= float(row["weight"]) <= 1 for row in rows)
    return {(row["context"], row["item"]): int(row["label"]) for row in rows}


READERS: dict[str, Callable[[Path], Held]] = {
    "letor": read_letor,
    "lightgbm": read_lightgbm,
    "opensearch-workbench": read_workbench,
    "quepid": read_quepid,
    "rank-eval": read_rank_eval,
    "trec-qrels": read_qrels,
}
NO_GRADES = ("propensities",)
"""Formats about the click model of judgments: other programs' weights, which hold no grades."""
every_format = pytest.mark.parametrize("name", [name for name in judgment_formats if name not in NO_GRADES])


def test_every_format_has_a_reader() -> None:
    assert {*READERS, *NO_GRADES} == set(judgment_formats)


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


def test_weights_are_information_by_a_plain_loop(tmp_path: Path) -> None:
    judgments = judge({**PLAIN, "socks": ["i1", "i4", "i5"]})
    prudent.export(judgments, tmp_path / "train.csv", format="lightgbm")
    rows = list(csv.DictReader((tmp_path / "train.csv").read_text().splitlines()))
    means, deviations = zip(*judgments.relation().project("mean, deviation").fetchall(), strict=True)
    average = sum(means) / len(means)
    spread = sum((mean - average) ** 2 for mean in means) / len(means)
    variance = spread + sum(deviation**2 for deviation in deviations) / len(means)
    expected = [max(0.0, 1 - deviation**2 / variance) for deviation in deviations]
    assert [float(row["weight"]) for row in rows] == pytest.approx(expected, abs=2e-6)  # six decimals


def test_propensities_are_those_of_the_click_model(tmp_path: Path) -> None:
    rows = [
        {"context": "q", "items": [*order], "clicks": [n % 2, n % 4 // 3]} for order in ("ab", "ba") for n in range(80)
    ]
    judgments = prudent.judge(pa.Table.from_pylist(rows), "pbm", thresholds=[0.1, 0.2, 0.4, 0.5])
    prudent.export(judgments, tmp_path / "p.csv", format="propensities")
    first, second = judgments.manifest.results["fitted"]["examination"]
    assert (first, second) == (1, pytest.approx(0.5, abs=0.01))  # half as many clicks there, of the same items
    lines = ["position,examination,weight", "1,1.0,1.0", f"2,{second},{round(1 / second, 6)}"]
    assert (tmp_path / "p.csv").read_text().splitlines() == lines
    with pytest.raises(PolicyError, match="prudent judge --model pbm"):
        prudent.export(judge(PLAIN), tmp_path / "none.csv", format="propensities")
    assert not (tmp_path / "none.csv").exists()


def test_endings_and_settings(tmp_path: Path) -> None:
    judgments = judge(PLAIN)
    for ending, name in {
        "qrels": "trec-qrels",
        "json": "opensearch-workbench",
        "csv": "quepid",
        "svm": "letor",
    }.items():
        assert prudent.export(judgments, tmp_path / f"j.{ending}").settings["format"].startswith(name)
    to = tmp_path / "r.json"
    prudent.export(judgments, to, format="rank-eval(index=shop, field=name.en, k=3)")
    body = json.loads(to.read_text())
    assert body["metric"]["dcg"]["k"] == 3
    assert body["requests"][0]["request"] == {"query": {"match": {"name.en": "hats"}}}
    assert body["requests"][0]["ratings"][0]["_index"] == "shop"
    for wrong in (
        "rank-eval(k=0)",
        "rank-eval(k=2.5)",
        "trec-qrels(contexts=x)",
        "jsonl",
        "opensearch-workbench(name=7)",
    ):
        with pytest.raises(UsageError):
            prudent.export(judgments, to, format=wrong)
