"""From a click log to the ranked lists with the best lower confidence bound on their value.

>>> import prudent
>>> log = prudent.Log("clicks/*.parquet", context="query", items="shown", clicks="clicked")

One pass over the log, in an engine, then everything is free to vary::

    counts = prudent.count(log)
    policy = prudent.rank(counts, model="auto", bound="exposure(delta=0.5)", length=10)
    policy["running shoes"]                # ['i12', 'i3', ...]
    policy.write("policy.parquet")
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prudent import baselines, bounds, click_models, readers
    from prudent.algorithm import rank
    from prudent.compaction import compact
    from prudent.comparison import compare
    from prudent.counts import Counts, count
    from prudent.difference import diff
    from prudent.engines.duckdb import DuckDB
    from prudent.engines.spark import Spark
    from prudent.errors import PrudentError, PrudentWarning
    from prudent.evaluation import evaluate, gate, gate_contexts
    from prudent.exports import export
    from prudent.health import check
    from prudent.log import Log
    from prudent.on_spark import count_on_spark, rank_on_spark
    from prudent.policy import Policy
    from prudent.reporting import report
    from prudent.splitting import split
    from prudent.tuning import tune
    from prudent.whole_lists import rank_by

__version__ = "0.1.0"

__all__ = [
    "Counts",
    "DuckDB",
    "Log",
    "Policy",
    "PrudentError",
    "PrudentWarning",
    "Spark",
    "baselines",
    "bounds",
    "check",
    "click_models",
    "compact",
    "compare",
    "count",
    "count_on_spark",
    "diff",
    "evaluate",
    "export",
    "gate",
    "gate_contexts",
    "rank",
    "rank_by",
    "rank_on_spark",
    "readers",
    "report",
    "split",
    "tune",
]

_ROOMS = {
    "Counts": "counts",
    "DuckDB": "engines.duckdb",
    "Log": "log",
    "Policy": "policy",
    "PrudentError": "errors",
    "PrudentWarning": "errors",
    "Spark": "engines.spark",
    "check": "health",
    "compact": "compaction",
    "compare": "comparison",
    "count": "counts",
    "count_on_spark": "on_spark",
    "diff": "difference",
    "evaluate": "evaluation",
    "gate": "evaluation",
    "gate_contexts": "evaluation",
    "export": "exports",
    "rank": "algorithm",
    "rank_by": "whole_lists",
    "rank_on_spark": "on_spark",
    "report": "reporting",
    "split": "splitting",
    "tune": "tuning",
}


def __getattr__(name: str) -> object:
    # On first use: SciPy alone takes longer to import than `prudent --help` may take.
    if name in ("baselines", "bounds", "click_models", "readers"):
        return import_module(f"prudent.{name}")
    if name not in _ROOMS:
        raise AttributeError(f"module 'prudent' has no attribute {name!r}")
    return getattr(import_module(f"prudent.{_ROOMS[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
