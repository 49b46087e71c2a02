"""The simulated logs that everything is measured on.

100,000 contexts of 40 to 60 items each, the r-th most frequent shown r^−.5 as often; lists of 10 by a production
ranker that explores. At a million lists a (context, item) pair that is shown at all is shown 2.7 times: a long tail, as
logs of search have it, on which a histogram is hardly shorter than its log.
"""

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # NumPy's memory would show in every process that is started from here
    from prudent.click_models.world import World

SIZES = {"100k": 100_000, "1m": 1_000_000, "10m": 10_000_000}
CONTEXTS = 100_000


def size() -> str:
    """The environment variable SIZE; published results are of a million lists."""
    name = os.environ.get("SIZE", "1m").lower()
    if name not in SIZES:
        sys.exit(f"SIZE is {name}; choose one of {', '.join(SIZES)}.")
    return name


def contexts(lists: int) -> int:
    """Contexts for a log of this size; fewer lists have fewer contexts, so that their density stays the same."""
    return min(CONTEXTS, lists // 10)


def world(kind: str, contexts: int = CONTEXTS) -> "World":
    from prudent.click_models.world import make_world

    return make_world(kind, contexts=contexts, items=(40, 60), zipf=0.5, exploration=3.0, seed=1)


def make_log(log: str, lists: str, contexts: str, kind: str = "pbm") -> None:
    """A Parquet log with names of text: ``query 17``, ``item-1234567``."""
    import numpy as np

    from prudent.click_models.simulate import write_log

    true = world(kind, int(contexts))
    named = replace(
        true,
        contexts=np.array([f"query {number}" for number in true.contexts], dtype=object),
        items=np.array([f"item-{number}" for number in true.items], dtype=object),
    )
    write_log(named, int(lists), Path(log), seed=1)


def megabytes(file: Path) -> float:
    return file.stat().st_size / 1e6
