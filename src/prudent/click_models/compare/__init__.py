"""Which click model tells best what users click: fitted to one part of a log, scored on the other.

A click model gives every list of clicks a probability. With θ of every item (the mean of its Beta posterior under a
uniform prior, so ½ for an item that the first part never showed) and the position parameters as fitted,

- ``pbm``: ``P(Yₖ = 1) = pₖ θₖ``, whatever else was clicked;
- ``dcm``: ``P(Yₖ = 1) = eₖ θₖ``, where eₖ, the probability that position k is read, starts at 1. Without a look at the
  clicks it goes on as ``eₖ₊₁ = eₖ (1 − θₖ + λₖ θₖ)``; knowing them, as λₖ after a click and as
  ``eₖ (1 − θₖ) / (1 − eₖ θₖ)`` after none;
- ``cm``: the same with λ = 0. A second click is impossible, and a log that has one rules the model out.

The log-likelihood of a list is ``Σₖ log P(Yₖ | Y₁ … Yₖ₋₁)``, natural logarithms; for dcm the sum over where reading
stopped is in it. The perplexity of position k is ``2^(−mean log₂ P(Yₖ))`` over the lists that have it: 1 foresees every
click, 2 tosses coins. That of a model is the mean over positions. Conditional perplexity is the same with
``P(Yₖ | Y₁ … Yₖ₋₁)``.

Two rows are no click models, and cannot win: the click rate of the position, and that of the item.
"""

from prudent.click_models.compare.logs import choose, compare
from prudent.click_models.compare.results import MODELS, REFERENCES, Comparison, Score
from prudent.click_models.compare.scoring import compare_lists, read_models

__all__ = [
    "MODELS",
    "REFERENCES",
    "Comparison",
    "Score",
    "choose",
    "compare",
    "compare_lists",
    "read_models",
]
