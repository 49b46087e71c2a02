"""The command line: arguments in, one public call, its output.

Commands import what they call when they run: `prudent --help` answers before NumPy and SciPy are loaded.
"""

import io
import os
import sys
import warnings
from importlib import import_module
from typing import Annotated

import typer

from prudent import __version__
from prudent.base.errors import PrudentError, WriteError
from prudent.cli.options import app
from prudent.cli.output import close_stdout, fail, out, show_warning

# Each adds its commands to the application, in the order of the help.
for group in ("rank", "days", "evaluate", "compare", "report", "demo", "reproduce"):
    import_module(f"prudent.cli.{group}")


@app.callback(invoke_without_command=True)
def _main(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Turn a click log into the ranked lists with the best [bold]lower confidence bound[/bold] on their value.

    Start with [bold]prudent demo[/bold], or with your own log: [bold]prudent check LOG[/bold].
    """
    if version:
        out.print(f"prudent {__version__}")


def main() -> None:
    """Entry point: a `PrudentError` becomes one line on stderr and its exit code."""
    # Before NumPy is loaded: its matrices are small here, and more threads of BLAS only wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    warnings.showwarning = show_warning  # type: ignore[assignment]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal without ▇ gets \u2587
    try:
        try:
            app(prog_name="prudent")
        finally:
            sys.stdout.flush()
    except PrudentError as error:
        fail(str(error), error.exit_code)
    except OSError as error:  # from the standard output: files raise errors of prudent
        close_stdout()
        fail(f"Cannot write to the standard output: {error.strerror}.", WriteError.exit_code)
    except Exception as error:  # DuckDB's, by name: it may not be loaded
        if str(error) == "Query interrupted":
            sys.exit(130)
        if type(error).__name__ == "OutOfMemoryException":
            fail(f"Out of memory: {str(error).splitlines()[0]}. Raise --memory.", PrudentError.exit_code)
        raise
