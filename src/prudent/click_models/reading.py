"""Users who read a list from the top and may stop after every item: predictions, samples, and where they stopped.

At an item that they examine they click with probability a, its attraction, and then go on with probability c; without
a click they go on with probability γ. What models differ in is `Onward`: γ and c. Down to the last click everything was
examined; below it, only the position where the user stopped is hidden. P(no click from k on | k is examined) is
``Tₖ = (1 − aₖ)(1 − γₖ + γₖTₖ₊₁)``, with T = 1 below the end of a list, so that a last click at l has probability
``aₗ[1 − cₗ(1 − Tₗ₊₁)]``.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.click_models.base import FittedModel


class Onward(NamedTuple):
    """Probabilities to go on reading; both broadcast against lists."""

    unclicked: FloatArray  # γ
    clicked: FloatArray  # c


def silence(attraction: FloatArray, unclicked: FloatArray) -> FloatArray:
    """Tₖ of every position, and 1 below the end."""
    gamma = np.broadcast_to(unclicked, attraction.shape)
    quiet = np.ones((*attraction.shape[:-1], attraction.shape[-1] + 1))
    for k in range(attraction.shape[-1] - 1, -1, -1):
        quiet[..., k] = (1 - attraction[..., k]) * (1 - gamma[..., k] * (1 - quiet[..., k + 1]))
    return quiet


def read_from_top(attraction: FloatArray, onward: Onward, clicks: BoolArray | None) -> FloatArray:
    """P(click at k), alone or given the clicks above."""
    gamma, after_click = (np.broadcast_to(one, attraction.shape) for one in onward)
    read = np.ones(attraction.shape)
    for k in range(attraction.shape[-1] - 1):
        theta, here, on, c = attraction[..., k], read[..., k], gamma[..., k], after_click[..., k]
        if clicks is None:
            read[..., k + 1] = here * ((1 - theta) * on + theta * c)
        else:
            skipped = 1 - here * theta
            still = np.divide(here * (1 - theta) * on, skipped, out=np.zeros_like(here), where=skipped > 0)
            read[..., k + 1] = np.where(clicks[..., k], c, still)
    return np.asarray(attraction * read)


def examined_given(attraction: FloatArray, onward: Onward, clicks: BoolArray) -> FloatArray:
    """P(k is examined | all clicks of the list): 1 down to the last click."""
    length = attraction.shape[-1]
    last = last_click(clicks)
    tail = np.arange(length) > last[..., None]
    c = started(onward, last, attraction.shape)
    quiet = silence(attraction, onward.unclicked)
    below = np.take_along_axis(quiet, last[..., None] + 1, axis=-1)[..., 0]
    stays = np.where(tail, (1 - attraction) * onward.unclicked, 1.0)
    reached = c[..., None] * np.cumprod(np.concatenate([np.ones_like(stays[..., :1]), stays], axis=-1), axis=-1)
    silent = (1 - c * (1 - below))[..., None]
    shape = attraction.shape
    share = np.divide(reached[..., :-1] * quiet[..., :-1], silent, out=np.ones(shape), where=silent > 0)
    return np.where(tail, share, 1.0)


def last_click(clicks: BoolArray) -> IntArray:
    """The place of the last click of each list, from 0; −1 where there is none."""
    length = clicks.shape[-1]
    return np.where(clicks.any(axis=-1), length - 1 - np.argmax(clicks[..., ::-1], axis=-1), -1)


def started(onward: Onward, last: IntArray, shape: tuple[int, ...]) -> FloatArray:
    """P(the item below the last click is examined | that click): c there, and 1 where there is none."""
    place = np.maximum(last, 0)[..., None]
    return np.where(last < 0, 1.0, np.take_along_axis(np.broadcast_to(onward.clicked, shape), place, axis=-1)[..., 0])


def click_from_top(attraction: FloatArray, onward: Onward, rng: np.random.Generator) -> BoolArray:
    """Clicks of such users: u < a is a click, and u < ca one after which they go on, as they do at u ≥ 1 − γ(1 − a)."""
    uniform = rng.random(attraction.shape)
    clicks = uniform < attraction
    stops = np.where(clicks, uniform >= onward.clicked * attraction, uniform < 1 - onward.unclicked * (1 - attraction))
    gone = np.logical_or.accumulate(stops, axis=-1)
    clicks[..., 1:] &= ~gone[..., :-1]
    return clicks


@dataclass(frozen=True, eq=False)
class FittedReader(FittedModel):
    """A fitted model of such users."""

    @abstractmethod
    def onward(self, attraction: FloatArray) -> Onward:
        """The probabilities to go on after each item of lists."""

    def predict(self, attraction: FloatArray, clicks: BoolArray | None = None) -> FloatArray:
        """P(still reading at k) a."""
        return read_from_top(attraction, self.onward(attraction), clicks)

    def examined(self, attraction: FloatArray, clicks: BoolArray) -> FloatArray:
        """1 down to the last click; below it, P(the user got there | the clicks)."""
        return examined_given(attraction, self.onward(attraction), clicks)

    def sample(self, attraction: FloatArray, rng: np.random.Generator) -> BoolArray:
        """Clicks from the top down, until the user stops."""
        return click_from_top(attraction, self.onward(attraction), rng)
