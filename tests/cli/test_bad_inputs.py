"""Whatever is wrong with an input: an error that names the place and says what to do, or a rejection that is counted.

`run` fails on every exception that is not of the family, so that each test here also says: no traceback.
"""

import gzip
import json
import os
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import prudent
from prudent.base.errors import CountsError, LogError, NotIdentifiedError, PolicyError, PrudentError, UsageError
from prudent.base.text import plain
from prudent.logs.log import Layout
from prudent.storage.counts_file import COLUMNS as COUNTS_COLUMNS
from tests.command import run

LISTS = 200  # so that one bad list is within the 1 % that is put up with, and three are not
ITEMS = ["a", "b", "c"]
Row = dict[str, Any]
GOOD: list[Row] = [
    {
        "context": f"c{i % 4}",
        "items": ITEMS[i % 3 :] + ITEMS[: i % 3],
        "clicks": [int(i % 2 == 0), 0, int(i % 5 == 0)],
    }
    for i in range(LISTS)
]
GOOD_ROWS: list[Row] = [
    {"impression": str(i), "context": row["context"], "item": item, "position": k, "click": click}
    for i, row in enumerate(GOOD)
    for k, (item, click) in enumerate(zip(row["items"], row["clicks"], strict=True), start=1)
]
HEADER = "impression,context,item,position,click"


def jsonl(rows: Sequence[Row]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def csv(rows: Sequence[Row]) -> str:
    lines = (",".join("" if value is None else str(value) for value in row.values()) for row in rows)
    return "\n".join([HEADER, *lines]) + "\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with a good log of each kind."""
    monkeypatch.chdir(tmp_path)
    Path("good.jsonl").write_text(jsonl(GOOD))
    Path("good.csv").write_text(csv(GOOD_ROWS))
    pq.write_table(pa.Table.from_pylist(GOOD), "good.parquet")
    return tmp_path


def layout_of(name: str) -> Layout:
    return "rows" if ".csv" in name or ".tsv" in name or name.startswith("rows") else "lists"


def refused(names: str | Sequence[str], error: type[PrudentError] = LogError, code: int = 3) -> str:
    """The one message that Python and the command line have for it; nothing is written."""
    names = [names] if isinstance(names, str) else names
    layout = layout_of(names[0])
    with pytest.raises(error) as raised:
        prudent.count(prudent.Log(list(names), layout=layout))
    ran = run("count", *names, "-o", "out.parquet", "--layout", layout)
    assert ran.code == code
    assert not os.path.exists("out.parquet")
    assert not os.path.exists("out.parquet.manifest.json")
    message = str(raised.value)
    assert ran.err == f"Error: {plain(message)}\n"
    return message


# --- whole files --------------------------------------------------------------------------------------------------

WHOLE: dict[str, tuple[str, str | bytes, list[str]]] = {
    # what -> name, content, what the message says
    "0 bytes, parquet": ("zero.parquet", b"", ["zero.parquet is empty (0 bytes)", "interrupted?"]),
    "0 bytes, jsonl": ("zero.jsonl", b"", ["zero.jsonl is empty (0 bytes)"]),
    "0 bytes, csv": ("zero.csv", b"", ["zero.csv is empty (0 bytes)"]),
    "only a BOM": ("bom.csv", b"\xef\xbb\xbf", ["bom.csv has no column 'impression'", "no columns at all"]),
    "only a header": ("header.csv", HEADER + "\n", ["header.csv has no lists", "not a single row"]),
    "only blank lines": ("blank.csv", "\n\n", ["blank.csv has no column 'impression'"]),
    "HTML as parquet": ("login.parquet", "<!DOCTYPE html>", ["login.parquet", "<!DOCTYPE", "web page"]),
    "HTML as jsonl": ("login.jsonl", "<!DOCTYPE html>", ["login.jsonl", "<!DOCTYPE", "JSON Lines"]),
    "CSV as jsonl": ("rows.jsonl", csv(GOOD_ROWS), ["rows.jsonl", "not JSON Lines"]),
    "JSON as csv": ("lists.csv", jsonl(GOOD), ["lists.csv is JSON", "Rename it to end in .jsonl"]),
    "a JSON array": ("array.json", json.dumps(GOOD), ["array.json", "one object per line"]),
    "no known ending": ("log.txt", jsonl(GOOD), ["log.txt", "Known endings: .parquet, .jsonl"]),
    "semicolons": ("semi.csv", csv(GOOD_ROWS).replace(",", ";"), ["semi.csv", "separated by ';'", "commas"]),
    "a record above 2 MB": (
        "long.csv",
        csv(GOOD_ROWS) + '900,c1,"' + ("x" * 99 + "\n") * 25_000 + '",1,0\n',
        ["long.csv, line 602 starts a record of more than 2 MB", "Is a quote missing?"],
    ),
    "a row too short": ("short.csv", csv(GOOD_ROWS) + "900,c1,a,1\n", ["short.csv, line 602 has fewer columns"]),
    "a row too long": ("long.csv", csv(GOOD_ROWS) + "900,c1,a,1,0,0\n", ["long.csv, line 602 has more columns"]),
    "an open quote": ("quote.csv", csv(GOOD_ROWS) + '900,"c1,a,1,0\n', ["quote.csv, line 602", "quote"]),
    "two line endings": ("ends.csv", csv(GOOD_ROWS) + "900,c1,a,1,0\r\n", ["ends.csv", "line endings", "alike"]),
    "latin-1, csv": ("latin.csv", (csv(GOOD_ROWS) + "900,café,a,1,0\n").encode("latin-1"), ["line 602 is not UTF-8"]),
    "latin-1 header": ("head.csv", ("café," + csv(GOOD_ROWS)).encode("latin-1"), ["head.csv is not UTF-8", "byte 3"]),
    "latin-1, jsonl": ("latin.jsonl", jsonl(GOOD).encode() + b'{"context": "caf\xe9"}\n', ["line 201 is not UTF-8"]),
    "UTF-16, csv": ("wide.csv", csv(GOOD_ROWS).encode("utf-16"), ["wide.csv is not UTF-8", "Save it as UTF-8"]),
    "UTF-16, jsonl": ("wide.jsonl", jsonl(GOOD).encode("utf-16"), ["wide.jsonl is not JSON Lines", "UTF-8"]),
    "half a surrogate": ("half.jsonl", jsonl(GOOD) + '{"context": "\\ud83d"}\n', ["half.jsonl, line 201"]),
    "a raw NUL in JSON": ("nul.jsonl", jsonl(GOOD) + '{"context": "a\0b"}\n', ["nul.jsonl, line 201", "control"]),
    "broken JSON": ("broken.jsonl", jsonl(GOOD) + '{"context": "a"\n' + jsonl(GOOD), ["broken.jsonl, line 201"]),
    "two objects in a line": ("two.jsonl", jsonl(GOOD) + '{"a": 1}{"a": 2}\n', ["two.jsonl, line 201", "not JSON"]),
    "an array among objects": ("arr.jsonl", jsonl(GOOD) + "[1, 2]\n" + jsonl(GOOD), ["line 201 is not a JSON object"]),
    "a number among objects": ("num.jsonl", jsonl(GOOD) + "42\n", ["num.jsonl, line 201 is not a JSON object: 42"]),
    "a key twice": ("key.jsonl", jsonl(GOOD) + '{"context": 1, "context": 2}\n', ["line 201", "duplicate key"]),
    "text for a list": ("text.jsonl", jsonl([*GOOD, {"items": "abc"}]), ["line 201 has no list in 'items'"]),
    "an object for a list": ("obj.jsonl", jsonl([*GOOD, {"clicks": {"a": 1}}]), ["line 201 has no list in 'clicks'"]),
    "gzip without its name": ("zip.jsonl", gzip.compress(jsonl(GOOD).encode()), ["zip.jsonl is gzipped", ".gz"]),
    "its name without gzip": ("plain.jsonl.gz", jsonl(GOOD), ["plain.jsonl.gz", "Not a gzipped file"]),
    "a cut gzip": ("cut.jsonl.gz", gzip.compress(jsonl(GOOD).encode())[:-20], ["cut.jsonl.gz", "end of GZIP"]),
    "a very cut gzip": ("cut.csv.gz", gzip.compress(csv(GOOD_ROWS).encode())[:15], ["cut.csv.gz", "ended before"]),
    "a damaged gzip": ("dam.jsonl.gz", gzip.compress(b"x")[:10] + b"\xff" * 40, ["dam.jsonl.gz", "decompressing"]),
    "broken JSON in gzip": ("in.jsonl.gz", gzip.compress((jsonl(GOOD) + "{oh\n").encode()), ["in.jsonl.gz, line 201"]),
    "CSV with lists": ("plain.csv", csv([]).replace("item,", "items,"), ["plain.csv has no column 'item'", "'items'?"]),
    "a missing column, csv": ("miss.csv", csv(GOOD_ROWS).replace("context", "contxt", 1), ["Did you mean 'contxt'?"]),
    "a missing column, jsonl": ("miss.jsonl", jsonl(GOOD).replace("items", "itmes"), ["mean 'itmes'?", "--items"]),
    "another case, jsonl": ("case.jsonl", jsonl(GOOD).replace("items", "Items"), ["Did you mean 'Items'?"]),
    "a column twice, csv": ("dup.csv", csv([]).replace("item,", "context,"), ["2 columns named 'context'"]),
    "clashing case, csv": ("clash.csv", csv([]).replace("item,", "Context,"), ["'context', 'Context'", "Rename"]),
    "clashing case, jsonl": ("clash.jsonl", jsonl([{**GOOD[0], "CONTEXT": 1}]), ["'CONTEXT', 'context'", "Rename"]),
    "a float for a context": ("float.jsonl", jsonl([{**row, "context": 1.5} for row in GOOD]), ["'context'", "double"]),
    "23 digits in JSON": ("big.jsonl", jsonl([{**row, "context": 10**22} for row in GOOD]), ["64 bits", "to text"]),
    "objects for items": ("objs.jsonl", jsonl([{**row, "items": [{}]} for row in GOOD]), ["'items'", "object"]),
}  # fmt: skip


@pytest.mark.parametrize("what", WHOLE)
def test_file_that_is_wrong_as_a_whole(folder: Path, what: str) -> None:
    name, content, said = WHOLE[what]
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    message = refused(name)
    assert [part for part in said if part not in message] == [], message


@pytest.mark.parametrize("kept", [5, 300, -1])
def test_truncated_parquet(folder: Path, kept: int) -> None:
    Path("cut.parquet").write_bytes(Path("good.parquet").read_bytes()[:kept])
    message = refused("cut.parquet")
    assert "cut.parquet" in message
    assert "Write or copy it again" in message


@pytest.mark.parametrize("at", [4, 124, 164])
def test_damaged_parquet(folder: Path, at: int) -> None:
    content = bytearray(Path("good.parquet").read_bytes())
    content[at : at + 30] = b"\xff" * 30
    Path("damaged.parquet").write_bytes(content)
    message = refused("damaged.parquet")
    assert "damaged.parquet" in message
    assert "Write or copy it again" in message


def test_parquet_under_another_name(folder: Path) -> None:
    content = Path("good.parquet").read_bytes()
    Path("wrong.csv").write_bytes(content)
    assert "wrong.csv is a Parquet file by its content. Rename it" in refused("wrong.csv")
    Path("wrong.parquet.gz").write_bytes(gzip.compress(content))
    assert "Unzip it first" in refused("wrong.parquet.gz")
    Path("nameless").write_bytes(content)
    assert prudent.count(prudent.Log("nameless")).tally.lists == LISTS


def test_missing_file(folder: Path) -> None:
    assert refused("goood.jsonl") == "There is no file goood.jsonl. Did you mean 'good.jsonl'?"
    assert refused("nowhere/at/all.parquet") == "There is no file nowhere/at/all.parquet."


def test_empty_glob(folder: Path) -> None:
    assert refused("days/*.parquet").startswith("No file matches days/*.parquet.")


def test_folder(folder: Path) -> None:
    assert prudent.count(prudent.Log(".")).tally.lists == LISTS  # its Parquet files
    Path("empty").mkdir()
    assert "The folder empty has no *.parquet file" in refused("empty")


@pytest.mark.parametrize("source", ["", []])
def test_no_file_at_all(folder: Path, source: Any) -> None:
    with pytest.raises(LogError, match=r"No file is named\."):
        prudent.count(prudent.Log(source))


def test_name_that_is_no_text(folder: Path) -> None:
    name = os.fsdecode(b"caf\xe9.parquet")
    Path(name).write_bytes(Path("good.parquet").read_bytes())
    assert "is not UTF-8. Rename the file." in refused(name)


def test_pattern_that_is_a_name(folder: Path) -> None:
    """DuckDB takes paths for patterns: asked for log[1], it would read log1."""
    for ending in ("jsonl", "csv", "parquet"):
        Path(f"log1.{ending}").write_bytes(Path(f"good.{ending}").read_bytes())
        one = {"jsonl": jsonl(GOOD[:1]), "csv": csv(GOOD_ROWS[:3])}.get(ending, "")
        Path(f"log[1].{ending}").write_text(one)
    pq.write_table(pa.Table.from_pylist(GOOD[:1]), "log[1].parquet")
    for name in ("log[1].jsonl", "log[1].csv", "log[1].parquet"):
        assert prudent.count(prudent.Log(name, layout=layout_of(name))).tally.lists == 1
        assert prudent.count(prudent.Log(name.replace("[1]", "[!x]"), layout=layout_of(name))).tally.lists == LISTS


def test_unreadable_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by taking the permission away: root, as whom tests often run, needs none."""

    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(LogError, match=r"Cannot read good\.jsonl: Permission denied\."):
        prudent.count(prudent.Log("good.jsonl"))


# --- several files ------------------------------------------------------------------------------------------------


def parquet(name: str, **columns: Any) -> str:
    pq.write_table(pa.table({"context": ["c0"], "items": [["a"]], "clicks": [[1]]} | columns), name)
    return name


def test_formats_do_not_mix(folder: Path) -> None:
    assert refused(["good.parquet", "good.jsonl"]) == (
        "good.parquet is parquet but good.jsonl is jsonl. Count them separately and add the counts."
    )


@pytest.mark.parametrize(
    ("names", "kinds"),
    [
        (pa.array([7]), ["varchar", "bigint"]),
        (pa.array([[7]]), ["varchar", "bigint[]"]),
    ],
)
def test_names_of_two_types_in_parquet_files(folder: Path, names: pa.Array, kinds: list[str]) -> None:
    column = "items" if "[]" in kinds[1] else "context"
    message = refused(["good.parquet", parquet("day2.parquet", **{column: names})])
    assert f"The column {column!r} is {kinds[0]}" in message
    assert f"{kinds[1]} in day2.parquet" in message
    assert "7 and '7' would be two names" in message


def test_signed_and_unsigned_names_have_no_common_type(folder: Path) -> None:
    files = [parquet("a.parquet", context=pa.array([7])), parquet("b.parquet", context=pa.array([7], pa.uint64()))]
    assert "is bigint in a.parquet but ubigint in b.parquet" in refused(files)


def test_column_missing_in_the_second_file(folder: Path) -> None:
    pq.write_table(pa.table({"context": ["c0"], "item": [["a"]], "clicks": [[1]]}), "day2.parquet")
    assert refused(["good.parquet", "day2.parquet"]).startswith("day2.parquet has no column 'items' for the items.")
    Path("day2.jsonl").write_text(jsonl(GOOD).replace("context", "query"))
    assert refused(["good.jsonl", "day2.jsonl"]).startswith("day2.jsonl has no column 'context' for the context.")
    Path("day2.csv").write_text(csv(GOOD_ROWS).replace("item,position", "position,item"))
    assert "day2.csv has the columns impression, context, position, item, click" in refused(["good.csv", "day2.csv"])


@pytest.mark.parametrize("clicks", [[[True]], [[1.0]], [["1"]]])
def test_clicks_may_change_their_type(folder: Path, clicks: list[list[object]]) -> None:
    files = ["good.parquet", parquet("day2.parquet", clicks=pa.array(clicks))]
    counts = prudent.count(prudent.Log(files))
    assert (counts.tally.lists, dict(counts.tally.rejected)) == (LISTS + 1, {})


def test_mixing_counts_and_logs(folder: Path) -> None:
    assert run("count", "good.parquet", "-o", "counts.parquet").code == 0
    ran = run("rank", "counts.parquet", "good.parquet", "-o", "out.parquet")
    assert ran.code == 2
    assert "counts.parquet holds counts and other files hold logs" in ran.text
    with pytest.raises(CountsError, match=r"good\.parquet does not hold counts\. Make them with: prudent count"):
        prudent.Counts.read("counts.parquet", "good.parquet")


def test_counts_given_as_a_log(folder: Path) -> None:
    prudent.count(prudent.Log("good.parquet"), to="counts.parquet")
    with pytest.raises(LogError, match=r"counts\.parquet holds counts"):
        prudent.count(prudent.Log("counts.parquet"))


def test_counts_of_another_version(folder: Path) -> None:
    prudent.count(prudent.Log("good.parquet"), to="counts.parquet")
    old = pq.read_table("counts.parquet")
    pq.write_table(old.replace_schema_metadata({"prudent_counts": "99"}), "old.parquet")
    ran = run("rank", "old.parquet", "-o", "out.parquet")
    assert ran.code == 3
    assert "old.parquet has counts of version 99" in ran.text
    assert "Count the log again" in ran.text


def test_counts_that_do_not_add_up(folder: Path) -> None:
    run("count", "good.parquet", "-o", "text.parquet")
    pq.write_table(pa.Table.from_pylist([{**row, "context": i} for i, row in enumerate(GOOD)]), "numbers.parquet")
    run("count", "numbers.parquet", "-o", "integers.parquet")
    ran = run("rank", "text.parquet", "integers.parquet", "-o", "out.parquet")
    assert ran.code == 3
    assert "they cannot be added" in ran.text


def test_policy_given_as_a_log(folder: Path) -> None:
    assert run("rank", "good.parquet", "-o", "policy.parquet").code == 0
    assert "policy.parquet is a policy written by prudent rank" in refused("policy.parquet")


def test_log_given_as_a_policy(folder: Path) -> None:
    with pytest.raises(PolicyError, match=r"good\.parquet is not a policy: it has the columns context, items, clicks"):
        prudent.Policy.read("good.parquet")
    with pytest.raises(PolicyError, match=r"Cannot read good\.csv as a policy"):
        prudent.Policy.read("good.csv")


# --- bad lists are rejected and counted ---------------------------------------------------------------------------

BAD_LISTS: dict[str, list[Row]] = {
    "context missing": [{"context": None, "items": ["a"], "clicks": [1]}],
    "empty list": [
        {"context": "c0", "items": [], "clicks": []},
        {"context": "c0", "items": None, "clicks": [1]},
        {"context": "c0", "items": None, "clicks": None},
    ],
    "items and clicks differ in length": [
        {"context": "c0", "items": ["a", "b"], "clicks": [1]},
        {"context": "c0", "items": ["a"], "clicks": [1, 0]},
        {"context": "c0", "items": ["a"], "clicks": []},
        {"context": "c0", "items": ["a"], "clicks": None},
    ],
    "too many positions": [{"context": "c0", "items": [f"i{k}" for k in range(1_001)], "clicks": [1] * 1_001}],
    "item missing": [
        {"context": "c0", "items": ["a", None], "clicks": [1, 0]},
        {"context": "c0", "items": [None, None], "clicks": [1, 0]},
    ],
    "click other than 0 or 1": [
        {"context": "c0", "items": ["a"], "clicks": [click]} for click in (float("nan"), -1, 2, 0.5, None, 1e300)
    ],
    "duplicate item in a list": [{"context": "c0", "items": ["a", "b", "a"], "clicks": [1, 0, 0]}],
}
BAD_TEXT_CLICKS: list[Row] = [
    {"context": "c0", "items": ["a"], "clicks": [click]} for click in ("yes", "", "NaN", "-1", "2", "1,0", "0x1")
]
WRITERS: dict[str, Callable[[list[Row]], Any]] = {
    "parquet": lambda rows: _saved("lists.parquet", rows),
    "jsonl": lambda rows: _saved("lists.jsonl", rows),
    "pandas": pd.DataFrame,
    "polars": lambda rows: pl.DataFrame(rows, infer_schema_length=None, strict=False),
    "arrow": pa.Table.from_pylist,
    "duckdb": lambda rows: duckdb.from_arrow(pa.Table.from_pylist(rows)),
}


def _saved(name: str, rows: list[Row]) -> str:
    if name.endswith("jsonl"):
        Path(name).write_text(jsonl(rows))
    else:
        pq.write_table(pa.Table.from_pylist(rows), name)
    return name


def rejections(source: Any, layout: Layout = "lists") -> tuple[int, dict[str, int]]:
    tally = prudent.count(prudent.Log(source, layout=layout), max_rejected=1).tally
    return tally.lists, dict(tally.rejected)


def uniform(rows: list[Row]) -> list[Row]:
    """With the clicks of all rows as floats, where those of one are: tables in memory have one type per column."""
    return [
        {**row, "clicks": None if row["clicks"] is None else [None if c is None else float(c) for c in row["clicks"]]}
        for row in rows
    ]


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize("reason", BAD_LISTS)
def test_bad_list_is_counted_under_its_reason(folder: Path, reason: str, form: str) -> None:
    bad = BAD_LISTS[reason]
    rows = [*GOOD, *bad] if form == "jsonl" else uniform([*GOOD, *bad])
    assert rejections(WRITERS[form](rows)) == (LISTS, {reason: len(bad)})


@pytest.mark.parametrize("form", WRITERS)
def test_clicks_as_text(folder: Path, form: str) -> None:
    good = [{**row, "clicks": [["0", "true"][click] for click in row["clicks"]]} for row in GOOD]
    good[0]["clicks"], good[1]["clicks"] = [" 1 ", "FALSE", "1.0"], ["0.0", "False", "True"]
    assert rejections(WRITERS[form](good)) == (LISTS, {})
    rows = good + BAD_TEXT_CLICKS
    assert rejections(WRITERS[form](rows)) == (LISTS, {"click other than 0 or 1": len(BAD_TEXT_CLICKS)})


@pytest.mark.parametrize("form", WRITERS)
def test_clicks_as_booleans(folder: Path, form: str) -> None:
    rows = [{**row, "clicks": [bool(click) for click in row["clicks"]]} for row in GOOD]
    counts = prudent.count(prudent.Log(WRITERS[form](rows)))
    assert counts == prudent.count(prudent.Log("good.parquet"))


def test_clicks_of_no_use(folder: Path) -> None:
    rows = [{**row, "clicks": [{"at": 1}, {"at": 2}, {"at": 3}]} for row in GOOD]
    assert rejections(WRITERS["arrow"](rows)) == (0, {"click other than 0 or 1": LISTS})


@pytest.mark.parametrize("name", [7, 7.5, True, {"id": 1}, ["a"], 10**22])
def test_name_of_another_type_in_json(folder: Path, name: object) -> None:
    """Even below the sample: 7 must not become '7', nor 7.5 become 8."""
    reason = "name of another type than the others"
    bad = [{**GOOD[0], "context": name}, {**GOOD[0], "items": ["x", name, "z"]}]
    Path("mixed.jsonl").write_text(jsonl([*GOOD, *bad]))
    assert rejections("mixed.jsonl") == (LISTS, {reason: 2})
    Path("rows.jsonl").write_text(jsonl([*GOOD_ROWS, {**GOOD_ROWS[0], "impression": "x", "item": name}]))
    assert rejections("rows.jsonl", "rows") == (LISTS, {reason: 1})


def test_text_among_integers_in_json(folder: Path) -> None:
    many = [{"context": i, "items": [7, -8], "clicks": [1, 0]} for i in range(12_000)]
    bad = [{"context": name, "items": [7], "clicks": [1]} for name in ("007", 7.5, True, 2**64)]
    Path("mixed.jsonl").write_text(jsonl(many + bad))
    assert rejections("mixed.jsonl") == (12_000, {"name of another type than the others": 4})


BAD_ROWS: dict[str, list[list[Row]]] = {
    "context missing": [[{"context": None}]],
    "item missing": [[{"item": None}]],
    "click other than 0 or 1": [[{"click": click}] for click in ("yes", "NaN", -1, 2, 0.5, None)],
    "duplicate item in a list": [[{}, {"position": 2}]],
    "impression id missing": [[{"impression": None}]],
    "impression id in several contexts": [[{}, {"position": 2, "context": "c1", "item": "b"}]],
    "duplicate position in a list": [[{}, {"item": "b"}]],
    "positions other than 1, 2, 3, ...": [
        [{"position": 0}, {"position": 1, "item": "b"}],
        [{"position": 1}, {"position": 3, "item": "b"}],
        *([{"position": position}] for position in (2, -1, 1.5, None, True, "first", 10**9, 2**63, 10**22, 1e300)),
    ],
}


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("reason", BAD_ROWS)
def test_bad_rows_are_counted_as_one_list(folder: Path, reason: str, form: str) -> None:
    rows, first = list(GOOD_ROWS), {"context": "c0", "item": "a", "position": 1, "click": 1}
    for number, bad in enumerate(BAD_ROWS[reason]):
        rows += [{"impression": f"bad{number}", **first, **row} for row in bad]
    name = f"rows.{form}"
    if form == "csv":
        Path(name).write_text(csv(rows))
    elif form == "jsonl":
        Path(name).write_text(jsonl(rows))
    else:  # one type per column, so that all is text
        texts = [{key: None if value is None else str(value) for key, value in row.items()} for row in rows]
        pq.write_table(pa.Table.from_pylist(texts), name)
    assert rejections(name, "rows") == (LISTS, {reason: len(BAD_ROWS[reason])})


def test_a_boolean_is_no_position(folder: Path) -> None:
    """Of a column of them, true was 1, though not in JSON Lines and CSV."""
    row = {"impression": "i", "context": "c", "item": "a", "position": True, "click": 1}
    pq.write_table(pa.Table.from_pylist([row]), "rows.parquet")
    assert rejections("rows.parquet", "rows") == (0, {"positions other than 1, 2, 3, ...": 1})


def test_repeated_impression_id(folder: Path) -> None:
    """A second list under the id of the first takes both out: which row belongs to which is anyone's guess."""
    again = [{**GOOD_ROWS[k], "item": f"x{k}"} for k in range(3)]
    Path("rows.csv").write_text(csv([*GOOD_ROWS, *again]))
    assert rejections("rows.csv", "rows") == (LISTS - 1, {"duplicate position in a list": 1})


@pytest.mark.parametrize("column", ["context", "item"])
def test_nul_byte(folder: Path, column: str) -> None:
    bad = {"impression": "bad", "context": "c0", "item": "a", "position": 1, "click": 1, column: "a\0b"}
    Path("nul.csv").write_text(csv([*GOOD_ROWS, bad]))
    assert rejections("nul.csv", "rows") == (LISTS, {"NUL byte in a name": 1})
    listed = {"context": bad["context"], "items": [bad["item"]], "clicks": [1]}
    Path("nul.jsonl").write_text(jsonl([*GOOD, listed]))
    assert rejections("nul.jsonl") == (LISTS, {"NUL byte in a name": 1})


def test_column_of_nothing(folder: Path) -> None:
    rows = [{**row, "context": None} for row in GOOD]
    for form, write in WRITERS.items():
        assert rejections(write(rows)) == (0, {"context missing": LISTS}), form


def test_few_bad_lists_are_reported_and_many_stop(folder: Path) -> None:
    bad: list[Row] = [{"context": None, "items": ["a"], "clicks": [1]}]
    Path("few.jsonl").write_text(jsonl(GOOD + 2 * bad))
    ran = run("count", "few.jsonl", "-o", "few.parquet")
    assert ran.code == 0
    assert "Rejected 2 × context missing." in ran.text
    assert prudent.Counts.read("few.parquet").tally.rejected == {"context missing": 2}
    assert "2 × context missing" in run("rank", "few.parquet", "-o", "policy.parquet").text

    Path("many.jsonl").write_text(jsonl(GOOD + 3 * bad))
    message = refused("many.jsonl")
    assert message.startswith(
        "3 of 203 lists in many.jsonl are rejected (1.5%, more than max_rejected=0.01 (--max-rejected) allows)"
    )
    assert "3 × context missing" in message
    assert run("count", "many.jsonl", "-o", "out.parquet", "--max-rejected", "0.02").code == 0
    assert run("count", "few.jsonl", "-o", "none.parquet", "--max-rejected", "0").code == 3


def test_a_faulty_list_is_counted_once(folder: Path) -> None:
    worst = {"context": None, "items": ["a", "a", None], "clicks": [7]}
    Path("worst.jsonl").write_text(jsonl([*GOOD, worst]))
    assert rejections("worst.jsonl") == (LISTS, {"context missing": 1})


# --- unusual, and right -------------------------------------------------------------------------------------------

RIGHT: dict[str, tuple[str, bytes]] = {
    "a byte order mark, csv": ("bom.csv", b"\xef\xbb\xbf" + csv(GOOD_ROWS).encode()),
    "a byte order mark, jsonl": ("bom.jsonl", b"\xef\xbb\xbf" + jsonl(GOOD).encode()),
    "a byte order mark in gzip": ("bom.jsonl.gz", gzip.compress(b"\xef\xbb\xbf" + jsonl(GOOD).encode())),
    "gzip, csv": ("zip.csv.gz", gzip.compress(csv(GOOD_ROWS).encode())),
    "gzip, tsv": ("zip.tsv.gz", gzip.compress(csv(GOOD_ROWS).replace(",", "\t").encode())),
    "gzip in capitals": ("ZIP.JSONL.GZ", gzip.compress(jsonl(GOOD).encode())),
    "tabs": ("tabs.tsv", csv(GOOD_ROWS).replace(",", "\t").encode()),
    "tabs in capitals": ("TABS.TSV", csv(GOOD_ROWS).replace(",", "\t").encode()),
    "CRLF": ("crlf.csv", csv(GOOD_ROWS).replace("\n", "\r\n").encode()),
    "CR": ("cr.csv", csv(GOOD_ROWS).replace("\n", "\r").encode()),
    "CRLF, jsonl": ("crlf.jsonl", jsonl(GOOD).replace("\n", "\r\n").encode()),
    "no last line break": ("end.csv", csv(GOOD_ROWS).rstrip().encode()),
    "blank lines": ("blank.csv", csv(GOOD_ROWS).replace("\n1,", "\n\n1,").encode()),
    "blank lines, jsonl": ("blank.jsonl", jsonl(GOOD).replace("\n", "\n\n").encode()),
    "columns that nobody asked for": ("more.jsonl", jsonl([{"x": 1, "X": {}, **row} for row in GOOD]).encode()),
    "quotes around everything": ("quotes.csv", csv(GOOD_ROWS).replace("c1", '"c1"').replace("b", '"b"').encode()),
    "quotes, brackets and spaces in the name": ("it's [a] log; drop?.jsonl", jsonl(GOOD).encode()),
}  # fmt: skip


@pytest.mark.parametrize("what", RIGHT)
def test_unusual_file_that_is_right(folder: Path, what: str) -> None:
    name, content = RIGHT[what]
    Path(name).write_bytes(content)
    counts = prudent.count(prudent.Log(name, layout=layout_of(name.lower())))
    assert not counts.tally.rejected
    assert counts == prudent.count(prudent.Log("good.parquet"))


C, L, K = ["q", "r", "q"], [["a", "b"], ["b", "a"], ["b", "c"]], [[1, 0], [0, 1], [1, 1]]
WORDS = pa.array(["a", "b", "b", "a", "b", "c"])
SAME: dict[str, Callable[[], Any]] = {
    "pandas": lambda: pd.DataFrame({"context": C, "items": L, "clicks": K}),
    "pandas, categories": lambda: pd.DataFrame({"context": pd.Categorical(C), "items": L, "clicks": K}),
    "pandas, tuples": lambda: pd.DataFrame({"context": C, "items": [*map(tuple, L)], "clicks": [*map(tuple, K)]}),
    "pandas, arrays": lambda: pd.DataFrame(
        {"context": C, "items": [np.array(i, object) for i in L], "clicks": [*map(np.array, K)]}
    ),
    "pandas, a column twice that nobody asked for": lambda: pd.concat(
        [SAME["pandas"](), pd.DataFrame([[1, 2]] * 3, columns=["x", "x"])], axis=1
    ),
    "polars": lambda: pl.DataFrame({"context": C, "items": L, "clicks": K}),
    "polars, lazy": lambda: pl.LazyFrame({"context": C, "items": L, "clicks": K}),
    "polars, categories": lambda: pl.DataFrame(
        {
            "context": pl.Series(C, dtype=pl.Categorical),
            "items": pl.Series(L, dtype=pl.List(pl.Categorical)),
            "clicks": K,
        }
    ),
    "polars, enum": lambda: pl.DataFrame(
        {"context": pl.Series(C, dtype=pl.Enum(["r", "q"])), "items": L, "clicks": K}
    ),
    "polars, arrays": lambda: pl.DataFrame(
        {
            "context": C,
            "items": pl.Series(L, dtype=pl.Array(pl.String, 2)),
            "clicks": pl.Series(K, dtype=pl.Array(pl.Int8, 2)),
        }
    ),
    "arrow": lambda: pa.table({"context": C, "items": L, "clicks": K}),
    "arrow, batch": lambda: SAME["arrow"]().to_batches()[0],
    "arrow, dataset": lambda: ds.dataset(SAME["arrow"]()),
    "arrow, large": lambda: pa.table(
        {
            "context": pa.array(C, pa.large_string()),
            "items": pa.array(L, pa.large_list(pa.large_string())),
            "clicks": pa.array(K, pa.large_list(pa.int8())),
        }
    ),
    "arrow, fixed": lambda: pa.table(
        {"context": C, "items": pa.array(L, pa.list_(pa.string(), 2)), "clicks": pa.array(K, pa.list_(pa.float32(), 2))}
    ),
    "arrow, views": lambda: pa.table(
        {"context": pa.array(C, pa.string_view()), "items": pa.array(L, pa.list_(pa.string_view())), "clicks": K}
    ),
    "arrow, dictionaries": lambda: pa.table(
        {
            "context": pa.array(C).dictionary_encode(),
            "items": pa.ListArray.from_arrays([0, 2, 4, 6], WORDS.dictionary_encode()),
            "clicks": K,
        }
    ),
    "duckdb, arrays": lambda: duckdb.from_arrow(SAME["arrow"]()).project(
        "context, items::varchar[2] as items, clicks::float[2] as clicks"
    ),
    "duckdb, enums": lambda: duckdb.from_arrow(SAME["arrow"]()).project(
        "context::enum('q', 'r') as context, items::enum('a', 'b', 'c')[] as items, clicks::boolean[] as clicks"
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", SAME)
def test_same_log_in_another_form(form: str) -> None:
    counts = prudent.count(prudent.Log(SAME[form]()))
    assert not counts.tally.rejected
    assert counts == prudent.count(prudent.Log(SAME["arrow"]()))


def test_parquet_of_arrays_and_dictionaries(folder: Path) -> None:
    for form in ("arrow, fixed", "arrow, dictionaries", "arrow, large"):
        pq.write_table(SAME[form](), "form.parquet")
        assert prudent.count(prudent.Log("form.parquet")) == prudent.count(prudent.Log(SAME["arrow"]()))


def test_decimals_and_floats_are_no_names() -> None:
    digits = pa.array([Decimal(10**22)] * 3, pa.decimal128(23, 0))
    for context, kind in (
        (digits, r"decimal\(23,0\)"),
        (pa.array([1.0, 2.0, 3.0]), "double"),
        (pa.array([True] * 3), "boolean"),
        (pa.array([b"q"] * 3), "blob"),
        (pa.array([["q"]] * 3), r"varchar\[\]"),
    ):
        with pytest.raises(LogError, match=f"'context' for the context holds {kind}; .* Convert it to text first"):
            prudent.count(prudent.Log(pa.table({"context": context, "items": L, "clicks": K})))


def test_python_objects_of_two_types() -> None:
    frame = SAME["pandas"]()
    for column, values in (("context", ["q", 7, "r"]), ("items", [["a", 7], ["b", "a"], ["b", "c"]])):
        with pytest.raises(LogError, match=f"{column!r} for the {column} mixes text and integers"):
            prudent.count(prudent.Log(frame.assign(**{column: values})))


def test_frames_of_nothing() -> None:
    for form in ("pandas", "polars", "arrow"):
        with pytest.raises(LogError, match="has no lists: there is not a single row in it"):
            prudent.count(prudent.Log(SAME[form]()[:0]))
    with pytest.raises(LogError, match=r"the DataFrame has no column 'context'.* no columns at all"):
        prudent.count(prudent.Log(pd.DataFrame()))


def test_frames_with_a_column_twice() -> None:
    frame = pd.concat([SAME["pandas"](), pd.DataFrame({"context": C})], axis=1)
    with pytest.raises(LogError, match="the DataFrame has 2 columns named 'context'"):
        prudent.count(prudent.Log(frame))
    table = SAME["arrow"]().append_column("CONTEXT", pa.array(C))
    with pytest.raises(LogError, match="the Table has 2 columns named 'context'"):
        prudent.count(prudent.Log(table))


def test_parquet_with_a_column_twice(folder: Path) -> None:
    table = SAME["arrow"]()
    pq.write_table(table.append_column("Context", pa.array(C)), "clash.parquet")
    assert "clash.parquet has 2 columns named 'context'" in refused("clash.parquet")
    pq.write_table(table.append_column("context", pa.array(C)), "twice.parquet")
    assert "twice.parquet has 2 columns named 'context'" in refused("twice.parquet")
    pq.write_table(table.append_column("x", pa.array(C)).append_column("X", pa.array(C)), "other.parquet")
    assert prudent.count(prudent.Log("other.parquet")).tally.lists == 3


@pytest.mark.parametrize("source", [5, None, {"context": []}, [1, 2], b"good.parquet", np.zeros(3)])
def test_what_is_no_table(source: Any) -> None:
    with pytest.raises(LogError, match=f"Cannot read a {type(source).__name__}"):
        prudent.count(prudent.Log(source))


def test_scalars_where_lists_belong(folder: Path) -> None:
    pq.write_table(pa.table({"context": C, "items": C, "clicks": [1, 0, 1]}), "flat.parquet")
    assert "The column 'items' for the items is varchar, not a list" in refused("flat.parquet")
    pq.write_table(pa.Table.from_pylist(GOOD_ROWS), "flat.parquet")
    assert "It looks like the layout 'rows'" in refused("flat.parquet")


# --- names come back as they were ---------------------------------------------------------------------------------

NAMES = [
    "007", "7", "10000000000000000000000", "1e3", "NaN", "null", "true", "2024-01-01", " a ", "A", "a", "", "'", '"',
    "a,b", "a\nb", "a\r\nb", "\t", "\x1b[31mred", "[red]x[/red]", "😀", "👩\u200d👧", "שלום", "\u202eevil", "\u00e9",
    "e\u0301", "x" * 5000, "'; drop table lists; --", "{}", "\\n", ":smile:",
]  # fmt: skip


def survivors(source: Any, layout: Layout = "lists") -> list[object]:
    return list[object](prudent.count(prudent.Log(source, layout=layout)).index.names.to_list())


@pytest.mark.parametrize("form", WRITERS)
def test_text_comes_back_as_it_was(folder: Path, form: str) -> None:
    rows = [{"context": name, "items": [name], "clicks": [1]} for name in NAMES]
    assert sorted(survivors(WRITERS[form](rows)), key=str) == sorted(NAMES)


def test_text_comes_back_from_csv_as_it_was(folder: Path) -> None:
    import csv as writer

    names = [name for name in NAMES if name]  # to CSV, empty text is nothing
    with Path("names.csv").open("w", newline="", encoding="utf-8") as file:
        table = writer.writer(file, lineterminator="\n", quoting=writer.QUOTE_ALL)
        table.writerow(HEADER.split(","))
        table.writerows([i, name, name, 1, 1] for i, name in enumerate(names))
    assert sorted(survivors("names.csv", "rows"), key=str) == sorted(names)


@pytest.mark.parametrize("form", WRITERS)
def test_integers_come_back_as_they_were(folder: Path, form: str) -> None:
    names = [-(2**63), -1, 0, 7, 2**53 + 1, 2**63 - 1]
    rows = [{"context": name, "items": [name], "clicks": [1]} for name in names]
    assert survivors(WRITERS[form](rows)) == names


def test_unsigned_integers_come_back_as_they_were() -> None:
    names = [0, 2**63, 2**64 - 1]
    table = pa.table({"context": pa.array(names, pa.uint64()), "items": [["a"]] * 3, "clicks": [[1]] * 3})
    assert survivors(table) == names


def test_names_survive_the_policy(folder: Path) -> None:
    names = [name for name in NAMES if name]
    rows = [{"context": name, "items": [name, "z"], "clicks": [1, 0]} for name in names for _ in range(3)]
    Path("names.jsonl").write_text(jsonl(rows))
    ran = run("rank", "names.jsonl", "-o", "policy.parquet", "--bound", "bayes", "--model", "cm")
    assert ran.code == 0
    policy = prudent.Policy.read("policy.parquet")
    assert {context: policy[context] for context in policy} == {name: [name, "z"] for name in names}


@pytest.mark.parametrize("evil", ['"; drop table', "'); --", "sélect {x} [y]"])
def test_column_named_like_an_attack(folder: Path, evil: str) -> None:
    listed = pa.Table.from_pylist(GOOD).rename_columns([evil, "items", "clicks"])
    Path("evil.jsonl").write_text(jsonl(listed.to_pylist()))
    pq.write_table(listed, "evil.parquet")
    quoted = evil.replace('"', '""')
    Path("evil.csv").write_text(csv(GOOD_ROWS).replace("context", f'"{quoted}"', 1))
    good = prudent.count(prudent.Log("good.parquet"))
    for name in ("evil.jsonl", "evil.parquet", "evil.csv"):
        assert prudent.count(prudent.Log(name, layout=layout_of(name), context=evil)) == good
    missing = run("count", "good.jsonl", "-o", "out.parquet", "--context", evil)
    assert missing.code == 3
    assert f"good.jsonl has no column {evil!r} for the context" in missing.text


# --- logs that teach little ---------------------------------------------------------------------------------------


def test_no_click_anywhere(folder: Path) -> None:
    Path("idle.jsonl").write_text(jsonl([{**row, "clicks": [0, 0, 0]} for row in GOOD]))
    ran = run("rank", "idle.jsonl", "-o", "out.parquet")
    assert ran.code == 3
    assert "Not one of the 200 lists has a click" in ran.text
    assert not os.path.exists("out.parquet")
    ran = run("check", "idle.jsonl")
    assert ran.code == 0
    assert "The log has no click" in ran.text


def test_one_list_per_context(folder: Path) -> None:
    Path("single.jsonl").write_text(jsonl([{**row, "context": f"c{i}"} for i, row in enumerate(GOOD)]))
    ran = run("rank", "single.jsonl", "-o", "out.parquet")
    assert ran.code == 0
    assert "pbm is not identified" in ran.text  # a note: dcm is used instead
    assert len(prudent.Policy.read("out.parquet")) == LISTS
    assert "200 contexts have a single list" in run("check", "single.jsonl").text
    ran = run("rank", "single.jsonl", "-o", "out.parquet", "--model", "pbm")
    assert ran.code == NotIdentifiedError.exit_code == 3
    assert "pbm is not identified" in ran.text


def test_length_above_the_candidates(folder: Path) -> None:
    assert run("rank", "good.parquet", "-o", "out.parquet", "--length", 50).code == 0
    policy = prudent.Policy.read("out.parquet")
    assert {len(policy[context]) for context in policy} == {3}


def test_everything_is_left_out(folder: Path) -> None:
    ran = run("rank", "good.parquet", "-o", "out.parquet", "--min-lists", 1000)
    assert ran.code == 3
    assert "No context has a candidate and 1,000 logged lists" in ran.text
    assert not Path("out.parquet").exists()


def test_everything_is_rejected(folder: Path) -> None:
    Path("bad.jsonl").write_text(jsonl([{"context": None, "items": ["a"], "clicks": [1]}] * 3))
    ran = run("check", "bad.jsonl")
    assert ran.code == 0
    assert "context missing 3" in ran.text
    assert run("rank", "bad.jsonl", "-o", "out.parquet", "--max-rejected", 1).code == 3


# --- settings -----------------------------------------------------------------------------------------------------


def test_log_with_wrong_settings() -> None:
    with pytest.raises(UsageError, match=r"There is no layout 'wide'\. Known: lists, rows"):
        prudent.Log("x.parquet", layout="wide")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="The column 'q' is named for two different things"):
        prudent.Log("x.parquet", context="q", items="q")


# --- damaged counts, limits -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", COUNTS_COLUMNS)
@pytest.mark.parametrize("damage", ["missing", "struct"])
def test_counts_with_a_damaged_column(column: str, damage: str, tmp_path: Path) -> None:
    lists = {"context": ["q"] * 4, "items": [["a", "b"]] * 4, "clicks": [[0, 1]] * 4}
    prudent.count(pa.table(lists), to=tmp_path / "counts.parquet")
    counts = pq.read_table(tmp_path / "counts.parquet")
    at = counts.column_names.index(column)
    other = counts.drop_columns(column)
    if damage == "struct":
        other = other.add_column(at, column, pa.array([{"a": 1}] * len(counts)))
    pq.write_table(other.replace_schema_metadata(counts.schema.metadata), tmp_path / "counts.parquet")
    for command in (["check"], ["rank", "-o", tmp_path / "policy.parquet"]):
        ran = run(command[0], tmp_path / "counts.parquet", *command[1:])
        assert (ran.code, ran.out) == (3, "")
        assert f"is marked as counts, but its column {column} is {damage}" in ran.text


@pytest.mark.parametrize("memory", ["-1GB", "0GB", "much", "1", "1 parsec", ""])
def test_a_memory_limit_that_is_none(memory: str, tmp_path: Path) -> None:
    ran = run("check", tmp_path / "log.parquet", f"--memory={memory}")
    assert (ran.code, "it must be a size above 0, such as 1GB" in ran.text) == (2, True)


@pytest.mark.parametrize("memory", ["1GB", "512 MB", "1.5gb", "100MiB", "800000B"])
def test_a_memory_limit(memory: str) -> None:
    prudent.DuckDB(memory).open().close()


def test_a_message_with_a_name_of_a_megabyte_is_readable(folder: Path) -> None:
    """Where it is and what to do stand at its ends."""
    Path("groups.csv").write_text("item,brand\na,b\n")
    Path("rules.json").write_text(json.dumps({"at_most": {"y" * 1_000_000: 1}, "item_groups": "groups.csv"}))
    ran = run("rank", "good.jsonl", "-o", "out.parquet", "--rules", "rules.json")
    assert ran.code == 3
    assert ran.err.startswith("Error: groups.csv has no column 'yyy")
    assert len(ran.err) < 5_000


def test_no_output_replaces_what_is_read(folder: Path) -> None:
    """`verify` wrote its metrics over the policy, and `rank` its lists over the groups."""
    pq.write_table(pa.table({"item": ITEMS, "brand": ["x", "x", "y"]}), "groups.parquet")
    pq.write_table(pa.table({"context": ["c0", "c1"], "kind": ["x", "y"]}), "kinds.parquet")
    Path("rules").write_text(json.dumps({"at_most": {"brand": 2}, "item_groups": "groups.parquet"}))
    assert run("rank", "good.parquet", "-o", "policy.parquet", "--model", "cm").code == 0
    verify, rank = ("verify", "policy.parquet", "--log", "good.jsonl"), ("rank", "good.parquet", "--model", "cm")
    for command, output in (
        (verify, "policy.parquet"),
        (verify, "policy.parquet.manifest.json"),
        (verify, "good.jsonl"),
        ((*rank, "--item-groups", "groups.parquet"), "groups.parquet"),
        ((*rank, "--context-groups", "kinds.parquet"), "kinds.parquet"),
        ((*rank, "--features", "kinds.parquet", "--features", "groups.parquet"), "groups.parquet"),
        ((*rank, "--rules", "rules"), "groups.parquet"),
        ((*rank, "--rules", "rules"), "rules"),
    ):
        before = Path(output).read_bytes()
        ran = run(*command, "-o", output)
        assert (ran.code, "is named twice" in ran.text) == (2, True), ran
        assert Path(output).read_bytes() == before


@pytest.mark.parametrize(
    ("content", "more", "code", "message"),
    [
        ("item,n\na,1\na,2\n", (), 3, "2 rows or more for the same item, such as item 'a'"),
        ("item,n\na,inf\n", (), 3, "'n' of f.csv has 1 infinite number"),
        ("thing,n\na,1\n", (), 3, "f.csv names neither items nor contexts"),
        ("item\na\n", (), 3, "f.csv has no features"),
        ("", (), 3, "f.csv"),
        ("item,n\na,1\n", ("--feature-model", "forest"), 2, "No feature model is called 'forest'"),
        ("item,n\na,1\n", ("--bound", "eb"), 2, "has no prior that follows features"),
        ("item,n\na,1\n", ("--baseline", "ips"), 2, "--baseline does not work with --features"),
        ("item,\x1b[31mn\na,[1]\n", (), 0, "\\x1b[31mn"),
    ],
)
def test_features_that_cannot_be(folder: Path, content: str, more: tuple[str, ...], code: int, message: str) -> None:
    Path("f.csv").write_text(content)
    model = () if "--baseline" in more else ("--model", "cm")
    ran = run("rank", "good.jsonl", "-o", "out.parquet", *model, "--features", "f.csv", *more)
    assert ran.code == code, ran
    if code:
        assert message in ran.err
    assert "\x1b" not in ran.text


def test_a_name_that_is_too_long_for_the_output(folder: Path) -> None:
    """It was taken for a fault of the standard output."""
    for command in (("count", "good.jsonl"), ("rank", "good.jsonl", "--model", "cm")):
        ran = run(*command, "-o", "x" * 300)
        assert (ran.code, "File name too long" in ran.err) == (4, True), ran


@pytest.mark.parametrize("option", ["--lift=1e-320", "--lift=1e-150", "--days=1e308", "--days=1e-320", "--lift=1e308"])
def test_a_plan_for_numbers_beyond_all_logs(folder: Path, option: str) -> None:
    """No number of lists is enough, or one is: never a division by zero."""
    assert run("rank", "good.parquet", "-o", "policy.parquet", "--model", "cm", "--bound", "mle").code == 0
    ran = run("plan", "policy.parquet", "--log", "good.jsonl", "--lift", "0.01", option, "--json")
    assert ran.code == 0, ran
    tests = json.loads(ran.out)["tests"]
    assert all(one[number] is None or one[number] < 1e16 for one in tests for number in ("lists", "days"))
