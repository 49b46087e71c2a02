"""`prudent.evaluate`, `gate` and their commands: from files to numbers."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import prudent
from prudent.errors import LogError, PrudentWarning, UsageError
from prudent.evaluation import Evaluation, gate_contexts
from prudent.evaluation.judgement import KEYS

from ..command import run
from . import reference
from .reference import Logged

POLICY = {"q": ("a", "b"), "r": ("c",), "elsewhere": ("a",)}


def some_lists(n: int = 300, seed: int = 0) -> list[Logged]:
    random = np.random.default_rng(seed)
    lists = []
    for _ in range(n):
        if random.random() < 0.2:
            lists.append(Logged("own", ("x", "y"), tuple(map(int, random.random(2) < 0.3)), (1.0, 1.0)))
            continue
        context = str(random.choice(["q", "r"]))
        first = random.random() < 0.7
        items = ("a", "b", "c") if first else ("c", "a", "b")
        clicks = tuple(map(int, random.random(3) < (0.6, 0.3, 0.1)))
        lists.append(Logged(context, items, clicks, (0.7 if first else 0.3, 1.0, 1.0)))
    return lists


def policy_file(path: Path, lists: Mapping[str, tuple[str, ...]]) -> Path:
    rows = [(context, k, item) for context in sorted(lists) for k, item in enumerate(lists[context], start=1)]
    context, rank, item = zip(*rows, strict=True)
    numbers = pa.array([0.5] * len(rows), pa.float64())
    pq.write_table(
        pa.table(
            {
                "context": context,
                "rank": pa.array(rank, pa.int32()),
                "item": item,
                "lower": numbers,
                "mean": numbers,
                "positive": numbers,
                "negative": numbers,
                "impressions": pa.array([1] * len(rows), pa.int64()),
            }
        ),
        path,
    )
    return path


def as_lists(lists: list[Logged], propensity: str = "") -> dict[str, list[Any]]:
    table: dict[str, list[Any]] = {
        "context": [one.context for one in lists],
        "items": [list(one.items) for one in lists],
        "clicks": [list(one.clicks) for one in lists],
    }
    if propensity == "whole":
        table["p"] = [float(np.prod(one.steps)) for one in lists]
    elif propensity:
        table["p"] = [list(one.steps) for one in lists]
    return table


@pytest.fixture
def policy(tmp_path: Path) -> prudent.Policy:
    return prudent.Policy.read(policy_file(tmp_path / "policy.parquet", POLICY))


def same(estimate: Any, said: Any) -> None:
    assert said is not None
    assert (estimate.value, estimate.logged) == pytest.approx((said.value, said.logged), rel=1e-9)
    assert estimate.support == pytest.approx(said.support)


@pytest.mark.parametrize("layout", ["lists", "rows", "jsonl", "csv"])
@pytest.mark.parametrize("known", [False, True])
def test_files_give_what_plain_loops_give(policy: prudent.Policy, tmp_path: Path, layout: str, known: bool) -> None:
    lists = some_lists()
    how: dict[str, Any] = {"propensity": "p"} if known else {}
    flat = [
        {"impression": i, "context": one.context, "item": item, "position": k + 1, "click": click, "p": p}
        for i, one in enumerate(lists)
        for k, (item, click, p) in enumerate(zip(one.items, one.clicks, one.steps, strict=True))
    ]
    if layout == "lists":
        log = prudent.Log(pa.table(as_lists(lists, "steps")), **how)
    elif layout == "rows":
        log = prudent.Log(pa.Table.from_pylist(flat), layout="rows", **how)
    elif layout == "csv":
        lines = [",".join(flat[0]), *(",".join(map(str, row.values())) for row in flat)]
        (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
        log = prudent.Log(tmp_path / "log.csv", layout="rows", **how)
    else:
        table = as_lists(lists, "steps")
        rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
        (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        log = prudent.Log(tmp_path / "log.jsonl", **how)
    found = prudent.evaluate(policy, log, ["ips", "snips", "prefix-ips", "ip-ips"])
    same(found["ips"], reference.ips(lists, POLICY, "clicks", known))
    same(found["snips"], reference.ips(lists, POLICY, "clicks", known, normalize=known))
    same(found["prefix-ips"], reference.prefix_ips(lists, POLICY, "clicks", known))
    same(found["ip-ips"], reference.item_position_ips(lists, POLICY))
    assert found.provenance["contexts"] == {"log": 3, "policy": 3, "both": 2}
    assert found.provenance["lists_kept"] == sum(one.context == "own" for one in lists)


def test_a_propensity_for_whole_lists(tmp_path: Path) -> None:
    """A policy of lists as long as the logged ones can use it; of shorter ones, it has to count."""
    lists = [one for one in some_lists() if one.context != "own"]
    log = prudent.Log(pa.table(as_lists(lists, "whole")), propensity="p")
    full = {"q": ("c", "a", "b"), "r": ("a", "b", "c")}
    policy = prudent.Policy.read(policy_file(tmp_path / "full.parquet", full))
    found = prudent.evaluate(policy, log, ["ips", "prefix-ips"])
    same(found["ips"], reference.ips(lists, full, "clicks", known=True))
    assert found["ips"].why == ""
    same(found["prefix-ips"], reference.prefix_ips(lists, full, "clicks", known=False))
    assert "say nothing of their first items" in found["prefix-ips"].why
    short = {"q": ("c", "a"), "r": ("a", "b")}
    policy = prudent.Policy.read(policy_file(tmp_path / "short.parquet", short))
    found = prudent.evaluate(policy, log, "ips")
    same(found["ips"], reference.ips(lists, short, "clicks", known=False))
    assert "longer lists" in found["ips"].why


@pytest.mark.parametrize("bad", [0.0, -0.1, 1.5, None, float("nan")])
def test_a_list_without_a_propensity_is_rejected(policy: prudent.Policy, bad: float | None) -> None:
    table = as_lists(some_lists(), "whole")
    table["p"][7] = bad
    log = prudent.Log(pa.table(table), propensity="p")
    with pytest.warns(PrudentWarning, match="1 of 300 lists were rejected: 1 × a propensity"):
        found = prudent.evaluate(policy, log, "snips")
    assert found.provenance["rejected"] == {"a propensity is no probability above 0": 1}
    assert found.provenance["lists"] == 299
    with pytest.raises(LogError, match="propensity"):
        prudent.evaluate(policy, log, "snips", max_bad=0.001)


def test_what_cannot_be_evaluated(policy: prudent.Policy) -> None:
    log = prudent.Log(pa.table(as_lists(some_lists())))
    with pytest.raises(UsageError, match="Did you mean 'any-click'"):
        prudent.evaluate(policy, log, reward="any-clicks")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="between 0 and 1"):
        prudent.evaluate(policy, log, confidence=95)
    with pytest.raises(UsageError, match="Did you mean 'bootstrap'"):
        prudent.evaluate(policy, log, interval="bootstrp")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="Known: dm, dr"):
        prudent.evaluate(policy, log, "magic")
    with pytest.raises(UsageError, match="at least one"):
        prudent.evaluate(policy, log, [])
    with pytest.raises(UsageError, match="counts have forgotten"):
        prudent.evaluate(policy, prudent.count(log))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="not a Policy"):
        prudent.evaluate("policy.parquet", log)  # type: ignore[arg-type]
    with pytest.raises(LogError, match="no column 'weight'"):
        prudent.evaluate(policy, prudent.Log(pa.table(as_lists(some_lists())), propensity="weight"))
    numbers = {**as_lists(some_lists()), "context": list(range(300))}
    with pytest.raises(LogError, match="none in common"):
        prudent.evaluate(policy, prudent.Log(pa.table(numbers)))
    with pytest.raises(UsageError, match=r"one above 0\.5"):
        prudent.gate(policy, log, confidence=0.4)
    with pytest.raises(UsageError, match="relative lift"):
        prudent.gate(policy, log, min_lift=-2)


def test_results_as_tables(policy: prudent.Policy) -> None:
    found = prudent.evaluate(
        policy, prudent.Log(pa.table(as_lists(some_lists()))), ["ips", "dr", "ip-ips"], "any-click"
    )
    assert isinstance(found, Evaluation)
    assert [estimate.estimator for estimate in found] == ["ips", "dr", "ip-ips"]
    assert (len(found), found[0], found["ips"]) == (3, found.estimates[0], found.estimates[0])
    for shown in (str(found), found._repr_html_()):
        assert "any-click per list, on 300 held-out lists of 3 contexts, of which 1 keep their lists" in shown
        assert "cannot tell: Whether a list has any click is not a sum" in shown
    with pytest.raises(UsageError, match="was not asked"):
        found["pi"]


def test_nothing_clicked_has_no_lift(policy: prudent.Policy) -> None:
    lists = [one._replace(clicks=(0,) * len(one.items)) for one in some_lists()]
    estimate = prudent.evaluate(policy, prudent.Log(pa.table(as_lists(lists))), "ips")[0]
    assert (estimate.value, estimate.logged, estimate.lift) == (0, 0, None)
    verdict = prudent.gate(policy, prudent.Log(pa.table(as_lists(lists))), estimator="ips")
    assert not verdict
    assert "no lift" in verdict.why


# --- the gate ---------------------------------------------------------------------------------------------------------


def two_orders(n: int = 2_000) -> tuple[prudent.Log, dict[str, tuple[str, ...]]]:
    """Each context is shown in both orders; the good item first is better in all but one."""
    random = np.random.default_rng(5)
    lists = []
    for i in range(n):
        context = f"q{i % 10}"
        items = ("good", "poor") if random.random() < 0.4 else ("poor", "good")
        attraction = {"good": 0.6 if context != "q9" else 0.1, "poor": 0.1 if context != "q9" else 0.6}
        clicks = tuple(int(random.random() < attraction[item] * p) for item, p in zip(items, (1.0, 0.3), strict=True))
        lists.append(Logged(context, items, clicks, (0.5, 1.0)))
    return prudent.Log(pa.table(as_lists(lists))), {f"q{i}": ("good", "poor") for i in range(10)}


def two_policies(tmp_path: Path, good: dict[str, tuple[str, ...]]) -> tuple[prudent.Policy, prudent.Policy]:
    poor = {context: items[::-1] for context, items in good.items()}
    files = policy_file(tmp_path / "good.parquet", good), policy_file(tmp_path / "poor.parquet", poor)
    return prudent.Policy.read(files[0]), prudent.Policy.read(files[1])


@pytest.mark.parametrize("estimator", ["dr", "dm", "ips", "prefix-ips", "ip-ips", "pi", "snips"])
def test_a_better_policy_passes_and_a_worse_one_does_not(tmp_path: Path, estimator: str) -> None:
    log, good = two_orders()
    better, worse = two_policies(tmp_path, good)
    verdict = prudent.gate(better, log, estimator=estimator)
    assert verdict.passed
    assert verdict.estimate.lift_low is not None
    assert verdict.estimate.lift_low > 0
    assert f"{estimator}: lift +" in verdict.why
    assert "with confidence 95 %, above 0 %" in verdict.why
    assert not prudent.gate(worse, log, estimator=estimator)


def test_a_gate_can_ask_for_more(tmp_path: Path) -> None:
    log, good = two_orders()
    better, _ = two_policies(tmp_path, good)
    usual = prudent.gate(better, log, estimator="ips")
    high = prudent.gate(better, log, estimator="ips", min_lift=2.0)
    sure = prudent.gate(better, log, estimator="ips", confidence=0.99)
    assert (usual.passed, high.passed) == (True, False)
    assert usual.estimate == high.estimate
    assert usual.estimate.lift_low is not None
    assert sure.estimate.lift_low is not None
    assert sure.estimate.lift_low < usual.estimate.lift_low


def test_the_logged_lists_do_not_beat_themselves(tmp_path: Path) -> None:
    lists = [Logged("q", ("a", "b"), (i % 2, 0), (1.0, 1.0)) for i in range(100)]
    policy = prudent.Policy.read(policy_file(tmp_path / "p.parquet", {"q": ("a", "b")}))
    verdict = prudent.gate(policy, prudent.Log(pa.table(as_lists(lists))), estimator="ips")
    assert not verdict
    assert verdict.estimate.lift == 0
    assert "not above 0 %" in verdict.why


def test_without_support_the_gate_is_shut(policy: prudent.Policy) -> None:
    log = prudent.Log(pa.table(as_lists([Logged("own", ("x",), (1,), (1.0,))] * 50)))
    verdict = prudent.gate(policy, log)
    assert not verdict.passed
    assert "cannot tell: The policy has a list for none of the contexts" in verdict.why


def test_the_gate_context_by_context(tmp_path: Path) -> None:
    """Nine lists are better and go out; the tenth is worse, and its context keeps the list it mostly saw."""
    log, good = two_orders()
    good["unseen"] = ("good",)
    policy = prudent.Policy.read(policy_file(tmp_path / "p.parquet", good))
    mixture = gate_contexts(policy, log)
    assert (mixture.better, mixture.same, mixture.unsure, mixture.unseen) == (9, 0, 1, 1)
    assert mixture.passed
    mixture.policy.write(tmp_path / "mixed.parquet")
    mixed = prudent.Policy.read(tmp_path / "mixed.parquet")
    assert len(mixed) == 10
    assert all(mixed[f"q{i}"] == ["good", "poor"] for i in range(9))
    assert mixed["q9"] == ["poor", "good"]
    assert mixed.provenance["mixed"]["better"] == 9
    rows = {(c, k): row for c, k, *row in mixed.lists().fetchall()}
    assert rows["q0", 1][1] == 0.5  # the evidence of the policy
    item, lower, mean, positive, negative, impressions = rows["q9", 1]
    assert item == "poor"
    assert 0 < lower < mean < 1
    assert positive + negative <= impressions == 200


def test_with_little_evidence_the_logged_lists_stay(tmp_path: Path) -> None:
    lists = [Logged("q", ("a", "b"), (1, 0), (1.0, 1.0)), Logged("q", ("b", "a"), (1, 0), (1.0, 1.0))] * 3
    policy = prudent.Policy.read(policy_file(tmp_path / "p.parquet", {"q": ("b", "a")}))
    mixture = gate_contexts(policy, prudent.Log(pa.table(as_lists(lists))), model="dcm")
    assert (mixture.better, mixture.unsure) == (0, 1)
    assert not mixture.passed
    assert mixture.policy["q"] == ["a", "b"]


# --- the commands -----------------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    log, good = two_orders()
    pq.write_table(log.source, tmp_path / "log.parquet")
    return policy_file(tmp_path / "policy.parquet", good), tmp_path / "log.parquet"


def test_evaluate_prints_a_table(files: tuple[Path, Path]) -> None:
    done = run("evaluate", files[0], "--log", files[1], "-e", "dr", "-e", "ip-ips", "--reward", "any-click")
    assert done.code == 0
    assert "any-click per list, on 2,000 held-out lists of 10 contexts" in done.said
    assert "ip-ips cannot tell: Whether a list has any click" in done.said


def test_evaluate_for_machines(files: tuple[Path, Path]) -> None:
    command = "evaluate", files[0], "--log", files[1], "--json", "--reward", "any-click", "-e", "ips(clip=9)"
    told, untold = json.loads(run(*command, "-e", "ip-ips").out)
    asked = (
        "estimator reward lists logged logged_low logged_high value low high lift lift_low lift_high "
        "effective_lists support"
    )
    assert list(told) == list(untold) == [*asked.split(), "largest_weight", "why"] == list(KEYS)
    assert told["low"] < told["value"] < told["high"]
    assert {untold[key] for key in asked.split()[3:13]} == {None}
    assert json.loads(run(*command, "--threads", 1).out) == [told]


def test_gate_says_yes_or_no(files: tuple[Path, Path], tmp_path: Path) -> None:
    gate = "gate", files[0], "--log", files[1]
    done = run(*gate, "-e", "prefix-ips")
    assert (done.code, done.out[:4]) == (0, "pass")
    done = run(*gate, "-e", "prefix-ips", "--min-lift", "3", "--json")
    assert done.code == 1
    said = json.loads(done.out)
    assert said["passed"] is False
    assert said["why"].endswith("not above 300 %")
    mixed = tmp_path / "mixed.parquet"
    done = run(*gate, "--per-context", "-o", mixed, "--json")
    assert done.code == 0
    assert json.loads(done.out)["better"] == 9
    assert prudent.Policy.read(mixed).provenance["mixed"]["better"] == 9


def test_commands_say_what_is_wrong(files: tuple[Path, Path], tmp_path: Path) -> None:
    gate = "gate", files[0], "--log", files[1]
    assert run(*gate, "--per-context").code == 2
    assert run(*gate, "--per-context", "-o", files[0]).code == 2
    assert run(*gate, "--per-context", "-o", tmp_path / "m.parquet", "-e", "ips").code == 2
    assert run("gate", files[0], "--log", tmp_path / "none.parquet").code == 3
    assert run("gate", files[1], "--log", files[1]).code == 3
    assert run("evaluate", files[0], "--log", files[1], "--propensity", "p").code == 3
