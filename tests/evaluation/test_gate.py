"""What may judge what: lists of different lengths, lists a policy has learned from, and policies that are none."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import prudent
from prudent.base.errors import LogError, PolicyError, PrudentWarning, UsageError
from prudent.click_models.world import draw, make_world
from prudent.counts.lists import ListBatch
from prudent.evaluation.direct import direct
from prudent.evaluation.estimators import parse
from prudent.evaluation.gate import decide, gate_settings
from prudent.evaluation.holdout import make_holdout
from prudent.policies.files import COLUMNS
from tests.command import run
from tests.evaluation.reference import Logged
from tests.evaluation.small import TRAINED_ELSEWHERE, arrays
from tests.footers import rewrite_footer

ESTIMATORS = ["ips", "snips", "prefix-ips", "ip-ips", "pi", "dm(model=cm)", "dr(model=cm)", "dr(model=cm, clip=10)"]


def table(rows: list[tuple[str, list[str], list[int]]]) -> pa.Table:
    context, items, clicks = zip(*rows, strict=True)
    return pa.table({"context": context, "items": items, "clicks": clicks})


def policy_of(lists: dict[str, list[str]], path: Path) -> prudent.Policy:
    """A file that somebody else might have written."""
    rows = [(context, rank, item) for context, items in lists.items() for rank, item in enumerate(items, 1)]
    return written([(*row, 0.1, 0.1, 0.1, 0.1, 1.0, 1.0, 2) for row in rows], path)


def written(rows: list[tuple[object, ...]], path: Path) -> prudent.Policy:
    pq.write_table(pa.table(dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True))), path)
    TRAINED_ELSEWHERE.write(path)
    return prudent.Policy.read(path)


# --- lengths ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_longer_lists_earn_nothing_below_those_that_were_logged(estimator: str, tmp_path: Path) -> None:
    """Two of four items were shown in a; that the policy shows four of them there is no reason for more clicks."""
    lists = [("a", ["x", "y"], [1, 0])] * 20 + [("a", ["x", "y"], [0, 0])] * 20
    lists += [("b", ["p", "q", "r", "s"], [0, 1, 0, 0])] * 20 + [("b", ["p", "q", "r", "s"], [0, 0, 0, 0])] * 20
    policy = policy_of({"a": ["x", "y", "z", "w"], "b": ["p", "q", "r", "s"]}, tmp_path / "policy.parquet")
    (actual,) = prudent.evaluate(policy, prudent.Log(table(lists)), estimator=estimator)
    assert actual.support == 1
    assert actual.logged == 0.5
    assert actual.lift == pytest.approx(0, abs=0.02 if "dm" in estimator else 1e-9), "the model shrinks a little"


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_of_shorter_lists_only_what_they_show_counts_and_a_context_elsewhere_changes_nothing(
    estimator: str, tmp_path: Path
) -> None:
    lists = [("a", ["x", "y", "z"], [1, 0, 1])] * 20 + [("a", ["x", "y", "z"], [0, 0, 1])] * 20
    lists += [("kept", ["p", "q", "r"], [1, 1, 1])] * 10
    log = prudent.Log(table(lists))
    alone = prudent.evaluate(policy_of({"a": ["x"]}, tmp_path / "one.parquet"), log, estimator=estimator)
    more = policy_of({"a": ["x"], "elsewhere": ["k", "l", "m", "n"]}, tmp_path / "two.parquet")
    assert prudent.evaluate(more, log, estimator=estimator).estimates == alone.estimates
    assert alone[0].logged == pytest.approx((20 * 1 + 10 * 3) / 50), "contexts without a policy count whole"
    assert alone[0].lift == pytest.approx(0, abs=0.02 if "dm" in estimator else 1e-9)


def test_click_models_learn_from_whole_lists() -> None:
    """c stands below the only place that is counted, and is known all the same."""
    lists = [Logged("q", ("a", "b", "c"), clicks, (1.0,) * 3) for clicks in ((0, 0, 1), (0, 0, 0)) for _ in range(20)]
    held = arrays(lists, {"q": ("c",)})
    assert held.upto.tolist() == [1]
    assert held.target[0].tolist() == [2, -1, -1]
    assert parse("dm(model=cm)").contributions(held, "clicks").value > 0.2


def test_what_was_never_weighed_is_not_logged_either(tmp_path: Path) -> None:
    """In a, where little is clicked, the policy's list was never shown; b says nothing about it."""
    lists = [("a", ["x", "y"], [0, 0], 1.0)] * 20 + [("b", ["x", "y"], [1, 0], 1.0)] * 20
    context, items, clicks, p = zip(*lists, strict=True)
    log = prudent.Log(pa.table({"context": context, "items": items, "clicks": clicks, "p": p}), propensity="p")
    policy = policy_of({"a": ["y", "x"], "b": ["x", "y"]}, tmp_path / "policy.parquet")
    actual = prudent.evaluate(policy, log, estimator=["snips", "ips"])
    assert actual["snips"].logged == actual["snips"].value == 1
    assert actual["snips"].lift == 0
    assert actual["ips"].logged == actual["ips"].value == 0.5, "there a context without a match counts as nothing"


# --- context by context -----------------------------------------------------------------------------------------------


def test_where_the_logged_list_stays_it_stays_whole(tmp_path: Path) -> None:
    """And it is what was mostly shown place by place, not a list that happened to be shown twice."""
    lists = [("a", ["x", "y", "z"], [1, 0, 0])] * 30 + [("a", ["y", "x", "z"], [0, 1, 0])] * 20
    lists += [("b", ["p", "q", "r"], [0, 1, 0])] * 30
    policy = policy_of({"a": ["y", "x"], "b": ["p", "q"]}, tmp_path / "policy.parquet")
    mixture = prudent.gate_contexts(
        policy, prudent.Log(table(lists)), estimator="dm(model=cm)", acknowledge="click-model"
    )
    assert (mixture.better, mixture.same, mixture.unsure) == (0, 1, 1)
    assert mixture.policy["a"] == ["x", "y", "z"]
    assert mixture.policy["b"] == ["p", "q", "r"], "as far down as the policy goes, the two are the same"
    assert mixture.policy.manifest.settings["length"] == 3


def test_few_lists_and_lists_that_are_alike_are_not_enough_for_a_yes() -> None:
    """Four lists agree, and all were clicked, of which nine in ten are: their own spread would be none."""
    logged = [Logged("q", ("a", "b"), (int(i % 10 > 0), 0), (1.0, 1.0)) for i in range(60)]
    lucky = [Logged("q", ("b", "a"), (1, 0), (1.0, 1.0))] * 4
    asked = gate_settings(-0.5, 0.95, "clicks", "bootstrap", 200, 0)
    blind: dict[str, Any] = {"acknowledge": "confounding"}
    verdict = decide(arrays(logged + lucky, {"q": ("b", "a")}), parse("ips"), asked, -0.5, **blind)
    assert verdict.estimate.lift_low is not None
    assert -0.5 < verdict.estimate.lift_low < 0
    assert verdict.verdict == "unknown"
    assert verdict.why.endswith(
        "But: effective sample size 4, below 30; hold out more lists, or rank shorter ones (--length)"
    )
    many = decide(arrays(logged + lucky * 10, {"q": ("b", "a")}), parse("ips"), asked, -0.5, **blind)
    assert many.passed
    same = [Logged("q", ("a", "b"), (1, 0), (1.0, 1.0))] * 60
    alike = decide(arrays(same, {"q": ("a", "b")}), parse("ips"), asked, -0.5)
    assert alike.verdict == "unknown"
    assert "But: all matching lists are identical, so that the interval has no width; hold out more" in alike.why


def test_lists_of_contexts_that_keep_theirs_are_no_evidence_for_the_policy() -> None:
    """However many there are: of the policy's own context, three lists agree."""
    mine = [Logged("mine", ("a", "b") if i < 3 else ("b", "a"), (int(i < 3), 0), (1.0, 1.0)) for i in range(40)]
    others = [Logged(f"other {i % 10}", ("a", "b"), (int(i % 7 == 0), 0), (1.0, 1.0)) for i in range(2_000)]
    verdict = decide(arrays(mine + others, {"mine": ("a", "b")}), parse("ips"), gate_settings(0.0, 0.95, "clicks"), 0.0)
    assert verdict.estimate.effective_sample_size == pytest.approx(3)
    assert not verdict.passed


def test_propensities_do_not_make_up_for_items_that_nobody_saw() -> None:
    """In a coins decided, and the policy can be judged; in b it shows what was never shown, and nobody knows."""
    random = np.random.default_rng(0)
    coins = random.integers(0, 2, 400)
    lists = [
        Logged("a", ("x", "y") if coin else ("y", "x"), (int(random.random() < (0.6 if coin else 0.2)), 0), (0.5, 1.0))
        for coin in coins
    ]
    lists += [Logged("b", ("p", "q"), (1, 0), (1.0, 1.0))] * 600
    held = arrays(lists, {"a": ("x", "y"), "b": ("r", "s")}, known=True)
    columns = parse("dr(model=cm)").contributions(held, "clicks")
    changed = np.sum(coins == 0)
    assert columns.support == pytest.approx(changed / (changed + 600)), "half of the lists of a stay as they are"
    assert columns.value == pytest.approx(0.6, abs=0.1), "of a alone; its standard error is below .04"
    verdict = decide(held, parse("dr(model=cm)"), gate_settings(0.0, 0.95, "clicks"), 0.0)
    assert not verdict.passed
    assert "with support for 23.0% of the lists that it changes. But: support below the minimum of 50%" in verdict.why
    assert decide(held, parse("dr(model=cm)"), gate_settings(0.0, 0.95, "clicks"), 0.0, min_support=0.2).passed


def test_lists_that_stay_support_no_policy() -> None:
    """Half of the traffic stays as it is. Of the other half, 2 % show items that the policy also has."""
    random = np.random.default_rng(0)
    coins = [
        Logged("coin", ("a", "b") if i % 2 else ("b", "a"), (int(random.random() < (0.6 if i % 2 else 0.2)), 0), (1.0,))
        for i in range(200)
    ]
    new = [Logged("new", ("a", "b"), (int(random.random() < 0.3), 0), (1.0,)) for _ in range(9_800)]
    policy = {"coin": ("a", "b"), "new": ("c", "d")}
    for context in ("same", "elsewhere"):  # the policy shows the same list, or none
        stay = [Logged(context, ("a", "b"), (int(random.random() < 0.3), 0), (1.0,)) for _ in range(10_000)]
        policy["same"] = ("a", "b")
        verdict = decide(arrays([*coins, *new, *stay], policy), parse("ips"), gate_settings(0.0, 0.95, "clicks"), 0.0)
        assert verdict.estimate.lift_low is not None
        assert verdict.estimate.lift_low > 0
        assert verdict.verdict == "unknown"
        assert verdict.estimate.support == pytest.approx(100 / 9_900)


def test_no_spread_among_few_lists_is_no_certainty() -> None:
    """By pi, too: in c nothing was clicked, but clicks there are, elsewhere."""
    orders = [("a", "b", "c"), ("b", "c", "a"), ("c", "a", "b"), ("a", "c", "b")]
    lists = [Logged("c", order, (0, 0, 0), (1.0,) * 3) for order in orders * 2]
    lists += [Logged("d", order, (i % 2, 0, 0), (1.0,) * 3) for i in range(5) for order in orders]
    held = arrays(lists, {"c": ("a", "b", "c")})
    columns = parse("pi").contributions(held, "clicks")
    in_c = held.context == 0
    assert columns.value == 8 / 28, "of d, which keeps its lists"
    assert columns.gain[in_c].std() > 0.2, "about as much as clicks spread in d, and not nothing"


# --- which click model ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["pbm", "dcm"])
def test_auto_takes_the_model_that_foresees_clicks(kind: str) -> None:
    """Both worlds identify pbm; which of the two users click by, their clicks tell."""
    world = make_world(kind, contexts=40, items=(4, 6), length=3, exploration=3, seed=1)
    drawn = list(draw(world, 20_000, seed=1))
    items, clicks = (np.concatenate([getattr(part, name) for part in drawn]) for name in ("items", "clicks"))
    sizes = np.diff(world.offsets)
    shown = ListBatch(
        np.repeat(np.arange(len(sizes)), sizes), items, clicks.astype(bool), np.ones(len(items), np.int64)
    )
    held = make_holdout(shown, world.offsets[:-1, None] + np.arange(3))
    fit = direct(held, "auto", "clicks")
    assert str(fit.fitted.model) == kind
    assert not fit.doubt


def test_an_assumed_click_model_fails_the_gate(tmp_path: Path) -> None:
    """Most contexts always show one list: nothing compares the positions, and dcm may be as wrong as any."""
    random = np.random.default_rng(0)
    theta, p = random.beta(1, 2, (60, 3)), (1.0, 0.6, 0.4)
    lists = []
    for context in range(60):
        for _ in range(30):
            clicks = (random.random(3) < theta[context] * p).astype(int).tolist()
            lists.append((f"q{context}", ["a", "b", "c"], clicks))
    policy = policy_of({f"q{context}": ["b", "a", "c"] for context in range(60)}, tmp_path / "policy.parquet")
    log = prudent.Log(table(lists))
    verdict = prudent.gate(policy, log, min_lift=-0.9)
    assert verdict.estimate.doubt
    assert not verdict.passed
    assert verdict.verdict == "unknown"
    assert "Let production vary the order of items, or name the parameters of a model that you know" in verdict.why
    assert "dcm)" not in verdict.why, "the advice leads to no model that nothing speaks for"
    known = prudent.gate(policy, log, min_lift=-0.9, estimator="dr(model=pbm(examination=[1, 0.6, 0.4]), clip=10)")
    assert known.passed
    mixture = prudent.gate_contexts(policy, log)
    assert mixture.verdict == "unknown"
    assert mixture.reasons == verdict.reasons
    with pytest.raises(LogError, match="There is no mixed policy"):
        mixture.policy  # noqa: B018


def test_a_named_model_is_tested_by_the_holdout(tmp_path: Path) -> None:
    """Users click by pbm. cm excludes the lists with two clicks, and dcm cannot be compared where items stay put."""
    random = np.random.default_rng(1)
    theta, p = random.beta(1, 2, (20, 3)), np.array([1.0, 0.6, 0.4])
    varied: list[tuple[str, list[str], list[int]]] = []
    fixed: list[tuple[str, list[str], list[int]]] = []
    for context in np.repeat(range(20), 100):
        for lists, order in ((varied, random.permutation(3)), (fixed, np.arange(3))):
            clicks = (random.random(3) < theta[context, order] * p).astype(int).tolist()
            lists.append((f"q{context}", [f"i{item}" for item in order], clicks))
    policy = policy_of({f"q{context}": ["i1", "i0", "i2"] for context in range(20)}, tmp_path / "policy.parquet")
    log = prudent.Log(table(varied))
    refuted = prudent.gate(policy, log, min_lift=-0.9, estimator="dm(model=cm)")
    assert refuted.verdict == "unknown"
    assert "The holdout refutes cm" in refuted.why
    assert prudent.gate(policy, log, min_lift=-0.9, estimator="dm(model=pbm)").passed
    untested = prudent.gate(policy, prudent.Log(table(fixed)), min_lift=-0.9, estimator="dm(model=dcm)")
    assert untested.verdict == "unknown"
    assert "The holdout cannot compare dcm with pbm. pbm is not identified" in untested.why


def test_parameters_of_the_training_log_serve_where_the_holdout_does_not_identify_them(tmp_path: Path) -> None:
    """The training log varied the order of items, the holdout does not; a comparison on it may still refute them."""
    random = np.random.default_rng(0)
    theta, p = random.beta(1, 2, (40, 3)), np.array([1.0, 0.6, 0.4])
    train: list[tuple[str, list[str], list[int]]] = []
    holdout: list[tuple[str, list[str], list[int]]] = []
    for context in np.repeat(range(40), 60):
        for lists, order in ((train, random.permutation(3)), (holdout, np.arange(3))):
            clicks = (random.random(3) < theta[context, order] * p).astype(int).tolist()
            lists.append((f"q{context}", [f"i{item}" for item in order], clicks))
    policy = prudent.rank(prudent.count(prudent.Log(table(train))), model="pbm")
    log = prudent.Log(table(holdout))
    verdict = prudent.gate(policy, log)
    assert verdict.estimate.why.startswith("The parameters of pbm are those of the policy's training log: here, pbm is")
    assert verdict.verdict == "pass"
    named = prudent.evaluate(policy, log, estimator=["dm(model=pbm)", "dm"])
    assert named["dm(model=pbm)"].value == named["dm"].value
    same = {str(context): [str(item) for item in items] for context, items in policy.items()}
    unknown = prudent.gate(policy_of(same, tmp_path / "policy.parquet"), log)
    assert unknown.verdict == "unknown", "other people's lists have no click model"


def test_what_is_acknowledged_is_kept() -> None:
    lists = [Logged("q", ("a", "b"), (i % 2, 0), (1.0, 1.0)) for i in range(80)]
    held, settings = arrays(lists, {"q": ("b", "a")}), gate_settings(-0.9, 0.95, "clicks")
    assert decide(held, parse("dm(model=dcm)"), settings, -0.99).verdict == "unknown"
    accepted = decide(held, parse("dm(model=dcm)"), settings, -0.99, acknowledge="click-model")
    assert accepted.verdict == "pass"
    assert accepted.reasons == ()
    (recorded,) = accepted.acknowledged
    assert recorded.startswith("click-model: The holdout cannot compare dcm with pbm.")
    assert recorded in str(accepted)
    assert recorded in accepted.to_json()["acknowledged"]
    with pytest.raises(UsageError, match="no refusal to acknowledge 'leakage'"):
        decide(held, parse("dm"), settings, 0.0, acknowledge=["leakage"])


# --- judges that are none ---------------------------------------------------------------------------------------------


def test_the_log_that_a_policy_learned_from_is_no_holdout(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    clicks = rng.integers(0, 2, (200, 2)).tolist()
    rows = [("q", ["a", "b"] if i % 2 else ["b", "a"], clicks[i]) for i in range(200)]
    pq.write_table(table(rows), tmp_path / "train.parquet")
    pq.write_table(table(rows[:150]), tmp_path / "holdout.parquet")
    train, policy = tmp_path / "train.parquet", tmp_path / "policy.parquet"
    assert run("rank", train, "-o", policy, "--model", "cm").code == 0
    with pytest.warns(PrudentWarning, match="the lists that the policy learned from"):
        prudent.evaluate(prudent.Policy.read(policy), prudent.Log(train), estimator="ips")
    gate = run("gate", policy, "--log", train, "--min-lift", "-0.9", "-e", "ips")
    assert gate.code == 1
    assert "These are the lists that the policy learned from. Use a holdout: prudent split." in gate.text
    renamed = run("gate", policy, "--log", tmp_path / "." / ".." / tmp_path.name / "train.parquet", "-e", "ips")
    assert "These are the lists that the policy learned from." in renamed.text
    both = run("gate", policy, "--log", train, "--log", tmp_path / "holdout.parquet", "--min-lift", "-0.9", "-e", "ips")
    assert both.code == 1
    assert "Among these are the lists that the policy learned from, in train.parquet. Use a holdout" in both.text
    assert run("gate", policy, "--log", tmp_path / "holdout.parquet", "--min-lift", "-0.9", "-e", "ips").code == 0
    pq.write_table(table(rows[:150]), train)
    assert run("gate", policy, "--log", train, "--min-lift", "-0.9", "-e", "ips").code == 0, (
        "the file is another one now"
    )
    train.unlink()
    assert run("gate", policy, "--log", tmp_path / "holdout.parquet", "--min-lift", "-0.9", "-e", "ips").code == 0


def test_manifests_tell_what_a_log_was_cut_from_and_counted_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    clicks = rng.integers(0, 2, (300, 2)).tolist()
    rows = [("q", ["a", "b"] if i % 2 else ["b", "a"], clicks[i]) for i in range(300)]
    pq.write_table(table(rows), "log.parquet")
    pq.write_table(table(rows[:250]), "other.parquet")
    for command in (
        "split log.parquet -o parts --holdout 0.5",
        "rank log.parquet -o all.parquet",
        "rank parts/train.parquet -o part.parquet",
        "count parts/train.parquet -o counts/ --day 2026-11-15",
        "rank counts -o days.parquet",
    ):
        assert run(*command.split()).code == 0

    def gate(policy: str, log: str) -> str:
        return run("gate", policy, "--log", log, "--min-lift", "-0.9", "-e", "ips").text

    assert "These lists were cut from log.parquet, all of which the policy learned from" in gate(
        "all.parquet", "parts/holdout.parquet"
    )
    of_them = "Among these are lists that the policy learned from: train.parquet was made of them"
    for policy in ("part.parquet", "days.parquet"):
        assert of_them in gate(policy, "log.parquet")
        assert gate(policy, "parts/holdout.parquet").startswith("pass")
        assert gate(policy, "other.parquet").startswith("pass")
    assert "Among these are lists that the policy learned from: counts.parquet was made of them" in gate(
        "days.parquet", "parts/train.parquet"
    )
    Path("log.parquet").unlink()
    Path("other.parquet").rename("log.parquet")
    assert gate("part.parquet", "log.parquet").startswith("pass"), "the file is another one now"
    for part, damaged in (("holdout", "no JSON"), ("train", "[1]")):
        rewrite_footer(Path(f"parts/{part}.parquet"), prudent_manifest=damaged)
    assert gate("all.parquet", "parts/holdout.parquet").startswith("pass"), "nobody knows"


def test_days_that_were_merged_still_name_their_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a policy was made before the merging, and names days that are gone, or after it."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for day in (1, 2, 3):
        clicks = rng.integers(0, 2, (100 + day, 2)).tolist()
        rows = [("q", ["a", "b"] if i % 2 else ["b", "a"], clicks[i]) for i in range(100 + day)]
        pq.write_table(table(rows), f"log{day}.parquet")
    for day in (1, 2):
        assert run("count", f"log{day}.parquet", "-o", "counts", "--day", f"2026-11-0{day}").code == 0
    assert run("rank", "counts", "-o", "before.parquet").code == 0
    assert run("compact", "counts", "--before", "2026-11-09").code == 0
    assert run("rank", "counts", "-o", "after.parquet").code == 0
    for policy in ("before.parquet", "after.parquet"):
        for day in (1, 2):
            said = run("gate", policy, "--log", f"log{day}.parquet", "--min-lift", "-0.9", "-e", "ips").text
            assert "Among these are lists that the policy learned from: counts.parquet was made of them" in said
        assert run("gate", policy, "--log", "log3.parquet", "--min-lift", "-0.9", "-e", "ips").code == 0


def test_a_log_that_is_split_anew_is_no_holdout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the old part had to learn from may be in the new one that is held out."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    clicks = rng.integers(0, 2, (300, 2)).tolist()
    pq.write_table(table([("q", ["a", "b"] if i % 2 else ["b", "a"], clicks[i]) for i in range(300)]), "log.parquet")
    judge = ("gate", "policy.parquet", "--log", "parts/holdout.parquet", "--min-lift", "-0.9", "-e", "ips")
    assert run("split", "log.parquet", "-o", "parts", "--holdout", "0.5").code == 0
    assert run("rank", "parts/train.parquet", "-o", "policy.parquet").code == 0
    assert run(*judge).code == 0
    assert run("split", "log.parquet", "-o", "parts", "--holdout", "0.4").code == 0
    again = run(*judge)
    assert again.code == 1
    assert "train.parquet was split off anew since the policy learned from it" in again.text
    assert run("rank", "parts/train.parquet", "-o", "policy.parquet").code == 0
    assert run(*judge).code == 0


def test_context_by_context_the_training_log_is_no_holdout_either(tmp_path: Path) -> None:
    rows = [("q", ["a", "b"] if i % 2 else ["b", "a"], [i % 2, 0]) for i in range(100)]
    pq.write_table(table(rows), tmp_path / "log.parquet")
    assert run("rank", tmp_path / "log.parquet", "-o", tmp_path / "policy.parquet", "--model", "cm").code == 0
    mix = ("gate-contexts", tmp_path / "policy.parquet", "--log", tmp_path / "log.parquet")
    said = run(*mix, "-o", tmp_path / "mixed.parquet")
    assert said.code == 1
    assert said.out.startswith("unknown")
    assert "the lists that the policy learned from. Use a holdout: prudent split." in said.text
    assert not (tmp_path / "mixed.parquet").exists()


@pytest.mark.parametrize(
    "places",
    [
        [("q", 1, "a"), ("q", 1, "a")],
        [("q", 1, "a"), ("q", 3, "b")],
        [("q", 1, "a"), ("q", 2, "a")],
    ],
    ids=["twice", "gap", "item twice"],
)
def test_what_is_no_policy(places: list[tuple[object, ...]], tmp_path: Path) -> None:
    policy = written([(*place, 0.1, 0.1, 0.1, 0.1, 1.0, 1.0, 2) for place in places], tmp_path / "policy.parquet")
    log = prudent.Log(table([("q", ["a", "b"], [1, 0])] * 9))
    with pytest.raises(PolicyError, match="no policy: 1 of its lists"):
        prudent.evaluate(policy, log)
    with pytest.raises(PolicyError, match="no policy: 1 of its lists"):
        prudent.export(policy, tmp_path / "lists.jsonl")


@pytest.mark.parametrize("least", [float("inf"), float("nan"), -1.0])
def test_no_lift_to_ask_for(least: float, tmp_path: Path) -> None:
    policy = policy_of({"q": ["a", "b"]}, tmp_path / "policy.parquet")
    with pytest.raises(UsageError, match="must be a number above -1"):
        prudent.gate(policy, prudent.Log(table([("q", ["a", "b"], [1, 0])] * 9)), min_lift=least)


def test_nothing_is_overwritten_by_its_own_result(tmp_path: Path) -> None:
    log, policy = tmp_path / "log.parquet", tmp_path / "policy.parquet"
    pq.write_table(table([("q", ["a", "b"], [1, 0])] * 9), log)
    read = policy_of({"q": ["a", "b"]}, policy)
    before = log.read_bytes(), policy.read_bytes()
    with pytest.raises(UsageError, match="is named twice"):
        prudent.split(log.rename(tmp_path / "train.parquet"), tmp_path)
    (tmp_path / "train.parquet").rename(log)
    with pytest.raises(UsageError, match="is named twice"):
        prudent.report(read, prudent.Log(log), to=log)
    with pytest.raises(UsageError, match="is named twice"):
        prudent.export(policy, policy, format="csv")
    assert (log.read_bytes(), policy.read_bytes()) == before
