"""Redis and PostgreSQL, started for a test on a socket of their own."""

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psycopg
import redis

from tests.programs import find_postgres


@contextmanager
def _folder(owner: str | None = None) -> Iterator[Path]:
    """Short, since the path of a socket has room for 107 bytes."""
    folder = Path(tempfile.mkdtemp(prefix="prudent-"))
    if owner is not None:
        shutil.chown(folder, owner)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _running(command: list[str], log: Path) -> Iterator[None]:
    with log.open("wb") as output:
        server = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd="/")
    try:
        yield
    finally:
        server.terminate()
        try:
            server.wait(timeout=20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


@contextmanager
def redis_server() -> Iterator[Path]:
    """The socket of a Redis that keeps nothing."""
    with _folder() as folder:
        socket = folder / "socket"
        settings = [
            "--port",
            "0",
            "--unixsocket",
            str(socket),
            "--save",
            "",
            "--appendonly",
            "no",
            "--dir",
            str(folder),
        ]
        with _running(["redis-server", *settings], folder / "log"):
            _until(lambda: redis.Redis(unix_socket_path=str(socket)).ping(), folder / "log")
            yield socket


@contextmanager
def postgres_server() -> Iterator[Mapping[str, str]]:
    """What a client needs in its environment to find a PostgreSQL that forgets all."""
    root = os.geteuid() == 0  # PostgreSQL refuses to run as root
    user = "postgres" if root else pwd.getpwuid(os.geteuid()).pw_name
    become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if root else []
    with _folder(user if root else None) as folder:
        data, log = folder / "data", folder / "log"
        make = [str(find_postgres("initdb")), "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8"]
        subprocess.run(
            [*become, *make, "--locale=C", "--no-sync"], check=True, capture_output=True, cwd="/", timeout=60
        )
        settings = ["listen_addresses=", "fsync=off", "full_page_writes=off", "shared_buffers=32MB"]
        options = [part for setting in settings for part in ("-c", setting)]
        serve = [str(find_postgres("postgres")), "-D", str(data), "-k", str(folder), *options]
        environment = {"PGHOST": str(folder), "PGUSER": "postgres", "PGDATABASE": "postgres"}
        with _running([*become, *serve], log):
            _until(lambda: psycopg.connect(connection_text(environment)).close(), log)
            yield environment


def connection_text(environment: Mapping[str, str]) -> str:
    return f"host={environment['PGHOST']} user={environment['PGUSER']} dbname={environment['PGDATABASE']}"


def _until(answers: object, log: Path) -> None:
    assert callable(answers)
    ends = time.monotonic() + 30
    while True:
        try:
            answers()
        except (redis.ConnectionError, psycopg.OperationalError):
            assert time.monotonic() < ends, log.read_text()
            time.sleep(0.05)
        else:
            return


def load_redis(socket: Path, commands: bytes, kill: bool = False) -> subprocess.CompletedProcess[bytes]:
    """As ``redis-cli --pipe`` does it; or does not, when it is killed before the end of its input."""
    client = ["redis-cli", "-s", str(socket), "--pipe"]
    return _fed(client, commands, {}, kill)


def load_postgres(
    environment: Mapping[str, str], script: bytes, kill: bool = False
) -> subprocess.CompletedProcess[bytes]:
    """As ``psql`` does it."""
    client = ["psql", "--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1"]
    return _fed(client, script, environment, kill)


def _fed(
    client: list[str], content: bytes, environment: Mapping[str, str], kill: bool
) -> subprocess.CompletedProcess[bytes]:
    if not kill:
        return subprocess.run(
            client, input=content, env={**os.environ, **environment}, capture_output=True, timeout=60, check=False
        )
    with subprocess.Popen(
        client, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env={**os.environ, **environment}
    ) as process:
        assert process.stdin is not None
        process.stdin.write(content)
        process.stdin.flush()
        time.sleep(0.3)  # until most of it has been read and sent on
        process.kill()
    return subprocess.CompletedProcess(client, process.returncode)
