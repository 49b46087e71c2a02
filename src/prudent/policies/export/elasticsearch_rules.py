"""Query rules of Elasticsearch: for each context of a policy, its items pinned to the top."""

import re
import warnings
from dataclasses import dataclass
from typing import Any

import duckdb

from prudent.base.errors import PrudentWarning, UsageError
from prudent.policies.export.base import Format, check_name, formats, refuse
from prudent.storage.quoting import text

PINNED = 100
"""Most documents that Elasticsearch pins for one query."""
MOST_RULES = 1000
"""Most rules in one ruleset, if the cluster allows it; by default it allows 100."""
AT_ONCE = 10
"""Most rulesets that one search names."""
_ID_BYTES = 512


@formats.register("elasticsearch-rules")
@dataclass(frozen=True)
class ElasticsearchRules(Format):
    """Requests, two lines each: ``PUT /_query_rules/NAME-1``, and the ruleset as JSON.

    Each context is a rule that pins the items of its list where ``metadata`` of the search equals the context exactly.
    Rules are split into rulesets of ``rules``, in the order of contexts; the manifest has their first and last context.
    """

    name: str = "prudent"
    metadata: str = "user_query"
    rules: float = 100

    def __post_init__(self) -> None:
        check_name("metadata", self.metadata)
        if not isinstance(self.name, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", self.name):
            raise UsageError(f"name is {self.name!r}; rulesets have letters, digits, '.', '_' and '-' in their names.")
        if not (
            isinstance(self.rules, float | int) and 1 <= self.rules <= MOST_RULES and self.rules == int(self.rules)
        ):
            raise UsageError(f"rules is {self.rules!r}; a ruleset has 1 to {MOST_RULES} of them.")

    def _check(self, connection: duckdb.DuckDBPyConnection) -> None:
        """What Elasticsearch would refuse, or cut off."""
        ((longest,),) = connection.execute("select coalesce(max(len(items)), 0) from numbered").fetchall()
        if longest > PINNED:
            raise UsageError(
                f"The longest list has {longest} items, and Elasticsearch pins {PINNED}. Rank again with "
                f"--length {PINNED}."
            )
        ((rulesets,),) = connection.execute(f"select count(distinct {self._ruleset}) from numbered").fetchall()
        if rulesets > AT_ONCE:
            warnings.warn(
                f"There are {rulesets:,} rulesets, and one search names at most {AT_ONCE}. The manifest has the "
                "contexts of each: name the one with yours.",
                PrudentWarning,
                stacklevel=3,
            )
        refuse(
            connection,
            "item",
            f"strlen(name) not between 1 and {_ID_BYTES}",
            f"is not a valid _id, which has 1 to {_ID_BYTES} bytes. Items have to be document ids.",
        )

    def parts(self, connection: duckdb.DuckDBPyConnection) -> str:
        """See `Format.parts`."""
        self._check(connection)
        # All as text: numbers would be compared as floating point.
        rule = f"""{{
            'rule_id': number::varchar,
            'type': 'pinned',
            'criteria': [{{'type': 'exact', 'metadata': {text(self.metadata)}, 'values': [context::varchar]}}],
            'actions': {{'ids': items::varchar[]}}
        }}"""
        first, last = f"number % {int(self.rules)} = 1 % {int(self.rules)}", f"number % {int(self.rules)} = 0"
        return f"""
            select encode(
                case when {first} then 'PUT /_query_rules/' || {self._id} || chr(10) || '{{"rules":[' else ',' end
                || to_json({rule})::varchar
                || case when {last} or number = count(*) over () then ']}}' || chr(10) else '' end
            )
            from numbered
            order by number
        """

    def about(self, connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
        """The rulesets, each with its first and last context."""
        rows = connection.execute(
            f"select {self._id}, count(*), min(context), max(context) from numbered group by {self._ruleset} "
            f"order by {self._ruleset}"
        ).fetchall()
        keys = ("ruleset_id", "rules", "first", "last")
        return {"rulesets": [dict(zip(keys, row, strict=True)) for row in rows]}

    @property
    def _ruleset(self) -> str:
        return f"(number - 1) // {int(self.rules)}"

    @property
    def _id(self) -> str:
        return f"{text(self.name + '-')} || ({self._ruleset} + 1)"
