"""The pages on Redis, PostgreSQL and Elasticsearch, from top to bottom, with the programs that they talk about."""

import http.server
import json
import os
import runpy
import shutil
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.policies.export.servers import postgres_server, redis_server

ROOT = Path(__file__).parents[3]
REFRESH = runpy.run_path(str(ROOT / "docs" / "refresh.py"))


def follow(page: str, servers: Mapping[str, str]) -> None:
    assert REFRESH["run_page"](ROOT / "docs" / "how-to" / page, servers).differences == []


@pytest.mark.redis
def test_redis(tmp_path: Path) -> None:
    with redis_server() as socket:
        client = tmp_path / "bin" / "redis-cli"  # it takes the place of its server from options alone
        client.parent.mkdir()
        client.write_text(f'#!/bin/sh\nexec {shutil.which("redis-cli")} -s {socket} "$@"\n')
        client.chmod(0o755)
        follow("redis.md", {"PATH": f"{client.parent}:{os.environ['PATH']}"})


@pytest.mark.postgres
def test_sql() -> None:
    with postgres_server() as environment:
        follow("sql.md", environment)


class Notes(http.server.BaseHTTPRequestHandler):
    """A server that writes down what it is asked to do."""

    taken: list[tuple[str, str, Any]]

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.taken.append((self.path, self.headers["Authorization"], json.loads(body)))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing on the terminal."""


@pytest.mark.curl
def test_elasticsearch() -> None:
    Notes.taken = []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Notes) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        follow("elasticsearch.md", {"ELASTICSEARCH": url, "API_KEY": "secret", "no_proxy": "*"})
        server.shutdown()
    ((path, authorization, body),) = Notes.taken
    assert (path, authorization) == ("/_query_rules/prudent-1", "ApiKey secret")
    assert len(body["rules"]) == 3
