"""The whole lists of a log -> a rival's lists -> Policy."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.base.errors import LogError, UsageError
from prudent.base.spec import whole_number
from prudent.counts.counts import MAX_REJECTED, Counts, check_max_rejected
from prudent.counts.lists import read_lists
from prudent.engines.duckdb.engine import DuckDB
from prudent.logs.log import Log
from prudent.policies.baselines.base import Baseline, baselines
from prudent.policies.baselines.totals import fold
from prudent.policies.policy import Policy
from prudent.policies.rank import CONTEXTS, append, differences, named_lists, named_scores, only
from prudent.storage.manifest import Manifest, Source


def rank_by(
    log: Log,
    method: str | Baseline,
    length: int | None = None,
    min_lists: int = 1,
    engine: DuckDB | None = None,
    max_rejected: float = MAX_REJECTED,
) -> Policy:
    """Find, for every context, the best list by a method that `rank` is compared with.

    These methods weigh whole lists, which counts have forgotten, so they read the log itself. None of them is
    pessimistic: ``lower`` and ``mean`` of the policy are both what the method estimates that an item adds to the clicks
    on its list where it stands; in `Policy.scores`, the best it could add anywhere. ``positive`` are clicks and
    ``negative`` impressions without one.

    method
        A spelling such as ``"ips(clip=50)"``, ``"ip-ips"`` or ``"pi"``, or the object that it stands for.
    length
        How many items a list has at most; without it, as many as the longest logged list. Logged lists are cut there,
        and what was shown or clicked below is as if it had never been logged.
    min_lists
        Contexts with fewer logged lists are left out, so that the caller keeps its own ranking there.
    """
    rival = baselines.parse(method) if isinstance(method, str) else method
    if isinstance(log, Counts):
        raise UsageError(f"{rival} needs the log itself: counts have forgotten whole lists.")
    if not isinstance(log, Log):
        raise UsageError(f"rank_by takes a Log, not a {type(log).__name__}: prudent.rank_by(prudent.Log(...), ...).")
    length = None if length is None else whole_number("length", length, 1)
    min_lists = whole_number("min_lists", min_lists, 0)
    check_max_rejected(max_rejected)
    connection, shown, tally = read_lists(log, engine or DuckDB(), length, max_rejected)
    if not shown.clicks.any():
        where = "" if length is None else f" in its first {length:,} positions"
        raise LogError(f"Not one of the {tally.lists:,} lists has a click{where}: there is nothing to learn from.")
    totals = fold(shown)
    kept = totals.logged >= min_lists
    if not kept.any():
        raise LogError(f"No context has {min_lists:,} logged lists: there is nothing to rank.")
    choice = rival.choose(totals)
    listed = kept[choice.lists.context]
    new, incumbent = only(choice.lists, kept), only(totals.listing(totals.incumbent), kept)
    counted: dict[str, NDArray[Any]] = {
        "positive": totals.positive.astype(np.float64),
        "negative": (totals.impressions - totals.positive).astype(np.float64),
        "impressions": totals.impressions,
    }
    adds = choice.adds[listed]
    everything = {"row": np.arange(totals.pairs), "lower": choice.best, "mean": choice.best, **counted}
    chosen: dict[str, NDArray[Any]] = {
        "row": new.row,
        "number": new.context,
        "rank": new.rank.astype(np.int32),
        "lower": adds,
        "mean": adds,
    }
    append(connection, "scores", everything, named_scores(0, totals.pairs))
    evidence = {name: column[new.row] for name, column in counted.items()}
    append(connection, "lists", {**chosen, **evidence}, named_lists(0, totals.pairs))
    values = {"value": np.bincount(new.context, adds, minlength=len(kept)), "incumbent_value": choice.incumbent}
    differ = differences(new, incumbent, totals.length, len(kept))
    per_context = {
        "lists": totals.logged,
        **values,
        "lower": values["value"],
        "incumbent_lower": values["incumbent_value"],
    }
    append(connection, "per_context", {"number": np.arange(len(kept)), **per_context, "differ": differ, "kept": kept})
    share = np.where(kept, totals.logged, 0) / totals.logged[kept].sum()
    manifest = Manifest(
        "policy",
        {"method": str(rival), "length": length or totals.length, "min_lists": min_lists},
        {"training": Source(tuple(log.names), tally)},
        {
            "fitted": {},
            "summary": {
                "contexts": int(kept.sum()),
                "too_few_lists": int((~kept).sum()),
                "without_candidates": 0,
                "differ": int(differ[kept].sum()),
                "unit": "clicks",
                **{name: float(np.sum(share * of)) for name, of in values.items()},
            },
        },
    )
    return Policy(connection, manifest, {"lists": "from lists", "scores": "from scores", "contexts": CONTEXTS})
