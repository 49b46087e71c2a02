"""The programs some tests need: which marker needs which, how to find them, how to get them.

    python tests/programs.py install    install what is missing, where that is allowed
    python tests/programs.py venv       the same for python3-venv, without which there is no environment

A marker is a tier of the test suite. `pytest` alone leaves all tiers out and needs Python packages only; `--all`,
`-m spark` or a path run them. This file uses the standard library alone: `make` runs it before the environment exists.
"""

import os
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

AXE = "axe-core@4.14.0"
KERNEL = runpy.run_path(str(Path(__file__).parents[1] / "src/prudent/engines/kernel/build.py"))


@dataclass(frozen=True)
class Program:
    """A program that tests need besides Python packages."""

    name: str
    find: Callable[[], str | None]
    packages: tuple[str, ...]  # of Debian and Ubuntu; the first that apt knows is installed
    other: str = ""  # how to get it, where apt does not have it
    optional: bool = False  # CI may go without it


@dataclass(frozen=True)
class Tier:
    """Tests with one marker."""

    marker: str
    about: str
    needs: tuple[Program, ...] = ()

    @cached_property
    def missing(self) -> list[Program]:
        """The programs that are not here; each is looked for once."""
        return [program for program in self.needs if program.find() is None]

    @property
    def how(self) -> str:
        """How to get what is missing."""
        packages = " ".join(program.packages[0] for program in self.missing if program.packages)
        return f"sudo apt-get install {packages}" if packages else "; ".join(one.other for one in self.missing)


def _answers(path: str | None, *arguments: str) -> str | None:
    """What a program prints, if it is there and works: Ubuntu's chromium is a script that asks for a snap."""
    if path is None:
        return None
    try:
        done = subprocess.run(
            [path, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def find_java() -> str | None:
    """Java 17 or newer, as Spark finds it."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(str(Path(home, "bin", "java")) if home else "java")
    version = re.search(r'version "(\d+)', _answers(java, "-version") or "")
    return java if version and int(version[1]) >= 17 else None


def find_chromium() -> str | None:
    """Chromium of the system, or the one that playwright installs."""
    cache = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH", Path.home() / ".cache" / "ms-playwright"))
    named = map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
    fetched = sorted(map(str, cache.glob("chromium-*/chrome-linux*/chrome")), reverse=True)
    return next((path for path in (*named, *fetched) if _answers(path, "--version")), None)


def find_axe() -> str | None:
    """The script of axe-core, in this environment."""
    script = Path(sys.prefix, "axe", "node_modules", "axe-core", "axe.min.js")
    return str(script) if script.exists() else None


def find_postgres(name: str) -> str | None:
    """A program of PostgreSQL; Debian keeps those of the server off the PATH."""
    return shutil.which(name) or next(
        iter(sorted(map(str, Path("/usr/lib/postgresql").glob(f"*/bin/{name}")), reverse=True)), None
    )


def find_sanitizer() -> str | None:
    """The library that a C++ compiler has to check memory accesses."""
    command = KERNEL["compiler"]()
    library = (_answers(command[0], "-print-file-name=libasan.so") or "").strip() if command else ""
    return library if Path(library).is_absolute() else None


JAVA = Program("Java 17", find_java, ("openjdk-17-jre-headless", "openjdk-21-jre-headless"))
CHROMIUM = Program("chromium", find_chromium, ("chromium",))
AXE_CORE = Program("axe-core", find_axe, ("npm",))  # `install` fetches it by npm
REDIS = Program("Redis", lambda: shutil.which("redis-cli") and shutil.which("redis-server"), ("redis-server",))
GXX = Program("g++", find_sanitizer, ("g++",))
CURL = Program("curl", lambda: shutil.which("curl"), ("curl",))
FLOCK = Program("flock", lambda: shutil.which("flock"), ("util-linux",))
DATA = Program(
    "real click logs and labels",
    lambda: os.environ.get("PRUDENT_DATA"),
    (),
    "set PRUDENT_DATA to a folder with yandex/ and mslr/, as CONTRIBUTING.md describes",
    optional=True,
)
POSTGRES = Program("PostgreSQL", lambda: shutil.which("psql") and find_postgres("initdb"), ("postgresql",))

TIERS = {
    tier.marker: tier
    for tier in (
        Tier("spark", "counts and ranks on Spark", (JAVA,)),
        Tier("browser", "opens the report in a browser", (CHROMIUM,)),
        Tier("axe", "checks the report's accessibility", (CHROMIUM, AXE_CORE)),
        Tier("redis", "loads exports into Redis", (REDIS,)),
        Tier("postgres", "loads exports into PostgreSQL", (POSTGRES,)),
        Tier("curl", "sends exports over HTTP", (CURL,)),
        Tier("flock", "runs a line of a crontab", (FLOCK,)),
        Tier("sanitizer", "checks the memory accesses of the compiled kernel", (GXX,)),
        Tier("data", "reads files that are not ours to ship", (DATA,)),
        Tier("slow", "long: simulates until a claim is certain, or is killed again and again"),
    )
}


def privileged() -> list[str] | None:
    """What to put before apt-get: nothing for root, sudo where it asks for no password, None where neither is so."""
    if shutil.which("apt-get") is None:
        return None
    if os.geteuid() == 0:
        return []
    return ["sudo", "-n"] if _answers(shutil.which("sudo"), "-n", "true") is not None else None


def _apt(packages: Sequence[tuple[str, ...]]) -> None:
    """Install one of each; where that fails, say so and go on: the tests say what they could not run."""
    before = privileged()
    if before is None or not packages:
        return
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    run = [*before, "apt-get", "--quiet", "--yes", "--no-install-recommends"]
    subprocess.run([*before, "apt-get", "--quiet", "update"], check=False, env=quiet)
    known = [next((name for name in names if _answers("apt-cache", "show", name)), names[0]) for names in packages]
    if subprocess.run([*run, "install", *known], check=False, env=quiet).returncode:
        sys.stderr.write(f"apt-get could not install {' '.join(known)}.\n")


def install() -> None:
    """Get every program of every tier, where this user may."""
    missing = {program for tier in TIERS.values() for program in tier.missing if program.packages}
    ubuntu = Path("/etc/os-release").exists() and "ID=ubuntu" in Path("/etc/os-release").read_text()
    by_apt = missing - ({CHROMIUM} if ubuntu else set()) - ({AXE_CORE} if shutil.which("npm") else set())
    _apt(sorted(program.packages for program in by_apt))
    if ubuntu and CHROMIUM in missing and privileged() is not None:  # apt has only a snap there
        subprocess.run([sys.executable, "-m", "playwright", "install", "--with-deps", "chromium"], check=False)
    if AXE_CORE in missing and shutil.which("npm"):
        into = str(Path(sys.prefix, "axe"))
        subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", into, AXE], check=False)
    # The compiler may have come after the package.
    subprocess.run([sys.executable, "-m", "prudent.engines.kernel"], check=False)


def venv() -> None:
    """Make sure that environments can be made; Debian and Ubuntu have that in a package of its own."""
    if find_spec("ensurepip") is None:
        _apt([("python3-venv",)])
        if subprocess.run([sys.executable, "-c", "import ensurepip"], check=False).returncode:
            sys.exit("Python cannot make environments here: sudo apt-get install python3-venv")


if __name__ == "__main__":
    {"install": install, "venv": venv}[sys.argv[1]]()
