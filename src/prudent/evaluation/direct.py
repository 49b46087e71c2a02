"""A click model fitted to the holdout: the expected reward of the policy's lists, and its uncertainty.

The expected reward of a list is linear in the θ of each of its items, and θ of different items are independent, so that
the expected reward is that of expected θ.

Three things are uncertain.

1. Clicks: each held-out list moves θ of the items it shows. The bootstrap replays that, along with the logged reward.
2. What θ is shrunk towards: a Beta prior, learned from the items that the policy chose (see `fit_prior`).
   They were chosen on other data, so they are a fair sample of such choices, and shrinking to their mean leaves the
   total where it is; shrinking to the mean of all items would pull the chosen ones, which are better, down. What it may
   cost one context, ``(s/(s+n))² μ(1−μ)/(s+1)`` for each item, is added as variance.
3. What contexts share, position parameters and priors: learned again without each of some groups of contexts (the
   jackknife). Few contexts are no sample of anything; then groups of lists are left out, and of the spread that this
   makes, what is there with parameters and priors left as they are has been replayed already.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.base.errors import NotIdentifiedError, PrudentWarning
from prudent.click_models.base import ClickModel, FittedModel, click_models
from prudent.click_models.rewards import COLUMN, EarnedReward, Reward, by_clicks
from prudent.click_models.selection import Choice, candidates, refute, resolve
from prudent.counts.cells import Cells
from prudent.counts.lists import ListBatch
from prudent.evaluation.click_rewards import ClickRewards, learn_click_rewards
from prudent.evaluation.holdout import CannotTellError, Holdout
from prudent.evaluation.item_posterior import (
    ItemCounts,
    Posterior,
    Prior,
    context_mask,
    count_items,
    fit_prior,
    posterior_of,
)

GROUPS = 20
"""Groups of the jackknife."""
MOST_IMPRESSIONS = 400_000
"""Items in lists, of the heaviest contexts and as many again of any, to learn what contexts share from."""
NAMED = "dr(model=pbm(examination=[1, 0.6, 0.4]))"
"""A model of which nothing has to be identified."""
_SEED = 20_260_611  # of samples and groups; any fixed number does


def rewards(fitted: FittedModel, theta: FloatArray, reward: Reward) -> FloatArray:
    """The expected reward of every position of lists, one row each; θ is 0 below their ends."""
    return fitted.rewards(theta, reward)


def slopes(fitted: FittedModel, theta: FloatArray, reward: Reward, part: FloatArray) -> FloatArray:
    """By how much the expected reward, of which each position counts in `part`, grows with each θ.

    The probability of any clicks is linear in each θ, because an item stands once in a list: a difference quotient is
    the derivative, whatever the step.
    """
    grown = np.zeros(theta.shape)
    for k in range(theta.shape[1]):
        low, high = np.maximum(theta[:, k] - _STEP, 0.0), np.minimum(theta[:, k] + _STEP, 1 - _STEP)
        ends = []
        for end in (low, high):
            moved = theta.copy()
            moved[:, k] = end
            ends.append(np.sum(fitted.rewards(moved, reward) * part, axis=1))
        grown[:, k] = (ends[1] - ends[0]) / (high - low)
    return grown


_STEP = 0.02  # small steps would lose digits; at θ = 1 a skip is impossible, and predictions given one make no sense


class Slopes(NamedTuple):
    """By how much the value of each context grows: with the θ of each position, and with the mean reward of a click."""

    theta: FloatArray
    mean: FloatArray


@dataclass(frozen=True, eq=False)
class Direct:
    """A click model, fitted to held-out lists."""

    held: Holdout
    model: ClickModel  # `auto` is allowed
    reward: EarnedReward
    remark: str = ""  # on where its parameters are from

    @cached_property
    def supported(self) -> BoolArray:
        """Contexts of the policy in which all of its items were shown."""
        return np.asarray(self.held.known & ~(self.held.target < -1).any(axis=1))

    @cached_property
    def choice(self) -> Choice:
        """The click model, which `auto` chooses by the held-out clicks."""
        return resolve(self.model, self._learning.shown)

    @cached_property
    def fitted(self) -> FittedModel:
        """The parameters that contexts share, fitted to a sample of them."""
        learning = self._learning
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrudentWarning)  # about the choice of auto, which `note` explains
            try:
                return self.choice.model.fit(learning.cells, self.held.length, learning.shown())
            except NotIdentifiedError as error:
                raise CannotTellError(str(error)) from error

    @cached_property
    def doubt(self) -> str:
        """Why the click model is not to be trusted on these lists; empty where there is no reason."""
        if self.choice.assumed:
            reason = self.note.partition(" Set ")[
                0
            ]  # its advice is for ranking, and here would lead to a model at will
            return (
                f"{reason} Let production vary the order of items, or name the parameters of a model that you know, "
                f"as in {NAMED}."
            )
        return refute(self.choice, self._learning.shown())

    @property
    def note(self) -> str:
        """Which model `auto` has chosen, and why no other."""
        if self.choice.model == self.model:
            return self.remark
        return " ".join(filter(None, [f"The click model is {self.choice.model}.", self.choice.note]))

    @cached_property
    def unidentified(self) -> str:
        """Why these lists do not identify the click model, if the training log did; empty otherwise."""
        trained = self.held.trained
        if self.choice.assumed:
            return self.choice.note if type(trained) is type(candidates()[0]) else ""
        if type(trained) is not type(self.choice.model):
            return ""
        try:
            self.fitted, self._learned_again  # noqa: B018 (needed later, and kept)
        except CannotTellError as error:
            return str(error)
        return ""

    @cached_property
    def prior(self) -> Prior:
        """What θ is shrunk towards."""
        return fit_prior(self._counts, context_mask(self._probed, self.held.contexts) & self.supported)

    @cached_property
    def posterior(self) -> Posterior:
        """What to think of the items of the policy's lists."""
        return posterior_of(self._counts, self.prior)

    @cached_property
    def expected(self) -> FloatArray:
        """The expected reward of every position of the policy's lists."""
        return np.asarray(rewards(self.fitted, self.posterior.theta, self._counted) * self._click.mean)

    @property
    def _counted(self) -> Reward:
        """What a click model expects: where clicks have rewards, clicks."""
        return by_clicks(self.reward)

    @cached_property
    def _click(self) -> ClickRewards:
        """What a click on the items of the policy's lists earns."""
        return learn_click_rewards(self.held) if self.reward == COLUMN else ClickRewards.alike(self.held)

    # Below, `part` has a row per context: the share of each position's reward to count.

    def value(self, part: FloatArray) -> FloatArray:
        """The expected reward of each context."""
        return np.asarray(np.sum(self.expected * part, axis=1))

    def slopes(self, part: FloatArray) -> Slopes:
        """By how much each value grows with each θ, to the end of the policy's longest list, and with mean rewards.

        Below, it would be 0: a long logged list would take the square of time.
        """
        width, slope = max(1, int(self.held.size.max())), np.zeros(part.shape)
        counted = (part * self._click.mean)[:, :width]
        slope[:, :width] = slopes(self.fitted, self.posterior.theta[:, :width], self._counted, counted)
        return Slopes(slope, self._per_mean(part))

    def moves(self, slope: Slopes, rows: int = 100_000) -> FloatArray:
        """How far each list moves the sum of values with these slopes: N · slope · (y − θx)/(s + n) of its items."""
        held = self.held
        times = (held.logged * self.supported)[:, None]
        there = held.target >= 0
        usual = float(self.posterior.theta[there].mean())  # of items that the policy did not choose
        step, theta = np.zeros(len(held.pair_context)), np.full(len(held.pair_context), usual)
        step[held.target[there]] = (slope.theta * times / self.posterior.strength)[there]
        theta[held.target[there]] = self.posterior.theta[there]
        moved = np.zeros(len(held.n))
        for first in range(0, len(held.n), rows):
            some = slice(first, first + rows)
            items, clicks = held.items[some], held.clicks[some]
            own = np.where(items >= 0, theta[items], 0.0)
            examined = self.fitted.examined(own, clicks)
            hits = clicks & (examined > 0)  # a click that the model excludes is no evidence about θ
            moved[some] = np.sum(np.where(items >= 0, step[items], 0.0) * (hits - own * examined), axis=1)
        return moved + self._click.moves(held, slope.mean * times)

    def _per_mean(self, part: FloatArray) -> FloatArray:
        """By how much the value of a context grows with the mean reward of a click on each item: expected clicks."""
        if self.reward != COLUMN:
            return np.zeros(part.shape)
        return part * rewards(self.fitted, self.posterior.theta, self._counted)

    def shrinking(self, slope: Slopes) -> FloatArray:
        """The variance of each context's value, with these slopes, that comes from shrinking θ and mean rewards."""
        of_theta = np.sum(slope.theta**2 * self.posterior.shrinking, axis=1)
        return np.asarray(of_theta + np.sum(slope.mean**2 * self._click.shrinking, axis=1))

    def shrinkage(self, part: FloatArray, contexts: BoolArray) -> float:
        """By which share shrinking may change the reward at places that the policy changes, expected or logged.

        θ changes by ``s/(s+n) √(μ(1−μ)/(s+1))``, one standard deviation, all in one direction: independent errors
        cancel over contexts, and those of a prior that is wrong about items of a kind do not.
        """
        held = self.held
        per_theta = self.expected / np.maximum(self.posterior.theta, 1e-9)
        change = part * per_theta * np.sqrt(self.posterior.shrinking)
        change += self._per_mean(part) * np.sqrt(self._click.shrinking)
        total = expected = logged = 0.0
        for k in range(held.length):
            lists = held.n * (contexts[held.context] & ~held.same[:, k])
            total += float(np.sum(held.per_context(lists) * change[:, k]))
            expected += float(np.sum(held.per_context(lists) * self.expected[:, k]))
            logged += float(np.sum(lists * held.reward_at(k, self.reward)))
        return total / max(expected, logged) if total else 0.0

    def shared(self, part: FloatArray, contexts: BoolArray) -> float:
        """The variance of the mean value over these contexts that comes from what contexts share."""
        probed = contexts[self._probed]
        weight = self._probe.logged * probed
        if not weight.any():
            return 0.0
        counted = (part * self._click.mean)[self._probed]

        def spread(replicates: Sequence[tuple[FloatArray, FittedModel]]) -> float:
            means = [
                np.sum(weight * np.sum(rewards(fitted, theta, self._counted) * counted, axis=1)) / weight.sum()
                for theta, fitted in replicates
            ]
            return float((len(means) - 1) * np.var(means)) if means else 0.0

        common = np.sum(self._click.common * self._per_mean(part), axis=1)[self._probed]
        of_mean = float((np.sum(weight * common) / weight.sum()) ** 2)  # of the mean reward, which all items share
        return of_mean + max(0.0, spread(self._learned_again) - spread(self._replayed))

    # --- what it is learned from -------------------------------------------------------------------------------------

    @cached_property
    def _order(self) -> IntArray:
        return np.random.default_rng(_SEED).permutation(self.held.contexts)

    @cached_property
    def _probed(self) -> IntArray:
        """Any contexts, as many as are enough to learn a prior from."""
        few = np.searchsorted(
            np.cumsum(self.held.logged[self._order]) * self.held.length, MOST_IMPRESSIONS, side="right"
        )
        return np.sort(self._order[: max(few, min(GROUPS, self.held.contexts))])

    @cached_property
    def _probe(self) -> Holdout:
        return self.held.only(context_mask(self._probed, self.held.contexts))

    @cached_property
    def _learned(self) -> IntArray:
        """These, and the contexts with the most lists: there is most to learn about positions."""
        heavy = np.argsort(-self.held.logged, kind="stable")
        few = np.searchsorted(np.cumsum(self.held.logged[heavy]) * self.held.length, MOST_IMPRESSIONS, side="right")
        return np.union1d(self._probed, heavy[:few])

    @cached_property
    def _learning(self) -> Holdout:
        return self.held.only(context_mask(self._learned, self.held.contexts))

    @cached_property
    def _counts(self) -> ItemCounts:
        return count_items(self.held, self.fitted)

    @property
    def _few(self) -> bool:
        return self.held.contexts < GROUPS

    @cached_property
    def _learned_again(self) -> list[tuple[FloatArray, FittedModel]]:
        """θ of the probed contexts, and the fitted model, without each of the groups."""
        replicates = []
        if self._few:
            for left in self._without_lists:
                fitted = self._learn_again(left.cells, left.shown())
                counts = count_items(left, fitted)
                theta = posterior_of(counts, fit_prior(counts, self.supported)).theta
                replicates.append((theta, fitted))
            return replicates
        learning, probe = self._learning, self._probe
        group = np.random.default_rng(_SEED + 1).permutation(np.arange(learning.contexts) % GROUPS)
        of_probed = group[np.searchsorted(self._learned, self._probed)]
        cells = learning.cells  # groups are of whole contexts: what is left out leaves no trace in the others
        for number in range(GROUPS):
            without = np.where(group[learning.context] == number, 0, learning.n)
            lists = learning.shown(without) if self.fitted.model.whole_lists else None
            fitted = self._learn_again(cells.without(group == number), lists)
            counts = count_items(probe, fitted)
            prior = fit_prior(counts, self.supported[self._probed] & (of_probed != number))
            replicates.append((posterior_of(counts, prior).theta, fitted))
        return replicates

    @cached_property
    def _replayed(self) -> list[tuple[FloatArray, FittedModel]]:
        """The same with parameters and prior as they are; nothing where no lists are left out."""
        if not self._few:
            return []
        return [
            (posterior_of(count_items(left, self.fitted), self.prior).theta, self.fitted)
            for left in self._without_lists
        ]

    @cached_property
    def _without_lists(self) -> list[Holdout]:
        """All contexts, without each of the groups of lists."""
        held = self.held
        shift = np.random.default_rng(_SEED + 1).integers(0, GROUPS, len(held.n))
        left = (held.n - (held.n + (shift + number) % GROUPS) // GROUPS for number in range(GROUPS))
        return [replace(held, lists=replace(held.lists, n=n)) for n in left]

    def _learn_again(self, cells: Cells, lists: ListBatch | None) -> FittedModel:
        model = self.fitted.model
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrudentWarning)
            try:
                return model.fit(cells, self.held.length, lists)
            except NotIdentifiedError as error:
                raise CannotTellError(
                    f"{model} is only just identified: without a twentieth of these lists it would not be. Hold out "
                    f"more of them, or name its parameters, as in {NAMED}."
                ) from error


def direct(held: Holdout, model: str | ClickModel, reward: EarnedReward) -> Direct:
    """The model on these lists; estimators with the same model share it."""
    model = click_models.resolve(model)
    if (model, reward) not in held.fits:
        fit = Direct(held, model, reward)
        if held.trained is not None and (why := fit.unidentified):
            name = str(held.trained).partition("(")[0]
            reason = why.partition(". ")[0].removesuffix(".")  # without the advice, which was followed
            remark = f"The parameters of {name} are those of the policy's training log: here, {reason}."
            fit = Direct(held, held.trained, reward, remark)
        held.fits[model, reward] = fit
    kept: Direct = held.fits[model, reward]
    return kept
