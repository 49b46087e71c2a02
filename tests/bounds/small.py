"""Evidence written by hand."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from prudent.click_models import PositionBased, click_models
from prudent.click_models.evidence import Evidence
from prudent.counts.cells import Cells


def evidence(
    positive: Sequence[float] | ArrayLike,
    negative: Sequence[float] | ArrayLike,
    context: Sequence[int] | ArrayLike | None = None,
    impressions: Sequence[int] | ArrayLike | None = None,
) -> Evidence:
    """One context and as many impressions as examinations, unless told otherwise."""
    n_plus, n_minus = np.asarray(positive, dtype=float), np.asarray(negative, dtype=float)
    of = np.zeros(n_plus.size, dtype=np.int64) if context is None else np.asarray(context, dtype=np.int64)
    shown = np.ceil(n_plus + n_minus) if impressions is None else impressions
    return Evidence(
        context=of,
        item=np.arange(n_plus.size),
        positive=n_plus,
        negative=n_minus,
        impressions=np.asarray(shown, dtype=np.int64),
        fitted=click_models.parse("cm").typical(4),
        expected=n_plus + n_minus,
        squares=n_plus + n_minus,
        discounted=np.asarray(shown, dtype=float),
        hazard=np.asarray(shown, dtype=float),
    )


def pbm_evidence(clicks: Sequence[Sequence[int]] | ArrayLike, p: Sequence[float]) -> Evidence:
    """One item per row, shown once at each position in a context of its own, under ``pbm`` with this examination."""
    shown = np.asarray(clicks)
    items, positions = shown.shape
    cells = Cells.of_columns(
        context=np.arange(items),
        pair=np.repeat(np.arange(items), positions),
        position=np.tile(np.arange(1, positions + 1), items),
        prev=np.zeros(shown.size, np.int64),
        click=shown.ravel() > 0,
        more=np.zeros(shown.size, bool),
        n=np.ones(shown.size),
    )
    return PositionBased(examination=tuple(p)).fit(cells, positions).evidence(cells)
