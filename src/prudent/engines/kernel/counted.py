"""What counting a stream of lists takes and gives, in the compiled kernel and in its twin."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from prudent.storage.run import NameColumn, Run, WholeLists

Choose = Callable[[Run, NDArray[np.int64]], NDArray[np.bool_]]
"""Of a run and the number of lists of each of its contexts: of which contexts to keep whole lists."""


@dataclass(frozen=True)
class Counted:
    """The counts of some lists."""

    run: Run
    lists: WholeLists  # of the chosen contexts
    tally: NDArray[np.int64]  # lists by the number of the reason to reject them; 0 is none
    last: bool = False  # whether it is known that none follows


def chosen(choose: Choose, run: Run, lists: NDArray[np.int64]) -> NDArray[np.bool_]:
    """What was chosen: one for each context."""
    if not len(lists):
        return np.zeros(0, bool)
    contexts = np.ascontiguousarray(choose(run, lists), bool)
    if contexts.shape != lists.shape:
        raise ValueError(f"{contexts.shape} chosen of {lists.shape} contexts")
    return contexts


class Types(NamedTuple):
    """Arrow's letters for the types of names and clicks, and whether offsets have 64 bits."""

    context: str
    item: str
    click: str
    wide: tuple[bool, bool, bool, bool]  # of contexts, lists of items, items, lists of clicks


def kind(names: NameColumn) -> str:
    """Arrow's letter for the type of names."""
    if names.ends is not None:
        return "u"
    return "L" if names.values.dtype.kind == "u" else "l"
