"""A click model fitted to the holdout: the expected reward of the policy's lists, and its uncertainty.

The expected reward of a list is linear in the θ of each of its items, and θ of different items are independent, so that
the expected reward is that of expected θ.

Three things are uncertain.

1. Clicks: each held-out list moves θ of the items it shows. The bootstrap replays that, along with the logged reward.
2. What θ is shrunk towards: a Beta prior, learned from the items that the policy chose (see `learn_prior`).
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
from scipy.special import expit, logit

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.base.errors import NotIdentifiedError, PrudentWarning
from prudent.click_models.base import ClickModel, FittedModel, click_models
from prudent.click_models.rewards import ObservedReward
from prudent.click_models.selection import Choice, resolve
from prudent.counts.cells import Cells
from prudent.evaluation.holdout import CannotTellError, HeldOut

GROUPS = 20
"""Groups of the jackknife."""
MOST_IMPRESSIONS = 400_000
"""Items in lists, of the heaviest contexts and as many again of any, to learn what contexts share from."""
_CHUNK = 40_000  # lists that become cells at a time
_SEED = 20_260_611  # of samples and groups; any fixed number does


def rewards(fitted: FittedModel, theta: FloatArray, reward: ObservedReward) -> FloatArray:
    """The expected reward of every position of lists, one row each; θ is 0 below their ends."""
    return fitted.rewards(theta, reward)


def slopes(fitted: FittedModel, theta: FloatArray, reward: ObservedReward, part: FloatArray) -> FloatArray:
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


class Trials(NamedTuple):
    """What held-out lists say about the items of the policy's lists, one row per context."""

    clicks: FloatArray
    examined: FloatArray  # Σx, with x the chance that an impression was examined
    squares: FloatArray  # Σx²
    exposure: FloatArray  # log of the share of a context's lists that showed the item
    logged: IntArray  # lists of each context
    there: BoolArray  # whether there is an item

    @property
    def covariates(self) -> FloatArray:
        """What a prior may depend on: exposure, rank and frequency of the context; along the last axis."""
        rank = np.log(np.arange(1, self.clicks.shape[1] + 1))
        lists = np.log(np.maximum(self.logged, 1))[:, None]
        one = np.ones(self.clicks.shape)
        return np.stack([one, self.exposure, rank * one, lists * one], axis=-1)


class Prior(NamedTuple):
    """Beta(μs, (1−μ)s), where logit μ is a sum of covariates."""

    coefficients: FloatArray
    strength: float

    def mean(self, trials: Trials) -> FloatArray:
        """The mean μ of every item."""
        return np.asarray(expit(_dot(trials.covariates, self.coefficients)))


class Belief(NamedTuple):
    """The posterior of the items of the policy's lists, one row per context."""

    theta: FloatArray  # 0 where there is no item
    trials: FloatArray  # s + n, of the prior and of the lists
    shrinking: FloatArray  # the variance of θ that comes from shrinking it


@dataclass(frozen=True, eq=False)
class Direct:
    """A click model, fitted to held-out lists."""

    held: HeldOut
    model: ClickModel  # `auto` is allowed
    reward: ObservedReward

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
        lists = self._learning.shown()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrudentWarning)  # about the choice of auto, which `note` explains
            try:
                return self.choice.model.fit(lists.cells, self.held.length)
            except NotIdentifiedError as error:
                raise CannotTellError(str(error)) from error

    @property
    def assumed(self) -> bool:
        """Whether `auto` took a model that these lists cannot compare with the simplest one."""
        return self.choice.assumed

    @property
    def note(self) -> str:
        """Which model `auto` has chosen, and why no other."""
        if self.choice.model == self.model:
            return ""
        return " ".join(filter(None, [f"The click model is {self.choice.model}.", self.choice.note]))

    @cached_property
    def prior(self) -> Prior:
        """What θ is shrunk towards."""
        return learn_prior(self._trials, _mask(self._probed, self.held.contexts) & self.supported)

    @cached_property
    def belief(self) -> Belief:
        """What to think of the items of the policy's lists."""
        return believe(self._trials, self.prior)

    @cached_property
    def expected(self) -> FloatArray:
        """The expected reward of every position of the policy's lists."""
        return rewards(self.fitted, self.belief.theta, self.reward)

    # Below, `part` has a row per context: the share of each position's reward to count.

    def value(self, part: FloatArray) -> FloatArray:
        """The expected reward of each context."""
        return np.asarray(np.sum(self.expected * part, axis=1))

    def moves(self, part: FloatArray, rows: int = 100_000) -> FloatArray:
        """How far each list moves the sum of these values: N · slope · (y − θx)/(s + n) of each item it shows."""
        held = self.held
        slope = slopes(self.fitted, self.belief.theta, self.reward, part) * (held.logged * self.supported)[:, None]
        there = held.target >= 0
        usual = float(self.belief.theta[there].mean())  # of items that the policy did not choose
        step, theta = np.zeros(len(held.pair_context)), np.full(len(held.pair_context), usual)
        step[held.target[there]] = (slope / self.belief.trials)[there]
        theta[held.target[there]] = self.belief.theta[there]
        moved = np.zeros(len(held.n))
        for first in range(0, len(held.n), rows):
            some = slice(first, first + rows)
            items, clicks = held.items[some], held.clicks[some]
            own = np.where(items >= 0, theta[items], 0.0)
            examined = self.fitted.examined(own, clicks)
            hits = clicks & (examined > 0)  # a click that the model excludes is no evidence about θ
            moved[some] = np.sum(np.where(items >= 0, step[items], 0.0) * (hits - own * examined), axis=1)
        return moved

    def shrinking(self, part: FloatArray) -> FloatArray:
        """The variance of each context's value that comes from shrinking θ."""
        slope = slopes(self.fitted, self.belief.theta, self.reward, part)
        return np.asarray(np.sum(slope**2 * self.belief.shrinking, axis=1))

    def shared(self, part: FloatArray, contexts: BoolArray) -> float:
        """The variance of the mean value over these contexts that comes from what contexts share."""
        probed = contexts[self._probed]
        weight = self._probe.logged * probed
        if not weight.any():
            return 0.0

        def spread(replicates: Sequence[tuple[FloatArray, FittedModel]]) -> float:
            means = [
                np.sum(weight * np.sum(rewards(fitted, theta, self.reward) * part[self._probed], axis=1)) / weight.sum()
                for theta, fitted in replicates
            ]
            return float((len(means) - 1) * np.var(means)) if means else 0.0

        return max(0.0, spread(self._learned_again) - spread(self._replayed))

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
    def _probe(self) -> HeldOut:
        return self.held.only(_mask(self._probed, self.held.contexts))

    @cached_property
    def _learned(self) -> IntArray:
        """These, and the contexts with the most lists: there is most to learn about positions."""
        heavy = np.argsort(-self.held.logged, kind="stable")
        few = np.searchsorted(np.cumsum(self.held.logged[heavy]) * self.held.length, MOST_IMPRESSIONS, side="right")
        return np.union1d(self._probed, heavy[:few])

    @cached_property
    def _learning(self) -> HeldOut:
        return self.held.only(_mask(self._learned, self.held.contexts))

    @cached_property
    def _trials(self) -> Trials:
        return try_items(self.held, self.fitted)

    @property
    def _few(self) -> bool:
        return self.held.contexts < GROUPS

    @cached_property
    def _learned_again(self) -> list[tuple[FloatArray, FittedModel]]:
        """θ of the probed contexts, and the fitted model, without each of the groups."""
        replicates = []
        if self._few:
            for left in self._without_lists:
                fitted = self._learn_again(left.shown().cells)
                trials = try_items(left, fitted)
                theta = believe(trials, learn_prior(trials, self.supported)).theta
                replicates.append((theta, fitted))
            return replicates
        learning, probe = self._learning, self._probe
        group = np.random.default_rng(_SEED + 1).permutation(np.arange(learning.contexts) % GROUPS)
        of_probed = group[np.searchsorted(self._learned, self._probed)]
        for number in range(GROUPS):
            without = np.where(group[learning.context] == number, 0, learning.n)
            fitted = self._learn_again(learning.shown(without).cells)
            trials = try_items(probe, fitted)
            prior = learn_prior(trials, self.supported[self._probed] & (of_probed != number))
            replicates.append((believe(trials, prior).theta, fitted))
        return replicates

    @cached_property
    def _replayed(self) -> list[tuple[FloatArray, FittedModel]]:
        """The same with parameters and prior as they are; nothing where no lists are left out."""
        if not self._few:
            return []
        return [(believe(try_items(left, self.fitted), self.prior).theta, self.fitted) for left in self._without_lists]

    @cached_property
    def _without_lists(self) -> list[HeldOut]:
        """All contexts, without each of the groups of lists."""
        held = self.held
        shift = np.random.default_rng(_SEED + 1).integers(0, GROUPS, len(held.n))
        left = (held.n - (held.n + (shift + number) % GROUPS) // GROUPS for number in range(GROUPS))
        return [replace(held, lists=replace(held.lists, n=n)) for n in left]

    def _learn_again(self, cells: Cells) -> FittedModel:
        model = self.fitted.model
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrudentWarning)
            try:
                return model.fit(cells, self.held.length)
            except NotIdentifiedError as error:
                raise CannotTellError(
                    f"{model} is only just identified: without a twentieth of these lists it would not be. Hold out "
                    "more of them, or ask another model, as in dm(model=dcm)."
                ) from error


def _mask(numbers: IntArray, size: int) -> BoolArray:
    mask = np.zeros(size, bool)
    mask[numbers] = True
    return mask


def try_items(held: HeldOut, fitted: FittedModel) -> Trials:
    """Clicks and examinations of the items of the policy's lists, contexts in chunks."""
    clicks, examined, squares, impressions = (np.zeros(held.target.shape) for _ in range(4))
    lists = np.cumsum(np.bincount(held.context, minlength=held.contexts))
    first = 0
    while first < held.contexts:
        done = lists[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(lists, done + _CHUNK, side="right")))
        chunk = held.only(_mask(np.arange(first, last), held.contexts))
        there = chunk.target >= 0
        columns = _try_pairs(fitted, chunk.shown().cells)
        for table, column in zip((clicks, examined, squares, impressions), columns, strict=True):
            table[first:last][there] = column[chunk.target[there]]
        first = last
    exposure = np.log((impressions + 0.5) / (held.logged[:, None] + 1))
    return Trials(clicks, examined, squares, exposure, held.logged, held.target != -1)


def _try_pairs(fitted: FittedModel, cells: Cells) -> tuple[FloatArray, ...]:
    """Clicks, Σx, Σx² and impressions of every pair."""
    # Not n₊ + n₋, which serves bounds: where examinations are expectations, n₋ = max(0, Σx − ΣY) makes a whole trial of
    # an item that was shown once, and clicked, and its θ comes out too small.
    evidence = fitted.evidence(cells)
    return evidence.positive, evidence.expected, evidence.squares, evidence.impressions


_STRENGTH = 0.5, 1_000.0  # limits of s
_ROUNDS = 30


def learn_prior(trials: Trials, contexts: BoolArray) -> Prior:
    """The prior of the items that the policy chose in these contexts.

    Its mean follows exposure, rank and frequency: a ranker that is any good shows better items more, a policy does
    better where there is more to learn from, and shrinking what was rarely shown to the mean of all would be wrong both
    times. It solves Σ v(Y − μn)z = 0 with v = s/(s + n), so that what is shrunk most has most to say in where to; and s
    fits the spread, ``E(Y − μn)² = μn − μ²q + (n² − q) μ(1 − μ)/(s + 1)`` with q = Σx².
    """
    seen = contexts[:, None] & trials.there & (trials.examined > 0)
    y, n, q, z = trials.clicks[seen], trials.examined[seen], trials.squares[seen], trials.covariates[seen]
    coefficients, strength = np.zeros(z.shape[1]), 5.0
    if not y.size:
        return Prior(coefficients, strength)
    rate = (y.sum() + 0.5) / (n.sum() + 1)
    coefficients[0] = logit(min(rate, 0.99))
    centre = z[:, 1:].mean(axis=0)
    z = np.hstack([z[:, :1], z[:, 1:] - centre])
    for _ in range(_ROUNDS):
        mean = expit(_dot(z, coefficients))
        weight = strength / (strength + n)
        slope = np.array([np.sum(column * weight * (y - mean * n)) for column in z.T])
        bend = weight * n * mean * (1 - mean)
        information = np.array([[np.sum(one * two * bend) for two in z.T] for one in z.T])
        # A unit of evidence for 0 holds what the log is silent about, such as ranks where all lists have one item.
        step = np.linalg.solve(information + np.eye(len(slope)), slope - np.append(0.0, coefficients[1:]))
        coefficients = np.clip(coefficients + step / max(1.0, float(np.abs(step).max())), -15.0, 15.0)
        more = np.sum(weight**2 * ((y - mean * n) ** 2 - mean * n + mean**2 * q))
        most = np.sum(weight**2 * (n * n - q) * mean * (1 - mean))
        # Items that were tried once say nothing about the spread; then s stays as it is.
        correlation = more / most if most > 1e-9 else 1 / (strength + 1)
        before, strength = strength, float(np.clip(1 / max(correlation, 1e-9) - 1, *_STRENGTH))
        if np.abs(step).max() < 1e-10 and abs(strength - before) < 1e-10 * before:
            break
    coefficients[0] -= np.sum(centre * coefficients[1:])
    return Prior(coefficients, strength)


def _dot(table: FloatArray, vector: FloatArray) -> FloatArray:
    """By numpy's own sums: products of matrices go to as many threads as there are, and show it in the last digits."""
    return np.asarray(np.sum(table * vector, axis=-1))


def believe(trials: Trials, prior: Prior) -> Belief:
    """The posterior of every item of the policy's lists."""
    mean, strength = prior.mean(trials), prior.strength
    total = trials.examined + strength
    # Items with more clicks than expected examinations have a θ above 1 where s is small.
    theta = np.where(trials.there, np.minimum((trials.clicks + mean * strength) / total, 0.999), 0.0)
    shrinking = np.where(trials.there, (strength / total) ** 2 * mean * (1 - mean) / (strength + 1), 0.0)
    return Belief(theta, total, shrinking)


def direct(held: HeldOut, model: str | ClickModel, reward: ObservedReward) -> Direct:
    """The model on these lists; estimators with the same model share it."""
    model = click_models.resolve(model)
    if (model, reward) not in held.fits:
        held.fits[model, reward] = Direct(held, model, reward)
    fit: Direct = held.fits[model, reward]
    return fit
