"""Verdict: pass, fail or unknown, and the numbers and reasons behind it."""

from abc import abstractmethod
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from prudent.base.results import Result
from prudent.base.text import Column, Columns, Rows, number, percent
from prudent.evaluation.confounding import Confounding
from prudent.evaluation.confounding_by_segment import SegmentTest
from prudent.evaluation.intervals import Estimate

Outcome = Literal["pass", "fail", "unknown"]
"""The lift is high enough, it is not, or the holdout cannot tell."""


_FLOATS = ("lift", "lift_low", "min_lift", "confidence", "support", "effective_sample_size", "sensitivity")


class Decision(Result):
    """A result with a verdict; true as a condition only where that is `pass`."""

    if TYPE_CHECKING:  # a field or a property

        @property
        @abstractmethod
        def verdict(self) -> Outcome: ...  # noqa: D102

    @property
    def passed(self) -> bool:
        """Whether the verdict is `pass`."""
        return self.verdict == "pass"

    def __bool__(self) -> bool:
        return self.passed


@dataclass(frozen=True, repr=False)
class Verdict(Decision):
    """Whether a policy passes the gate; true as a condition only if it does.

    The limits in ``estimate`` are one-sided: with ``confidence`` the lift is at least ``lift_low``. ``reasons`` say why
    the holdout cannot tell; then the verdict is ``"unknown"`` whatever the estimate is. ``acknowledged`` are such
    reasons for which the user took the responsibility.
    """

    verdict: Outcome
    why: str
    estimate: Estimate
    min_lift: float
    confidence: float
    reasons: tuple[str, ...] = ()
    acknowledged: tuple[str, ...] = ()
    confounding: Confounding | None = None  # None where the log has propensities, or is no holdout
    segments: tuple[SegmentTest, ...] = ()  # the same by each column that was named

    @property
    def sentence(self) -> str:
        """Why, with what was acknowledged."""
        return self.why + "".join(f". Acknowledged: {one}" for one in self.acknowledged)

    def __str__(self) -> str:
        return f"{self.verdict}: {self.sentence}"

    __repr__ = __str__

    @property
    def columns(self) -> tuple[Column, ...]:
        """The decision and the numbers behind it."""
        return Column("verdict", str), Column("estimator", str), *(Column(name, float) for name in _FLOATS)

    def rows(self) -> Rows:
        """One row."""
        one = self.estimate
        rule = {"min_lift": self.min_lift, "confidence": self.confidence}
        numbers = (rule[name] if name in rule else getattr(one, name) for name in _FLOATS)
        return [(self.verdict, one.estimator, *numbers)]

    def table(self) -> tuple[Columns, Rows]:
        """The numbers, one below the other."""
        one = self.estimate
        shown = (
            ("estimator", one.estimator),
            ("lift", percent(one.lift, signed=True)),
            (f"lower bound of the lift, confidence {100 * self.confidence:g}%", percent(one.lift_low, signed=True)),
            ("minimum lift", percent(self.min_lift, signed=True)),
            ("support", percent(one.support)),
            ("effective sample size", number(one.effective_sample_size, 0)),
            ("Γ of hidden confounding that would undo it", number(one.sensitivity, 2)),
            *([] if self.confounding is None else [("p of no confounding", f"{self.confounding.p_value:.3g}")]),
            *(
                (f"p of no confounding by {one.segment}", f"{one.test.p_value:.3g}")
                for one in self.segments
                if one.test
            ),
        )
        return [Column("gate", heading=str(self)), Column("value", heading=" ", align="right")], shown

    def to_json(self) -> dict[str, Any]:
        """The fields; fits JSON."""
        return asdict(self)
