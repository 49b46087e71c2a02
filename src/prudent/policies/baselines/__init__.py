"""The methods of Sec. 8.2 to compare with; each module registers one, and `rivals` finds it by name.

They look at whole lists, which counts have forgotten: `fold` sums up `Shown` once, after which every clip is cheap.

>>> parse("ips(clip=50)")
Ips(clip=50.0)
>>> list(rivals)
['ip-ips', 'ips', 'pi']
"""

from prudent.policies.baselines.base import Choice, Rival, clip_for, rivals
from prudent.policies.baselines.ips import Ips
from prudent.policies.baselines.item_position_ips import ItemPositionIps
from prudent.policies.baselines.pseudo_inverse import PseudoInverse
from prudent.policies.baselines.totals import Placed, Totals, fold

parse = rivals.parse
"""The value that a spelling stands for."""

__all__ = [
    "Choice",
    "Ips",
    "ItemPositionIps",
    "Placed",
    "PseudoInverse",
    "Rival",
    "Totals",
    "clip_for",
    "fold",
    "parse",
    "rivals",
]
