"""Experiments small enough for tests."""

from functools import partial

import pytest

from prudent.experiments import bench, paper
from prudent.experiments.sources import YandexLike


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries with few items, label sets of few queries, two sample sizes; all else is as it is."""
    few = partial(YandexLike, items=(5, 8))
    for module in (bench, paper):
        monkeypatch.setattr(module, "YandexLike", few)
    monkeypatch.setattr(paper, "QUERIES", 6)
    monkeypatch.setattr(paper, "SIZES", (50, 200))
