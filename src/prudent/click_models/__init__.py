"""Click models: how clicks come about, and what the counts say about each item under them.

>>> from prudent import click_models
>>> model = click_models.parse("dcm( tail = truncate )")
>>> str(model), model.unit
('dcm(tail=truncate)', 'probability of a satisfied click')
"""

from prudent.click_models.base import ClickModel, FittedModel, click_models
from prudent.click_models.cascade import Cascade
from prudent.click_models.dependent_click import DependentClick
from prudent.click_models.evidence import Evidence
from prudent.click_models.position_based import PositionBased
from prudent.click_models.selection import Auto
from prudent.click_models.user_browsing import UserBrowsing

parse = click_models.parse
"""The click model that a spelling such as ``"dcm(tail=truncate)"`` stands for."""

__all__ = [
    "Auto",
    "Cascade",
    "ClickModel",
    "DependentClick",
    "Evidence",
    "FittedModel",
    "PositionBased",
    "UserBrowsing",
    "click_models",
    "parse",
]
