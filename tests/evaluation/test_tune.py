"""Tuning: errors against plain loops and brute force, the curve against one that knows the truth, and what is said."""

import json
import re
from collections.abc import Sequence
from itertools import permutations
from math import isclose, prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import prudent
from prudent.base.errors import LogError, UsageError
from prudent.bounds import DEFAULT_BOUND, bounds
from prudent.bounds.anchored import fit_anchored_prior
from prudent.bounds.bayes import BetaPosterior, posterior
from prudent.click_models import click_models
from prudent.click_models.simulate import write_log
from prudent.click_models.world import World, draw, make_world, nameless_world, pairs_of
from prudent.counts.lists import ListBatch as Arrays
from prudent.evaluation.tune import read_arms, tune
from prudent.evaluation.tuning import Confirmation, Setting, Tuning, decide
from prudent.evaluation.tuning_simulation import Arm, Past, confirm
from tests import strategies
from tests.command import run
from tests.fitted import position_parameter
from tests.reference import LoggedList, Name, Pair

# --- plain loops --------------------------------------------------------------------------------------------------


def list_value(kind: str, theta: Sequence[float], weight: Sequence[float]) -> float:
    if kind == "pbm":
        return sum(p * t for p, t in zip(weight, theta, strict=False))
    return 1 - prod(1 - w * t for w, t in zip(weight, theta, strict=False))


def clicks_of(
    kind: str, theta: Sequence[float], parameter: Sequence[float], uniform: Sequence[float]
) -> tuple[int, ...]:
    clicks, reading = [], True
    for attraction, p, u in zip(theta, parameter, uniform, strict=False):
        if kind == "pbm":
            clicks.append(int(u < p * attraction))
            continue
        clicks.append(int(reading and u < attraction))
        reading = reading and not (clicks[-1] and u >= p * attraction)
    return tuple(clicks)


def past_of(lists: list[LoggedList], model: str) -> Past:
    shown = strategies.as_batch(lists)
    return Past.of(shown, click_models.parse(model).fit(shown.cells, shown.length))


@settings(max_examples=8, deadline=None)
@given(strategies.linked_logs(), st.sampled_from(["cm", "dcm", "pbm"]), st.integers(0, 99))
def test_errors_equal_plain_loops(lists: list[LoggedList], kind: str, seed: int) -> None:
    """θ and u are the same random numbers; clicks, lists, best lists and values are found in another way."""
    past = past_of(lists, kind)
    arms = [Arm(bounds.parse("bayes"), (0.1, 0.6)), Arm(bounds.parse("mle"), (None,))]
    actual = past.regrets(arms, np.random.default_rng(seed))
    random = np.random.default_rng(seed)
    pairs = sorted({(context, item) for context, items, _ in lists for item in items})
    theta = dict(zip(pairs, past.attraction.sample(random).tolist(), strict=True))
    parameter = position_parameter(past.fitted).tolist()
    weight = parameter if kind == "pbm" else [1 - p for p in parameter]
    drawn: list[LoggedList] = []
    for (context, items, _), u in zip(lists, random.random((len(lists), past.lists.length)).tolist(), strict=True):
        clicks = clicks_of(kind, [theta[context, item] for item in items], parameter, u)
        drawn.append((context, items, clicks))
    assume(any(any(clicks) for _, _, clicks in drawn))

    def worth(context: Name, items: Sequence[Name]) -> float:
        return list_value(kind, [theta[context, item] for item in items], weight)

    def best(context: Name) -> float:
        eligible = [item for c, item in pairs if c == context]
        return max(worth(context, order) for order in permutations(eligible, min(len(eligible), len(weight))))

    contexts = [context for context, _, _ in drawn]
    counts = strategies.count(drawn)
    expected = []
    for bound in ("bayes(delta=0.1)", "bayes(delta=0.6)", "mle"):
        policy = prudent.rank(counts, kind, bound=bound)
        listed = {context: policy[context] for context in set(contexts)}
        expected.append(sum(best(c) - worth(c, listed[c]) for c in contexts) / len(contexts))
    expected.append(sum(best(c) - worth(c, items) for c, items, _ in drawn) / len(drawn))
    np.testing.assert_allclose(actual, expected, atol=1e-9)


@pytest.mark.filterwarnings("ignore:The log contradicts")
@settings(max_examples=10, deadline=None)
@given(strategies.linked_logs(), st.sampled_from(["cm", "dcm", "pbm"]))
def test_confirmation_equals_plain_loops(lists: list[LoggedList], kind: str) -> None:
    assume(any(any(clicks) for _, _, clicks in lists))
    past = past_of(lists, kind)
    evidence = past.fitted.evidence(past.lists.cells)  # of itself: any other would do
    contexts = sorted({context for context, _, _ in lists})
    later = np.arange(1.0, len(contexts) + 1)
    both = [bounds.parse("mle"), bounds.parse("bayes(delta=0.1)")]
    actual = confirm(past, evidence, later, "mle", both)
    pairs = sorted({(context, item) for context, items, _ in lists for item in items})
    policies = []
    for bound in both:
        policy = prudent.rank(strategies.count(lists), kind, bound=bound)
        policies.append({context: policy[context] for context in contexts})
    parameter = position_parameter(past.fitted).tolist()
    weight = parameter if kind == "pbm" else [1 - p for p in parameter]
    prior = fit_anchored_prior(evidence).of(evidence)
    random = np.random.default_rng(0)
    drawn = []
    for _ in range(200):
        at = posterior(evidence, prior).sample(random).tolist()
        theta: dict[Pair, float] = dict(zip(pairs, at, strict=True))
        drawn.append(
            [
                sum(
                    n * list_value(kind, [theta[c, item] for item in policy[c]], weight)
                    for c, n in zip(contexts, later, strict=True)
                )
                / sum(later)
                for policy in policies
            ]
        )
    values = np.array(drawn)
    assert actual.value == pytest.approx(values[:, 0].mean())
    assert actual.default_value == pytest.approx(values[:, 1].mean())
    assert actual.difference == pytest.approx((values[:, 0] - values[:, 1]).mean(), abs=1e-12)
    assert actual.difference_se == pytest.approx((values[:, 0] - values[:, 1]).std(ddof=1), abs=1e-12)
    assert actual.lists == later.sum()


# --- does the curve tell the truth? -------------------------------------------------------------------------------


def shop(seed: int, kind: str = "pbm", quality: float = 1.0) -> tuple[World, Arrays]:
    """5,000 lists of 50 contexts, and what is true of the items that they show."""
    world = make_world(kind, contexts=50, length=5, quality=quality, seed=seed)
    drawn = list(draw(world, 5_000, seed + 1))
    items, clicks = (np.concatenate([getattr(chunk, name) for chunk in drawn]) for name in ("items", "clicks"))
    lists = Arrays(pairs_of(world), items, clicks.astype(bool), np.ones(len(items), np.int64))
    seen = lists.impressions > 0
    kept = lists.made_of(seen)
    attraction = world.attraction[seen]
    return nameless_world(np.bincount(kept.context), attraction, attraction, world.users), kept


@pytest.mark.parametrize(("kind", "quality"), [("pbm", 1.0), ("dcm", 1.0), ("dcm", -1.0)])
def test_curve_is_near_the_one_that_knows_the_truth(kind: str, quality: float) -> None:
    """Errors of logs from known worlds, and of logs drawn from what was fitted to some of them.

    Over 4 worlds × 3 draws against 10 worlds the errors of the default have standard errors of about 5 % each, and its
    ratios to others of about 5 %; posterior means in place of draws would be off by 20 to 60 % here.
    """
    model, default = click_models.parse(kind), bounds.parse(DEFAULT_BOUND)
    arms = [Arm(default, (None,)), Arm(bounds.parse("mle"), (None,)), Arm(bounds.parse("eb"), (0.05, 1.0))]
    true, tuned = [], []
    for seed in range(10):
        world, lists = shop(100 * seed, kind, quality)
        past = Past.of(lists, model.fit(lists.cells, lists.length))
        # The same errors with the true attraction in place of a draw from the posterior.
        known = BetaPosterior(1e9 * world.attraction, 1e9 * (1 - world.attraction), tabulated=False)
        certain = Past(past.lists, past.fitted, known)
        true.append(certain.regrets(arms, np.random.default_rng(seed)))
        if seed < 4:
            tuned += [past.regrets(arms, np.random.default_rng([seed, r])) for r in range(3)]
    real, actual = np.mean(true, axis=0), np.mean(tuned, axis=0)
    assert actual[0] == pytest.approx(real[0], rel=0.3)
    np.testing.assert_allclose(actual[1:-1] / actual[0], real[1:-1] / real[0], rtol=0.25)
    assert actual[-1] == pytest.approx(real[-1], rel=0.15)  # of the logged lists


# --- what is made of it -------------------------------------------------------------------------------------------


def setting(bound: str, error: float, difference_se: float = 0.001) -> Setting:
    return Setting(bound, error, 0.01, error / 0.1, error - 0.1, 0.0 if bound == DEFAULT_BOUND else difference_se)


def later(difference: float) -> Confirmation:
    return Confirmation("mle", 1 + difference, 1.0, difference, 0.01, 500)


BASE = setting(DEFAULT_BOUND, 0.1)


@pytest.mark.parametrize(
    ("others", "confirmation", "choice", "matters", "said"),
    [
        ([setting("mle", 0.2)], None, DEFAULT_BOUND, True, "lower regret. The choice matters: mle has 2.00"),
        ([setting("mle", 0.08)], later(0.1), "mle", True, "Use mle: it has 0.80 of the regret of"),
        ([setting("mle", 0.08)], later(0.1), "mle", True, "the holdout confirms it"),
        ([setting("mle", 0.08)], later(0.01), "mle", True, "the holdout does not contradict it"),
        ([setting("mle", 0.08)], later(-0.1), DEFAULT_BOUND, True, "but the holdout contradicts that"),
        ([setting("mle", 0.08, 0.05)], later(0.1), DEFAULT_BOUND, False, "no other setting is significantly better"),
        ([setting("mle", 0.08, 0.05)], later(0.1), DEFAULT_BOUND, False, "within 0.4 standard errors of the default"),
        ([setting("mle", 0.097)], later(0.1), DEFAULT_BOUND, False, "saves less than 5% of its regret"),
        ([setting("mle", 0.097)], later(0.1), DEFAULT_BOUND, False, "no setting differs by 10%"),
        ([], None, DEFAULT_BOUND, False, "hardly matters"),
    ],
)  # fmt: skip
def test_choice(
    others: list[Setting], confirmation: Confirmation | None, choice: str, matters: bool, said: str
) -> None:
    """The default stays, unless another is better by two standard errors and by 5 %, and later lists let it be."""
    ordered = tuple(sorted([BASE, *others], key=lambda one: one.regret))
    assert decide(ordered, confirmation, sure=2.0) == (choice, matters)
    told = Tuning(ordered, choice, matters, confirmation, 0.5, "pbm", "clicks", 20, 2.0)
    assert said in told.verdict


def test_settings_to_try() -> None:
    names = [
        name
        for arm in read_arms(["eb", "eb(delta=0.3)", "mle", "eb(delta=0.1)"], [0.1, 0.5, 0.1])
        for name in arm.names
    ]
    assert names == ["eb(delta=0.1)", "eb(delta=0.5)", "eb(delta=0.3)", "mle", DEFAULT_BOUND]
    assert [name for arm in read_arms(["anchored"], [0.5]) for name in arm.names] == [DEFAULT_BOUND]
    assert [name for arm in read_arms([bounds.parse("hoeffding(delta=0.9)")], [0.5]) for name in arm.names] == [
        "hoeffding(delta=0.9)",
        DEFAULT_BOUND,
    ]


# --- on logs ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("logs") / "log.parquet"
    return write_log(make_world("pbm", contexts=30, items=(10, 20), length=4, seed=3), 4_000, path)


@pytest.fixture(scope="module")
def tuned(log: Path) -> Tuning:
    return tune(prudent.Log(str(log)), repetitions=6)


def test_default_is_what_rank_takes(tuned: Tuning) -> None:
    counts = strategies.count([("q", ("a", "b"), (1, 0))] * 3)
    assert prudent.rank(counts, "cm").manifest.settings["bound"] == DEFAULT_BOUND
    assert tuned.default.ratio == 1
    assert (tuned.default.difference, tuned.default.difference_se) == (0, 0)


def test_pessimism_matters_on_production_lists(tuned: Tuning) -> None:
    """What production shows more is better there: the MLE trusts rare items too much."""
    assert tuned.model == "pbm"
    assert tuned.matters
    mle = next(setting for setting in tuned.settings if setting.bound == "mle")
    assert mle.ratio is not None
    assert mle.ratio > 1.2
    assert mle.differs(tuned.sure)
    assert tuned.logged_regret > mle.regret
    assert [one.regret for one in tuned.settings] == sorted(one.regret for one in tuned.settings)
    assert isclose(mle.difference, mle.regret - tuned.default.regret)
    assert (tuned.confirmation is None) == (tuned.best.bound == DEFAULT_BOUND)


def test_order_of_rows_and_threads_do_not_matter(log: Path) -> None:
    import pyarrow.parquet as pq

    table = pq.read_table(log)
    shuffled = table.take(np.random.default_rng(5).permutation(len(table)))
    few = {"bound": ["exposure", "mle"], "delta": [0.2, 0.9], "repetitions": 2}
    one, other = (
        tune(prudent.Log(of), engine=prudent.DuckDB(threads=threads), **few).to_json()  # type: ignore[arg-type]
        for of, threads in ((table, 1), (shuffled, 2))
    )
    assert json.dumps(one) == json.dumps(other)


def test_edges() -> None:
    """One context, one position, lists of different lengths; later contexts that the past does not know."""
    few = {"bound": ["mle", "bayes"], "delta": [0.1], "repetitions": 2, "model": "dcm"}
    single: list[LoggedList] = [("q", ("a",), (1,)), ("q", ("b",), (0,)), ("q", ("c",), (1,))] * 20
    assert len(tune(prudent.Log(strategies.table(single)), **few).settings) == 3  # type: ignore[arg-type]
    uneven: list[LoggedList] = [("q", ("a", "b", "c"), (1, 0, 1)), ("p", ("b",), (0,)), ("p", (" ",), (1,))] * 20
    actual = tune(prudent.Log(strategies.table(uneven)), **few)  # type: ignore[arg-type]
    assert actual.manifest.results["contexts"] == 2
    elsewhere = prudent.Log(strategies.table([("z", ("a",), (1,))] * 5))
    actual = tune(prudent.Log(strategies.table(uneven)), elsewhere, **few)  # type: ignore[arg-type]
    assert actual.confirmation is None
    assert actual.choice == DEFAULT_BOUND
    cut = tune(prudent.Log(strategies.table(uneven)), length=2, **few)  # type: ignore[arg-type]
    assert cut.manifest.settings["length"] == 2


def test_auto_model_falls_back_on_its_rule() -> None:
    fixed: list[LoggedList] = [("q", ("a", "b"), (1, 1)), ("q", ("a", "b"), (0, 1)), ("q", ("a", "b"), (1, 0))] * 30
    with pytest.warns(prudent.PrudentWarning, match="not identified"):
        assert tune(prudent.Log(strategies.table(fixed)), bound=["mle"], repetitions=2).model == "dcm"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"bound": ["bays"]}, "Did you mean 'bayes'"),
        ({"delta": [0.0]}, "delta is 0"),
        ({"delta": []}, "needs a δ"),
        ({"model": "pbn"}, "Did you mean 'pbm'"),
        ({"repetitions": 1}, "repetitions is 1"),
        ({"holdout": 1.5}, "holdout is 1.5"),
    ],
)
def test_wrong_settings(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        tune(prudent.Log("nowhere.parquet"), **wrong)  # type: ignore[arg-type]


def test_nothing_to_learn_from() -> None:
    with pytest.raises(LogError, match="no click"):
        tune(prudent.Log(strategies.table([("q", ("a",), (0,))] * 9)))
    with pytest.raises(UsageError, match="do not keep whole lists"):
        tune(strategies.count([("q", ("a",), (1,))]))


def test_table_and_chart(tuned: Tuning) -> None:
    assert tuned.verdict in str(tuned)
    page = tuned._repr_html_()
    assert page.count("<tr>") == 21  # a heading and the first 20
    assert "the default" in page
    drawn = json.dumps(tuned.chart().to_dict())
    assert "hoeffding" in drawn
    assert "Error by bound" in drawn


def test_command(log: Path, tmp_path: Path) -> None:
    few = ["--repetitions", 2, "--bound", "eb", "--bound", "mle", "--delta", 0.1, "--delta", 0.5]
    ran = run("tune", log, "-o", tmp_path / "curve.svg", *few)
    assert (ran.code, ran.err) == (0, "")
    assert "eb(delta=0.1)" in ran.text
    assert DEFAULT_BOUND in ran.text
    assert (tmp_path / "curve.svg").read_text(encoding="utf-8").startswith("<svg")
    assert ran.out.splitlines()[-1].startswith(f"Next: prudent rank {log} -o policy.parquet")
    ran = run("tune", log, "--test", log, "--json", *few)
    assert f"{log.name} is both fitted and scored" in ran.text
    actual = json.loads(ran.out)
    assert set(actual) == {
        "choice", "default", "matters", "verdict", "model", "unit", "repetitions", "logged_regret", "settings",
        "confirmation", "manifest",
    }  # fmt: skip
    assert set(actual["settings"][0]) == {"bound", "regret", "se", "ratio", "difference", "difference_se"}
    assert len(actual["settings"]) == 4
    assert actual["manifest"]["results"]["train_lists"] == 4_000


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"bound": []}, "Name a bound to try. Known: anchored, anytime"),
        ({"bound": [], "delta": []}, "Name a bound to try"),
        ({"bound": [3]}, "3 is not a bound. Known: anchored, anytime"),
        ({"model": 3}, "3 is not a click model. Known: auto, ccm"),
        ({"holdout": "a"}, "holdout is 'a'; it is a share"),
    ],
)
def test_nothing_to_try(log: Path, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        prudent.tune(prudent.Log(log), **settings)


def test_one_bound_is_as_good_as_a_list_of_one() -> None:
    assert read_arms("eb", 0.1) == read_arms(["eb"], [0.1])


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--bound", "bays"], 2, "Did you mean 'bayes'"),
        (["--delta", "2"], 2, "delta is 2"),
        (["--model", "pbn"], 2, "Did you mean 'pbm'"),
        (["-o", "curve.pdf"], 2, ".svg or .png"),
        (["--context", "query"], 3, "no column 'query'"),
    ],
)
def test_command_says_what_is_wrong(log: Path, options: list[str], code: int, said: str) -> None:
    ran = run("tune", log, *options)
    assert ran.code == code
    assert said in ran.text
