"""The fitted prior of a policy as JSON, and what it makes of a request that no log has seen."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np

from prudent.base.arrays import FloatArray, IntArray
from prudent.base.errors import PolicyError, UsageError, did_you_mean
from prudent.base.strict_json import parse_json, typed
from prudent.bounds import Bound, bounds
from prudent.bounds.groups import KEPT_GROUPS, Grouping, Sums, Totals, signals_of
from prudent.click_models import Evidence, click_models
from prudent.counts.groupings import OF_CONTEXTS, OF_ITEMS, Derived, Groupings, combined, keys_of_texts
from prudent.counts.groups import NO_GROUP, Keys, Signals
from prudent.policies.feature_signals import joined
from prudent.policies.installed import NotInstalledError, check_installed
from prudent.policies.learned_features import LearnedFeatures
from prudent.policies.plan import Plan
from prudent.storage.parquet import read_footer
from prudent.storage.run import LONGEST

PRIOR_IN_FOLDER = "_prior.json"
"""The fitted prior in a folder of part files, whose name Spark ignores."""
PRIOR = "prudent_prior"
"""The key of the fitted prior in the footer of a policy."""


class NewList(NamedTuple):
    """The candidates of a request, best first; all that is known of them is the prior."""

    items: list[str | int]
    lower: FloatArray
    mean: FloatArray


@dataclass(frozen=True, eq=False)
class FittedPrior:
    """All that it takes to rank the candidates of a context that the log does not have."""

    bound: Bound  # learned
    spelling: str
    positions: int
    groupings: tuple[Grouping, ...] = ()
    totals: tuple[Totals, ...] = ()  # of each grouping
    of_items: tuple[str, ...] = ()
    of_contexts: tuple[str, ...] = ()
    features: LearnedFeatures | None = None

    @classmethod
    def of(cls, plan: Plan, spelling: str) -> "FittedPrior | None":
        """That of a plan; None where its bound has none."""
        if plan.bound.saved is None:
            return None
        features = None if plan.features is None else LearnedFeatures.of(plan.features)
        if plan.effects is None:
            return cls(plan.bound, spelling, plan.fitted.positions, features=features)
        return cls(
            plan.bound,
            spelling,
            plan.fitted.positions,
            plan.effects.groupings,
            tuple(
                # Without the others, whose few examinations hardly move a prior.
                total.most_examined(0 if grouping.strength is None else KEPT_GROUPS)
                for grouping, total in zip(plan.effects.groupings, plan.effects.totals, strict=True)
            ),
            tuple(plan.groupings.of_items),
            tuple(plan.groupings.of_contexts),
            features,
        )

    @property
    def footer(self) -> dict[str, str]:
        """The entry for the footer of a Parquet file."""
        return {PRIOR: self.to_text()}

    def to_text(self) -> str:
        """As JSON: the parameters and, for each grouping, the sums of its groups."""
        groups = [
            {**asdict(grouping), **{name: column.tolist() for name, column in _columns(total).items()}}
            for grouping, total in zip(self.groupings, self.totals, strict=True)
        ]
        content = {
            "bound": self.spelling,
            "saved": self.bound.saved,
            "positions": self.positions,
            "of_items": self.of_items,
            "of_contexts": self.of_contexts,
            "groups": groups,
            **({} if self.features is None else {"features": self.features.to_json()}),
        }
        return json.dumps(content, allow_nan=False)

    @classmethod
    def from_text(cls, text: str, name: str) -> "FittedPrior":
        """The inverse of `to_text`; the prior of a policy of this name."""
        try:
            content = parse_json(text)
            groupings, totals = [], []
            for group in content["groups"]:
                totals.append(_read_totals(group))
                groupings.append(typed(group, Grouping))
            spelling = typed(content["bound"], str)
            check_installed(bounds, spelling)
            of_items, of_contexts = (typed(content[key], tuple[str, ...]) for key in ("of_items", "of_contexts"))
            bound = bounds.parse(spelling).restored(content["saved"])
            positions = typed(content["positions"], int)
            names = Groupings(dict.fromkeys(of_items), dict.fromkeys(of_contexts)).names  # type: ignore[arg-type]
            if (groupings and tuple(one.name for one in groupings) != names) or not 0 < positions <= LONGEST:
                raise ValueError("its groupings or positions are none")
            features = LearnedFeatures.from_json(content["features"]) if "features" in content else None
            prior = cls(bound, spelling, positions, tuple(groupings), tuple(totals), of_items, of_contexts, features)
            nothing = Signals(names, np.zeros((1, len(names)))) if groupings else None
            known = None if features is None else features.signal(features.read(["an item"], {}))
            # What does not fit together shows here.
            prior._scored(replace(prior._unseen(1), signals=joined(nothing, known)))
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, IndexError, UsageError) as error:
            raise PolicyError(f"The fitted prior in {name} is damaged. Rank again.") from error
        return prior

    def rank(self, context: str | int, candidates: Sequence[str | int], features: Mapping[str, Any]) -> NewList:
        """The candidates by lower bound; ties keep the order of the candidates."""
        names = list(candidates)
        if len({*map(type, names)}) > 1 or len({*names}) < len(names):
            raise UsageError("Candidates are names of one type, text or integers, and each is named once.")
        evidence = self._unseen(len(names))
        self._check_names(features)
        by_group, by_feature = None, None
        with np.errstate(all="ignore"):  # `_scored` looks at what comes of it
            if self.groupings:
                by_group = signals_of(self.groupings, self.totals, self._keys(context, names, features))
            if self.features is not None:
                by_feature = self.features.signal(self.features.read(names, features))
        evidence = replace(evidence, signals=joined(by_group, by_feature))
        try:
            lower, mean = self._scored(evidence)
        except ValueError as error:
            raise PolicyError(f"The fitted prior of the policy is damaged: {error}. Rank again.") from error
        order = np.argsort(-lower, kind="stable")
        return NewList([names[at] for at in order.tolist()], lower[order], mean[order])

    def _scored(self, evidence: Evidence) -> tuple[FloatArray, FloatArray]:
        """The lower bound and the mean of every pair; a ValueError where they are none."""
        with np.errstate(all="ignore"):
            scores = self.bound.score(evidence)
        lower, mean = scores.lower, scores.mean
        # A posterior with most of its mass at 1 has quantiles above its mean, as one item that is always clicked gives.
        if not ((lower >= 0) & (lower <= 1) & (mean >= 0) & (mean <= 1)).all():
            raise ValueError("its numbers give no bounds")
        return lower, mean

    def _check_names(self, features: Mapping[str, Any]) -> None:
        known = (*self.of_items, *self.of_contexts, *(self.features.names if self.features else ()))
        for feature in features:
            if not known:
                raise UsageError(
                    "The prior of this policy has no groups and no features: it was ranked without --groups and "
                    "--features."
                )
            if feature not in known:
                near = did_you_mean(feature, known)
                raise UsageError(f"The prior has no grouping or feature {feature!r}.{near} It has: {', '.join(known)}.")

    def _keys(self, context: str | int, names: Sequence[str | int], features: Mapping[str, Any]) -> Keys:
        """The groups of the candidates, by features and by their names."""
        own = OF_ITEMS["item"].few(names)
        columns = []
        for grouping in self.of_items:
            if grouping == "item":
                columns.append(own)
            elif grouping not in features:
                columns.append(_of_names(grouping, OF_ITEMS, names))
            elif isinstance(features[grouping], str) or len(features[grouping]) != len(names):
                raise UsageError(f"{grouping} groups items: give one group for each of the {len(names)} candidates.")
            else:
                columns.append(keys_of_texts(features[grouping]))
        for grouping in self.of_contexts:
            group = _of_names(grouping, OF_CONTEXTS, [context])
            group = keys_of_texts([features[grouping]]) if grouping in features else group
            level = np.repeat(group, len(names))
            columns += [level, combined(level, own)]
        return Keys(tuple(one.name for one in self.groupings), np.column_stack(columns), (False,) * len(columns))

    def _unseen(self, pairs: int) -> Evidence:
        """The evidence of pairs of one context that were never shown."""
        none = np.zeros(pairs)
        fitted = click_models.parse("cm").typical(self.positions)  # there is no click to count: any model will do
        return Evidence(np.zeros(pairs, np.int64), np.arange(pairs), none, none, none, fitted, none, none, none, none)


@dataclass(frozen=True)
class UnreadPrior:
    """The fitted prior of a policy that another package has ranked, which is not installed here."""

    text: str
    reason: str

    @property
    def footer(self) -> dict[str, str]:
        """As it was read."""
        return {PRIOR: self.text}

    def rank(self, context: str | int, candidates: Sequence[str | int], features: Mapping[str, Any]) -> NewList:
        """Nothing, and why."""
        raise PolicyError(f"The policy cannot rank requests here. {self.reason} Install the package that has it.")


def read_prior(connection: duckdb.DuckDBPyConnection, file: Path) -> FittedPrior | UnreadPrior | None:
    """The fitted prior in the file of a policy, or in the folder that Spark wrote; None where there is none.

    One that cannot be used here, since a package is missing, is kept: lists can be read without it.
    """
    if not file.is_dir():
        text = read_footer(connection, file).get(PRIOR)
    else:
        inside = file / PRIOR_IN_FOLDER
        text = inside.read_text(encoding="utf-8") if inside.is_file() else None
    if text is None:
        return None
    try:
        return FittedPrior.from_text(text, str(file))
    except NotInstalledError as error:
        return UnreadPrior(text, str(error))


def _read_totals(group: dict[str, Any]) -> Totals:
    """The sums of the groups of a grouping, which are taken out of it."""
    keys, *sums = (np.array(group.pop(name)) for name in ("keys", *Sums._fields))
    for column in (keys, *sums):
        if column.shape != keys.shape or column.ndim != 1 or (column.size and column.dtype != np.int64):
            raise ValueError("the sums of its groups are no columns of integers")
    keys, *sums = (column.astype(np.int64) for column in (keys, *sums))
    totals = Totals(keys, Sums(*sums))
    if (np.diff(keys) <= 0).any() or any((column < 0).any() for column in sums):
        raise ValueError("the sums of its groups are out of order")
    return totals


def _columns(totals: Totals) -> dict[str, IntArray]:
    return {"keys": totals.keys, **totals.sums._asdict()}


def _of_names(grouping: str, automatic: Mapping[str, Derived], names: Sequence[str | int]) -> IntArray:
    """The groups of names: none, without a feature, for a grouping that is not automatic."""
    return automatic[grouping].few(names) if grouping in automatic else np.full(len(names), NO_GROUP)
