"""Lists in memory in two parts, what models that are fitted to the one say of the other, and how well that fits."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf, isfinite, log, sqrt
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from prudent.arrays import BoolArray, FloatArray, IntArray
from prudent.click_models import Cascade, ClickModel, DependentClick, PositionBased, click_models
from prudent.click_models.base import Fitted
from prudent.comparison.results import MODELS, REFERENCES, Comparison, Score
from prudent.errors import LogError, NotIdentifiedError, UsageError
from prudent.shown import Shown


def read_models(models: Sequence[str | ClickModel]) -> list[ClickModel]:
    """The click models that are meant, each once."""
    models = [models] if isinstance(models, str) else models
    chosen = list(dict.fromkeys(click_models.parse(model) if isinstance(model, str) else model for model in models))
    if not chosen:
        raise UsageError(f"There is no model to compare. Known: {', '.join(MODELS)}.")
    for model in chosen:
        if not isinstance(model, Cascade | DependentClick | PositionBased):
            raise UsageError(f"{model} is no model that can be compared. Known: {', '.join(MODELS)}.")
    return chosen


# --- two parts of a log -----------------------------------------------------------------------------------------------


def split_lists(shown: Shown, holdout: float, seed: int) -> tuple[Shown, Shown]:
    """All lists but a random share, and that share; the same ones however the rows were ordered."""
    ordered = in_order(shown)
    held_out = np.random.default_rng(seed).binomial(ordered.n, holdout)  # equal lists share a row
    return _of_n(ordered, ordered.n - held_out), _of_n(ordered, held_out)


def _of_n(shown: Shown, n: IntArray) -> Shown:
    left = n > 0
    return Shown(shown.context, shown.items[left], shown.clicks[left], n[left])


def in_order(shown: Shown) -> Shown:
    """The lists in an order that depends on nothing but themselves; engines give them in any."""
    order = np.argsort(_fingerprint(shown), kind="stable")
    return Shown(shown.context, shown.items[order], shown.clicks[order], shown.n[order])


def _fingerprint(shown: Shown) -> NDArray[np.uint64]:
    """A number for each list of items and clicks: position by position, the finalizer of MurmurHash3."""
    mixed = np.zeros(len(shown.items), np.uint64)
    for items, clicks in zip(shown.items.T, shown.clicks.T, strict=True):
        mixed = mixed * np.uint64(0x9E3779B97F4A7C15) + (2 * items + clicks).astype(np.uint64)
        for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
            mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(factor)
        mixed ^= mixed >> np.uint64(33)
    return mixed


# --- what a model says of lists ---------------------------------------------------------------------------------------


class Told(NamedTuple):
    """The probability of a click on every item of every list; 0 below the end of a list."""

    chance: FloatArray  # P(Yₖ = 1)
    given: FloatArray  # P(Yₖ = 1 | Y₁ … Yₖ₋₁)


def tell(fitted: Fitted, attraction: FloatArray, clicks: BoolArray) -> Told:
    """What a fitted click model says, where every item of every list has its attraction."""
    parameter = fitted.parameter[: attraction.shape[1]]
    if isinstance(fitted.model, PositionBased):
        return Told(parameter * attraction, parameter * attraction)
    continuation = np.zeros(len(parameter)) if isinstance(fitted.model, Cascade) else parameter
    return Told(attraction * _read(attraction, continuation), attraction * _read(attraction, continuation, clicks))


def _read(attraction: FloatArray, continuation: FloatArray, clicks: BoolArray | None = None) -> FloatArray:
    """The probability that each position is read, without a look at the clicks or given those above it."""
    read = np.ones(attraction.shape)
    for k in range(attraction.shape[1] - 1):
        theta, here = attraction[:, k], read[:, k]
        if clicks is None:
            read[:, k + 1] = here * (1 - theta + continuation[k] * theta)
        else:
            # θ is below 1, and so is the denominator above 0.
            read[:, k + 1] = np.where(clicks[:, k], continuation[k], here * (1 - theta) / (1 - here * theta))
    return read


def _by_item(train: Shown, test: Shown) -> Told:
    cells = train.cells
    rate = (cells.per_pair(cells.click) + 1) / (cells.per_pair() + 2)
    chance = of_items(rate, test)
    return Told(chance, chance)


def _by_position(train: Shown, test: Shown) -> Told:
    shown, clicked = (
        np.pad(total(train.n, of), (0, max(0, test.length - train.length)))[: test.length]
        for of in (train.items >= 0, train.clicks)
    )
    chance = np.where(test.items >= 0, (clicked + 1) / (shown + 2), 0.0)
    return Told(chance, chance)


def of_items(per_pair: FloatArray | BoolArray, lists: Shown) -> FloatArray:
    """A number per pair as one per place in each list; 0 below the end of a list."""
    return np.append(per_pair, 0.0)[lists.items]


# --- scoring ----------------------------------------------------------------------------------------------------------


def compare_lists(train: Shown, test: Shown, models: Sequence[ClickModel]) -> Comparison:
    """Fit models to some lists and score them on others; pairs have the same numbers in both."""
    _check_parts(train, test)
    positions = max(train.length, test.length)

    def tell_by(model: ClickModel) -> Told:
        fitted = model.learn(train.cells, positions)
        evidence = fitted.evidence(train.cells)
        theta = (evidence.positive + 1) / (evidence.examined + 2)
        return tell(fitted, of_items(theta, test), test.clicks)

    tellers: dict[str, Callable[[], Told]] = {str(model): partial(tell_by, model) for model in models}
    tellers |= dict(zip(REFERENCES, (partial(_by_item, train, test), partial(_by_position, train, test)), strict=True))
    train.cells  # noqa: B018 (made once for all, and on nobody's time)
    scores: list[Score] = []
    likelihood: dict[str, FloatArray] = {}
    for name, teller in tellers.items():
        started = perf_counter()
        try:
            score, likelihood[name] = _score(name, teller(), test)
        except (NotIdentifiedError, LogError) as reason:
            score = Score(name, None, None, None, (), (), 0.0, str(reason))
        scores.append(replace(score, seconds=perf_counter() - started, reference=name in REFERENCES))

    def rank_of(score: Score) -> float:
        return inf if score.log_likelihood is None else -score.log_likelihood

    scores.sort(key=rank_of)
    winner = next((s.model for s in scores if not s.reference and s.log_likelihood is not None), None)
    if winner is not None:
        scores = [_behind(score, likelihood[winner], likelihood, test.n) for score in scores]
    return Comparison(
        scores=tuple(scores),
        winner=winner,
        observed_ctr=tuple(_mean_by_position(test.clicks, test).tolist()),
        train_lists=int(train.n.sum()),
        test_lists=int(test.n.sum()),
        unseen=float(
            total(test.n, of_items(train.cells.per_pair() == 0, test)).sum() / total(test.n, test.items >= 0).sum()
        ),
    )


def _check_parts(train: Shown, test: Shown) -> None:
    for part, what in ((train, "to fit models to"), (test, "to score models on")):
        if not len(part.n):
            raise LogError(f"There is no list {what}: the log is too short, or the share held out is.")
    if not train.clicks.any():
        raise LogError(f"Not one of the {train.n.sum():,} lists has a click: there is nothing to learn from.")


def _score(name: str, told: Told, test: Shown) -> tuple[Score, FloatArray]:
    """The score without a place among the others, and the log-likelihood of every list."""
    with np.errstate(divide="ignore"):  # log 0 = −∞ is what an impossible click deserves
        alone, given = (np.log2(np.where(test.clicks, of, 1 - of)) for of in told)
    likelihood = given.sum(axis=1) * log(2)
    impossible = int(test.n[np.isneginf(likelihood)].sum())
    why = ""
    if impossible:
        share = impossible / test.n.sum()
        what = "a second click" if name == "cm" else "clicks"
        why = f"{impossible:,} of {test.n.sum():,} lists ({share:.1%}) have {what} that {name} says cannot happen."
    perplexity, conditional = (2 ** -_mean_by_position(of, test) for of in (alone, given))
    return Score(
        model=name,
        log_likelihood=None if impossible else float(total(test.n, likelihood) / test.n.sum()),
        perplexity=_finite(perplexity.mean()),
        conditional_perplexity=_finite(conditional.mean()),
        by_position=tuple(map(_finite, perplexity.tolist())),
        predicted_ctr=tuple(_mean_by_position(told.chance, test).tolist()),
        seconds=0.0,
        why=why,
    ), likelihood


def _mean_by_position(of: FloatArray | BoolArray, lists: Shown) -> FloatArray:
    """The mean over the lists that have a position; places below the end of a list are 0."""
    return total(lists.n, of) / total(lists.n, lists.items >= 0)


def total(n: IntArray, of: FloatArray | BoolArray) -> FloatArray:
    """The sum over lists, each as often as it was met."""
    # Not by `@`, which goes to as many threads as there are: their number would show in the last digits.
    return np.asarray((of.T * n).T.sum(axis=0), np.float64)


def _finite(value: float) -> float | None:
    return float(value) if isfinite(value) else None


def _behind(score: Score, best: FloatArray, likelihood: Mapping[str, FloatArray], n: IntArray) -> Score:
    """The same, with how far it is behind the best: the mean of the differences on the same lists."""
    if score.log_likelihood is None:
        return score
    difference = best - likelihood[score.model]
    lists = int(n.sum())
    mean = float(total(n, difference) / lists)
    spread = float(total(n, (difference - mean) ** 2))
    return replace(score, behind=mean, behind_se=sqrt(spread / (lists - 1) / lists) if lists > 1 else None)
