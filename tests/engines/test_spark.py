"""Spark counts what DuckDB counts: the same rows, the same rejections, the same policy to the last byte."""

import random
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from pyspark.sql import SparkSession

import prudent
from prudent.base.errors import PrudentError
from prudent.logs.log import Layout
from prudent.storage.manifest import Tally
from prudent.storage.sketch import SAMPLE_LISTS
from tests.reference import LoggedList
from tests.strategies import integer_names, logs, plain_names, rows, table, text_names

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
often = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
any_log = st.sampled_from([plain_names, text_names, integer_names]).flatmap(logs)


def outcome(log: prudent.Log, engine: Any, max_rejected: float = 1.0) -> tuple[prudent.Counts | None, Any]:
    """Counts, and every row and entry of their file, cells and lists, or the error."""
    try:
        counts = prudent.count(log, engine=engine, max_rejected=max_rejected)
    except PrudentError as error:
        return None, type(error)
    described = duckdb.execute(f"describe from '{counts.files[0]}'").fetchall()
    found = duckdb.execute(f"from '{counts.files[0]}' order by all").fetchall()
    footer = pq.read_metadata(counts.files[0]).metadata
    assert footer is not None
    return counts, (found, [*(row[:2] for row in described), footer[b"prudent_sample"]], counts.tally)


def policy(counts: prudent.Counts, file: Path, **settings: Any) -> bytes:
    """The bytes of a policy whose manifest calls every log the same."""
    counts = replace(counts, origin=("the log",))
    prudent.rank(counts, **{"model": "cm", "bound": "bayes"} | settings).write(file)
    return file.read_bytes()


def assert_same(given: prudent.Log, here: prudent.Log, engine: prudent.Spark, folder: Path | None = None) -> Any:
    """DuckDB's counts of one log are Spark's counts of the other, and so is the policy."""
    (one, expected), (other, found) = outcome(given, None), outcome(here, engine)
    assert found == expected  # every row, the types of the columns, and the tally: more than `one == other` looks at
    if one and other and folder and one.index.clicks:
        assert policy(one, folder / "duckdb.parquet") == policy(other, folder / "spark.parquet")
    return expected


# --- logs that Hypothesis makes ---------------------------------------------------------------------------------------
# A Spark job costs more than its rows: few examples of many lists test as much as many examples of few lists.


@pytest.fixture(scope="session")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("work")


@settings(often, max_examples=12)
@given(lists=any_log)
def test_lists(lists: list[LoggedList], quick: SparkSession, work: Path) -> None:
    given = table(lists)
    assert_same(prudent.Log(given), prudent.Log(quick.createDataFrame(given)), prudent.Spark(quick), work)


@settings(often, max_examples=8)
@given(lists=any_log)
def test_rows(lists: list[LoggedList], quick: SparkSession, work: Path) -> None:
    given = rows(lists)
    here = prudent.Log(quick.createDataFrame(given), layout="rows")
    assert_same(prudent.Log(given, layout="rows"), here, prudent.Spark(quick), work)


NAMES: dict[str, tuple[Any, list[Any]]] = {
    "text": (pa.string(), ["a", "b", "", "A", "é", "e\u0301", "😀", "7", " a"]),
    "integers": (pa.int64(), [0, 7, -7, 2**63 - 1, -(2**63)]),
    "small integers": (pa.int8(), [0, 7, -128]),
}
CLICKS: dict[str, tuple[Any, list[Any]]] = {
    "integers": (pa.int32(), [0, 1, 0, 1, 0, 1, 2, -1, 2**31 - 1]),
    "booleans": (pa.bool_(), [False, True]),
    "floats": (pa.float64(), [0.0, 1.0, 0.0, 1.0, -0.0, 0.5, 2.0, float("nan"), float("inf"), 1e300]),
    "decimals": (pa.decimal128(3, 1), [Decimal(0), Decimal(1), Decimal(0), Decimal(1), Decimal("0.5"), Decimal(-1)]),
    "text": (
        pa.string(),
        ["0", "1", "true", "FALSE", " 1 ", "1.0", "0e0", "\u00a01", "1d", "0x1", "1_0", "0_0", "+1", "-0", ".0", "1.",
         "\t1", "1\r", "yes", "", "NaN", "inf", "-1", "2", "1,0", "1e-400", "١", "1e", "tru e", "1f", "- 1", "0_"],
    ),
}  # fmt: skip


@st.composite
def messy_lists(draw: DrawFn) -> Any:
    """A table in which about half of the lists have a fault, or several."""
    kind, names = NAMES[draw(st.sampled_from([*NAMES]))]
    of_clicks, values = CLICKS[draw(st.sampled_from([*CLICKS]))]
    odd = st.sampled_from([*values, None])
    found = []
    for _ in range(draw(st.integers(1, 30))):
        items = draw(st.lists(st.sampled_from(names), min_size=1, max_size=4, unique=True))
        clicks = [draw(st.sampled_from(values[:2])) for _ in items]
        one: list[Any] = [draw(st.sampled_from(names)), items, clicks]
        if draw(st.booleans()):
            column = draw(st.sampled_from([0, 1, 1, 2, 2]))
            others = [
                st.none(),
                st.sampled_from([None, [], [*items[1:], None], [items[-1], *items[1:]], items[1:]]),
                st.none() | st.lists(odd, max_size=2) | st.lists(odd, min_size=len(items), max_size=len(items)),
            ]
            one[column] = draw(others[column])
        found.append(one)
    kinds = [kind, pa.list_(kind), pa.list_(of_clicks)]
    columns = zip(kinds, zip(*found, strict=True), strict=True)
    return pa.table([pa.array(column, kind) for kind, column in columns], ["context", "items", "clicks"])


POSITIONS: dict[str, tuple[Any, list[Any]]] = {
    "integers": (pa.int32(), [1, 2, 3, 1, 2, 0, -1, 2**31 - 1]),
    "booleans": (pa.bool_(), [True, False, True]),
    "floats": (pa.float64(), [1.0, 2.0, 3.0, 1.0, 1.5, float("nan"), float("-inf"), 1e300, -0.0]),
    "decimals": (pa.decimal128(23, 1), [Decimal(1), Decimal(2), Decimal(3), Decimal("1.5"), Decimal(10**20)]),
    "text": (
        pa.string(),
        ["1", "2", "3", "1", "2.0", " 1", "1.5", "first", "", "1e0", "0x1", "1d", str(2**63), str(10**22), "1_0", "nan",
         str(2**63 - 1), "-1", "+2", "3.", "1e300"],
    ),
}  # fmt: skip


@st.composite
def messy_rows(draw: DrawFn) -> Any:
    """A table in which each row may have any of the faults; most impressions are whole but for one of them."""
    kind, names = NAMES[draw(st.sampled_from([*NAMES]))]
    of_clicks, values = CLICKS[draw(st.sampled_from([*CLICKS]))]
    of_positions, positions = POSITIONS[draw(st.sampled_from([*POSITIONS]))]
    found = []
    for number in range(draw(st.integers(1, 20))):
        context = draw(st.sampled_from(names))
        items = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
        listed = [
            [number, context, item, positions[place], draw(st.sampled_from(values[:2]))]
            for place, item in enumerate(items)
        ]
        if draw(st.booleans()):
            at, column = draw(st.integers(0, len(listed) - 1)), draw(st.integers(0, 4))
            choices = [[0, 1, None], [*names, None], [items[0], None], [*positions, None], [*values[2:], None]]
            listed[at][column] = draw(st.sampled_from(choices[column]))
        found += listed
    kinds = [pa.int64(), kind, kind, of_positions, of_clicks]
    shuffled = zip(kinds, zip(*draw(st.permutations(found)), strict=True), strict=True)
    arrays = [pa.array(column, kind) for kind, column in shuffled]
    return pa.table(arrays, ["impression", "context", "item", "position", "click"])


@settings(often, max_examples=15)
@given(given=messy_lists())
def test_messy_lists(given: Any, quick: SparkSession) -> None:
    assert_same(prudent.Log(given), prudent.Log(quick.createDataFrame(given)), prudent.Spark(quick))


@settings(often, max_examples=25)
@given(given=messy_rows())
def test_messy_rows(given: Any, quick: SparkSession) -> None:
    here = prudent.Log(quick.createDataFrame(given), layout="rows")
    assert_same(prudent.Log(given, layout="rows"), here, prudent.Spark(quick))


@pytest.mark.parametrize("layout", ["lists", "rows"])
def test_long_lists(layout: Layout, session: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(3)
    lists: list[LoggedList] = []
    for size in [1, 2, 199, 200, *(rng.randint(1, 200) for _ in range(20))]:
        items = tuple(rng.sample(range(300), size))
        lists.append((size % 3, items, tuple(int(rng.random() < rng.choice([0, 0.01, 0.5, 1])) for _ in items)))
    given = table(lists) if layout == "lists" else rows(lists)
    here = prudent.Log(session.createDataFrame(given), layout=layout)
    assert_same(prudent.Log(given, layout=layout), here, prudent.Spark(session), tmp_path)


def drawn(lists: int, contexts: int, seed: int, names: Callable[[str, int], Any]) -> Any:
    """A log of lists of 1 to 12, of which a third belong to the first context."""
    rng = np.random.default_rng(seed)
    of = np.where(rng.random(lists) < 1 / 3, 0, rng.integers(0, contexts, lists))
    sizes = rng.integers(1, 13, lists)
    items = [rng.permutation(20)[:size] for size in sizes]
    return pa.table(
        {
            "context": [names("query", int(c)) for c in of],
            "items": [[names("item", int(i)) for i in shown] for shown in items],
            "clicks": [(rng.random(size) < 0.15).astype(np.int8) for size in sizes],
        }
    )


def as_rows(file: Path, target: Path) -> Path:
    """The same log in the other layout, in an order that scatters its impressions."""
    duckdb.execute(
        "copy (select number as impression, context, item, position, click from (select number, context, "
        "unnest(items) as item, unnest(range(1, len(items) + 1)) as position, unnest(clicks) as click "
        f"from (select *, row_number() over () as number from '{file}')) order by hash(number, position)) "
        f"to '{target}' (format parquet)"
    )
    return target


@pytest.mark.filterwarnings("ignore:pbm is not identified:prudent.base.errors.PrudentWarning")
@pytest.mark.parametrize("kind", ["text", "integers"])
def test_larger_log(kind: str, session: SparkSession, tmp_path: Path) -> None:
    """100,000 lists of text in one layout, and of integers in the other, with a policy of the default model."""
    file = tmp_path / "log.parquet"
    named: Callable[[str, int], Any] = (lambda what, i: f"{what} {i}") if kind == "text" else (lambda _, i: i)
    pq.write_table(drawn(100_000, 2_000, 1, named), file, row_group_size=20_000)
    layout: Layout = "lists" if kind == "text" else "rows"
    log = prudent.Log(file if layout == "lists" else as_rows(file, tmp_path / "rows.parquet"), layout=layout)
    one, other = prudent.count(log), prudent.count(log, engine=prudent.Spark(session))
    assert one == other
    assert one.tally == other.tally == Tally(100_000)
    settings = {"model": "auto", "bound": "exposure(delta=0.5)", "length": 5}
    assert policy(one, tmp_path / "a", **settings) == policy(other, tmp_path / "b", **settings)


def test_the_sample_of_lists(session: SparkSession, tmp_path: Path) -> None:
    """Of the same contexts, in one file and in a folder of part files; a repeated list is one row."""
    log = pa.concat_tables([drawn(SAMPLE_LISTS * 3 // 5, 60, 3, lambda what, i: f"{what} {i}")] * 2)
    pq.write_table(log, tmp_path / "log.parquet")
    both = prudent.Log(tmp_path / "log.parquet")
    expected, _, _ = assert_same(both, both, prudent.Spark(session))
    kept = [row[5] for row in expected if row[5] is not None]  # list_n
    assert 2 <= len(kept) < 60 == len(expected)
    assert min(n for row in kept for n in row) == 2
    prudent.count(both, engine=prudent.Spark(session), to=tmp_path / "counts")
    assert duckdb.execute(f"from '{tmp_path}/counts/*.parquet' order by all").fetchall() == expected


def test_tasks_share_contexts(session: SparkSession, tmp_path: Path) -> None:
    """For one file nothing is shuffled: every task has lists of every context, and their counts are merged."""
    pq.write_table(drawn(20_000, 50, 5, lambda what, i: f"{what} {i}"), tmp_path / "log.parquet", row_group_size=2_000)
    many = session.newSession()
    many.conf.set("spark.sql.files.maxPartitionBytes", "20KB")
    many.conf.set("spark.sql.files.openCostInBytes", "0")
    log = prudent.Log(tmp_path / "log.parquet")
    assert many.read.parquet(str(tmp_path / "log.parquet")).rdd.getNumPartitions() > 2
    assert_same(log, log, prudent.Spark(many))


def test_skewed_log(session: SparkSession, tmp_path: Path) -> None:
    """A third of all lists are of one context, and go to one task."""
    pq.write_table(drawn(20_000, 500, 2, lambda what, i: i), tmp_path / "log.parquet")
    many = session.newSession()
    many.conf.set("spark.sql.shuffle.partitions", "8")
    many.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")
    many.conf.set("spark.sql.files.openCostInBytes", "128MB")  # so that the files stay apart when they are read back
    prudent.count(prudent.Log(tmp_path / "log.parquet"), engine=prudent.Spark(many), to=tmp_path / "counts")
    assert len(list((tmp_path / "counts").glob("*.parquet"))) == 8
    assert prudent.Counts.read(tmp_path / "counts") == prudent.count(tmp_path / "log.parquet")
