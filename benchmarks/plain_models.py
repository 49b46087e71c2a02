"""Click models in plain Python: one object per session, loops over sessions and results, nested dictionaries.

They count what `prudent` counts for ``cm`` and ``dcm(tail=truncate)``, and climb the likelihood of ``pbm`` and ``ubm``
by expectation-maximisation over all sessions, in the style of PyClick, which is not on PyPI: the package of that name
there moves mice. Nothing here is slow on purpose, and nothing is fast on purpose.

`clicks_above` of a fitted model is the probability of each click of a session, given those above.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

PRIOR = 1.0  # imagined clicks of every parameter of an EM model, and as many imagined skips


@dataclass
class Session:
    """One list with its clicks."""

    query: str
    results: list[str]
    clicks: list[int]


@dataclass
class Share:
    """A probability that is counted: hits among trials."""

    hits: float = 0.0
    trials: float = 0.0

    def add(self, hit: float, trial: float = 1.0) -> None:
        self.hits += hit
        self.trials += trial

    @property
    def value(self) -> float:
        return self.hits / self.trials if self.trials else 0.0


def imagined(prior: float) -> Share:
    return Share(prior, 2 * prior)


Attraction = dict[str, dict[str, Share]]  # by query, then by result


def no_attraction() -> Attraction:
    return defaultdict(lambda: defaultdict(Share))


@dataclass
class CascadeModel:
    """Read down to the first click."""

    attraction: Attraction = field(default_factory=no_attraction)

    def fit(self, sessions: Iterable[Session]) -> None:
        for session in sessions:
            for result, click in zip(session.results, session.clicks, strict=True):
                self.attraction[session.query][result].add(click)
                if click:
                    break


@dataclass
class DependentClickModel:
    """Read down to the last click, all of it if there is none; after a click at a rank, go on or not."""

    attraction: Attraction = field(default_factory=no_attraction)
    continuation: dict[int, Share] = field(default_factory=lambda: defaultdict(Share))  # by rank, from 1

    def fit(self, sessions: Iterable[Session]) -> None:
        for session in sessions:
            clicked = [rank for rank, click in enumerate(session.clicks, start=1) if click]
            last = clicked[-1] if clicked else len(session.results)
            for rank, (result, click) in enumerate(zip(session.results, session.clicks, strict=True), start=1):
                if rank > last:
                    break
                self.attraction[session.query][result].add(click)
                if click:
                    self.continuation[rank].add(rank < last)

    def clicks_above(self, session: Session) -> list[float]:
        chances, examined = [], 1.0
        for rank, (result, click) in enumerate(zip(session.results, session.clicks, strict=True), start=1):
            share = self.attraction[session.query][result]
            theta = (share.hits + PRIOR) / (share.trials + 2 * PRIOR)
            chances.append(theta * examined)
            going_on = self.continuation[rank].value
            examined = going_on if click else (1 - theta) * examined / (1 - theta * examined)
        return chances


@dataclass
class PositionBasedModel:
    """A click is examination of the rank and attraction of the result; a skip is attributed by probability."""

    prior: float = PRIOR
    attraction: Attraction = field(default_factory=dict)
    examination: dict[int, Share] = field(default_factory=dict)  # by rank, from 1

    def fit(self, sessions: list[Session], rounds: int = 50) -> None:
        self.attraction = self.fresh_attraction()
        self.examination = self.fresh_examination()
        for _ in range(rounds):
            attraction, examination = self.fresh_attraction(), self.fresh_examination()
            for session in sessions:
                for rank, (result, click) in enumerate(zip(session.results, session.clicks, strict=True), start=1):
                    theta = self.attraction[session.query][result].value
                    p = self.examination[rank].value
                    if click:
                        attracted = examined = 1.0
                    else:
                        skipped = 1 - theta * p
                        attracted, examined = theta * (1 - p) / skipped, p * (1 - theta) / skipped
                    attraction[session.query][result].add(attracted)
                    examination[rank].add(examined)
            self.attraction, self.examination = attraction, examination

    def fresh_attraction(self) -> Attraction:
        return defaultdict(lambda: defaultdict(lambda: imagined(self.prior)))

    def fresh_examination(self) -> dict[int, Share]:
        return defaultdict(lambda: imagined(self.prior))

    def clicks_above(self, session: Session) -> list[float]:
        results = enumerate(session.results, start=1)
        return [self.attraction[session.query][result].value * self.examination[rank].value for rank, result in results]


@dataclass
class UserBrowsingModel(PositionBasedModel):
    """Whether a rank is examined depends on it and on the rank of the last click above, 0 without one."""

    browsing: dict[tuple[int, int], Share] = field(default_factory=dict)

    def fit(self, sessions: list[Session], rounds: int = 50) -> None:
        self.attraction = self.fresh_attraction()
        self.browsing = self.fresh_browsing()
        for _ in range(rounds):
            attraction, browsing = self.fresh_attraction(), self.fresh_browsing()
            for session in sessions:
                previous = 0
                for rank, (result, click) in enumerate(zip(session.results, session.clicks, strict=True), start=1):
                    theta = self.attraction[session.query][result].value
                    gamma = self.browsing[rank, previous].value
                    if click:
                        attracted = examined = 1.0
                    else:
                        skipped = 1 - theta * gamma
                        attracted, examined = theta * (1 - gamma) / skipped, gamma * (1 - theta) / skipped
                    attraction[session.query][result].add(attracted)
                    browsing[rank, previous].add(examined)
                    if click:
                        previous = rank
            self.attraction, self.browsing = attraction, browsing

    def fresh_browsing(self) -> dict[tuple[int, int], Share]:
        return defaultdict(lambda: imagined(self.prior))

    def clicks_above(self, session: Session) -> list[float]:
        chances, previous = [], 0
        for rank, (result, click) in enumerate(zip(session.results, session.clicks, strict=True), start=1):
            theta = self.attraction[session.query][result].value
            chances.append(theta * self.browsing[rank, previous].value)
            if click:
                previous = rank
        return chances


MODELS = {
    "cm": CascadeModel,
    "dcm": DependentClickModel,
    "pbm": PositionBasedModel,
    "ubm": UserBrowsingModel,
}
