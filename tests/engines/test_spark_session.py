"""Whose session it is, what stays as it was in it, and what is said where there is no Spark."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.conf import RuntimeConfig

import prudent
from prudent.base.errors import LogError, UsageError, WriteError
from prudent.engines.spark import errors
from prudent.storage.manifest import Tally
from tests.command import run_apart
from tests.counts.test_counts import SMALL
from tests.engines.test_spark import assert_same, pytestmark  # noqa: F401 (the marks are for all tests here)
from tests.strategies import table


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return run_apart([sys.executable, "-c", code], timeout=300, env={**os.environ, **environment})


# --- sessions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("exact", ["true", "false"])
def test_settings_of_a_session_neither_matter_nor_change(
    ansi: str, exact: str, session: SparkSession, tmp_path: Path
) -> None:
    mine = session.newSession()
    mine.conf.set("spark.sql.ansi.enabled", ansi)
    mine.conf.set("spark.sql.caseSensitive", exact)
    mine.createDataFrame([(1,)], "a int").createTempView("impressions")
    mine.createDataFrame([(1,)], "a int").createTempView("checked")
    before, active = mine.conf.getAll, SparkSession.getActiveSession()
    given = table([*SMALL, ("shoes", (), ()), ("shoes", ("a", "a"), (0, 1))])
    given = given.append_column("x", pa.array("abcde")).append_column("X", pa.array("abcde"))
    pq.write_table(given, tmp_path / "log.parquet")
    for here in (tmp_path / "log.parquet", mine.createDataFrame(given)):
        assert_same(prudent.Log(given), prudent.Log(here), prudent.Spark(mine))
    assert mine.conf.getAll == before
    assert SparkSession.getActiveSession() is active
    assert {found.name for found in mine.catalog.listTables()} == {"impressions", "checked"}


def test_settings_of_a_session_hold_for_files(session: SparkSession, tmp_path: Path) -> None:
    mine = session.newSession()
    mine.conf.set("spark.sql.shuffle.partitions", "3")
    mine.conf.set("spark.sql.adaptive.enabled", "false")
    mine.conf.set("spark.sql.files.openCostInBytes", "128MB")
    log = pa.table({"context": range(60), "items": [["a", "b"]] * 60, "clicks": [[0, 1]] * 60})
    pq.write_table(log, tmp_path / "log.parquet")
    prudent.count(prudent.Log(tmp_path / "log.parquet"), engine=prudent.Spark(mine), to=tmp_path / "counts")
    assert len([*(tmp_path / "counts").glob("*.parquet")]) == 3


def test_what_a_backslash_means_to_a_session_does_not_matter(session: SparkSession, tmp_path: Path) -> None:
    mine = session.newSession()
    mine.conf.set("spark.sql.parser.escapedStringLiterals", "true")
    lines = ["impression,context,item,position,click", "1,c,a, 1 ,1", "1,c,b,2,0", "2,c,b,1,0"]
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    log = prudent.Log(tmp_path / "log.csv", layout="rows")
    assert_same(log, log, prudent.Spark(mine))


def test_most_names_decide_what_names_are_to_both_engines(session: SparkSession, tmp_path: Path) -> None:
    """More than 10,000 integers first, and then still more text: a look at the first of them would take the former."""
    one = '{"context": %s, "items": ["a", "b"], "clicks": [1, 0]}'
    (tmp_path / "log.jsonl").write_text("\n".join([one % 7] * 10_050 + [one % '"x"'] * 10_060) + "\n")
    log = prudent.Log(tmp_path / "log.jsonl")
    here, there = (
        prudent.count(log, engine=engine, max_rejected=1) for engine in (prudent.DuckDB(), prudent.Spark(session))
    )
    assert here.tally == there.tally
    assert here.tally.lists == 10_060
    assert here == there


def test_without_a_session_it_is_the_active_one(session: SparkSession, tmp_path: Path) -> None:
    pq.write_table(table(SMALL), tmp_path / "log.parquet")
    assert prudent.count(prudent.Log(tmp_path / "log.parquet"), engine=prudent.Spark()).tally.lists == 3
    started = prudent.Spark.start("local[1]").session
    assert started is not None
    assert started.sparkContext is session.sparkContext


def test_what_is_no_session() -> None:
    with pytest.raises(UsageError, match=r"Spark takes a SparkSession, .* not a builtins\.object\."):
        prudent.Spark(object())  # type: ignore[arg-type]


def test_counts_of_a_cluster_come_through_the_driver(session: SparkSession, tmp_path: Path) -> None:
    """Its machines do not see the disk of this one."""
    cluster = session.newSession()
    pq.write_table(table(SMALL), tmp_path / "log.parquet")
    log, get = prudent.Log(tmp_path / "log.parquet"), RuntimeConfig.get
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            RuntimeConfig, "get", lambda conf, key, *rest: "yarn" if key == "spark.master" else get(conf, key)
        )
        assert prudent.count(log, engine=prudent.Spark(cluster), to=tmp_path / "counts.parquet") == prudent.count(log)


# --- DataFrames -------------------------------------------------------------------------------------------------------


def test_columns_of_a_dataframe(quick: SparkSession) -> None:
    evil = "a.b `c` \"d' "
    given = table(SMALL).rename_columns([evil, "items", "clicks"])
    engine, log = prudent.Spark(quick), prudent.Log(quick.createDataFrame(given), context=evil)
    assert_same(prudent.Log(given, context=evil), log, engine)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"context": "a"}, r"the DataFrame has no column 'a' for the context.* It has: a\.b"),
        ({"context": evil, "items": "Items"}, r"no column 'Items' for the items. Did you mean 'items'\?"),
    ]
    for columns, said in wrong:
        with pytest.raises(LogError, match=said):
            prudent.count(prudent.Log(quick.createDataFrame(given), **columns), engine=engine)
    twins = quick.createDataFrame(table(SMALL)).selectExpr("*", "context as CONTEXT")
    with pytest.raises(LogError, match="the DataFrame has 2 columns named 'context'"):
        prudent.count(prudent.Log(twins), engine=engine)


def test_types_that_only_spark_has(quick: SparkSession) -> None:
    frame = quick.createDataFrame(table(SMALL))
    engine = prudent.Spark(quick)
    folded = frame.selectExpr("collate(context, 'UTF8_LCASE') as context", "items", "clicks")
    both = folded.union(folded.selectExpr("upper(context)", "items", "clicks"))
    assert prudent.count(prudent.Log(both), engine=engine).tally.lists == 6
    assert {row[0] for row in prudent.count(prudent.Log(both), engine=engine).pairs.fetchall()} == {
        "shoes", "SHOES", "boots", "BOOTS",
    }  # fmt: skip
    nothing = frame.selectExpr("null as context", "null as items", "clicks")
    assert prudent.count(prudent.Log(nothing), engine=engine, max_rejected=1).tally == Tally(0, {"context missing": 3})
    for context, kind in (("cast(context as binary)", "binary"), ("map(1, context)", "map<int,string>")):
        changed = frame.selectExpr(f"{context} as context", "items", "clicks")
        with pytest.raises(LogError, match=f"'context' for the context holds {kind}; names are text or integers"):
            prudent.count(prudent.Log(changed), engine=engine)


def test_dataframe_of_nothing(quick: SparkSession) -> None:
    engine, frame = prudent.Spark(quick), quick.createDataFrame(table(SMALL))
    for nothing in (frame.where("context = 'x'"), frame.limit(0), frame.where("false")):
        with pytest.raises(LogError, match="the DataFrame has no lists: there is not a single row in it"):
            prudent.count(prudent.Log(nothing), engine=engine)


def test_dataframe_that_fails(quick: SparkSession) -> None:
    """One line of what Spark says, and no Java."""
    broken = quick.createDataFrame(table(SMALL)).selectExpr(
        "if(context > '', cast(raise_error('no luck') as string), context) as context", "items", "clicks"
    )
    with pytest.raises(LogError) as raised:
        prudent.count(prudent.Log(broken), engine=prudent.Spark(quick))
    assert str(raised.value) == "Spark cannot count the DataFrame: no luck."


def test_each_engine_counts_its_own(quick: SparkSession) -> None:
    with pytest.raises(LogError, match=r"The DataFrame lives in Spark, which has to count it: engine=prudent\.Spark"):
        prudent.count(prudent.Log(quick.createDataFrame(table(SMALL))))
    with pytest.raises(LogError, match=r"Spark counts files and its own DataFrames, not a Table\. Count it"):
        prudent.count(prudent.Log(table(SMALL)), engine=prudent.Spark(quick))


def test_a_folder_has_the_tally_of_all_tasks(quick: SparkSession, tmp_path: Path) -> None:
    """Tasks write it beside their counts, once, also where Spark repeats a task."""
    given = table([*SMALL, ("shoes", ("a", "a"), (0, 1)), ("shoes", (), ())])
    log = prudent.Log(quick.createDataFrame(given))
    counts = prudent.count(log, engine=prudent.Spark(quick), to=tmp_path / "counts", max_rejected=1)
    assert counts.tally == Tally(3, {"empty list": 1, "duplicate item in a list": 1})


def test_full_disk_is_not_the_fault_of_the_log(quick: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "messages", lambda error: ["Task failed", "No space left on device"])
    broken = quick.createDataFrame(table(SMALL)).selectExpr(
        "cast(raise_error('x') as string) as context", "items", "clicks"
    )
    with pytest.raises(WriteError, match="Spark cannot write: No space left on device"):
        prudent.count(prudent.Log(broken), engine=prudent.Spark(quick))


# --- no Spark ---------------------------------------------------------------------------------------------------------


def test_without_pyspark(tmp_path: Path) -> None:
    pq.write_table(table(SMALL), tmp_path / "log.parquet")
    code = f"""
import sys
sys.modules["pyspark"] = sys.modules["py4j"] = None
import prudent
assert prudent.count(prudent.Log({str(tmp_path / "log.parquet")!r})).tally.lists == 3
for make in (prudent.Spark, prudent.Spark.start):
    try:
        make()
    except prudent.base.errors.UsageError as error:
        print(error)
"""
    assert run(code).stdout == "Spark needs pyspark: pip install 'prudent[spark]'\n" * 2


def test_the_core_does_not_import_pyspark() -> None:
    code = "import sys, prudent; prudent.Spark(); print('pyspark' in sys.modules)"
    assert run(code).stdout == "False\n"


START = """
import prudent
try:
    prudent.Spark.start("local[1]")
except prudent.base.errors.UsageError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("java", "said"),
    [
        (None, "Spark needs Java 17 or newer, and finds none. Install it, or set JAVA_HOME.\n"),
        (
            "Error: A JNI error has occurred\\nException java.lang.UnsupportedClassVersionError: version 61.0",
            "Spark needs Java 17 or newer, and the one it finds is older. Set JAVA_HOME to a newer one.\n",
        ),
        ("Error: out of luck", "Spark does not start: out of luck.\n"),
    ],
)
def test_java_that_is_missing_or_old(java: str | None, said: str, tmp_path: Path) -> None:
    if java is not None:
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin/java").write_text(f"#!/bin/sh\nprintf '{java}\\n' >&2\nexit 1\n")
        (tmp_path / "bin/java").chmod(0o755)
    ran = run(START, JAVA_HOME=str(tmp_path))
    assert (ran.stdout, ran.stderr) == (said, "")


def test_a_start_of_our_own_is_quiet(tmp_path: Path) -> None:
    """Nothing but what the program says, on either channel; and no listening to the network."""
    pq.write_table(table(SMALL), tmp_path / "log.parquet")
    code = f"""
import prudent
log = prudent.Log({str(tmp_path / "log.parquet")!r})
print(prudent.count(log, engine=prudent.Spark()).tally.lists)
from pyspark.sql import SparkSession
conf = SparkSession.getActiveSession().sparkContext.getConf()
print(conf.get("spark.master"), conf.get("spark.driver.bindAddress"), conf.get("spark.ui.enabled"))
"""
    ran = run(code, JAVA_TOOL_OPTIONS="-XX:TieredStopAtLevel=1")  # for the quicker compiler
    assert (ran.stdout, ran.stderr) == ("3\nlocal[*] 127.0.0.1 false\n", "")


def test_master_that_is_none() -> None:
    ran = run(START.replace("local[1]", "moon"))
    said = "Spark does not start: Master must either be yarn or start with spark, k8s, or local.\n"
    assert (ran.stdout, ran.stderr) == (said, "")
