"""The layout `impressions`: what was shown together is not known, and positions may have gaps."""

import json
import warnings
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prudent
from prudent.base.errors import CountsError, LogError, NotIdentifiedError, PrudentWarning, UsageError
from prudent.click_models.selection import names
from prudent.counts.production import discounted_impressions, hazard
from tests.command import run
from tests.reference import LoggedList
from tests.strategies import linked_logs, logs, rows, table

HOW: dict[str, Any] = {"layout": "impressions"}


def single(lists: list[LoggedList], seen: int | None = None) -> pa.Table:
    """The impressions of these lists, of which the first so many positions were seen, without the ids of lists."""
    made = rows(lists).drop_columns("impression")
    return made if seen is None else made.filter(pc.less_equal(made["position"], seen))


def quietly(*args: Any, **settings: Any) -> prudent.Policy:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrudentWarning)
        return prudent.rank(*args, **settings)


# --- counts -----------------------------------------------------------------------------------------------------------


@given(logs())
def test_counts_are_those_of_a_plain_loop(lists: list[LoggedList]) -> None:
    counts = prudent.count(single(lists), **HOW)
    expected = Counter(
        (context, item, position, position, bool(click), False)
        for context, items, clicks in lists
        for position, (item, click) in enumerate(zip(items, clicks, strict=True), start=1)
    )
    found = counts.engine.open().execute(counts.sql).fetchall()
    assert {tuple(key): n for *key, n in found} == expected
    assert counts.tally.lists == expected.total()


@given(logs(), logs())
def test_days_add_up_to_the_whole(first: list[LoggedList], second: list[LoggedList]) -> None:
    added = prudent.count(single(first), **HOW) + prudent.count(single(second), **HOW)
    assert added == prudent.count(single([*first, *second]), **HOW)
    assert added.tally.unit == "impression"


def test_a_folder_of_days_with_a_half_life(tmp_path: Path) -> None:
    made = single(world())
    for day in ("2026-11-01", "2026-11-15"):
        prudent.count(made, to=tmp_path, day=day, **HOW)
    counts = prudent.Counts.read(tmp_path, half_life="14d")
    assert counts.cells.n.sum() == pytest.approx(1.5 * len(made))
    assert quietly(counts).manifest.settings["model"] == "pbm"


def test_written_and_read_back_and_the_same_bytes_in_any_order(tmp_path: Path) -> None:
    made = single(world())
    for name, one in (("a", made), ("b", made.take(np.random.default_rng(1).permutation(len(made))))):
        prudent.count(one, to=tmp_path / f"{name}.parquet", **HOW)
    assert (tmp_path / "a.parquet").read_bytes() != b""
    one, other = (prudent.Counts.read(tmp_path / f"{name}.parquet") for name in "ab")
    assert one == other
    assert quietly(one) == quietly(made, **HOW)
    assert not len(one.sample().n)  # no whole lists
    assert one.training.digest is None


def test_counts_of_lists_are_of_another_kind() -> None:
    lists = world()
    with pytest.raises(CountsError, match="cannot be added"):
        prudent.count(single(lists), **HOW) + prudent.count(table(lists))


FAULTS: dict[str, dict[str, Any]] = {
    "context missing": {"context": None},
    "item missing": {"item": None},
    "click other than 0 or 1": {"click": 2},
    "too many positions": {"position": 1001},
    "positions other than 1, 2, 3, ...": {"position": 0},
}


@pytest.mark.parametrize("reason", FAULTS)
def test_every_reason_to_reject_an_impression(reason: str) -> None:
    good = {"context": "c", "item": "a", "position": 7, "click": 1}
    counts = prudent.count(pa.Table.from_pylist([good, good, good | FAULTS[reason]]), max_rejected=1, **HOW)
    assert (counts.tally.lists, dict(counts.tally.rejected)) == (2, {reason: 1})
    (cell,) = counts.engine.open().execute(counts.sql).fetchall()
    assert cell == ("c", "a", 7, 7, True, False, 2)


def test_a_grid_is_read_row_by_row() -> None:
    """Row 1, column 2 of a grid of three columns is position 6, where both count from 0."""
    made = pa.table({"context": ["c"] * 3, "item": ["a"] * 3, "r": [1, 1, 0], "c": [2, 3, -1], "click": [1, 0, 0]})
    grid: dict[str, Any] = {"grid_row": "r", "grid_column": "c", "grid_width": 3, "first_position": 0}
    made = made.rename_columns(["context", "item", "r", "column", "click"])
    counts = prudent.count(made, max_rejected=1, **HOW, **{**grid, "grid_column": "column"})
    assert counts.engine.open().execute(counts.sql).fetchall() == [("c", "a", 6, 6, True, False, 1)]
    assert dict(counts.tally.rejected) == {"positions other than 1, 2, 3, ...": 2}  # outside the grid
    with pytest.raises(UsageError, match="A grid needs"):
        prudent.Log(made, grid_row="r", **HOW)


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_text_files(ending: str, tmp_path: Path) -> None:
    lists = world()[:200]
    file, made = tmp_path / f"log.{ending}", single(lists).to_pylist()
    if ending == "csv":
        lines = [
            "context,item,position,click",
            *(f"{r['context']},{r['item']},{r['position']},{r['click']}" for r in made),
        ]
    else:
        lines = [json.dumps(row) for row in made]
    file.write_text("\n".join(lines) + "\n")
    assert prudent.count(file, **HOW).tally.lists == len(made)


# --- click models, bounds, lists --------------------------------------------------------------------------------------


@cache
def world() -> list[LoggedList]:
    """Lists of 4 of 7 items in each of 6 contexts, shown to users of pbm in a random order."""
    random = np.random.default_rng(4)
    attraction = random.uniform(0.05, 0.6, (6, 7))
    lists: list[LoggedList] = []
    for number in range(3000):
        context, shown = number % 6, random.permutation(7)[:4]
        clicks = random.random(4) < np.array([1, 0.6, 0.4, 0.3]) * attraction[context, shown]
        lists.append((f"c{context}", tuple(f"i{item}" for item in shown), tuple(map(int, clicks))))
    return lists


@settings(max_examples=20)
@given(linked_logs())
def test_pbm_reads_whole_lists_and_their_impressions_alike(lists: list[LoggedList]) -> None:
    """It uses nothing but positions and clicks: p, evidence and production's order are the same, but for rounding."""
    one, other = prudent.count(table(lists)), prudent.count(single(lists), **HOW)
    fitted = [prudent.click_models.click_models.parse("pbm").fit(c.cells, c.cells.positions) for c in (one, other)]
    for name, values in fitted[0].parameters.items():
        assert values == pytest.approx(fitted[1].parameters[name], abs=2e-9)
    evidence = [model.evidence(counts.cells) for model, counts in zip(fitted, (one, other), strict=True)]
    for name in ("positive", "negative", "expected", "impressions", "discounted"):
        assert getattr(evidence[0], name) == pytest.approx(getattr(evidence[1], name), rel=1e-6), name


def test_the_same_lists_as_from_whole_lists() -> None:
    lists = world()
    assert quietly(single(lists), **HOW) == quietly(table(lists), "pbm")


def test_auto_is_pbm_and_says_why() -> None:
    with pytest.warns(PrudentWarning, match=r"do not tell click models apart.*Using pbm instead"):
        policy = prudent.rank(single(world()), **HOW)
    assert policy.manifest.settings["model"] == "pbm"
    assert policy.manifest.sources["training"].tally.unit == "impression"


@pytest.mark.parametrize("model", [*names(), "ensemble(model=dcm)"])
def test_models_that_need_whole_lists_say_so_by_name(model: str) -> None:
    counts = prudent.count(single(world()), **HOW)
    if model == "pbm":
        assert len(prudent.rank(counts, model)) == 6
        return
    with pytest.raises(NotIdentifiedError, match=rf"{model.split('(')[0]}.* needs whole lists: .*Use pbm"):
        prudent.rank(counts, model)


@pytest.mark.parametrize("function", ["compare", "tune", "split", "evaluate", "gate", "report", "rank_baseline"])
def test_what_needs_whole_lists_refuses(function: str, tmp_path: Path) -> None:
    made = single(world())
    policy = quietly(made, **HOW)
    first = {"compare": (made,), "tune": (made,), "split": (made, tmp_path), "rank_baseline": (made, "ips")}
    args = first.get(function, (policy, made))
    to = {"to": tmp_path / "report.html"} if function == "report" else {}
    with pytest.raises(UsageError, match=r"single impressions.*this needs whole lists"):
        getattr(prudent, function)(*args, **to, **HOW)


def test_judgments_and_check() -> None:
    counts = prudent.count(single(world()), **HOW)
    assert prudent.judge(counts, "pbm").relation().fetchall()
    health = prudent.check(counts)
    assert health.facts()[0] == ("impressions", "12,000")
    assert "Other click models, and evaluation, need whole lists" in health.verdicts()[1]


def test_on_the_command_line(tmp_path: Path) -> None:
    pq.write_table(single(world()), tmp_path / "log.parquet")
    done = run("count", tmp_path / "log.parquet", "-o", tmp_path / "counts.parquet", "--layout", "impressions")
    assert "Counted 12,000 impressions into" in done.text
    done = run("rank", tmp_path / "counts.parquet", "-o", tmp_path / "policy.parquet")
    assert done.code == 0
    assert "Using pbm instead" in done.text


def test_candidates_and_contexts_with_few_impressions() -> None:
    made = pa.concat_tables([single(world()), single([("rare", ("i1",), (1,))])])
    offered = pa.table({"context": ["c1", "c1", "rare"], "item": ["new", "i9", "i1"]})
    assert set(quietly(made, candidates=offered, **HOW)) == {"c1", "rare"}
    assert set(quietly(made, candidates=offered, min_lists=2, **HOW)) == {"c1"}


# --- positions --------------------------------------------------------------------------------------------------------


def test_examination_where_positions_have_gaps() -> None:
    """Positions 3 and 4 are never logged: p of the others is as if they were not there."""
    lists = world()
    made = single(lists)
    place = made.schema.get_field_index("position")
    moved = pa.array([{1: 1, 2: 2, 3: 5, 4: 6}[k] for k in made["position"].to_pylist()])
    gaps = quietly(made.set_column(place, "position", moved), **HOW).manifest.results["fitted"]["examination"]
    plain = quietly(made, **HOW).manifest.results["fitted"]["examination"]
    assert gaps == [plain[0], plain[1], plain[2], plain[2], plain[2], plain[3]]
    assert prudent.check(made.set_column(place, "position", moved), **HOW).pbm_identified


def test_examination_is_recovered_from_what_was_scrolled_to() -> None:
    """Users stop at a random position, and only what they saw is logged: p of what is logged is the same.

    The standard error of p is about 0.03 with 3,000 lists; 0.12 is four of them.
    """
    random = np.random.default_rng(7)
    reached = random.integers(1, 5, 3000)
    seen = [(c, items[:k], clicks[:k]) for (c, items, clicks), k in zip(world(), reached, strict=True)]
    fitted = quietly(single(seen), **HOW).manifest.results["fitted"]["examination"]
    assert np.abs(np.array(fitted) - [1, 0.6, 0.4, 0.3]).max() < 0.12


@given(logs())
def test_hazard_of_full_lists_is_that_of_whole_lists(lists: list[LoggedList]) -> None:
    """Where all lists of a context are of one length, what is assumed of users is true of all."""
    even = [one for one in lists if len(one[1]) == max(len(other[1]) for other in lists if other[0] == one[0])]
    whole, alone = prudent.count(table(even)).cells, prudent.count(single(even), **HOW).cells
    assert hazard(alone) == pytest.approx(hazard(whole), rel=1e-12)
    assert np.array_equal(discounted_impressions(alone), discounted_impressions(whole))


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.integers(1, 9)), min_size=1, max_size=40))
def test_hazard_is_that_of_a_plain_loop(seen: list[tuple[str, str, int]]) -> None:
    """Of any impressions, with gaps, in the words of its docstring."""
    columns = zip(*seen, strict=True)
    made = pa.table(
        {**dict(zip(("context", "item", "position"), map(list, columns), strict=True)), "click": [0] * len(seen)}
    )
    found = hazard(prudent.count(made, **HOW).cells)
    expected = []
    for context, item in sorted({one[:2] for one in seen}):
        here = Counter(k for c, _, k in seen if c == context)
        own = Counter(k for c, i, k in seen if (c, i) == (context, item))
        opportunities = sum(1 - sum(own[j] / here[j] for j in here if j < k) for k in here)
        opportunities = max(opportunities, sum(own[k] / here[k] for k in own))
        expected.append(len(here) * own.total() / opportunities)
    assert found == pytest.approx(expected, rel=1e-9)


def test_nothing_but_rejected_impressions() -> None:
    made = pa.table({"context": ["c"], "item": ["a"], "position": [0], "click": [0]})
    with pytest.raises(LogError, match=r"1 of 1 impressions.*first_position=0"):
        prudent.count(made, **HOW)
