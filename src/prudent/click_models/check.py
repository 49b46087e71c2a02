"""What is in a log, and what it can support."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from prudent.base.arrays import FloatArray, IntArray
from prudent.click_models.position_based import LINK, name_groups, per_position, position_groups, position_links
from prudent.counts.cells import Cells
from prudent.counts.counts import MAX_REJECTED, Counts

FEW = 10
"""Impressions below which a click-through rate is hardly more than an accident."""


@dataclass(frozen=True)
class Health:
    """A log in numbers; shares are between 0 and 1."""

    lists: int
    rejected: Mapping[str, int]  # lists, by reason
    left_out: Mapping[str, int]  # what a reader did not turn into lists
    contexts: int
    items: int  # distinct names
    pairs: int  # items of one context, summed over contexts
    positions: int  # of the longest list
    clicks: int
    ctr: tuple[float, ...]  # by position
    without_click: float  # share of the lists
    several_clicks: float
    rare_pairs: float  # share of the pairs with fewer than 10 impressions
    moving_impressions: float  # share of the impressions on items that were shown at several positions of their context
    single_list_contexts: int
    position_groups: tuple[tuple[int, ...], ...]  # pbm is identified when there is one

    @property
    def pbm_identified(self) -> bool:
        """Whether items link all positions."""
        return len(self.position_groups) == 1

    def facts(self) -> list[tuple[str, str]]:
        """The numbers with their names, for people."""
        return [
            ("lists", f"{self.lists:,}"),
            ("contexts", f"{self.contexts:,}"),
            ("items", f"{self.items:,}"),
            ("context-item pairs", f"{self.pairs:,}"),
            ("positions", f"{self.positions:,}"),
            ("clicks", f"{self.clicks:,}"),
            ("lists without a click", f"{self.without_click:.1%}"),
            ("lists with several clicks", f"{self.several_clicks:.1%}"),
            (f"pairs shown fewer than {FEW} times", f"{self.rare_pairs:.1%}"),
            ("impressions of items that change position", f"{self.moving_impressions:.1%}"),
        ]

    def verdicts(self) -> list[str]:
        """What the log can support, in sentences."""
        said = []
        bad = sum(self.rejected.values())
        if bad:
            share = bad / (bad + self.lists)
            stop = ": count and rank stop there, unless --max-rejected allows it" if share > MAX_REJECTED else ""
            said.append(f"{bad:,} of {bad + self.lists:,} lists were rejected ({share:.1%}){stop}.")
        if not self.lists:
            return said
        if not self.clicks:
            return [*said, "There is not one click: nothing can be learned from this log."]
        if self.pbm_identified:
            moving = f"{self.moving_impressions:.0%} of impressions are of items that change position"
            said.append(f"pbm (position-based) is identified: {moving}.")
        else:
            said.append(
                "pbm (position-based) is not identified: no item has "
                f"{LINK} impressions at two positions across {name_groups(self.position_groups)}. "
                "model=auto will use dcm; swap a few neighbours in production now and then to learn more."
            )
        if self.several_clicks > 0:
            several = f"{self.several_clicks:.1%} of lists have several clicks"
            said.append(f"dcm (dependent clicks) can tell reading on from stopping: {several}.")
        else:
            said.append("No list has several clicks: dcm has nothing to learn continuation from, and cm loses nothing.")
        if self.rare_pairs > 0:
            said.append(
                f"{self.rare_pairs:.0%} of context-item pairs were shown fewer than {FEW} times: their click-through "
                "rates are accidents, and this is what lower bounds are for."
            )
        if self.single_list_contexts:
            have = "context has" if self.single_list_contexts == 1 else "contexts have"
            said.append(f"{self.single_list_contexts:,} {have} a single list; --min-lists 2 leaves out such contexts.")
        return said


def check(counts: Counts) -> Health:
    """Look at a log through its counts: everything asked here is a sum over parts of them."""
    names = counts.index
    sums = [_look(part.cells, names.positions) for part in names.parts()]

    def total(name: str) -> Any:
        return sum(getattr(one, name) for one in sums)

    lists = names.lists_of.sum() or 1.0  # where old days weigh less, so do their lists
    shown, clicked = (total(name) + np.zeros(names.positions) for name in ("shown", "clicked"))
    links = np.unique(np.concatenate([np.zeros(0, np.int64), *(one.links for one in sums)]))
    items = names.connection.execute("select count(distinct item) from pairs").fetchall()[0][0]
    return Health(
        lists=counts.tally.lists,
        rejected=dict(counts.tally.rejected),
        left_out=dict(counts.tally.left_out),
        contexts=names.contexts,
        items=int(items),
        pairs=names.pairs,
        positions=names.positions,
        clicks=round(names.clicks),
        ctr=tuple(np.divide(clicked, shown, out=np.zeros(len(shown)), where=shown > 0).tolist()),
        without_click=float(total("without_click") / lists),
        several_clicks=float(total("several_clicks") / lists),
        rare_pairs=float(total("rare_pairs") / max(1, names.pairs)),
        moving_impressions=float(total("moving") / (shown.sum() or 1.0)),
        single_list_contexts=int(np.sum(names.lists_of <= 1)),
        position_groups=tuple(map(tuple, position_groups(links, names.positions))),
    )


class _Sums(NamedTuple):
    """What is counted of some contexts; see `Health`."""

    shown: FloatArray  # by position
    clicked: FloatArray
    without_click: float  # lists
    several_clicks: float
    rare_pairs: int
    moving: float  # impressions
    links: IntArray


def _look(cells: Cells, positions: int) -> _Sums:
    at = cells.position - 1
    pair, position, at_position, _ = per_position(cells)
    impressions = cells.per_pair()
    moving = np.bincount(pair, minlength=cells.pairs) > 1
    # The first position of a list tells whether any click follows; its last click tells whether one came before.
    no_click = (cells.position == 1) & ~cells.click & ~cells.more
    later_last = cells.click & ~cells.more & (cells.prev > 0)
    return _Sums(
        np.bincount(at, cells.n, minlength=positions).astype(float, copy=False),
        np.bincount(at[cells.click], cells.n[cells.click], minlength=positions).astype(float, copy=False),
        float(cells.n[no_click].sum()),
        float(cells.n[later_last].sum()),
        int(np.sum(impressions < FEW)),
        float(impressions[moving].sum()),
        position_links(pair, position, at_position, positions),
    )
