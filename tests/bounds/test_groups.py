"""Signals of groups, by plain loops; that they find what is there, and nothing where nothing is."""

from dataclasses import replace
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prudent.base.arrays import BoolArray
from prudent.bounds import parse
from prudent.bounds.anchored import AnchoredPrior, fit_anchored_prior
from prudent.bounds.groups import UNIT, Effects, Grouping
from prudent.bounds.learn_effects import learn_effects
from prudent.click_models.evidence import Evidence
from prudent.counts.groups import NO_GROUP, Keys
from tests.bounds.small import evidence

NAMES = ("item", "brand")
ALONE = (True, False)


def logged(differ: float, *, contexts: int = 400, items: int = 300, seed: int = 1) -> tuple[Evidence, Keys]:
    """Ten items of each context; items and their brands differ by as much, in standard deviations of logit θ."""
    rng = np.random.default_rng(seed)
    brand = rng.integers(0, 30, items)
    effect = differ * (rng.standard_normal(items) + rng.standard_normal(30)[brand])
    item = np.concatenate([np.sort(rng.choice(items, 10, replace=False)) for _ in range(contexts)])
    context = np.repeat(np.arange(contexts), 10)
    shown = rng.integers(1, 30, context.size)
    theta = 1 / (1 + np.exp(1.5 - effect[item] - 0.5 * rng.standard_normal(context.size)))
    positive = rng.binomial(shown, theta)
    keys = Keys(NAMES, np.column_stack([item + 1, brand[item] + 1]), ALONE)
    return evidence(positive, shown - positive, context, shown), keys


def learned(some: Evidence, keys: Keys) -> tuple[AnchoredPrior, Effects]:
    prior = fit_anchored_prior(some)
    return prior, learn_effects(prior, [(some, keys)])


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_signals_equal_plain_loops(data: st.DataObject) -> None:
    """Clicks, examinations and expected clicks of the group in other contexts, each pair by its weight."""
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    pairs = sum(sizes)
    positive, negative = (
        np.array(data.draw(st.lists(st.sampled_from([0, 0, 1, 3]), min_size=pairs, max_size=pairs))) for _ in range(2)
    )
    group = np.array(data.draw(st.lists(st.integers(0, 3), min_size=pairs, max_size=pairs)))
    context = np.repeat(np.arange(len(sizes)), sizes)
    some = evidence(positive, negative, context)
    prior = AnchoredPrior(fit_anchored_prior(evidence([1, 2, 0, 3], [5, 2, 4, 3], [0, 0, 1, 1])).curve, opposed=False)
    alpha, beta, _ = prior.of(some)
    alpha, strength = (np.broadcast_to(one, (pairs,)) for one in (alpha, alpha + beta))
    keys = Keys(("brand",), group[:, None], (False,))
    effects = replace(learn_effects(prior, [(some, keys)]), groupings=(Grouping("brand", 0.2, 7.0),))
    found = effects.of(some, keys).values[:, 0]
    for row in range(pairs):
        clicks = examined = expected = 0.0
        for other in range(pairs):
            n = positive[other] + negative[other]
            if context[other] != context[row] and group[other] == group[row] != NO_GROUP and n:
                weight = (strength[other] + 1) / (strength[other] + n)
                clicks += weight * positive[other]
                examined += weight * n
                expected += weight * n * alpha[other] / strength[other]
        signal = 0.0
        if examined:
            odds = expected / (examined - expected) * np.exp(0.2)
            usual = odds / (1 + odds)
            mean = (clicks + 7 * usual) / (examined + 7)
            signal = log(mean / (1 - mean)) - log(usual / (1 - usual))
        assert found[row] == pytest.approx(signal, abs=1e-4), "sums are rounded to 2⁻²⁰"


def test_totals_do_not_depend_on_how_contexts_are_split() -> None:
    some, keys = logged(0.5)
    prior, whole = learned(some, keys)
    parts = [some.context < 130, (some.context >= 130) & (some.context < 131), some.context >= 131]
    shuffled = [(some.select(part), Keys(NAMES, keys.values[part], ALONE)) for part in (parts[2], parts[0], parts[1])]
    split = learn_effects(prior, shuffled)
    assert split.groupings == whole.groupings
    for one, other in zip(split.totals, whole.totals, strict=True):
        np.testing.assert_array_equal(one.smallest(one.groups).keys, other.smallest(one.groups + 1).keys)
        np.testing.assert_array_equal(one.smallest(one.groups).sums, other.smallest(one.groups).sums)
    part = parts[0]
    alone = whole.of(some.select(part), Keys(NAMES, keys.values[part], ALONE))
    np.testing.assert_array_equal(alone.values, whole.of(some, keys).values[part])


def test_no_pair_sees_the_clicks_of_its_own_context() -> None:
    """A brand that is a copy of the clicks of a context says nothing there, and each context has brands of its own."""
    some, _ = logged(0.0)
    leaking = (some.context * 2 + (some.positive > 0) + 1)[:, None]
    keys = Keys(("leak",), leaking, (False,))
    _, effects = learned(some, keys)
    assert not effects.of(some, keys).values.any()


@pytest.mark.parametrize("bound", ["anchored", "anchored(lead=clicks)"])
def test_groups_that_differ_are_found(bound: str) -> None:
    """Items whose logits differ by 0.5, and brands by as much: held to the attractions of other draws of the noise."""
    some, keys = logged(0.5)
    _, effects = learned(some, keys)
    scores = parse(bound).score(replace(some, signals=effects.of(some, keys)))
    terms = scores.fitted["by_group"]
    assert 0.5 < terms["item"]["slope"] < 1.3
    assert terms["item"]["wald"] > 100
    # The curve alone leaves them to the strength: 2.8 in place of about 8.
    assert scores.fitted["strength"] > 1.5 * parse("anchored").score(some).fitted["strength"]


@pytest.mark.parametrize("seed", range(8))
def test_groups_that_do_not_differ_change_nothing(seed: int) -> None:
    """Slopes above 0 are kept from two standard errors on: 2 % of groupings without a difference, and little of each.

    At this seed none of 16 is; where none is, scores are those without groups to the last bit.
    """
    some, keys = logged(0.0, contexts=200, seed=seed)
    _, effects = learned(some, keys)
    grouped = parse("anchored").score(replace(some, signals=effects.of(some, keys)))
    if any(term["slope"] for term in grouped.fitted["by_group"].values()):
        assert max(term["shrinkage"] for term in grouped.fitted["by_group"].values()) < 0.6
        return
    alone = parse("anchored").score(some)
    np.testing.assert_array_equal(grouped.lower, alone.lower)
    np.testing.assert_array_equal(grouped.mean, alone.mean)


def test_an_item_examined_often_in_one_context_says_little_about_its_brand() -> None:
    """Of 10,000 examinations of one pair about s count, as of 10,000 / s pairs with one each."""
    brand = np.ones(2, np.int64)
    some = evidence([5_000, 0], [5_000, 10], [0, 1])
    prior, effects = learned(some, Keys(("brand",), brand[:, None], (False,)))
    (total,) = effects.totals
    alpha, beta, _ = prior.of(some)
    strength = np.broadcast_to(alpha + beta, (2,))
    weights = (strength + 1) / (strength + some.examined)
    assert total.smallest(1).sums.examined[0] / UNIT == pytest.approx(float(np.sum(weights * some.examined)), rel=1e-5)


def test_only_items_that_groups_put_above_another_lead_and_not_where_clicks_alone_do() -> None:
    some, keys = logged(0.5)
    _, effects = learned(some, keys)
    signals = effects.of(some, keys)
    grouped = replace(some, signals=signals)
    clicked = some.positive > 0

    def leads(bound: str, of: Evidence) -> BoolArray:
        anchor = parse(bound).score(of).anchor
        assert anchor is not None
        return anchor.leads

    np.testing.assert_array_equal(leads("anchored(lead=clicks)", grouped), clicked)
    np.testing.assert_array_equal(leads("anchored", some), clicked)
    terms = parse("anchored").score(grouped).fitted["by_group"]
    shift = sum(terms[name]["slope"] * signal for name, signal in zip(NAMES, signals.values.T, strict=True))
    above = shift > np.repeat(np.min(shift.reshape(-1, 10), axis=1), 10)
    assert 0.8 < above.mean() < 1
    np.testing.assert_array_equal(leads("anchored", grouped), clicked | above)
