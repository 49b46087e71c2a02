"""One sentence for each candidate that its numbers support. It names places, and items only where one is passed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from scipy.special import betaincinv

from prudent.base.text import number, several, visible
from prudent.policies.explain.explanation import Candidate, placed

_SURE = 0.95  # credible level of "clearly"
_MANY_VIEWS = 100  # from here on they are not called too little


@dataclass(frozen=True)
class Known:
    """What the numbers of candidates mean."""

    order: str  # what the new list is ordered by, such as lower bounds; empty where that is not known
    anchored: bool  # the new list is the incumbent one, in which items rose on evidence
    all_scored: bool  # every eligible item has its scores: an item without is not eligible
    lead: tuple[str, ...] = ()  # groups or features: an item may rise by what clicks in other contexts say of them
    rewards: bool = False  # bounds are of what clicks earn, which rates of clicks do not explain


_RAISED: dict[tuple[str, ...], str] = {
    (): "",
    ("groups",): ", better by its groups in other contexts",
    ("features",): ", better by its features",
    ("groups", "features"): ", better by its features or its groups in other contexts",
}
_NOT_RAISED: dict[tuple[str, ...], str] = {
    (): "only a clicked item rises",
    ("groups",): "no group of it is clicked enough elsewhere",
    ("features",): "its features are not good enough",
    ("groups", "features"): "neither its groups nor its features are good enough",
}


def in_words(candidates: Sequence[Candidate], known: Known) -> tuple[Candidate, ...]:
    """The same candidates, each with its sentence: the new list first, then what left it, then the rest."""
    listed, incumbent = placed(candidates, "rank"), placed(candidates, "incumbent")
    explained = (replace(one, why=_why(one, listed, incumbent, known)) for one in candidates)
    return tuple(sorted(explained, key=_reading_order))


def _reading_order(one: Candidate) -> tuple[float, float, float, str]:
    return one.rank or math.inf, one.incumbent or math.inf, -_low(one), str(one.item)


def _why(one: Candidate, listed: list[Candidate], incumbent: list[Candidate], known: Known) -> str:
    if one.rank is None:
        start = "left the list" if one.incumbent else "not listed"
        if one.lower is None and known.all_scored:
            return f"{start}: no longer among the candidates"
        if known.anchored and incumbent:
            return _not_risen(start, one, listed, known)
        return _behind(start, one, listed, "in the list", known)
    if not incumbent:
        return _join(f"at {one.rank}", _seen(one))
    if known.anchored:
        return _anchored(one, listed, incumbent, known)
    if one.incumbent is None:
        if one.unseen:
            return "new: never shown" + (", scored by the prior alone" if one.mean else "")
        left = [other for other in incumbent if other.rank is None]
        return _before(f"enters at {one.rank}", one, left, "that left", known)
    if one.incumbent == one.rank:
        return _join("stays", _seen(one))
    was_above = {other.item for other in incumbent if (other.incumbent or 0) < one.incumbent}
    is_above = {other.item for other in listed if (other.rank or 0) < one.rank}
    if one.rank < one.incumbent:
        passed = [other for other in incumbent if other.item in was_above - is_above]
        return _before(f"up {one.incumbent - one.rank}", one, passed, "it passes", known)
    passed_by = [other for other in listed if other.item in is_above - was_above]
    return _behind(f"down {one.rank - one.incumbent}", one, passed_by, "that passed it", known)


# --- lists that start from the incumbent ------------------------------------------------------------------------------


def _anchored(one: Candidate, listed: list[Candidate], incumbent: list[Candidate], known: Known) -> str:
    """Why an item of the new list stands where it stands."""
    place, rank = one.incumbent or math.inf, one.rank or 0
    passed = [i for i in incumbent if (i.incumbent or 0) < place and (i.rank or math.inf) > rank]
    passed_by = sum((j.rank or 0) < rank and (j.incumbent or math.inf) > place for j in listed)
    rose = f"; {several(passed_by, 'item')} rose past it" if passed_by else ""
    if rank >= place:
        start = "stays" if rank == place else f"down {rank - int(place)}"
        past = f"; it rose past {_name(passed[0])}" if passed else ""
        return _join(start, _seen(one) + past + rose + ("" if past or rose else "; nothing below beats it"))
    start = f"up {one.incumbent - rank}" if one.incumbent else f"enters at {rank}"
    if not passed:
        return _join(start, f"{_seen(one)}; the items above it left the list")
    first = passed[0]  # the next of the incumbent list, with which it was compared
    raised = "" if one.positive else _RAISED[known.lead]
    sentence = f"{start}, past {_name(first)}: {_seen(one)}{raised}"
    if first.stay is None or one.lower is None or one.lower <= first.stay:
        return sentence
    low, high = _apart(one.lower, first.stay)
    return f"{sentence}; lower bound {low}, above the {high} at which {_name(first)} stays"


def _not_risen(start: str, one: Candidate, listed: list[Candidate], known: Known) -> str:
    """Why an item is not in the new list."""
    if one.incumbent:
        return _join(start, f"{_seen(one)}; pushed out by the items that rose")
    if not one.positive:
        if one.unseen:
            return _join(start, _seen(one))
        return _join(start, f"{_seen(one)}; {_NOT_RAISED[known.lead]}")
    stay = [other for other in listed if other.stay is not None and other.incumbent][-1:]
    if not stay or one.lower is None or one.lower > (stay[0].stay or 0.0):
        return _join(start, _seen(one))
    few = one.impressions is not None and one.impressions < _MANY_VIEWS and one.rate > stay[0].rate
    few = few and not known.rewards
    low, high = _apart(one.lower, stay[0].stay or 0.0)
    return (
        f"{start}: {_seen(one)}{', too little to trust' if few else ''}; lower bound {low}, not above the {high} at "
        f"which {_name(stay[0])} stays"
    )


def _apart(one: float, other: float) -> tuple[str, str]:
    """Two numbers in as many digits as it takes to tell them apart."""
    digits = next((digits for digits in range(3, 8) if number(one, digits) != number(other, digits)), 7)
    return number(one, digits), number(other, digits)


def _name(one: Candidate) -> str:
    return visible(one.item)


# --- lists sorted by bound --------------------------------------------------------------------------------------------


def _before(start: str, one: Candidate, others: list[Candidate], which: str, known: Known) -> str:
    """Why it stands before others."""
    sentence = _join(start, _seen(one))
    scored = [other for other in others if other.lower is not None]
    if not known.order or not scored:
        return sentence
    if not known.rewards and all(_clearly_below(other, one) for other in scored):
        return f"{sentence}, clearly above {_items(scored, which)}"
    best = max(map(_low, scored))
    return sentence + (_numbers(known.order, _low(one), best, "best", scored, which) if _low(one) > best else "")


def _behind(start: str, one: Candidate, others: list[Candidate], which: str, known: Known) -> str:
    """Why it stands behind others, or is not listed because of them."""
    scored = [other for other in others if other.lower is not None]
    if not known.order or one.lower is None or not scored:
        return _join(start, _seen(one))
    if one.unseen:
        return f"{start}: never shown" + (", and the prior alone is not enough" if one.mean else "")
    if not known.rewards and any(_too_little(one, other) for other in scored):
        few = (
            "too little to trust"
            if one.impressions is None or one.impressions < _MANY_VIEWS
            else "not enough to be sure"
        )
        return f"{start}: {_clicked(one)}: {few}"
    if not known.rewards and any(_flattered(one, other) for other in scored):
        return f"{start}: {_seen(one)}, but at positions with more examinations"
    sentence = _join(start, _seen(one))
    if not known.rewards and all(_clearly_below(one, other) for other in scored):
        return f"{sentence}, clearly below {_items(scored, which)}"
    # An item that passed it is before it, but all that are listed in its stead must be.
    pick, whose = (max, "best") if one.rank else (min, "lowest")
    bound = pick(map(_low, scored))
    return sentence + (_numbers(known.order, _low(one), bound, whose, scored, which) if _low(one) < bound else "")


def _clearly_below(one: Candidate, other: Candidate) -> bool:
    """Whether its interval ends below that of the other, and so do their intervals from the evidence alone.

    At δ = 0.5 an interval covers half of the posterior, and that of a rarely shown item is mostly prior: neither is
    clear by itself.
    """
    return _high(one) < _low(other) and _quantile(one, (1 + _SURE) / 2) < _quantile(other, (1 - _SURE) / 2)


def _quantile(one: Candidate, level: float) -> float:
    """Of the attraction after this evidence, under a uniform prior."""
    return float(betaincinv(1 + (one.positive or 0.0), 1 + (one.negative or 0.0), level))


def _too_little(one: Candidate, other: Candidate) -> bool:
    """Whether its rate is higher than the other's but on fewer examinations, and lower bounds reverse the two."""
    return one.rate > other.rate and one.examined < other.examined and _low(one) < _low(other)


def _flattered(one: Candidate, other: Candidate) -> bool:
    """Whether it has more clicks per view than the other but not per examination, of which it got more per view."""
    if not one.impressions or not other.impressions or one.rate > other.rate:
        return False
    more_examined = one.examined / one.impressions > other.examined / other.impressions
    return one.ctr > other.ctr and more_examined and _low(one) < _low(other)


def _low(one: Candidate) -> float:
    return -math.inf if one.lower is None else one.lower


def _high(one: Candidate) -> float:
    return math.inf if one.upper is None else one.upper


# --- words ------------------------------------------------------------------------------------------------------------


def _join(start: str, what: str) -> str:
    return f"{start}: {what}" if what else start


def _seen(one: Candidate) -> str:
    """How often it was shown and clicked, as far as that is known."""
    if one.impressions is None:
        return ""
    if round(one.impressions) == 0:
        return "never shown" if one.unseen else "shown long ago"
    views = several(one.impressions, "view")
    if one.clicks is None:
        return views
    return f"{several(one.clicks, 'click')} in {views}" if round(one.clicks) else f"no click in {views}"


def _clicked(one: Candidate) -> str:
    if one.clicks is None or one.impressions is None:
        return _seen(one)
    return f"clicked {one.clicks:,.0f} of {one.impressions:,.0f}"


def _items(others: list[Candidate], which: str) -> str:
    few = {1: "the item", 2: "both items"}
    return f"{few.get(len(others), f'all {len(others)} items')} {which}"


def _numbers(order: str, mine: float, theirs: float, whose: str, others: list[Candidate], which: str) -> str:
    """What the list is ordered by, of both, in as many digits as it takes to tell the two apart."""
    digits = next((digits for digits in range(3, 8) if number(mine, digits) != number(theirs, digits)), None)
    if digits is None or not math.isfinite(mine) or not math.isfinite(theirs):
        return ""
    item = "the item" if len(others) == 1 else f"the {whose} of {len(others)} items"
    return f"; {order} {number(mine, digits)}, against {number(theirs, digits)} of {item} {which}"
