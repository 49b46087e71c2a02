"""The most frequent contexts of a policy in detail, and what a ranking by click-through rate would list there."""

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any

from prudent.base.text import plain, visible
from prudent.click_models.check import FEW_IMPRESSIONS
from prudent.counts.counts import Counts
from prudent.policies.explain import Candidate, Explanation, explain
from prudent.policies.lookup import Name
from prudent.policies.policy import Policy
from prudent.reporting.labels import Labels
from prudent.reporting.render import embedded

MOST_CONTEXTS = 300
"""Contexts shown in detail, the most frequent first."""
MOST_CANDIDATES = 30
"""Candidates of a context, besides those in one of its two lists or with the most clicks."""
MOST_PLACES = 50
"""Positions of a list and of a chart."""
BUDGET = 1_400_000
"""Bytes for contexts and candidates, so that the page stays below 2 MB."""
MOST_FALLEN = 12
"""Items that a ranking by click-through rate would list."""


def explore(policy: Policy, counts: Counts, labels: Labels) -> dict[str, Any]:
    """The most frequent contexts, within the budget, and what a ranking by click-through rate would list there."""
    frequent = _most_frequent(policy)
    lists = _logged(counts, frequent)
    explained = explain(policy, frequent, counts, most=MOST_CANDIDATES) if frequent else []
    shown: list[dict[str, Any]] = []
    size = 0
    known = labels.of_contexts(one.context for one in explained)
    about = labels.of_items(row.item for one in explained for row in one.candidates)
    items: dict[Name, None] = {}  # that have a label, in the order in which the page shows them
    for one in explained:
        entry = _entry(one, lists.get(one.context, 0.0), known.get(one.context, ""))
        new = {row.item: None for row in one.candidates if row.item in about and row.item not in items}
        size += len(embedded([entry, [(about[item].name, about[item].link) for item in new]]).encode())
        if size > BUDGET and shown:
            break
        shown.append(entry)
        items |= new
    number = {item: row for row, item in enumerate(items)}
    for one, entry in zip(explained, shown, strict=False):
        for row, candidate in zip(entry["rows"], filter(_within, one.candidates), strict=True) if items else ():
            row.append(number.get(candidate.item))
    images: dict[str, int] = {}  # each once
    labelled = [labels.shown(item, about) for item in items]
    for one_item in labelled:
        if one_item["image"]:
            images.setdefault(one_item["image"], len(images))
    return {
        "total": len(policy),
        "shown": shown,
        "items": [[one["name"], one["link"], images.get(one["image"])] for one in labelled],
        "images": [*images],
        "lists": sum(entry["lists"] for entry in shown),
        "all_lists": float(counts.index.lists_of.sum()),
        "dropped": len(explained) - len(shown),
        "notes": [plain(note) for note in explained[0].notes] if explained else [],
        "fallen": _fallen(explained, lists, labels, known),
    }


def _most_frequent(policy: Policy) -> list[Name]:
    """The contexts whose listed items have the most impressions."""
    shown = policy.lists().aggregate("context, sum(impressions) as shown", "context")
    return [context for context, _ in shown.order("shown desc, context").limit(MOST_CONTEXTS).fetchall()]


def _logged(counts: Counts, contexts: Sequence[Name]) -> dict[Name, float]:
    """Logged lists of each context."""
    index = counts.index
    return {context: float(index.lists_of[number]) for context, number in index.find(contexts).items()}


def _entry(one: Explanation, lists: float, name: str) -> dict[str, Any]:
    beyond = [other for other in one.candidates if not _within(other)]
    candidates = [other for other in one.candidates if _within(other)]
    return {
        "name": visible(one.context),
        "lists": round(lists),
        **({"label": name} if name else {}),
        "more": len(beyond),
        "rows": [_row(other) for other in candidates],
    }


def _within(one: Candidate) -> bool:
    """Whether its positions, if it has any, are among the first `MOST_PLACES`."""
    places = [place for place in (one.rank, one.incumbent) if place is not None]
    return not places or min(places) <= MOST_PLACES


def _row(one: Candidate) -> list[Any]:
    """As the page's script reads it; a list takes half the bytes of an object."""
    numbers = (finite(value) for value in (one.lower, one.mean, one.upper))
    counts = (None if value is None else round(value) for value in (one.impressions, one.clicks))
    return [visible(one.item), one.incumbent, one.rank, *counts, *numbers, one.why]


def _fallen(
    explained: Iterable[Explanation], lists: Mapping[Name, float], labels: Labels, known: Mapping[Name, str]
) -> dict[str, Any]:
    """The items that a ranking by click-through rate would list instead: how many, and the first of some contexts."""
    fallen = [(one, one.fallen_for) for one in explained]
    every = [item for _, items in fallen for item in items]
    first = [(one.context, items[0]) for one, items in fallen if items]
    about = labels.of_items(item.item for _, item in first[:MOST_FALLEN])
    return {
        "known": any(other.clicks is not None for one, _ in fallen for other in one.candidates),
        "missed": len(every),
        "rare": sum(1 for item in every if (item.impressions or 0) < FEW_IMPRESSIONS),
        "few": FEW_IMPRESSIONS,
        "contexts": len(first),
        "explored": len(fallen),
        "first": [
            {
                "context": visible(context),
                "name_of_context": known.get(context, ""),
                "lists": round(lists.get(context, 0.0)),
                **labels.shown(item.item, about),
                "clicks": round(item.clicks or 0),
                "impressions": round(item.impressions or 0),
                "ctr": finite(item.ctr),
                "lower": finite(item.lower),
                "why": item.why,
            }
            for context, item in first[:MOST_FALLEN]
        ],
    }


def finite(value: float | None) -> float | None:
    """Six digits, so that three digits round as those of the number itself; None where it is not finite."""
    return None if value is None or not isfinite(value) else float(f"{value:.6g}")
