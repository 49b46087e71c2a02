"""What tuning finds, and how it says so."""

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from prudent.base.results import Tabular
from prudent.research.comparing import NEAR
from prudent.storage.manifest import Manifest

if TYPE_CHECKING:
    from altair import VConcatChart as Chart

DEFAULT = "exposure(delta=0.5)"
"""What `rank` takes when nothing is said."""
WORTH = 0.05
"""The share of the default's error that another setting has to save before it is chosen."""
_FEW = 3.0  # standard errors that a difference has to exceed, from which on there are too few repetitions to tell


@dataclass(frozen=True)
class Setting:
    """One bound at one δ, and the error of its lists."""

    bound: str
    error: float  # V(A*) − V(Â) per list, on average over repetitions
    se: float  # its standard error
    ratio: float | None  # to the error of the default; None where that is 0
    difference: float  # error minus that of the default on the same logs
    difference_se: float

    def differs(self, times: float) -> bool:
        """Whether its error is another than the default's by more than so many standard errors."""
        return abs(self.difference) > times * self.difference_se


@dataclass(frozen=True)
class Confirmation:
    """The lists of one setting and those of the default on later clicks."""

    bound: str
    value: float  # of a list, on average over the later ones
    default_value: float
    difference: float  # value minus that of the default
    difference_se: float
    lists: int  # later ones, of contexts that both have a list for

    @property
    def word(self) -> str:
        """What later clicks say of the setting: confirmed, contradicted, or neither."""
        if abs(self.difference) <= 2 * self.difference_se:
            return "neither"
        return "confirmed" if self.difference > 0 else "contradicted"


@dataclass(frozen=True, repr=False)
class Tuning(Tabular):
    """Settings, the one with the lowest error first, and what to make of them."""

    settings: tuple[Setting, ...]
    choice: str  # the default, unless another setting is clearly better and later lists do not contradict it
    matters: bool  # whether any setting is clearly better or worse than the default, by a tenth of its error or more
    confirmation: Confirmation | None  # of the setting with the lowest error; None where that is the default
    logged_error: float  # of the lists that were logged
    model: str
    unit: str  # what the value of a list counts
    repetitions: int
    sure: float  # standard errors that make a difference, by Student's t for so many repetitions
    manifest: Manifest = field(default_factory=lambda: Manifest("tuning"))

    @property
    def best(self) -> Setting:
        """The setting with the lowest error."""
        return self.settings[0]

    @property
    def default(self) -> Setting:
        """The default's."""
        return next(setting for setting in self.settings if setting.bound == DEFAULT)

    @property
    def verdict(self) -> str:
        """What to take, and whether it matters."""
        return f"{self._choice()} {self._importance()}"

    def _choice(self) -> str:
        best, confirmation = self.best, self.confirmation
        if confirmation is None:
            return f"Keep {DEFAULT}: nothing has a lower error."
        if self.choice == DEFAULT:
            if not best.differs(self.sure):
                return f"Keep {DEFAULT}: no other setting is better by more than noise."
            if confirmation.word == "contradicted" and _worthwhile(best, self.default):
                saves = f"{best.bound} has {best.ratio:.2f} of its error"
                return f"Keep {DEFAULT}: {saves}, but held-out lists contradict that."
            return f"Keep {DEFAULT}: the best, {best.bound}, saves less than {WORTH:.0%} of its error."
        they = "confirm it" if confirmation.word == "confirmed" else "do not contradict it"
        return f"Take {best.bound}: it has {best.ratio:.2f} of the error of {DEFAULT}, and held-out lists {they}."

    def _importance(self) -> str:
        others = [setting for setting in self.settings if setting.bound != DEFAULT]
        if self.matters:
            worst = max(reversed(others), key=lambda setting: setting.error)  # of equals, the simplest stands last
            if worst.ratio is None or worst.ratio < 1:
                return "The choice matters."
            return f"The choice matters: {worst.bound} has {worst.ratio:.2f} times the error of the default."
        far = max((abs(s.difference) / s.difference_se for s in others if s.difference_se > 0), default=0.0)
        if far <= self.sure and self.sure > _FEW:
            return f"Whether the choice matters, {self.repetitions} repetitions cannot tell."
        if far <= self.sure:
            return f"The choice hardly matters: all settings are within {far:.1f} standard errors of the default."
        return f"The choice hardly matters: no setting differs clearly by {NEAR:.0%} of the default's error."

    def chart(self) -> "Chart":
        """Error against δ, a line for each bound. Needs the extra ``report``."""
        from prudent.evaluation.tune.chart import draw_tuning

        return draw_tuning(self)

    def as_json(self) -> dict[str, Any]:
        """All of it; fits JSON."""
        confirmed = None if self.confirmation is None else asdict(self.confirmation) | {"word": self.confirmation.word}
        return {
            "choice": self.choice,
            "default": DEFAULT,
            "matters": self.matters,
            "verdict": self.verdict,
            "model": self.model,
            "unit": self.unit,
            "repetitions": self.repetitions,
            "logged_error": self.logged_error,
            "settings": [asdict(setting) for setting in self.settings],
            "confirmation": confirmed,
            "manifest": self.manifest.to_json(),
        }

    def rows(self) -> list[tuple[str, ...]]:
        """A table for people: its head, then a row for each setting."""
        head = ("bound", "error", "of the default's", "difference")
        return [head, *map(_row, self.settings)]


def _row(setting: Setting) -> tuple[str, ...]:
    ratio = "–" if setting.ratio is None else f"{setting.ratio:.2f}"
    default = setting.bound == DEFAULT
    difference = "" if default else f"{setting.difference:+.4f} ± {setting.difference_se:.4f}"
    return setting.bound, f"{setting.error:.4f} ± {setting.se:.4f}", "the default" if default else ratio, difference


def decide(settings: tuple[Setting, ...], confirmation: Confirmation | None, sure: float) -> tuple[str, bool]:
    """What to take, and whether the choice matters."""
    best = settings[0]
    default = next(setting for setting in settings if setting.bound == DEFAULT)
    better = best.differs(sure) and _worthwhile(best, default)
    taken = better and confirmation is not None and confirmation.word != "contradicted"
    matters = any(s.differs(sure) and abs(s.difference) > NEAR * default.error for s in settings)
    return best.bound if taken else DEFAULT, matters


def _worthwhile(best: Setting, default: Setting) -> bool:
    return -best.difference > WORTH * default.error
