"""Names, values and paths as SQL text: the only ways for them into a query that takes no bound parameter."""

import glob
import os
from pathlib import Path


def identifier(name: str) -> str:
    """A name as SQL text: the only way a column or table name enters a query.

    >>> print(identifier('a"b'))
    "a""b"
    """
    return '"' + name.replace('"', '""') + '"'


def backquoted(name: str) -> str:
    """The same in the words of Spark, where a dot outside of such quotes would look into a structure.

    >>> print(backquoted("a.b`c"))
    `a.b``c`
    """
    return "`" + name.replace("`", "``") + "`"


def text(value: str | os.PathLike[str]) -> str:
    """A string or path as SQL text, for the few places that take no bound parameter."""
    return "'" + os.fspath(value).replace("'", "''") + "'"


def file_text(file: Path) -> str:
    """A file to read as SQL text: ``log[1].csv`` is that file, not a pattern for ``log1.csv``.

    >>> print(file_text(Path("log[1].csv")))
    'log[[]1].csv'
    """
    return text(glob.escape(str(file)))
