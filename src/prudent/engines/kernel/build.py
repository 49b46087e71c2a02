"""Compile the kernel: when prudent is installed, or later with ``python -m prudent.engines.kernel``.

Nothing of prudent is imported here, since the build of the package runs this file by its path.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
LIBRARY = FOLDER / "count.lib"  # one name on every system: it is opened by its path
# -ffp-contract=off and no -march=native: the same numbers on every machine.
OPTIONS = ["-std=c++17", "-O2", "-fPIC", "-shared", "-ffp-contract=off", "-fvisibility=hidden"]


def compiler() -> list[str] | None:
    """The command of a C++ compiler: $CXX, one on the path, or the one that pip brings (ziglang)."""
    for name in (os.environ.get("CXX"), "c++", "g++", "clang++"):
        if name and shutil.which(name.split()[0]):
            return name.split()
    return [sys.executable, "-m", "ziglang", "c++"] if find_spec("ziglang") else None


def digest() -> str:
    """Of the source: a library that was compiled from another one is not used."""
    parts = sorted([*FOLDER.glob("*.h"), *FOLDER.glob("*.cpp")])
    return sha256(b"\0".join(part.read_bytes() for part in parts)).hexdigest()


def compile_kernel(to: Path = LIBRARY, options: Sequence[str] = ()) -> None:
    """Compile the kernel into a file, or raise `OSError` with the reason."""
    command = compiler()
    if command is None:
        raise FileNotFoundError("there is no C++ compiler")
    part = to.with_name(f"{to.name}.{os.getpid()}")
    define = f'-DPRUDENT_DIGEST="{digest()}"'
    result = subprocess.run(  # noqa: S603 - the compiler that was found
        [*command, *OPTIONS, define, *options, "-o", str(part), str(FOLDER / "count.cpp")],
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        part.unlink(missing_ok=True)
        raise OSError(f"{command[0]} failed: {' '.join(result.stderr.split())[-300:] or result.returncode}")
    part.replace(to)  # whole or not at all: another process may be loading it
