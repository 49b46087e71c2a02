"""The bound on the value of a list: its formula by plain loops, and how often it is above the truth."""

from dataclasses import replace

import numpy as np
import pytest

from prudent.base.arrays import FloatArray
from prudent.bounds import Scores, bounds
from prudent.click_models import click_models
from prudent.click_models.evidence import Evidence
from prudent.click_models.world import draw, make_world, pairs_of
from prudent.counts.lists import ListBatch
from prudent.policies.best_lists import best_lists, list_values
from prudent.policies.list_arrays import Lists
from prudent.policies.list_bound import list_lower_bounds

MODELS = {"cm": "cm", "dcm": "dcm(continuation=[0.5, 0.6, 0.7])", "pbm": "pbm(examination=[1, 0.6, 0.3])"}


def rank(model: str, bound: str, seed: int, users: str = "") -> tuple[FloatArray, FloatArray, Evidence, Lists, Scores]:
    """The lower bounds and the true values of 400 lists of 3 of 12 items; θ ~ Beta(1.2, 5), unknown to production."""
    world = make_world(
        users or model, contexts=400, items=(12, 12), length=3, quality=0, exploration=1.5, zipf=0, seed=seed
    )
    drawn = next(draw(world, 20_000, seed=seed, chunk=20_000))
    logged = ListBatch(pairs_of(world), drawn.items, drawn.clicks > 0, np.ones(20_000, np.int64))
    evidence = click_models.parse(model).fit(logged.cells, 3).evidence(logged.cells)
    scores = bounds.parse(bound).score(evidence)
    chosen = best_lists(evidence, scores, 3)
    truth = list_values(replace(evidence, fitted=world.users), chosen, world.attraction, 3, 400)
    return list_lower_bounds(evidence, chosen, scores, 3, 400), truth, evidence, chosen, scores


@pytest.mark.parametrize("bound", ["hoeffding(delta=0.3)", "clopper-pearson(delta=0.3)", "anytime(delta=0.3)"])
def test_bounds_at_every_attraction_hold_for_chosen_items(bound: str) -> None:
    """Not even 1 % of 400 lists: those of 12 items at once, at δ/12 each, are conservative for 3 of them."""
    lower, truth, _, chosen, scores = rank(MODELS["pbm"], bound, 0)
    assert np.mean(lower > truth) < 0.01
    assert scores.joint is not None
    assert (scores.joint(chosen.row) <= scores.lower[chosen.row]).all()
    assert np.mean(lower > 0) > 0.3, "and not for want of saying anything"


def test_fitted_continuation_is_no_promise() -> None:
    """λ of position 3 is .95 and taken from position 2, where it is .8: values by fitted λ are too high."""
    users = "dcm(continuation=[0.5, 0.8, 0.95])"
    found = [rank("dcm", "bayes(delta=0.2, alpha=1.2, beta=5)", seed, users) for seed in range(4)]
    assert np.mean([lower > truth for lower, truth, *_ in found]) <= 0.1
    assert np.mean([lower / truth for lower, truth, *_ in found]) > 0.5
    known = click_models.parse(users).typical(3)
    assert known.cautious(0.1) is known


@pytest.mark.parametrize("model", MODELS)
def test_formula_and_coverage(model: str) -> None:
    """θ ~ Beta(1.2, 5) and production knows nothing, so the prior is right: 10 % of 4,000 lists, ± 4 · .5 points.

    The choice of the best-looking items among 12 is in it.
    """
    above = []
    for seed in range(10):
        bound, truth, evidence, chosen, scores = rank(MODELS[model], "bayes(delta=0.2, alpha=1.2, beta=5)", seed)
        assert (bound > list_values(evidence, chosen, scores.lower, 3, 400)).all(), "narrower than the sum of items"
        above.append(np.mean(bound > truth))
    assert 0.08 < np.mean(above) < 0.12
    rows = chosen.row[chosen.context == 7]
    m, low = scores.mean[rows], scores.lower[rows]
    weights: dict[str, tuple[float, ...]] = {"cm": (1, 1, 1), "dcm": (0.5, 0.4, 0.3), "pbm": (1, 0.6, 0.3)}
    weight = weights[model]

    def value(theta: list[float]) -> float:
        missed = 1.0
        for w, t in zip(weight, theta, strict=True):
            missed *= 1 - w * t
        return sum(w * t for w, t in zip(weight, theta, strict=True)) if model == "pbm" else 1 - missed

    squares = 0.0
    for k in range(3):
        up, down = m.tolist(), m.tolist()
        up[k], down[k] = m[k] + 0.001, m[k] - 0.001
        squares += ((value(up) - value(down)) / 0.002 * (m[k] - low[k])) ** 2
    assert bound[7] == pytest.approx(value(m.tolist()) - squares**0.5)
