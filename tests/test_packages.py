"""The packages of CI: locked, allowed by pyproject.toml, and checked for vulnerabilities where that is possible."""

import json
import runpy
import threading
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCKED = {
    canonicalize_name(name): version
    for name, _, version in (
        line.partition("==") for line in (ROOT / ".ci/constraints.txt").read_text(encoding="utf-8").splitlines()
    )
}
SCRIPT = runpy.run_path(str(ROOT / ".ci/packages.py"))


def test_every_dependency_is_locked_at_a_version_that_is_allowed() -> None:
    """If this fails: `make lock`."""
    named = [
        *PROJECT["project"]["dependencies"],
        *(one for extra in PROJECT["project"]["optional-dependencies"].values() for one in extra),
        *(one for group in PROJECT["dependency-groups"].values() for one in group),
    ]
    wanted = [Requirement(one) for one in named]
    assert {str(one) for one in wanted if LOCKED.get(canonicalize_name(one.name), "") not in one.specifier} == set()
    (jinja,) = (one for one in wanted if one.name == "jinja2")
    assert "3.1.5" not in jinja.specifier  # CVE-2025-27516: out of the sandbox


class Database(BaseHTTPRequestHandler):
    """Knows of one vulnerability."""

    def do_POST(self) -> None:
        queries = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["queries"]
        found = {"vulns": [{"id": "GHSA-1"}, {"id": "CVE-2"}]}
        body = json.dumps({"results": [found if one["package"]["name"] == "jinja2" else {} for one in queries]})
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: Any) -> None:
        """Quiet."""


@pytest.fixture
def database() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Database) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_vulnerable_package_is_named(database: str) -> None:
    assert SCRIPT["audit"](database) == [f"jinja2 {LOCKED[canonicalize_name('jinja2')]}: GHSA-1, CVE-2"]


def test_without_the_database_nothing_is_checked_and_that_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    unreachable = {**SCRIPT["main"].__globals__, "audit": lambda: SCRIPT["audit"]("http://127.0.0.1:9")}
    main = type(SCRIPT["main"])(SCRIPT["main"].__code__, unreachable)
    assert main("audit") == 0
    assert capsys.readouterr().out.startswith("Not checked: vulnerabilities of packages. https://api.osv.dev")
