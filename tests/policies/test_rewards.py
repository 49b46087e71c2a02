"""Lists ranked by rewards: against every order of every choice, the values they promise, and what cannot be ranked."""

from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import prudent
from prudent.base.errors import PolicyError, UsageError

EXAMINATION = (1.0, 0.7, 0.5)


def world(seed: int, contexts: int = 12, lists: int = 3_000, most: float = 40.0) -> pa.Table:
    """Three of five items in any order; purchases of items that are clicked less may be worth more."""
    rng = np.random.default_rng(seed)
    attraction, price = rng.beta(2, 8, (contexts, 5)), rng.uniform(1, most, (contexts, 5))
    context = rng.integers(contexts, size=lists)
    items = rng.permuted(np.tile(np.arange(5), (lists, 1)), axis=1)[:, :3]
    clicks = rng.random(items.shape) < attraction[context[:, None], items] * EXAMINATION
    earned = np.where(clicks, (rng.random(items.shape) < 0.3) * price[context[:, None], items], 0)
    columns = {"context": context, "items": items.tolist(), "clicks": clicks.astype(int).tolist()}
    return pa.table({**columns, "margin": earned.round(2).tolist()})


def ranked(log: Any, **settings: Any) -> prudent.Policy:
    return prudent.rank(log, reward="margin", **settings)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("bound", ["eb(delta=0.2)", "bayes", "hierarchical", "exposure"])
def test_lists_are_the_best_of_all(bound: str, seed: int) -> None:
    """Of every choice of three items in every order, the one with the highest Σ pₖ Lₖ under a p that was set."""
    p = [0.5, 1.0, 0.3]  # position 2 is examined most
    policy = ranked(world(seed), model=f"pbm(examination={p})", bound=bound)
    lower: dict[int, dict[int, float]] = {}
    for context, item, bound_of in policy.scores().project("context, item, lower").fetchall():
        lower.setdefault(context, {})[item] = bound_of
    for context, scores in lower.items():
        best = max(permutations(scores, 3), key=lambda order: sum(p[k] * scores[i] for k, i in enumerate(order)))
        assert policy[context] == list(best)


def test_values_are_sums_over_positions() -> None:
    policy = ranked(world(1), model=f"pbm(examination={list(EXAMINATION)})", bound="eb")
    rows = policy.lists().project("context, rank, mean, lower").fetchall()
    for context, value, lower in policy.contexts().project("context, value, lower").fetchall():
        mine = [(EXAMINATION[rank - 1], mean, low) for of, rank, mean, low in rows if of == context]
        assert value == pytest.approx(sum(p * mean for p, mean, _ in mine))
        away = sum((p * (mean - low)) ** 2 for p, mean, low in mine) ** 0.5
        assert lower == pytest.approx(max(value - away, 0))


def test_the_lists_earn_more_than_those_of_clicks() -> None:
    """With prices that differ 40-fold, what clicks rank highest is not what earns most."""
    log, truth = world(2, lists=40_000), np.random.default_rng(2)
    attraction, price = truth.beta(2, 8, (12, 5)), truth.uniform(1, 40, (12, 5))

    def earns(policy: prudent.Policy) -> float:
        context, rank, item = policy.lists().project("context, rank, item").fetchnumpy().values()
        return float(np.sum(np.array(EXAMINATION)[rank - 1] * 0.3 * (attraction * price)[context, item]) / len(policy))

    by_rewards, by_clicks = earns(ranked(log)), earns(prudent.rank(log, "pbm"))
    assert by_rewards > 1.05 * by_clicks
    summary = ranked(log).manifest.results["summary"]
    assert summary["unit"] == "expected reward"
    assert summary["value"] == pytest.approx(by_rewards, rel=0.1)  # p is scaled to 1 at the top, as here
    assert summary["lower"] < by_rewards


def test_without_evidence_production_keeps_its_order() -> None:
    """An item without a click passes none, whatever a click earns on average."""
    rows = [{"context": "q", "items": ["a", "b", "c"], "clicks": [1, 0, 0], "margin": [9.0, 0, 0]}] * 3
    other = [{"context": "r", "items": ["c", "b", "a"], "clicks": [0, 0, 0], "margin": [0.0, 0, 0]}]
    swapped = [{"context": "r", "items": ["b", "c", "a"], "clicks": [0, 0, 0], "margin": [0.0, 0, 0]}]
    policy = ranked(pa.Table.from_pylist(rows + 3 * other + swapped), model="pbm(examination=[1, 0.5, 0.3])")
    assert dict(policy) == {"q": ["a", "b", "c"], "r": ["c", "b", "a"]}


def test_a_reward_of_one_per_click_ranks_as_clicks_do() -> None:
    log = world(4)
    alike = log.set_column(3, "margin", log["clicks"])
    one, two = ranked(alike, bound="eb"), prudent.rank(log, "pbm", bound="eb")
    assert dict(one) == dict(two)
    ours, theirs = (policy.scores().order("context, item").fetchnumpy() for policy in (one, two))
    for name in ("lower", "mean", "upper"):
        assert ours[name] == pytest.approx(theirs[name], rel=1e-6)


def test_rewards_with_rules_groups_candidates_and_moves() -> None:
    """What ranking offers besides, in the same unit: nothing falls back to clicks."""
    log = world(5)
    candidates = pa.table({"context": [0, 0, 0, 1], "item": [1, 2, 9, 3]})
    assert set(ranked(log, candidates=candidates)[0]) == {1, 2, 9}
    assert "by_group" in ranked(log, groups="item", max_moves=1).manifest.results["fitted"]["prior"]
    policy = ranked(log, rules={"pin": [{"item": 4, "position": 1}]}, bound="eb")
    assert all(items[0] == 4 for items in policy.values())
    assert policy.manifest.results["rules"]["pin"]["lost"] > 0.01  # rewards, not clicks
    assert "reward_mean" in policy.manifest.results["fitted"]["prior"]


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"model": "dcm"}, "probability of a satisfied click"),
        ({"model": "cm"}, "not the sum over its items"),
        ({"model": "ubm"}, "clicks above"),
        ({"model": "robust"}, "pbm alone knows rewards"),
        ({"bound": "hoeffding"}, "no posterior"),
        ({"bound": "clopper-pearson"}, "no posterior"),
        ({"bound": "anytime"}, "no posterior"),
        ({"bound": "mle"}, "no posterior"),
    ],
)
def test_what_cannot_rank_rewards(settings: dict[str, str], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        ranked(world(1), **settings)


def test_counts_without_the_reward_and_what_does_not_know_rewards() -> None:
    log = world(1)
    counts = prudent.count(log, reward="margin")
    assert dict(prudent.rank(counts)) == dict(ranked(counts)) == dict(ranked(log))
    for wrong in (prudent.count(log), prudent.count(log.rename_columns([*log.column_names[:3], "x"]), reward="x")):
        with pytest.raises(UsageError, match="--reward margin"):
            ranked(wrong)
    with pytest.raises(UsageError, match="have no grades"):
        prudent.judge(counts)
    with pytest.raises(PolicyError, match="no fitted prior: it was ranked by the reward margin"):
        prudent.rank(counts).rank_new(77, [1, 2])
    with pytest.raises(PolicyError, match="exploring prices clicks"):
        prudent.explore(prudent.rank(counts), counts)
    with pytest.raises(PolicyError, match="promises a reward, margin"), pytest.warns(prudent.PrudentWarning):
        prudent.verify(prudent.rank(counts), log)


def test_explanations_name_the_unit() -> None:
    explanation = ranked(world(1), bound="eb").explain(3)
    assert explanation.reward == "margin"
    assert any("margin" in note for note in explanation.notes)
    assert "expected reward" in explanation.title
    best = max(one.mean or 0 for one in explanation.candidates)
    assert best > 1  # no probability
    assert f"{best:.3f}" in explanation._repr_html_()
