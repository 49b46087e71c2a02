"""Estimators of the value of lists that were not shown; each module registers one or a few.

>>> parse("ips(clip=50)")
Ips(clip=50.0)
>>> list(estimators)
['cips', 'dm', 'dr', 'ip-ips', 'ips', 'pi', 'prefix-ips', 'snips']
"""

from prudent.evaluation.estimators.base import Contributions, Estimator, estimators
from prudent.evaluation.estimators.click_ips import ClickIps
from prudent.evaluation.estimators.direct_method import DirectMethod
from prudent.evaluation.estimators.doubly_robust import DoublyRobust
from prudent.evaluation.estimators.ips import Ips, ItemPositionIps, PrefixIps, SelfNormalizedIps
from prudent.evaluation.estimators.pseudo_inverse import PseudoInverse

parse = estimators.parse
"""The estimator that a text spells."""

__all__ = [
    "ClickIps",
    "Contributions",
    "DirectMethod",
    "DoublyRobust",
    "Estimator",
    "Ips",
    "ItemPositionIps",
    "PrefixIps",
    "PseudoInverse",
    "SelfNormalizedIps",
    "estimators",
    "parse",
]
