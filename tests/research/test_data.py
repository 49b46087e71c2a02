"""Logs and labels of files become arrays: contexts by frequency, parts by time, items under their own numbers."""

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from prudent.base.errors import LogError, PrudentWarning, UsageError
from prudent.counts.lists import ListBatch
from prudent.research import data
from prudent.research.data import ClickLog, read_click_log, read_label_set, synthetic_log
from tests import reference
from tests.logs.readers.reading import tabs, write
from tests.research.small import lists_of

Page = tuple[int, int, tuple[int, ...], tuple[int, ...]]  # day, query, urls, clicked urls


def pages(seed: int = 0, days: tuple[int, ...] = (1, 5, 6, 23, 24, 27)) -> list[Page]:
    """Three queries, one more frequent than the next, with ten urls each; query 30 is not on every day."""
    chance = random.Random(seed)
    actual: list[Page] = []
    for day in days:
        for query, times in ((10, 3), (30, 9 if day > 5 else 0), (20, 5)):
            for _ in range(times):
                urls = tuple(chance.sample(range(query * 100, query * 100 + 12), 10))
                actual.append((day, query, urls, tuple(url for url in urls[:6] if chance.random() < 0.3)))
    return actual


def yandex(path: Path, some: list[Page]) -> Path:
    """In the layout of the relevance prediction challenge, a session each."""
    lines = []
    for session, (_, query, urls, clicks) in enumerate(some):
        lines += [tabs(session, 0, "Q", query, 7, *urls), *(tabs(session, 5, "C", url) for url in clicks)]
    return write(path, lines)


def personalized(path: Path, some: list[Page]) -> Path:
    """In the layout of the personalized web search challenge, a session each."""
    lines = []
    for session, (day, query, urls, clicks) in enumerate(some):
        lines += [tabs(session, "M", day, 3), tabs(session, 0, "Q", 0, query, "1,2", *(f"{url},9" for url in urls))]
        lines += [tabs(session, 5, "C", 0, url) for url in clicks]
    return write(path, lines)


def first_four(some: list[Page]) -> Counter[reference.LoggedList]:
    """As plain lists: contexts by their place among the frequent ones, items by their own names."""
    by_frequency = {30: 0, 20: 1, 10: 2}
    return Counter(
        (by_frequency[query], urls[:4], tuple(int(url in clicks) for url in urls[:4]))
        for _, query, urls, clicks in some
    )


def named(log: ClickLog, part: ListBatch) -> Counter[reference.LoggedList]:
    """The same of what was read; numbers of pairs follow those of contexts, and then the names of the urls."""
    every = {(c, url) for c, urls, _ in first_four(pages()) for url in urls}
    urls = [url for _, url in sorted(every)]
    assert log.contexts.tolist() == [c for c, _ in sorted(every)]
    return Counter(
        (context, tuple(urls[int(item)] for item in items), clicks) for context, items, clicks in lists_of(part)
    )


def days(some: list[Page], first: int, last: int) -> list[Page]:
    return [page for page in some if first <= page[0] <= last]


def test_days_are_kept_apart(tmp_path: Path) -> None:
    """1 to 5, 6 to 23, and the rest."""
    log = read_click_log([personalized(tmp_path / "train", pages())], "yandex-personalized")
    assert log.size == 3
    assert log.name == "train"
    for part, (first, last) in zip(log.parts, ((1, 5), (6, 23), (24, 99)), strict=True):
        expected = first_four(days(pages(), first, last))
        assert expected
        assert named(log, part) == expected
        assert part.context is log.contexts


def test_files_are_kept_apart_where_there_are_no_days(tmp_path: Path) -> None:
    """The first is the past, the others the future, and nothing is between."""
    some = pages()
    files = [
        yandex(tmp_path / name, part)
        for name, part in (("a", days(some, 1, 5)), ("b", days(some, 6, 23)), ("c", days(some, 24, 99)))
    ]
    log = read_click_log(files, "yandex")
    assert log.name == "a, b, c"
    past, between, future = (named(log, part) for part in log.parts)
    assert past == first_four(days(some, 1, 5))
    assert not between
    assert future == first_four(days(some, 6, 99))


def test_one_file_cannot_tell_early_from_late(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="Name two or more"):
        read_click_log([yandex(tmp_path / "only", pages())], "yandex")


def test_the_order_of_a_file_does_not_matter(tmp_path: Path) -> None:
    """Draws go by the number of a list: it may depend on nothing but the lists."""
    some = pages()
    shuffled = random.Random(1).sample(some, len(some))
    one, two = (
        read_click_log([personalized(tmp_path / "log", order)], "yandex-personalized") for order in (some, shuffled)
    )
    for a, b in zip(one.parts, two.parts, strict=True):
        np.testing.assert_array_equal(a.items, b.items)
        np.testing.assert_array_equal(a.clicks, b.clicks)
        np.testing.assert_array_equal(a.n, b.n)


def test_equal_lists_share_a_row(tmp_path: Path) -> None:
    page = (1, 10, tuple(range(10)), (2,))
    other = (1, 10, (0, 1, 2, 3, *range(20, 26)), (25,))  # the same above the fold, with a click below it
    log = read_click_log([personalized(tmp_path / "log", [page] * 3 + [other] * 2)], "yandex-personalized")
    assert log.parts[0].n.tolist() == [2, 3]
    assert log.parts[0].clicks.tolist() == [[False] * 4, [False, False, True, False]]


def test_the_most_frequent_queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = read_click_log([personalized(tmp_path / "log", pages())], "yandex-personalized")
    whole, two, one = log.top(3), log.top(2), log.top(1, slice(1, 3))
    assert whole.n.sum() == len(pages())
    assert two.context.max() == 1
    assert Counter(lists_of(two)) == Counter(of for of in lists_of(whole) if int(of[0]) < 2)
    assert one.n.sum() == 9 * 4
    assert len(one.context) == np.count_nonzero(log.contexts == 0)
    monkeypatch.setattr(data, "MOST_QUERIES", 2)
    few = read_click_log([personalized(tmp_path / "log", pages())], "yandex-personalized")
    assert few.size == 2
    assert Counter(lists_of(few.top(2))) == Counter(lists_of(two))


def test_a_log_without_lists_is_an_error(tmp_path: Path) -> None:
    short = tabs(0, 0, "Q", 1, 7, 1, 2, 3)
    files = [write(tmp_path / name, [short]) for name in "ab"]
    with pytest.warns(PrudentWarning, match="1 lists are left out"), pytest.raises(LogError, match="No valid list"):
        read_click_log(files, "yandex")


def test_a_file_cannot_be_earlier_and_later(tmp_path: Path) -> None:
    file = write(tmp_path / "a", [tabs(0, 0, "Q", 1, 7, *range(10))])
    with pytest.raises(UsageError, match="named twice"):
        read_click_log([file, tmp_path / "." / "a"], "yandex")


def test_a_stand_in_has_three_parts_and_its_own_seed() -> None:
    log = synthetic_log(0)
    assert log.size == 20
    assert [int(part.n.sum()) for part in log.parts] == [40_000, 160_000, 80_000]
    assert synthetic_log(1).contexts.tolist() != log.contexts.tolist()


# --- labels ----------------------------------------------------------------------------------------------------------


def test_labels_query_by_query(tmp_path: Path) -> None:
    """A query with three documents makes no list of four."""
    one = [f"{label} qid:7 1:0.5" for label in (0, 4, 1, 2)] + [f"3 qid:8 1:{i}" for i in range(3)]
    two = [f"{label} qid:9 1:0" for label in (1, 1, 0, 0, 2)]
    actual = read_label_set([write(tmp_path / "a.txt", one), write(tmp_path / "b.txt", two)])
    assert actual.name == "a.txt, b.txt"
    assert actual.sizes.tolist() == [4, 5]
    assert actual.label.tolist() == [0, 4, 1, 2, 1, 1, 0, 0, 2]


def test_labels_of_short_queries_only(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="No query has 4 labelled documents"):
        read_label_set([write(tmp_path / "a.txt", ["0 qid:1 1:0", "1 qid:2 1:0"])])
