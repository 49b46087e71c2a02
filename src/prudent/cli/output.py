"""What commands print: progress, sentences, tables and JSON. Names are untrusted and always escaped."""

import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import isfinite
from textwrap import fill
from typing import Any, NoReturn

from rich.console import Console
from rich.text import Text

from prudent.base.errors import PrudentWarning, WriteError
from prudent.base.text import Columns, Rows, as_cell, plain, rich_table, text_table

CUT_OFF = 141
"""Exit code where the reader of the output has seen enough, as of a killed `cat`; not 1, which is a gate's."""
_LONGEST = 4_000
"""Characters of a message."""
BUG = 70
"""Exit code of an error that nobody foresaw (EX_SOFTWARE of sysexits.h)."""


class Decided(SystemExit):
    """The exit of a gate, the only one with code 1."""


class _Console(Console):
    def __init__(self, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, emoji=False)
        if not self.width:  # COLUMNS=0
            self.width = 80

    def on_broken_pipe(self) -> None:
        """Exit quietly."""
        close_stdout()
        raise SystemExit(CUT_OFF)


out = _Console()
err = _Console(stderr=True)


def check_streams() -> None:
    """Stop without a standard output, and reserve closed streams: the next file to be opened would become one."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free, this one
    closed = {name for name in ("stdout", "stderr") if getattr(sys, name) is None}
    for name in closed:
        setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 (open to the end)
    if "stdout" in closed:
        fail("The standard output is closed: send it to a file, or to /dev/null.", WriteError.exit_code)


@contextmanager
def busy(doing: str) -> Iterator[None]:
    """A spinner, on a terminal only."""
    if not err.is_terminal:
        yield
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True) as progress:
        progress.add_task(f"{doing} ...", total=None)
        yield


@contextmanager
def progress_bar() -> Iterator[Callable[[str, int, int], None]]:
    """A function of task, steps done and steps in all that draws a bar with the time left, on a terminal only."""
    if not err.is_terminal:
        yield lambda doing, done, total: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True) as progress:
        task = progress.add_task("")

        def update(doing: str, done: int, total: int) -> None:
            if (progress.tasks[task].description, progress.tasks[task].total) != (doing, total):
                progress.reset(task)  # the speed of the previous task does not apply to this one
            progress.update(task, description=doing, completed=done, total=total)

        yield update


def say(line: str = "") -> None:
    """Print a line: no markup, control characters escaped, no break inside a path."""
    out.print(Text(plain(line)), soft_wrap=True)


def say_wrapped(sentence: str) -> None:
    """Print a sentence, wrapped at the width of the terminal."""
    out.print(fill(plain(sentence), out.width, break_long_words=False, break_on_hyphens=False), markup=False)


def say_next(*command: object) -> None:
    """Print the command that usually comes next, ready to be pasted."""
    say(f"Next: {shlex.join(map(str, command))}")


def print_table(columns: Columns, rows: Rows, title: str = "", wide: bool = False) -> None:
    """Print a table; a `wide` one breaks headings in a narrow terminal, and overflows it rather than break a cell."""
    table = rich_table(columns, rows, title)
    lines = text_table(columns, rows).splitlines()
    if not wide or max(map(len, lines)) <= out.width:
        out.print(table)
        return
    table.padding = (0, 1, 0, 0)
    for column in table.columns:
        words = [*str(column.header).split(), *map(str, column.cells)]
        column.width = max(map(len, words))
    if sum(column.width + 1 for column in table.columns if column.width) - 1 <= out.width:
        out.print(table)
    else:  # rich would cut it
        for line in [*([title] if title else []), *lines]:
            say(line)


def short(value: object, most: int) -> str:
    """A setting or fitted value in few digits; of a list, the first ones.

    >>> short([0.123456, 0.5, 1.0], 2), short(12, 2), short(None, 2)
    ('0.123 0.5 ...', '12', '–')
    """
    if isinstance(value, list):
        return " ".join(short(one, most) for one in value[:most]) + (" ..." if len(value) > most else "")
    return f"{value:.3g}" if isinstance(value, float) else as_cell(value)


def print_json(content: object) -> None:
    """Print JSON."""
    out.out(json.dumps(_finite(content), indent=2, ensure_ascii=True, default=str), highlight=False)


def _finite(content: Any) -> Any:
    """The same with null for numbers that JSON does not have."""
    if isinstance(content, Mapping):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not isfinite(content) else content


def show_warning(message: Warning | str, category: type[Warning], *_: object) -> None:
    """Replaces `warnings.showwarning`, whose file and line mean nothing to a user."""
    style = "yellow" if issubclass(category, PrudentWarning) else "dim"
    err.print(Text("Note: ", style=f"bold {style}") + Text(_readable(str(message))), soft_wrap=True)


def fail(message: str, code: int) -> NoReturn:
    """Print an error in one line and exit."""
    err.print(Text("Error: ", style="bold red") + Text(_readable(message)), soft_wrap=True)
    sys.exit(code)


def _readable(message: str) -> str:
    """A message on one line, without the middle where a name of megabytes makes it long."""
    half = _LONGEST // 2
    shown = message if len(message) <= _LONGEST else f"{message[:half]} … {message[-half:]}"
    return plain(shown)


def close_stdout() -> None:
    """Discard what is still buffered: Python would try to write it again at exit, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
