"""`prudent.judge`: counts -> evidence -> posterior -> grades."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from os import PathLike
from typing import Any, cast

import numpy as np

from prudent.base.errors import UsageError
from prudent.bounds import Bound, bounds
from prudent.bounds.base import OfRows
from prudent.click_models import ClickModel
from prudent.counts.count import as_counts
from prudent.counts.index import Part
from prudent.counts.max_rejected import MAX_REJECTED
from prudent.counts.sampling import samples
from prudent.engines.duckdb.engine import DuckDB
from prudent.logs.log import Candidates, table_context
from prudent.policies.judgments.grades import QUANTILES, check_thresholds, confidence, grade, log_thresholds
from prudent.policies.judgments.judgments import COLUMNS, Judgments
from prudent.policies.plan import Plan, check_request, columns, learn
from prudent.policies.rank import check_outputs, measure
from prudent.policies.tables import append
from prudent.storage.manifest import Manifest

JUDGING_BOUND = "anchored(delta=0.05, slopes=fitted)"
"""The bound of `judge` where none is named: that of `rank` with slopes that are not shrunk, and an interval of 95 %."""


def judge(
    source: Any,
    model: str | ClickModel = "auto",
    *,
    bound: str | Bound = JUDGING_BOUND,
    thresholds: Sequence[float] | str | None = None,
    candidates: str | PathLike[str] | Any | None = None,
    engine: DuckDB | None = None,
    to: str | PathLike[str] | None = None,
    since: date | str | None = None,
    until: date | str | None = None,
    half_life: float | str | None = None,
    max_rejected: float = MAX_REJECTED,
    **log: Any,
) -> Judgments:
    """Judge every item of every context by its clicks: a grade 0 to 4, the estimate, its interval and a confidence.

    ``source``, ``candidates`` and the days are those of `prudent.rank`. Counts may be of Spark: `judge` itself runs on
    this machine, on counts of any size, part by part.

    The estimate is the posterior mean of attraction by the click model, so that positions do not matter and few clicks
    do not outrank many. ``confidence`` is the posterior probability of the grade. ``shared`` has by how much the logit
    of the estimate moves with one standard error of the fitted prior, in each independent direction, where the bound
    knows that; nDCG with an interval needs it.

    bound
        A bound with a posterior: ``anchored``, ``bayes``, ``eb``, ``exposure`` or ``hierarchical``. The interval from
        ``lower`` to ``upper`` holds all but its δ of the posterior.
    thresholds
        The four attractions at which the grades 1 to 4 start. By default quantiles of the estimates of this log, so
        that half of the examined items have grade 0 and 3 % grade 4. To compare two logs, give both the same.
    to
        The Parquet file to write.

    >>> import prudent, pyarrow as pa
    >>> lists = [{"query": "shoes", "items": ["i1", "i2"], "clicks": [0, 1]}] * 90
    >>> judgments = prudent.judge(pa.Table.from_pylist(lists), "cm", context="query", thresholds=[0.1, 0.2, 0.4, 0.6])
    >>> judgments.relation().project("item, grade").fetchall()
    [('i1', 0), ('i2', 4)]
    """
    request = check_request(model, bound, None, 0, None)
    if not request.bound.posterior:
        others = [name for name in bounds if bounds[name].posterior]
        raise UsageError(f"{request.bound} has no posterior. Judge by {', '.join(others[:-1])} or {others[-1]}.")
    given = None if thresholds is None else check_thresholds(thresholds)
    if not isinstance(engine, DuckDB | None):
        raise UsageError("judge runs on this machine. Count with Spark first, and judge the counts that it wrote.")
    if to is not None:
        check_outputs((source, candidates), to, None)
    days: dict[str, Any] = {"since": since, "until": until, "half_life": half_life}
    counts = as_counts(source, engine=engine, max_rejected=max_rejected, **days, **log)
    if counts.tally.reward:
        raise UsageError(
            "judge grades items by their clicks, and these counts are of rewards, which have no grades: count the log "
            "without reward (--reward)."
        )
    table = None if candidates is None else Candidates(candidates, table_context(source, log))
    names = counts.index if table is None else counts.number(table)
    sampled = samples(names)
    plan = learn(request, measure(names, counts.tally.lists, 0), counts, lambda: sampled)
    starts = given or _thresholds(plan, sampled[1])
    connection = counts.engine.open()
    for part in names.parts():
        append(connection, "judgments", _judged(plan, part, starts), f"select {', '.join(COLUMNS)} from part")
    manifest = Manifest(
        "judgments",
        {
            "model": str(plan.fitted.model),
            "bound": str(request.bound),
            "asked_model": str(request.model),
            "thresholds": list(starts),
            "quantiles": None if given else list(QUANTILES),
            "candidates": None if table is None else table.name,
        },
        {"training": counts.training},
        plan.results,
    )
    judgments = Judgments(connection, manifest, files=counts.files)
    judgments = replace(judgments, manifest=replace(manifest, results={**plan.results, "summary": judgments.summary}))
    if to is not None:
        judgments.write(to)
    return judgments


def _thresholds(plan: Plan, sample: Part) -> tuple[float, ...]:
    """Quantiles of the estimates of examined items, in contexts that represent all of them."""
    evidence, scores = plan.score(sample)
    return log_thresholds(scores.mean[evidence.examined > 0])


def _judged(plan: Plan, part: Part, thresholds: Sequence[float]) -> dict[str, Any]:
    """The columns of the judgments of some contexts."""
    evidence, scores = plan.score(part)
    row = np.flatnonzero(part.eligible)
    found = columns(evidence, scores, row)
    deviation = cast(OfRows, scores.deviation)(row)  # `judge` takes a bound with a posterior
    grades = grade(found["mean"], thresholds)
    return {
        "context": part.contexts.take(part.cells.context[row]),
        "item": part.items.take(row),
        **found,
        "grade": grades.astype(np.int32),
        "deviation": deviation,
        "confidence": confidence(grades, found["mean"], deviation, thresholds),
        "shared": np.zeros((len(row), 0)) if scores.shared is None else scores.shared(row),
    }
