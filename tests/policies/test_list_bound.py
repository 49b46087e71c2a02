"""The bound on the value of a list: its formula by plain loops, and how often it is above the truth."""

import numpy as np
import pytest

from prudent.bounds import bounds
from prudent.click_models import click_models
from prudent.click_models.simulate import draw, make_world, pairs_of
from prudent.counts.lists import ListBatch
from prudent.policies.best_lists import best_lists, list_values
from prudent.policies.list_bound import list_lower_bounds

MODELS = {"cm": "cm", "dcm": "dcm(continuation=[0.5, 0.6, 0.7])", "pbm": "pbm(examination=[1, 0.6, 0.3])"}


@pytest.mark.parametrize("model", MODELS)
def test_formula_and_coverage(model: str) -> None:
    """θ ~ Beta(1.2, 5) and production knows nothing, so the prior is right: 10 % of 4,000 lists, ± 4 · .5 points.

    The choice of the best-looking items among 12 is in it.
    """
    above = []
    for seed in range(10):
        world = make_world(
            MODELS[model], contexts=400, items=(12, 12), length=3, quality=0, exploration=1.5, zipf=0, seed=seed
        )
        drawn = next(draw(world, 20_000, seed=seed, chunk=20_000))
        lists = ListBatch(pairs_of(world), drawn.items, drawn.clicks > 0, np.ones(20_000, np.int64))
        evidence = click_models.parse(MODELS[model]).fit(lists.cells, 3).evidence(lists.cells)
        scores = bounds.parse("bayes(delta=0.2, alpha=1.2, beta=5)").score(evidence)
        chosen = best_lists(evidence, scores, 3)
        bound = list_lower_bounds(evidence, chosen, scores, 3, 400)
        assert (bound > list_values(evidence, chosen, scores.lower, 3, 400)).all(), "narrower than the sum of items"
        above.append(np.mean(bound > list_values(evidence, chosen, world.attraction, 3, 400)))
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
