"""Whole lists of a log -> the lists of a baseline -> Policy."""

from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.base.errors import LogError, UsageError
from prudent.base.spec import whole_number
from prudent.counts.counts import Counts
from prudent.counts.lists import batch_of, cut, digest_of, name_tables, read_whole_lists
from prudent.counts.max_rejected import MAX_REJECTED, check_max_rejected
from prudent.engines.duckdb.engine import DuckDB
from prudent.logs.log import NO_CLICKS, as_log, recorded_names
from prudent.policies.baselines.base import Baseline, baselines
from prudent.policies.baselines.totals import fold
from prudent.policies.list_arrays import only
from prudent.policies.plan import differences
from prudent.policies.policy import Policy
from prudent.policies.rank import check_outputs
from prudent.policies.tables import CONTEXTS, EVIDENCE, append
from prudent.storage.manifest import Manifest, Source


def rank_baseline(
    log: Any,
    baseline: str | Baseline,
    *,
    length: int | None = None,
    min_lists: int = 1,
    engine: DuckDB | None = None,
    max_rejected: float = MAX_REJECTED,
    to: str | PathLike[str] | None = None,
    scores: str | PathLike[str] | None = None,
    **columns: Any,
) -> Policy:
    """Find, for every context, the best list by a baseline that `rank` is compared with.

    Baselines use whole lists, which counts do not keep, so they read the log itself: a path, a table or a `Log`, with
    ``columns`` as in `Log`. None of them is pessimistic: ``lower`` and ``mean`` of the policy are both the estimated
    clicks that an item adds to its list at its place; in `Policy.scores`, the most it adds at any place. ``positive``
    are clicks and ``negative`` impressions without one. The incumbent of its summary is the whole list that was shown
    most often in a context, and not production's order of items, as in `rank`.

    baseline
        A spelling such as ``"ips(clip=50)"``, ``"ip-ips"`` or ``"pi"``, or the object that it stands for.
    length
        Maximum length of a list; by default that of the longest logged list. Logged lists are cut there, and
        impressions and clicks below are ignored.
    min_lists
        Contexts with fewer logged lists are left out, so that the caller keeps its own ranking there.
    to, scores
        Files to write the policy and its scores to.

    >>> import duckdb
    >>> clicks = "select 'shoes' as query, ['i1', 'i2'] as items, [0, 1] as clicks from range(9)"
    >>> dict(rank_baseline(duckdb.sql(clicks), "ip-ips", context="query"))
    {'shoes': ['i1', 'i2']}
    """
    chosen = baselines.parse(baseline) if isinstance(baseline, str) else baseline
    if isinstance(log, Counts):
        raise UsageError(f"{chosen} needs the log itself: counts do not keep whole lists.")
    if to is not None:
        check_outputs((log,), to, scores)
    log = as_log(log, engine=engine, **columns)
    if log.reward is not None:
        raise UsageError(f"{chosen} ranks by clicks and knows no rewards: leave out reward (--reward), or use rank.")
    length = None if length is None else whole_number("length", length, 1)
    min_lists = whole_number("min_lists", min_lists, 0)
    check_max_rejected(max_rejected)
    engine = engine or DuckDB()
    tally, whole, _ = read_whole_lists(log, engine, max_rejected=max_rejected)
    digest, piece = digest_of(whole, engine), cut(whole, length)
    shown = batch_of([piece])
    if not shown.clicks.any():
        where = "" if length is None else f" in its first {length:,} positions"
        raise LogError(f"Not one of the {tally.lists:,} lists has a click{where}: {NO_CLICKS}")
    totals = fold(shown)
    kept = totals.logged >= min_lists
    if not kept.any():
        raise LogError(f"No context has {min_lists:,} logged lists: there is nothing to rank.")
    choice = chosen.choose(totals)
    listed = kept[choice.lists.context]
    # The whole list shown most often: a baseline has no value for production's order, which `rank` compares with.
    new, incumbent = only(choice.lists, kept), only(totals.listing(totals.incumbent), kept)
    counted: dict[str, NDArray[Any]] = {
        "positive": totals.positive.astype(np.float64),
        "negative": (totals.impressions - totals.positive).astype(np.float64),
        "impressions": totals.impressions,
    }
    adds, none = choice.adds[listed], np.full(totals.pairs, np.nan)
    counted = {"upper": none, "stay": none, **counted}  # a baseline has no bounds
    everything = {"row": np.arange(totals.pairs), "lower": choice.best, "mean": choice.best, **counted}
    ranked: dict[str, NDArray[Any]] = {
        "row": new.row,
        "number": new.context,
        "rank": new.rank.astype(np.int32),
        "lower": adds,
        "mean": adds,
    }
    connection = engine.open()
    name_tables(connection, piece.run)
    append(connection, "scores", everything, f"select context, item, {EVIDENCE} from {_NAMED} order by row")
    evidence = {name: column[new.row] for name, column in counted.items()}
    append(
        connection,
        "lists",
        {**ranked, **evidence},
        f"select context, rank, item, {EVIDENCE} from {_NAMED} order by number, rank",
    )
    values = {"value": np.bincount(new.context, adds, minlength=len(kept)), "incumbent_value": choice.incumbent}
    differ = differences(new, incumbent, totals.length, len(kept))
    per_context = {
        "lists": totals.logged,
        **values,
        "lower": values["value"],
        "incumbent_lower": values["incumbent_value"],
    }
    append(
        connection,
        "per_context",
        {"number": np.arange(len(kept)), **per_context, "differ": differ, "kept": kept},
        "from part join contexts using (number) order by number",
    )
    share = np.where(kept, totals.logged, 0) / totals.logged[kept].sum()
    manifest = Manifest(
        "policy",
        {"baseline": str(chosen), "length": length or totals.length, "min_lists": min_lists},
        {"training": Source(recorded_names(log), tally, digest=digest)},
        {
            "fitted": {},
            "summary": {
                "contexts": int(kept.sum()),
                "too_few_lists": int((~kept).sum()),
                "without_candidates": 0,
                "differ": int(differ[kept].sum()),
                "unit": "clicks",
                **{name: float(np.sum(share * value)) for name, value in values.items()},
            },
        },
    )
    policy = Policy(connection, manifest, {"lists": "from lists", "scores": "from scores", "contexts": CONTEXTS})
    if to is not None:
        policy.write(to, scores)
    return policy


_NAMED = "part join (select number as row, context, item from pairs) using (row)"
