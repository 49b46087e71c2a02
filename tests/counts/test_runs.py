"""The same lists give the same bytes: in any order, at once or in runs that spill, in one file or merged from many."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import prudent
from prudent.engines import kernel
from prudent.engines.duckdb import count as counting
from prudent.engines.kernel import merging
from prudent.storage import counts_file, sketch
from prudent.storage.arrow import Column, numbers
from prudent.storage.arrow_tables import registered

MOST_LISTS = 60


@pytest.fixture(scope="module")
def log() -> pa.Table:
    """Text with long common prefixes, lists of different lengths, some of them rejected."""
    random = np.random.default_rng(7)
    rows = []
    for _ in range(3_000):
        context = f"query {random.zipf(1.3) % 400}"
        items = [f"https://shop.example/item/{n}" for n in random.permutation(12)[: random.integers(1, 7)]]
        clicks = (random.random(len(items)) < 0.3).astype(int).tolist()
        if random.random() < 0.005:
            items.append(items[0])  # twice
            clicks.append(0)
        rows.append({"context": context, "items": items, "clicks": clicks})
    return pa.Table.from_pylist(rows)


@pytest.fixture(autouse=True)
def small_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample of few contexts, so that every run has its own."""
    monkeypatch.setattr(sketch, "SAMPLE_LISTS", MOST_LISTS)
    monkeypatch.setattr(counts_file, "SAMPLE_LISTS", MOST_LISTS)
    monkeypatch.setattr(sketch.sample_threshold, "__defaults__", (MOST_LISTS,))


def written(log: pa.Table, file: Path, engine: prudent.DuckDB | None = None) -> bytes:
    prudent.count(prudent.Log(log, origin=("the log",)), to=file, engine=engine)
    return file.read_bytes()


def shuffled(log: pa.Table) -> pa.Table:
    return log.take(np.random.default_rng(3).permutation(log.num_rows))


def test_order_and_threads_do_not_show(log: pa.Table, tmp_path: Path) -> None:
    whole = written(log, tmp_path / "a.parquet")
    assert written(shuffled(log), tmp_path / "a.parquet", prudent.DuckDB(threads=4)) == whole
    assert written(log, tmp_path / "a.parquet", prudent.DuckDB(memory="500MB", threads=1)) == whole


@pytest.mark.parametrize("which", ["", "numpy"])
def test_runs_that_spill_do_not_show(
    which: str, log: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRUDENT_KERNEL", which)
    whole = written(log, tmp_path / "a.parquet")
    spilled: list[Path] = []

    def write(connection: duckdb.DuckDBPyConnection, target: Path, *pieces: Any, **settings: Any) -> None:
        spilled.append(target)
        counts_file.write_counts_file(connection, target, *pieces, **settings)

    monkeypatch.setattr(counting, "write_counts_file", write)

    def in_runs(connection: Any, log: prudent.Log, source: Any, sample: Any) -> Iterator[kernel.Counted]:
        """As where the memory is full after every thousand lists."""
        for first in range(0, log.source.num_rows, 1_000):
            part = log.source.slice(first, 1_000)
            part = part.append_column("fault", pa.array([0] * len(part), pa.int32()))
            part = part.append_column("copies", pa.array([1] * len(part)))
            limits: dict[str, Any] = {"budget": 1 << 40, "max_positions": 1_000, "text_files": False}
            yield from kernel.count(part.__arrow_c_stream__(), "uul", **limits, choose=sample)

    monkeypatch.setattr(counting, "_counted", in_runs)
    written(shuffled(log), tmp_path / "a.parquet")
    assert len(spilled) == 4, "three runs, and their sum"
    assert (tmp_path / "a.parquet").read_bytes() == whole
    assert not [left for left in tmp_path.iterdir() if left.name.startswith(".")]


def test_nor_do_the_files_that_are_added(log: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = prudent.count(log)
    parts = []
    for number in range(7):
        part = log.filter(pa.array(np.arange(log.num_rows) % 7 == number))
        prudent.count(part, max_rejected=1.0, to=tmp_path / f"{number}.parquet")
        parts.append(tmp_path / f"{number}.parquet")
    monkeypatch.setattr(merging, "_MOST_FILES", 2)
    together = prudent.Counts.read(*parts)
    for name, counts in (("whole", whole), ("together", together)):
        object.__setattr__(counts, "origin", ("the log",))
        counts.write(tmp_path / f"{name}.parquet")
    assert (tmp_path / "whole.parquet").read_bytes() == (tmp_path / "together.parquet").read_bytes()
    one, other = whole.sample(), together.sample()
    assert 0 < len(one.n) <= 2 * MOST_LISTS
    np.testing.assert_array_equal(one.items, other.items)
    np.testing.assert_array_equal(one.n, other.n)


def test_names_of_other_programs_may_be_small_integers(tmp_path: Path) -> None:
    log = pa.table({"context": [5, 6, 7] * 9, "items": [[1, 2]] * 27, "clicks": [[0, 1]] * 27})
    prudent.count(log, to=tmp_path / "counts.parquet")
    small = "select * replace (context::smallint as context, items::integer[] as items)"
    for name in ("one", "two"):
        duckdb.execute(
            f"copy ({small} from '{tmp_path}/counts.parquet') to '{tmp_path}/{name}.parquet' "
            f"(format parquet, kv_metadata {{prudent_counts: '{counts_file.COUNTS_VERSION}'}})"
        )
    both = prudent.Counts.read(tmp_path / "one.parquet", tmp_path / "two.parquet")
    assert both.index.names.to_list() == [5, 6, 7]
    assert both == prudent.count(pa.concat_tables([log, log]))


@pytest.mark.parametrize("kind", [KeyboardInterrupt, MemoryError, prudent.PrudentError])
def test_what_batches_raise_is_raised(kind: type[BaseException]) -> None:
    """On its way it is a number in C: an interrupt became the end of the stream, or a bug."""

    def batches() -> Iterator[dict[str, Column]]:
        yield {"x": numbers(np.arange(3))}
        raise kind("no more of this")

    with (
        pytest.raises(kind, match="no more of this"),
        duckdb.connect() as connection,
        registered(connection, "x", batches()),
    ):
        connection.execute("create table y as from x")
