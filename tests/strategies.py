"""Hypothesis strategies for logs, and how to count what they draw."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

import prudent
import prudent.counts.lists
from prudent.counts.cells import Cells
from prudent.storage.manifest import Tally
from tests import reference
from tests.reference import LoggedList, Name, Pair

# No NUL, which text files reject, and no half of a surrogate pair, which is not text.
text_names = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=4)
integer_names = st.integers(-(2**63), 2**63 - 1)
plain_names = st.sampled_from("abcdefgh")


@st.composite
def logs(draw: DrawFn, names: SearchStrategy[Any] = plain_names, max_items: int = 5) -> list[LoggedList]:
    """Lists of equal or varying lengths, without clicks, with few or many; items that move or never do; one item."""
    contexts = draw(st.lists(names, min_size=1, max_size=3, unique=True))
    items = draw(st.lists(names, min_size=1, max_size=max_items, unique=True))
    moving, even = draw(st.booleans()), draw(st.booleans())
    clicks = draw(st.sampled_from([st.just(0), st.just(1), st.integers(0, 1), st.sampled_from([0, 0, 0, 1])]))
    longest = draw(st.integers(1, len(items)))
    shown: list[LoggedList] = []
    for _ in range(draw(st.integers(1, 12))):
        order = draw(st.permutations(items)) if moving else items
        size = longest if even else draw(st.integers(1, longest))
        one = (draw(st.sampled_from(contexts)), tuple(order[:size]), tuple(draw(clicks) for _ in range(size)))
        shown += [one] * draw(st.sampled_from([1, 1, 2, 7, 25]))
    return shown


@st.composite
def linked_logs(draw: DrawFn) -> list[LoggedList]:
    """Logs in which pbm is identified: one context shows each item at each position at least 20 times."""
    items = draw(st.permutations("abcd"))[: draw(st.integers(2, 4))]
    length = draw(st.integers(1, len(items)))
    shown: list[LoggedList] = []
    for turn in range(len(items)):
        order = tuple(items[turn:] + items[:turn])[:length]
        times = draw(st.integers(20, 60))
        # The first so many of these lists have a click at that position: pbm does not see which clicks go together.
        clicked = [draw(st.integers(0, times)) for _ in range(length)]
        shown += [("linked", order, tuple(int(i < n) for n in clicked)) for i in range(times)]
    return [*shown, *draw(logs(max_items=length))]


def table(lists: Sequence[LoggedList]) -> Any:
    """The log as an Arrow table in the layout `lists`."""
    return pa.table(
        {
            "context": _column([context for context, _, _ in lists]),
            "items": pa.array([list(items) for _, items, _ in lists], pa.list_(_kind(lists[0][1][0]))),
            "clicks": pa.array([list(clicks) for _, _, clicks in lists], pa.list_(pa.int8())),
        }
    )


def rows(lists: Sequence[LoggedList]) -> Any:
    """The log as an Arrow table in the layout `rows`."""
    flat = [
        (number, context, item, position, click)
        for number, (context, items, clicks) in enumerate(lists)
        for position, (item, click) in enumerate(zip(items, clicks, strict=True), start=1)
    ]
    impression, context, item, position, click = zip(*flat, strict=True)
    return pa.table(
        {
            "impression": pa.array(impression, pa.int64()),
            "context": _column(context),
            "item": _column(item),
            "position": pa.array(position, pa.int32()),
            "click": pa.array(click, pa.int8()),
        }
    )


def _column(names: Sequence[Name]) -> Any:
    return pa.array(names, _kind(names[0]))


def _kind(name: Name) -> Any:
    return pa.string() if isinstance(name, str) else pa.int64()


def count(lists: Sequence[LoggedList], **settings: Any) -> prudent.Counts:
    return prudent.count(prudent.Log(table(lists)), **settings)


def quick_counts(lists: Sequence[LoggedList]) -> prudent.Counts:
    """The counts of a log without the engine, which takes longer than everything after it.

    That `prudent.count` makes the same cells is shown in `test_counts.py`.
    """
    histogram = reference.histogram(lists)
    pairs = sorted({key[:2] for key in histogram})
    contexts = sorted({context for context, _ in pairs})
    number = {pair: i for i, pair in enumerate(pairs)}
    rows = sorted((number[key[:2]], *key[2:], n) for key, n in histogram.items())
    pair, position, prev, click, more, n = (np.array(column) for column in zip(*rows, strict=True))
    context = np.array([contexts.index(context) for context, _ in pairs])
    counts = prudent.Counts(files=(), tally=Tally(len(lists)))
    cells = Cells.of_columns(context, pair, position, prev, click, more, n.astype(float))
    counts.__dict__["cells"] = cells  # where cached_property looks
    counts.__dict__["sample"] = lambda: as_batch(lists)
    return counts


def as_batch(lists: Sequence[LoggedList]) -> prudent.counts.lists.ListBatch:
    """The lists, numbered as the engine numbers them: by the sorted names of context and item."""
    pairs = sorted({(context, item) for context, items, _ in lists for item in items})
    contexts = sorted({context for context, _ in pairs})
    number = {pair: i for i, pair in enumerate(pairs)}
    length = reference.longest(lists)
    items, clicks = np.full((len(lists), length), -1), np.zeros((len(lists), length), bool)
    for i, (context, names, clicked) in enumerate(lists):
        items[i, : len(names)] = [number[context, name] for name in names]
        clicks[i, : len(names)] = clicked
    of_pair = np.array([contexts.index(context) for context, _ in pairs])
    return prudent.counts.lists.ListBatch(of_pair, items, clicks, np.ones(len(lists), np.int64))


def by_name(lists: Sequence[LoggedList], *columns: Any) -> dict[Pair, Any]:
    """Arrays with one entry per pair, under the names of the pairs."""
    values = zip(*(column.tolist() for column in columns), strict=True)
    return dict(zip(sorted(reference.impressions(lists)), values, strict=True))
