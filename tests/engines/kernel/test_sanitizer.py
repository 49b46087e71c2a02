"""No access outside of a buffer and nothing undefined: the tests of the kernel once more, with a compiler's checks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from prudent.engines.kernel import build
from tests.programs import find_sanitizer

CHECKS = ["-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
RUN = """
import sys
from pathlib import Path

import pytest

from prudent.engines.kernel import build

build.LIBRARY = Path(sys.argv[1])
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-k", "compiled or both", *sys.argv[2:]]))
"""


@pytest.mark.sanitizer
def test_sanitizers_find_nothing(tmp_path: Path) -> None:
    build.compile_kernel(tmp_path / "checked.lib", CHECKS)
    sanitizer = find_sanitizer() or ""
    # Exceptions pass through the sanitizer only if it finds the functions that throw them when it is loaded.
    exceptions = subprocess.run(["g++", "-print-file-name=libstdc++.so.6"], capture_output=True, text=True, check=True)
    environment = {
        **os.environ,
        "LD_PRELOAD": f"{sanitizer} {exceptions.stdout.strip()}",
        "ASAN_OPTIONS": "detect_leaks=0",  # Python itself leaks; the tests count batches
        "ARROW_DEFAULT_MEMORY_POOL": "system",
    }
    tests = [str(path) for path in Path(__file__).parent.glob("test_*.py") if path != Path(__file__)]
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(tmp_path / "checked.lib"), *tests],
        env=environment,
        cwd=Path(__file__).parents[3],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout
