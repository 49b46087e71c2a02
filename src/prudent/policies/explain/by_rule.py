"""What business rules say of the candidates of a context, from the manifest of a policy."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from prudent.base.errors import PolicyError, RulesError
from prudent.base.text import percent, several
from prudent.policies.explain.explanation import Candidate, Name
from prudent.policies.rules.rules import Rules, read_rules


@dataclass(frozen=True)
class ByRule:
    """The rules of a policy; without any, nothing changes."""

    rules: Rules

    def in_words(self, context: Name, candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
        """The same candidates; where a rule names an item, its sentence starts with the rule."""
        return tuple(
            replace(one, why=f"{rule}; {one.why}" if one.why else rule) if (rule := self._about(context, one)) else one
            for one in candidates
        )

    def _about(self, context: Name, one: Candidate) -> str:
        if (pin := self.rules.about("pin", one.item, context)) is not None:
            return f"by rule, pinned to {pin.position}"
        if self.rules.about("exclude", one.item, context) is not None:
            return "by rule, excluded"
        if self.rules.about("bury", one.item, context) is not None:
            return "by rule, behind all others"
        if one.rank is not None and one.rank == one.incumbent and one.rank <= self.rules.keep_first:
            first = "item" if self.rules.keep_first == 1 else f"{self.rules.keep_first} items"
            return f"stays by rule, which keeps the incumbent's first {first}"
        return ""

    @property
    def notes(self) -> tuple[str, ...]:
        """The rules that name no item."""
        notes = [
            f"By rule, a list has at most {several(most, 'item')} of one {column}."
            for column, most in self.rules.at_most.items()
        ]
        if self.rules.new_share:
            share, below = percent(self.rules.new_share, 0), several(self.rules.new_below, "impression")
            notes.append(f"By rule, at least {share} of the items of a list have fewer than {below}.")
        return tuple(notes)


def ruled(content: Any) -> ByRule:
    """The rules in the settings of a manifest, which is untrusted."""
    if content is None:
        return ByRule(Rules())
    try:
        return ByRule(read_rules(content if isinstance(content, dict) else {"": content}))
    except RulesError as error:
        raise PolicyError(f"The manifest of the policy has no rules that can be read: {error}") from error
