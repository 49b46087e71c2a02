"""One sentence for each candidate, which its numbers bear out. It tells places, never names."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from prudent.policies.explain.base import Candidate, placed


@dataclass(frozen=True)
class Known:
    """What the numbers of candidates mean."""

    order: str  # what the new list is ordered by, such as its lower bounds; empty where that is not known
    all_scored: bool  # whatever may be shown has its scores: what has none may not be shown
    prior: bool  # something is believed of an item before it is shown


def in_words(candidates: Sequence[Candidate], known: Known) -> tuple[Candidate, ...]:
    """The same candidates, each with its sentence: the new list first, then what left it, then the rest."""
    listed, incumbent = placed(candidates, "rank"), placed(candidates, "incumbent")
    told = (replace(one, why=_why(one, listed, incumbent, known)) for one in candidates)
    return tuple(sorted(told, key=_reading_order))


def _reading_order(one: Candidate) -> tuple[float, float, float, str]:
    return one.rank or math.inf, one.incumbent or math.inf, -_low(one), str(one.item)


def _low(one: Candidate) -> float:
    return -math.inf if one.lower is None else one.lower


def _high(one: Candidate) -> float:
    return math.inf if one.upper is None else one.upper


def _why(one: Candidate, listed: list[Candidate], incumbent: list[Candidate], known: Known) -> str:
    if one.rank is None:
        start = "left the list" if one.incumbent else "not listed"
        if one.lower is None and known.all_scored:
            return f"{start}: no longer among the candidates"
        return _behind(start, one, listed, "in the list", known)
    if not incumbent:  # nobody knows where it stood
        return _say(f"at {one.rank}", _seen(one))
    if one.incumbent is None:
        if one.unseen:
            return "new: never shown" + (", so only the prior speaks" if known.prior else "")
        left = [other for other in incumbent if other.rank is None]
        return _before(f"enters at {one.rank}", one, left, "that left", known)
    if one.incumbent == one.rank:
        return _say("stays", _seen(one))
    was_above = {other.item for other in incumbent if (other.incumbent or 0) < one.incumbent}
    is_above = {other.item for other in listed if (other.rank or 0) < one.rank}
    if one.rank < one.incumbent:
        passed = [other for other in incumbent if other.item in was_above - is_above]
        return _before(f"up {one.incumbent - one.rank}", one, passed, "it passes", known)
    passed_by = [other for other in listed if other.item in is_above - was_above]
    return _behind(f"down {one.rank - one.incumbent}", one, passed_by, "that passed it", known)


def _before(start: str, one: Candidate, others: list[Candidate], which: str, known: Known) -> str:
    """Why it stands before others."""
    said = _say(start, _seen(one))
    baselines = [other for other in others if other.lower is not None]
    if not known.order or not baselines:
        return said
    if _low(one) > max(map(_high, baselines)):
        return f"{said}, clearly above {_items(baselines, which)}"
    best = max(map(_low, baselines))
    return said + _numbers(known.order, _low(one), best, "best", baselines, which) if _low(one) > best else said


def _behind(start: str, one: Candidate, others: list[Candidate], which: str, known: Known) -> str:
    """Why it stands behind others, or is not listed because of them."""
    baselines = [other for other in others if other.lower is not None]
    if not known.order or one.lower is None or not baselines:
        return _say(start, _seen(one))
    if one.unseen:
        return f"{start}: never shown" + (", and the prior alone is not enough" if known.prior else "")
    if any(_too_little(one, other) for other in baselines):
        few = "too little to trust" if one.impressions is None or one.impressions < _SOME else "not enough to be sure"
        return f"{start}: {_clicked(one)}: {few}"
    if any(_flattered(one, other) for other in baselines):
        return f"{start}: {_seen(one)}, but it stood where more people look"
    said = _say(start, _seen(one))
    if _high(one) < min(map(_low, baselines)):
        return f"{said}, clearly below {_items(baselines, which)}"
    # What has passed it is before it, but what it is not listed for must all be.
    pick, whose = (max, "best") if one.rank else (min, "least")
    bound = pick(map(_low, baselines))
    return said + _numbers(known.order, _low(one), bound, whose, baselines, which) if _low(one) < bound else said


_SOME = 100  # views from which on nobody would call them too little


def _too_little(one: Candidate, other: Candidate) -> bool:
    """Whether it does better per look than the other, but on fewer looks, and the lower bound turns the two around."""
    return one.rate > other.rate and one.examined < other.examined and _low(one) < _low(other)


def _flattered(one: Candidate, other: Candidate) -> bool:
    """Whether it was clicked more often per view than the other, but not per look, of which it got more."""
    if not one.impressions or not other.impressions or one.rate > other.rate:
        return False
    more_looks = one.examined / one.impressions > other.examined / other.impressions
    return one.ctr > other.ctr and more_looks and _low(one) < _low(other)


# --- words ------------------------------------------------------------------------------------------------------------


def _say(start: str, what: str) -> str:
    return f"{start}: {what}" if what else start


def _seen(one: Candidate) -> str:
    """How often it was shown and clicked, as far as that is known."""
    if one.impressions is None:
        return ""
    if round(one.impressions) == 0:
        return "never shown" if one.unseen else "shown long ago"
    views = _count(one.impressions, "view")
    if one.clicks is None:
        return views
    return f"{_count(one.clicks, 'click')} in {views}" if round(one.clicks) else f"no click in {views}"


def _clicked(one: Candidate) -> str:
    if one.clicks is None or one.impressions is None:
        return _seen(one)
    return f"clicked {one.clicks:,.0f} of {one.impressions:,.0f}"


def _count(n: float, what: str) -> str:
    return f"{n:,.0f} {what}{'' if round(n) == 1 else 's'}"


def _items(others: list[Candidate], which: str) -> str:
    few = {1: "the item", 2: "both items"}
    return f"{few.get(len(others), f'all {len(others)} items')} {which}"


def _numbers(order: str, mine: float, theirs: float, whose: str, others: list[Candidate], which: str) -> str:
    """What the list is ordered by, of it and of others, in as many digits as it takes to tell the two apart."""
    digits = next((digits for digits in range(3, 8) if f"{mine:.{digits}f}" != f"{theirs:.{digits}f}"), None)
    if digits is None or not math.isfinite(mine) or not math.isfinite(theirs):
        return ""
    item = "the item" if len(others) == 1 else f"the {whose} of {len(others)} items"
    return f"; {order} {mine:.{digits}f}, and {theirs:.{digits}f} of {item} {which}".replace("-", "−")
