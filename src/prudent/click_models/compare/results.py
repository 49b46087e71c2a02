"""What a comparison of click models finds, and how it says so."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from math import floor, log10
from typing import TYPE_CHECKING, Any

from prudent.base.errors import UsageError
from prudent.base.results import Tabular
from prudent.storage.manifest import Manifest

if TYPE_CHECKING:
    from altair import VConcatChart as Chart

MODELS = ("cm", "dcm", "pbm")
"""What is compared when nothing is said."""
REFERENCES = ("CTR by item", "CTR by position")
"""What is no click model, but should be beaten by one."""
SURE = 2.0
"""Standard errors by which the best model is ahead of another before that counts."""


@dataclass(frozen=True)
class Score:
    """How well one model foresees the clicks of lists it has not seen; None where it cannot say."""

    model: str
    log_likelihood: float | None  # per list
    perplexity: float | None
    conditional_perplexity: float | None
    by_position: tuple[float | None, ...]  # perplexity
    predicted_ctr: tuple[float, ...]  # by position
    seconds: float  # to fit and to score
    why: str = ""  # it has no log-likelihood
    behind: float | None = None  # log-likelihood per list that it is behind the winner
    behind_se: float | None = None  # standard error of that, list by list
    reference: bool = False  # no click model: it cannot win

    @property
    def is_behind(self) -> bool:
        """Whether it is behind the winner by more than noise."""
        return self.behind is not None and self.behind_se is not None and self.behind > SURE * self.behind_se


@dataclass(frozen=True, repr=False)
class Comparison(Tabular):
    """Click models, the best first."""

    scores: tuple[Score, ...]
    winner: str | None  # the click model with the highest log-likelihood; None where none has any
    observed_ctr: tuple[float, ...]  # by position, of the lists that models are scored on
    train_lists: int
    test_lists: int
    unseen: float = 0.0  # share of the impressions scored whose item the models had never seen in that context
    manifest: Manifest = field(default_factory=lambda: Manifest("comparison"))

    def __getitem__(self, model: str) -> Score:
        for score in self.scores:
            if score.model == model:
                return score
        raise UsageError(f"{model!r} was not compared. There are: {', '.join(score.model for score in self.scores)}.")

    @property
    def losers(self) -> tuple[Score, ...]:
        """The click models that have a log-likelihood and did not win, the best first."""
        return tuple(s for s in self.scores if s.behind is not None and not s.reference and s.model != self.winner)

    @property
    def clear(self) -> bool:
        """Whether the winner is ahead of every other click model by more than two standard errors."""
        return self.winner is not None and bool(self._others) and all(score.is_behind for score in self.losers)

    @property
    def _others(self) -> tuple[Score, ...]:
        return tuple(score for score in self.scores if not score.reference and score.model != self.winner)

    @property
    def verdict(self) -> str:
        """Who won, by how much, and whether that is more than noise."""
        if self.winner is None:
            return "There is no winner: no click model can say how likely these lists are."
        near = [score.model for score in self.losers if not score.is_behind]
        if near:
            are = "is" if len(near) == 1 else "are"
            said = f"No clear winner: {_and(near)} {are} within two standard errors of {self.winner}."
        elif self.losers:
            second = self.losers[0]
            said = (
                f"{self.winner} wins: its log-likelihood per list is higher than that of {second.model} by "
                f"{_plus_minus(second)}."
            )
        elif self._others:
            said = f"{self.winner} wins: no other click model can say how likely these lists are."
        else:
            said = f"{self.winner} was compared with no other click model."
        if (best := self.scores[0]).reference:
            said += f" But plain {best.model} foresees more than any of them"
            said += (
                f": {self.unseen:.0%} of what was scored are items they had not seen." if self.unseen > 0.05 else "."
            )
        return said

    @property
    def for_auto(self) -> str | None:
        """The model that ``auto`` takes: its own choice, pbm, unless another is ahead by more than two standard errors.

        So a near tie does not flip it from one day to the next. None where pbm was not compared or is not identified.
        """
        pbm = next((score for score in self.scores if score.model == "pbm"), None)
        if pbm is None or pbm.log_likelihood is None:
            return None
        return self.winner if pbm.is_behind else pbm.model

    def chart(self) -> "Chart":
        """Log-likelihood, perplexity by position, and click rates by position, foreseen and observed.

        Needs the extra ``report``.
        """
        from prudent.click_models.compare.chart import draw_comparison

        return draw_comparison(self)

    def as_json(self) -> dict[str, Any]:
        """All of it; fits JSON."""
        return {
            "winner": self.winner,
            "clear": self.clear,
            "verdict": self.verdict,
            "train_lists": self.train_lists,
            "test_lists": self.test_lists,
            "unseen": self.unseen,
            "observed_ctr": list(self.observed_ctr),
            "scores": [asdict(score) for score in self.scores],
            "manifest": self.manifest.to_json(),
        }

    def rows(self) -> list[tuple[str, ...]]:
        """A table for people: its head, then a row for each model."""
        head = ("model", "log-likelihood", "behind", "perplexity", "cond.", "seconds")
        return [head, *map(_row, self.scores)]


def _row(score: Score) -> tuple[str, ...]:
    behind = "–" if score.behind is None else "" if not score.behind and not score.behind_se else _plus_minus(score)
    told = (score.log_likelihood, score.perplexity, score.conditional_perplexity)
    likelihood, perplexity, conditional = ("–" if value is None else f"{value:.4f}" for value in told)
    name = f"({score.model})" if score.reference else score.model
    return name, likelihood, behind, perplexity, conditional, f"{score.seconds:.2f}"


def _plus_minus(score: Score) -> str:
    """How far it is behind, with as many digits as the standard error makes sense of, and at least four."""
    if not score.behind_se:
        return f"{score.behind:.4f}"
    digits = max(4, 1 - floor(log10(score.behind_se)))
    return f"{score.behind:.{digits}f} ± {score.behind_se:.{digits}f}"


def _and(names: Sequence[str]) -> str:
    """Names in a row.

    >>> _and(["cm", "dcm", "pbm"])
    'cm, dcm and pbm'
    >>> _and(["cm"])
    'cm'
    """
    return " and ".join([*filter(None, [", ".join(names[:-1])]), names[-1]])
