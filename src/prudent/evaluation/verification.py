"""Verification: promised against earned, as a table, as JSON and as metrics for Prometheus."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from prudent.base.results import Result
from prudent.base.text import Column, Columns, Rows, number, percent, several
from prudent.storage.files import replacing

_GAUGES = {
    "lists": "Lists since the launch that show what the policy has for their context.",
    "served": "Share of the lists in contexts of the policy that show what it has.",
    "contexts": "Contexts of these lists.",
    "promised": "Reward per list that the policy promised.",
    "earned": "Reward per list that its lists earned.",
    "ratio": "Earned by promised.",
    "ratio_low": "Lower limit of earned by promised, valid at all times.",
    "ratio_high": "Upper limit of earned by promised, valid at all times.",
    "floor": "Earned by promised below which the promise is broken.",
    "drifted": "Contexts whose lists earn significantly less than promised.",
}


class Drift(NamedTuple):
    """A context whose lists earn significantly less than promised."""

    context: str | int
    lists: int
    promised: float
    earned: float


@dataclass(frozen=True, repr=False)
class Verification(Result):
    """Whether a policy keeps its promise: ``verdict`` is ``"ok"``, ``"alert"`` or, without a list of it, ``"unknown"``.

    ``promised`` and ``earned`` are rewards per list of the policy in the log; ``ratio`` is earned by promised, with
    limits that hold at all times at once. There is an alert where the ratio is significantly below ``floor``, which is
    1 without the uncertainty of the promise and the tolerance.
    """

    verdict: Literal["ok", "alert", "unknown"]
    lists: int
    served: float  # share of the lists in contexts of the policy that show what it has
    contexts: int
    promised: float
    earned: float
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    floor: float
    reward: str
    confidence: float
    drifted: int
    drifts: tuple[Drift, ...] = ()  # the first of them, the clearest first

    def __bool__(self) -> bool:
        return self.verdict == "ok"

    @property
    def sentence(self) -> str:
        """The verdict with its reason."""
        if self.ratio is None:
            return "Cannot tell: no list of this log shows what the policy has for its context, or it promised nothing."
        interval = f"{percent(self.ratio_low)} to {percent(self.ratio_high)}"
        found = {"alert": "significantly less than", "ok": "not significantly less than"}[self.verdict]
        below = "" if self.floor > 0.9995 else f" {percent(self.floor)} of"
        return (
            f"{several(self.lists, 'list')} earn {number(self.earned)} {self.reward} each, {percent(self.ratio)} of "
            f"the promised {number(self.promised)} ({interval} with confidence {100 * self.confidence:g}%, on every "
            f"night): {found}{below} what was promised."
        )

    def __str__(self) -> str:
        return f"{self.verdict}: {self.sentence}"

    __repr__ = __str__

    @property
    def columns(self) -> tuple[Column, ...]:
        """The verdict and the numbers."""
        whole = ("lists", "contexts", "drifted")
        return Column("verdict", str), *(Column(name, int if name in whole else float) for name in _GAUGES)

    def rows(self) -> Rows:
        """One row."""
        return [(self.verdict, *(getattr(self, name) for name in _GAUGES))]

    def table(self) -> tuple[Columns, Rows]:
        """The contexts that drifted."""
        columns = [
            Column("context", object, "drifted context"),
            Column("lists", int),
            Column("promised", float),
            Column("earned", float),
        ]
        return columns, [tuple(one) for one in self.drifts]

    def to_json(self) -> dict[str, Any]:
        """The fields; fits JSON."""
        return {**asdict(self), "drifts": [one._asdict() for one in self.drifts]}

    def to_prometheus(self) -> str:
        """The numbers in the text format of Prometheus; those that are not known are left out.

        >>> one = Verification("ok", 9, 1.0, 1, 1.0, 1.0, 1.0, 0.5, 1.5, 0.9, "clicks", 0.95, 0)
        >>> print(one.to_prometheus().splitlines()[2])
        prudent_alert 0
        """
        alert = "Whether the policy earns significantly less than promised, or nothing is known of it."
        metrics = {
            "alert": (alert, int(not self)),
            **{name: (text, getattr(self, name)) for name, text in _GAUGES.items()},
        }
        lines = [
            f"# HELP prudent_{name} {text}\n# TYPE prudent_{name} gauge\nprudent_{name} {value!r}\n"
            for name, (text, value) in metrics.items()
            if value is not None
        ]
        return "".join(lines)

    def write(self, path: Path) -> None:
        """Write the metrics: JSON, or for a name that ends in ``.prom`` the text format of Prometheus."""
        text = self.to_prometheus() if path.suffix == ".prom" else json.dumps(self.to_json(), indent=2) + "\n"
        with replacing(path) as part:
            part.write_text(text, encoding="utf-8")
