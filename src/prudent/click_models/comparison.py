"""The result of a comparison of click models."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from prudent.base.errors import UsageError
from prudent.base.results import Result
from prudent.base.text import Column, Columns, Rows, join_names, number, percent, plus_minus
from prudent.storage.manifest import Manifest

if TYPE_CHECKING:
    from altair import VConcatChart as Chart

REFERENCES = ("CTR by item", "CTR by position")
"""Click rates, which are not click models and cannot win, but which a click model should beat."""
SIGNIFICANT = 2.0
"""Standard errors that make a difference significant."""


@dataclass(frozen=True)
class Score:
    """How well one model predicts held-out clicks; None where it gives no probability."""

    model: str
    log_likelihood: float | None  # per list
    perplexity: float | None
    conditional_perplexity: float | None
    by_position: tuple[float | None, ...]  # perplexity
    predicted_ctr: tuple[float, ...]  # by position
    seconds: float  # to fit and to score
    why: str = ""  # there is no log-likelihood
    behind: float | None = None  # log-likelihood per list that it is behind the winner
    behind_se: float | None = None  # standard error of that, list by list
    reference: bool = False  # not a click model: it cannot win
    doubt: str = ""  # why the training lists contradict it
    excluded: float = 0.0  # share of lists with clicks that the model excludes

    @property
    def is_behind(self) -> bool:
        """Whether it is significantly behind the winner."""
        return self.behind is not None and self.behind_se is not None and self.behind > SIGNIFICANT * self.behind_se


@dataclass(frozen=True, repr=False)
class Comparison(Result):
    """Click models by held-out log-likelihood, the best first."""

    scores: tuple[Score, ...]
    winner: str | None  # the click model with the highest log-likelihood; None where none has any
    observed_ctr: tuple[float, ...]  # of the holdout, by position
    train_lists: int
    test_lists: int
    unseen: float = 0.0  # share of holdout impressions of items unseen in training
    manifest: Manifest = field(default_factory=lambda: Manifest("comparison"))

    def __getitem__(self, model: str) -> Score:
        for score in self.scores:
            if score.model == model:
                return score
        raise UsageError(f"{model!r} was not compared. Compared: {', '.join(score.model for score in self.scores)}.")

    @property
    def losers(self) -> tuple[Score, ...]:
        """The click models that have a log-likelihood and did not win, the best first."""
        return tuple(s for s in self.scores if s.behind is not None and not s.reference and s.model != self.winner)

    @property
    def plausible(self) -> list[str]:
        """The winner and the click models within two standard errors of it."""
        return [s.model for s in self.scores if not s.reference and s.behind is not None and not s.is_behind]

    @property
    def clear(self) -> bool:
        """Whether the winner is significantly ahead of every other click model."""
        return self.winner is not None and bool(self._others) and all(score.is_behind for score in self.losers)

    @property
    def _others(self) -> tuple[Score, ...]:
        return tuple(score for score in self.scores if not score.reference and score.model != self.winner)

    @property
    def verdict(self) -> str:
        """Which model wins, by how much, and whether that is significant."""
        if self.winner is None:
            return "No winner: every click model excludes clicks that the holdout has, or is not identified."
        near = [score.model for score in self.losers if not score.is_behind]
        if near:
            verb = "is" if len(near) == 1 else "are"
            verdict = f"No clear winner: {join_names(near)} {verb} within two standard errors of {self.winner}."
        elif self.losers:
            lead = plus_minus(self.losers[0].behind, self.losers[0].behind_se)
            verdict = (
                f"{self.winner} wins: its log-likelihood per list exceeds that of {self.losers[0].model} by {lead}."
            )
        elif self._others:
            verdict = f"{self.winner} wins: no other click model gives every list of the holdout a probability."
        else:
            verdict = f"{self.winner} was compared with no other click model."
        if (best := self.scores[0]).reference:
            unseen = f": {percent(self.unseen, 0)} of the impressions are of items unseen in training"
            verdict += (
                f" But plain {best.model} predicts better than any of them{unseen if self.unseen > 0.05 else ''}."
            )
        return verdict

    @property
    def title(self) -> str:
        """How many lists were fitted and scored."""
        return f"Fitted to {self.train_lists:,} lists, scored on {self.test_lists:,} others."

    @property
    def notes(self) -> Sequence[str]:
        """Why a model has no likelihood, or the log contradicts it, and the verdict."""
        return [*self.remarks, self.verdict]

    @property
    def remarks(self) -> list[str]:
        """Why a model has no likelihood, or the log contradicts it."""
        return [f"{s.model}: {remark}" for s in self.scores for remark in (s.why, s.doubt) if remark]

    @property
    def columns(self) -> tuple[Column, ...]:
        """One row for each model."""
        return (
            Column("model", str),
            Column("log_likelihood", float, "log-likelihood", show=_digits),
            Column("behind", float),
            Column("behind_se", float),
            Column("perplexity", float, show=_digits),
            Column("conditional_perplexity", float, "cond.", show=_digits),
            Column("seconds", float, show=lambda seconds: number(seconds, 2)),
            Column("reference", bool),
        )

    def rows(self) -> Rows:
        """The values of every score."""
        return [[getattr(score, column.name) for column in self.columns] for score in self.scores]

    def table(self) -> tuple[Columns, Rows]:
        """References in brackets, and the distance to the winner with its standard error."""
        kept = [column for column in self.columns if column.name not in ("behind", "behind_se", "reference")]
        kept.insert(2, Column("behind", str, show=str, align="right"))
        rows = [
            [
                f"({score.model})" if score.reference else score.model,
                score.log_likelihood,
                "" if score.model == self.winner else plus_minus(score.behind, score.behind_se),
                score.perplexity,
                score.conditional_perplexity,
                score.seconds,
            ]
            for score in self.scores
        ]
        return kept, rows

    def chart(self) -> "Chart":
        """Log-likelihood, perplexity by position, and click rates by position, predicted and observed.

        Needs the extra ``report``.
        """
        from prudent.click_models.chart import draw_comparison

        return draw_comparison(self)

    def to_json(self) -> dict[str, Any]:
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


def _digits(value: float) -> str:
    return number(value, 4)
