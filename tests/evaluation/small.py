"""Logs with policies, drawn by Hypothesis, and how they become arrays."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from prudent.evaluation.holdout import Holdout, make_holdout
from prudent.storage.digest import Digest
from prudent.storage.manifest import Manifest, Source, Tally
from tests import strategies
from tests.evaluation.reference import Logged, Policy

TRAINED_ELSEWHERE = Manifest("policy", sources={"training": Source(("elsewhere",), Tally(9), digest=Digest("g:g:"))})
"""Of a policy that was trained on lists that are in no log here."""


@st.composite
def cases(draw: DrawFn) -> tuple[list[Logged], dict[Any, tuple[Any, ...]]]:
    """A log, and a policy that has lists of it, parts of such, others, items nobody saw, and not all contexts."""
    shown = draw(strategies.logs(max_items=4))
    lists = []
    chance = st.sampled_from([1.0, 0.5, 0.25, 0.3])
    steps: dict[Any, tuple[float, ...]] = {}  # one propensity for equal lists, as a logging policy has it
    for context, items, clicks in shown:
        key = context, items
        if key not in steps:
            steps[key] = tuple(draw(chance) for _ in items)
        lists.append(Logged(context, items, clicks, steps[key]))
    policy: dict[Any, tuple[Any, ...]] = {}
    for context in sorted({one.context for one in lists}):
        own = [one.items for one in lists if one.context == context]
        how = draw(st.sampled_from(["logged", "part", "other", "unseen", "none"]))
        some = draw(st.sampled_from(own))
        known = sorted({item for items in own for item in items})
        if how == "logged":
            policy[context] = some
        elif how == "part":
            policy[context] = some[: draw(st.integers(1, len(some)))]
        elif how == "other":
            policy[context] = tuple(draw(st.permutations(known)))[: draw(st.integers(1, len(known)))]
        elif how == "unseen":
            policy[context] = (*some, "zz")[-draw(st.integers(1, len(some) + 1)) :]
    policy["elsewhere"] = ("a", "b")
    return lists, policy


def arrays(lists: Sequence[Logged], policy: Policy, known: bool = False, whole: bool = False) -> Holdout:
    """As the engine would number them; with propensities of each position, of whole lists, or with none."""
    shown = strategies.as_batch([one[:3] for one in lists])
    pairs = sorted({(one.context, item) for one in lists for item in one.items})
    contexts = sorted({context for context, _ in pairs})
    length = max(map(len, policy.values()))
    target, mine = np.full((len(contexts), length), -1), np.zeros(len(contexts), bool)
    for number, context in enumerate(contexts):
        mine[number] = context in policy
        for k, item in enumerate(policy.get(context, ())):
            target[number, k] = pairs.index((context, item)) if (context, item) in pairs else -2
    propensity = np.full(shown.items.shape, np.nan)
    for row, one in enumerate(lists):
        propensity[row, : len(one.items)] = np.cumprod(one.steps)
        if whole:
            propensity[row, : len(one.items) - 1] = np.nan
    return make_holdout(replace(shown, propensity=propensity if known else None), target, mine)
