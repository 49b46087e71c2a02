"""dbn, sdbn and ccm, whose users may stop below the last click, against plain loops over where they stopped."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from prudent.base.arrays import FloatArray
from prudent.base.errors import NotIdentifiedError, UsageError
from prudent.bounds import Bayes
from prudent.click_models import chain_fit, click_models, dynamic_fit, tails
from prudent.click_models.base import FittedModel
from prudent.click_models.click_chain import FittedClickChain
from prudent.click_models.dynamic_bayesian import FittedDynamicBayesian
from prudent.click_models.reading import Onward, click_from_top
from prudent.click_models.whole_lists import FEWEST, WholeLists
from prudent.click_models.world import draw as draw_lists
from prudent.click_models.world import make_world, pairs_of
from prudent.counts.lists import ListBatch
from tests.strategies import as_batch, quick_counts

# --- one list, by the definition of each model --------------------------------------------------------------------


def histories(
    theta: FloatArray, onward: tuple[FloatArray, FloatArray], clicks: tuple[int, ...]
) -> Iterator[tuple[int, float]]:
    """How many items a user has examined who clicked so, and the probability of both."""
    unclicked, clicked = onward
    probability = 1.0
    for k, click in enumerate(clicks):
        probability *= theta[k] if click else 1 - theta[k]
        on = clicked[k] if click else unclicked[k]
        rest = clicks[k + 1 :]
        if not any(rest):
            yield k + 1, probability * (1 - on if rest else 1.0)
        probability *= on


def model_of(name: str, seed: int) -> tuple[FittedModel, FloatArray, tuple[FloatArray, FloatArray]]:
    """A model with random parameters, the attraction of a list, and the probabilities to go on after each item."""
    random = np.random.default_rng(seed)
    theta, s = random.random((2, 4))
    if name == "ccm":
        alpha = random.random(3)
        chain = FittedClickChain(click_models["ccm"](), 4, alpha)
        return chain, theta, (np.full(4, alpha[0]), alpha[1] * (1 - theta) + alpha[2] * theta)
    gamma = 1.0 if name == "sdbn" else float(random.random())
    dynamic = FittedDynamicBayesian(click_models[name](), 4, gamma, s)
    return dynamic, theta, (np.full(4, gamma), gamma * (1 - s))


every = pytest.mark.parametrize("name", ["dbn", "sdbn", "ccm"])
PATTERNS = list(product((0, 1), repeat=4))


@every
@pytest.mark.parametrize("seed", range(20))
def test_likelihood_and_examination_of_a_list(name: str, seed: int) -> None:
    """The sum over where the user may have stopped; items satisfy and are relevant with probabilities of their own."""
    fitted, theta, onward = model_of(name, seed)
    for clicks in PATTERNS:
        row = np.array([clicks], bool)
        given = fitted.predict(theta[None], row)[0]
        likelihood = np.where(row[0], given, 1 - given).prod()
        stops = list(histories(theta, onward, clicks))
        expected = sum(probability for _, probability in stops)
        assert likelihood == pytest.approx(expected, rel=1e-9, abs=1e-15)
        examined = [sum(p for end, p in stops if end > k) / expected for k in range(4)]
        np.testing.assert_allclose(fitted.examined(theta[None], row)[0], examined, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_value_of_dbn_is_the_probability_of_a_satisfied_user(seed: int) -> None:
    """Over all clicks and stops: a user who stops at a click was satisfied with probability s / (1 − γ(1 − s))."""
    fitted, theta, onward = model_of("dbn", seed)
    assert isinstance(fitted, FittedDynamicBayesian)
    s, total = fitted.satisfaction, 0.0
    for clicks in PATTERNS:
        for end, probability in histories(theta, onward, clicks):
            if clicks[end - 1]:
                share = s[end - 1] if end == 4 else s[end - 1] / (1 - onward[1][end - 1])
                total += probability * share
    assert fitted.value(theta) == pytest.approx(total)
    # It depends on the product of attraction and satisfaction alone.
    assert replace(fitted, satisfaction=np.array(1.0)).value(theta * s) == pytest.approx(total)


@pytest.mark.parametrize("seed", range(10))
def test_value_of_ccm_is_the_probability_to_leave_after_a_click(seed: int) -> None:
    fitted, theta, onward = model_of("ccm", seed)
    total = 0.0
    for clicks in PATTERNS:
        for end, probability in histories(theta, onward, clicks):
            if clicks[end - 1]:
                total += probability * (1 - onward[1][3] if end == 4 else 1.0)
    assert fitted.value(theta) == pytest.approx(total)


@pytest.mark.parametrize("seed", range(5))
def test_satisfied_users_see_the_best_item_first(seed: int) -> None:
    fitted, theta, _ = model_of("dbn", seed)
    plain = replace(fitted, satisfaction=np.array(0.4))  # type: ignore[call-arg]
    best = max(float(plain.value(theta[list(order)])) for order in product(range(4), repeat=4) if len({*order}) == 4)
    assert plain.value(np.sort(theta)[::-1]) == pytest.approx(best)


# --- expectation-maximisation -------------------------------------------------------------------------------------


def small_log(seed: int) -> ListBatch:
    random = np.random.default_rng(seed)
    lists = []
    for _ in range(30):
        items = tuple("abcdef"[i] for i in random.permutation(6)[: random.integers(1, 5)])
        lists.append(("q", items, tuple(int(click) for click in random.random(len(items)) < 0.3)))
    return as_batch(lists)


@pytest.mark.parametrize("seed", range(5))
def test_a_round_of_dbn_equals_plain_loops(seed: int) -> None:
    """Expected counts over all places where a user may have stopped, satisfied or not."""
    random, batch = np.random.default_rng(seed), small_log(seed)
    lists = WholeLists(batch)
    theta, t, gamma = random.random(lists.pairs), random.random(lists.pairs), 0.7
    new = dynamic_fit.step(lists, dynamic_fit.Parameters(theta, t, gamma), (0.5, 2.0), (1.0, 1.5), None)
    clicked, examined = np.full(lists.pairs, 0.5), np.full(lists.pairs, 2.5)
    other, every_click = np.full(lists.pairs, 1.5), np.full(lists.pairs, 2.5)
    on = could = 0.0
    for items, row in zip(batch.items, batch.clicks, strict=True):
        shown = items[items >= 0]
        clicks = tuple(int(click) for click in row[: len(shown)])
        after = (np.full(len(shown), gamma), gamma * t[shown])
        stops = list(histories(theta[shown], after, clicks))
        total = sum(p for _, p in stops)
        for end, probability in stops:
            weight = probability / total
            for k, item in enumerate(shown[:end]):
                examined[item] += weight
                clicked[item] += weight * clicks[k]
                went = k + 1 < end
                # P(not satisfied | where the user stopped); at the end of a list, nothing follows from it.
                unsatisfied = 1.0
                if clicks[k] and not went:
                    stays = t[item] * (1.0 if k + 1 == len(shown) else 1 - gamma)
                    unsatisfied = stays / (1 - t[item] + stays)
                other[item] += weight * clicks[k] * unsatisfied
                every_click[item] += weight * clicks[k]
                if k + 1 < len(shown):
                    on += weight * went
                    could += weight * unsatisfied
    np.testing.assert_allclose(new.attraction, clicked / examined, rtol=1e-9)
    np.testing.assert_allclose(new.unsatisfied, other / every_click, rtol=1e-9)
    assert new.perseverance == pytest.approx(on / could, rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_a_round_of_ccm_equals_plain_loops(seed: int) -> None:
    random, batch = np.random.default_rng(seed), small_log(seed)
    lists = WholeLists(batch)
    theta, alpha = random.random(lists.pairs), random.random(3)
    new = chain_fit.step(lists, chain_fit.Parameters(theta, alpha), (0.5, 2.0))
    hits, trials = np.full(lists.pairs, 0.5), np.full(lists.pairs, 2.5)
    on, could = np.zeros(3), np.zeros(3)
    for items, row in zip(batch.items, batch.clicks, strict=True):
        shown = items[items >= 0]
        clicks = tuple(int(click) for click in row[: len(shown)])
        a = theta[shown]
        stops = list(histories(a, (np.full(len(a), alpha[0]), alpha[1] * (1 - a) + alpha[2] * a), clicks))
        total = sum(p for _, p in stops)
        for end, probability in stops:
            weight = probability / total
            for k, item in enumerate(shown[:end]):
                went, inside = k + 1 < end, k + 1 < len(shown)
                trials[item] += weight
                hits[item] += weight * clicks[k]
                if not clicks[k]:
                    on[0] += weight * went
                    could[0] += weight * inside
                    continue
                step = alpha[1:] if went else (1 - alpha[1:] if inside else np.ones(2))
                relevant = a[k] * step[1] / (a[k] * step[1] + (1 - a[k]) * step[0])
                trials[item] += weight
                hits[item] += weight * relevant
                share = weight * inside * np.array([1 - relevant, relevant])
                on[1:] += share * went
                could[1:] += share
    np.testing.assert_allclose(new.attraction, hits / trials, rtol=1e-9)
    np.testing.assert_allclose(new.alpha, on / could, rtol=1e-9)


def test_probabilities_of_users_who_always_go_on_are_at_most_one() -> None:
    """Times that they went on and times that they could are summed apart, and round apart."""
    for seed in range(60):
        random = np.random.default_rng(seed)
        sizes = random.integers(2, 4, size=6)
        lists = [("q", tuple("abc"[:k]), tuple(int(click) for click in random.random(k) < 0.4)) for k in sizes]
        whole = WholeLists(as_batch(lists))
        theta, t = random.random((2, whole.pairs))
        chain = chain_fit.step(whole, chain_fit.Parameters(theta, np.ones(3)), (0.5, 2.0))
        assert (chain.alpha <= 1).all()
        dynamic = dynamic_fit.step(whole, dynamic_fit.Parameters(theta, t, 1.0), (0.5, 2.0), (1.0, 1.0), None)
        assert dynamic.perseverance <= 1


@pytest.mark.parametrize("name", ["dbn", "ccm"])
def test_rounds_never_lower_the_likelihood(name: str) -> None:
    """With priors that are next to nothing: of the clicks alone."""
    lists = WholeLists(small_log(7))
    random = np.random.default_rng(1)
    before = -np.inf
    if name == "ccm":
        chain = chain_fit.Parameters(random.random(lists.pairs), np.array([0.5, 0.6, 0.7]))
    dynamic = dynamic_fit.Parameters(random.random(lists.pairs), random.random(lists.pairs), 0.5)
    for _ in range(30):
        if name == "ccm":
            chain = chain_fit.step(lists, chain, (1e-9, 1e-9))
            theta = lists.places(chain.attraction)
            onward = Onward(chain.alpha[:1], chain_fit.after_click(theta, chain.alpha))
        else:
            dynamic = dynamic_fit.step(lists, dynamic, (1e-9, 1e-9), (1e-9, 1e-9), None)
            theta = lists.places(dynamic.attraction)
            onward = Onward(np.array(dynamic.perseverance), dynamic.perseverance * lists.places(dynamic.unsatisfied))
        likelihood = float(lists.n @ lists.log_likelihood(theta, onward))
        assert likelihood >= before - 1e-9
        before = likelihood


# --- evidence -----------------------------------------------------------------------------------------------------


@every
def test_evidence_is_exact_where_every_list_of_a_context_is_the_same(name: str) -> None:
    """Then the mean over the lists of a context is each of them: Σ P(examined | clicks) of whole lists."""
    random = np.random.default_rng(3)
    lists = [
        (context, tuple(f"{context}{k}" for k in range(4)), tuple(int(c) for c in random.random(4) < 0.3))
        for context in "qrs"
        for _ in range(60)
    ]
    batch, cells = as_batch(lists), quick_counts(lists).cells
    setting = {"ccm": "alpha=[0.8, 0.9, 0.5]", "dbn": "perseverance=0.8, satisfaction=0.4", "sdbn": "satisfaction=0.4"}
    fitted = click_models.parse(f"{name}({setting[name]})").fit(cells, 4)
    evidence = fitted.evidence(cells)
    context = cells.context
    clicks = np.bincount(context, evidence.positive)
    rate = (clicks + 1) / (np.bincount(context, evidence.examined) + 2)
    theta = (evidence.positive + 2 * rate[context]) / (evidence.examined + 2)
    examined = fitted.examined(theta[batch.items], batch.clicks)
    expected = np.bincount(batch.items.ravel(), examined.ravel())
    np.testing.assert_allclose(evidence.examined, expected, rtol=1e-3)


@every
def test_evidence_of_a_context_does_not_depend_on_others(name: str) -> None:
    batch = simulated(name, contexts=30, lists=3_000, length=5)[2]
    fitted = click_models[name]().fit(batch.cells, 5, batch)
    whole = fitted.evidence(batch.cells)
    some = np.arange(30) % 3 == 0
    part, rows = fitted.evidence(batch.cells.only(some)), some[batch.context]
    for one, other in ((whole, part), (whole.ranked, part.ranked)):
        for column in ("positive", "negative", "expected"):
            assert getattr(one, column)[rows].tobytes() == getattr(other, column).tobytes()


@pytest.mark.parametrize("name", ["dcm", "dbn", "ccm"])
def test_evidence_is_the_same_a_few_contexts_at_a_time(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = simulated("ccm", contexts=30, lists=3_000, length=5)[2]
    fitted = click_models[name]().fit(batch.cells, 5, batch)
    whole = fitted.evidence(batch.cells)
    monkeypatch.setattr(tails, "_PAIRS", 100)
    assert len(list(batch.cells.parts(100))) > 3
    parts = fitted.evidence(batch.cells)
    for one, other in ((whole, parts), (whole.ranked, parts.ranked)):
        for column in ("positive", "negative", "expected"):
            assert getattr(one, column).tobytes() == getattr(other, column).tobytes()


def simulated(
    name: str, contexts: int, lists: int, length: int, seed: int = 1
) -> tuple[FloatArray, FloatArray, ListBatch]:
    """Attraction, satisfaction Beta(2, 3) and lists with clicks; γ = .83, α = (.82, .95, .5)."""
    world = make_world("pbm", contexts=contexts, items=(20, 30), length=length, zipf=0.7, seed=seed)
    drawn = next(draw_lists(world, lists, seed=seed, chunk=lists))
    random = np.random.default_rng(seed)
    s = random.beta(2, 3, len(world.attraction))
    theta, own = np.append(world.attraction, 0)[drawn.items], np.append(s, 0)[drawn.items]
    gamma = 1.0 if name == "sdbn" else 0.83
    onward = Onward(np.array(gamma), gamma * (1 - own))
    if name == "ccm":
        onward = Onward(np.array(0.82), 0.95 * (1 - theta) + 0.5 * theta)
    clicks = click_from_top(theta, onward, random)
    return world.attraction, s, ListBatch(pairs_of(world), drawn.items, clicks, np.ones(lists, np.int64))


@every
@pytest.mark.parametrize("length", [4, 10])
def test_parameters_are_recovered_with_coverage(name: str, length: int) -> None:
    """100,000 lists. Of pairs with 100 impressions, the 5 % quantile is above the truth for 3 to 7 %.

    About 900 and 1,800 pairs: the share has a standard error of .7 and .5 %, and three of them are allowed for the
    product of attraction and satisfaction, of which the posterior is approximate. Standard errors of γ and α₁ are
    about .004, of α₂ and α₃ up to .02, and of mean satisfaction .015.
    """
    theta, s, lists = simulated(name, 100, 100_000, length)
    fitted = click_models[name]().fit(lists.cells, length, lists)
    evidence = fitted.evidence(lists.cells)
    often = evidence.impressions >= 100
    above = np.mean(Bayes(delta=0.1, alpha=1.2, beta=5.0).lower(evidence)[often] > theta[often])
    assert 0.03 <= above <= 0.07
    if isinstance(fitted, FittedClickChain):
        assert fitted.alpha[0] == pytest.approx(0.82, abs=0.016)
        np.testing.assert_allclose(fitted.alpha, [0.82, 0.95, 0.5], atol=0.1)
        # After a click on an item of attraction ⅓, as clicked items have on average, c is known better than α₂ and α₃.
        assert fitted.alpha[1:] @ [2 / 3, 1 / 3] == pytest.approx(0.8, abs=0.03)
        return
    assert isinstance(fitted, FittedDynamicBayesian)
    assert fitted.prior is not None
    assert fitted.perseverance == pytest.approx(1.0 if name == "sdbn" else 0.83, abs=0.016)
    assert fitted.prior[0] / sum(fitted.prior) == pytest.approx(0.4, abs=0.045)
    assert evidence.satisfaction is not None
    assert np.sqrt(np.mean((evidence.satisfaction - s)[often] ** 2)) < 0.17  # .2 without any evidence
    # The product has mean .077 and standard deviation .068, as Beta(1.1, 13) does.
    product_above = np.mean(Bayes(delta=0.1, alpha=1.1, beta=13.0).lower(evidence.ranked)[often] > (theta * s)[often])
    assert 0.03 <= product_above <= 0.1


# --- what is not identified ---------------------------------------------------------------------------------------


@every
def test_needs_whole_lists_with_several_clicks(name: str) -> None:
    model = click_models[name]()
    lists = [("q", ("a", "b", "c"), (1, 0, 0))] * 500 + [("q", ("b", "a", "c"), (1, 0, 1))] * (FEWEST - 1)
    cells = quick_counts(lists).cells
    with pytest.raises(NotIdentifiedError, match="there are only cells"):
        model.fit(cells, 3)
    with pytest.raises(NotIdentifiedError, match=f"{FEWEST - 1} of the lists have several clicks"):
        model.fit(cells, 3, as_batch(lists))


def test_says_where_clicks_do_not_satisfy() -> None:
    """Users of pbm are never satisfied."""
    world = make_world("pbm(examination=[1, 0.8, 0.7, 0.6, 0.5])", contexts=20, items=(8, 12), length=5, seed=2)
    drawn = next(draw_lists(world, 10_000, seed=1, chunk=10_000))
    lists = ListBatch(pairs_of(world), drawn.items, drawn.clicks > 0, np.ones(10_000, np.int64))
    assert "hardly ever satisfy" in click_models["dbn"]().fit(lists.cells, 5, lists).doubt


@pytest.mark.parametrize(
    ("spelling", "complaint"),
    [
        ("dbn(perseverance=1.5)", "perseverance is 1.5; it is a probability"),
        ("dbn(satisfaction=[0.5, 1])", "write one probability for all items"),
        ("sdbn(satisfaction=2)", "write one probability for all items"),
        ("ccm(alpha=[0.5, 0.5])", "alpha of ccm has 2 values; it takes three"),
    ],
)
def test_refuses_settings(spelling: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint.replace("(", r"\(")):
        click_models.parse(spelling)
