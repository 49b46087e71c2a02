"""What rules do to the lists of some contexts, and what each kind of them costs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.base.errors import RulesError
from prudent.bounds import Scores
from prudent.bounds.base import Anchor
from prudent.click_models.evidence import Evidence
from prudent.policies.best_lists import list_values
from prudent.policies.list_arrays import Lists, as_table, highest
from prudent.policies.robust_lists import View, best_worst_case, pick
from prudent.policies.rules.constrained import Limits, constrained_lists
from prudent.policies.rules.match import Marks
from prudent.policies.rules.rules import Rules
from prudent.policies.tables import means


@dataclass(frozen=True)
class Ruled:
    """The lists under the rules."""

    lists: Lists
    changed: BoolArray  # whether the rules changed the list of each context
    kept: BoolArray  # whether it has a list
    per_context: Mapping[str, NDArray[np.generic]]  # what the kinds of rules changed and cost, by column


def columns_of(rules: Rules | None) -> tuple[list[str], list[str]]:
    """The columns of `Ruled.per_context`: values, and what to count."""
    if rules is None:
        return [], []
    counted = [f"ruled_{kind}" for kind in rules.kinds]
    return [f"lost_{kind}" for kind in rules.kinds], [*counted, *(["lacks_new"] if rules.new_share else [])]


def costs(rules: Rules, sums: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """For a manifest, of each kind of rules: the lists it changed, and the value that it costs per logged list."""
    lost = means(sums, [f"lost_{kind}" for kind in rules.kinds])
    lacking = {"new": {"lacking": int(sums["lacks_new"])}} if rules.new_share else {}
    return {
        kind: {"changed": int(sums[f"ruled_{kind}"]), "lost": lost[f"lost_{kind}"], **lacking.get(kind, {})}
        for kind in rules.kinds
    }


def check_positions(rules: Rules, length: int) -> None:
    """Raise where an item is pinned below the end of the longest list."""
    lowest = max((one.position for one in rules.pin), default=0)
    if max(lowest, rules.keep_first) > length:
        what = f"An item is pinned to position {lowest}" if lowest > length else f"keep_first is {rules.keep_first}"
        raise RulesError(f"{what}, but lists have {length} items. Set length= (--length), or change the rule.")


def apply_rules(
    rules: Rules,
    marks: Marks,
    evidence: Evidence,
    scores: Scores,
    lists: Lists,
    eligible: BoolArray,
    kept: BoolArray,
    length: int,
    max_moves: int | None,
    worth: View | None = None,
) -> Ruled:
    """The best lists that the rules allow, from the best lists without rules.

    Kinds of rules come one after the other, in the order of `KINDS`: what the value of a list loses between two of them
    is the cost of the later one, by the estimates of these scores or of `worth`. Contexts that a rule cannot change are
    not ranked again.
    """
    worth = worth or View(evidence, scores)
    contexts = len(kept)
    before = as_table(lists, contexts, length)
    first = before
    none = Marks(marks.excluded, np.zeros_like(marks.buried), np.zeros_like(marks.position), {})
    start = Limits(none, length, max_moves)
    found: dict[str, NDArray[np.generic]] = {}
    for kind, limits, allowed in _stages(rules, marks, evidence, start, eligible):
        affected = kept & _affected(kind, limits, marks, evidence, eligible, allowed, before)
        after = before.copy()
        lost, lacking = np.zeros(contexts), np.zeros(contexts, bool)
        if affected.any():
            new, lacks = constrained_lists(evidence, scores, limits, allowed, affected)
            after[affected] = as_table(new, contexts, length)[affected]
            lost[affected] = _value(worth, before[affected]) - _value(worth, after[affected])
            lacking[affected] = lacks > 0
        found |= {f"lost_{kind}": lost, f"ruled_{kind}": np.any(after != before, axis=1)}
        if kind == "new":
            found["lacks_new"] = lacking
        before = after
    context, place = np.nonzero(before >= 0)
    listed = kept & (before[:, 0] >= 0)  # a rule may exclude every candidate
    return Ruled(Lists(before[context, place], context, place + 1), np.any(before != first, axis=1), listed, found)


def _stages(
    rules: Rules, marks: Marks, evidence: Evidence, limits: Limits, eligible: BoolArray
) -> Iterator[tuple[str, Limits, BoolArray]]:
    """Each kind of rules with all rules up to it, and the pairs that are still eligible."""
    for kind in rules.kinds:
        if kind == "exclude":
            eligible = eligible & ~marks.excluded
        elif kind == "pin":
            limits = replace(limits, marks=replace(limits.marks, position=marks.position))
        elif kind == "keep_first":
            limits = replace(limits, keep_first=rules.keep_first)
        elif kind == "at_most":
            limits = replace(
                limits, at_most=tuple((marks.groups[column], most) for column, most in rules.at_most.items())
            )
        elif kind == "new":
            limits = replace(limits, new_share=rules.new_share, new=evidence.impressions < rules.new_below)
        else:
            limits = replace(limits, marks=replace(limits.marks, buried=marks.buried))
        yield kind, limits, eligible


def _affected(
    kind: str,
    limits: Limits,
    marks: Marks,
    evidence: Evidence,
    eligible: BoolArray,
    allowed: BoolArray,
    lists: IntArray,
) -> BoolArray:
    """The contexts whose lists a kind of rules may change."""
    contexts, length = lists.shape
    named = {"exclude": marks.excluded, "pin": marks.position > 0, "bury": marks.buried}
    if kind in named:
        return np.bincount(evidence.context[eligible & named[kind]], minlength=contexts) > 0
    if kind in ("keep_first", "new"):
        return np.ones(contexts, bool)
    production = evidence.discounted, evidence.impressions
    # An item that was next in the incumbent's order for a while counts too: had it been at its limit, another one would
    # have been compared. None stood further down than all positions of the list and those of fixed items.
    tried = np.zeros(len(allowed), bool)
    tried[lists[lists >= 0]] = True
    tried[highest(evidence.context, production, 2 * length, allowed).row] = True
    affected = np.zeros(contexts, bool)
    for code, most in limits.at_most:
        row = np.flatnonzero(tried & (code >= 0))
        values = int(code.max(initial=-1)) + 1
        groups, held = np.unique(evidence.context[row] * values + code[row], return_counts=True)
        affected[groups[held > most] // max(values, 1)] = True
    return affected


def in_shown_order(view: View) -> View:
    """The same with nothing that may pass an item of the incumbent list: the incumbent list is then the best."""
    never = np.zeros(len(view.scores.lower), bool)
    return view._replace(scores=replace(view.scores, anchor=Anchor(lambda rows: view.scores.lower[rows], never)))


def robust_ruled(views: Sequence[View], candidates: Sequence[Ruled], incumbent: Lists, length: int) -> Ruled:
    """The candidate with the best worst case of each context, as in `robust_lists`, with what rules did to it."""
    contexts = len(candidates[0].kept)
    lists = [one.lists for one in candidates]
    chosen = best_worst_case(views, lists, incumbent, length, contexts)

    def of_chosen(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
        return np.stack(arrays)[chosen, np.arange(contexts)]

    return Ruled(
        pick(lists, chosen),
        of_chosen([one.changed for one in candidates]),
        of_chosen([one.kept for one in candidates]),
        {name: of_chosen([one.per_context[name] for one in candidates]) for name in candidates[0].per_context},
    )


def _value(worth: View, table: IntArray) -> FloatArray:
    """The estimated value of each list."""
    context, place = np.nonzero(table >= 0)
    lists = Lists(table[context, place], context, place + 1)
    return list_values(worth.evidence, lists, worth.scores.mean, table.shape[1], len(table))
