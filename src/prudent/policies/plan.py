"""What ranks any contexts: `learn` fits it to samples of them, and `Plan` applies it to some at a time."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.base.errors import LogError, PrudentWarning, UsageError
from prudent.base.spec import whole_number
from prudent.base.text import join_names
from prudent.bounds import Bound, Scores, bounds
from prudent.bounds.groups import Effects
from prudent.click_models import ClickModel, Evidence, click_models
from prudent.click_models.base import FittedModel, check_cells
from prudent.click_models.selection import Auto, Choice, Robust, choose_single, resolve
from prudent.counts.counts import Counts
from prudent.counts.groupings import NO_GROUPINGS, UNGROUPED, GroupBy, Groupings
from prudent.counts.index import Part
from prudent.logs.log import NO_CLICKS
from prudent.policies.best_lists import best_lists, list_values
from prudent.policies.feature_signals import (
    LEAK,
    NO_FEATURES,
    FeatureRequest,
    FeatureSignals,
)
from prudent.policies.group_terms import knows_too_much
from prudent.policies.incumbent import in_production_order
from prudent.policies.list_arrays import Lists, as_table, only
from prudent.policies.list_bound import list_lower_bounds
from prudent.policies.robust_lists import View
from prudent.policies.rules.apply import Ruled, apply_rules, check_positions, in_shown_order, robust_ruled
from prudent.policies.rules.match import BoundRules
from prudent.policies.scorer import Groups, Scorer, check_names, fit_scorer
from prudent.storage.run import NameColumn


class Request(NamedTuple):
    """Checked arguments of `rank`."""

    model: ClickModel
    bound: Bound
    length: int | None
    min_lists: int
    max_moves: int | None
    groups: GroupBy = UNGROUPED
    rules: BoundRules | None = None
    unseen: bool = False  # whether contexts without a logged list get one
    features: FeatureRequest = NO_FEATURES


def check_request(
    model: str | ClickModel,
    bound: str | Bound,
    length: int | None,
    min_lists: int,
    max_moves: int | None,
    groups: GroupBy = UNGROUPED,
    unseen: bool = False,
    features: FeatureRequest = NO_FEATURES,
) -> Request:
    """The arguments that all engines share, checked."""
    return Request(
        click_models.resolve(model),
        bounds.resolve(bound),
        None if length is None else whole_number("length", length, 1),
        whole_number("min_lists", min_lists, 0),
        None if max_moves is None else whole_number("max_moves", max_moves, 0),
        groups,
        unseen=unseen,
        features=features.check(),
    )


class Extent(NamedTuple):
    """How much there is to rank."""

    lists: int  # logged, unweighted
    clicks: float
    positions: int  # of the longest list
    pairs: int
    contexts: int  # that get a list
    unseen: int  # of these, contexts without a logged list
    too_few_lists: int  # contexts left out because of min_lists
    without_candidates: int  # contexts left out because no item is eligible
    most_eligible: int  # items in one context
    most_listed: int  # the same, among contexts that get a list


def learn(
    request: Request,
    extent: Extent,
    counts: Counts,
    samples: Callable[[], tuple[Part, Part]],
    groups: Groups | None = None,
    features: FeatureSignals | None = None,
) -> "Plan":
    """Fit what all contexts share, from the two samples of `prudent.counts.sampling` and the totals of groups."""
    check_names(groups, features)
    if not extent.clicks:
        raise LogError(f"Not one of the {extent.lists:,} lists has a click: {NO_CLICKS}")
    if not extent.contexts:
        raise LogError(f"No context has a candidate and {request.min_lists:,} logged lists: there is nothing to rank.")
    # No logged or eligible list is longer.
    length = min(request.length or extent.positions, max(extent.most_eligible, extent.positions))
    choice = _choose(request.model, counts)
    heavy, fair = samples()

    def fit(model: ClickModel) -> tuple[Scorer, Evidence]:
        lists = counts.sample() if model.whole_lists else None
        check_cells(model, heavy.cells)
        return fit_scorer(
            request.bound, model.fit(heavy.cells, extent.positions, lists), fair, extent.pairs, groups, features
        )

    (fitted, bound, groupings, effects, features), evidence = fit(choice.model)
    if fitted.doubt:
        warnings.warn(fitted.doubt, PrudentWarning, stacklevel=3)
    if features is not None and features.outcome == LEAK:
        warnings.warn(f"Features: {knows_too_much(join_names(features.names))}", PrudentWarning, stacklevel=3)
    rivals = choice.plausible[1:] if isinstance(request.model, Robust) else ()
    if min(length, extent.most_listed) > extent.positions:
        warnings.warn(
            f"Some lists are longer than any in the log, which ends at position {extent.positions}: the log has no "
            "data on the positions below, and they add nothing to the value.",
            PrudentWarning,
            stacklevel=3,
        )
    scores = bound.score(evidence.select(evidence.context == evidence.context[:1]))  # what kind of scores they are
    if request.max_moves is not None and scores.anchor is None:
        raise UsageError(f"{request.bound} does not start from the incumbent list: max_moves needs bound=anchored.")
    if request.rules is not None:
        check_positions(request.rules.rules, length)
    return Plan(
        choice,
        fitted,
        bound,
        length,
        request.min_lists,
        request.max_moves,
        bound.fitted(evidence),
        scores.list_level,
        request.unseen,
        groupings,
        effects,
        request.rules,
        tuple(fit(model)[0] for model in rivals),
        features,
    )


def _choose(model: ClickModel, counts: Counts) -> Choice:
    """The click model, chosen by the lists that counts keep where it is `auto`."""
    if counts.tally.reward:
        choice = _choose_for_rewards(model)
    elif counts.tally.unit == "impression" and isinstance(model, Auto):
        choice = choose_single("Single impressions do not tell click models apart, and most need whole lists.")
    else:
        choice = resolve(model, counts.sample)
    if choice.note:
        warnings.warn(f"{choice.note} Using {choice.model} instead.", PrudentWarning, stacklevel=3)
    return choice


def _choose_for_rewards(model: ClickModel) -> Choice:
    """The click model under which a list earns Σ P(examined) × E(reward | examined), whatever its other items are."""
    if isinstance(model, Robust):
        raise UsageError("robust compares lists under several click models, of which pbm alone knows rewards: use pbm.")
    if isinstance(model, Auto):
        return choose_single("")
    if not model.single_impressions:
        raise UsageError(
            f"{model} cannot rank by rewards. Its lists are worth the {model.unit}, and what is examined depends on "
            "the clicks above, which better items bring about: what a list earns is not the sum over its items. Use "
            "pbm, or count the log without rewards."
        )
    return Choice(model)


@dataclass(frozen=True)
class Plan:
    """All it takes to rank any contexts; the list of one does not depend on which others are ranked with it."""

    choice: Choice
    fitted: FittedModel
    bound: Bound
    length: int
    min_lists: int
    max_moves: int | None
    prior: Mapping[str, Any]  # fitted by the bound; plain JSON
    list_level: float | None  # as in `Scores`
    unseen: bool = False  # as in `Request`
    groupings: Groupings = NO_GROUPINGS
    effects: Effects | None = None  # of groups
    rules: BoundRules | None = None
    rivals: tuple[Scorer, ...] = ()  # the other click models under which lists are to hold
    features: FeatureSignals | None = None

    def score(self, part: Part) -> View:
        """The evidence of every pair, and its scores."""
        return self._scorer.score(part)

    @property
    def _scorer(self) -> Scorer:
        return Scorer(self.fitted, self.bound, self.groupings, self.effects, self.features)

    @property
    def results(self) -> dict[str, Any]:
        """The entries of a manifest about what was fitted and how the click model was chosen."""
        return {
            "fitted": {
                **{name: values.tolist() for name, values in self.fitted.parameters.items()},
                **({"prior": dict(self.prior)} if self.prior else {}),
                **({"groups": self.effects.to_json()} if self.effects else {}),
                **({"features": self.features.to_json()} if self.features else {}),
            },
            **({"doubt": self.fitted.doubt} if self.fitted.doubt else {}),
            "comparison": self.choice.to_json(),
            **({"plausible": [str(model) for model in self.choice.plausible]} if self.rivals else {}),
        }

    def rank(self, part: Part) -> "Ranked":
        """The best list of every context."""
        cells = part.cells
        evidence = self._scorer.evidence(part)
        lists = cells.lists_per_context()
        has_candidates = np.bincount(cells.context[part.eligible], minlength=cells.contexts) > 0
        kept = has_candidates & ((lists >= self.min_lists) | (self.unseen & (lists == 0)))
        shown = evidence.impressions > 0
        production = partial(in_production_order, cells.context, evidence.discounted, evidence.impressions, self.length)
        incumbent = production(shown)
        possible = incumbent
        if not np.array_equal(shown, part.eligible):
            possible = production(part.eligible, self.bound.preference(evidence))
        if self.rules is None and not self.rivals:
            listed = np.zeros(cells.pairs, bool)
            listed[incumbent.row] = listed[possible.row] = True
            scores = self.bound.score_lists(evidence, listed)
        else:  # a rule or another click model may bring up any item
            scores = self.bound.score(evidence)
        own = best_lists(evidence, scores, self.length, part.eligible, self.max_moves, possible)
        view, size = View(evidence, scores), (self.length, cells.contexts)
        ruled, hedged = self._ruled(part, view, own, kept), np.zeros(cells.contexts, bool)
        if self.rivals:
            alone, ruled = ruled, self._robust(part, view, ruled, possible, kept)
            hedged = differences(ruled.lists, alone.lists, *size)
        new, kept = ruled.lists, ruled.kept
        incumbent = only(incumbent, kept)
        other = differences(new, incumbent, *size)

        def worth(lists: Lists) -> dict[str, FloatArray]:
            return {
                "value": list_values(evidence, lists, scores.mean, *size),
                "lower": list_lower_bounds(evidence, lists, scores, *size),
            }

        values, old = worth(new), worth(only(incumbent, other))
        incumbent_values = {f"incumbent_{name}": np.where(other, old[name], value) for name, value in values.items()}
        clicked = cells.per_context(cells.codes.click)[0] > 0
        per_context = {
            "lists": lists,
            **values,
            **incumbent_values,
            # The rest is no evidence and no rule, but how a bound treats items without a click.
            "differ": other & (clicked | ruled.changed),
            # A context without a list has no incumbent.
            "unclicked": other & ~(clicked | ruled.changed) & (lists > 0),
            "hedged": hedged,
            "kept": kept,
            **ruled.per_context,
        }
        return Ranked(new, columns(evidence, scores, new.row), per_context)

    def _robust(self, part: Part, view: View, own: Ruled, incumbent: Lists, kept: BoolArray) -> Ruled:
        """The lists that also hold under the other plausible click models, each of them under the rules."""
        candidates = [own]
        views = [view, *(rival.score(part) for rival in self.rivals)]
        for one in views[1:]:
            theirs = best_lists(*one, self.length, part.eligible, self.max_moves, incumbent)
            candidates.append(self._ruled(part, one, theirs, kept, worth=view))
        candidates.append(self._ruled(part, in_shown_order(view), incumbent, kept))
        return robust_ruled(views, candidates, incumbent, self.length)

    def _ruled(self, part: Part, view: View, best: Lists, kept: BoolArray, worth: View | None = None) -> Ruled:
        """The lists under the rules; without any, the best ones."""
        best = only(best, kept)
        if self.rules is None:
            return Ruled(best, np.zeros(len(kept), bool), kept, {})
        marks = self.rules.marks(part)
        size = self.length, self.max_moves
        return apply_rules(self.rules.rules, marks, *view, best, part.eligible, kept, *size, worth)


@dataclass(frozen=True)
class Ranked:
    """The lists of some contexts."""

    lists: Lists
    columns: Mapping[str, NDArray[Any]]  # of every listed item
    per_context: Mapping[str, NDArray[Any]]

    def listed(self, part: Part) -> dict[str, NDArray[Any] | NameColumn]:
        """The lists as columns."""
        new = self.lists
        names = {"context": part.contexts.take(new.context), "item": part.items.take(new.row)}
        return {**names, "rank": new.rank.astype(np.int32), **self.columns}


def columns(evidence: Evidence, scores: Scores, rows: IntArray) -> dict[str, NDArray[Any]]:
    """The columns of a policy for some pairs; NaN where a bound has no interval or no anchor."""
    none = np.full(len(rows), np.nan)
    return {
        "lower": scores.lower[rows],
        "mean": scores.mean[rows],
        "upper": none if scores.upper is None else scores.upper(rows),
        "stay": none if scores.anchor is None else scores.anchor.stay(rows),
        "positive": evidence.positive[rows],
        "negative": evidence.negative[rows],
        "impressions": np.rint(evidence.impressions[rows]).astype(np.int64),
    }


def differences(new: Lists, incumbent: Lists, length: int, contexts: int) -> BoolArray:
    """Whether the two lists of each context differ in an item or its place."""
    return np.asarray(np.any(as_table(new, contexts, length) != as_table(incumbent, contexts, length), axis=1))
