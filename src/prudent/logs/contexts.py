r"""Contexts of several columns: one name made of them, the same in every engine and for every table.

The values are joined by ``|``. A ``|`` or ``\`` in a value is written with a ``\`` before it, so that different values
never have the same name. Integers are written in decimal.
"""

from collections.abc import Sequence

from prudent.base.errors import UsageError


def context_name(*values: str | int) -> str:
    r"""The name of a context of several columns, as counts and policies have it.

    >>> context_name("running shoes", "de"), context_name("a|b", 7)
    ('running shoes|de', 'a\\|b|7')
    """
    return "|".join(str(value).replace("\\", r"\\").replace("|", r"\|") for value in values)


def context_columns(context: str | Sequence[str]) -> dict[str, str]:
    """What each column of a context means, ``context`` or ``context1``, ``context2``, ..., and its name."""
    if isinstance(context, str) or not isinstance(context, Sequence):  # what is no text is refused with other columns
        return {"context": context}
    names = list(context)
    if not names:
        raise UsageError("Name a column of the context: context=... (--context).")
    if len(names) == 1:
        return {"context": names[0]}
    return {f"context{number}": name for number, name in enumerate(names, start=1)}
