"""From results to plain data: a dict of numbers and text that fits JSON, and all that the page shows.

Names are untrusted and always escaped: here control characters become visible and long names short; `render` makes
sure that none of them turns into markup.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from prudent.base.errors import UsageError
from prudent.base.text import MISSING, as_cell, number, percent, plain, visible
from prudent.bounds import bounds
from prudent.bounds.rewards import reward_promise
from prudent.click_models import click_models
from prudent.click_models.base import lists_by_position
from prudent.click_models.check import Health
from prudent.click_models.comparison import Comparison
from prudent.click_models.rewards import COLUMN, WORDS
from prudent.counts.counts import Counts
from prudent.evaluation.estimators import estimators
from prudent.evaluation.evaluate import Evaluation, in_words
from prudent.evaluation.verdict import Verdict
from prudent.policies.list_bound import list_promise
from prudent.policies.policy import Policy
from prudent.reporting.contexts import MOST_PLACES, explore, finite
from prudent.reporting.labels import Labels
from prudent.storage.manifest import Manifest


def summarize(
    policy: Policy,
    counts: Counts,
    health: Health,
    evaluation: Evaluation,
    verdict: Verdict,
    comparison: Comparison | str,
    title: str,
    trained: bool,
    *,
    labels: Labels | None = None,
    shares: Mapping[str, float] | None = None,
    changes: Mapping[str, Any] | None = None,
    segments: Sequence[Mapping[str, Any]] = (),
    periods: Mapping[str, tuple[str, str]] | None = None,
) -> dict[str, Any]:
    """All that the page shows.

    counts, health
        Of the training log, if `trained`, or of the holdout.
    comparison
        Or why there is none.
    labels
        Names, images and links of items, and names of contexts.
    shares, changes, segments
        `changes.traffic`, `changes.winners_and_losers` and `segments.estimate_segments`.
    periods
        First and last day of logs, by what they are.
    """
    labels = labels or Labels()
    summary = policy.manifest.results.get("summary", {})
    named = None if changes is None else _named(changes, labels)  # first, for there is room for some images only
    explored = explore(policy, counts, labels)
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
            "plain": _in_plain_words(verdict),
            "why": verdict.why,
            "acknowledged": [plain(one) for one in verdict.acknowledged],
            "min_lift": verdict.min_lift,
            "segments": [plain(str(one)) for one in verdict.segments],
        },
        "headline": _headline(evaluation, verdict),
        "reward": _reward(policy, evaluation, verdict.estimate.reward),
        "traffic": shares,
        "changes": named,
        "segments": [
            {**one, "name": visible(one["name"]), "values": [*map(_segment, one["values"])]} for one in segments
        ],
        "periods": _periods(policy, periods or {}),
        "estimates": [asdict(one) for one in evaluation.estimates],
        "evaluated": evaluation.manifest.to_json(),
        "health": _health(health, trained),
        "positions": _positions(policy, health, comparison),
        "comparison": _comparison(comparison) if isinstance(comparison, Comparison) else {"why": plain(comparison)},
        "contexts": explored,
        "labels": {"given": bool(labels), "remote_images": labels.remote_images, "notes": labels.notes},
        "promises": [*_promises(policy)],
        "settings": [*_settings(policy.manifest), *_settings(evaluation.manifest, "evaluation.")],
        "glossary": {
            "click_models": [(name, click_models.summary(name)) for name in click_models],
            "estimators": [(name, estimators[name].words) for name in estimators],
        },
    }


_WORDS = {"pass": "The gate passes", "fail": "The gate fails", "unknown": "The gate cannot tell"}


def _in_plain_words(verdict: Verdict) -> str:
    """The verdict without the terms of statistics."""
    one = verdict.estimate
    if verdict.verdict == "unknown" or one.lift is None or one.lift_low is None:
        return "This log cannot show whether the new lists are better. Why, is below."
    unit, less, many, verb = WORDS[one.reward]
    change = percent(abs(one.lift))
    if not change.strip("0.%"):
        expected = f"The new lists are expected to {verb} as {many} {unit} as today's."
    else:
        expected = (
            f"The new lists are expected to {verb} {change} {'more' if one.lift > 0 else less} {unit} than today's."
        )
    sure = (
        f"It is {percent(verdict.confidence, 0)} sure that the change is at least {percent(one.lift_low, signed=True)}"
    )
    if verdict.verdict == "pass":
        return f"{expected} {sure}."
    return f"{expected} {sure}, which is not above the required {percent(verdict.min_lift, signed=True)}."


def _headline(evaluation: Evaluation, verdict: Verdict) -> dict[str, Any]:
    """The estimate of the gate's estimator, with a two-sided interval; that of the gate is one-sided."""
    chosen = next((one for one in evaluation if one.estimator == verdict.estimate.estimator), verdict.estimate)
    return {**asdict(chosen), "in_words": in_words(chosen.estimator)}


def _reward(policy: Policy, evaluation: Evaluation, kind: str) -> dict[str, str]:
    """What lists earn, in words; its column, if it has one; and the same of the policy, if that is another."""
    name = evaluation.manifest.settings.get("reward", kind) if kind == COLUMN else ""
    ranked = policy.reward if policy.reward != name else ""
    if name and not policy.reward and "training" in policy.manifest.sources:
        ranked = "clicks"
    per_list = {"clicks": "Clicks per list", "any-click": "Lists with a click", COLUMN: "Reward per list"}
    names = {"name": name, "ranked_by": ranked, "of_items": policy.reward}
    return {
        "kind": kind,
        **WORDS[kind]._asdict(),
        "per_list": per_list[kind],
        **{what: one and visible(one) for what, one in names.items()},
    }


def _periods(policy: Policy, periods: Mapping[str, tuple[str, str]]) -> list[tuple[str, str]]:
    """First and last day of the logs: as they were read, or as the manifest of the policy has them."""
    lines = {what: f"{first} to {last}" if first != last else first for what, (first, last) in periods.items()}
    for role, source in policy.manifest.sources.items():
        if source.days is not None:
            lines.setdefault(f"{role} log" if role == "training" else role, str(source.days))
    return [*lines.items()]


def _segment(one: Mapping[str, Any]) -> dict[str, Any]:
    return {**one, "value": "(none)" if one["value"] is None else visible(one["value"]), "why": plain(one["why"])}


def _named(changes: Mapping[str, Any], labels: Labels) -> dict[str, Any]:
    """Winners and losers with the names that people know."""
    named = dict(changes)
    kinds = [kind for kind in ("winners", "losers", "risks") if kind in changes]
    known = labels.of_contexts([one["context"] for kind in kinds for one in changes[kind]])
    for kind in kinds:
        named[kind] = [
            {**one, "context": visible(one["context"]), "name": known.get(one["context"], "")} for one in changes[kind]
        ]
    kinds = [kind for kind in ("items_up", "items_down") if kind in changes]
    about = labels.of_items([one["item"] for kind in kinds for one in changes[kind]])
    for kind in kinds:
        named[kind] = [{**one, **labels.shown(one["item"], about)} for one in changes[kind]]
    return named


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
                "log_likelihood": finite(one.log_likelihood),
                "perplexity": finite(one.perplexity),
                "conditional_perplexity": finite(one.conditional_perplexity),
                "by_position": [finite(value) for value in one.by_position[:MOST_PLACES]],
                "why": one.why,
                "reference": one.reference,
            }
            for one in comparison.scores
        ],
    }


# --- how it was made --------------------------------------------------------------------------------------------------


def _promises(policy: Policy) -> Iterable[str]:
    """What the bound of the policy guarantees, for items and for lists."""
    spelled = policy.manifest.settings.get("bound")
    if not spelled:
        yield "The lists have no lower bounds, and no guarantee for items."
        return
    yield bounds.parse(spelled).promise
    if policy.reward:
        yield reward_promise(spelled)
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
