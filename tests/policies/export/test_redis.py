"""A real Redis holds exactly the policy, and nobody ever sees half of one."""

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

import prudent
from prudent.base.errors import UsageError
from prudent.policies.export.redis import Redis
from tests.policies.export.policies import HOSTILE, NUMBERED, Lists, exported, policy_of
from tests.policies.export.servers import load_redis, redis_server

pytestmark = pytest.mark.redis

KEY = "prudent:lists"


@pytest.fixture(scope="module")
def server() -> Iterator[Path]:
    with redis_server() as socket:
        yield socket


@pytest.fixture
def socket(server: Path) -> Iterator[Path]:
    client(server).flushall()
    yield server
    client(server).config_set("maxmemory", 0)


def client(socket: Path) -> Any:
    return redis.Redis(unix_socket_path=str(socket))


def held(socket: Path, key: str = KEY) -> dict[bytes, list[object]]:
    """All that a reader can get."""
    return {context: json.loads(items) for context, items in client(socket).hgetall(key).items()}


def as_held(lists: Lists) -> dict[bytes, list[object]]:
    return {str(context).encode(): list(items) for context, items in lists.items()}


@pytest.mark.parametrize("lists", [{**HOSTILE, "NUL \0 here": ["a\0b", "\0"]}, NUMBERED], ids=["text", "integers"])
def test_holds_exactly_the_policy(lists: Lists, socket: Path, tmp_path: Path) -> None:
    done = load_redis(socket, exported(policy_of(tmp_path, lists), "redis", tmp_path))
    assert done.returncode == 0, done.stdout
    assert held(socket) == as_held(lists)
    assert client(socket).keys() == [KEY.encode()]
    assert client(socket).ttl(KEY) == -1


def test_the_key_is_a_setting(socket: Path, tmp_path: Path) -> None:
    lists: Lists = {"a": ["x"]}
    policy = policy_of(tmp_path, lists)
    for key in ("shop:lists", "it's {odd}"):
        prudent.export(policy, tmp_path / "keyed", format=Redis(key=key))
        assert load_redis(socket, (tmp_path / "keyed").read_bytes()).returncode == 0
        assert held(socket, key) == as_held(lists)
    for wrong in ("", 7, "a\0"):
        with pytest.raises(UsageError, match="key is"):
            Redis(key=wrong)  # type: ignore[arg-type]


def generation(name: str, contexts: range) -> Lists:
    """Lists that all say of which load they are."""
    return {f"context {i}": [f"{name}-{i}", f"{name}-{i + 1}"] for i in contexts}


def test_a_second_load_is_seen_all_at_once(socket: Path, tmp_path: Path) -> None:
    """While it runs, readers look as fast as they can, each time at all lists."""
    old, new = generation("old", range(5000)), generation("new", range(1000, 8000))
    loads = {
        name: exported(policy_of(tmp_path, lists), "redis", tmp_path)
        for name, lists in {"old": old, "new": new}.items()
    }
    load_redis(socket, loads["old"])
    seen: list[frozenset[bytes]] = []
    ended = threading.Event()

    def look() -> None:
        reader = client(socket)
        while not ended.is_set():
            lists = reader.hgetall(KEY)
            seen.append(frozenset([str(len(lists)).encode(), *(items.split(b"-")[0] for items in lists.values())]))

    readers = [threading.Thread(target=look) for _ in range(2)]
    for reader in readers:
        reader.start()
    generations = {"old": frozenset([b"5000", b'["old']), "new": frozenset([b"7000", b'["new'])}
    for name in ("new", "old", "new"):
        assert load_redis(socket, loads[name]).returncode == 0
        before, deadline = len(seen), time.monotonic() + 60
        while generations[name] not in seen[before:] and time.monotonic() < deadline:
            time.sleep(0.01)  # readers may be slower than the load
    ended.set()
    for reader in readers:
        reader.join()
    assert set(seen) == set(generations.values())
    assert held(socket) == as_held(new)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99, 0.9999])
def test_a_load_that_is_cut_off_changes_nothing(share: float, socket: Path, tmp_path: Path) -> None:
    """Nor does what it leaves behind get into the next one, and it goes by itself."""
    old, new = generation("old", range(300)), generation("new", range(200, 600))
    load_redis(socket, exported(policy_of(tmp_path, old), "redis", tmp_path))
    commands = exported(policy_of(tmp_path, new), "redis", tmp_path)
    load_redis(socket, commands[: int(share * len(commands))], kill=True)
    assert held(socket) == as_held(old)
    left = set(client(socket).keys()) - {KEY.encode()}
    assert all(0 < client(socket).ttl(key) <= 86_400 for key in left)
    assert load_redis(socket, commands).returncode == 0
    assert held(socket) == as_held(new)
    assert client(socket).keys() == [KEY.encode()]


def test_a_load_that_does_not_fit_changes_nothing(socket: Path, tmp_path: Path) -> None:
    """Redis refuses what is too much and goes on with the next command, up to the last."""
    old, new = generation("old", range(10)), generation("new", range(30_000))
    load_redis(socket, exported(policy_of(tmp_path, old), "redis", tmp_path))
    used = client(socket).info("memory")["used_memory"]
    client(socket).config_set("maxmemory", used + 1_000_000)
    done = load_redis(socket, exported(policy_of(tmp_path, new), "redis", tmp_path))
    assert done.returncode == 1
    client(socket).config_set("maxmemory", 0)
    assert held(socket) == as_held(old)


def test_a_list_that_was_refused_keeps_all_of_them_out(socket: Path, tmp_path: Path) -> None:
    old, new = generation("old", range(10)), generation("new", range(10))
    load_redis(socket, exported(policy_of(tmp_path, old), "redis", tmp_path))
    commands = exported(policy_of(tmp_path, new), "redis", tmp_path)
    missing = commands.replace(b"$4\r\nHSET", b"$4\r\nHSXT", 3).replace(b"$4\r\nHSXT", b"$4\r\nHSET", 2)
    done = load_redis(socket, missing)
    assert done.returncode == 1
    assert b"only 9 of 10 lists arrived; the old ones stay" in done.stdout + done.stderr
    assert held(socket) == as_held(old)


def test_two_loads_at_once(socket: Path, tmp_path: Path) -> None:
    """Of two policies or of the same: one of them wins, whole."""
    lists = [generation("a", range(3000)), generation("b", range(2000, 6000)), generation("a", range(3000))]
    loads = [exported(policy_of(tmp_path, one), "redis", tmp_path) for one in lists]
    loaders = [threading.Thread(target=load_redis, args=(socket, load)) for load in loads]
    for loader in loaders:
        loader.start()
    for loader in loaders:
        loader.join()
    assert held(socket) in [as_held(one) for one in lists]
