"""SQUAREM: accelerated fixed points of slowly converging iterations such as EM (Varadhan and Roland 2008).

On the Yandex sample, EM of dcm's attraction needs about 2,300 plain rounds to settle to 1e-7; this needs about 40.
"""

from collections.abc import Callable

import numpy as np

from prudent.base.arrays import BoolArray, FloatArray, IntArray


def fixed_point(
    step: Callable[[FloatArray], FloatArray], start: FloatArray, tolerance: float, groups: IntArray, rounds: int
) -> tuple[FloatArray, BoolArray]:
    """The fixed points of a slowly converging `step` on probabilities, by squared extrapolation (SQUAREM).

    Groups of parameters, which start at `groups`, are independent and converge separately; the second result says which
    have. Two steps give a direction r and its change v; the next start is x + 2sr + s²v with s = |r|/|v|, which follows
    the slowest direction many steps at once. A guess outside [0, 1] is clipped, and one that moves away is undone, so
    that it costs a round and never the answer. A group has converged when a plain step moves no parameter of it by more
    than `tolerance`.
    """
    size = np.diff(groups, append=len(start))
    group = np.repeat(np.arange(len(groups)), size)

    def length(vector: FloatArray) -> FloatArray:
        # Not by `norm`, which goes to as many threads as there are: their number would show in the last digits.
        return np.asarray(np.sqrt(np.bincount(group, vector * vector, minlength=len(groups))))

    x, fallback = start, start
    before, longest, rest = np.full(len(groups), np.inf), np.full(len(groups), 4.0), np.zeros(len(groups), bool)
    for left in reversed(range(rounds)):
        first = step(x)
        r = first - x
        moved = length(r)
        astray = ~(moved <= 2 * before) & ~rest  # the extrapolation went too far: go on from the plain steps before it
        settles = ~astray & ~rest & (np.maximum.reduceat(np.abs(r), groups) < tolerance)
        x = np.where(settles[group], first, x)
        rest = rest | settles
        if rest.all():
            break
        if not left:  # what two more steps would extrapolate to, nothing would check
            x = np.where(rest[group], x, np.where(astray[group], fallback, first))
            break
        second = step(first)
        v = second - first - r
        bend = length(v)
        stride = np.clip(np.divide(moved, bend, out=np.ones(len(groups)), where=bend > 0), 1.0, longest)
        longest = np.where(stride == longest, longest * 4, longest)  # good enough for the limit: earns a longer one
        s = stride[group]
        guess = step(np.clip(x + 2 * s * r + s * s * v, 0.0, 1.0))
        x = np.where(rest[group], x, np.where(astray[group], fallback, guess))
        fallback = np.where((rest | astray)[group], x, second)
        before, longest = np.where(astray, np.inf, moved), np.where(astray, 4.0, longest)
    return x, rest
