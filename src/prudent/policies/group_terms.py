"""What the fitted prior makes of groups and features, in words."""

from collections.abc import Mapping
from typing import Any

from prudent.base.text import join_names, number, percent, several


def group_sentences(fitted: Mapping[str, Any]) -> list[str]:
    """A sentence for each grouping, from the fitted parameters in the manifest of a policy.

    >>> groups = {"item": {"groups": 2013, "level": 0.0, "strength": 18.0}}
    >>> terms = {"item": {"slope": 0.84, "wald": 509.0, "shrinkage": 0.99}}
    >>> group_sentences({"groups": groups, "prior": {"by_group": terms}})
    ['item: 2,013 groups, of strength 18.00 examinations; 99% of the slope is kept, 0.840.']
    """
    terms = fitted.get("prior", {}).get("by_group", {})
    return [_sentence(name, group, terms.get(name, {})) for name, group in fitted.get("groups", {}).items()]


def feature_sentences(fitted: Mapping[str, Any], model: str) -> list[str]:
    """Sentences about what a model learned from features.

    >>> terms = {"features": {"slope": 0.98, "wald": 509.0, "shrinkage": 0.99}}
    >>> features = {"enough": True, "leak": False, "shares": {"price": 0.7, "brand": 0.3, "colour": 0.0}}
    >>> feature_sentences({"features": features, "prior": {"by_group": terms}}, "ridge")
    ['ridge: 99% of its slope is kept, 0.980.', 'Of what it says: price 70%, brand 30%; less than 1%: colour.']
    """
    features = fitted.get("features")
    if features is None:
        return []
    names = join_names(list(features["shares"]))
    if not features["enough"]:
        return [f"{model}: there are too few clicks to learn from; not used."]
    if features["leak"]:
        return [f"{model}: {knows_too_much(names)}"]
    term = fitted["prior"].get("by_group", {}).get("features", {})
    if not term.get("slope"):
        say = "says" if len(features["shares"]) == 1 else "say"
        return [f"{model}: {names} {say} nothing about clicks in other contexts; not used."]
    shares = sorted(features["shares"].items(), key=lambda share: -share[1])
    most = ", ".join(f"{name} {percent(share, 0)}" for name, share in shares if share >= _LITTLE)
    least = ", ".join(name for name, share in shares if share < _LITTLE)
    return [
        f"{model}: {percent(term['shrinkage'], 0)} of its slope is kept, {number(term['slope'])}.",
        f"Of what it says: {most}{f'; less than 1%: {least}' if least else ''}.",
    ]


def knows_too_much(names: str) -> str:
    """What is wrong with features that were made from the clicks of the log."""
    return f"of {names}, one or more know the clicks that they should predict: they were made from this log. Not used."


_LITTLE = 0.01


def _sentence(name: str, group: Mapping[str, Any], term: Mapping[str, Any]) -> str:
    found = f"{name}: {several(group['groups'], 'group')}"
    if group["strength"] is None:
        return f"{found}, which do not differ in clicks; not used."
    found = f"{found}, of strength {number(group['strength'], 2)} examinations"
    if not term.get("slope"):
        return f"{found}, which say nothing about clicks in other contexts; not used."
    return f"{found}; {percent(term['shrinkage'], 0)} of the slope is kept, {number(term['slope'])}."
