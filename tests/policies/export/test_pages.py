"""The pages on Redis, PostgreSQL and Elasticsearch, from top to bottom, with the programs that they talk about."""

import doctest
import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.docs.test_docs import FLAGS, ROOT, blocks, run_console, run_python
from tests.policies.export.servers import postgres_server, redis_server


def follow(page: str, environment: Mapping[str, str]) -> None:
    """Also what is only shown elsewhere: `sh` blocks, and their output where a `text` block comes after them."""
    path, names, printed = ROOT / "docs" / "how-to" / page, dict[str, object](), ""
    for block in blocks(path):
        if block.language == "python":
            run_python(path, block, names)
        elif block.language == "console":
            run_console(path, block)
        elif block.language == "sh":
            done = subprocess.run(
                ["sh", "-e", "-c", block.text],
                env={**os.environ, **environment},
                capture_output=True,
                text=True,
                timeout=60,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            printed = done.stdout
        elif block.language == "text":
            assert doctest.OutputChecker().check_output(block.text, printed, FLAGS), printed


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))


def test_redis(tmp_path: Path) -> None:
    with redis_server() as socket:
        client = tmp_path / "bin" / "redis-cli"  # it takes the place of its server from options alone
        client.parent.mkdir()
        client.write_text(f'#!/bin/sh\nexec /usr/bin/redis-cli -s {socket} "$@"\n')
        client.chmod(0o755)
        follow("redis.md", {"PATH": f"{client.parent}:{os.environ['PATH']}"})


def test_sql() -> None:
    with postgres_server() as environment:
        follow("sql.md", environment)


class Notes(http.server.BaseHTTPRequestHandler):
    """A server that writes down what it is asked to do."""

    taken: list[tuple[str, str, object]]

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.taken.append((self.path, self.headers["Authorization"], json.loads(body)))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing on the terminal."""


def test_elasticsearch(tmp_path: Path) -> None:
    Notes.taken = []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Notes) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        follow("elasticsearch.md", {"ELASTICSEARCH": url, "API_KEY": "secret", "no_proxy": "*"})
        server.shutdown()
    request, body = (tmp_path / "rules.txt").read_text().splitlines()
    assert Notes.taken == [(request.removeprefix("PUT "), "ApiKey secret", json.loads(body))]
