"""The command line: arguments in, one public call, its output.

Commands import what they call when they run: `prudent --help` answers before NumPy and SciPy are loaded.
"""

import errno
import io
import os
import signal
import sys
import threading
import traceback
import warnings
from importlib import import_module
from typing import Annotated, NoReturn

import typer

from prudent import __version__
from prudent.base.errors import PrudentError, WriteError
from prudent.cli.options import app
from prudent.cli.output import BUG, CUT_OFF, Decided, check_streams, close_stdout, fail, out, show_warning

# Each adds its commands to the application, in the order of the help.
for group in (
    "rank",
    "judge",
    "explore",
    "compact",
    "diff",
    "evaluate",
    "after_launch",
    "compare",
    "report",
    "demo",
    "reproduce",
):
    import_module(f"prudent.cli.{group}")


@app.callback(invoke_without_command=True)
def _main(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Turn a click log into the ranked lists with the best [bold]lower confidence bound[/bold] on their value.

    Start with [bold]prudent demo[/bold], or with your own log: [bold]prudent check LOG[/bold].
    """
    if version:
        out.print(f"prudent {__version__}")


def main() -> None:
    """Entry point: an error becomes one line on stderr and an exit code; 1 is that of a gate, and of nothing else."""
    # Before NumPy is loaded: its matrices are small here, and more threads of BLAS only wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if not os.environ.get("COLUMNS", "80").strip("0"):  # as if it were not set: nothing fits into no columns
        del os.environ["COLUMNS"]
    check_streams()
    warnings.showwarning = show_warning  # type: ignore[assignment]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal without ▇ gets \u2587
    stopped = _stop_tidily()
    try:
        try:
            app(prog_name="prudent")
        finally:
            if stopped:
                sys.exit(128 + stopped[0])
            sys.stdout.flush()
    except SystemExit as leaving:
        if leaving.code == 1 and not isinstance(leaving, Decided):  # of typer, whose help nobody reads to the end
            sys.exit(CUT_OFF)
        raise
    except PrudentError as error:
        fail(str(error), error.exit_code)
    except Exception as error:
        _fail_otherwise(error)


def _stop_tidily() -> list[int]:
    """On SIGTERM and SIGHUP, remove temporary files as on an interrupt; the list gets the number of the signal."""
    stopped: list[int] = []

    def stop(number: int, _: object) -> None:
        stopped.append(number)
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        for name in ("SIGTERM", "SIGHUP"):
            if (number := getattr(signal, name, None)) and signal.getsignal(number) == signal.SIG_DFL:  # not with nohup
                signal.signal(number, stop)
    return stopped


def _fail_otherwise(error: Exception) -> NoReturn:
    """Of what is no error of prudent: memory, the standard output, an interrupt inside DuckDB; or a bug."""
    kind, message = type(error).__name__, str(error).partition("\n")[0]  # by name: DuckDB may not be loaded
    if message == "Query interrupted":
        sys.exit(130)
    if kind == "OutOfMemoryException":
        fail(f"Out of memory: {message}. Raise --memory.", PrudentError.exit_code)
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        fail(f"Out of memory: {message or 'nothing more could be allocated'}.", PrudentError.exit_code)
    if isinstance(error, OSError):  # from the standard output: files raise errors of prudent
        close_stdout()
        if error.errno == errno.EPIPE:
            sys.exit(CUT_OFF)
        fail(f"Cannot write to the standard output: {error.strerror}.", WriteError.exit_code)
    traceback.print_exception(error)
    fail(
        f"This is a bug in prudent {__version__}, not in your data: {kind}. Please report it with the command and the "
        "lines above, without names that are private.",
        BUG,
    )
