"""`prudent.evaluate`, `gate` and their commands: from files to numbers."""

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import beta

import prudent
from prudent.base.errors import LogError, PrudentWarning, UsageError
from prudent.evaluation.estimators import estimators
from prudent.evaluation.evaluate import Evaluation, in_words
from prudent.evaluation.gate_contexts import gate_contexts
from prudent.evaluation.intervals import Estimate
from prudent.storage.manifest import Manifest
from tests.command import run, run_process
from tests.evaluation import reference
from tests.evaluation.reference import Logged
from tests.evaluation.small import TRAINED_ELSEWHERE

LOOKS_AT_NOBODY: dict[str, Any] = {"acknowledge": "confounding"}
"""A log of two orders of two items cannot show whether production looks at the user."""

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
                "upper": numbers,
                "stay": numbers,
                "positive": numbers,
                "negative": numbers,
                "impressions": pa.array([int(one != "elsewhere") for one in context], pa.int64()),
            }
        ),
        path,
    )
    TRAINED_ELSEWHERE.write(path)
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
    actual = prudent.evaluate(policy, log, estimator=["ips", "snips", "prefix-ips", "ip-ips"])
    same(actual["ips"], reference.ips(lists, POLICY, "clicks", known))
    same(actual["snips"], reference.ips(lists, POLICY, "clicks", known, normalize=known))
    same(actual["prefix-ips"], reference.prefix_ips(lists, POLICY, "clicks", known))
    same(actual["ip-ips"], reference.item_position_ips(lists, POLICY))
    assert actual.manifest.results["contexts"] == {"log": 3, "policy": 3, "both": 2}
    assert actual.manifest.results["lists_kept"] == sum(one.context == "own" for one in lists)


def test_a_propensity_for_whole_lists(tmp_path: Path) -> None:
    """A policy of lists as long as the logged ones can use it; of shorter ones, it has to count."""
    lists = [one for one in some_lists() if one.context != "own"]
    log = prudent.Log(pa.table(as_lists(lists, "whole")), propensity="p")
    full = {"q": ("c", "a", "b"), "r": ("a", "b", "c")}
    policy = prudent.Policy.read(policy_file(tmp_path / "full.parquet", full))
    actual = prudent.evaluate(policy, log, estimator=["ips", "prefix-ips"])
    same(actual["ips"], reference.ips(lists, full, "clicks", known=True))
    assert actual["ips"].why == ""
    same(actual["prefix-ips"], reference.prefix_ips(lists, full, "clicks", known=False))
    assert "not to their first items" in actual["prefix-ips"].why
    short = {"q": ("c", "a"), "r": ("a", "b")}
    policy = prudent.Policy.read(policy_file(tmp_path / "short.parquet", short))
    actual = prudent.evaluate(policy, log, estimator="ips")
    same(actual["ips"], reference.ips(lists, short, "clicks", known=False))
    assert "longer lists" in actual["ips"].why


@pytest.mark.parametrize("bad", [0.0, -0.1, 1.5, None, float("nan")])
def test_a_list_without_a_propensity_is_rejected(policy: prudent.Policy, bad: float | None) -> None:
    table = as_lists(some_lists(), "whole")
    table["p"][7] = bad
    log = prudent.Log(pa.table(table), propensity="p")
    with pytest.warns(PrudentWarning, match="1 of 300 lists were rejected: 1 × propensity"):
        actual = prudent.evaluate(policy, log, estimator="snips")
    assert actual.manifest.sources["holdout"].tally.rejected == {"propensity outside (0, 1]": 1}
    assert actual.manifest.sources["holdout"].tally.lists == 299
    with pytest.raises(LogError, match="propensity"):
        prudent.evaluate(policy, log, estimator="snips", max_rejected=0.001)


def test_what_cannot_be_evaluated(policy: prudent.Policy) -> None:
    log = prudent.Log(pa.table(as_lists(some_lists())))
    with pytest.raises(UsageError, match="Known: clicks, any-click"):
        prudent.evaluate(policy, log, reward="any-clicks")
    with pytest.raises(UsageError, match="above 0 and below 1"):
        prudent.evaluate(policy, log, confidence=95)
    with pytest.raises(UsageError, match="Did you mean 'bootstrap'"):
        prudent.evaluate(policy, log, interval="bootstrp")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="Known: cips, dm, dr"):
        prudent.evaluate(policy, log, estimator="magic")
    with pytest.raises(UsageError, match="at least one"):
        prudent.evaluate(policy, log, estimator=[])
    with pytest.raises(UsageError, match="counts do not keep whole lists"):
        prudent.evaluate(policy, prudent.count(log))
    with pytest.raises(UsageError, match="is not a policy"):
        prudent.evaluate(log, log)  # type: ignore[arg-type]
    with pytest.raises(LogError, match="no column 'weight'"):
        prudent.evaluate(policy, prudent.Log(pa.table(as_lists(some_lists())), propensity="weight"))
    numbers = {**as_lists(some_lists()), "context": list(range(300))}
    with pytest.raises(LogError, match="none in common"):
        prudent.evaluate(policy, prudent.Log(pa.table(numbers)))
    with pytest.raises(UsageError, match=r"above 0\.5 and below 1"):
        prudent.gate(policy, log, confidence=0.4)
    with pytest.raises(UsageError, match="min_lift is -2; it must be a number above -1"):
        prudent.gate(policy, log, min_lift=-2)


@pytest.mark.parametrize("setting", ["a", None, "0.9", [0.9], float("nan"), float("inf")])
def test_settings_that_are_no_numbers(policy: prudent.Policy, setting: Any) -> None:
    log = prudent.Log(pa.table(as_lists(some_lists())))
    with pytest.raises(UsageError, match="a number above 0 and below 1"):
        prudent.evaluate(policy, log, estimator="ips", confidence=setting)
    with pytest.raises(UsageError, match=r"above 0\.5 and below 1"):
        prudent.gate(policy, log, confidence=setting)
    with pytest.raises(UsageError, match=r"such as 0\.01 for 1% more"):
        prudent.gate(policy, log, min_lift=setting)


@pytest.mark.parametrize("estimator", [3, None, {"dm"}])
def test_what_is_no_estimator(policy: prudent.Policy, estimator: Any) -> None:
    log = prudent.Log(pa.table(as_lists(some_lists())))
    for ask in (
        lambda: prudent.evaluate(policy, log, estimator=estimator),
        lambda: prudent.gate(policy, log, estimator=estimator),
    ):
        with pytest.raises(UsageError, match=r"is not an estimator\. Known: cips, dm, dr"):
            ask()


def test_each_estimator_is_asked_once(policy: prudent.Policy) -> None:
    log = prudent.Log(pa.table(as_lists(some_lists())))
    actual = prudent.evaluate(policy, log, estimator=["dr(clip=10)", "ips", "dr(clip=10.0)", "ips"])
    assert [estimate.estimator for estimate in actual] == ["dr(clip=10)", "ips"]


def test_any_spelling_finds_its_estimate(policy: prudent.Policy) -> None:
    log = prudent.Log(pa.table(as_lists(some_lists())))
    spellings = ["dr( clip = 10, model=dcm(tail=truncate) )", "dm(model=pbm(examination=[1, .5, .4]))", "ips(clip=inf)"]
    actual = prudent.evaluate(policy, log, estimator=spellings)
    assert [one.estimator for one in actual] == [
        "dr(model=dcm(tail=truncate), clip=10)",
        "dm(model=pbm(examination=[1, 0.5, 0.4]))",
        "ips",
    ]
    for number, spelling in enumerate(spellings):
        assert actual[spelling] is actual[number] is actual[actual[number].estimator]
    with pytest.raises(UsageError, match=r"dr was not evaluated\. Evaluated: dr\(model"):
        actual["dr()"]


# --- in words ---------------------------------------------------------------------------------------------------------


def said_by(*estimates: Estimate) -> str:
    return Evaluation(estimates, Manifest("evaluation", {"confidence": 0.95})).verdict


GOOD = Estimate(
    "ips",
    "clicks",
    900,
    logged=1.0,
    value=1.1,
    lift=0.1,
    lift_low=0.02,
    lift_high=0.18,
    effective_sample_size=80,
    support=1,
)


def test_words_for_what_the_numbers_say() -> None:
    by = "By ips (inverse propensities), the policy's lists"
    assert said_by(GOOD) == (
        f"{by} earn 10.0% more clicks than the logged lists, +2.0% to +18.0% with confidence 95%: "
        "a significant increase."
    )
    assert said_by(replace(GOOD, lift_low=-0.02)).endswith("−2.0% to +18.0% with confidence 95%: not significant.")
    worse = replace(GOOD, lift=-0.1, lift_low=-0.18, lift_high=-0.02)
    assert "earn 10.0% fewer clicks" in said_by(worse)
    assert said_by(worse).endswith(": a significant decrease.")
    assert said_by(replace(worse, reward="any-click")).startswith(f"{by} earn 10.0% fewer lists with a click than")
    assert said_by(replace(worse, reward="any-click")).endswith(": a significant decrease.")
    assert said_by(replace(GOOD, lift=0.0, lift_low=0.0)).endswith(": not significant.")
    assert "all matching lists are identical" in said_by(replace(GOOD, lift_low=0.1, lift_high=0.1))
    assert "earn as many clicks as the logged lists" in said_by(replace(GOOD, lift=0.0))
    assert said_by(replace(GOOD, lift_low=None, lift_high=None)).endswith(
        "– to – with confidence 95%: not significant."
    )
    assert "the lift is not defined" in said_by(replace(GOOD, lift=None, lift_low=None, lift_high=None))
    assert "effective sample size 3, below 30" in said_by(replace(GOOD, effective_sample_size=3.2))
    assert said_by(replace(GOOD, support=0.5)).endswith(
        ": a significant increase (support for 50.0% of the lists that it changes)."
    )


def test_words_are_about_the_row_to_trust() -> None:
    """The gate's estimator where it tells, else the one that tells about most lists."""
    others = replace(GOOD, estimator="pi", support=0.4), replace(GOOD, estimator="dm", support=0.9)
    assert said_by(*others).startswith("By dm (click model alone), ")
    assert said_by(*others, replace(GOOD, estimator="dr(clip=10)", support=0.2)).startswith(
        "By dr(clip=10) (doubly robust)"
    )
    silent = Estimate("dr(clip=10)", "clicks", 900, why="There is no click.")
    assert said_by(*others, silent).startswith("By dm ")
    assert said_by(Estimate("ips", "clicks", 900, why="No support."), silent) == "Cannot tell: There is no click."


def test_every_estimator_has_words() -> None:
    assert [name for name in estimators if not in_words(name)] == []
    assert in_words("mine(x=1)") == ""


def test_results_as_tables(policy: prudent.Policy) -> None:
    actual = prudent.evaluate(
        policy, prudent.Log(pa.table(as_lists(some_lists()))), estimator=["ips", "dr", "ip-ips"], reward="any-click"
    )
    assert isinstance(actual, Evaluation)
    assert [estimate.estimator for estimate in actual] == ["ips", "dr", "ip-ips"]
    assert (len(actual), actual[0], actual["ips"]) == (3, actual.estimates[0], actual.estimates[0])
    for shown in (str(actual), actual._repr_html_()):
        assert (
            "any-click per list, on 300 holdout lists of 3 contexts, by clicks at positions 1 to 2 of 3 alone; the "
            "policy has no list for 1 context: logged lists stay"
        ) in shown
        assert "ip-ips: cannot tell. any-click is not a sum over items and positions." in shown
    with pytest.raises(UsageError, match="was not evaluated"):
        actual["pi"]


def test_nothing_clicked_has_no_lift(policy: prudent.Policy) -> None:
    lists = [one._replace(clicks=(0,) * len(one.items)) for one in some_lists()]
    estimate = prudent.evaluate(policy, prudent.Log(pa.table(as_lists(lists))), estimator="ips")[0]
    assert (estimate.value, estimate.logged, estimate.lift) == (0, 0, None)
    verdict = prudent.gate(policy, prudent.Log(pa.table(as_lists(lists))), estimator="ips")
    assert not verdict
    assert "the lift is not defined" in verdict.why


# --- the gate ---------------------------------------------------------------------------------------------------------


CHANGE = ("unchanged", "lift_changed", "sensitivity", "margin", "shrinkage")


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
    verdict = prudent.gate(better, log, estimator=estimator, **LOOKS_AT_NOBODY)
    assert verdict.passed
    assert verdict.estimate.lift_low is not None
    assert verdict.estimate.lift_low > 0
    assert verdict.why.startswith(f"{estimator} ({in_words(estimator)}): lift +")
    assert "with confidence 95%, above 0%" in verdict.why
    assert not prudent.gate(worse, log, estimator=estimator, **LOOKS_AT_NOBODY)


def test_a_gate_can_ask_for_more(tmp_path: Path) -> None:
    log, good = two_orders()
    better, _ = two_policies(tmp_path, good)
    usual = prudent.gate(better, log, estimator="ips", **LOOKS_AT_NOBODY)
    high = prudent.gate(better, log, estimator="ips", min_lift=2.0, **LOOKS_AT_NOBODY)
    sure = prudent.gate(better, log, estimator="ips", confidence=0.99)
    assert (usual.passed, high.passed) == (True, False)
    about_the_goal = {name: getattr(high.estimate, name) for name in ("sensitivity", "margin")}
    assert replace(usual.estimate, **about_the_goal) == high.estimate
    assert usual.estimate.sensitivity is not None
    assert usual.estimate.sensitivity > 1
    assert usual.estimate.lift_low is not None
    assert sure.estimate.lift_low is not None
    assert sure.estimate.lift_low < usual.estimate.lift_low


def test_the_logged_lists_do_not_beat_themselves(tmp_path: Path) -> None:
    lists = [Logged("q", ("a", "b"), (i % 2, 0), (1.0, 1.0)) for i in range(100)]
    policy = prudent.Policy.read(policy_file(tmp_path / "p.parquet", {"q": ("a", "b")}))
    verdict = prudent.gate(policy, prudent.Log(pa.table(as_lists(lists))), estimator="ips")
    assert not verdict
    assert verdict.estimate.lift == 0
    assert "not above 0%" in verdict.why


def test_without_support_the_gate_is_shut(policy: prudent.Policy) -> None:
    log = prudent.Log(pa.table(as_lists([Logged("own", ("x",), (1,), (1.0,))] * 50)))
    verdict = prudent.gate(policy, log)
    assert not verdict.passed
    assert "cannot tell. The policy has no list for any context" in verdict.why
    actual = prudent.evaluate(policy, log)
    assert actual.title == "clicks per list, on 50 holdout lists of 1 context; the policy has a list for none of them"
    assert actual.verdict == "Cannot tell: The policy has no list for any context of this log."
    assert verdict.verdict == gate_contexts(policy, log).verdict == "unknown"


def test_where_nothing_can_be_told_there_is_no_gate_to_try(tmp_path: Path) -> None:
    pq.write_table(pa.table(as_lists([Logged("own", ("x",), (1,), (1.0,))] * 50)), tmp_path / "log.parquet")
    done = run("evaluate", policy_file(tmp_path / "p.parquet", POLICY), "--log", tmp_path / "log.parquet")
    assert done.code == 0
    assert "Cannot tell" in done.text
    assert "Next:" not in done.text


def test_the_gate_context_by_context(tmp_path: Path) -> None:
    """Nine lists are better and go out; the tenth is worse, and its context keeps the list it mostly saw."""
    log, good = two_orders()
    good["unseen"] = ("good",)
    policy = prudent.Policy.read(policy_file(tmp_path / "p.parquet", good))
    mixture = gate_contexts(policy, log, **LOOKS_AT_NOBODY)
    assert (mixture.better, mixture.same, mixture.unsure, mixture.unseen) == (9, 0, 1, 1)
    assert mixture.passed
    mixture.policy.write(tmp_path / "mixed.parquet")
    mixed = prudent.Policy.read(tmp_path / "mixed.parquet")
    assert len(mixed) == 10
    assert all(mixed[f"q{i}"] == ["good", "poor"] for i in range(9))
    assert mixed["q9"] == ["poor", "good"]
    assert mixed.manifest.results["mixed"]["better"] == 9
    rows = {(c, k): row for c, k, *row in mixed.lists().fetchall()}
    assert rows["q0", 1][1] == 0.5  # the evidence of the policy
    item, lower, mean, _, _, positive, negative, impressions = rows["q9", 1]
    assert item == "poor"
    assert 0 < lower < mean < 1
    assert positive + negative <= impressions == 200


def test_a_mixed_policy_claims_no_bound_for_the_lists_that_stay(tmp_path: Path) -> None:
    """What made the policy is told apart: explain must not read rows of the held-out log by its bound and prior."""
    log, good = two_orders()
    policy = replace(
        prudent.Policy.read(policy_file(tmp_path / "p.parquet", good)),
        manifest=Manifest(
            "policy",
            {"model": "pbm", "bound": "bayes(delta=0.2)", "length": 2},
            TRAINED_ELSEWHERE.sources,
            {
                "fitted": {"examination": [1.0, 0.3], "prior": {"alpha": 1.0, "beta": 1.0}},
                "summary": {"contexts": 10, "differ": 10, "unit": "expected clicks"},
            },
        ),
    )
    mixed = gate_contexts(policy, log, **LOOKS_AT_NOBODY).policy
    assert set(mixed.manifest.settings) == {"length", "mixed"}
    assert set(mixed.manifest.results) == {"mixed"}
    assert mixed.manifest.prudent == prudent.__version__
    assert mixed.manifest.sources["training"] == policy.manifest.sources["training"]
    assert mixed.manifest.settings["mixed"]["policy"] == {"model": "pbm", "bound": "bayes(delta=0.2)"}
    told = mixed.explain("q9")
    assert [(one.lower, one.mean, one.upper) for one in told.candidates] == [(None, None, None)] * 2
    assert told.notes
    said = prudent.report(mixed, log, to=tmp_path / "page.html")
    assert "no lower bounds" in said["promises"][0]
    assert "bound" in [setting.name for setting in prudent.diff(policy, mixed).settings]


def test_rows_that_keep_the_logged_list_are_what_the_page_says(tmp_path: Path) -> None:
    log, good = two_orders()
    mixture = gate_contexts(prudent.Policy.read(policy_file(tmp_path / "p.parquet", good)), log, **LOOKS_AT_NOBODY)
    rows = mixture.policy.lists().filter("context = 'q9'").fetchall()
    assert len(rows) == 2
    for *_, lower, mean, _, _, positive, negative, _ in rows:
        assert lower == pytest.approx(beta.ppf(1 - mixture.confidence, 1 + positive, 1 + negative))
        assert mean == pytest.approx((1 + positive) / (2 + positive + negative))


def test_with_little_evidence_the_logged_lists_stay(tmp_path: Path) -> None:
    lists = [Logged("q", ("a", "b"), (1, 0), (1.0, 1.0)), Logged("q", ("b", "a"), (1, 0), (1.0, 1.0))] * 3
    policy = prudent.Policy.read(policy_file(tmp_path / "p.parquet", {"q": ("b", "a")}))
    log = prudent.Log(pa.table(as_lists(lists)))
    mixture = gate_contexts(policy, log, estimator="dm(model=dcm)", acknowledge="click-model")
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
    assert "any-click per list, on 2,000 holdout lists of 10 contexts" in done.text
    assert "ip-ips: cannot tell. any-click is not a sum" in done.text
    assert "By dr (doubly robust), the policy's lists earn" in done.text
    assert done.out.splitlines()[-1] == f"Next: prudent gate {files[0]} --log {files[1]} --reward any-click"


def test_evaluate_says_the_same_once(files: tuple[Path, Path]) -> None:
    done = run("evaluate", files[0], "--log", files[1], "-e", "dm", "-e", "dr", "-e", "dm", "--confidence", ".9")
    assert [line.split()[0] for line in done.out.splitlines() if line.startswith(("dm ", "dr "))] == ["dm", "dr"]
    assert "dm, dr: The click model is" in done.text
    assert "with confidence 90%" in done.text


@pytest.mark.parametrize("estimator", [[], ["-e", "dr(model=dcm, clip=10)"]])
def test_the_table_fits_into_eighty_letters(files: tuple[Path, Path], estimator: list[str]) -> None:
    """Headings break, between words; cells do not."""
    done = run_process("evaluate", *(files[0], "--log", files[1]), *estimator, env={"COLUMNS": "80"})
    lines = done.out.partition("\n\n")[0].splitlines()
    assert max(map(len, lines)) <= 80
    row = next(line for line in lines if line.startswith((estimator or ["", "dr(clip=10)"])[1]))
    assert re.search(r" [+−][\d.]+ to [+−][\d.]+ ", row), "the interval is whole"
    assert any("effective" in line for line in lines)


def test_a_table_that_cannot_fit_goes_out_whole(files: tuple[Path, Path]) -> None:
    done = run_process("evaluate", files[0], "--log", files[1], "-e", "dr", env={"COLUMNS": "40"})
    assert any(line.startswith("estimator") and line.endswith("Γ") for line in done.out.splitlines())


def test_the_next_command_reads_the_log_alike(tmp_path: Path) -> None:
    """What was said of the columns is said again; names with spaces are quoted."""
    log, _ = two_orders(6_000)
    pq.write_table(log.source.rename_columns(["the query", "items", "clicks"]), tmp_path / "log.parquet")
    parts, query = tmp_path / "two parts", ("--context", "the query")
    steps: list[list[object]] = [["split", tmp_path / "log.parquet", "-o", parts, *query]]
    for command in ("rank", "evaluate", "gate"):
        done = run(*steps[-1])
        assert done.code == 0
        words = shlex.split(done.out.splitlines()[-1].removeprefix("Next: prudent "))
        assert words[0] == command
        assert words[-2:] == list(query)
        steps.append([tmp_path / word if word == "policy.parquet" else word for word in words])
    assert run(*steps[-1]).out.startswith("pass")


def test_evaluate_for_machines(files: tuple[Path, Path]) -> None:
    command = "evaluate", files[0], "--log", files[1], "--json", "--reward", "any-click", "-e", "ips(clip=9)"
    told, untold = json.loads(run(*command, "-e", "ip-ips").out)
    asked = (
        "estimator reward lists logged logged_low logged_high value low high lift lift_low lift_high "
        "effective_sample_size support"
    )
    assert list(told) == list(untold) == [*asked.split(), "largest_weight", "why", "doubt", *CHANGE]
    assert told["low"] < told["value"] < told["high"]
    assert {untold[key] for key in asked.split()[3:13]} == {None}
    assert json.loads(run(*command, "--threads", 1).out) == [told]


def test_gate_says_yes_or_no(files: tuple[Path, Path], tmp_path: Path) -> None:
    gate = "gate", files[0], "--log", files[1], "--acknowledge", "confounding"
    done = run(*gate, "-e", "prefix-ips")
    assert (done.code, done.out[:4]) == (0, "pass")
    done = run(*gate, "-e", "prefix-ips", "--min-lift", "3", "--json")
    assert done.code == 1
    said = json.loads(done.out)
    assert said["verdict"] == "fail"
    assert said["why"].endswith("not above +300%")
    mixed = tmp_path / "mixed.parquet"
    done = run("gate-contexts", *gate[1:], "-o", mixed, "--json")
    assert done.code == 0
    assert json.loads(done.out)["better"] == 9
    assert prudent.Policy.read(mixed).manifest.results["mixed"]["better"] == 9


def test_a_mixture_in_words(tmp_path: Path) -> None:
    log, good = two_orders()
    better, worse = two_policies(tmp_path, {"q0": good["q0"]})
    assert gate_contexts(better, log, **LOOKS_AT_NOBODY).why.startswith(
        "1 of 1 context gets the policy's list: better than the incumbent list"
    )
    why = gate_contexts(worse, log, **LOOKS_AT_NOBODY).why
    assert why.startswith(
        "no context gets the policy's list: none is better than the incumbent list with confidence 95%; "
    )


@pytest.mark.parametrize(
    ("option", "written", "said"),
    [
        ("--min-lift", "5%", "'5%' is not a number. Write a fraction, such as 0.05."),
        ("--min-lift", "1.5 %", "such as 0.015."),
        ("--min-lift", "much", "'much' is not a number. Write a fraction, such as 0.05."),
        ("--min-lift", "nan", "min_lift is nan; it must be a number above -1"),
        ("--confidence", "95%", "such as 0.95."),
        ("--confidence", "95", "confidence is 95.0; it must be a number above 0.5"),
    ],
)
def test_numbers_that_are_none(files: tuple[Path, Path], option: str, written: str, said: str) -> None:
    done = run("gate", files[0], "--log", files[1], option, written)
    assert done.code == 2
    assert said in re.sub(r" [│ ]*", " ", done.text)


def test_commands_say_what_is_wrong(files: tuple[Path, Path], tmp_path: Path) -> None:
    mix = "gate-contexts", files[0], "--log", files[1]
    assert run(*mix).code == 2
    assert run(*mix, "-o", files[0]).code == 2
    assert run(*mix, "-o", tmp_path / "m.parquet", "-e", "ips").code == 2
    assert run("gate", files[0], "--log", tmp_path / "none.parquet").code == 3
    assert run("gate", files[1], "--log", files[1]).code == 3
    assert run("evaluate", files[0], "--log", files[1], "--propensity", "p").code == 3


# --- results ----------------------------------------------------------------------------------------------------------


def test_results_are_values_in_frames_and_arrow(policy: prudent.Policy) -> None:
    log = prudent.Log(pa.table(as_lists(some_lists())))
    evaluation = prudent.evaluate(policy, log, estimator=["ips", "dr", "ip-ips"], reward="any-click")
    frame = evaluation.to_frame()
    assert frame["value"][0] == evaluation["ips"].value
    assert pa.table(evaluation).to_pylist() == evaluation.to_json()
    verdict = prudent.gate(policy, log)
    (row,) = pa.table(verdict).to_pylist()
    assert (row["verdict"], row["lift_low"]) == (verdict.verdict, verdict.estimate.lift_low)
    mixture = gate_contexts(policy, log, estimator="dm(model=pbm)")
    assert list(mixture.rows()) == [(name, getattr(mixture, name)) for name in ("better", "same", "unsure", "unseen")]


def test_a_verdict_prints_one_short_line(policy: prudent.Policy) -> None:
    """It was the call of a constructor with twenty numbers."""
    verdict = prudent.gate(policy, prudent.Log(pa.table(as_lists(some_lists()))), estimator="ips")
    assert repr(verdict) == str(verdict) == f"{'pass' if verdict else 'fail'}: {verdict.why}"
    assert "\n" not in str(verdict)
    assert len(str(verdict)) < 200
    assert "<table>" in verdict._repr_html_()


def test_paths_will_do(files: tuple[Path, Path]) -> None:
    policy, log = files
    one = prudent.evaluate(policy, str(log), estimator="ips")
    assert one.to_json() == prudent.evaluate(prudent.Policy.read(policy), prudent.Log(log), estimator="ips").to_json()
    assert prudent.gate(str(policy), log).passed == prudent.gate(policy, prudent.Log(log)).passed
    assert gate_contexts(policy, log, **LOOKS_AT_NOBODY).better == 9
