"""What a counts file says of itself goes with it, under one name, in one rename."""

import json
from dataclasses import replace
from pathlib import Path

import duckdb
import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import prudent
from prudent.base.errors import CountsError, ManifestError
from prudent.logs.log import REASONS
from prudent.storage.files import manifest_path
from prudent.storage.manifest import Tally
from prudent.storage.parquet import (
    COUNTS_VERSION,
    counts_format,
    fill_placeholder,
    placeholder,
    read_footer,
    tally_in,
    tally_text,
)
from tests.strategies import count, table

LISTS = [("shoes", ("a", "b"), (1, 0))] * 3
BAD = ("shoes", ("a", "a"), (0, 1))
WHY = "duplicate item in a list"

numbers = st.integers(0, 2**63 - 1)
tallies = st.builds(
    Tally,
    lists=numbers,
    rejected=st.dictionaries(st.sampled_from(REASONS), numbers),
    left_out=st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), numbers, max_size=3),
)


def counted(file: Path) -> prudent.Counts:
    log = prudent.Log(table([*LISTS, BAD]), left_out={"clicks outside their list": 2})
    return prudent.count(log, to=file, max_rejected=0.5)


def write_old(file: Path) -> None:
    """A file as it was before there was a tally in its footer."""
    counted(file)
    with duckdb.connect() as connection:
        connection.execute(
            f"copy (from '{file}') to '{file}' (format parquet, kv_metadata {{prudent_counts: '{COUNTS_VERSION}'}})"
        )


@given(tally=tallies)
def test_every_tally_has_a_place(tally: Tally, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Also one of the longest numbers and all the reasons, and in names that no other tool would print."""
    file = tmp_path_factory.mktemp("footer") / "x.parquet"
    later = placeholder(REASONS, tally.left_out)
    with duckdb.connect() as connection:
        connection.execute(f"copy (select 1 as n) to '{file}' ({counts_format(later)})")
        size = file.stat().st_size
        fill_placeholder(file, later, tally)
        assert tally_in(read_footer(connection, file)) == tally
        assert connection.execute(f"from '{file}'").fetchall() == [(1,)]
    assert file.stat().st_size == size


def test_only_the_footer_is_written_to(tmp_path: Path) -> None:
    """Names in the data that read like the placeholder, which would take some luck, stay what they are."""
    file, later = tmp_path / "x.parquet", placeholder(REASONS, {})
    with duckdb.connect() as connection:
        connection.execute(f"copy (select '{later}' as name from range(9)) to '{file}' ({counts_format(later)})")
        fill_placeholder(file, later, Tally(1))
        assert connection.execute(f"select distinct name from '{file}'").fetchall() == [(later,)]
        assert tally_in(read_footer(connection, file)) == Tally(1)
        before = file.read_bytes()
        with pytest.raises(AssertionError, match="no place"):
            fill_placeholder(file, later, Tally(2))
    assert file.read_bytes() == before


def test_two_files_have_no_placeholder_in_common() -> None:
    assert placeholder(REASONS, {}) != placeholder(REASONS, {})


def test_any_tool_reads_the_file_and_shows_the_key(tmp_path: Path) -> None:
    counts = counted(tmp_path / "counts.parquet")
    said = {"lists": 3, "rejected": {WHY: 1}, "left_out": {"clicks outside their list": 2}}
    metadata = pq.read_metadata(tmp_path / "counts.parquet").metadata
    assert json.loads(metadata[b"prudent_tally"]) == said
    assert metadata[b"prudent_counts"] == b"1"
    rows = sorted(duckdb.execute(counts.sql).fetchall())
    assert sorted(pq.read_table(tmp_path / "counts.parquet").to_pandas().itertuples(index=False, name=None)) == rows
    assert sorted(pl.read_parquet(tmp_path / "counts.parquet").rows()) == rows


def test_counts_need_no_manifest(tmp_path: Path) -> None:
    counts = counted(tmp_path / "counts.parquet")
    for content in ("not JSON", '{"lists": 7, "rejected": {"context missing": 9}}', None):
        manifest = manifest_path(tmp_path / "counts.parquet")
        manifest.unlink() if content is None else manifest.write_text(content)
        assert prudent.Counts.read(tmp_path / "counts.parquet").tally == counts.tally
    (counts + counts).write(tmp_path / "both.parquet")
    manifest_path(tmp_path / "both.parquet").unlink()
    assert prudent.Counts.read(tmp_path / "both.parquet").tally == counts.tally + counts.tally


def test_older_files_have_their_tally_in_the_manifest(tmp_path: Path) -> None:
    file = tmp_path / "old.parquet"
    write_old(file)
    assert prudent.Counts.read(file).tally == Tally(3, {WHY: 1}, {"clicks outside their list": 2})
    for content in ("not JSON", "[]", '{"lists": 3}', '{"rejected": {"context missing": "9"}}'):
        manifest_path(file).write_text(content)
        with pytest.raises(ManifestError, match="is not a manifest of kind counts"):
            prudent.Counts.read(file)
    manifest_path(file).unlink()
    assert prudent.Counts.read(file).tally == Tally(3)


@pytest.mark.parametrize("said", ["", "{}", "[1]", '{"lists": 1.5, "rejected": {}}', '{"lists": 1, "rejected": [2]}'])
def test_a_tally_that_is_none(said: str, tmp_path: Path) -> None:
    file = tmp_path / "x.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"copy (select 1 as context, 2 as item) to '{file}' ({counts_format(said)})")
    with pytest.raises(CountsError, match="does not hold counts, although it says so"):
        prudent.Counts.read(file)


def test_text_and_tally_are_the_same() -> None:
    tally = replace(count(LISTS).tally, rejected={"it's": 1})
    assert Tally.from_json(json.loads(tally_text(tally))) == tally
