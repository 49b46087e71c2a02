"""The command line, in this process, which is quick, or in one of its own, which is what a user has."""

import io
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from prudent.cli import main
from prudent.cli.output import BUG

PROCESS = [sys.executable, "-c", "from prudent.cli import main; main()"]


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """Everything, with the line breaks that the width of a terminal put in taken out."""
        return " ".join((self.out + self.err).split())


def run(*args: object) -> Ran:
    """`prudent ARGS` in this process; an error that nobody foresaw fails the test."""
    code: object = 0
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["prudent", *map(str, args)]),
        redirect_stdout(out),
        redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("default")
        try:
            main()
        except SystemExit as leaving:
            code = leaving.code
    assert code != BUG, err.getvalue()
    return Ran(int(str(code or 0)), out.getvalue(), err.getvalue())


def run_apart(command: Sequence[object], timeout: float, **how: Any) -> subprocess.CompletedProcess[str]:
    """A command with all it starts; when the time is up, all of it ends.

    `subprocess.run` ends the command alone and then waits, for ever, for children that still hold its output.
    """
    with subprocess.Popen(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
        **how,
    ) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def run_process(*args: object, env: Mapping[str, str] | None = None, folder: Path | None = None, **how: Any) -> Ran:
    """`prudent ARGS` in a process of its own; nothing of it may leak or crash."""
    done = run_apart([*PROCESS, *args], timeout=120, env={**os.environ, **(env or {})}, cwd=folder, **how)
    assert "Traceback" not in done.stderr, done.stderr
    assert "nanobind" not in done.stderr, done.stderr
    return Ran(done.returncode, done.stdout, done.stderr)
