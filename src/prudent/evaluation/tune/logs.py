"""Tuning on logs."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from prudent.base.arrays import BoolArray, FloatArray
from prudent.base.errors import LogError, PrudentWarning, UsageError
from prudent.base.spec import whole_number
from prudent.bounds import Bound, bounds
from prudent.bounds.base import check_delta
from prudent.click_models import Auto, ClickModel, click_models
from prudent.click_models.base import Fitted, number_items
from prudent.click_models.compare.logs import HOLDOUT, TwoParts
from prudent.click_models.compare.results import MODELS
from prudent.click_models.compare.scoring import compare_lists, read_models
from prudent.click_models.predict import split_lists
from prudent.counts.lists import ListBatch
from prudent.counts.rejected import MAX_REJECTED
from prudent.counts.split import By
from prudent.engines.duckdb.engine import DuckDB
from prudent.evaluation.tune.results import DEFAULT, Confirmation, Setting, Tuning, decide
from prudent.evaluation.tune.trials import Arm, Past, confirm
from prudent.logs.log import Log
from prudent.research.comparing import difference_of, two
from prudent.research.table import standard_error
from prudent.storage.manifest import Manifest

BOUNDS = ("exposure", "eb", "hoeffding", "mle")
"""What is tried when nothing is said."""
DELTAS = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
"""And at which δ."""
REPETITIONS = 20
MOST = 100_000
"""Lists to tune on; of a larger log, all lists of some contexts."""


def tune(
    log: Log,
    test: Log | None = None,
    bounds: Sequence[str | Bound] = BOUNDS,
    deltas: Sequence[float] | float = DELTAS,
    model: str | ClickModel = "auto",
    length: int | None = None,
    repetitions: int = REPETITIONS,
    holdout: float = HOLDOUT,
    by: By = "hash",
    time: str | None = None,
    seed: int = 0,
    engine: DuckDB | None = None,
    max_rejected: float = MAX_REJECTED,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Tuning:
    """Choose a bound and its δ on the past, and confirm the choice on later lists.

    Of a log with more than 100,000 lists, only some contexts are looked at, with all of their lists.

    test
        Later lists to confirm the choice on. Without it, a share of the log.
    bounds, deltas
        Spellings such as ``"eb"``, which is tried at every δ, or ``"eb(delta=0.3)"``, which is tried as it is. The
        default is always among them.
    model
        That clicks follow. ``auto`` takes the one that foresees held-out clicks of the past best.
    length
        How many items a list has at most; logged lists are cut there.
    repetitions
        Logs to try every setting on.
    holdout, by, time, seed
        How large that share is. By ``"hash"`` it is random, by ``"time"`` it is the latest lists, by the column `time`.
        The seed is also that of the repetitions.
    progress
        Told how many repetitions are done, and of how many.
    """
    arms = read_arms(bounds, deltas)
    believed = click_models.parse(model) if isinstance(model, str) else model
    if not hasattr(believed, "learn"):
        raise UsageError(f"{model!r} is no click model. Known: {', '.join(click_models)}.")
    repetitions = whole_number("repetitions", repetitions, 2)
    how = TwoParts("tune", test, holdout, by, time, whole_number("seed", seed, 0))
    before, after, about = how.read(log, length, engine or DuckDB(), max_rejected, MOST)
    seen = before.impressions > 0 if len(before.n) else np.zeros(0, bool)
    if not (seen.any() and before.clicks.any()):
        raise LogError("There is no click in the past to learn from.")
    known = before.made_of(seen)
    past = Past.of(known, _fit(believed, known))
    errors = []
    for repetition in range(repetitions):
        progress(repetition, repetitions)
        errors.append(past.errors(arms, np.random.default_rng([seed, repetition])))
    progress(repetitions, repetitions)
    *of_settings, logged = np.array(errors).T
    found = _settings([name for arm in arms for name in arm.names], of_settings)
    confirmation = _confirm(past, after, seen, found[0].bound)
    sure = two(repetitions)
    choice, matters = decide(found, confirmation, sure)
    return Tuning(
        settings=found,
        choice=choice,
        matters=matters,
        confirmation=confirmation,
        logged_error=float(logged.mean()),
        model=str(past.fitted.model),
        unit=past.fitted.model.unit,
        repetitions=repetitions,
        sure=sure,
        manifest=Manifest(
            "tuning",
            {**about.settings, "length": past.lists.length, "seed": seed},
            about.sources,
            {"past_lists": int(before.n.sum()), "later_lists": int(after.n.sum()), "contexts": len(past.share)},
        ),
    )


def read_arms(given: Sequence[str | Bound], deltas: Sequence[float] | float) -> list[Arm]:
    """The settings to try; the default is always among them, and none is there twice."""
    given = [given] if isinstance(given, str) else given
    deltas = [deltas] if isinstance(deltas, int | float) else deltas
    if not given:
        raise UsageError(f"There is no bound to try. Known: {', '.join(bounds)}.")
    for delta in deltas:
        check_delta(delta)
    every = tuple(dict.fromkeys(float(delta) for delta in deltas))
    arms: list[Arm] = []
    for one in [*given, DEFAULT]:
        bound = bounds.parse(one) if isinstance(one, str) else one
        if not hasattr(bound, "lower"):
            raise UsageError(f"{one!r} is no bound. Known: {', '.join(bounds)}.")
        swept = isinstance(one, str) and "delta" not in one and hasattr(bound, "delta")
        if swept and not every:
            raise UsageError(f"{bound} needs a δ to be tried at: say which, or write it as {one}(delta=0.2).")
        known = {name for arm in arms for name in arm.names}
        arm = Arm(bound, every if swept else (None,))
        left = tuple(delta for delta, name in zip(arm.deltas, arm.names, strict=True) if name not in known)
        if left:
            arms.append(Arm(bound, left))
    return arms


def _fit(model: ClickModel, past: ListBatch) -> Fitted:
    """The click model, fitted to the past; ``auto`` goes by how well models foresee a part of it."""
    if isinstance(model, Auto):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrudentWarning)  # about models that may not be chosen
            train, held_out = split_lists(past, HOLDOUT, 0)
            enough = train.clicks.any() and len(held_out.n)
            taken = compare_lists(train, held_out, read_models(MODELS)).for_auto if enough else None
        model = model if taken is None else click_models.parse(taken)
    return model.learn(past.cells, past.length)


def _settings(names: Sequence[str], errors: Sequence[FloatArray]) -> tuple[Setting, ...]:
    """Every setting against the default, the lowest error first."""
    default = errors[names.index(DEFAULT)]
    base = float(default.mean())
    found = []
    for name, of in zip(names, errors, strict=True):
        mean, error = difference_of(of, default)
        found.append(
            Setting(
                bound=name,
                error=float(of.mean()),
                se=standard_error(of),
                ratio=float(of.mean()) / base if base > 0 else None,
                difference=mean,
                difference_se=error,
            )
        )
    # Of equals, the default comes first.
    return tuple(sorted(found, key=lambda setting: (setting.error, setting.bound != DEFAULT)))


def _confirm(past: Past, after: ListBatch, seen: BoolArray, best: str) -> Confirmation | None:
    """The best setting and the default on later lists of the contexts of the past; None where they are the same."""
    if best == DEFAULT or not len(after.n):
        return None
    evidence = past.fitted.evidence(after.cells)
    mine = replace(
        evidence,
        context=past.lists.context,
        item=number_items(past.lists.context),
        **{name: getattr(evidence, name)[seen] for name in ("positive", "negative", "impressions")},
    )
    every = np.bincount(after.list_context, after.n, minlength=int(after.context[-1]) + 1)
    later = every[np.unique(after.context[seen])].astype(np.float64)
    if not later.any():
        return None
    return confirm(past, mine, later, best, [bounds.parse(best), bounds.parse(DEFAULT)])
