"""Trees as arrays, beside LightGBM itself and a loop from node to node."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prudent.base.arrays import FloatArray
from prudent.bounds.feature_models import feature_models
from prudent.bounds.feature_models.trees import LEAF, Column, Forest, Node, grown
from prudent.counts.feature_columns import Categorical, Feature, Numeric
from tests.contract.test_feature_models import drawn


def by_loop(forest: Forest, features: list[Feature], row: int) -> float:
    """From each root to a leaf."""
    total = 0.0
    for at in forest.roots:
        node = forest.nodes[at]
        while node.column != LEAF:
            feature = features[node.column]
            if isinstance(feature, Numeric):
                value = feature.values[row]
                left = node.missing_left if np.isnan(value) else bool(value <= node.threshold)
            else:
                code = int(feature.codes[row])
                known = 0 <= code < len(feature.levels)
                left = feature.levels[code] in node.levels if known else node.missing_left
            node = forest.nodes[node.left if left else node.right]
        total += node.value
    return total


@st.composite
def forests(draw: st.DrawFn) -> Forest:
    """Of a number and a feature with levels; some leaves are very deep."""
    nodes: list[Node] = []

    def add(leaves: int) -> int:
        at = len(nodes)
        nodes.append(Node(value=draw(st.floats(-1, 1))))
        if leaves == 1:
            return at
        column, split = draw(st.integers(0, 1)), draw(st.integers(1, leaves - 1))
        levels = tuple(sorted(draw(st.sets(st.sampled_from("abc"))))) if column else ()
        missing, threshold = draw(st.booleans()), draw(st.sampled_from([-1.0, 0.0, 0.5, 2.0]))
        left, right = add(split), add(leaves - split)
        nodes[at] = Node(column, 0.0 if column else threshold, levels, missing, left, right)
        return at

    roots = tuple(add(draw(st.integers(1, 16))) for _ in range(draw(st.integers(0, 3))))
    return Forest((Column("n", True, 0.5), Column("c", False, 0.5)), tuple(nodes), roots)


@settings(max_examples=100, deadline=None)
@given(forest=forests(), seed=st.integers(0, 100))
def test_predictions_are_those_of_a_loop(forest: Forest, seed: int) -> None:
    rng = np.random.default_rng(seed)
    numbers = rng.choice([-5, -1, 0, 0.5, 1, 2, 3, np.nan], 40)
    features: list[Feature] = [Numeric("n", numbers), Categorical("c", rng.integers(-1, 5, 40), ("b", "d", "a", "c"))]
    found = forest.predict(features)
    np.testing.assert_allclose(found, [by_loop(forest, features, row) for row in range(40)], atol=1e-12)


def test_a_tree_of_more_leaves_is_refused() -> None:
    nodes = [Node(0, 0.0, (), False, at + 1, at + 2) if at % 2 == 0 else Node(value=1.0) for at in range(32)]
    with pytest.raises(ValueError, match="more than 16 leaves"):
        Forest((Column("n", True, 1.0),), (*nodes, Node(value=1.0)), (0,))


def boosters(monkeypatch: pytest.MonkeyPatch, spelled: str) -> tuple[Any, Forest]:
    """What LightGBM grew, and what was made of it."""
    lightgbm = pytest.importorskip("lightgbm")
    kept: list[Any] = []
    train = lightgbm.train

    def keep(*some: Any, **more: Any) -> Any:
        kept.append(train(*some, **more))
        return kept[-1]

    monkeypatch.setattr(lightgbm, "train", keep)
    features, target, _ = drawn()
    forest = feature_models.parse(spelled).fit(features, target)
    assert isinstance(forest, Forest)
    return kept[0], forest


def matrix(features: list[Feature]) -> FloatArray:
    columns = [
        one.values if isinstance(one, Numeric) else np.where(one.codes < 0, np.nan, one.codes.astype(float))
        for one in features
    ]
    return np.column_stack(columns)


def test_predictions_are_those_of_lightgbm(monkeypatch: pytest.MonkeyPatch) -> None:
    booster, forest = boosters(monkeypatch, "lightgbm")
    for seed in (1, 2):
        features, _, _ = drawn(seed=seed)
        theirs = booster.predict(matrix(features), raw_score=True, num_iteration=booster.best_iteration)
        np.testing.assert_allclose(forest.predict(features), theirs, atol=1e-9)
    assert grown(features, booster.dump_model(num_iteration=booster.best_iteration)).saved == forest.saved


@pytest.mark.parametrize(("spelled", "sign"), [("increasing=[price]", 1), ("decreasing=[price]", -1)])
def test_what_is_monotone(monkeypatch: pytest.MonkeyPatch, spelled: str, sign: int) -> None:
    """The price lowers attraction: with `increasing` nothing is left of it."""
    _, forest = boosters(monkeypatch, f"lightgbm({spelled})")
    features, _, _ = drawn(rows=50)
    rise = np.zeros(50)
    for price in np.geomspace(0.01, 1e4, 40):
        before, rise = rise, forest.predict([Numeric("price", np.full(50, price)), *features[1:]])
        assert price == 0.01 or np.all(sign * (rise - before) >= -1e-12)
    assert forest.shares["price"] > 0.05 if sign < 0 else forest.shares["price"] < 0.05
