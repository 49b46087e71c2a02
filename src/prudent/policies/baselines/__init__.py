"""The baselines of Sec. 8.2; each module registers one, and `baselines` finds it by name.

They use whole lists, which counts do not keep: `fold` sums up a `ListBatch` once, after which every clip is cheap.

>>> parse("ips(clip=50)")
Ips(clip=50.0)
>>> list(baselines)
['ip-ips', 'ips', 'pi']
"""

from prudent.policies.baselines.base import Baseline, Choice, baselines, clip_for
from prudent.policies.baselines.ips import Ips
from prudent.policies.baselines.item_position_ips import ItemPositionIps
from prudent.policies.baselines.pseudo_inverse import PseudoInverse
from prudent.policies.baselines.totals import Placed, Totals, fold

parse = baselines.parse
"""The value that a spelling stands for."""

__all__ = [
    "Baseline",
    "Choice",
    "Ips",
    "ItemPositionIps",
    "Placed",
    "PseudoInverse",
    "Totals",
    "baselines",
    "clip_for",
    "fold",
    "parse",
]
