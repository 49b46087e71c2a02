"""`prudent.verify`: whether the lists of a policy earn what was promised, night after night after the launch."""

import warnings
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtri

from prudent.base.arrays import FloatArray, IntArray
from prudent.base.errors import PrudentWarning
from prudent.base.spec import check_number, check_share
from prudent.click_models.rewards import ObservedReward
from prudent.counts.max_rejected import MAX_REJECTED
from prudent.engines.duckdb.engine import DuckDB
from prudent.evaluation.anytime_test import Earned
from prudent.evaluation.holdout_log import HoldoutLog, PolicyLike, open_holdout
from prudent.evaluation.intervals import Settings
from prudent.evaluation.promise import Promise, promise_of
from prudent.evaluation.verification import Drift, Verification
from prudent.logs.formats import find_files, is_paths
from prudent.storage.files import check_output

_MOST_NAMED = 20  # contexts that drifted, by name


def verify(
    policy: PolicyLike,
    log: Any,
    *,
    promised: float | None = None,
    tolerance: float = 0.0,
    reward: ObservedReward = "clicks",
    confidence: float = 0.95,
    to: str | PathLike[str] | None = None,
    engine: DuckDB | None = None,
    max_rejected: float = MAX_REJECTED,
    **columns: Any,
) -> Verification:
    """Compare what a policy's lists earned after its launch with what they were promised to earn.

    ``log`` is all lists since the launch, of one night or of sixty. The limits hold at all times at once: `verify` may
    run every night, and a false alarm on any of them has a probability of at most 1 − `confidence`, if the estimates of
    the policy are right (`prudent.evaluation.promise`) and what lists earn does not depend on each other.

    Lists count that show what the policy has for their context. It alerts where they earn significantly less than
    promised, beyond the uncertainty of the promise itself.

    policy, log
        Objects or paths; `columns` are arguments of `as_log`, such as the names of the log's columns.
    promised
        The reward per list that was promised, such as the lower limit of `prudent.evaluate`; by default the value of
        the policy's estimates, with their uncertainty.
    tolerance
        A share by which lists may earn less than promised without an alert.
    to
        A file for the metrics: JSON, or the text format of Prometheus where the name ends in ``.prom``.

    >>> import prudent, pyarrow as pa
    >>> lists = [{"context": "shoes", "items": ["i1", "i2"], "clicks": [1, 0]}] * 90
    >>> policy = prudent.rank(pa.Table.from_pylist(lists), "cm")
    >>> after = [{"context": "shoes", "items": ["i1", "i2"], "clicks": [0, 0]}] * 90
    >>> prudent.verify(policy, pa.Table.from_pylist(after), reward="any-click").verdict
    'alert'
    """
    Settings(reward, confidence)
    check_share("tolerance", tolerance)
    if promised is not None:
        check_number("promised", promised, above=0, example="1.2 clicks per list")
    if to is not None:
        inputs: tuple[Any, Any] = (policy, log)
        read = [file for source in inputs if is_paths(source) for file in find_files(source)]
        check_output(to, read, parquet=False)
    after = open_holdout(policy, log, engine, max_rejected, **columns)
    if after.leakage:
        warnings.warn(f"{after.leakage} Give the log after the launch.", PrudentWarning, stacklevel=2)
    known = after.lists.known
    whole = Promise(known, np.full(len(known), promised or 0.0), np.zeros(len(known)))
    found = verified(after, whole if promised is not None else promise_of(after, reward), reward, confidence, tolerance)
    if to is not None:
        found.write(Path(to))
    return found


def verified(
    after: HoldoutLog, promise: Promise, reward: ObservedReward, confidence: float, tolerance: float
) -> Verification:
    """The comparison, of a log that is read."""
    held = after.lists
    served = held.whole
    context, n, x = held.context[served], held.n[served], held.reward(reward)[served]
    lists, traffic = int(n.sum()), int(held.n[held.known[held.context]].sum())
    most = float(held.upto.max(initial=1)) if reward == "clicks" else 1.0
    kept = Kept.of(promise, context, x, n, most, confidence, tolerance)
    drifts = _drifted(after, kept, promise, confidence)
    low, high = kept.earned.interval(1 - confidence) if kept.promised else (0.0, float("inf"))
    return Verification(
        verdict="unknown" if not kept.promised else "alert" if kept.broken else "ok",
        lists=lists,
        served=lists / traffic if traffic else 0.0,
        contexts=int((kept.lists > 0).sum()),
        promised=kept.promised / lists if lists else 0.0,
        earned=float(x @ n) / lists if lists else 0.0,
        ratio=float(x @ n) / kept.promised if kept.promised else None,
        ratio_low=low if kept.promised else None,
        ratio_high=high if kept.promised and np.isfinite(high) else None,
        floor=kept.floor,
        reward=reward,
        confidence=confidence,
        drifted=len(drifts),
        drifts=tuple(drifts[:_MOST_NAMED]),
    )


@dataclass(frozen=True)
class Kept:
    """Lists of the policy beside their promise: whether it is broken."""

    earned: Earned  # in groups of equal context and reward
    context: IntArray  # of each group
    lists: FloatArray  # of each context
    promised: float  # to all lists together
    floor: float  # earned by promised below which the promise is broken
    lowest: FloatArray  # what a list of each context was promised at least
    broken: bool

    @classmethod
    def of(
        cls,
        promise: Promise,
        context: IntArray,
        reward: FloatArray,
        n: IntArray,
        most: float,
        confidence: float,
        tolerance: float,
    ) -> "Kept":
        """Lists of these contexts that earned so much, each so often."""
        lists = np.bincount(context, n, minlength=len(promise.value)).astype(float)
        promised = float(lists @ promise.value)
        alpha = (1 - confidence) / 2  # a half for the promise, the other for what is earned
        limit = float(ndtri(1 - alpha))
        # Posteriors of contexts are independent given the prior.
        deviation = float(np.sqrt(lists**2 @ promise.deviation**2))
        margin = min(1.0, limit * deviation / promised) if promised else 0.0
        floor = (1 - margin) * (1 - tolerance)
        group, number = np.unique(np.stack([context, reward]), axis=1, return_inverse=True)
        of_group = group[0].astype(np.int64)
        held = np.bincount(number.ravel(), n, minlength=len(of_group)).astype(np.int64)
        earned = Earned(promise.value[of_group], group[1], held, most)
        lowest = np.maximum(promise.value - limit * promise.deviation, 0) * (1 - tolerance)
        broken = bool(promised) and earned.below(floor) >= np.log(1 / alpha)
        return cls(earned, of_group, lists, promised, floor, lowest, broken)


def _drifted(after: HoldoutLog, kept: Kept, promise: Promise, confidence: float) -> list[Drift]:
    """The contexts whose lists earn less than their own lower limit; few of them by chance (e-BH)."""
    each = replace(kept.earned, promised=kept.lowest[kept.context])
    evidence = each.below_by(kept.context, len(kept.lists))
    tested = np.flatnonzero(kept.lists)
    order = tested[np.argsort(-evidence[tested], kind="stable")]
    # The largest k whose k-th highest evidence exceeds tested / (k × rate): Wang and Ramdas (2022).
    above = evidence[order] >= np.log(len(tested) / (np.arange(1, len(order) + 1) * (1 - confidence)))
    k = int(np.flatnonzero(above)[-1]) + 1 if above.any() else 0
    earned = np.bincount(kept.context, each.lists * each.earned, minlength=len(kept.lists))
    names = after.connection.execute("select context from contexts order by rowid").fetchall() if k else []
    return [
        Drift(names[c][0], int(kept.lists[c]), float(promise.value[c]), float(earned[c] / kept.lists[c]))
        for c in order[:k].tolist()
    ]
