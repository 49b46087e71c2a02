"""What a policy changes in the traffic of a holdout, and who wins and loses by it.

Shares of traffic are counted. Clicks are expected under the click model of the gate's estimator, fitted to the holdout,
as in `prudent.gate_contexts`; where they earned rewards, the reward is that of expected clicks.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtr

from prudent.base.arrays import BoolArray, FloatArray
from prudent.click_models.base import ClickModel
from prudent.click_models.rewards import EarnedReward
from prudent.evaluation.direct import direct
from prudent.evaluation.estimators import Estimator
from prudent.evaluation.holdout import CannotTellError, Holdout
from prudent.evaluation.holdout_log import HoldoutLog
from prudent.evaluation.list_differences import ListDifferences, list_differences
from prudent.policies.incumbent import incumbent_lists
from prudent.policies.list_arrays import as_table
from prudent.policies.lookup import Name

MOST_COMPARED = 5_000
"""Contexts in which the two lists are compared, the most frequent first."""
MOST_NAMED = 8
"""Winners, losers and risks that are named."""


def traffic(held: Holdout) -> dict[str, float]:
    """Shares of the holdout lists that change, at the top and anywhere.

    ``first``: another item at position 1. ``first_three``: at least one of the policy's first three items is not among
    the first three of the logged list.
    """
    every = max(1, int(held.n.sum()))
    known = held.known[held.context]
    wanted = held.target[held.context]
    missing = np.zeros(len(held.n), bool)
    for k in range(min(3, held.length)):
        there = (held.items[:, :3] == wanted[:, k, None]).any(axis=1)
        missing |= (wanted[:, k] != -1) & ~there
    shares = {"any": ~held.stays, "first": known & ~held.at(0) & (wanted[:, 0] != -1), "first_three": known & missing}
    return {name: float(np.sum(held.n * lists) / every) for name, lists in shares.items()}


def winners_and_losers(holdout: HoldoutLog, estimator: Estimator, reward: EarnedReward) -> dict[str, Any]:
    """Contexts and items with the largest expected gains and losses, and the contexts with the largest risk."""
    held = holdout.lists
    model: ClickModel | str = getattr(estimator, "model", "auto")
    try:
        fit = direct(held, model, reward)
        fitted, supported = fit.fitted, fit.supported
    except CannotTellError as error:
        return {"why": str(error)}
    some = np.zeros(held.contexts, bool)
    some[np.argsort(-held.logged * supported, kind="stable")[:MOST_COMPARED]] = True
    some &= supported
    if not some.any():
        return {"why": "The holdout has no context in which all items of the policy's list were shown."}
    numbers, pairs = np.flatnonzero(some), np.flatnonzero(some[held.pair_context])
    part = held.only(some)
    incumbent = as_table(incumbent_lists(part.shown().cells, part.length), part.contexts, part.length)
    try:
        lists = list_differences(part, fitted, incumbent, np.ones(part.contexts, bool), reward)
    except CannotTellError as error:
        return {"why": str(error)}
    changed = (part.target != lists.beside).any(axis=1)
    names = holdout.names

    def context_name(row: int) -> Name:
        return names.contexts[int(numbers[row])]

    def item_name(pair: int) -> Name:
        return names.items[int(pairs[pair])]

    return {
        "why": "",
        "model": str(fitted.model),
        "contexts": int(part.contexts),
        "share": float(part.logged.sum() / max(1, held.logged.sum())),
        "changed": int(changed.sum()),
        **{
            kind: [{"context": context_name(row), **_context(part, lists, row)} for row in rows]
            for kind, rows in _chosen(part, lists, changed).items()
        },
        **{
            kind: [{"item": name, "before": before, "after": after} for name, before, after in rows]
            for kind, rows in _items(part, lists, item_name).items()
        },
    }


def expected_loss(gain: FloatArray, doubt: FloatArray) -> FloatArray:
    """E[max(0, −Δ)] of a normal Δ with this mean and standard deviation.

    >>> expected_loss(np.array([0.0, -1.0]), np.array([1.0, 0.0])).round(3).tolist()
    [0.399, 1.0]
    """
    certain = doubt <= 0
    z = np.divide(gain, doubt, out=np.zeros_like(gain), where=~certain)
    spread = doubt * (np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) - z * ndtr(-z))
    return np.asarray(np.where(certain, np.maximum(0.0, -gain), spread))


def _chosen(part: Holdout, lists: ListDifferences, changed: BoolArray) -> dict[str, list[int]]:
    """Contexts whose lists gain most, lose most, and are expected to gain but risk most; by expected reward in all."""
    gain, logged = lists.gain(), part.logged
    risk = expected_loss(gain, lists.doubt) * logged

    def first(kept: BoolArray, key: FloatArray) -> list[int]:
        rows = np.flatnonzero(kept & changed)
        return [int(row) for row in rows[np.argsort(-key[rows], kind="stable")][:MOST_NAMED]]

    return {
        "winners": first(gain > 0, gain * logged),
        "losers": first(gain < 0, -gain * logged),
        "risks": first((gain > 0) & (_worse(gain, lists.doubt) >= _LEAST_RISK), risk),
    }


_LEAST_RISK = 0.05  # probability of being worse below which a context is no risk


def _worse(gain: FloatArray, doubt: FloatArray) -> FloatArray:
    """The probability that the policy's list is worse."""
    z = np.divide(-gain, doubt, out=np.where(gain < 0, np.inf, -np.inf), where=doubt > 0)
    return np.asarray(ndtr(z))


def _context(part: Holdout, lists: ListDifferences, row: int) -> dict[str, float]:
    one = slice(row, row + 1)
    gain, doubt = lists.gain()[one], lists.doubt[one]
    return {
        "lists": int(part.logged[row]),
        "before": float(lists.incumbent[row].sum()),
        "after": float(lists.policy[row].sum()),
        "worse": float(_worse(gain, doubt)[0]),
    }


def _items(part: Holdout, lists: ListDifferences, name: Any) -> dict[str, list[tuple[Name, float, float]]]:
    """Items whose expected reward in this traffic grows and shrinks most, over all contexts."""
    per_pair = []
    for earned, target in ((lists.incumbent, lists.beside), (lists.policy, part.target)):
        there, total = target >= 0, np.zeros(len(part.pair_context))
        total[target[there]] = (earned * part.logged[:, None])[there]
        per_pair.append(total)
    before, after = per_pair
    moved = np.flatnonzero(before != after)
    names: list[Name] = [name(pair) for pair in moved.tolist()]
    today, new = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.0)
    for item, one, other in zip(names, before[moved].tolist(), after[moved].tolist(), strict=True):
        today[item] += one
        new[item] += other

    def first(sign: float) -> list[tuple[Name, float, float]]:
        rows = [(item, today[item], new[item]) for item in today]
        rows = [row for row in rows if sign * (row[2] - row[1]) > 0]
        rows.sort(key=lambda row: (-sign * (row[2] - row[1]), str(row[0])))
        return _rounded(rows[:MOST_NAMED])

    return {"items_up": first(1.0), "items_down": first(-1.0)}


def _rounded(rows: Sequence[tuple[Name, float, float]]) -> list[tuple[Name, float, float]]:
    """Six digits: sums do not depend on the order of contexts beyond that."""
    return [(name, float(f"{before:.6g}"), float(f"{after:.6g}")) for name, before, after in rows]
