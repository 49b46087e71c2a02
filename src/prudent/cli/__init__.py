"""Arguments in, functions called, tables out; no arithmetic.

Imports stand inside the commands: `prudent --help` should answer before NumPy and SciPy are even loaded.
"""

import io
import sys
import warnings
from importlib import import_module
from typing import Annotated

import typer

from prudent import __version__
from prudent.base.errors import PrudentError, WriteError
from prudent.cli.shared import app
from prudent.cli.terminal import close_stdout, fail, out, show_warning

# Each adds its commands to the application: the order is that of the help.
for room in ("ranking", "days", "judging", "comparing", "reporting", "exporting", "trying"):
    import_module(f"prudent.cli.{room}")


@app.callback(invoke_without_command=True)
def _main(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Turn a click log into the ranked lists with the best [bold]lower bound[/bold] on their value.

    Start with [bold]prudent demo[/bold], or look at your own log with [bold]prudent check LOG[/bold].
    """
    if version:
        out.print(f"prudent {__version__}")


def main() -> None:
    """Entry point: errors of the family become one line and their exit code."""
    warnings.showwarning = show_warning  # type: ignore[assignment]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # beyond a terminal's alphabet, \u2587 has to do for ▇
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except PrudentError as error:
        fail(str(error), error.exit_code)
    except OSError as error:  # files raise errors of the family: this is the standard output
        close_stdout()
        fail(f"Cannot write to the standard output: {error.strerror}.", WriteError.exit_code)
    except Exception as error:  # DuckDB's have to be told by their looks: it may not be loaded
        if str(error) == "Query interrupted":
            sys.exit(130)
        if type(error).__name__ == "OutOfMemoryException":
            fail(f"There is too little memory: {str(error).splitlines()[0]}. Raise --memory.", PrudentError.exit_code)
        raise
