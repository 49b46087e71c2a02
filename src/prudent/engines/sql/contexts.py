"""The name of a context of several columns, as `prudent.logs.contexts` makes it, in SQL."""

from collections.abc import Sequence


def composed(values: Sequence[str]) -> str:
    """One expression of these, which are the values of the columns; null where one of them is."""
    if len(values) == 1:
        return values[0]
    return " || '|' || ".join(map(_escaped, values))


def _escaped(value: str) -> str:
    slashes = f"replace(cast({value} as string), {_SLASH}, {_SLASH} || {_SLASH})"
    return f"replace({slashes}, '|', {_SLASH} || '|')"


_SLASH = "chr(92)"  # whether Spark's SQL unescapes a backslash is a setting of the session
