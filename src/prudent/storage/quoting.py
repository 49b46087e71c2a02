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


def absolute(path: str | os.PathLike[str]) -> str:
    """A path that DuckDB reads to the letter: in a relative one it expands ``~`` and drops ``file:``.

    >>> absolute("/logs/../~/log.csv")
    '/~/log.csv'
    """
    return os.path.abspath(os.fspath(path))


def text(value: str | os.PathLike[str]) -> str:
    """A string as SQL text, for the few places that take no bound parameter; a path becomes absolute."""
    plain = value if isinstance(value, str) else absolute(value)
    return "'" + plain.replace("'", "''") + "'"


def file_text(file: Path) -> str:
    """A file to read as SQL text: ``log[1].csv`` is that file, not a pattern for ``log1.csv``.

    >>> print(file_text(Path("/logs/log[1].csv")))
    '/logs/log[[]1].csv'
    """
    return text(glob.escape(absolute(file)))


def is_pattern_only(file: str | os.PathLike[str]) -> bool:
    """Whether DuckDB has no spelling for a file: in a pattern, which ``*`` makes of a name, a backslash is a slash."""
    return "\\" in absolute(file) and glob.has_magic(absolute(file))
