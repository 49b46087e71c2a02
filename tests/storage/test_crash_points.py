"""At every step of every command that writes, killed or without room: old or new, whole, with its own provenance."""

import json
import sys
from pathlib import Path

import pytest

from tests.command import run_apart
from tests.crash_points import COMMANDS


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_every_step(command: str, tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    done = run_apart([sys.executable, "-m", "tests.crash_points", tmp_path, command], timeout=300, cwd=root)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["wrong"] == [], found["wrong"]
    assert found["steps"] >= 2
