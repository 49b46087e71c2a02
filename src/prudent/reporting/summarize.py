"""From results to plain data: a dict of numbers and text that fits JSON, and all that the page shows.

Names of contexts and items are whatever someone logged. Here they only become visible (`visible`) and short; that none
of them turns into markup is the work of `render`.
"""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from math import isfinite
from typing import Any

from prudent.bounds import Hoeffding, Mle, bounds
from prudent.bounds.bayes import PosteriorBound
from prudent.click_models.check import FEW, Health
from prudent.click_models.compare import Comparison
from prudent.counts.counts import Counts
from prudent.evaluation.evaluate import Evaluation, in_words
from prudent.evaluation.gate import Verdict
from prudent.policies.explain import Candidate, Explanation, as_column, explain
from prudent.policies.policy import Name, Policy
from prudent.reporting.render import embedded
from prudent.storage.manifest import Manifest

MOST_CONTEXTS = 300
"""That can be looked at one by one; the rest is counted."""
MOST_CANDIDATES = 30
"""Of a context, besides those in one of its two lists or clicked most often."""
MOST_PLACES = 50
"""Of a list, and positions of a chart."""
BUDGET = 1_400_000
"""Bytes for contexts and candidates: with the rest of the page it stays below 2 MB."""
LONGEST = 120
"""Characters of a name."""
MOST_FALLEN = 12
"""Of the items that a ranking by clicks per view would have listed."""


def summarize(
    policy: Policy,
    counts: Counts,
    health: Health,
    evaluation: Evaluation,
    verdict: Verdict,
    comparison: Comparison | str,
    title: str,
    trained: bool,
) -> dict[str, Any]:
    """All that the page says.

    counts, health
        Of the log that the policy came from, if `trained`, or of the held-out one.
    comparison
        Or why there is none.
    """
    summary = policy.manifest.results.get("summary", {})
    explored = _explore(policy, counts)
    return {
        "title": visible(title),
        "version": policy.manifest.prudent,
        "change": {
            "contexts": len(policy),
            "held_out": evaluation.manifest.results["contexts"]["both"],
            "differ": summary.get("differ"),
            "length": policy.manifest.settings.get("length"),
            "unit": summary.get("unit"),
        },
        "verdict": {"passed": verdict.passed, "why": verdict.why, "min_lift": verdict.min_lift},
        "headline": _headline(evaluation, verdict),
        "estimates": [asdict(one) for one in evaluation.estimates],
        "evaluated": evaluation.manifest.to_json(),
        "health": _health(health, trained),
        "positions": _positions(policy, health, comparison),
        "comparison": _comparison(comparison)
        if isinstance(comparison, Comparison)
        else {"why": written_out(comparison)},
        "contexts": explored,
        "promise": _promise(policy),
        "settings": [*_settings(policy.manifest), *_settings(evaluation.manifest, "judged.")],
    }


def _headline(evaluation: Evaluation, verdict: Verdict) -> dict[str, Any]:
    """What the gate's estimator says, with limits on both sides; those of the gate are on one."""
    said = next((one for one in evaluation if one.estimator == verdict.estimate.estimator), verdict.estimate)
    return {**asdict(said), "in_words": in_words(said.estimator)}


# --- the log ----------------------------------------------------------------------------------------------------------


def _health(health: Health, trained: bool) -> dict[str, Any]:
    return {
        "of": "the log that the lists were made from" if trained else "the held-out log",
        "facts": health.facts(),
        "verdicts": health.verdicts(),
        "rejected": [(visible(why), n) for why, n in sorted(health.rejected.items(), key=lambda entry: -entry[1])],
        "left_out": [(visible(what), n) for what, n in health.left_out.items()],
    }


def _positions(policy: Policy, health: Health, comparison: Comparison | str) -> dict[str, Any]:
    """Click rates by position, observed and foreseen, and the position parameter that the click model has learned."""
    fitted = policy.manifest.results.get("fitted", {})
    curve = next((name for name in ("examination", "continuation") if name in fitted), None)
    model = str(policy.manifest.settings.get("model", ""))
    observed, foreseen = list(health.ctr), []
    if isinstance(comparison, Comparison):
        scores = {score.model: score for score in comparison.scores}
        if model in scores and scores[model].predicted_ctr:
            observed, foreseen = list(comparison.observed_ctr), list(scores[model].predicted_ctr)
    return {
        "observed": observed[:MOST_PLACES],
        "fitted": foreseen[:MOST_PLACES],
        "model": model,
        "curve": curve,
        "values": list(fitted[curve])[:MOST_PLACES] if curve else [],
        "more": max(0, len(observed) - MOST_PLACES),
    }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    return {
        "verdict": comparison.verdict,
        "winner": comparison.winner,
        "why": "",
        "train_lists": comparison.train_lists,
        "test_lists": comparison.test_lists,
        "scores": [
            {
                "model": one.model,
                "log_likelihood": _number(one.log_likelihood),
                "perplexity": _number(one.perplexity),
                "conditional_perplexity": _number(one.conditional_perplexity),
                "by_position": [_number(value) for value in one.by_position[:MOST_PLACES]],
                "why": one.why,
                "reference": one.reference,
            }
            for one in comparison.scores
        ],
    }


# --- contexts to look at ----------------------------------------------------------------------------------------------


def _explore(policy: Policy, counts: Counts) -> dict[str, Any]:
    """The heaviest contexts, as many as there is room for, and what a ranking by click rate would have done there."""
    heaviest = _heaviest(policy)
    lists = _logged(counts, heaviest)
    told = explain(policy, heaviest, counts, most=MOST_CANDIDATES) if heaviest else []
    shown: list[dict[str, Any]] = []
    size = 0
    for one in told:
        entry = _entry(one, lists.get(one.context, 0.0))
        size += len(embedded(entry).encode())
        if size > BUDGET and shown:
            break
        shown.append(entry)
    return {
        "total": len(policy),
        "shown": shown,
        "lists": sum(entry["lists"] for entry in shown),
        "all_lists": float(counts.index.lists_of.sum()),
        "dropped": len(told) - len(shown),
        "notes": list(told[0].notes) if told else [],
        "scale": max((_top(one) for one in told[: len(shown)]), default=1.0),
        "fallen": _fallen(told, lists),
    }


def _heaviest(policy: Policy) -> list[Name]:
    """The contexts whose listed items were shown most often."""
    found = policy.lists().aggregate("context, sum(impressions) as shown", "context")
    return [context for context, _ in found.order("shown desc, context").limit(MOST_CONTEXTS).fetchall()]


def _logged(counts: Counts, contexts: Sequence[Name]) -> dict[Name, float]:
    """Logged lists of each context."""
    cursor = counts.index.connection.cursor()
    cursor.register("asked", {"context": as_column(contexts)})
    rows = cursor.execute("select context, rowid from contexts semi join asked using (context)").fetchall()
    return {context: float(counts.index.lists_of[row]) for context, row in rows}


def _entry(one: Explanation, lists: float) -> dict[str, Any]:
    beyond = [other for other in one.candidates if not _within(other)]
    candidates = [other for other in one.candidates if _within(other)]
    return {
        "name": visible(one.context),
        "lists": round(lists),
        "more": len(beyond),
        "rows": [_row(other) for other in candidates],
    }


def _within(one: Candidate) -> bool:
    """Whether its places, if it has any, are among the first: a list of a thousand is not looked at to its end."""
    places = [place for place in (one.rank, one.incumbent) if place is not None]
    return not places or min(places) <= MOST_PLACES


def _row(one: Candidate) -> list[Any]:
    """As the page's script reads it: a list is half the size of an object."""
    numbers = (_number(value) for value in (one.lower, one.mean, one.upper))
    counts = (None if value is None else round(value) for value in (one.impressions, one.clicks))
    return [visible(one.item), one.incumbent, one.rank, *counts, *numbers, one.why]


def _top(one: Explanation) -> float:
    ends = [end for row in one.candidates for end in (row.upper, row.mean, row.lower) if end is not None]
    return max([min(1.0, end) for end in ends if isfinite(end)], default=1.0)


def _fallen(told: Iterable[Explanation], lists: Mapping[Name, float]) -> dict[str, Any]:
    """What a ranking by clicks per view would have listed: how much there is of it, and the first of some contexts."""
    found = [(one, one.fallen_for) for one in told]
    every = [item for _, items in found for item in items]
    first = [
        {
            "context": visible(one.context),
            "lists": round(lists.get(one.context, 0.0)),
            "item": visible(items[0].item),
            "clicks": round(items[0].clicks or 0),
            "impressions": round(items[0].impressions or 0),
            "ctr": _number(items[0].ctr),
            "lower": _number(items[0].lower),
            "why": items[0].why,
        }
        for one, items in found
        if items
    ]
    return {
        "known": any(other.clicks is not None for one, _ in found for other in one.candidates),
        "missed": len(every),
        "rare": sum(1 for item in every if (item.impressions or 0) < FEW),
        "few": FEW,
        "contexts": len(first),
        "explored": len(found),
        "first": first[:MOST_FALLEN],
    }


# --- how it was made --------------------------------------------------------------------------------------------------


def _promise(policy: Policy) -> dict[str, Any]:
    """What the bound stands for."""
    spelled = policy.manifest.settings.get("bound")
    bound = None if spelled is None else bounds.parse(spelled)
    kind = (
        "posterior"
        if isinstance(bound, PosteriorBound)
        else "hoeffding"
        if isinstance(bound, Hoeffding)
        else "mle"
        if isinstance(bound, Mle)
        else "none"
    )
    delta = float(getattr(bound, "delta", 1.0))
    return {
        "kind": kind,
        "bound": spelled,
        "delta": delta,
        "right": 1 - delta / 2 if kind == "posterior" else 1 - delta,
    }


def _settings(manifest: Manifest, above: str = "") -> list[tuple[str, str]]:
    """The manifest of a policy or an evaluation, line by line."""
    if not manifest.prudent:
        return []
    results = {name: value for name, value in manifest.results.items() if name != "comparison"}  # has its own section
    sources = {role: source.to_json() for role, source in manifest.sources.items()}
    lines = {"prudent": manifest.prudent, **manifest.settings, **sources, **results}
    return [(visible(name), visible(value)) for name, value in _flat(lines, above)]


def _flat(said: Mapping[str, Any], above: str = "") -> Iterable[tuple[str, str]]:
    for name, value in said.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{name}.")
        elif isinstance(value, list | tuple):
            yield f"{above}{name}", ", ".join(map(_short, value[:20])) + (", ..." if len(value) > 20 else "")
        else:
            yield f"{above}{name}", _short(value)


def _short(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _number(value: float | None) -> float | None:
    """Six digits: shown in three, they round as the number itself does; None where it is no number."""
    return None if value is None or not isfinite(value) else float(f"{value:.6g}")


# --- names ------------------------------------------------------------------------------------------------------------

# What would turn the text around it about: marks, embeddings, overrides and isolates of direction.
_DIRECTIONS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


_MARKS = 4  # on one letter: no script has more, and a pile of them would stand on the lines above


def visible(name: object) -> str:
    r"""A name as text of one line that shows all there is in it, shortened in the middle where it is very long.

    >>> visible("two\nlines"), visible("\u202etxt.exe"), visible(7), visible("")
    ('two\\nlines', '\\u202etxt.exe', '7', '""')
    """
    text = _shortened(str(name))
    shown = _shortened(written_out(text))  # which may be longer
    return shown if text.strip() else f'"{shown}"'


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 30]} … {text[-27:]}"


def written_out(text: str) -> str:
    """The same text, with whatever would break a line, turn text around or pile up written as an escape."""
    shown, marks = [], 0
    for c in text:
        kind = unicodedata.category(c)
        marks = marks + 1 if kind in ("Mn", "Me") else 0
        hidden = kind in ("Cc", "Cs", "Cn", "Zl", "Zp") or c in _DIRECTIONS or marks > _MARKS
        shown.append(c.encode("unicode_escape").decode() if hidden else c)
    return "".join(shown)
