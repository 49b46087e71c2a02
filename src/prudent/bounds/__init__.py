"""Lower confidence bounds on attraction; each module registers one, and `bounds` finds it by name.

>>> parse("eb(delta=0.2, pool=context)")
EmpiricalBayes(delta=0.2, pool='context', grid=(1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0))
>>> list(bounds)
['anchored', 'anytime', 'bayes', 'clopper-pearson', 'eb', 'exposure', 'hierarchical', 'hoeffding', 'mle']
"""

from prudent.bounds.anchored import Anchored
from prudent.bounds.anytime import Anytime
from prudent.bounds.base import Bound, Scores, bounds
from prudent.bounds.bayes import Bayes
from prudent.bounds.clopper_pearson import ClopperPearson
from prudent.bounds.empirical_bayes import EmpiricalBayes
from prudent.bounds.exposure import Exposure, ExposurePrior
from prudent.bounds.hierarchical import Hierarchical, HierarchicalPrior
from prudent.bounds.hoeffding import Hoeffding
from prudent.bounds.mle import Mle

DEFAULT_BOUND = "anchored(delta=0.5)"
"""The bound of `prudent.rank` where none is named, and what `prudent.tune` compares the others with."""

parse = bounds.parse
"""The value that a spelling stands for."""

__all__ = [
    "DEFAULT_BOUND",
    "Anchored",
    "Anytime",
    "Bayes",
    "Bound",
    "ClopperPearson",
    "EmpiricalBayes",
    "Exposure",
    "ExposurePrior",
    "Hierarchical",
    "HierarchicalPrior",
    "Hoeffding",
    "Mle",
    "Scores",
    "bounds",
    "parse",
]
