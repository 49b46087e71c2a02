"""Explorations in the files of other programs: every list with its probability, or a refusal by name."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
import redis

import prudent
from prudent.base.errors import PolicyError
from prudent.policies.export import Format, formats
from tests.policies.export.policies import HOSTILE
from tests.policies.export.servers import connection_text, load_postgres, load_redis, postgres_server, redis_server

CARRY = ["csv", "jsonl", "redis", "sql"]
Row = tuple[Any, ...]  # context, variant, probability, rank, item


@pytest.fixture(scope="module", params=["text", "integers"])
def exploration(request: pytest.FixtureRequest) -> prudent.Exploration:
    """Of hostile names, or of integers."""
    named = enumerate(HOSTILE.items())
    names = {n: [100 * n + k for k in range(len(items))] for n, (_, items) in named}
    lists: Any = HOSTILE if request.param == "text" else names
    rows = [
        {
            "context": context,
            "items": list(items) if n % 2 else list(items)[::-1],
            "clicks": [int((n + k) % 5 == 0) for k in range(len(items))],
        }
        for context, items in lists.items()
        for n in range(40)
    ]
    return prudent.explore(prudent.rank(pa.Table.from_pylist(rows), "cm", length=2), budget=0.1)


def given(exploration: prudent.Exploration) -> list[Row]:
    rows = exploration.rows()
    assert {row[1] for row in rows} >= {0, 1}
    return [(context, variant, share, rank, item) for context, variant, share, _, rank, item in rows]


def as_text(rows: list[Row]) -> list[Row]:
    """In an order that does not depend on how a program sorts."""
    return sorted(
        (str(context), int(variant), float(p), int(rank), str(item)) for context, variant, p, rank, item in rows
    )


def unfolded(context: Any, content: Any) -> list[Row]:
    pairs = zip(content["lists"], content["probabilities"], strict=True)
    return [
        (context, variant, probability, rank, item)
        for variant, (items, probability) in enumerate(pairs)
        for rank, item in enumerate(items, start=1)
    ]


def exported(exploration: prudent.Exploration, to: str, folder: Path) -> bytes:
    manifest = prudent.export(exploration, folder / "exported", format=to)
    assert manifest.results["items"] == len(exploration.rows())
    return (folder / "exported").read_bytes()


def test_json_lines(exploration: prudent.Exploration, tmp_path: Path) -> None:
    lines = map(json.loads, exported(exploration, "jsonl", tmp_path).decode().split("\n")[:-1])
    assert [row for line in lines for row in unfolded(line["context"], line)] == given(exploration)


def test_csv(exploration: prudent.Exploration, tmp_path: Path) -> None:
    text = io.StringIO(exported(exploration, "csv", tmp_path).decode(), newline="")
    header, *rows = csv.reader(text, strict=True)
    assert header == ["context", "variant", "probability", "purpose", "rank", "item"]
    assert as_text([(*row[:3], *row[4:]) for row in rows]) == as_text(given(exploration))


@pytest.mark.redis
def test_redis(exploration: prudent.Exploration, tmp_path: Path) -> None:
    with redis_server() as socket:
        assert load_redis(socket, exported(exploration, "redis", tmp_path)).returncode == 0
        client: Any = redis.Redis(unix_socket_path=str(socket))
        held = client.hgetall("prudent:lists").items()
        rows = [row for context, value in held for row in unfolded(context.decode(), json.loads(value))]
    assert as_text(rows) == as_text(given(exploration))


@pytest.mark.postgres
def test_sql(exploration: prudent.Exploration, tmp_path: Path) -> None:
    script = exported(exploration, "sql(table=explored)", tmp_path)
    columns = '"context", "variant", "probability", "rank", "item"'
    with postgres_server() as server:
        for _ in range(2):  # the second load replaces the first
            assert load_postgres(server, script).returncode == 0
        with psycopg.connect(connection_text(server), autocommit=True) as connection:
            held = connection.execute(f"select {columns} from explored").fetchall()
    assert as_text(held) == as_text(given(exploration))


def test_which_formats_carry_probabilities() -> None:
    assert [name for name in formats if formats[name].weighted is not Format.weighted] == CARRY


@pytest.mark.parametrize("name", [name for name in formats if name not in CARRY])
def test_formats_of_one_list_refuse(name: str, exploration: prudent.Exploration, tmp_path: Path) -> None:
    exploration.write(tmp_path / "lists.parquet")
    with pytest.raises(PolicyError, match=f"{name} has one list for each context.*csv, jsonl, redis or sql"):
        prudent.export(tmp_path / "lists.parquet", tmp_path / "out", format=name)
    assert not (tmp_path / "out").exists()
