"""From results to plain data: a dict of numbers and text that fits JSON, and all that the page shows.

Names are untrusted and always escaped: here control characters become visible and long names short; `render` makes
sure that none of them turns into markup.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from math import isfinite
from typing import Any

from prudent.base.errors import UsageError
from prudent.base.text import MISSING, as_cell, number, plain, visible
from prudent.bounds import bounds
from prudent.click_models import click_models
from prudent.click_models.base import lists_by_position
from prudent.click_models.check import FEW_IMPRESSIONS, Health
from prudent.click_models.comparison import Comparison
from prudent.counts.counts import Counts
from prudent.evaluation.estimators import estimators
from prudent.evaluation.evaluate import Evaluation, in_words
from prudent.evaluation.verdict import Verdict
from prudent.policies.explain import Candidate, Explanation, explain
from prudent.policies.list_bound import list_promise
from prudent.policies.policy import Name, Policy
from prudent.reporting.render import embedded
from prudent.storage.manifest import Manifest

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
    """All that the page shows.

    counts, health
        Of the training log, if `trained`, or of the holdout.
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
            "holdout": evaluation.manifest.results["contexts"]["both"],
            "differ": summary.get("differ"),
            "length": policy.manifest.settings.get("length"),
            "unit": summary.get("unit"),
        },
        "verdict": {
            "verdict": verdict.verdict,
            "word": _WORDS[verdict.verdict],
            "why": verdict.why,
            "acknowledged": [plain(one) for one in verdict.acknowledged],
            "min_lift": verdict.min_lift,
            "segments": [plain(str(one)) for one in verdict.segments],
        },
        "headline": _headline(evaluation, verdict),
        "estimates": [asdict(one) for one in evaluation.estimates],
        "evaluated": evaluation.manifest.to_json(),
        "health": _health(health, trained),
        "positions": _positions(policy, health, comparison),
        "comparison": _comparison(comparison) if isinstance(comparison, Comparison) else {"why": plain(comparison)},
        "contexts": explored,
        "promises": [*_promises(policy)],
        "settings": [*_settings(policy.manifest), *_settings(evaluation.manifest, "evaluation.")],
        "glossary": {
            "click_models": [(name, click_models.summary(name)) for name in click_models],
            "estimators": [(name, estimators[name].words) for name in estimators],
        },
    }


_WORDS = {"pass": "The gate passes", "fail": "The gate fails", "unknown": "The gate cannot tell"}


def _headline(evaluation: Evaluation, verdict: Verdict) -> dict[str, Any]:
    """The estimate of the gate's estimator, with a two-sided interval; that of the gate is one-sided."""
    chosen = next((one for one in evaluation if one.estimator == verdict.estimate.estimator), verdict.estimate)
    return {**asdict(chosen), "in_words": in_words(chosen.estimator)}


# --- the log ----------------------------------------------------------------------------------------------------------


def _health(health: Health, trained: bool) -> dict[str, Any]:
    return {
        "log": "training log" if trained else "holdout",
        "facts": health.facts(),
        "verdicts": health.verdicts(),
        "rejected": [(visible(why), n) for why, n in sorted(health.rejected.items(), key=lambda entry: -entry[1])],
        "left_out": [(visible(what), n) for what, n in health.left_out.items()],
    }


def _positions(policy: Policy, health: Health, comparison: Comparison | str) -> dict[str, Any]:
    """Click-through rates by position, observed and predicted, and the fitted position parameters."""
    model = str(policy.manifest.settings.get("model", ""))
    observed, predicted = list(health.ctr), []
    if isinstance(comparison, Comparison):
        scores = {score.model: score for score in comparison.scores}
        if model in scores and scores[model].predicted_ctr:
            observed, predicted = list(comparison.observed_ctr), list(scores[model].predicted_ctr)
    return {
        "observed": observed[:MOST_PLACES],
        "fitted": predicted[:MOST_PLACES],
        "model": model,
        "parameters": {
            name: numbers[:MOST_PLACES]
            for name, numbers in _curves(model, policy.manifest.results.get("fitted", {})).items()
        },
        "more": max(0, len(observed) - MOST_PLACES),
    }


def _curves(model: str, fitted: Mapping[str, Any]) -> dict[str, list[float | None]]:
    """The fitted parameters by position, as the click model shows them; one that is not installed has no say."""
    try:
        return click_models.parse(model).curves(fitted)
    except UsageError:
        return lists_by_position(fitted)


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


# --- contexts in detail -----------------------------------------------------------------------------------------------


def _explore(policy: Policy, counts: Counts) -> dict[str, Any]:
    """The most frequent contexts, within the budget, and what a ranking by click-through rate would list there."""
    frequent = _most_frequent(policy)
    lists = _logged(counts, frequent)
    explained = explain(policy, frequent, counts, most=MOST_CANDIDATES) if frequent else []
    shown: list[dict[str, Any]] = []
    size = 0
    for one in explained:
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
        "dropped": len(explained) - len(shown),
        "notes": list(explained[0].notes) if explained else [],
        "scale": max((_top(one) for one in explained[: len(shown)]), default=1.0),
        "fallen": _fallen(explained, lists),
    }


def _most_frequent(policy: Policy) -> list[Name]:
    """The contexts whose listed items have the most impressions."""
    shown = policy.lists().aggregate("context, sum(impressions) as shown", "context")
    return [context for context, _ in shown.order("shown desc, context").limit(MOST_CONTEXTS).fetchall()]


def _logged(counts: Counts, contexts: Sequence[Name]) -> dict[Name, float]:
    """Logged lists of each context."""
    index = counts.index
    return {context: float(index.lists_of[number]) for context, number in index.find(contexts).items()}


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
    """Whether its positions, if it has any, are among the first `MOST_PLACES`."""
    places = [place for place in (one.rank, one.incumbent) if place is not None]
    return not places or min(places) <= MOST_PLACES


def _row(one: Candidate) -> list[Any]:
    """As the page's script reads it; a list takes half the bytes of an object."""
    numbers = (_number(value) for value in (one.lower, one.mean, one.upper))
    counts = (None if value is None else round(value) for value in (one.impressions, one.clicks))
    return [visible(one.item), one.incumbent, one.rank, *counts, *numbers, one.why]


def _top(one: Explanation) -> float:
    ends = [end for row in one.candidates for end in (row.upper, row.mean, row.lower) if end is not None]
    return max([min(1.0, end) for end in ends if isfinite(end)], default=1.0)


def _fallen(explained: Iterable[Explanation], lists: Mapping[Name, float]) -> dict[str, Any]:
    """The items that a ranking by click-through rate would list instead: how many, and the first of some contexts."""
    fallen = [(one, one.fallen_for) for one in explained]
    every = [item for _, items in fallen for item in items]
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
        for one, items in fallen
        if items
    ]
    return {
        "known": any(other.clicks is not None for one, _ in fallen for other in one.candidates),
        "missed": len(every),
        "rare": sum(1 for item in every if (item.impressions or 0) < FEW_IMPRESSIONS),
        "few": FEW_IMPRESSIONS,
        "contexts": len(first),
        "explored": len(fallen),
        "first": first[:MOST_FALLEN],
    }


# --- how it was made --------------------------------------------------------------------------------------------------


def _promises(policy: Policy) -> Iterable[str]:
    """What the bound of the policy guarantees, for items and for lists."""
    spelled = policy.manifest.settings.get("bound")
    if not spelled:
        yield "The lists have no lower bounds, and no guarantee for items."
        return
    yield bounds.parse(spelled).promise
    summary = policy.manifest.results.get("summary", {})
    if "level" in summary:
        lower, unit = number(summary["lower"]), summary["unit"]
        yield f"{list_promise(summary['level'], spelled)} On average over logged lists it is {lower} ({unit})."


def _settings(manifest: Manifest, above: str = "") -> list[tuple[str, str]]:
    """The manifest of a policy or an evaluation, line by line."""
    if not manifest.prudent:
        return []
    results = {name: value for name, value in manifest.results.items() if name != "comparison"}  # has its own section
    sources = {role: replace(source, digest=None).to_json() for role, source in manifest.sources.items()}
    lines = {"prudent": manifest.prudent, **manifest.settings, **sources, **results}
    return [(visible(name), visible(value)) for name, value in _flat(lines, above)]


def _flat(content: Mapping[str, Any], above: str = "") -> Iterable[tuple[str, str]]:
    for name, value in content.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{name}.")
        elif isinstance(value, list | tuple):
            yield f"{above}{name}", ", ".join(map(_short, value[:20])) + (", ..." if len(value) > 20 else "") or MISSING
        else:
            yield f"{above}{name}", _short(value)


def _short(value: object) -> str:
    if value == "":
        return MISSING
    return f"{value:.4g}".replace("-", "−") if isinstance(value, float) else as_cell(value)


def _number(value: float | None) -> float | None:
    """Six digits, so that three digits round as those of the number itself; None where it is not finite."""
    return None if value is None or not isfinite(value) else float(f"{value:.6g}")
