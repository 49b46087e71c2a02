"""Refusals, and the command line; what every target must satisfy is in `tests/contract/test_exports.py`."""

import json
import re
from pathlib import Path

import duckdb
import pytest
from redis.crc import key_slot

import prudent
from prudent.base.errors import PolicyError, UsageError, WriteError
from prudent.policies.export import formats, parse
from prudent.policies.export.redis import Redis
from tests.command import run
from tests.policies.export.policies import HOSTILE, Lists, exported, policy_of, write

PLAIN: Lists = {"shoes": ["i1", "i2"], "hats": ["i3"]}


def test_a_ranked_policy_and_its_file_give_the_same(tmp_path: Path) -> None:
    log = prudent.Log(
        duckdb.sql("select i % 5 as context, [7, 8, 9] as items, [i % 2, 0, i % 3 // 2] as clicks from range(90) t(i)")
    )
    policy = prudent.rank(prudent.count(log), model="cm", bound="hoeffding(delta=0.2)")
    policy.write(tmp_path / "policy.parquet")
    for to in formats:
        prudent.export(tmp_path / "policy.parquet", tmp_path / "of-file", format=to)
        assert exported(policy, to, tmp_path) == (tmp_path / "of-file").read_bytes()


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ("reddis", "No export format is called 'reddis'. Did you mean 'redis'?"),
        ("sql(tabel=x)", "sql has no setting 'tabel'. Did you mean 'table'?"),
        ("jsonl(x=1)", "It has none"),
        ("redis(key=7)", "key is 7.0; it must be a name"),
        (5, "5 is not an export format. Known: csv, elasticsearch-rules, jsonl"),
    ],
)
def test_no_formats(to: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        prudent.export(policy_of(tmp_path, PLAIN), tmp_path / "exported", format=to)
    assert said in str(refused.value)
    assert not (tmp_path / "exported").exists()


@pytest.mark.parametrize("key", ["prudent:lists", "{shop}:lists", "a{shop}b{other}c", "a{", "{{x}"])
def test_redis_keys_of_one_policy_are_in_one_slot(key: str, tmp_path: Path) -> None:
    """A cluster refuses to rename a key into another slot."""
    commands = exported(policy_of(tmp_path, PLAIN), str(Redis(key=key)), tmp_path).decode()
    loading = set(re.findall(r"\r\n([^\r\n]*:loading:[0-9a-f]{32})\r\n", commands))
    assert len(loading) == 1
    assert f"\r\n{key}\r\n" in commands
    assert {key_slot(one.encode()) for one in loading} == {key_slot(key.encode())}


@pytest.mark.parametrize("key", ["{}", "x{}y", "a}b"])
def test_redis_keys_that_cannot_be_in_one_slot(key: str) -> None:
    with pytest.raises(UsageError, match="two slots of a cluster"):
        Redis(key=key)


@pytest.mark.parametrize(
    ("program", "target"),
    [
        ("postgres", "sql"),
        ("postgresql(table=x)", "sql"),
        ("psql", "sql"),
        ("es", "elasticsearch-rules"),
        ("elastic", "elasticsearch-rules"),
        ("elasticsearch(rules=5)", "elasticsearch-rules"),
        ("trec", "trec-run"),
        ("json", "jsonl"),
        ("ndjson", "jsonl"),
        ("valkey", "redis"),
    ],
)
def test_the_name_of_a_program_leads_to_its_target(program: str, target: str) -> None:
    with pytest.raises(UsageError, match=f"Did you mean '{target}'\\? Known: csv, "):
        parse(program)
    assert target in formats


def test_no_policy_is_overwritten_by_its_own_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it comes as a file or was read before, from wherever it is called."""
    policy, before = policy_of(tmp_path, PLAIN), (tmp_path / "policy.parquet").read_bytes()
    monkeypatch.chdir(tmp_path)
    given: list[prudent.Policy | str] = [policy, prudent.Policy.read("policy.parquet"), "policy.parquet"]
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link.parquet").symlink_to("policy.parquet")
    for one in given:
        for path in ("policy.parquet", "elsewhere/../policy.parquet", tmp_path / "policy.parquet", "link.parquet"):
            with pytest.raises(UsageError, match="is named twice"):
                prudent.export(one, path, format="csv")
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="is named twice"):
        prudent.export(given[1], "../policy.parquet", format="csv")
    assert (tmp_path / "policy.parquet").read_bytes() == before


def test_no_policy(tmp_path: Path) -> None:
    write(tmp_path / "policy.parquet", {"a": ["b"]})
    with duckdb.connect() as connection:
        policy = f"from '{tmp_path}/policy.parquet'"
        connection.execute(f"copy (select context, item {policy}) to '{tmp_path}/other.parquet'")
        connection.execute(f"copy (select * replace (0.5::double as item) {policy}) to '{tmp_path}/odd.parquet'")
    with pytest.raises(PolicyError, match="is not a policy: it has the columns context, item"):
        prudent.export(tmp_path / "other.parquet", tmp_path / "exported", format="jsonl")
    with pytest.raises(PolicyError, match="The items of this policy are double"):
        prudent.export(tmp_path / "odd.parquet", tmp_path / "exported", format="jsonl")


def test_too_little_memory(tmp_path: Path) -> None:
    policy = policy_of(tmp_path, {f"context {i}": [f"item {k}" for k in range(10)] for i in range(30_000)})
    with pytest.raises(PolicyError, match=r"needs more memory than allowed: .* Raise --memory"):
        prudent.export(policy, tmp_path / "exported", format="sql", engine=prudent.DuckDB(memory="8MB", threads=1))
    assert [file.name for file in tmp_path.iterdir()] == ["policy.parquet"]


def test_no_place(tmp_path: Path) -> None:
    policy = policy_of(tmp_path, PLAIN)
    with pytest.raises(WriteError, match="there is no folder"):
        prudent.export(policy, tmp_path / "nowhere" / "exported", format="jsonl")


def test_text_in_settings_is_data(tmp_path: Path) -> None:
    """A quote in a key ends nothing: keys go into queries through one function."""
    prudent.export(policy_of(tmp_path, PLAIN), tmp_path / "exported", format=Redis(key="k'); drop table lists; --"))
    content = (tmp_path / "exported").read_bytes()
    assert b"$25\r\nk'); drop table lists; --\r\n" in content


# --- the command line -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("to", "next_"),
    [("redis", "Next: redis-cli --pipe < "), ("sql(table=x)", "Next: psql --set ON_ERROR_STOP=1 --file "), ("csv", "")],
)
def test_command(to: str, next_: str, tmp_path: Path) -> None:
    policy, output = write(tmp_path / "policy.parquet", HOSTILE), tmp_path / "it's out"
    ran = run("export", policy, "--format", to, "-o", output)
    assert ran.code == 0
    assert f"Wrote 10 lists, {sum(map(len, HOSTILE.values()))} items in all, to" in ran.text
    assert next_ in ran.text
    assert output.read_bytes() == exported(prudent.Policy.read(policy), to, tmp_path)


def test_command_says_how_many_rulesets(tmp_path: Path) -> None:
    policy = write(tmp_path / "policy.parquet", PLAIN)
    ran = run("export", policy, "--format", "elasticsearch-rules(rules=1)", "-o", tmp_path / "out")
    assert "Wrote 2 lists, 3 items in all in 2 rulesets, to" in ran.text
    ran = run("export", policy, "--format", "elasticsearch-rules(rules=1)", "-o", tmp_path / "out", "--json")
    assert json.loads(ran.out)["results"]["rulesets"][1] == {
        "ruleset_id": "prudent-2",
        "rules": 1,
        "first": "shoes",
        "last": "shoes",
    }


@pytest.mark.parametrize("name", ["lists.csv", "lists.JSONL", "lists.ndjson", "lists.sql", "lists.resp"])
def test_the_name_of_the_file_shows_its_format(name: str, tmp_path: Path) -> None:
    policy = prudent.Policy.read(write(tmp_path / "policy.parquet", PLAIN))
    form = {"ndjson": "jsonl", "resp": "redis"}.get(name.lower()[6:], name.lower()[6:])
    assert str(prudent.export(policy, tmp_path / name).settings["format"]).startswith(form)
    assert (tmp_path / name).read_bytes() == exported(policy, form, tmp_path)


def test_what_is_no_path() -> None:
    with pytest.raises(UsageError, match="to is None; it must be the path of a file"):
        prudent.export("policy.parquet", None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["policy.parquet", "--format", "reddis", "-o", "out"], 2, "Did you mean 'redis'"),
        (["policy.parquet", "--format", "postgres", "-o", "out"], 2, "Did you mean 'sql'"),
        (["policy.parquet", "--format", "csv", "-o", "policy.parquet"], 2, "is named twice"),
        (["polcy.parquet", "--format", "csv", "-o", "out"], 3, "Did you mean 'policy.parquet'"),
        (["policy.parquet", "--format", "csv", "-o", "nowhere/out"], 4, "there is no folder"),
        (["policy.parquet", "--format", "trec-run", "-o", "out"], 3, "trec-run(contexts=numbered)"),
        (["policy.parquet", "-o", "out"], 2, "The name of out does not show its format: set format= (--format)"),
    ],
)
def test_refusals(args: list[str], code: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "policy.parquet", {"running shoes": ["i1"]})
    ran = run("export", *args)
    assert ran.code == code
    assert said in ran.text
    assert not (tmp_path / "out").exists()
