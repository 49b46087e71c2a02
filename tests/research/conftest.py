"""Experiments small enough for tests."""

from functools import partial

import pytest

from prudent.research import bench, default, long_tail, paper
from prudent.research.long_tail import LongTail
from prudent.research.sources import YandexLike


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries with few items, label sets of few queries, a floor of two logs, few contexts in a long tail."""
    few = partial(YandexLike, items=(5, 8))
    for module in (bench, default, paper):
        monkeypatch.setattr(module, "YandexLike", few)
    monkeypatch.setattr(long_tail, "LongTail", partial(LongTail, contexts=60))
    monkeypatch.setattr(paper, "QUERIES", 6)
    monkeypatch.setattr(default, "_QUERIES", dict.fromkeys(default._QUERIES, 6))
    monkeypatch.setattr(default, "FLOOR_LOGS", 2)
    monkeypatch.setattr(paper, "SIZES", (50, 200))
