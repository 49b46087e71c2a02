"""Where a log is and what its columns mean, before a row of it is read."""

from pathlib import Path

import pytest

import prudent
from prudent.base.errors import LogError, UsageError
from prudent.logs.formats import file_format, find_files, first_bytes
from prudent.logs.log import REASONS, Candidates


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("b.parquet", "a.parquet", "sub/c.parquet", "a.jsonl", "a.parquet.manifest.json", ".x.parquet.1f.part"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"PAR1" if name.endswith("parquet") else b"{}")
    return tmp_path


def names(files: list[Path]) -> list[str]:
    return [str(file) for file in files]


def test_opening_reads_nothing() -> None:
    log = prudent.Log("there/is/no/such.parquet")
    assert log.columns == {"context": "context", "items": "items", "clicks": "clicks"}


def test_columns_of_rows() -> None:
    log = prudent.Log("x.csv", layout="rows", context="query", position="rank")
    assert log.columns == {
        "impression": "impression",
        "context": "query",
        "item": "item",
        "position": "rank",
        "click": "click",
    }


def test_settings_are_checked_at_once() -> None:
    with pytest.raises(UsageError, match=r"There is no layout 'row'\. Known: lists, rows, impressions\."):
        prudent.Log("x.parquet", layout="row")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="The column 'q' is named for two different things"):
        prudent.Log("x.parquet", context="q", clicks="q")
    prudent.Log("x.parquet", context="q", item="q")  # the layout lists has no column for one item


def test_name_of_the_source() -> None:
    assert prudent.Log("a.parquet").name == "a.parquet"
    assert prudent.Log(["a.parquet", Path("b.parquet")]).name == "a.parquet, b.parquet"
    assert prudent.Log({}).name == "the dict"


def test_files_are_found_in_order(folder: Path) -> None:
    assert names(find_files("a.parquet")) == ["a.parquet"]
    assert names(find_files("*.parquet")) == ["a.parquet", "b.parquet"]
    assert names(find_files("**/*.parquet")) == ["a.parquet", "b.parquet", "sub/c.parquet"]
    assert names(find_files(Path())) == ["a.parquet", "b.parquet", "sub/c.parquet"]
    assert names(find_files(["sub", Path("a.parquet")])) == ["sub/c.parquet", "a.parquet"]


def test_glob_passes_over_folders_manifests_and_leftovers(folder: Path) -> None:
    assert names(find_files("*")) == ["a.jsonl", "a.parquet", "b.parquet"]


def test_format_is_told_by_name_and_content(folder: Path) -> None:
    assert file_format([Path("a.parquet"), Path("b.parquet")]) == "parquet"
    assert file_format([Path("a.jsonl")]) == "jsonl"
    with pytest.raises(LogError, match=r"a\.parquet is parquet but a\.jsonl is jsonl"):
        file_format([Path("a.parquet"), Path("a.jsonl")])


def test_folder_in_place_of_a_file(folder: Path) -> None:
    with pytest.raises(LogError, match="Cannot read sub: Is a directory"):
        first_bytes(Path("sub"), 4)


def test_missing_column_helps() -> None:
    log = prudent.Log("x.parquet", context="query")
    with pytest.raises(LogError) as raised:
        log.check_columns(["Query", "items", "clicks"], "x.parquet")
    assert str(raised.value) == (
        "x.parquet has no column 'query' for the context. Did you mean 'Query'? It has: Query, items, clicks. "
        "Set context=... (--context)."
    )


def test_all_missing_columns_are_named_at_once() -> None:
    with pytest.raises(LogError) as raised:
        prudent.Log("x.parquet").check_columns(["query", "items", "clicked"], "x.parquet")
    assert str(raised.value) == (
        "x.parquet has no column 'context' for the context and no 'clicks' for the clicks. Did you mean "
        "'clicked'? It has: query, items, clicked. Set context=..., clicks=... (--context, --clicks)."
    )


def test_every_misspelt_column_has_its_suggestion() -> None:
    log = prudent.Log("x.parquet", context="qeury", clicks="clikced")
    with pytest.raises(LogError, match=r"the clicks\. Did you mean 'query'\? Did you mean 'clicked'\? It has"):
        log.check_columns(["query", "items", "clicked"], "x.parquet")


def test_a_log_without_a_column_of_clicks_may_have_what_was_clicked() -> None:
    other = r"If the log has a list of what was clicked instead: clicked_items=\.\.\. \(--clicked-items\) or"
    with pytest.raises(LogError, match=other):
        prudent.Log("x.parquet").check_columns(["context", "items", "bought"], "x.parquet")


@pytest.mark.parametrize(
    "columns",
    [
        ["query_id", "user_query", "query_response_hit_ids"],
        ["query_id", "action_name", "event_attributes"],
        ["_index", "_source"],
    ],
)
def test_records_of_user_behavior_insights_are_recognised(columns: list[str]) -> None:
    with pytest.raises(LogError, match=r"User Behavior Insights: format='ubi' \(--format ubi\)\.$"):
        prudent.Log("ubi_queries.ndjson").check_columns(columns, "ubi_queries.ndjson")


def test_the_other_layout_is_recognised() -> None:
    rows, lists = ["impression", "context", "item", "position", "click"], ["context", "items", "clicks"]
    with pytest.raises(LogError, match=r"It looks like the layout 'rows': layout='rows' \(--layout rows\)"):
        prudent.Log("x.parquet").check_columns(rows, "x.parquet")
    with pytest.raises(LogError, match=r"It looks like the layout 'lists': layout='lists' \(--layout lists\)"):
        prudent.Log("x.parquet", layout="rows").check_columns(lists, "x.parquet")


def test_columns_that_nobody_asked_for_may_clash() -> None:
    prudent.Log("x.parquet").check_columns(["context", "items", "clicks", "x", "X", "x"], "x.parquet")


def test_candidates_have_two_columns() -> None:
    with pytest.raises(LogError, match=r"c\.csv has no column 'item' for the item"):
        Candidates("c.csv").check_columns(["context"], "c.csv")


def test_reasons_are_different() -> None:
    assert len(set(REASONS)) == len(REASONS)
