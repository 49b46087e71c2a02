"""Lists that were logged several times are found, and lists that occur often by chance are not."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import prudent
from prudent.base.arrays import IntArray
from prudent.base.errors import UsageError
from prudent.counts.repeats import find_repeats, repeated_lists
from prudent.evaluation.estimators import parse
from prudent.evaluation.gate import decide, gate_settings
from prudent.evaluation.holdout_log import open_holdout
from tests.evaluation.reference import Logged
from tests.evaluation.small import arrays

WORLDS = {"few lists, often": (40, 50.0), "some": (400, 3.0), "many, rarely": (20_000, 0.02)}


def occurrences(seed: int, world: str) -> IntArray:
    """How often lists occur, at rates that differ."""
    lists, mean = WORLDS[world]
    rng = np.random.default_rng(seed)
    n = rng.poisson(mean * rng.pareto(2.0, lists))
    return np.asarray(n[n > 0])


@pytest.mark.parametrize("world", WORLDS)
def test_chance_is_not_suspected(world: str) -> None:
    """4 standard errors, or one in a million: not one of 100 logs."""
    assert not any(find_repeats(occurrences(seed, world)).factor > 1 for seed in range(100))


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("times", [2, 3, 10])
def test_a_log_that_is_read_several_times_is_found(world: str, times: int) -> None:
    for seed in range(20):
        found = find_repeats(times * occurrences(seed, world))
        assert found.factor == found.variance == times
        assert f"too narrow by a factor of {times**0.5:.2f}" in str(found)


def test_some_lists_that_are_logged_twice_are_found_where_chance_rarely_repeats_them() -> None:
    """Every fifth is logged twice: variances are too small by 1 + 2 · 0.2/1.2 ≈ 1.33, with a standard error of 0.02."""
    for seed in range(20):
        rng, n = np.random.default_rng(seed), np.ones(4_000, np.int64)
        found = find_repeats(n + (rng.random(len(n)) < 0.2))
        assert found.factor == 2
        assert found.variance == pytest.approx(1 + 2 * 0.2 / 1.2, abs=0.08)


def test_lists_with_a_click_that_are_logged_again() -> None:
    """All lists together do not show it: half of them occur as often as they were shown."""
    policy = prudent.Policy.from_table(pa.table({"context": ["q0"], "items": [["b", "a"]]}), items="items")
    for seed in range(5):
        rng = np.random.default_rng(seed)
        clicks = (rng.random((900, 2)) < (0.4, 0.2)).astype(int).tolist()
        rows = [
            {"context": f"q{i % 15}", "items": ["b", "a"] if rng.random() < 0.5 else ["a", "b"], "clicks": clicks[i]}
            for i in range(900)
        ]
        again = pa.Table.from_pylist([row for row in rows for _ in range(1 + any(row["clicks"]))])
        held = open_holdout(policy, again, None, 0.0).lists
        assert repeated_lists(held).factor == 2
        assert 1 < repeated_lists(held).variance < 2
        once = open_holdout(policy, pa.Table.from_pylist(rows), None, 0.0).lists
        assert repeated_lists(once).factor == 1


def shown(seed: int, lists: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    first = rng.random(lists) < 0.5
    clicks = rng.random((lists, 3)) < np.where(first[:, None], (0.5, 0.2, 0.1), (0.2, 0.3, 0.1))
    items = [["a", "b", "c"] if one else ["b", "a", "c"] for one in first]
    context = [f"q{one}" for one in rng.integers(0, 20, lists)]
    return pa.table({"context": context, "items": items, "clicks": clicks.astype(int).tolist()})


def test_the_gate_does_not_count_the_same_lists_ten_times(tmp_path: Path) -> None:
    policy = prudent.rank(shown(0, 2_000), model="cm", bound="mle")
    once, ten = shown(1, 500), pa.concat_tables([shown(1, 500)] * 10)
    assert "repeat" not in prudent.gate(policy, once, estimator="ips").why
    verdict = prudent.gate(policy, ten, estimator="ips")
    assert verdict.verdict == "unknown"
    assert "as if logged 10 times: intervals would be too narrow by a factor of 3.16" in verdict.why
    assert any(note.startswith("Repeats: lists") for note in prudent.evaluate(policy, ten, estimator="ips").notes)
    known = prudent.gate(policy, ten, estimator="ips", acknowledge="repeats")
    assert any(one.startswith("repeats: lists repeat") for one in known.acknowledged)
    pq.write_table(once, tmp_path / "log.parquet")
    os.link(tmp_path / "log.parquet", tmp_path / "link.parquet")
    (tmp_path / "symbolic.parquet").symlink_to(tmp_path / "log.parquet")
    for other in ("log.parquet", "link.parquet", "symbolic.parquet"):
        with pytest.raises(UsageError, match="is named twice"):
            prudent.gate(policy, [tmp_path / "log.parquet", tmp_path / other])
        with pytest.raises(UsageError, match="is named twice"):
            prudent.count([tmp_path / "log.parquet", tmp_path / other])
    with pytest.raises(UsageError, match="is named twice"):
        prudent.count(tmp_path)


def test_the_verdict_says_which_positions_were_compared() -> None:
    rng = np.random.default_rng(0)
    lists = [
        Logged("q", ("a", "b", "c") if i % 2 else ("b", "a", "c"), tuple(map(int, rng.random(3) < 0.3)), (1.0,) * 3)
        for i in range(200)
    ]
    settings = gate_settings(-0.9, 0.95, "clicks")
    for policy, said in (
        (("b",), ", by clicks at position 1 of 3 alone"),
        (("b", "a"), ", by clicks at positions 1 to 2"),
    ):
        assert said in decide(arrays(lists, {"q": policy}), parse("ips"), settings, -0.9).why
    assert "clicks at" not in decide(arrays(lists, {"q": ("b", "a", "c")}), parse("ips"), settings, -0.9).why
