"""The value of a policy on lists that it has not learned from, and whether it may go out."""

from prudent.evaluation.estimators import Estimator, estimators, parse
from prudent.evaluation.gating import Verdict, gate
from prudent.evaluation.held_out import REWARDS
from prudent.evaluation.judgement import Estimate
from prudent.evaluation.mixing import Mixture, gate_contexts
from prudent.evaluation.offline import DECIDES, DEFAULTS, Evaluation, evaluate

__all__ = [
    "DECIDES",
    "DEFAULTS",
    "REWARDS",
    "Estimate",
    "Estimator",
    "Evaluation",
    "Mixture",
    "Verdict",
    "estimators",
    "evaluate",
    "gate",
    "gate_contexts",
    "parse",
]
