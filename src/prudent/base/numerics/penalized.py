"""A binomial likelihood whose coefficients have normal priors, one variance for each block, fitted as well."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from prudent.base.arrays import FloatArray
from prudent.base.numerics.beta_binomial import clip_logit

# Sums are einsum's over one column: products of matrices go to as many threads as there are, which last digits show.

_ROUNDS, _STEPS = 4, 12  # of new curvature, and of new penalties under it
_PENALTY = (1e-3, 1e9)
_NOTHING = 1e4  # a penalty from which slopes are below 0.01: they are on their way to 0
_SETTLED = 1e-7  # what a step moves at most, at the end
_HARDLY = 1e-9  # spread of a column without information

Block = Sequence[FloatArray] | NDArray[Any]
"""Columns of numbers, or the number of the only column of each row that has a 1."""


class Design:
    """A constant and blocks of columns, those of numbers in standard deviations."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.dense: list[FloatArray] = []
        self.codes: list[NDArray[np.int64]] = []
        self.places: list[NDArray[np.int64]] = []  # of the coefficients of each block
        self.scales: list[FloatArray] = []
        levels: list[int] = []
        for block in blocks:
            if isinstance(block, np.ndarray):
                self.codes.append(block.astype(np.int64))
                levels.append(len(self.codes) - 1)
                self.places.append(np.zeros(0, np.int64))  # known below
                self.scales.append(np.ones(int(block.max(initial=0)) + 1))
            else:
                scale = np.array([np.std(column) for column in block])
                scale[scale < _HARDLY] = np.inf
                at = len(self.dense)
                self.dense += [column / own for column, own in zip(block, scale, strict=True)]
                self.places.append(1 + np.arange(at, len(self.dense)))
                self.scales.append(scale)
        self.starts: list[int] = []
        at = 1 + len(self.dense)
        for number, block in enumerate(blocks):
            if isinstance(block, np.ndarray):
                self.starts.append(at)
                self.places[number] = at + np.arange(len(self.scales[number]))
                at += len(self.scales[number])
        self.width = at

    def times(self, slopes: FloatArray) -> FloatArray | float:
        """The linear predictor."""
        total: FloatArray | float = float(slopes[0])
        for slope, column in zip(slopes[1:], self.dense, strict=False):
            total = total + slope * column
        for codes, start in zip(self.codes, self.starts, strict=True):
            total = total + slopes[start:][codes]
        return total

    def sums(self, values: FloatArray) -> FloatArray:
        """The sum of each column times these values."""
        found = np.zeros(self.width)
        found[0] = np.sum(values)
        for at, column in enumerate(self.dense, start=1):
            found[at] = np.einsum("n,n->", column, values)
        for number, start in enumerate(self.starts):
            some = np.bincount(self.codes[number], values)
            found[start : start + len(some)] = some
        return found

    def gram(self, weight: FloatArray) -> FloatArray:
        """The sums of products of each two columns, times these weights."""
        found = np.zeros((self.width, self.width))
        found[0] = self.sums(weight)
        for at, column in enumerate(self.dense, start=1):
            found[at] = self.sums(weight * column)
        for number, start in enumerate(self.starts):
            size = int(self.codes[number].max(initial=0)) + 1
            here = slice(start, start + size)
            found[here, here] = np.diag(np.bincount(self.codes[number], weight))
            for other, before in zip(self.codes[:number], self.starts[:number], strict=True):
                many = int(other.max(initial=0)) + 1
                both = np.bincount(self.codes[number] * many + other, weight, size * many)
                found[here, before : before + many] = both.reshape(size, many)
        first = 1 + len(self.dense)
        found[first:, :first] = found[:first, first:].T
        lower = np.tril(found, -1)
        return np.asarray(lower + lower.T + np.diag(np.diag(found)))


def fit_penalized(design: Design, clicks: FloatArray, examined: FloatArray, offset: FloatArray) -> list[FloatArray]:
    """The coefficients of each block, in the units of its columns, under the most likely variances of blocks."""
    slopes, penalties = np.zeros(design.width), [10.0] * len(design.places)
    rate = np.array([clicks.sum() + 0.5, examined.sum() - clicks.sum() + 0.5])
    at = _Point(design, clicks, examined, offset, slopes)
    if rate.min() <= 0.5:  # without clicks, or without skips
        penalties = [_PENALTY[1]] * len(penalties)
    for _ in range(_ROUNDS):
        curvature = at.curvature()
        aim = np.einsum("ij,j->i", curvature, at.slopes) + at.gradient
        for _ in range(_STEPS):
            inverse = inverted(curvature + np.diag(_spread(design, penalties)))
            best = np.einsum("ij,j->i", inverse, aim)
            before, penalties = penalties, [
                _penalty(best[block], np.diag(inverse)[block], penalty)
                for block, penalty in zip(design.places, penalties, strict=True)
            ]  # fmt: skip
            if np.allclose(np.log(before), np.log(penalties), rtol=0, atol=0.05):
                break
        at = at.towards(best, _spread(design, penalties))
    spread = _spread(design, penalties)
    inverse = inverted(at.curvature() + np.diag(spread))
    for _ in range(50):
        step = np.einsum("ij,j->i", inverse, at.gradient - spread * at.slopes)
        at = at.towards(at.slopes + step, spread)
        if np.abs(step).max() < _SETTLED:
            break
    return [at.slopes[block] / scale for block, scale in zip(design.places, design.scales, strict=True)]


def _penalty(slopes: FloatArray, variance: FloatArray, penalty: float) -> float:
    """1/τ², by MacKay's fixed point: the number of slopes that data determine over the sum of their squares."""
    if not len(slopes):
        return penalty
    determined = len(slopes) - penalty * float(variance.sum())
    square = float(np.sum(slopes**2))
    found = max(determined, 1e-9) / max(square, 1e-300)
    return _PENALTY[1] if found > _NOTHING else max(found, _PENALTY[0])


def _spread(design: Design, penalties: Sequence[float]) -> FloatArray:
    """The penalty of every coefficient; hardly any for the constant."""
    each = np.full(design.width, 1e-9)
    for block, penalty in zip(design.places, penalties, strict=True):
        each[block] = penalty
    return each


class _Point:
    """The likelihood at some coefficients."""

    def __init__(
        self, design: Design, clicks: FloatArray, examined: FloatArray, offset: FloatArray, slopes: FloatArray
    ) -> None:
        self.design, self.clicks, self.examined, self.offset, self.slopes = design, clicks, examined, offset, slopes
        eta = clip_logit(offset + design.times(slopes))
        self.mean = expit(eta)
        self.value = float(np.sum(clicks * eta - examined * np.logaddexp(0, eta)))
        self.gradient = design.sums(clicks - examined * self.mean)

    def curvature(self) -> FloatArray:
        """The information about the coefficients."""
        return self.design.gram(self.examined * self.mean * (1 - self.mean))

    def towards(self, slopes: FloatArray, spread: FloatArray) -> "_Point":
        """The point at these coefficients, or on the way there, if the posterior density is higher."""
        here = self.value - float(np.sum(spread * self.slopes**2)) / 2
        share = 1.0
        for _ in range(12):
            new = self.slopes + share * (slopes - self.slopes)
            there = _Point(self.design, self.clicks, self.examined, self.offset, new)
            if there.value - float(np.sum(spread * new**2)) / 2 >= here:
                return there
            share /= 2
        return self


def inverted(matrix: FloatArray) -> FloatArray:
    """The inverse of a positive definite matrix, by sweeping row after row."""
    swept = matrix.copy()
    for at in range(len(swept)):
        pivot = max(float(swept[at, at]), 1e-12)
        row, column = swept[at] / pivot, swept[:, at].copy()
        swept -= column[:, None] * row
        swept[at], swept[:, at] = row, -column / pivot
        swept[at, at] = 1 / pivot
    return swept
