"""The position parameter of a fitted click model, whichever it is."""

import numpy as np

from prudent.base.arrays import FloatArray
from prudent.click_models.base import FittedModel
from prudent.click_models.dependent_click import FittedDependentClick
from prudent.click_models.position_based import FittedPositionBased
from prudent.click_models.user_browsing import FittedUserBrowsing


def kind_of(fitted: FittedModel) -> str:
    """cm, dcm, pbm or ubm."""
    return str(fitted.model).partition("(")[0]


def position_parameter(fitted: FittedModel) -> FloatArray:
    """p of pbm, γ of ubm, λ of dcm; of cm λ = 0, because reading ends with the first click."""
    if isinstance(fitted, FittedPositionBased | FittedUserBrowsing):
        return fitted.examination
    if isinstance(fitted, FittedDependentClick):
        return fitted.continuation
    return np.zeros(fitted.positions)
