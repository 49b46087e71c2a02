"""At steps of every command that writes, killed or without room: old or new, whole, with its own provenance.

Five of them here; ``python -m tests.crash_points FOLDER`` stops at twenty.
"""

import json
import sys
from pathlib import Path

import pytest
import typer

import prudent.cli  # noqa: F401 (registers the commands)
from prudent.cli.options import app
from tests.command import run_apart
from tests.crash_points import COMMANDS

READING = {"check", "evaluate", "gate", "plan"}
"""Commands that write nothing."""


def test_every_command_that_writes_is_covered() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    covered = {words[0] for words in COMMANDS.values()}
    assert covered | READING == set(commands), "cover the new command, or name it among those that write nothing"
    for name in READING:
        assert not {"to", "folder"} & {parameter.name for parameter in commands[name].params}, f"{name} writes"


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_stopped_at_any_step(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPS", "5")
    root = Path(__file__).parents[2]
    done = run_apart([sys.executable, "-m", "tests.crash_points", tmp_path, command], timeout=300, cwd=root)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["wrong"] == [], found["wrong"]
    assert found["steps"] >= 2
