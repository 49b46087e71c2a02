"""Comparing click models on held-out lists, and ``auto``: one rule for rank, tune, evaluate, gate and report.

A click model gives every list of clicks a probability. Each model is fitted to one part of the lists and scored on the
other by its log-likelihood per list, ``Σₖ log P(Yₖ | Y₁ … Yₖ₋₁)``, natural logarithms. The perplexity of position k is
``2^(−mean log₂ P(Yₖ))`` over the lists that have it: 1 is perfect, 2 is a coin flip. That of a model is the mean over
positions. Conditional perplexity is the same with ``P(Yₖ | Y₁ … Yₖ₋₁)``.

``auto`` is the model with the highest held-out likelihood; among those within two standard errors of it, the one with
the lowest `ClickModel.precedence`, so that a near tie does not flip from one day to the next.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import inf, isfinite
from time import perf_counter
from typing import Any, ClassVar, NoReturn

import numpy as np

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.base.errors import LogError, NotIdentifiedError, PrudentWarning, UsageError
from prudent.click_models.base import ClickModel, FittedModel, click_models
from prudent.click_models.comparison import REFERENCES, Comparison, Score
from prudent.click_models.likelihood import (
    Prediction,
    log_likelihood,
    mean_difference,
    per_item,
    posterior_mean,
    predict_lists,
    split_lists,
    total,
)
from prudent.click_models.rewards import Reward
from prudent.counts.cells import Cells
from prudent.counts.lists import ListBatch

HOLDOUT = 0.2
"""The share of lists that models are scored on."""
FEWEST_LISTS = 500
"""Lists below which models are not compared: their clicks could not tell them apart."""


@click_models.register("auto")
@dataclass(frozen=True)
class Auto(ClickModel):
    """The registered click model with the best held-out likelihood; see `prudent.click_models.selection`.

    Where lists cannot be compared, the model of the lowest `precedence` that the log identifies.
    """

    unit: ClassVar[str] = "the value of the model chosen"
    reward: ClassVar[Reward] = "clicks"
    compared: ClassVar[bool] = False

    def fit(self, cells: Cells, positions: int, lists: ListBatch | None = None) -> FittedModel:
        """Fit the simplest model that the log identifies: `choose` compares models."""
        return simplest(cells, positions, lists)

    def typical(self, positions: int) -> NoReturn:
        """There is no such model."""
        raise UsageError(f"auto chooses a click model for a log. Name one to simulate: {', '.join(names())}.")


@click_models.register("robust")
@dataclass(frozen=True)
class Robust(Auto):
    """Lists that hold under every plausible click model: those within two standard errors of the best, held out.

    `prudent.rank` gives each context the list of the best *worst* lower bound: of the lists of all plausible models and
    the incumbent list, the one whose lower bound is highest under the model that thinks least of it
    (`prudent.policies.robust_lists`). Where one model is plausible, and for everything but lists, it is ``auto``.
    """


@dataclass(frozen=True)
class Choice:
    """The click model to use, and why."""

    model: ClickModel
    plausible: tuple[ClickModel, ...] = ()  # those that the comparison cannot tell from the best; this one first
    comparison: Comparison | None = None  # that decided; None where the model was named, or lists cannot be compared
    assumed: bool = False  # auto took a model that these lists cannot compare with the simplest one
    note: str = ""

    def to_json(self) -> dict[str, Any] | None:
        """The comparison as a manifest keeps it."""
        if self.comparison is None:
            return None
        keys = (
            "model",
            "log_likelihood",
            "perplexity",
            "conditional_perplexity",
            "behind",
            "behind_se",
            "why",
            "doubt",
        )
        scores = [score for score in self.comparison.scores if not score.reference]
        return {
            "lists": self.comparison.train_lists + self.comparison.test_lists,
            "test_lists": self.comparison.test_lists,
            "winner": self.comparison.winner,
            "scores": [{key: getattr(score, key) for key in keys} for score in scores],
        }


def names() -> list[str]:
    """The models that can be compared, by name."""
    return [name for name in click_models if getattr(click_models[name], "compared", True)]


def candidates() -> list[ClickModel]:
    """One of every registered model, with default settings, the simplest first."""
    models = [click_models[name]() for name in names()]
    return sorted(models, key=lambda model: (model.precedence, str(model)))


def read_models(models: Sequence[str | ClickModel] | str | ClickModel | None) -> list[ClickModel]:
    """The models to compare, each once; all that are registered, where none is named."""
    if models is None:
        return candidates()
    several = models if isinstance(models, Sequence) and not isinstance(models, str) else [models]
    parsed = [click_models.parse(one) if isinstance(one, str) else one for one in several]
    for model in parsed:
        if isinstance(model, Auto) or not hasattr(model, "fit"):
            raise UsageError(f"{model} is not a click model that can be compared. Known: {', '.join(names())}.")
    if not parsed:
        raise UsageError(f"Name a model to compare. Known: {', '.join(names())}.")
    return list(dict.fromkeys(parsed))


# --- auto -------------------------------------------------------------------------------------------------------------


def resolve(model: ClickModel, lists: Callable[[], ListBatch]) -> Choice:
    """The model itself or, for ``auto``, the one that these lists choose."""
    return choose(lists()) if isinstance(model, Auto) else Choice(model)


def choose(lists: ListBatch) -> Choice:
    """The rule of ``auto``."""
    models = candidates()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrudentWarning)  # about models that may not be chosen
        train, test = split_lists(lists, HOLDOUT, 0)
        enough = lists.n.sum() >= FEWEST_LISTS and train.clicks.any() and len(test.n)
        comparison = compare_lists(train, test, models) if enough else None
        possible = [] if comparison is None else comparison.plausible
        if not possible:
            fitted = simplest(lists.cells, lists.length, lists)
            return Choice(fitted.model, assumed=fitted.model != models[0], note=_why_not(models[0], lists))
    chosen = next(model for model in models if str(model) in possible)
    unidentified = comparison is not None and comparison[str(models[0])].log_likelihood is None
    return Choice(
        chosen,
        tuple(model for model in models if str(model) in possible),
        comparison,
        unidentified,
        _why_not(models[0], lists) if unidentified else "",
    )


def choose_single(note: str) -> Choice:
    """The simplest model that reads positions alone, where there is no choice; the note says why."""
    return Choice(next(model for model in candidates() if model.single_impressions), note=note)


REFUTED_AT = 4.0
"""Standard errors behind another model at which held-out lists refute a click model."""
EXCLUDED = 0.01
"""Share of lists with clicks that a click model excludes at which they refute it."""


def refute(choice: Choice, lists: ListBatch) -> str:
    """Why a click model that was named is not to be trusted on these lists; empty where there is no reason.

    Another model is far ahead; or these lists do not identify the simplest one. Then items keep their positions, and
    clicks are as likely under any examination probabilities: no comparison can tell whether the named model is right
    about other positions, unless its parameters are settings.
    """
    if choice.comparison is not None:
        return ""  # auto has compared them
    name, first = str(choice.model), candidates()[0]
    if type(choice.model) is not type(first) and (why := _why_not(first, lists)):
        return f"The holdout cannot compare {name} with {first}. {why.partition(' Set ')[0]}"
    train, test = split_lists(lists, HOLDOUT, 0)
    if lists.n.sum() < FEWEST_LISTS or not train.clicks.any() or not len(test.n):
        return ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrudentWarning)  # about models that are compared only
        comparison = compare_lists(train, test, list(dict.fromkeys([*candidates(), choice.model])))
    score = comparison[name]
    if score.excluded > EXCLUDED:
        return f"The holdout refutes {name}: {score.why}"
    if score.behind is not None and score.behind_se is not None and score.behind > REFUTED_AT * score.behind_se:
        return f"The holdout refutes {name}: {comparison.winner} predicts held-out clicks far better (prudent compare)."
    return ""


def simplest(cells: Cells, positions: int, lists: ListBatch | None) -> FittedModel:
    """The simplest registered model that these identify, fitted; a warning says why the others are not."""
    models = candidates()
    for model, following in pairwise(models):
        try:
            return model.fit(cells, positions, lists)
        except NotIdentifiedError as reason:
            warnings.warn(f"{_finding(reason)} Using {following} instead.", PrudentWarning, stacklevel=4)
    return models[-1].fit(cells, positions, lists)


def _why_not(model: ClickModel, lists: ListBatch) -> str:
    """Why the simplest model cannot be fitted; empty where it can."""
    try:
        model.fit(lists.cells, lists.length, lists)
    except NotIdentifiedError as reason:
        return _finding(reason)
    return ""


def _finding(reason: NotIdentifiedError) -> str:
    """What was found, without the advice that follows it: where another model is taken, nobody has to choose one."""
    return str(reason).partition(". ")[0].removesuffix(".") + "."


# --- rates that are not click models ----------------------------------------------------------------------------------


def _rate_by_item(train: ListBatch, test: ListBatch) -> Prediction:
    cells = train.cells
    clicks = cells.per_pair(cells.click)
    predicted = per_item(posterior_mean(clicks, cells.per_pair() - clicks), test)
    return Prediction(predicted, predicted)


def _rate_by_position(train: ListBatch, test: ListBatch) -> Prediction:
    shown, clicked = (
        np.pad(total(train.n, values), (0, max(0, test.length - train.length)))[: test.length]
        for values in (train.items >= 0, train.clicks)
    )
    predicted = np.where(test.items >= 0, (clicked + 1) / (shown + 2), 0.0)
    return Prediction(predicted, predicted)


# --- scoring ----------------------------------------------------------------------------------------------------------


def compare_lists(train: ListBatch, test: ListBatch, models: Sequence[ClickModel]) -> Comparison:
    """Fit models to some lists and score them on others; pairs have the same numbers in both."""
    _check_parts(train, test)
    predictors: dict[str, Callable[[], Prediction]] = {
        str(one): partial(predict_lists, one, train, test) for one in models
    }
    rates = (partial(_rate_by_item, train, test), partial(_rate_by_position, train, test))
    predictors |= dict(zip(REFERENCES, rates, strict=True))
    train.cells  # noqa: B018 (made once for all, before any model's time is taken)
    scores: list[Score] = []
    likelihood: dict[str, FloatArray] = {}
    for name, predict in predictors.items():
        started = perf_counter()
        try:
            score, likelihood[name] = _score(name, predict(), test)
        except (NotIdentifiedError, LogError) as reason:
            score = Score(name, None, None, None, (), (), 0.0, str(reason))
        scores.append(replace(score, seconds=perf_counter() - started, reference=name in REFERENCES))

    def order(score: Score) -> float:
        return inf if score.log_likelihood is None else -score.log_likelihood

    scores.sort(key=order)
    winner = next((s.model for s in scores if not s.reference and s.log_likelihood is not None), None)
    if winner is not None:
        scores = [_behind(score, likelihood[winner], likelihood, test.n) for score in scores]
    unseen = per_item(train.cells.per_pair() == 0, test)
    return Comparison(
        scores=tuple(scores),
        winner=winner,
        observed_ctr=tuple(_mean_by_position(test.clicks, test).tolist()),
        train_lists=int(train.n.sum()),
        test_lists=int(test.n.sum()),
        unseen=float(total(test.n, unseen).sum() / total(test.n, test.items >= 0).sum()),
    )


def _check_parts(train: ListBatch, test: ListBatch) -> None:
    for part, purpose in ((train, "fit models to"), (test, "score models on")):
        if not len(part.n):
            raise LogError(f"There is no list to {purpose}: the log is too short, or the holdout too small.")
    if not train.clicks.any():
        raise LogError(f"None of the {train.n.sum():,} training lists has a click: no model can be fitted.")


def _score(name: str, predicted: Prediction, test: ListBatch) -> tuple[Score, FloatArray]:
    """The score before models are compared, and the log-likelihood of every list."""
    with np.errstate(divide="ignore"):  # log 0 = −∞: a click that the model excludes
        alone, conditional = (np.log2(np.where(test.clicks, p, 1 - p)) for p in predicted[:2])
    likelihood = log_likelihood(predicted.conditional, test.clicks)
    excluded = int(test.n[np.isneginf(likelihood)].sum())
    lists = int(test.n.sum())
    why = f"{excluded:,} of {lists:,} lists ({excluded / lists:.1%}) have clicks that {name} excludes."
    perplexity, conditional = (2 ** -_mean_by_position(values, test) for values in (alone, conditional))
    return Score(
        model=name,
        log_likelihood=None if excluded else float(total(test.n, likelihood) / lists),
        perplexity=_finite(perplexity.mean()),
        conditional_perplexity=_finite(conditional.mean()),
        by_position=tuple(map(_finite, perplexity.tolist())),
        predicted_ctr=tuple(_mean_by_position(predicted.alone, test).tolist()),
        seconds=0.0,
        why=why if excluded else "",
        doubt=predicted.doubt,
        excluded=excluded / lists,
    ), likelihood


def _mean_by_position(values: FloatArray | BoolArray, lists: ListBatch) -> FloatArray:
    """The mean over the lists that have a position; places below the end of a list are 0."""
    return total(lists.n, values) / total(lists.n, lists.items >= 0)


def _finite(value: float) -> float | None:
    return float(value) if isfinite(value) else None


def _behind(score: Score, best: FloatArray, likelihood: Mapping[str, FloatArray], n: IntArray) -> Score:
    """The score with its distance to the best: the mean of the differences on the same lists."""
    if score.log_likelihood is None:
        return score
    mean, error = mean_difference(best, likelihood[score.model], n)
    return replace(score, behind=mean, behind_se=error)
