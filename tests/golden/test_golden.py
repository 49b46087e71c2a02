"""Counts, lists, scores, estimates and exports of a handful of logs, as they were before: moving code changes nothing.

``expected.json`` has the numbers themselves, so that a difference can be read. Words are not pinned. Where a number
is meant to change, run ``GOLDEN=write pytest tests/golden`` and say so under *Numbers* in the changelog.
"""

import hashlib
import json
import os
import warnings
from pathlib import Path
from typing import Any

import duckdb
import pytest

import prudent
from tests.golden.logs import draw, write_candidates, write_lists, write_rows

EXPECTED = Path(__file__).with_name("expected.json")
# Other processors sum and take logarithms with another last digit; what a formula means shows long before that.
CLOSE = 1e-9
WORDS = {
    "why",
    "note",
    "words",
    "verdict",
    "seconds",
    "notes",
    "prudent",
    "inputs",
    "title",
    "winner_why",
    "doubt",
    "hint",
}

Result = dict[str, Any]


def table(relation: Any, order: str) -> list[list[Any]]:
    """Rows, in an order that does not depend on how they were made."""
    return [list(row) for row in relation.order(order).fetchall()]


def policy_rows(policy: prudent.Policy) -> Result:
    rows = table(policy.lists(), "context, rank")
    return {
        "lists": rows,
        "summary": numbers(policy.manifest.results["summary"]),
        "fitted": numbers(policy.manifest.results["fitted"]),
    }


def numbers(content: Any) -> Any:
    """The same without words."""
    if isinstance(content, dict):
        return {str(key): numbers(value) for key, value in content.items() if key not in WORDS}
    if isinstance(content, list | tuple):
        return [numbers(value) for value in content]
    return content


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("golden")
    return {
        "text": write_lists(draw(1, 1500, text=True, users="positions"), folder / "text.jsonl"),
        "later": write_lists(draw(2, 900, text=True, users="positions"), folder / "later.jsonl"),
        "rows": write_rows(draw(3, 1200, text=False, users="cascade"), folder / "rows.parquet"),
        "candidates": write_candidates(folder / "candidates.parquet"),
        "day1": write_lists(draw(4, 300, text=True, users="positions"), folder / "day1.jsonl"),
        "day2": write_lists(draw(5, 300, text=True, users="positions"), folder / "day2.jsonl"),
        "folder": folder,
    }


def counts_of(counts: prudent.Counts) -> str:
    """Counts are integers: a digest says it all."""
    with counts.engine.connect() as connection:
        rows = connection.execute(f"select * from ({counts.sql}) order by all").fetchall()
    return f"{len(rows)} rows {hashlib.sha256(repr(rows).encode()).hexdigest()}"


def make(logs: dict[str, Path], to: Path) -> Result:
    """Everything, by its name."""
    actual: Result = {}
    text, rows = prudent.Log(logs["text"]), prudent.Log(logs["rows"], layout="rows")
    later = prudent.Log(logs["later"])
    counts = {"text": prudent.count(text), "rows": prudent.count(rows)}
    for name, of in counts.items():
        actual[f"counts {name}"] = counts_of(of)
    for number, day in enumerate(("day1", "day2"), start=1):
        prudent.count(prudent.Log(logs[day]), to=to / "days", day=f"2026-11-1{number}")
    counts["days"] = prudent.Counts.read(to / "days", half_life="1d")
    actual["counts days"] = counts_of(counts["days"])
    actual["counts added"] = counts_of(counts["text"] + prudent.count(later))

    for bound in (
        "exposure(delta=0.5)",
        "hierarchical",
        "eb(delta=0.2)",
        "eb(pool=context)",
        "bayes",
        "hoeffding",
        "mle",
    ):
        actual[f"rank pbm {bound}"] = policy_rows(prudent.rank(counts["text"], model="pbm", bound=bound))
    for model in ("cm", "dcm", "dcm(tail=truncate)", "pbm(solver=als)", "pbm(counts=weighted)"):
        actual[f"rank {model}"] = policy_rows(prudent.rank(counts["text"], model=model))
    actual["rank rows dcm"] = policy_rows(prudent.rank(counts["rows"], model="dcm", length=3))
    actual["rank days"] = policy_rows(prudent.rank(counts["days"], model="pbm", length=3))
    policy = prudent.rank(counts["text"], model="pbm", candidates=logs["candidates"], min_lists=50)
    actual["rank candidates"] = policy_rows(policy)
    actual["scores candidates"] = table(policy.scores(), "context, item")
    for method in ("ips", "ips(clip=20)", "ip-ips", "pi"):
        actual[f"baseline {method}"] = policy_rows(prudent.rank_baseline(text, method))

    policy = prudent.rank(counts["text"], model="pbm", length=2)
    known = prudent.Log(logs["later"], propensity="propensity")
    actual["evaluate"] = numbers(prudent.evaluate(policy, later).to_json())
    actual["evaluate propensity"] = numbers(prudent.evaluate(policy, known, reward="any-click").to_json())
    actual["evaluate bernstein"] = numbers(
        prudent.evaluate(policy, known, estimator="ips(clip=50)", interval="bernstein").to_json()
    )
    for model in ("cm", "dcm", "pbm"):
        both = prudent.evaluate(policy, later, estimator=[f"dm(model={model})", f"dr(model={model}, clip=10)"])
        actual[f"evaluate {model}"] = numbers(both.to_json())
    verdict = prudent.gate(policy, later, estimator="dr(model=pbm, clip=10)")
    actual["gate"] = [verdict.passed, verdict.estimate.lift, verdict.estimate.lift_low]
    mixed = prudent.gate_contexts(policy, later, estimator="dm(model=pbm)")
    actual["gate per context"] = [
        mixed.better,
        mixed.same,
        mixed.unsure,
        mixed.unseen,
        table(mixed.policy.lists(), "1, 2"),
    ]

    compared = prudent.compare(text, later)
    actual["compare"] = {s.model: [s.perplexity and s.predicted_ctr] for s in compared.scores}
    actual["check"] = numbers(prudent.check(counts["text"]).__dict__)
    policy.write(to / "policy.parquet", to / "scores.parquet")
    prudent.rank(counts["text"], model="dcm", length=2).write(to / "other.parquet", to / "others.parquet")
    differ = prudent.diff(
        to / "policy.parquet", to / "other.parquet", scores=(to / "scores.parquet", to / "others.parquet")
    )
    actual["diff"] = {"contexts": dict(differ.contexts), "items": dict(differ.items), "rows": len(differ.changes())}
    # The last bits of a bound depend on the libraries that this Python was built with; those of text do not.
    numbers_of = ("lower", "mean", "upper", "stay", "positive", "negative")
    digits = ", ".join(f"round({name}, 6) as {name}" for name in numbers_of)
    duckdb.execute(f"copy (select * replace ({digits}) from '{to}/policy.parquet') to '{to}/rounded.parquet'")
    for target in ("jsonl", "csv", "trec-run", "elasticsearch-rules", "redis", "sql"):
        prudent.export(to / "rounded.parquet", to / "lists.out", format=target)
        actual[f"export {target}"] = hashlib.sha256((to / "lists.out").read_bytes()).hexdigest()
    data = prudent.report(policy, later, to=to / "report.html", estimator="dr(model=pbm, clip=10)")
    shown = [[one["name"], one["lists"], [row[:-1] for row in one["rows"]]] for one in data["contexts"]["shown"]]
    actual["report"] = numbers({"change": data["change"], "positions": data["positions"], "contexts": shown})
    return actual


def assert_equal(actual: Any, expected: Any, where: str) -> None:
    """Numbers are close, and everything else is the same."""
    if isinstance(expected, dict):
        assert isinstance(actual, dict), where
        assert set(actual) == set(expected), where
        for key in expected:
            assert_equal(actual[key], expected[key], f"{where} > {key}")
    elif isinstance(expected, list):
        assert isinstance(actual, list), where
        assert len(actual) == len(expected), where
        for number, (one, other) in enumerate(zip(actual, expected, strict=True)):
            assert_equal(one, other, f"{where} > {number}")
    elif isinstance(expected, float) and isinstance(actual, float):
        assert actual == pytest.approx(expected, rel=CLOSE, abs=CLOSE), where
    else:
        assert actual == expected, where


@pytest.fixture(scope="module")
def actual(logs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Result:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", prudent.PrudentWarning)
        made = json.loads(json.dumps(make(logs, tmp_path_factory.mktemp("made"))))
    if os.environ.get("GOLDEN") == "write":
        EXPECTED.write_text(json.dumps(made, indent=None, separators=(",", ":")).replace('],"', '],\n"') + "\n")
    return dict(made)


@pytest.mark.parametrize("name", sorted(json.loads(EXPECTED.read_text())) if EXPECTED.exists() else [])
def test_as_before(actual: Result, name: str) -> None:
    assert_equal(actual[name], json.loads(EXPECTED.read_text())[name], name)


def test_all_is_pinned(actual: Result) -> None:
    assert set(actual) == set(json.loads(EXPECTED.read_text()))
