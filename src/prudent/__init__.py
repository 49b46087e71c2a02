"""From a click log to ranked lists of the highest pessimistic value: that of lower confidence bounds on attraction.

>>> import prudent
>>> log = prudent.Log("clicks/*.parquet", context="query", items="shown", clicks="clicked")

One pass over the log, in an engine, then everything is free to vary::

    counts = prudent.count(log)
    policy = prudent.rank(counts, model="auto", length=10)
    policy["running shoes"]                # ['i12', 'i3', ...]
    policy.write("policy.parquet")
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prudent import bounds, click_models
    from prudent.base.errors import PrudentError, PrudentWarning
    from prudent.click_models.check import check
    from prudent.click_models.compare import compare
    from prudent.click_models.simulate import simulate
    from prudent.counts.compact import compact
    from prudent.counts.count import count
    from prudent.counts.counts import Counts
    from prudent.counts.split import split
    from prudent.engines.duckdb.engine import DuckDB
    from prudent.engines.spark.engine import Spark
    from prudent.evaluation.evaluate import evaluate
    from prudent.evaluation.gate import gate
    from prudent.evaluation.gate_contexts import gate_contexts
    from prudent.evaluation.sample_size import plan
    from prudent.evaluation.tune import tune
    from prudent.evaluation.verify import verify
    from prudent.logs import readers
    from prudent.logs.log import Log
    from prudent.policies import baselines
    from prudent.policies.baselines.rank_baseline import rank_baseline
    from prudent.policies.diff import diff
    from prudent.policies.exploration.exploration import Exploration
    from prudent.policies.exploration.explore import explore
    from prudent.policies.export import export
    from prudent.policies.judgments.judge import judge
    from prudent.policies.judgments.judgments import Judgments
    from prudent.policies.policy import Policy
    from prudent.policies.rank import rank
    from prudent.reporting import report

__version__ = "0.1.0"

_HOMES = {
    "Counts": "counts.counts",
    "DuckDB": "engines.duckdb.engine",
    "Exploration": "policies.exploration.exploration",
    "Judgments": "policies.judgments.judgments",
    "Log": "logs.log",
    "Policy": "policies.policy",
    "PrudentError": "base.errors",
    "PrudentWarning": "base.errors",
    "Spark": "engines.spark.engine",
    "baselines": "policies",
    "bounds": "",
    "check": "click_models.check",
    "click_models": "",
    "compact": "counts.compact",
    "compare": "click_models.compare",
    "count": "counts.count",
    "diff": "policies.diff",
    "evaluate": "evaluation.evaluate",
    "explore": "policies.exploration.explore",
    "export": "policies.export",
    "gate": "evaluation.gate",
    "gate_contexts": "evaluation.gate_contexts",
    "judge": "policies.judgments.judge",
    "plan": "evaluation.sample_size",
    "rank": "policies.rank",
    "rank_baseline": "policies.baselines.rank_baseline",
    "readers": "logs",
    "report": "reporting",
    "simulate": "click_models.simulate",
    "split": "counts.split",
    "tune": "evaluation.tune",
    "verify": "evaluation.verify",
}
"""Every public name and the module that has it."""

__all__ = [
    "Counts",
    "DuckDB",
    "Exploration",
    "Judgments",
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
    "diff",
    "evaluate",
    "explore",
    "export",
    "gate",
    "gate_contexts",
    "judge",
    "plan",
    "rank",
    "rank_baseline",
    "readers",
    "report",
    "simulate",
    "split",
    "tune",
    "verify",
]


def __getattr__(name: str) -> object:
    # On first use: SciPy alone takes longer to import than `prudent --help` may take.
    if name not in _HOMES:
        raise AttributeError(f"module 'prudent' has no attribute {name!r}")
    home = f"prudent.{_HOMES[name]}".rstrip(".")
    if name in ("baselines", "bounds", "click_models", "readers"):
        return import_module(f"{home}.{name}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return list(__all__)
