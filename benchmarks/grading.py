"""How far fitted parameters of a click model are from the true ones; for both sides of a comparison alike."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

OFTEN = 100  # impressions of pairs whose θ anybody may expect to be found

Array = NDArray[Any]


def grade(kind: str, theta: Array, position: Array, truth: Array, true_position: Array, shown: Array) -> dict[str, Any]:
    """Root mean square errors.

    ``rmse`` of θ is weighted by impressions, so it is about an impression drawn at random; ``rmse_often`` is about the
    pairs with at least `OFTEN` of them. Of a position-based model only the product pₖθ is identified: p₁ = 1 here.
    The λ of a dependent-click model at the last position is left out, for nobody is seen to go on there.
    """
    if kind == "pbm":
        theta, position = theta * position[0], position / position[0]
        truth, true_position = truth * true_position[0], true_position / true_position[0]
    last = len(true_position) - (kind == "dcm")
    error, often = theta - truth, shown >= OFTEN
    return {
        "rmse": float(np.sqrt(np.average(error**2, weights=shown))),
        "rmse_often": float(np.sqrt(np.mean(error[often] ** 2))) if often.any() else None,
        "rmse_position": None if kind == "cm" else float(np.sqrt(np.mean((position - true_position)[:last] ** 2))),
    }
