"""Tuning: which bound, at which δ, on logs simulated from yours.

The paper's protocol is a parametric bootstrap on the logged lists:

1. Fit a click model to the training lists. Every θ has the posterior of the bound ``anchored``.
2. Draw θ of every item from its posterior: a ground truth, whose best lists A* are known. (Posterior means would make a
   world in which rare items are all alike, and pessimism about them costs nothing.)
3. Simulate clicks on the logged lists under that truth, rank by every setting, and record the regret ``V(A*) − V(Â)``,
   where contexts weigh by their lists.
4. Repeat from 2. The regrets of two settings are compared repetition by repetition.

Then the lists that the best setting and the default find in the real training clicks are compared under a model of
clicks that neither has seen: the fitted click model, with θ from the holdout.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np

from prudent.base.arrays import BoolArray, FloatArray
from prudent.base.errors import LogError, PrudentWarning, UsageError
from prudent.base.numerics.numbering import number_within
from prudent.base.numerics.paired import paired_difference, standard_error, two_sigma
from prudent.base.spec import whole_number
from prudent.bounds import DEFAULT_BOUND, Bound, bounds
from prudent.bounds.base import check_delta
from prudent.click_models.base import ClickModel, FittedModel, click_models
from prudent.click_models.compare import TwoParts, write_chart
from prudent.click_models.selection import HOLDOUT, resolve
from prudent.counts.lists import ListBatch
from prudent.counts.max_rejected import MAX_REJECTED
from prudent.counts.split import By
from prudent.engines.duckdb.engine import DuckDB
from prudent.evaluation.tuning import Confirmation, Setting, Tuning, decide
from prudent.evaluation.tuning_simulation import Arm, Past, confirm
from prudent.storage.manifest import Manifest

BOUNDS = ("anchored", "exposure", "eb", "hoeffding", "mle")
"""The bounds to try by default."""
DELTAS = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
"""The δ to try them at."""
REPETITIONS = 20
MOST_LISTS = 100_000
"""Lists to tune on; of a larger log, all lists of a sample of contexts."""


def tune(
    log: Any,
    test: Any = None,
    *,
    bound: Sequence[str | Bound] | str | Bound = BOUNDS,
    delta: Sequence[float] | float = DELTAS,
    model: str | ClickModel = "auto",
    length: int | None = None,
    repetitions: int = REPETITIONS,
    holdout: float = HOLDOUT,
    by: By = "hash",
    time: str | None = None,
    seed: int = 0,
    to: str | PathLike[str] | None = None,
    engine: DuckDB | None = None,
    max_rejected: float = MAX_REJECTED,
    progress: Callable[[int, int], None] = lambda done, total: None,
    **columns: Any,
) -> Tuning:
    """Tune the bound and δ on logs simulated from this one, and confirm the choice on a holdout.

    Of a log with more than 100,000 lists, a sample of contexts is used, with all of their lists.

    log
        A path, several, a table or a `Log`; `columns` are arguments of `as_log`, such as the names of columns.
    test
        The lists to confirm the choice on, such as those of later days. Without it, a holdout of the log.
    bound, delta
        One or several. Bounds are spellings such as ``"eb"``, which is tried at every δ, or ``"eb(delta=0.3)"``, which
        is tried as it is. The default is always among them.
    model
        The click model to simulate.
    length
        Positions of a list; logged lists are cut there.
    repetitions
        Simulated logs.
    holdout, by, time, seed
        The share of lists to hold out: at random by ``"hash"``, or the latest by ``"time"`` and the column `time`. The
        seed is also that of the simulations.
    to
        A chart to write, ``.svg`` or ``.png``; needs the extra ``report``.
    progress
        Called with the number of repetitions done and their total.

    >>> import prudent, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = prudent.simulate(f"{folder}/log.parquet", lists=500, contexts=5, items=(4, 6), length=3)
    ...     tuning = prudent.tune(f"{folder}/log.parquet", bound="mle", model="pbm", repetitions=2)
    >>> len(tuning.settings)  # mle and the default
    2
    """
    arms = read_arms(bound, delta)
    users = click_models.parse(model) if isinstance(model, str) else model
    if not hasattr(users, "fit"):
        raise UsageError(f"{model!r} is not a click model. Known: {', '.join(click_models)}.")
    repetitions = whole_number("repetitions", repetitions, 2)
    how = TwoParts("tune", test, holdout, by, time, whole_number("seed", seed, 0), columns)
    before, after, about = how.read(log, length, engine or DuckDB(), max_rejected, MOST_LISTS, to)
    seen = before.impressions > 0 if len(before.n) else np.zeros(0, bool)
    if not (seen.any() and before.clicks.any()):
        raise LogError("The training lists have no click: there is nothing to fit a click model to.")
    known = before.made_of(seen)
    past = Past.of(known, _fit(users, known))
    regrets = []
    for repetition in range(repetitions):
        progress(repetition, repetitions)
        regrets.append(past.regrets(arms, np.random.default_rng([seed, repetition])))
    progress(repetitions, repetitions)
    *by_setting, logged = np.array(regrets).T
    settings = _settings([name for arm in arms for name in arm.names], by_setting)
    confirmation = _confirm(past, after, seen, settings[0].bound)
    sure = two_sigma(repetitions)
    choice, matters = decide(settings, confirmation, sure)
    tuning = Tuning(
        settings=settings,
        choice=choice,
        matters=matters,
        confirmation=confirmation,
        logged_regret=float(logged.mean()),
        model=str(past.fitted.model),
        unit=past.fitted.model.unit,
        repetitions=repetitions,
        sure=sure,
        manifest=Manifest(
            "tuning",
            {**about.settings, "length": past.lists.length, "seed": seed},
            about.sources,
            {"train_lists": int(before.n.sum()), "test_lists": int(after.n.sum()), "contexts": len(past.share)},
        ),
    )
    write_chart(tuning, to)
    return tuning


def read_arms(tried: Sequence[str | Bound] | str | Bound, deltas: Sequence[float] | float) -> list[Arm]:
    """The settings to try; the default is always among them, and none is there twice."""
    tried = tried if isinstance(tried, Sequence) and not isinstance(tried, str) else [tried]
    deltas = [deltas] if isinstance(deltas, int | float) else deltas
    if not tried:
        raise UsageError(f"Name a bound to try. Known: {', '.join(bounds)}.")
    for delta in deltas:
        check_delta(delta)
    every = tuple(dict.fromkeys(float(delta) for delta in deltas))
    arms: list[Arm] = []
    for one in [*tried, DEFAULT_BOUND]:
        bound = bounds.parse(one) if isinstance(one, str) else one
        if not hasattr(bound, "lower"):
            raise UsageError(f"{one!r} is not a bound. Known: {', '.join(bounds)}.")
        swept = isinstance(one, str) and "delta" not in one and hasattr(bound, "delta")
        if swept and not every:
            raise UsageError(f"{bound} needs a δ: set delta=, or write it as {one}(delta=0.2).")
        known = {name for arm in arms for name in arm.names}
        arm = Arm(bound, every if swept else (None,))
        left = tuple(delta for delta, name in zip(arm.deltas, arm.names, strict=True) if name not in known)
        if left:
            arms.append(Arm(bound, left))
    return arms


def _fit(model: ClickModel, lists: ListBatch) -> FittedModel:
    """The click model, fitted; ``auto`` chooses it by a holdout of these lists."""
    choice = resolve(model, lambda: lists)
    if choice.assumed:
        warnings.warn(f"{choice.note} Using {choice.model} instead.", PrudentWarning, stacklevel=3)
    return choice.model.fit(lists.cells, lists.length, lists)


def _settings(names: Sequence[str], regrets: Sequence[FloatArray]) -> tuple[Setting, ...]:
    """Every setting against the default, the lowest regret first."""
    default = regrets[names.index(DEFAULT_BOUND)]
    base = float(default.mean())
    settings = []
    for name, regret in zip(names, regrets, strict=True):
        mean, error = paired_difference(regret, default)
        settings.append(
            Setting(
                bound=name,
                regret=float(regret.mean()),
                se=standard_error(regret),
                ratio=float(regret.mean()) / base if base > 0 else None,
                difference=mean,
                difference_se=error,
            )
        )
    # Of equals, the default comes first.
    return tuple(sorted(settings, key=lambda setting: (setting.regret, setting.bound != DEFAULT_BOUND)))


def _confirm(past: Past, after: ListBatch, seen: BoolArray, best: str) -> Confirmation | None:
    """The best setting and the default on holdout lists of training contexts; None where they are the same."""
    if best == DEFAULT_BOUND or not len(after.n):
        return None
    evidence = past.fitted.evidence(after.cells).select(seen)
    mine = replace(evidence, context=past.lists.context, item=number_within(past.lists.context))
    every = np.bincount(after.list_context, after.n, minlength=int(after.context[-1]) + 1)
    later = every[np.unique(after.context[seen])].astype(np.float64)
    if not later.any():
        return None
    return confirm(past, mine, later, best, [bounds.parse(best), bounds.parse(DEFAULT_BOUND)])
