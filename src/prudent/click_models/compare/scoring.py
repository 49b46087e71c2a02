"""Click models that are fitted to one part of some lists, and how well they foresee the clicks of the other."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf, isfinite
from time import perf_counter

import numpy as np

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.base.errors import LogError, NotIdentifiedError, UsageError
from prudent.click_models import Cascade, ClickModel, DependentClick, PositionBased, click_models
from prudent.click_models.compare.results import MODELS, REFERENCES, Comparison, Score
from prudent.click_models.predict import Told, behind, foresee, log_likelihood, of_items, total
from prudent.counts.lists import ListBatch


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


# --- what is no click model -------------------------------------------------------------------------------------------


def _by_item(train: ListBatch, test: ListBatch) -> Told:
    cells = train.cells
    rate = (cells.per_pair(cells.click) + 1) / (cells.per_pair() + 2)
    chance = of_items(rate, test)
    return Told(chance, chance)


def _by_position(train: ListBatch, test: ListBatch) -> Told:
    shown, clicked = (
        np.pad(total(train.n, of), (0, max(0, test.length - train.length)))[: test.length]
        for of in (train.items >= 0, train.clicks)
    )
    chance = np.where(test.items >= 0, (clicked + 1) / (shown + 2), 0.0)
    return Told(chance, chance)


# --- scoring ----------------------------------------------------------------------------------------------------------


def compare_lists(train: ListBatch, test: ListBatch, models: Sequence[ClickModel]) -> Comparison:
    """Fit models to some lists and score them on others; pairs have the same numbers in both."""
    _check_parts(train, test)
    tellers: dict[str, Callable[[], Told]] = {str(model): partial(foresee, model, train, test) for model in models}
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


def _check_parts(train: ListBatch, test: ListBatch) -> None:
    for part, what in ((train, "to fit models to"), (test, "to score models on")):
        if not len(part.n):
            raise LogError(f"There is no list {what}: the log is too short, or the share held out is.")
    if not train.clicks.any():
        raise LogError(f"Not one of the {train.n.sum():,} lists has a click: there is nothing to learn from.")


def _score(name: str, told: Told, test: ListBatch) -> tuple[Score, FloatArray]:
    """The score without a place among the others, and the log-likelihood of every list."""
    with np.errstate(divide="ignore"):  # log 0 = −∞ is what an impossible click deserves
        alone, given = (np.log2(np.where(test.clicks, of, 1 - of)) for of in told)
    likelihood = log_likelihood(told, test.clicks)
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


def _mean_by_position(of: FloatArray | BoolArray, lists: ListBatch) -> FloatArray:
    """The mean over the lists that have a position; places below the end of a list are 0."""
    return total(lists.n, of) / total(lists.n, lists.items >= 0)


def _finite(value: float) -> float | None:
    return float(value) if isfinite(value) else None


def _behind(score: Score, best: FloatArray, likelihood: Mapping[str, FloatArray], n: IntArray) -> Score:
    """The same, with how far it is behind the best: the mean of the differences on the same lists."""
    if score.log_likelihood is None:
        return score
    mean, error = behind(best, likelihood[score.model], n)
    return replace(score, behind=mean, behind_se=error)
