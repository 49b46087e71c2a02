"""What the fitted prior makes of groups, in words."""

from collections.abc import Mapping
from typing import Any

from prudent.base.text import number, percent, several


def group_sentences(fitted: Mapping[str, Any]) -> list[str]:
    """A sentence for each grouping, from the fitted parameters in the manifest of a policy.

    >>> groups = {"item": {"groups": 2013, "level": 0.0, "strength": 18.0}}
    >>> terms = {"item": {"slope": 0.84, "wald": 509.0, "shrinkage": 0.99}}
    >>> group_sentences({"groups": groups, "prior": {"by_group": terms}})
    ['item: 2,013 groups, of strength 18.00 examinations; 99% of the slope is kept, 0.840.']
    """
    terms = fitted.get("prior", {}).get("by_group", {})
    return [_sentence(name, group, terms.get(name, {})) for name, group in fitted.get("groups", {}).items()]


def _sentence(name: str, group: Mapping[str, Any], term: Mapping[str, Any]) -> str:
    found = f"{name}: {several(group['groups'], 'group')}"
    if group["strength"] is None:
        return f"{found}, which do not differ in clicks; not used."
    found = f"{found}, of strength {number(group['strength'], 2)} examinations"
    if not term.get("slope"):
        return f"{found}, which say nothing about clicks in other contexts; not used."
    return f"{found}; {percent(term['shrinkage'], 0)} of the slope is kept, {number(term['slope'])}."
