"""A summary of a log, and what it can support."""

import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any, NamedTuple

import numpy as np

from prudent.base.arrays import FloatArray, IntArray
from prudent.base.errors import LogError, NotIdentifiedError, PrudentWarning
from prudent.base.text import percent, several
from prudent.click_models.base import check_cells
from prudent.click_models.examination import not_compared, per_position, position_groups, position_links
from prudent.click_models.selection import candidates
from prudent.counts.cells import Cells
from prudent.counts.count import as_counts, counted_files
from prudent.counts.counts import Counts
from prudent.counts.index import Index
from prudent.counts.lists import ListBatch
from prudent.counts.max_rejected import MAX_REJECTED, rejection_hint
from prudent.counts.repeats import ONCE, Repeats, repeated_lists
from prudent.counts.sampling import heavy_sample
from prudent.engines.duckdb.engine import DuckDB
from prudent.engines.duckdb.hygiene import find_unwanted
from prudent.logs.hygiene import Findings, leaves_out
from prudent.logs.log import NO_CLICKS, as_log
from prudent.storage.manifest import Unit

FEW_IMPRESSIONS = 10
"""Impressions below which a click-through rate is mostly noise."""


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
    doubts: tuple[str, ...] = ()  # why the log contradicts a click model
    unit: Unit = "list"  # what `lists` counts: where it is not known which items were shown together, impressions
    repeats: Repeats = ONCE  # how often the same lists were logged
    hygiene: Findings | None = None  # what could be left out; None where the log names no users, or leaves it out
    hint: str = ""  # what the log may have instead, where too many lists are rejected

    @property
    def rankable(self) -> bool:
        """Whether `rank` takes the log: it has clicks, and not too many of its lists are rejected."""
        return self.clicks > 0 and self.share_rejected <= MAX_REJECTED

    @property
    def share_rejected(self) -> float:
        """Share of rejected lists."""
        bad = sum(self.rejected.values())
        return bad / max(1, bad + self.lists)

    @property
    def pbm_identified(self) -> bool:
        """Whether items were shown often enough at several positions to compare all positions."""
        return len(self.position_groups) == 1

    def facts(self) -> list[tuple[str, str]]:
        """Names and values as text, for a table."""
        of_lists = [
            ("lists without a click", percent(self.without_click)),
            ("lists with several clicks", percent(self.several_clicks)),
        ]
        return [
            (f"{self.unit}s", f"{self.lists:,}"),
            ("contexts", f"{self.contexts:,}"),
            ("items", f"{self.items:,}"),
            ("context-item pairs", f"{self.pairs:,}"),
            ("positions", f"{self.positions:,}"),
            ("clicks", f"{self.clicks:,}"),
            *(of_lists if self.unit == "list" else []),
            (f"pairs with fewer than {FEW_IMPRESSIONS} impressions", percent(self.rare_pairs)),
            ("impressions of items that change position", percent(self.moving_impressions)),
        ]

    def to_json(self) -> dict[str, Any]:
        """All of it, with the verdicts; fits JSON."""
        content = asdict(self)
        for name in ("repeats", "hygiene", "hint"):  # as facts: in sentences
            del content[name]
        hygiene = {} if self.hygiene is None else {"hygiene": asdict(self.hygiene)}
        return {**content, **hygiene, "verdicts": self.verdicts()}

    def verdicts(self) -> list[str]:
        """What the log can support, in sentences."""
        verdicts = []
        bad = sum(self.rejected.values())
        if bad:
            share = self.share_rejected
            stop = ": count and rank stop unless --max-rejected allows it" if share > MAX_REJECTED else ""
            lists = several(bad + self.lists, self.unit)
            were = "was" if bad + self.lists == 1 else "were"
            verdicts.append(f"{bad:,} of {lists} {were} rejected ({percent(share)}){stop}.{self.hint}")
        if self.hygiene is not None:
            verdicts.append(str(self.hygiene))
        if not self.lists:
            return verdicts
        if not self.clicks:
            return [*verdicts, f"The log has no click: {NO_CLICKS}"]
        if self.repeats.factor > 1:
            users = " With users and times: --user, --shown-at, --leave-out duplicates." if self.hygiene is None else ""
            verdicts.append(f"Repeats: {self.repeats}.{users}")
        verdicts += [*self._models(), *self.doubts]
        if self.rare_pairs >= 0.005:  # which is printed as 1%
            verdicts.append(
                f"{percent(self.rare_pairs, 0)} of context-item pairs have fewer than {FEW_IMPRESSIONS} impressions: "
                "their click-through rates are mostly noise, which lower bounds account for."
            )
        if self.single_list_contexts and self.unit == "list":
            have = "context has" if self.single_list_contexts == 1 else "contexts have"
            verdicts.append(f"{self.single_list_contexts:,} {have} a single list; --min-lists 2 leaves them out.")
        return verdicts

    def _models(self) -> list[str]:
        """Which click models the log identifies."""
        if self.positions == 1 and self.unit == "list":
            return ["Every list has one item: there is no position bias, and all click models agree."]
        if self.pbm_identified:
            moving = f"{percent(self.moving_impressions, 0)} of impressions are of items that change position"
            pbm = f"pbm (position-based) is identified: {moving}."
        else:
            pbm = (
                f"pbm (position-based) is not identified: {not_compared(self.position_groups)}. Swap a few "
                "neighbouring items in production now and then to identify it."
            )
        if self.unit == "impression":
            return [pbm, "Other click models, and evaluation, need whole lists: the log has single impressions."]
        if self.several_clicks > 0:
            share = percent(self.several_clicks)
            return [pbm, f"dcm (dependent clicks): continuation is identified, {share} of lists have several clicks."]
        return [
            pbm,
            "dcm (dependent clicks): continuation is not identified, no list has several clicks. cm fits it too.",
        ]


def check(
    source: Any,
    *,
    engine: DuckDB | None = None,
    since: date | str | None = None,
    until: date | str | None = None,
    half_life: float | str | None = None,
    **log: Any,
) -> Health:
    """Summarize a log or counts: `Counts`, a `Log`, a table, or paths of either. Rejected lists are no error here.

    ``since``, ``until`` and ``half_life`` choose among counts by day, as in `prudent.Counts.read`; `log` are arguments
    of `as_log`, such as the names of columns. Where these name the user, what could be left out is found too
    (`prudent.logs.hygiene`); counts no longer have users.

    >>> import prudent, pyarrow as pa
    >>> lists = [{"context": "c", "items": ["a", "b"], "clicks": [1, 0]}] * 3
    >>> prudent.check(pa.Table.from_pylist(lists)).clicks
    3
    """
    days: dict[str, Any] = {"since": since, "until": until, "half_life": half_life}
    if isinstance(source, Counts) or counted_files(source):
        unwanted, counts = None, as_counts(source, engine=engine, max_rejected=1.0, **days, **log)
        hint = ""
    else:
        opened = as_log(source, engine=engine, **log)
        counts = as_counts(opened, engine=engine, max_rejected=1.0, **days)
        known = opened.user is not None and not leaves_out(opened)
        unwanted = find_unwanted(engine or DuckDB(), opened) if known else None
        hint = rejection_hint(counts.tally, opened) if counts.tally.share_rejected > MAX_REJECTED else ""
    names = counts.index
    sums = [_sums(part.cells, names.positions) for part in names.parts()]
    whole = counts.sample() if counts.tally.unit == "list" else None

    def total(name: str) -> Any:
        return sum(getattr(one, name) for one in sums)

    lists = names.lists_of.sum() or 1.0  # where old days weigh less, so do their lists
    shown, clicked = (total(name) + np.zeros(names.positions) for name in ("shown", "clicked"))
    links = np.unique(np.concatenate([np.zeros(0, np.int64), *(one.links for one in sums)]))
    return Health(
        lists=counts.tally.lists,
        rejected=dict(counts.tally.rejected),
        left_out=dict(counts.tally.left_out),
        contexts=names.contexts,
        items=names.distinct_items(),
        pairs=names.pairs,
        positions=names.positions,
        clicks=round(names.clicks),
        ctr=tuple(np.divide(clicked, shown, out=np.zeros(len(shown)), where=shown > 0).tolist()),
        without_click=float(total("without_click") / lists),
        several_clicks=float(total("several_clicks") / lists),
        rare_pairs=float(total("rare_pairs") / max(1, names.pairs)),
        moving_impressions=float(total("moving") / (shown.sum() or 1.0)),
        single_list_contexts=int(np.sum(names.lists_of <= 1)),
        position_groups=tuple(
            tuple(group) for group in position_groups(links, names.positions) if shown[np.array(group) - 1].any()
        ),
        doubts=_doubts(names, whole) if names.clicks else (),
        unit=counts.tally.unit,
        repeats=ONCE if whole is None else repeated_lists(whole),
        hygiene=unwanted,
        hint=hint,
    )


def _doubts(names: Index, lists: ListBatch | None) -> tuple[str, ...]:
    """Why the log, of which these are some whole lists, contradicts a registered click model."""
    heavy = heavy_sample(names)
    doubts = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrudentWarning)  # about models that nobody has chosen yet
        for model in candidates():
            with suppress(NotIdentifiedError, LogError):
                check_cells(model, heavy.cells)
                doubts.append(model.fit(heavy.cells, names.positions, lists if model.whole_lists else None).doubt)
    return tuple(filter(None, doubts))


class _Sums(NamedTuple):
    """Sums over some contexts; see `Health`."""

    shown: FloatArray  # by position
    clicked: FloatArray
    without_click: float  # lists
    several_clicks: float
    rare_pairs: int
    moving: float  # impressions
    links: IntArray


def _sums(cells: Cells, positions: int) -> _Sums:
    at = cells.position - 1
    pair, position, at_position, _ = per_position(cells)
    impressions = cells.per_pair()
    moving = np.bincount(pair, minlength=cells.pairs) > 1
    # At the first position, `more` is whether a click follows; at the last click, `prev` is whether one came before.
    no_click = (cells.position == 1) & ~cells.click & ~cells.more & ~np.bool_(cells.single)
    later_last = cells.click & ~cells.more & (cells.prev > 0) & ~np.bool_(cells.single)
    return _Sums(
        np.bincount(at, cells.n, minlength=positions).astype(float, copy=False),
        np.bincount(at[cells.click], cells.n[cells.click], minlength=positions).astype(float, copy=False),
        float(cells.n[no_click].sum()),
        float(cells.n[later_last].sum()),
        int(np.sum(impressions < FEW_IMPRESSIONS)),
        float(impressions[moving].sum()),
        position_links(pair, position, at_position, positions),
    )
