"""Files as Spark reads and writes them, wherever they are: what DuckDB makes of them, good and bad."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import prudent
from prudent.base.errors import LogError, PrudentWarning, UsageError, WriteError
from prudent.logs.log import ODD, REASONS, Layout
from prudent.storage.counts_file import COUNTS_VERSION
from prudent.storage.manifest import Tally
from prudent.storage.sketch import EVERYTHING
from tests.cli import test_bad_inputs as bad
from tests.cli.test_bad_inputs import GOOD, GOOD_ROWS, LISTS, Row
from tests.counts.test_counts import AWKWARD, DELIMITED, IN_FILES, NUMBERED, SMALL
from tests.counts.test_impressions import single, world
from tests.engines.test_spark import assert_same, pytestmark  # noqa: F401 (the marks are for all tests here)
from tests.logs.readers.test_yandex import CONTENT
from tests.reference import LoggedList
from tests.strategies import table

folder = bad.folder  # a fixture: a folder to work in, with a good log of each kind


@pytest.fixture
def spark(quick: SparkSession) -> prudent.Spark:
    return prudent.Spark(quick)


def same(source: Any, layout: Layout, spark: prudent.Spark, **columns: Any) -> Any:
    log = prudent.Log(source, layout=layout, **columns)
    return assert_same(log, log, spark)


def messages(source: Any, layout: Layout, spark: prudent.Spark) -> tuple[str, str]:
    """What DuckDB and Spark say of a log that neither counts."""
    said = []
    for engine in (prudent.DuckDB(), spark):
        with pytest.raises(LogError) as raised:
            prudent.count(prudent.Log(source, layout=layout), engine=engine)
        said.append(str(raised.value))
    assert "\n" not in said[1]
    return said[0], said[1]


# --- whole files ------------------------------------------------------------------------------------------------------

OTHER_WORDS = {  # what Spark says where it notices something else first
    "a cut gzip": "Cannot read cut.jsonl.gz: Compressed file ended before the end-of-stream marker was reached.",
    "a float for a context": "The column 'context' for the context holds decimal; names are text or integers of up to "
    "64 bits. Convert it to text first.",
    "23 digits in JSON": "The column 'context' for the context holds decimal; names are text or integers of up to "
    "64 bits. Convert it to text first.",
}


READ_BY_SPARK = {"two line endings", "a record above 2 MB"}  # limits of DuckDB alone


@pytest.mark.parametrize("what", [what for what in bad.WHOLE if what not in READ_BY_SPARK])
def test_file_that_is_wrong_as_a_whole(folder: Path, spark: prudent.Spark, what: str) -> None:
    name, content, _ = bad.WHOLE[what]
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    expected, found = messages(name, bad.layout_of(name), spark)
    assert found == OTHER_WORDS.get(what, expected)


def test_two_line_endings_are_no_fault_to_spark(folder: Path, spark: prudent.Spark) -> None:
    name, content, _ = bad.WHOLE["two line endings"]
    Path(name).write_text(str(content), newline="")
    assert prudent.count(prudent.Log(name, layout="rows"), engine=spark).tally.lists == LISTS + 1


@pytest.mark.parametrize("what", bad.RIGHT)
def test_unusual_file_that_is_right(folder: Path, spark: prudent.Spark, what: str) -> None:
    name, content = bad.RIGHT[what]
    Path(name).write_bytes(content)
    _, _, tally = same(name, bad.layout_of(name.lower()), spark)
    assert tally == Tally(LISTS)


@pytest.mark.parametrize("source", [*IN_FILES, *DELIMITED])
@pytest.mark.parametrize("lists", [AWKWARD, NUMBERED], ids=["awkward", "numbered"])
def test_every_format(source: str, lists: list[LoggedList], tmp_path: Path, spark: prudent.Spark) -> None:
    log = (IN_FILES | DELIMITED)[source](lists, tmp_path)
    assert_same(log, log, spark)


@pytest.mark.parametrize("kept", [5, 300, -1])
def test_truncated_parquet(folder: Path, spark: prudent.Spark, kept: int) -> None:
    Path("cut.parquet").write_bytes(Path("good.parquet").read_bytes()[:kept])
    _, said = messages("cut.parquet", "lists", spark)
    assert said.startswith("Cannot read cut.parquet")
    assert said.endswith("Write or copy it again: it is damaged.")


@pytest.mark.parametrize("at", [4, 124])
def test_damaged_parquet(folder: Path, spark: prudent.Spark, at: int) -> None:
    content = bytearray(Path("good.parquet").read_bytes())
    content[at : at + 30] = b"\xff" * 30
    Path("damaged.parquet").write_bytes(content)
    _, said = messages("damaged.parquet", "lists", spark)
    assert said.startswith("Cannot read damaged.parquet")
    assert said.endswith("Write or copy it again: it is damaged.")


@pytest.mark.parametrize("source", ["goood.jsonl", "days/*.parquet", "", [], ["good.parquet", "good.jsonl"]])
def test_no_such_file(folder: Path, spark: prudent.Spark, source: Any) -> None:
    expected, found = messages(source, "lists", spark)
    assert found == expected


def test_quote_that_does_not_close_in_the_last_column(folder: Path, spark: prudent.Spark) -> None:
    """All that follows would be one long click."""
    Path("open.csv").write_text(bad.csv(GOOD_ROWS) + '900,c1,a,1,"0\n' + "901,c1,a,1,0\n" * 50)
    expected, found = messages("open.csv", "rows", spark)
    assert found == expected


# --- bad lists --------------------------------------------------------------------------------------------------------


def test_every_reason_in_lists(folder: Path, spark: prudent.Spark) -> None:
    faulty = [row for rows in bad.BAD_LISTS.values() for row in rows]
    named = [{**GOOD[0], "context": name} for name in (7, 7.5, True, {"id": 1}, ["a"], 10**22, 2**63)]
    more = [*named, {**GOOD[0], "items": ["x", 7, None]}, {**GOOD[0], "context": "a\0b"}, *bad.BAD_TEXT_CLICKS]
    Path("lists.jsonl").write_text(bad.jsonl([*GOOD, *faulty, *more]) + "null\n{}\n")
    _, _, tally = same("lists.jsonl", "lists", spark)
    assert {*tally.rejected} == {*bad.BAD_LISTS, ODD, "NUL byte in a name"}
    pq.write_table(pa.Table.from_pylist(bad.uniform([*GOOD, *faulty])), "lists.parquet")
    _, _, tally = same("lists.parquet", "lists", spark)
    assert {*tally.rejected} == {*bad.BAD_LISTS}


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_every_reason_in_rows(folder: Path, spark: prudent.Spark, form: str) -> None:
    found, first = list(GOOD_ROWS), {"context": "c0", "item": "a", "position": 1, "click": 1}
    for why, cases in bad.BAD_ROWS.items():
        for number, case in enumerate(cases):
            found += [{"impression": f"{why[:16]}{number}", **first, **row} for row in case]
    nul: Row = {"impression": "nul", **first, "item": "a\0b"}
    texts = [{key: None if value is None else str(value) for key, value in row.items()} for row in found]
    expected = {*bad.BAD_ROWS}
    if form == "csv":
        Path("rows.csv").write_text(bad.csv([*found, nul]))
        expected.add("NUL byte in a name")
    elif form == "jsonl":
        odd = [{"impression": impression, **first, "item": 7} for impression in ("odd", None)]
        Path("rows.jsonl").write_text(bad.jsonl([*found, nul, odd[0]]))
        expected |= {"NUL byte in a name", ODD}
        Path("rows_without.jsonl").write_text(bad.jsonl([*found, *odd]))
        same("rows_without.jsonl", "rows", spark)
    else:
        pq.write_table(pa.Table.from_pylist(texts), "rows.parquet")
    _, _, tally = same(f"rows.{form}", "rows", spark)
    assert {*tally.rejected} == expected


def test_every_reason_is_tested() -> None:
    of_evaluation = "propensity outside (0, 1]"
    of_clicked = "clicks missing", "click outside its list"  # below: every form of clicks
    # In test_spark_rewards.py: every form of amounts.
    of_rewards = "items and rewards differ in length", "reward outside 0 to 100,000", "reward without a click"
    named = {*bad.BAD_LISTS, *bad.BAD_ROWS, ODD, "NUL byte in a name", of_evaluation, *of_clicked, *of_rewards}
    assert named == {*REASONS}


def test_propensities_are_not_for_spark(spark: prudent.Spark) -> None:
    table = pa.table({"context": ["q"], "items": [["a"]], "clicks": [[1]], "p": [0.5]})
    with pytest.raises(UsageError, match="Leave out propensity"):
        prudent.count(prudent.Log(table, propensity="p"), engine=spark)


@pytest.mark.parametrize("text", [10, 11, 12])
def test_most_names_decide_whether_they_are_text_or_integers(folder: Path, spark: prudent.Spark, text: int) -> None:
    mixed: list[Row] = [{"context": i, "items": [i], "clicks": [1]} for i in range(11)]
    mixed += [{"context": str(i), "items": [7], "clicks": [1]} for i in range(text)]
    Path("mixed.jsonl").write_text(bad.jsonl(mixed))
    _, types, tally = same("mixed.jsonl", "lists", spark)
    assert types[:2] == [("context", "VARCHAR" if text >= 11 else "BIGINT"), ("items", "BIGINT[]")]
    assert tally.rejected == {ODD: 11 if text >= 11 else text}


def test_too_many_bad_lists_stop(folder: Path, spark: prudent.Spark) -> None:
    Path("many.jsonl").write_text(bad.jsonl([*GOOD, *[{"context": None, "items": ["a"], "clicks": [1]}] * 3]))
    expected, found = messages("many.jsonl", "lists", spark)
    assert found == expected


# --- several Parquet files --------------------------------------------------------------------------------------------


def test_names_of_two_types(folder: Path, spark: prudent.Spark) -> None:
    _, said = messages(["good.parquet", bad.parquet("day2.parquet", context=pa.array([7]))], "lists", spark)
    assert said == (
        "The column 'context' is string in good.parquet but bigint in day2.parquet. Convert one of them: 7 and '7' "
        "would be two names."
    )


def test_column_missing_in_the_second_file(folder: Path, spark: prudent.Spark) -> None:
    """Spark alone would read nulls there, and say nothing."""
    pq.write_table(pa.table({"context": ["c0"], "item": [["a"]], "clicks": [[1]]}), "day2.parquet")
    Path("day2.jsonl").write_text(bad.jsonl(GOOD).replace("context", "query"))
    for ending in ("parquet", "jsonl"):
        expected, found = messages([f"good.{ending}", f"day2.{ending}"], "lists", spark)
        assert found == expected


def test_key_that_is_rare(folder: Path, spark: prudent.Spark) -> None:
    """Below what is read of the head of a file, and within what DuckDB looks at."""
    rare = [{"items": ["a" * 50], "clicks": [1]} for _ in range(2_000)]
    Path("rare.jsonl").write_text(bad.jsonl([*rare, {"context": "c", **rare[0]}]))
    same("rare.jsonl", "lists", spark)


def test_types_may_differ_where_it_does_not_matter(folder: Path, spark: prudent.Spark) -> None:
    clicks = [[True, False]], [["1", "0"]], [[1.0, 0.0]], [[1, 0]]
    names = pa.int8(), pa.int64(), pa.uint32(), pa.uint16()
    files = []
    for number, (kind, clicked) in enumerate(zip(names, clicks, strict=True)):
        shown = {"context": pa.array([5], kind), "items": pa.array([[1, 2]], pa.list_(kind)), "clicks": clicked}
        pq.write_table(pa.table({**({"more": [1]} if number % 2 else {}), **shown}), f"{number}.parquet")
        files.append(f"{number}.parquet")
    _, types, tally = same(files, "lists", spark)
    assert types[:2] == [("context", "BIGINT"), ("items", "BIGINT[]")]
    assert tally == Tally(4)


def test_column_of_nothing_goes_with_text(folder: Path, spark: prudent.Spark) -> None:
    empty = bad.parquet("empty.parquet", context=pa.nulls(1), items=pa.array([[]], pa.list_(pa.null())))
    for files in (empty, ["good.parquet", empty], [empty, "good.parquet"]):
        _, types, tally = same(files, "lists", spark)
        assert types[0] == ("context", "VARCHAR")
        assert tally.rejected == {"context missing": 1}


def test_columns_that_nobody_asked_for_may_clash(folder: Path, spark: prudent.Spark) -> None:
    clash = table(SMALL).append_column("x", pa.array(SMALL[0][1])).append_column("X", pa.array(SMALL[0][1]))
    pq.write_table(clash, "other.parquet")
    same("other.parquet", "lists", spark)
    pq.write_table(table(SMALL).append_column("Context", pa.array(SMALL[0][1])), "clash.parquet")
    pq.write_table(table(SMALL).append_column("context", pa.array(SMALL[0][1])), "twice.parquet")
    for name in ("clash.parquet", "twice.parquet"):
        expected, found = messages(name, "lists", spark)
        assert found == expected


def test_text_as_bytes(folder: Path, spark: prudent.Spark) -> None:
    given = table(SMALL).cast(
        pa.schema([("context", pa.binary()), ("items", pa.list_(pa.binary())), ("clicks", pa.list_(pa.int8()))])
    )
    pq.write_table(given, "bytes.parquet")
    found, _, _ = same("bytes.parquet", "lists", spark)
    assert found[0][0] == "boots"


@pytest.mark.parametrize(
    ("context", "said"),
    [
        (pa.array([1.0]), "holds double; names are text or integers of up to 64 bits. Convert it to text first."),
        (pa.array([True]), "holds boolean; names are text or integers of up to 64 bits. Convert it to text first."),
        (pa.array([["q"]]), "holds array<string>; names are text or integers of up to 64 bits. Convert it to text"),
        (pa.array([Decimal(1)], pa.decimal128(23, 0)), "holds decimal(23,0); names are text or integers"),
        (pa.array([2**64 - 1], pa.uint64()), "also the type of unsigned integers of 64 bits. Convert it to bigint"),
    ],
)
def test_types_that_are_no_names(folder: Path, spark: prudent.Spark, context: Any, said: str) -> None:
    with pytest.raises(LogError) as raised:
        prudent.count(prudent.Log(bad.parquet("one.parquet", context=context)), engine=spark)
    assert str(raised.value).startswith("The column 'context' for the context holds ")
    assert said in str(raised.value)


def test_types_that_are_no_lists_and_types_that_spark_cannot_read(folder: Path, spark: prudent.Spark) -> None:
    with pytest.raises(LogError, match="The column 'items' for the items is string, not a list"):
        prudent.count(prudent.Log(bad.parquet("flat.parquet", items=pa.array(["a"]))), engine=spark)
    bad.parquet("half.parquet", more=pa.array([1.0], pa.float16()))
    with pytest.raises(LogError, match=r"^Spark cannot count half\.parquet: Illegal Parquet type: .*FLOAT16\)\.$"):
        prudent.count(prudent.Log("half.parquet"), engine=spark)
    nested = pa.array([[{"at": 1}]])
    same(bad.parquet("nested.parquet", clicks=nested), "lists", spark)


# --- paths and names --------------------------------------------------------------------------------------------------


def test_folders_globs_and_patterns_that_are_names(folder: Path, spark: prudent.Spark) -> None:
    Path("days/one").mkdir(parents=True)
    pq.write_table(table(SMALL), "days/one/a.parquet")
    pq.write_table(table(SMALL[:1]), "days/b.parquet")
    Path("log[1].jsonl").write_text(bad.jsonl(GOOD[:1]))
    Path("log1.jsonl").write_text(bad.jsonl(GOOD))
    for source, lists in (
        ("days", 4),
        ("days/*.parquet", 1),
        ("days/**/*.parquet", 4),
        (["days/b.parquet", Path("days/one/a.parquet")], 4),
        ("log[1].jsonl", 1),
        ("log[!x].jsonl", LISTS),
        (f"file:{folder}/days", 4),
        (f"file://{folder}/days/*.parquet", 1),
        (f"file:{folder}/log[1].jsonl", 1),
        (f"file:{folder}/good.csv", LISTS),
    ):
        layout: Layout = "rows" if "csv" in str(source) else "lists"
        assert prudent.count(prudent.Log(source, layout=layout), engine=spark).tally.lists == lists


@pytest.mark.parametrize("name", ["_log.parquet", ".log.jsonl", "_log.csv", "a:b.parquet"])
def test_files_that_spark_would_pass_over(folder: Path, spark: prudent.Spark, name: str) -> None:
    """One of them among others would be missing in the counts without a word."""
    good = f"good{Path(name[1:]).suffix}"
    Path(name).write_bytes(Path(good).read_bytes())
    with pytest.raises(LogError, match=f"^Spark does not read {name}: the name of a file must not begin with a dot"):
        prudent.count(prudent.Log([good, name], layout=bad.layout_of(name)), engine=spark)


@pytest.mark.parametrize(
    "name", ["day=1/a=b.parquet", "a b%20c#d?e.parquet", "x\\y.parquet", "a{b,c}.parquet", "é.parquet"]
)
def test_names_of_files_with_odd_signs(folder: Path, spark: prudent.Spark, name: str) -> None:
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_bytes(Path("good.parquet").read_bytes())
    same(name, "lists", spark)


EVIL = ['"; drop table', "'); --", "sélect {x} [y]", "a.b", "`a`.`b`", "${x} \\", " ", "$['a']", "\"a'b`"]


@pytest.mark.parametrize("names", [EVIL[:3], EVIL[3:6], EVIL[6:]], ids=["quotes", "dots", "others"])
def test_columns_named_like_an_attack(folder: Path, spark: prudent.Spark, names: list[str]) -> None:
    context, items, clicks = names
    listed = pa.Table.from_pylist(GOOD[:4]).rename_columns(names)
    Path("evil.jsonl").write_text(bad.jsonl(listed.to_pylist()))
    pq.write_table(listed, "evil.parquet")
    for name in ("evil.jsonl", "evil.parquet"):
        _, _, tally = same(name, "lists", spark, context=context, items=items, clicks=clicks)
        assert tally == Tally(4)
    header = ",".join('"' + name.replace('"', '""') + '"' for name in ["impression", *names, "click"])
    Path("evil.csv").write_text(bad.csv(GOOD_ROWS[:12]).replace(bad.HEADER, header))
    _, _, tally = same("evil.csv", "rows", spark, context=context, item=items, position=clicks)
    assert tally == Tally(4)


def test_logs_elsewhere(elsewhere: Path, spark: prudent.Spark, remote: prudent.Spark, folder: Path) -> None:
    """Through a file system that the caller passes."""
    for name in ("good.parquet", "good.jsonl", "good.csv"):
        (elsewhere / name).write_bytes(Path(name).read_bytes())
        log = prudent.Log(f"viewfs://elsewhere/logs/{name}", layout=bad.layout_of(name))
        assert prudent.count(log, engine=remote) == prudent.count(prudent.Log(name, layout=bad.layout_of(name)))
    assert prudent.count(prudent.Log("viewfs://elsewhere/logs/good.par*"), engine=remote).tally.lists == LISTS
    with pytest.raises(LogError, match=r"^There is no file viewfs://elsewhere/logs/gone\.parquet\.$"):
        prudent.count(prudent.Log("viewfs://elsewhere/logs/gone.parquet"), engine=remote)
    with pytest.raises(UsageError, match=r"^Cannot open nosuch://x/y: Unrecog.* pass a file system: prudent\.Spark"):
        prudent.count(prudent.Log("nosuch://x/y"), engine=spark)
    with pytest.raises(LogError, match=r"hdfs://b/x\.parquet is not a path on this machine\. Spark reads it: engine="):
        prudent.count(prudent.Log("hdfs://b/x.parquet"))  # by DuckDB, which opens object stores alone


@pytest.mark.parametrize("what", ["broken JSON", "a row too short", "latin-1, csv", "latin-1, jsonl", "an open quote"])
def test_faults_elsewhere(elsewhere: Path, remote: prudent.Spark, what: str) -> None:
    """Without the line, which only a second look at the whole file could tell."""
    name, content, _ = bad.WHOLE[what]
    (elsewhere / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    source = f"viewfs://elsewhere/logs/{name}"
    with pytest.raises(LogError) as raised:
        prudent.count(prudent.Log(source, layout=bad.layout_of(name)), engine=remote)
    assert str(raised.value).startswith(f"{source} ")
    assert str(raised.value).endswith(". Fix it.")
    assert "\n" not in str(raised.value)


def test_log_made_by_a_reader(tmp_path: Path, spark: prudent.Spark) -> None:
    (tmp_path / "train.txt").write_bytes(CONTENT)
    log = prudent.logs.readers.read_yandex(tmp_path / "train.txt")
    assert_same(log, log, spark)


# --- folders of counts ------------------------------------------------------------------------------------------------


def read(folder: Path) -> list[Any]:
    return duckdb.execute(f"from '{folder}/*.parquet' order by all").fetchall()


@pytest.mark.parametrize("away", [False, True])
def test_counts_go_to_a_folder(away: bool, elsewhere: Path, tmp_path: Path, remote: prudent.Spark) -> None:
    pq.write_table(table([*SMALL, ("shoes", ("a", "a"), (0, 1))]), tmp_path / "log.parquet")
    log = prudent.Log(tmp_path / "log.parquet")
    at, target = (elsewhere, "viewfs://elsewhere/logs/counts") if away else (tmp_path, str(tmp_path / "counts"))
    expected = prudent.count(log, max_rejected=1)
    for _ in range(2):  # the second replaces the first
        assert prudent.count(log, engine=remote, to=target, max_rejected=1).tally == expected.tally
    assert read(at / "counts") == duckdb.execute(f"from '{expected.files[0]}' order by all").fetchall()
    before = sorted((at / "counts").iterdir())
    with pytest.raises(LogError, match="1 of 4 lists"):
        prudent.count(log, engine=remote, to=target)
    assert sorted((at / "counts").iterdir()) == before
    assert not [*at.glob(".*.part")]


def test_part_files_say_what_they_are(tmp_path: Path, spark: prudent.Spark) -> None:
    pq.write_table(table(SMALL), tmp_path / "log.parquet")
    prudent.count(prudent.Log(tmp_path / "log.parquet"), engine=spark, to=tmp_path / "counts")
    for file in (tmp_path / "counts").glob("*.parquet"):
        said = pq.read_metadata(file).metadata[b"org.apache.spark.sql.parquet.row.metadata"]
        (n,) = (field for field in json.loads(said)["fields"] if field["name"] == "n")
        assert n["metadata"] == {"prudent_counts": COUNTS_VERSION, "prudent_sample": EVERYTHING}
        assert pq.read_metadata(file).row_group(0).column(0).compression == "ZSTD"


def test_folders_and_files_that_are_no_counts_stay(tmp_path: Path, spark: prudent.Spark) -> None:
    pq.write_table(table(SMALL), tmp_path / "log.parquet")
    (tmp_path / "notes").write_text("mine")
    log = prudent.Log(tmp_path / "log.parquet")
    with pytest.raises(WriteError, match=r"notes: it is a file, and Spark writes a folder\. Choose another"):
        prudent.count(log, engine=spark, to=tmp_path / "notes")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/notes").write_text("mine")
    with pytest.raises(WriteError, match=r"the folder contains notes\. Choose a new folder\."):
        prudent.count(log, engine=spark, to=tmp_path / "folder")
    with pytest.raises(UsageError, match="Cannot open nosuch://x/y: Unrecognized"):
        prudent.count(log, engine=spark, to="nosuch://x/y")
    assert (tmp_path / "folder/notes").read_text() == "mine"


# --- other forms of input ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
@pytest.mark.parametrize("form", ["clicked_items", "clicked_positions", "from 0"])
def test_every_form_of_clicks(form: str, ending: str, folder: Path, spark: prudent.Spark) -> None:
    """Good lists, and each fault, in contexts of two columns whose values need escapes."""
    of_items = form == "clicked_items"
    clicked: list[Any] = [["b"], [], ["a", "a"], None, ["z"], [None]] if of_items else [[1], [], [1, 1], None, [9], [0]]
    settings: dict[str, Any] = {"context": ["query", "market"]}
    settings |= {"clicked_items": "done"} if of_items else {"clicked_positions": "done"}
    settings |= {"first_position": 0} if form == "from 0" else {}
    lists = [
        {"query": query, "market": market, "items": items, "done": one}
        for query in ("a|", "b\\", "", None)
        for market in (1, 7)
        for items in (["a", "b"], [], None)
        for one in clicked
    ]
    file = Path(f"forms.{ending}")
    if ending == "jsonl":
        file.write_text("".join(json.dumps(one) + "\n" for one in lists))
    else:
        pq.write_table(pa.Table.from_pylist(lists), file)
    _, _, tally = same(str(file), "lists", spark, **settings)
    assert tally.lists > 0
    assert {*tally.rejected} == {"context missing", "empty list", "clicks missing", "click outside its list"}


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("grid", [False, True])
def test_single_impressions(ending: str, grid: bool, folder: Path, spark: prudent.Spark) -> None:
    """Good ones, and each fault; names in another order than they are sorted."""
    good = [
        {"context": context, "item": item, "position": position, "line": position % 3, "place": 1, "click": click}
        for context in ("b", "ä", "a", "")
        for item in ("z", "é", "e", "Z")
        for position in (7, 1, 1, 3)
        for click in (0, 1, 0)
    ]
    bad_ones: list[dict[str, Any]] = [{"context": None}, {"item": None}, {"click": 2}, {"click": None}]
    bad_ones += [{"position": None, "line": None}]
    bad_ones += [{"position": 0, "place": 0}, {"position": 2000, "line": 2000}, {"position": 2**63 - 1, "line": 2**62}]
    bad_ones += [{"position": -(2**63), "place": 3, "line": -(2**63)}]
    lists = [*good, *({**good[0], **one} for one in bad_ones)]
    file = Path(f"single.{ending}")
    if ending == "jsonl":
        file.write_text("".join(json.dumps(one) + "\n" for one in lists))
    elif ending == "csv":
        lines = [",".join(good[0]), *(",".join("" if v is None else str(v) for v in one.values()) for one in lists)]
        file.write_text("\n".join(lines) + "\n")
    else:
        pq.write_table(pa.Table.from_pylist(lists), file)
    settings: dict[str, Any] = {"grid_row": "line", "grid_column": "place", "grid_width": 2} if grid else {}
    _, _, tally = same(str(file), "impressions", spark, **settings)
    assert tally.unit == "impression"
    assert len(tally.rejected) == 5
    assert tally.lists


def test_ranking_single_impressions(folder: Path, spark: prudent.Spark) -> None:
    """A folder of part files, ranked on Spark: the lists of DuckDB."""
    pq.write_table(single(world()), "seen.parquet")
    counts = prudent.count("seen.parquet", engine=spark, to="counts", layout="impressions")
    with pytest.warns(PrudentWarning, match="Using pbm instead"):
        policies = [
            prudent.rank(counts, engine=spark, to="policy"),
            prudent.rank("seen.parquet", layout="impressions"),
        ]
    assert policies[0] == policies[1]


def test_positions_from_0_in_rows(folder: Path, spark: prudent.Spark) -> None:
    found = [{**row, "position": place - 1} for row in GOOD_ROWS if isinstance(place := row["position"], int)]
    pq.write_table(pa.Table.from_pylist(found), "zero.parquet")
    _, _, tally = same("zero.parquet", "rows", spark, first_position=0)
    assert tally == Tally(LISTS)
