"""The result of tuning."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from prudent.base.results import Result
from prudent.base.text import Column, Columns, Rows, number, percent, plus_minus
from prudent.bounds import DEFAULT_BOUND
from prudent.storage.manifest import Manifest

if TYPE_CHECKING:
    from altair import VConcatChart as Chart

SHARE_TO_SAVE = 0.05
"""The share of the default's regret that another setting has to save before it is chosen."""
NEGLIGIBLE_SHARE = 0.1
"""The share of the default's regret below which a difference does not matter."""
_LARGE_CRITICAL_VALUE = 3.0  # in standard errors: where significance takes more, there are too few repetitions


@dataclass(frozen=True)
class Setting:
    """One bound at one δ, and the regret of its lists."""

    bound: str
    regret: float  # V(A*) − V(Â) per list, on average over repetitions
    se: float  # its standard error
    ratio: float | None  # to the regret of the default; None where that is 0
    difference: float  # regret minus that of the default on the same logs
    difference_se: float

    def differs(self, times: float) -> bool:
        """Whether its regret differs from the default's by more than so many standard errors."""
        return abs(self.difference) > times * self.difference_se


@dataclass(frozen=True)
class Confirmation:
    """The lists of one setting and those of the default on the holdout."""

    bound: str
    value: float  # of a list, on average over the holdout
    default_value: float
    difference: float  # value minus that of the default
    difference_se: float
    lists: int  # of the holdout, of contexts that both have a list for

    @property
    def outcome(self) -> str:
        """Whether the holdout confirms the setting: confirmed, contradicted, or neither."""
        if abs(self.difference) <= 2 * self.difference_se:
            return "neither"
        return "confirmed" if self.difference > 0 else "contradicted"


@dataclass(frozen=True, repr=False)
class Tuning(Result):
    """Settings by regret on simulated logs, the lowest first."""

    settings: tuple[Setting, ...]
    choice: str  # the default, unless another setting is significantly better and the holdout does not contradict it
    matters: bool  # whether a setting differs significantly from the default, by a tenth of its regret or more
    confirmation: Confirmation | None  # of the setting with the lowest regret; None where that is the default
    logged_regret: float  # of the logged lists
    model: str
    unit: str  # what the value of a list counts
    repetitions: int
    sure: float  # standard errors that make a difference significant, by Student's t for so many repetitions
    manifest: Manifest = field(default_factory=lambda: Manifest("tuning"))

    @property
    def best(self) -> Setting:
        """The setting with the lowest regret."""
        return self.settings[0]

    @property
    def default(self) -> Setting:
        """The setting of the default bound."""
        return next(setting for setting in self.settings if setting.bound == DEFAULT_BOUND)

    @property
    def verdict(self) -> str:
        """Which bound to use, and whether the choice matters."""
        return f"{self._choice()} {self._importance()}"

    def _choice(self) -> str:
        best, confirmation = self.best, self.confirmation
        if confirmation is None:
            return f"Keep {DEFAULT_BOUND}: no setting has a lower regret."
        if self.choice == DEFAULT_BOUND:
            if not best.differs(self.sure):
                return f"Keep {DEFAULT_BOUND}: no other setting is significantly better."
            if confirmation.outcome == "contradicted" and _worthwhile(best, self.default):
                saves = f"{best.bound} has {number(best.ratio, 2)} of its regret on simulated logs"
                return f"Keep {DEFAULT_BOUND}: {saves}, but the holdout contradicts that."
            little = f"less than {percent(SHARE_TO_SAVE, 0)} of its regret"
            return f"Keep {DEFAULT_BOUND}: the best, {best.bound}, saves {little}."
        holdout = "confirms it" if confirmation.outcome == "confirmed" else "does not contradict it"
        regret = f"{number(best.ratio, 2)} of the regret of {DEFAULT_BOUND}"
        return f"Use {best.bound}: it has {regret}, and the holdout {holdout}."

    def _importance(self) -> str:
        others = [setting for setting in self.settings if setting.bound != DEFAULT_BOUND]
        if self.matters:
            worst = max(reversed(others), key=lambda setting: setting.regret)  # of equals, the simplest stands last
            if worst.ratio is None or worst.ratio < 1:
                return "The choice matters."
            return f"The choice matters: {worst.bound} has {number(worst.ratio, 2)} times the regret of the default."
        far = max((abs(s.difference) / s.difference_se for s in others if s.difference_se > 0), default=0.0)
        if far <= self.sure and self.sure > _LARGE_CRITICAL_VALUE:
            return f"{self.repetitions} repetitions are too few to say whether the choice matters."
        if far <= self.sure:
            return f"The choice hardly matters: all settings are within {far:.1f} standard errors of the default."
        return (
            f"The choice hardly matters: no setting differs by {percent(NEGLIGIBLE_SHARE, 0)} of the default's regret."
        )

    @property
    def title(self) -> str:
        """What the numbers are."""
        return f"Regret per list ({self.unit}) on {self.repetitions} logs simulated from {self.model}."

    @property
    def notes(self) -> Sequence[str]:
        """The holdout, and the verdict."""
        return [*([self.holdout] if self.holdout else []), self.verdict]

    @property
    def holdout(self) -> str:
        """The best setting against the default on the holdout; empty where they are the same."""
        later = self.confirmation
        if later is None:
            return ""
        values = f"{later.bound} {number(later.value, 4)}, {DEFAULT_BOUND} {number(later.default_value, 4)}"
        gain = plus_minus(later.difference, later.difference_se, signed=True)
        return f"Value per list on {later.lists:,} holdout lists: {values}, a difference of {gain}."

    @property
    def columns(self) -> tuple[Column, ...]:
        """One row for each setting."""
        names = ("regret", "se", "ratio", "difference", "difference_se")
        return (Column("bound", str), *(Column(name, float) for name in names))

    def rows(self) -> Rows:
        """The values of every setting."""
        return [[getattr(setting, column.name) for column in self.columns] for setting in self.settings]

    def table(self) -> tuple[Columns, Rows]:
        """Regrets with their standard errors."""
        columns = [
            Column("bound", str),
            *(Column(name, str, show=str, align="right") for name in ("regret", "ratio", "difference")),
        ]
        rows = []
        for one in self.settings:
            default = one.bound == DEFAULT_BOUND
            ratio = "default" if default else number(one.ratio, 2)
            difference = "" if default else plus_minus(one.difference, one.difference_se, signed=True)
            rows.append([one.bound, plus_minus(one.regret, one.se), ratio, difference])
        return columns, rows

    def chart(self) -> "Chart":
        """Regret against δ, a line for each bound. Needs the extra ``report``."""
        from prudent.evaluation.tuning_chart import draw_tuning

        return draw_tuning(self)

    def to_json(self) -> dict[str, Any]:
        """All of it; fits JSON."""
        later = self.confirmation
        return {
            "choice": self.choice,
            "default": DEFAULT_BOUND,
            "matters": self.matters,
            "verdict": self.verdict,
            "model": self.model,
            "unit": self.unit,
            "repetitions": self.repetitions,
            "logged_regret": self.logged_regret,
            "settings": [asdict(setting) for setting in self.settings],
            "confirmation": None if later is None else asdict(later) | {"outcome": later.outcome},
            "manifest": self.manifest.to_json(),
        }


def decide(settings: tuple[Setting, ...], confirmation: Confirmation | None, sure: float) -> tuple[str, bool]:
    """The bound to use, and whether the choice matters."""
    best = settings[0]
    default = next(setting for setting in settings if setting.bound == DEFAULT_BOUND)
    better = best.differs(sure) and _worthwhile(best, default)
    taken = better and confirmation is not None and confirmation.outcome != "contradicted"
    matters = any(s.differs(sure) and abs(s.difference) > NEGLIGIBLE_SHARE * default.regret for s in settings)
    return best.bound if taken else DEFAULT_BOUND, matters


def _worthwhile(best: Setting, default: Setting) -> bool:
    return -best.difference > SHARE_TO_SAVE * default.regret
