"""Estimators of the value of lists that were not shown; each module registers one or two.

>>> parse("ips(clip=50)")
Ips(clip=50.0)
>>> list(estimators)
['dm', 'dr', 'ip-ips', 'ips', 'pi', 'prefix-ips', 'snips']
"""

from prudent.evaluation.estimators.base import Contributions, Estimator, estimators
from prudent.evaluation.estimators.direct_method import DirectMethod
from prudent.evaluation.estimators.doubly_robust import DoublyRobust
from prudent.evaluation.estimators.ips import Ips, SelfNormalizedIps
from prudent.evaluation.estimators.item_position_ips import ItemPositionIps
from prudent.evaluation.estimators.prefix_ips import PrefixIps
from prudent.evaluation.estimators.pseudo_inverse import PseudoInverse

parse = estimators.parse
"""The estimator that a text spells."""

__all__ = [
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
