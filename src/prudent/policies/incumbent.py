"""The incumbent list: production's order of the items it shows."""

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.counts.cells import Cells
from prudent.counts.production import discounted_impressions
from prudent.policies.list_arrays import Lists, highest


def incumbent_lists(cells: Cells, length: int) -> Lists:
    """The incumbent list of each context, of the items that were shown."""
    shown = cells.per_pair()
    return in_production_order(cells.context, discounted_impressions(cells), shown, length, shown > 0)


def in_production_order(
    context: IntArray,
    discounted: FloatArray,
    impressions: FloatArray,
    length: int,
    eligible: BoolArray | None = None,
    unseen: FloatArray | None = None,
) -> Lists:
    """The first items of each context by impressions, each discounted by 1/log₂(1 + position).

    Counts do not keep whole lists. Where production explores, this order agrees better with human labels than the item
    most often shown at each position. Ties, such as among items without impressions, may go to the highest `unseen`.
    """
    keys = (discounted, impressions) if unseen is None else (discounted, impressions, unseen)
    return highest(context, keys, length, eligible)
