"""Decision trees as arrays: what LightGBM grew, read and applied without it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.bounds.feature_models.base import FittedFeatureModel
from prudent.counts.feature_columns import Categorical, Feature, Features, Numeric, size_of

LEAF = -1
MOST_LEAVES = 16
"""Of a tree: so many bits say which of them remain."""
_ALL = (1 << MOST_LEAVES) - 1
_LOWEST = np.array([max(0, (bits & -bits).bit_length() - 1) for bits in range(_ALL + 1)])
_AT_ONCE = 1 << 14  # rows: arrays that stay in the cache


@dataclass(frozen=True)
class Column:
    """A feature as trees see it."""

    name: str
    numeric: bool
    share: float  # of what all features gain


@dataclass(frozen=True)
class Node:
    """A question, or an answer: numbers up to the threshold go left, or else the levels that are named."""

    column: int = LEAF
    threshold: float = 0.0
    levels: tuple[str, ...] = ()
    missing_left: bool = False
    left: int = 0
    right: int = 0
    value: float = 0.0  # of a leaf


@dataclass(frozen=True)
class Forest(FittedFeatureModel):
    """Trees whose values add up; children come after their parents."""

    columns: tuple[Column, ...]
    nodes: tuple[Node, ...]
    roots: tuple[int, ...]

    def __post_init__(self) -> None:
        nodes = len(self.nodes)
        if any(not 0 <= root < nodes for root in self.roots):
            raise ValueError("a tree without a root")
        for at, node in enumerate(self.nodes):
            if node.column == LEAF:
                continue
            if not 0 <= node.column < len(self.columns) or not at < min(node.left, node.right):
                raise ValueError("a node in a circle, or of no feature")
            if max(node.left, node.right) >= nodes:
                raise ValueError("a node without its children")
        _ = self._trees

    @classmethod
    def none(cls, features: Features) -> "Forest":
        """Without a tree."""
        return cls(tuple(Column(one.name, isinstance(one, Numeric), 0.0) for one in features), (), ())

    @property
    def shares(self) -> Mapping[str, float]:
        """Of the gain of all splits."""
        return {column.name: column.share for column in self.columns}

    @property
    def saved(self) -> Mapping[str, Any]:
        """Its nodes, without what is the same in most."""
        usual = asdict(Node())
        nodes = [{k: v for k, v in asdict(node).items() if v != usual[k]} for node in self.nodes]
        return {"columns": [asdict(one) for one in self.columns], "nodes": nodes, "roots": list(self.roots)}

    @cached_property
    def _trees(self) -> "list[_Tree]":
        return [_Tree.of(self.nodes, root) for root in self.roots]

    def predict(self, features: Features) -> FloatArray:
        """The sum of all trees, in their order."""
        rows = size_of(features)
        total = np.zeros(rows)
        by_name = {feature.name: feature for feature in features}
        own = [by_name[column.name] for column in self.columns]
        for column, feature in zip(self.columns, own, strict=True):
            if isinstance(feature, Numeric) != column.numeric:
                raise ValueError(f"the feature {column.name} is of another kind")
        for start in range(0, rows, _AT_ONCE):
            some = slice(start, min(rows, start + _AT_ONCE))
            few = [_slice(feature, some) for feature in own]
            for tree in self._trees:
                total[some] += tree.values[tree.leaf(few)]
        return total


class _Tree(NamedTuple):
    """A tree whose questions are asked in any order: each answer rules out leaves, and the first that is left counts.

    So a tree is a few operations on whole columns, without a path for each row (QuickScorer, Lucchese et al. 2015).
    """

    questions: tuple[tuple[Node, int], ...]  # each with the leaves that remain where the answer is to go right
    values: FloatArray  # of the leaves, from the left

    @classmethod
    def of(cls, nodes: Sequence[Node], root: int) -> "_Tree":
        """The tree below a node; a ValueError where it has too many leaves."""
        questions: list[tuple[Node, int]] = []
        values: list[float] = []

        def below(at: int) -> None:
            node, first = nodes[at], len(values)
            if node.column == LEAF:
                values.append(node.value)
                if len(values) > MOST_LEAVES:
                    raise ValueError(f"a tree of more than {MOST_LEAVES} leaves")
                return
            below(node.left)
            ruled_out = (1 << len(values)) - (1 << first)
            questions.append((node, _ALL ^ ruled_out))
            below(node.right)

        below(root)
        return cls(tuple(questions), np.array(values))

    def leaf(self, features: Features) -> IntArray:
        """The leaf of each row."""
        left = np.full(size_of(features), _ALL, np.uint16)
        for node, remaining in self.questions:
            # 0 where the answer is to go right, all bits where it is not
            kept = self._goes_right(node, features[node.column]).astype(np.uint16) - np.uint16(1)
            left &= kept | np.uint16(remaining)
        return _LOWEST[left]

    @staticmethod
    def _goes_right(node: Node, feature: Feature) -> BoolArray:
        if isinstance(feature, Numeric):
            values = feature.values  # a comparison with NaN is false
            return values > node.threshold if node.missing_left else ~(values <= node.threshold)
        return _right_codes(node.levels, node.missing_left, feature.levels)[feature.codes]


@lru_cache(maxsize=4096)
def _right_codes(levels: tuple[str, ...], missing_left: bool, every: tuple[str, ...]) -> BoolArray:
    """Which codes of a feature with these levels go right; the last two are another level, and none."""
    left = set(levels)
    return np.array([*(level not in left for level in every), not missing_left, not missing_left])


def _slice(feature: Feature, rows: slice) -> Feature:
    if isinstance(feature, Numeric):
        return Numeric(feature.name, feature.values[rows])
    return Categorical(feature.name, feature.codes[rows], feature.levels)


def grown(features: Features, model: Mapping[str, Any]) -> Forest:
    """The trees that LightGBM dumped."""
    nodes: list[Node] = []
    gain = np.zeros(len(features))

    def add(tree: Mapping[str, Any]) -> int:
        at = len(nodes)
        nodes.append(Node(value=float(tree.get("leaf_value", 0.0))))
        if "split_feature" not in tree:
            return at
        number = int(tree["split_feature"])
        feature = features[number]
        gain[number] += max(0.0, float(tree["split_gain"]))
        left, right = add(tree["left_child"]), add(tree["right_child"])
        if isinstance(feature, Categorical):
            levels = tuple(feature.levels[int(code)] for code in str(tree["threshold"]).split("||"))
            nodes[at] = Node(number, 0.0, levels, False, left, right)
        else:
            threshold = float(tree["threshold"])
            # Where no number was missing, LightGBM takes a missing one for 0.
            missing_left = threshold >= 0 if tree["missing_type"] == "None" else bool(tree["default_left"])
            nodes[at] = Node(number, threshold, (), missing_left, left, right)
        return at

    roots = tuple(add(tree["tree_structure"]) for tree in model["tree_info"])
    total = float(gain.sum())
    shares = gain / total if total else gain
    columns = (
        Column(one.name, isinstance(one, Numeric), float(share)) for one, share in zip(features, shares, strict=True)
    )
    return Forest(tuple(columns), tuple(nodes), roots)
