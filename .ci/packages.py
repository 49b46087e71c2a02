"""The packages that CI installs: which versions, and whether any of them is known to be vulnerable.

    python .ci/packages.py lock     write .ci/constraints.txt: the newest versions that pyproject.toml allows
    python .ci/packages.py audit    ask osv.dev about them; where it cannot be reached, say so and go on

Only CI is held to these versions. An installation by pip takes what pyproject.toml allows.
"""

import json
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

LOCK = Path(__file__).with_name("constraints.txt")
DATABASE = "https://api.osv.dev/v1/querybatch"
GROUPS = ("test", "lint", "docs")


def lock() -> None:
    """Write the versions that pip would install into an empty environment."""
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        groups = [word for group in GROUPS for word in ("--group", group)]
        resolve = ["install", "--quiet", "--dry-run", "--ignore-installed", *groups, ".", "--report", report.name]
        subprocess.run([sys.executable, "-m", "pip", *resolve], check=True)
        installed = [one["metadata"] for one in json.load(report)["install"]]
    pins = sorted(f"{one['name'].lower()}=={one['version']}" for one in installed if one["name"] != "prudent")
    LOCK.write_text("\n".join(["# Written by `make lock`: the versions that .ci/run installs.", *pins, ""]))


def audit(database: str = DATABASE) -> list[str]:
    """The locked packages with a known vulnerability, and its names."""
    pins = [line.split("==") for line in LOCK.read_text().splitlines() if "==" in line]
    queries = [{"package": {"name": name, "ecosystem": "PyPI"}, "version": version} for name, version in pins]
    request = urllib.request.Request(database, json.dumps({"queries": queries}).encode())  # noqa: S310 (https)
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
        results = json.load(answer)["results"]
    return [
        f"{name} {version}: {', '.join(one['id'] for one in result['vulns'])}"
        for (name, version), result in zip(pins, results, strict=True)
        if result.get("vulns")
    ]


def main(command: str) -> int:
    """Run one of the two."""
    if command == "lock":
        lock()
        return 0
    try:
        vulnerable = audit()
    except (OSError, ValueError) as error:  # no network, or a proxy that answers something else
        print(f"Not checked: vulnerabilities of packages. {DATABASE} cannot be reached: {error}")
        return 0
    print("\n".join(vulnerable) or f"No known vulnerability in the packages of {LOCK.name}.")
    return int(bool(vulnerable))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
