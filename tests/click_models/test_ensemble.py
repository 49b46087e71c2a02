"""Ensembles: bootstrapped fits, and what their disagreement takes from the evidence."""

import warnings
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from prudent.base.errors import UsageError
from prudent.bounds import bounds
from prudent.click_models import ClickModel, click_models
from prudent.click_models.base import FittedModel
from prudent.click_models.ensemble import Ensemble, FittedEnsemble
from prudent.click_models.examination import MIN_IMPRESSIONS, bootstrap_em, fit_em, per_position
from prudent.click_models.selection import candidates, names
from prudent.click_models.world import World, clicked, draw, make_world
from prudent.counts.lists import ListBatch
from tests.plugins.toy_model import Distracted

LENGTH = 4


def simulate(users: ClickModel, lists: int, seed: int = 0, **settings: object) -> tuple[World, ListBatch]:
    made = {"contexts": 30, "items": (6, 10), "length": LENGTH, "seed": seed} | settings
    world = replace(make_world("cm", **made), users=users.typical(made["length"]))  # type: ignore[arg-type]
    items = np.concatenate([chunk.items for chunk in draw(world, lists, seed=seed + 1)])
    return world, clicked(world, items, np.random.default_rng(seed))


def fit(model: ClickModel, lists: ListBatch, replicates: int = 20) -> FittedEnsemble:
    return Ensemble(model, replicates).fit(lists.cells, lists.length, lists)


# --- members ----------------------------------------------------------------------------------------------------------


def test_a_step_from_the_full_fit_is_close_to_a_fit_to_the_same_bootstrapped_log() -> None:
    """Against `fit_em` on the very counts that were drawn: within a third of a standard error on average."""
    _, lists = simulate(click_models.parse("pbm"), 20_000)
    pair, position, shown, clicks = per_position(lists.cells)
    often = (np.bincount(pair, shown) >= MIN_IMPRESSIONS)[pair]  # the others are left out of both
    pair, position, shown, clicks = pair[often], position[often], shown[often], clicks[often]
    examination, covariance = fit_em(pair, position, shown, clicks, LENGTH, 0.01)
    stepped = list(
        bootstrap_em(pair, position, shown, clicks, 0.01, examination, replicates=20, random=np.random.default_rng(3))
    )
    random = np.random.default_rng(3)
    apart = []
    for member in stepped:
        hits, misses = random.poisson(clicks), random.poisson(shown - clicks)
        anew, _ = fit_em(pair, position, (hits + misses).astype(float), hits.astype(float), LENGTH, 0.01)
        apart.append(np.log(member / member[0]) - np.log(anew / anew[0]))
    error = np.sqrt(covariance.diagonal()[1:])
    assert np.sqrt(np.mean(np.array(apart)[:, 1:] ** 2, axis=0) / error**2).max() < 1 / 3
    assert np.log(stepped)[:, 1:].std(axis=0) == pytest.approx(error, rel=0.6), "20 members: ± 16 %, and fits differ"


@pytest.mark.parametrize("name", ["pbm", "ubm"])
def test_members_vary_as_much_as_the_information_says(name: str) -> None:
    """Of 400 members, the variance of log Σx against that from the covariance: ± 14 % at two standard errors."""
    _, lists = simulate(click_models.parse(name), 40_000)
    fitted = click_models.parse(name).fit(lists.cells, LENGTH)
    members = fitted.bootstrap(lists.cells, None, 400, np.random.default_rng(5)).members
    among = np.log([member.estimate(lists.cells) for member in members]).var(axis=0, ddof=1)
    spread = fitted.evidence(lists.cells).spread
    assert spread is not None
    assert among[spread > 0].sum() / spread[spread > 0].sum() == pytest.approx(1, abs=0.2)


@pytest.mark.parametrize("model", [*candidates(), Distracted()], ids=str)
def test_members_are_fits_of_the_model_around_the_full_fit(model: ClickModel) -> None:
    """Not quite around it: items differ more in a bootstrapped log, and so does the satisfaction that `dbn` fits."""
    _, lists = simulate(model, 8_000)
    ensemble = fit(model, lists)
    own = ensemble.fitted.parameters
    assert len(ensemble.members) == (20 if own else 0)
    for name, values in own.items():
        every = np.array([member.parameters[name] for member in ensemble.members])
        error = every.std(axis=0, ddof=1)
        assert (np.abs(every.mean(axis=0) - values) <= 5 * error / 20**0.5 + 0.15).all(), name
        assert error.any(), name


@pytest.mark.parametrize("differ", [False, True])
def test_members_are_asked_for_what_the_full_fit_ranks_by(differ: bool) -> None:
    """Where items satisfy alike by some fits to a log and not by others, attraction is not compared with the product.

    Else V would be above (log ½)², and 100 clicks would count for two.
    """
    _, lists = simulate(click_models.parse("dbn"), 8_000)
    alike, apart = (click_models.parse(f"dbn(perseverance=0.9, satisfaction=[0.5, {one}])") for one in (0, 0.01))
    full, member = (one.fit(lists.cells, LENGTH) for one in ((apart, alike) if differ else (alike, apart)))
    assert (full.evidence(lists.cells).satisfying is not None) == differ
    assert np.abs(np.log(member.estimate(lists.cells) / full.estimate(lists.cells))).max() > 0.4
    same = member.ranking_like(full)
    assert same.pinned.satisfaction[0] == 0.5  # type: ignore[attr-defined]
    np.testing.assert_allclose(same.estimate(lists.cells), full.estimate(lists.cells), rtol=0.2)
    assert full.ranking_like(full) is full


@pytest.mark.parametrize("seed", range(2))
def test_a_few_members_in_which_satisfaction_differs_take_no_evidence(seed: int) -> None:
    """Users whose clicks satisfy alike: γ and s are known to 1 and 4 %, and so is what they say about items."""
    _, lists = simulate(click_models.parse("dbn"), 20_000, seed)
    ensemble = fit(click_models.parse("dbn"), lists)
    assert ensemble.fitted.evidence(lists.cells).satisfying is None
    assert ensemble.variance(lists.cells, ensemble.fitted.estimate(lists.cells)).max() < 0.1**2


def test_an_estimate_is_that_of_the_evidence() -> None:
    """Models that compute it without their evidence agree with it."""
    for model in [*candidates(), Distracted()]:
        _, lists = simulate(model, 4_000)
        fitted = model.fit(lists.cells, LENGTH, lists)
        np.testing.assert_allclose(fitted.estimate(lists.cells), FittedModel.estimate(fitted, lists.cells), rtol=1e-12)


# --- evidence ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [*candidates(), Distracted()], ids=str)
def test_evidence_counts_for_less_where_members_disagree(model: ClickModel) -> None:
    """The formula of the documentation, pair by pair."""
    _, lists = simulate(model, 8_000)
    ensemble = fit(model, lists)
    own, less = ensemble.fitted.evidence(lists.cells).ranked, ensemble.evidence(lists.cells).ranked
    of_members = [one.evidence(lists.cells).ranked for one in (*(ensemble.moved or ensemble.members), ensemble.fitted)]
    for row in range(len(own.context)):
        *logs, start = (np.log((e.positive[row] + 0.5) / (e.expected[row] + 1)) for e in of_members)
        if ensemble.moved:
            variance = float(sum((log - start) ** 2 for log in logs))
        else:
            variance = float(np.var(logs, ddof=1)) * ensemble.size if logs else 0.0
        trials = own.examined[row] if own.tries is None else own.tries[row]
        rate = min((own.positive[row] + 0.5) / (trials + 1), 1 - 0.5 / (trials + 1))
        weight = 1 / (1 + (own.positive[row] + 0.5) / (1 - rate) * variance)
        for name in ("positive", "negative", "expected", "squares"):
            assert getattr(less, name)[row] == pytest.approx(weight * getattr(own, name)[row], rel=1e-9)
        if own.skips is not None and less.skips is not None:
            mine = own.skips.pair == row
            np.testing.assert_allclose(less.skips.n[mine], weight * own.skips.n[mine], rtol=1e-9)
    assert (less.impressions == own.impressions).all()
    assert less.spread is None or not ensemble.members, "the same errors are not added twice"


@pytest.mark.parametrize(
    ("name", "lists"),
    [("pbm", 20_000), ("dcm", 20_000), ("ccm", 60_000)],
    ids=["pbm", "dcm", "ccm, in bootstrapped logs of a quarter of the size"],
)
def test_evidence_along_axes_varies_as_among_members(name: str, lists: int) -> None:
    """Members read one by one, pair by pair: nearly the same where fewer readings along their axes replace them."""
    _, log = simulate(click_models.parse(name), lists)
    ensemble = fit(click_models.parse(name), log)
    assert 0 < len(ensemble.moved) < len(ensemble.members)
    estimate = ensemble.fitted.estimate(log.cells)
    axes = ensemble.variance(log.cells, estimate)
    members = replace(ensemble, moved=()).variance(log.cells, estimate)
    often = members > 0.1 * members.max()
    assert axes[often].sum() / members[often].sum() == pytest.approx(1, abs=0.15)
    assert np.corrcoef(axes[often], members[often])[0, 1] > 0.9


def test_cheaper_bootstrapped_logs_give_the_same_variance() -> None:
    """Of λ in 400 members each, ± 20 % at two standard errors: against fits to bootstrapped logs of full size.

    Logs of a quarter of the size have four times the variance; bootstrapped sums of pairs have the same.
    """
    _, log = simulate(click_models.parse("dcm"), 60_000)
    fitted = click_models.parse("dcm").fit(log.cells, LENGTH)
    random = np.random.default_rng(2)
    whole = [fitted.model.fit(log.cells.bootstrapped(random), LENGTH).parameters["continuation"] for _ in range(400)]
    for bootstrap, size in ((FittedModel.bootstrap, 0.25), (type(fitted).bootstrap, 1.0)):
        drawn = bootstrap(fitted, log.cells, None, 400, np.random.default_rng(1))
        assert drawn.size == size
        among = np.var([one.parameters["continuation"] for one in drawn.members], axis=0)
        np.testing.assert_allclose(among * size / np.var(whole, axis=0), 1, atol=0.35)


def test_a_part_of_the_contexts_has_the_same_evidence() -> None:
    """Bit for bit: contexts are ranked part by part, and on Spark."""
    _, lists = simulate(click_models.parse("ubm"), 8_000)
    ensemble = fit(click_models.parse("ubm"), lists)
    whole = ensemble.evidence(lists.cells)
    some = np.arange(lists.cells.contexts) % 3 == 1
    part = ensemble.evidence(lists.cells.only(some))
    kept = some[lists.cells.context]
    for name in ("positive", "negative", "expected", "squares", "impressions"):
        assert (getattr(part, name) == getattr(whole, name)[kept]).all()


def test_the_same_log_gives_the_same_members() -> None:
    _, lists = simulate(click_models.parse("dcm"), 4_000)
    first, second = (fit(click_models.parse("dcm"), lists) for _ in range(2))
    for one, two in zip(first.members, second.members, strict=True):
        assert (one.parameters["continuation"] == two.parameters["continuation"]).all()


def test_without_fitted_parameters_an_ensemble_is_the_model() -> None:
    for name in ("cm", "pbm(examination=[1, 0.6, 0.4, 0.3])"):
        model = click_models.parse(name)
        _, lists = simulate(model, 2_000)
        ensemble = fit(model, lists)
        assert not ensemble.members
        assert (ensemble.evidence(lists.cells).negative == ensemble.fitted.evidence(lists.cells).negative).all()


# --- coverage ---------------------------------------------------------------------------------------------------------


def above(model: ClickModel, known: bool, seed: int) -> float:
    """Share of 5 % quantiles above the truth where few contexts with many lists say little about parameters."""
    settings = {"contexts": 3, "items": (8, 8), "length": 6, "exploration": 0.4, "attraction": (3, 5)}
    world, lists = simulate(model, 40_000, seed, **settings)
    fitted = model.fit(lists.cells, lists.length, lists) if known else fit(model, lists)
    evidence = replace(fitted.evidence(lists.cells), spread=None)
    often = evidence.impressions >= 100
    return float(np.mean(bounds.parse("exposure(delta=0.1)").score(evidence).lower[often] > world.attraction[often]))


@pytest.mark.slow
@pytest.mark.parametrize("model", [click_models.parse("pbm"), click_models.parse("ubm")], ids=str)
def test_bounds_hold_more_often_than_with_parameters_taken_as_known(model: ClickModel) -> None:
    """30 logs of 24 pairs: the mean share has a standard error of 1 to 2 %, and the difference one of .5 %."""
    known, ensemble = (np.array([above(model, one, seed) for seed in range(30)]) for one in (True, False))
    assert known.mean() > 0.075
    assert ensemble.mean() < min(0.11, known.mean() - 0.015)


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_coverage_on_its_own_logs(name: str) -> None:
    """The 5 % quantile is above the truth for 3 to 8 % of some 640 pairs with 100 impressions: one standard error is
    .9 %, so 2 to 8.5 %."""
    model = click_models.parse(name)
    world, lists = simulate(model, 100_000, contexts=300, items=(15, 30), seed=1)
    evidence = fit(model, lists).evidence(lists.cells).ranked
    often = evidence.impressions >= 100
    share = np.mean(bounds.parse("exposure(delta=0.1)").score(evidence).lower[often] > world.attraction[often])
    assert 0.02 <= share <= 0.085


# --- spelling ---------------------------------------------------------------------------------------------------------


def test_a_model_in_a_model() -> None:
    model = click_models.parse("ensemble(model=dcm(tail=truncate), replicates=50)")
    assert str(model) == "ensemble(model=dcm(tail=truncate), replicates=50)"
    assert (model.unit, model.reward) == ("probability of a satisfied click", "satisfied")
    assert click_models.parse("ensemble") == Ensemble()


@pytest.mark.parametrize("text", ["ensemble(model=auto)", "ensemble(model=ensemble)"])
def test_refuses_what_is_not_fitted_by_itself(text: str) -> None:
    with pytest.raises(UsageError, match="ensemble takes a click model that is fitted to a log"):
        click_models.parse(text)


@pytest.mark.parametrize("replicates", ["1", "0", "2.5", "many", "5000"])
def test_refuses_too_few_and_too_many_replicates(replicates: str) -> None:
    with pytest.raises(UsageError, match="replicates is"):
        click_models.parse(f"ensemble(replicates={replicates})")


def test_auto_does_not_try_ensembles() -> None:
    assert "ensemble" not in names()


def test_its_users_are_those_of_the_model() -> None:
    assert type(Ensemble().typical(3)) is type(click_models.parse("pbm").typical(3))


def test_warnings_of_the_full_fit_are_heard_once() -> None:
    _, lists = simulate(click_models.parse("pbm"), 4_000)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        list(islice(iter(fit(click_models.parse("dcm"), lists).members), 1))
    assert len(heard) == len({str(one.message) for one in heard})
