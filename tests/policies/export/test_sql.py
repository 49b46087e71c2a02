"""A real PostgreSQL holds exactly the policy, and nobody ever sees half of one."""

import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

import prudent
from prudent.base.errors import PolicyError, UsageError
from prudent.policies.export.sql import Sql
from tests.policies.export.policies import HOSTILE, NUMBERED, Lists, exported, policy_of
from tests.policies.export.servers import connection_text, load_postgres, postgres_server

pytestmark = pytest.mark.postgres

Server = Mapping[str, str]


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    with postgres_server() as environment:
        yield environment


@pytest.fixture
def server(running: Server) -> Server:
    ask(running, "drop schema public cascade; create schema public")
    return running


def ask(server: Server, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(connection_text(server), autocommit=True) as connection:
        done = connection.execute(query)
        return done.fetchall() if done.description else []


def held(server: Server, table: str = '"prudent_lists"') -> list[tuple[Any, ...]]:
    return ask(server, f'select * from {table} order by "context", "rank"')


@pytest.mark.parametrize("lists", [HOSTILE, NUMBERED], ids=["text", "integers"])
def test_holds_exactly_the_policy(lists: Lists, server: Server, tmp_path: Path) -> None:
    """Names to the letter and numbers to the last bit, minus infinity among them."""
    policy = policy_of(tmp_path, lists)
    done = load_postgres(server, exported(policy, "sql", tmp_path))
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    given = policy.lists().fetchall()
    assert held(server) == given
    assert len(given) == sum(map(len, lists.values()))
    assert [type(value) for value in held(server)[0][:7]] == [type(value) for value in given[0][:7]]


def test_integers_of_64_bits_without_a_sign(server: Server, tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute(
            "copy (select 18446744073709551615::ubigint as context, 1 as rank, 5::ubigint as item, "
            "0.5::double as lower, 0.5::double as mean, null::double as upper, null::double as stay, "
            "1::double as positive, 1::double as negative, "
            "2::bigint as impressions) to ? (format parquet)",
            [str(tmp_path / "policy.parquet")],
        )
    policy = prudent.Policy.read(tmp_path / "policy.parquet")
    assert load_postgres(server, exported(policy, "sql", tmp_path)).returncode == 0
    assert held(server) == [(18446744073709551615, 1, 5, 0.5, 0.5, None, None, 1.0, 1.0, 2)]


def test_impressions_that_are_not_whole_come_after_whole_ones(server: Server, tmp_path: Path) -> None:
    whole = policy_of(tmp_path, {"a": ["x"]})
    with duckdb.connect() as connection:
        faded = f"select * replace (impressions / 2 as impressions) from '{tmp_path}/policy.parquet'"
        connection.execute(f"copy ({faded}) to '{tmp_path}/faded.parquet'")
    for policy in (whole, prudent.Policy.read(tmp_path / "faded.parquet")):
        assert load_postgres(server, exported(policy, "sql", tmp_path)).returncode == 0
        assert held(server) == policy.lists().fetchall()
    assert held(server)[0][-1] == 9 / 2


@pytest.mark.parametrize("table", ["lists", "Lists", 'a"b', "select", "a.b; drop table x", "x" * 63])
def test_the_table_is_a_setting(table: str, server: Server, tmp_path: Path) -> None:
    lists: Lists = {"a": ["x", "y"]}
    prudent.export(policy_of(tmp_path, lists), tmp_path / "lists.sql", format=Sql(table))
    for _ in range(2):
        assert load_postgres(server, (tmp_path / "lists.sql").read_bytes()).returncode == 0
    quoted = '"' + table.replace('"', '""') + '"'
    assert [row[2] for row in held(server, quoted)] == ["x", "y"]


@pytest.mark.parametrize("wrong", ["", 7.0, "a\0b", "x" * 64, "prudent_staging"])
def test_no_tables(wrong: Any) -> None:
    with pytest.raises(UsageError):
        Sql(wrong)


@pytest.mark.parametrize("lists", [{"a\0b": ["x"]}, {"a": ["x\0"]}])
def test_a_name_with_a_nul_byte_is_refused_before_anything_is_written(lists: Lists, tmp_path: Path) -> None:
    (tmp_path / "exported").write_text("what was there")
    with pytest.raises(PolicyError, match=r"'(a|x)\\x00.* has a NUL byte, which PostgreSQL cannot store"):
        exported(policy_of(tmp_path, lists), "sql", tmp_path)
    assert (tmp_path / "exported").read_text() == "what was there"


def test_backslashes_where_the_server_takes_them_for_escapes(server: Server, tmp_path: Path) -> None:
    ask(
        server,
        "alter role postgres set standard_conforming_strings = off; alter role postgres set client_encoding = latin1",
    )
    try:
        policy = policy_of(tmp_path, HOSTILE)
        done = load_postgres(server, exported(policy, "sql", tmp_path))
        assert done.returncode == 0, done.stderr
    finally:
        ask(server, "alter role postgres reset all")
    assert held(server) == policy.lists().fetchall()


def generation(name: str, contexts: range) -> Lists:
    """Lists that all say of which load they are."""
    return {f"context {i}": [name, f"{name}-{i}"] for i in contexts}


def items(server: Server) -> dict[str, list[str]]:
    lists: dict[str, list[str]] = {}
    for context, _, item, *_ in held(server):
        lists.setdefault(context, []).append(item)
    return lists


def test_what_is_gone_is_gone(server: Server, tmp_path: Path) -> None:
    """And rights, views and indexes of the table stay."""
    for lists in (generation("old", range(50)), generation("new", range(40, 60)), {}):
        assert load_postgres(server, exported(policy_of(tmp_path, lists), "sql", tmp_path)).returncode == 0
        assert items(server) == lists
        ask(server, "create or replace view firsts as select * from prudent_lists where rank = 1")
        assert len(ask(server, "select * from firsts")) == len(lists)
    assert ask(server, "select tablename from pg_tables where schemaname !~ '^(pg_|information)'") == [
        ("prudent_lists",)
    ]


LOOK = "select count(*), min(split_part(item, '-', 1)), max(split_part(item, '-', 1)) from prudent_lists"


def test_a_second_load_is_seen_all_at_once(server: Server, tmp_path: Path) -> None:
    """While it runs, readers look as fast as they can, each time at all rows, and never wait for it."""
    old, new = generation("old", range(3000)), generation("new", range(1000, 5000))
    loads = {
        name: exported(policy_of(tmp_path, lists), "sql", tmp_path) for name, lists in {"old": old, "new": new}.items()
    }
    load_postgres(server, loads["old"])
    seen: set[tuple[Any, ...]] = set()
    longest = 0.0
    ended = threading.Event()

    def look() -> None:
        nonlocal longest
        with psycopg.connect(connection_text(server), autocommit=True) as connection:
            while not ended.is_set():
                began = time.monotonic()
                seen.update(connection.execute(LOOK).fetchall())
                longest = max(longest, time.monotonic() - began)

    readers = [threading.Thread(target=look) for _ in range(2)]
    for reader in readers:
        reader.start()
    for name in ("new", "old", "new"):
        assert load_postgres(server, loads[name]).returncode == 0
    ended.set()
    for reader in readers:
        reader.join()
    assert seen == {(6000, "old", "old"), (8000, "new", "new")}
    assert longest < 5
    assert items(server) == new


def test_a_transaction_sees_to_its_end_what_it_saw_at_its_beginning(server: Server, tmp_path: Path) -> None:
    """Which a table put in the place of another would not do: it would look empty."""
    old, new = generation("old", range(5)), generation("new", range(3))
    load_postgres(server, exported(policy_of(tmp_path, old), "sql", tmp_path))
    with psycopg.connect(connection_text(server)) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("select 1")
        assert load_postgres(server, exported(policy_of(tmp_path, new), "sql", tmp_path)).returncode == 0
        assert connection.execute(LOOK).fetchall() == [(10, "old", "old")]
    assert items(server) == new


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
@pytest.mark.parametrize("kill", [False, True], ids=["cut off", "killed"])
def test_half_a_load_changes_nothing(share: float, kill: bool, server: Server, tmp_path: Path) -> None:
    old, new = generation("old", range(300)), generation("new", range(200, 2000))
    load_postgres(server, exported(policy_of(tmp_path, old), "sql", tmp_path))
    script = exported(policy_of(tmp_path, new), "sql", tmp_path)
    load_postgres(server, script[: int(share * len(script))], kill)
    assert items(server) == old
    assert load_postgres(server, script).returncode == 0
    assert items(server) == new


def test_a_row_that_is_refused_keeps_all_of_them_out(server: Server, tmp_path: Path) -> None:
    """Also without ON_ERROR_STOP: the transaction is over."""
    old, new = generation("old", range(10)), generation("new", range(10))
    load_postgres(server, exported(policy_of(tmp_path, old), "sql", tmp_path))
    script = exported(policy_of(tmp_path, new), "sql", tmp_path).replace(b"'context 5', 2", b"'context 5', 1")
    for content in (script, b"\\unset ON_ERROR_STOP\n" + script):
        done = load_postgres(server, content)
        assert b"duplicate key" in done.stderr
        assert items(server) == old


def test_two_loads_at_once(server: Server, tmp_path: Path) -> None:
    """One of them wins, whole."""
    lists = [generation("a", range(800)), generation("b", range(400, 1500)), generation("a", range(800))]
    loads = [exported(policy_of(tmp_path, one), "sql", tmp_path) for one in lists]
    load_postgres(server, loads[0])
    loaders = [threading.Thread(target=load_postgres, args=(server, load)) for load in loads]
    for loader in loaders:
        loader.start()
    for loader in loaders:
        loader.join()
    assert items(server) in lists
