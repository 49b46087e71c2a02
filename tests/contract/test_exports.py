"""What every export must satisfy; a new one is covered the day it registers, with a reader in `READERS`.

A reader loads the file as the program that it is for would, and returns the lists which that program holds then.
Whatever the names are: it holds exactly the policy, or the export is refused and nothing is written.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import psycopg
import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

import prudent
from prudent.base.errors import PolicyError
from prudent.policies.export import formats, parse
from prudent.storage.manifest import Manifest
from tests.policies.export.policies import HOSTILE, NUMBERED, Lists, any_lists, exported, few, policy_of
from tests.policies.export.servers import connection_text, load_postgres, load_redis, postgres_server, redis_server
from tests.strategies import integer_names

Held = dict[str, list[str]]
Load = Callable[[bytes], Held]  # on top of what was loaded before

PLAIN: Lists = {"shoes": ["i1", "i2"], "hats": ["i3"]}
WITH_NUL: Lists = {"a": ["x"], "NUL \0 here": ["a\0b", "\0"]}
LONG: Lists = {f"q{i}": [f"d{(i * 7 + k * 13) % 1000}" for k in range(100)] for i in range(5)}


# --- readers ----------------------------------------------------------------------------------------------------------


def read_csv(content: bytes) -> Held:
    held: Held = {}
    for context, _, item, *_ in list(csv.reader(io.StringIO(content.decode(), newline=""), strict=True))[1:]:
        held.setdefault(context, []).append(item)
    return held


def read_json_lines(content: bytes) -> Held:
    lines = [json.loads(line, parse_constant=pytest.fail) for line in content.decode().split("\n")[:-1]]
    return {str(line["context"]): list(map(str, line["items"])) for line in lines}


def read_rules(content: bytes) -> Held:
    """What a search for each query pins."""
    lines = content.decode().split("\n")[:-1]
    assert all(re.fullmatch(r"PUT /_query_rules/[A-Za-z0-9._-]+", line) for line in lines[::2])
    rules = [rule for body in lines[1::2] for rule in json.loads(body)["rules"]]
    return {rule["criteria"][0]["values"][0]: rule["actions"]["ids"] for rule in rules}


def read_bulk(content: bytes) -> Held:
    """The documents of an index that was empty."""
    lines = [json.loads(line, parse_constant=pytest.fail) for line in content.decode().split("\n")[:-1]]
    actions = [action["index"]["_id"] for action in lines[::2]]
    assert actions == [document["context"] for document in lines[1::2]]
    return {document["context"]: document["items"] for document in lines[1::2]}


def read_elevation(content: bytes) -> Held:
    """What a search for each query puts on top."""
    return {one.attrib["text"]: [doc.attrib["id"] for doc in one] for one in ElementTree.fromstring(content)}


def read_trec(content: bytes) -> Held:
    """By score, as the tools that measure rankings do."""
    held: dict[str, list[tuple[float, str]]] = {}
    for line in content.decode().split("\n")[:-1]:
        query, _, item, _, score, _ = line.split()
        held.setdefault(query, []).append((-float(score), item))
    return {query: [item for _, item in sorted(pairs)] for query, pairs in held.items()}


@contextmanager
def through_redis() -> Iterator[Load]:
    with redis_server() as socket:
        client: Any = redis.Redis(unix_socket_path=str(socket))

        def load(content: bytes) -> Held:
            assert (done := load_redis(socket, content)).returncode == 0, done.stdout
            held = client.hgetall("prudent:lists")
            assert client.keys() == [b"prudent:lists"] * bool(held), "nothing else is left"
            return {context.decode(): list(map(str, json.loads(items))) for context, items in held.items()}

        yield load


@contextmanager
def through_postgres() -> Iterator[Load]:
    with postgres_server() as server, psycopg.connect(connection_text(server), autocommit=True) as connection:
        types: list[bytes] = []

        def load(content: bytes) -> Held:
            types.append(content.partition(b"INSERT")[0])
            if types[-1] != types[0]:  # a table of text takes no integers
                connection.execute("drop table prudent_lists")
                types[:] = types[-1:]
            assert (done := load_postgres(server, content)).returncode == 0, done.stderr
            held: Held = {}
            query = 'select "context", "item" from prudent_lists order by "context", "rank"'
            for context, item in connection.execute(query, prepare=False):
                held.setdefault(str(context), []).append(str(item))
            return held

        yield load


READERS: dict[str, tuple[Callable[[], AbstractContextManager[Load]], list[pytest.MarkDecorator]]] = {
    "csv": (lambda: nullcontext(read_csv), []),
    "elasticsearch-rules": (lambda: nullcontext(read_rules), []),
    "jsonl": (lambda: nullcontext(read_json_lines), []),
    "opensearch": (lambda: nullcontext(read_bulk), []),
    "redis": (through_redis, [pytest.mark.redis]),
    "solr": (lambda: nullcontext(read_elevation), []),
    "sql": (through_postgres, [pytest.mark.postgres]),
    "trec-run": (lambda: nullcontext(read_trec), []),
}
every_target = pytest.mark.parametrize("to", list(formats))
every_reader = pytest.mark.parametrize(
    "program", [pytest.param(name, marks=marks) for name, (_, marks) in READERS.items()], indirect=True
)


@pytest.fixture(scope="module")
def program(request: pytest.FixtureRequest) -> Iterator[tuple[str, Load]]:
    """The name of a target, and what loads its files."""
    start, _ = READERS[request.param]
    with start() as load:
        yield request.param, load


def test_every_target_has_a_reader() -> None:
    assert set(READERS) == set(formats)


# --- what is held -----------------------------------------------------------------------------------------------------


def named(lists: Lists) -> Held:
    return {str(context): list(map(str, items)) for context, items in lists.items()}


def check_held_or_refused(lists: Lists, program: tuple[str, Load], folder: Path) -> None:
    to, load = program
    (folder / "exported").write_bytes(b"what was there")
    try:
        content = exported(policy_of(folder, lists), to, folder)
    except PolicyError as error:
        refused = str(error)
    else:
        assert load(content) == named(lists)
        return
    assert re.search(r"The (context|item) ['\"]", refused), "it names the name"
    assert (folder / "exported").read_bytes() == b"what was there"


@every_reader
@pytest.mark.parametrize("lists", [HOSTILE, WITH_NUL], ids=["hostile", "NUL"])
def test_hostile_names_are_held_to_the_letter_or_refused(
    lists: Lists, program: tuple[str, Load], tmp_path: Path
) -> None:
    check_held_or_refused(lists, program, tmp_path)


@every_reader
@few
@given(lists=st.one_of(any_lists(st.text(max_size=6)), any_lists(integer_names)))
def test_any_policy_is_held_or_refused(lists: Lists, program: tuple[str, Load], tmp_path: Path) -> None:
    check_held_or_refused(lists, program, tmp_path)


@every_reader
@pytest.mark.parametrize("lists", [PLAIN, NUMBERED, LONG, {}], ids=["plain", "integers", "long", "nothing"])
def test_ordinary_names_are_never_refused(lists: Lists, program: tuple[str, Load], tmp_path: Path) -> None:
    to, load = program
    assert load(exported(policy_of(tmp_path, lists), to, tmp_path)) == named(lists)


@every_reader
def test_the_next_load_replaces_all_lists(program: tuple[str, Load], tmp_path: Path) -> None:
    """Contexts that are gone are gone; `test_redis` and `test_sql` show that readers see it all at once."""
    to, load = program
    for name, contexts in (("old", range(50)), ("new", range(40, 60)), ("none", range(0))):
        lists: Lists = {f"context-{i}": [name, f"{name}-{i}"] for i in contexts}
        assert load(exported(policy_of(tmp_path, lists), to, tmp_path)) == named(lists)


# --- what is written --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> prudent.Policy:
    """More rows than one thread of DuckDB takes at a time."""
    lists: Lists = {f"c{i % 7}x{i}": [f"i{(i * k) % 97}-{k}" for k in range(10)] for i in range(15_000)}
    return policy_of(tmp_path_factory.mktemp("large"), lists)


@pytest.mark.filterwarnings("ignore:There are 15 rulesets")
@every_target
def test_the_same_policy_gives_the_same_bytes(to: str, large: prudent.Policy, tmp_path: Path) -> None:
    to = f"{to}(rules=1000)" if to == "elasticsearch-rules" else to
    actual = []
    for threads, memory in ((1, "200MB"), (4, None)):
        prudent.export(large, tmp_path / "exported", format=to, engine=prudent.DuckDB(memory=memory, threads=threads))
        actual.append((tmp_path / "exported").read_bytes())
    assert actual[0] == actual[1]
    places = [actual[0].find(context) for context in (b"c0x0", b"c3x7003", b"c6x9")]
    assert 0 <= places[0] < places[1] < places[2]


@every_target
def test_the_manifest_tells_where_it_came_from(to: str, tmp_path: Path) -> None:
    policy = policy_of(tmp_path, PLAIN)
    manifest = prudent.export(policy, tmp_path / "exported", format=to)
    assert Manifest.read(tmp_path / "exported", "export") == manifest
    assert manifest.prudent == prudent.__version__
    assert manifest.settings == {"format": str(parse(to)), "policy": policy.manifest.settings}
    assert (manifest.results["contexts"], manifest.results["items"]) == (2, 3)
    assert manifest.sources == policy.manifest.sources
