"""How results look on a terminal: progress, tables, and names that are shown and not obeyed.

Here is what all commands share; what each of them shows stands in the module that is called like theirs in `cli`.
"""

import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import isfinite
from textwrap import fill
from typing import NoReturn

from rich.console import Console
from rich.table import Table
from rich.text import Text

from prudent.base.errors import PrudentWarning


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """The reader has seen enough: leave as a killed `cat` would, and not with the code of a gate that said no."""
        close_stdout()
        raise SystemExit(141)


out = _Console(highlight=False, emoji=False)
err = _Console(stderr=True, highlight=False, emoji=False)


@contextmanager
def busy(doing: str) -> Iterator[None]:
    """Show that something is going on, on a terminal only."""
    if not err.is_terminal:
        yield
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    with Progress(
        SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=err, transient=True
    ) as progress:
        progress.add_task(f"{doing} ...", total=None)
        yield


@contextmanager
def counting_down() -> Iterator[Callable[[str, int, int], None]]:
    """A bar with the time left, on a terminal only; told what is being done, how far it is, and how far it goes."""
    if not err.is_terminal:
        yield lambda doing, done, total: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=err,
        transient=True,
    ) as progress:
        task = progress.add_task("")

        def watch(doing: str, done: int, total: int) -> None:
            started = progress.tasks[task].description != doing or progress.tasks[task].total != total
            if started:  # the speed of the one before says nothing about this one
                progress.reset(task)
            progress.update(task, description=doing, completed=done, total=total)

        yield watch


def show_warning(message: Warning | str, category: type[Warning], *_: object) -> None:
    """In place of `warnings.showwarning`, whose file and line mean nothing to a user."""
    style = "yellow" if issubclass(category, PrudentWarning) else "dim"
    err.print(Text("Note: ", style=f"bold {style}") + Text(plain(str(message))), soft_wrap=True)


def plain(text: str) -> str:
    """Text that a terminal shows and does not obey: control characters are written out."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def say(line: str) -> None:
    """Print a line as it is: no markup in it, and no break inside a path."""
    out.print(line, markup=False, soft_wrap=True)


def tell(sentence: str) -> None:
    """Print a sentence, broken between words where the terminal ends."""
    say(fill(plain(sentence), out.width, break_long_words=False, break_on_hyphens=False))


def several(n: int, what: str) -> str:
    """So many of something.

    >>> several(1, "list"), several(1200, "list")
    ('1 list', '1,200 lists')
    """
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def say_next(*command: object) -> None:
    """Print the command that usually comes next, ready to be pasted."""
    say(f"Next: {plain(shlex.join(map(str, command)))}")


def print_json(content: object) -> None:
    """Print for a machine."""
    out.out(json.dumps(_finite(content), indent=2, ensure_ascii=True), highlight=False)


def _finite(content: object) -> object:
    """The same with null for numbers that JSON does not have."""
    if isinstance(content, Mapping):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not isfinite(content) else content


def table_of(*columns: str, title: str | None = None) -> Table:
    """An empty table: names to the left, numbers to the right."""
    table = Table(title_justify="left", box=None, pad_edge=False, header_style="dim")
    table.title = None if title is None else Text(title, style="bold")  # names are no markup
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right", overflow="fold")
    return table


def fail(message: str, code: int) -> NoReturn:
    """Say what went wrong in one line, and leave."""
    err.print(Text("Error: ", style="bold red") + Text(plain(message)), soft_wrap=True)
    sys.exit(code)


def close_stdout() -> None:
    """Let what is still buffered go nowhere; Python would try again to write it, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
