"""Click models: how clicks come about, and what the counts say about each item under them."""

from prudent.click_models.auto import Auto
from prudent.click_models.base import ClickModel, Evidence, click_models
from prudent.click_models.cascade import Cascade
from prudent.click_models.dependent_click import DependentClick
from prudent.click_models.position_based import PositionBased

parse = click_models.parse
"""The value that a spelling stands for."""

__all__ = ["Auto", "Cascade", "ClickModel", "DependentClick", "Evidence", "PositionBased", "click_models", "parse"]
