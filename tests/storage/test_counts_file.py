"""What a counts file says of itself goes with it, under one name, in one rename."""

import json
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import prudent
from prudent.base.errors import CountsError, ManifestError
from prudent.logs.log import REASONS
from prudent.storage.counts_file import COUNTS_VERSION, Footer, Piece, counts_footer, empty_piece, write_counts_file
from prudent.storage.files import manifest_path
from prudent.storage.manifest import Source, Tally
from prudent.storage.parquet import read_footer
from prudent.storage.run import NameColumn, Run, WholeLists
from tests.strategies import table

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


def write_without_tally(file: Path) -> None:
    """A file without a tally in its footer, as Spark writes it."""
    counted(file)
    with duckdb.connect() as connection:
        connection.execute(
            f"copy (from '{file}') to '{file}' (format parquet, kv_metadata {{prudent_counts: '{COUNTS_VERSION}'}})"
        )


@given(tally=tallies)
def test_the_footer_keeps_every_tally(tally: Tally, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Also one of the longest numbers and all the reasons, and in names that no other tool would print."""
    file = tmp_path_factory.mktemp("footer") / "x.parquet"
    with duckdb.connect() as connection:
        pieces = [empty_piece("VARCHAR", "BIGINT")]
        write_counts_file(connection, file, pieces, source=Source((), tally), threshold="ab")
        assert counts_footer(read_footer(connection, file), "x") == Footer(tally, "ab")


def test_any_tool_reads_the_file_and_shows_the_key(tmp_path: Path) -> None:
    counts = counted(tmp_path / "counts.parquet")
    said = {"lists": 3, "rejected": {WHY: 1}, "left_out": {"clicks outside their list": 2}}
    metadata = pq.read_metadata(tmp_path / "counts.parquet").metadata
    assert json.loads(metadata[b"prudent_tally"]) == said
    assert metadata[b"prudent_counts"] == b"4"
    assert metadata[b"prudent_sample"] == b"g"
    shown, clicked = 1 << 16 | 1 << 1, 2 << 16 | 1 << 2  # at 1 and clicked; at 2, below that click
    row = {
        **{"context": "shoes", "items": ["a", "b"], "cells": [1, 1], "code": [shown, clicked], "n": [3, 3]},
        **{"list_n": [3], "list_length": [2], "list_items": [0, 1], "list_clicks": [True, False]},
    }
    assert pq.read_table(tmp_path / "counts.parquet").to_pylist() == [row]
    assert pl.read_parquet(tmp_path / "counts.parquet").to_dicts() == [row]
    assert duckdb.execute(counts.sql).fetchall() == [
        ("shoes", "a", 1, 0, True, False, 3),
        ("shoes", "b", 2, 1, False, False, 3),
    ]


def test_counts_need_no_manifest(tmp_path: Path) -> None:
    counts = counted(tmp_path / "counts.parquet")
    for content in ("not JSON", '{"lists": 7, "rejected": {"context missing": 9}}', None):
        manifest = manifest_path(tmp_path / "counts.parquet")
        manifest.unlink() if content is None else manifest.write_text(content)
        assert prudent.Counts.read(tmp_path / "counts.parquet").tally == counts.tally
    (counts + counts).write(tmp_path / "both.parquet")
    manifest_path(tmp_path / "both.parquet").unlink()
    assert prudent.Counts.read(tmp_path / "both.parquet").tally == counts.tally + counts.tally


def test_files_of_spark_have_their_tally_in_the_manifest(tmp_path: Path) -> None:
    file = tmp_path / "old.parquet"
    write_without_tally(file)
    assert prudent.Counts.read(file).tally == Tally(3, {WHY: 1}, {"clicks outside their list": 2})
    for content in ("not JSON", "[]", '{"lists": 3}', '{"rejected": {"context missing": "9"}}'):
        manifest_path(file).write_text(content)
        with pytest.raises(ManifestError, match="is not a manifest of kind counts"):
            prudent.Counts.read(file)
    manifest_path(file).unlink()
    assert prudent.Counts.read(file).tally == Tally(3)


@pytest.mark.parametrize("said", ["", "{}", "[1]", '{"lists": 1.5, "rejected": {}}', '{"lists": 1, "rejected": [2]}'])
def test_a_damaged_tally(said: str, tmp_path: Path) -> None:
    file = tmp_path / "x.parquet"
    with duckdb.connect() as connection:
        footer = f"{{prudent_counts: '{COUNTS_VERSION}', prudent_tally: '{said}'}}"
        connection.execute(f"copy (select 1 as context, 2 as item) to '{file}' (format parquet, kv_metadata {footer})")
    with pytest.raises(CountsError, match="marked as counts, but its tally is damaged"):
        prudent.Counts.read(file)


@pytest.mark.parametrize("cells", [1, 300])
def test_how_contexts_are_cut_into_pieces_changes_no_byte(cells: int, tmp_path: Path) -> None:
    """More contexts than DuckDB takes at a time, and groups of many and of few of them; a sum is cut anywhere."""
    contexts = 5_000
    names = [f"{number:05}" for number in range(contexts)]
    codes = np.tile(np.arange(1, cells + 1, dtype=np.uint32) << 16, contexts)
    one = np.ones(contexts, np.uint32)
    run = Run(NameColumn.of_names(names), NameColumn.of_names(names), one, one * cells, codes, codes.astype(np.uint64))
    some = np.arange(0, contexts, 3, dtype=np.uint32)
    lists = WholeLists(some, one[some], one[some] * 0, some % 2 > 0, np.ones(len(some), np.uint64))
    piece, written = Piece(run, lists), set()
    for number, ends in enumerate(([contexts], [700, 3_000, 3_001, contexts], [2_048, 4_096, contexts])):
        pieces = [piece.slice(first, last) for first, last in zip([0, *ends], ends, strict=False)]
        with duckdb.connect() as connection:
            write_counts_file(connection, tmp_path / f"{number}.parquet", pieces, source=Source((), Tally(1)))
        written.add((tmp_path / f"{number}.parquet").read_bytes())
    assert len(written) == 1
