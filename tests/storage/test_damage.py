"""Damage is noticed: a wrong number never comes without an error."""

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import prudent
from prudent.base.errors import CountsError, LogError, PolicyError
from prudent.policies import files as policy_files
from prudent.storage.counts_file import COUNTS_VERSION
from prudent.storage.database import Database
from prudent.storage.files import manifest_path
from tests.command import run

FLIPS = 60


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("log") / "log.parquet"
    duckdb.execute(
        "copy (select 'c' || i % 20 as context, ['a' || i % 7, 'b', 'c' || i % 3] as items, "
        f"[i % 2, i % 3 // 2, 0] as clicks from range(900) t(i)) to '{file}'"
    )
    return file


@pytest.mark.parametrize("kind", ["counts", "policy", "scores"])
def test_bits_that_flip(kind: str, log: Path, tmp_path: Path) -> None:
    """79 of 120 gave wrong counts without a word, 31 of 60 another policy, and 6 of 60 other scores."""
    good, bad = tmp_path / f"{kind}.parquet", tmp_path / "bad.parquet"
    prudent.count(log, to=tmp_path / "counts.parquet")
    prudent.rank(log, model="cm", to=tmp_path / "policy.parquet", scores=tmp_path / "scores.parquet")
    reading: dict[str, Callable[[Path], object]] = {
        "counts": prudent.Counts.read,
        "policy": prudent.Policy.read,
        "scores": lambda file: prudent.Policy.read(tmp_path / "policy.parquet", file),
    }
    content = good.read_bytes()
    for number in range(FLIPS):
        damaged = bytearray(content)
        damaged[number * len(content) // FLIPS] ^= 1 << number % 8
        bad.write_bytes(damaged)
        with pytest.raises(prudent.PrudentError):
            reading[kind](bad)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"log.parquet", b"lug.parquet"),
        (b'"lists": 900', b'"lists": 901'),
        (b"prudent_checksum", b"prudent_chequsum"),
        (b"prudent_checksum\x18\x20", b"prudent_checksum\x18\x21"),
    ],
)
def test_entries_of_a_footer_that_change(old: bytes, new: bytes, log: Path, tmp_path: Path) -> None:
    file = tmp_path / "counts.parquet"
    prudent.count(log, to=file)
    assert old in file.read_bytes()
    file.write_bytes(file.read_bytes().replace(old, new))
    with pytest.raises(CountsError, match=r"damaged|Cannot read"):
        prudent.Counts.read(file)


def test_names_that_look_like_the_entry_of_a_checksum(tmp_path: Path) -> None:
    """In the statistics of a column, before the entry."""
    name = "prudent_checksum\x18\x20" + "0" * 32
    log = pa.table({"context": [name] * 9, "items": [[name, "b"]] * 9, "clicks": [[0, 1]] * 9})
    prudent.count(log, to=tmp_path / "counts.parquet")
    assert prudent.Counts.read(tmp_path / "counts.parquet").tally.lists == 9


def test_a_log_that_another_program_wrote_again(log: Path, tmp_path: Path) -> None:
    """pyarrow copies the entries of the footer, also that of a checksum of other bytes."""
    prudent.simulate(tmp_path / "log.parquet", lists=100)
    table = pq.read_table(tmp_path / "log.parquet")
    assert b"prudent_checksum" in table.schema.metadata
    pq.write_table(table.slice(0, 50), tmp_path / "half.parquet")
    assert prudent.count(tmp_path / "half.parquet").tally.lists == 50


BEYOND = [
    *("'nan'::double as positive", "'inf'::double as positive", "-1.5 as positive", "'nan'::double as lower"),
    *("'nan'::double as mean", "-1 as impressions", "'nan'::double as upper", "'x' as negative", "null as item"),
]


@pytest.mark.parametrize("change", BEYOND)
@pytest.mark.parametrize("kind", ["policy", "scores"])
def test_numbers_that_no_policy_has(kind: str, change: str, log: Path, tmp_path: Path) -> None:
    """In the files of another program, which have no checksum."""
    prudent.rank(log, model="cm", to=tmp_path / "policy.parquet", scores=tmp_path / "scores.parquet")
    file, other = tmp_path / f"{kind}.parquet", tmp_path / "other.parquet"
    duckdb.execute(f"copy (select * replace ({change}) from read_parquet('{file}')) to '{other}' (format parquet)")
    with pytest.raises(PolicyError, match=r"is not a policy|has no scores|by another type"):
        prudent.Policy.read(*([other] if kind == "policy" else [tmp_path / "policy.parquet", other]))


def test_a_policy_that_is_replaced_while_it_is_read(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lists were those of one policy, its manifest that of another."""
    file, other = tmp_path / "policy.parquet", tmp_path / "other.parquet"
    prudent.rank(log, model="cm", to=file)
    prudent.rank(log, model="cm", bound="mle", to=other)
    opening = policy_files.open_lists

    def and_replace(*args: Any) -> Any:
        done = opening(*args)
        other.replace(file)
        manifest_path(file).unlink()
        return done

    monkeypatch.setattr("prudent.policies.policy.open_lists", and_replace)
    with pytest.raises(PolicyError, match="changed while it was read"):
        prudent.Policy.read(file)


@pytest.mark.parametrize(
    "change",
    [
        "[-1 for _ in n]::bigint[] as n",
        "[0 for _ in n]::bigint[] as n",
        "n[1:1] as n",
        "[one & 65535 for one in code]::integer[] as code",
        "[one | 65532 for one in code]::integer[] as code",
        "[20000 << 16 for _ in code]::integer[] as code",
        "null::varchar as context",
        "[null for _ in items]::varchar[] as items",
        "items[1:1] as items",
        "cells::varchar[] as cells",
        "[99 for _ in list_items]::integer[] as list_items",
        "list_n[2:] as list_n",
        "list_reverse(items) as items",
        "list_reverse(code) as code",
        "'c' as context",
        "items[1:0] as items, cells[1:0] as cells, code[1:0] as code, n[1:0] as n",
    ],
)
def test_rows_that_no_log_has(change: str, log: Path, tmp_path: Path) -> None:
    """In the counts of another program, which have no checksum."""
    file = tmp_path / "counts.parquet"
    prudent.count(log, to=file)
    rows = f"select * replace ({change}) from read_parquet('{file}')"
    entries = f"{{prudent_counts: '{COUNTS_VERSION}', prudent_sample: 'g'}}"
    duckdb.execute(f"copy ({rows}) to '{tmp_path / 'other.parquet'}' (format parquet, kv_metadata {entries})")
    with pytest.raises(CountsError, match=r"cannot be|is missing|differ in length|has no|but its column|not sorted"):
        prudent.Counts.read(tmp_path / "other.parquet")


@pytest.mark.parametrize("at", [-5, -2, 30, 0.5])
def test_a_gzipped_log(at: float, tmp_path: Path) -> None:
    line = json.dumps({"context": "c", "items": ["a", "b"], "clicks": [0, 1]})
    lines = "".join(line.replace('"c"', f'"{number * 7919 % 4001}"') + "\n" for number in range(4000))
    file = tmp_path / "log.jsonl.gz"
    damaged = bytearray(gzip.compress(lines.encode()))
    damaged[int(at * len(damaged)) if at == 0.5 else int(at)] ^= 4
    file.write_bytes(damaged)
    done = run("count", file, "-o", tmp_path / "counts.parquet")
    assert (done.code, (tmp_path / "counts.parquet").exists()) == (3, False)
    assert "log.jsonl.gz" in done.text


def test_what_is_no_file(log: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.parquet")
    for name in (tmp_path / "pipe.parquet", "/dev/null", "/dev/zero"):
        with pytest.raises(LogError, match="is not a regular file"):
            prudent.count(name)


def test_a_folder_that_cannot_be_read(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was a smaller log."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "log.parquet").write_bytes(log.read_bytes())
    listed = os.scandir

    def scandir(path: Any) -> Any:
        if str(path).endswith("two"):
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(LogError, match=r"Cannot read the folder .*two: Permission denied"):
        prudent.count(tmp_path)
    monkeypatch.setattr(os, "access", lambda path, _: not str(path).endswith("two"))
    with pytest.raises(LogError, match=r"Cannot read the folder .*two: no permission"):
        prudent.count(f"{tmp_path}/*/*.parquet")


def test_a_log_that_changes_while_it_is_read(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "log.parquet"
    file.write_bytes(log.read_bytes())
    os.utime(file, ns=(0, 0))

    def check(*_: Any, **__: Any) -> None:
        os.utime(file)

    monkeypatch.setattr("prudent.counts.count.check_tally", check)
    with pytest.raises(LogError, match="changed while it was read"):
        prudent.count(file, to=tmp_path / "counts.parquet")
    assert not (tmp_path / "counts.parquet").exists()


def test_json_that_is_nested_too_deeply(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    good = json.dumps({"context": "c", "items": ["a", "b"], "clicks": [0, 1]})
    file.write_text(f"{good}\n" + '{"context": ' + "[" * 100_000 + "\n")
    done = run("count", file, "-o", tmp_path / "counts.parquet")
    assert done.code == 3
    assert "log.jsonl" in done.text


def test_a_header_with_a_field_above_the_limit(tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    file.write_text("x" * 200_000 + ",context\n1,2\n")
    done = run("count", file, "--layout", "rows", "-o", tmp_path / "counts.parquet")
    assert done.code == 3
    assert "log.csv" in done.text


def test_a_column_whose_name_is_no_text(log: Path, tmp_path: Path) -> None:
    """Found by fuzzing."""
    file = tmp_path / "counts.parquet"
    prudent.count(log, to=file)
    file.write_bytes(file.read_bytes().replace(b"list_length", b"list\xfflength"))
    with pytest.raises(CountsError, match="damaged"):
        prudent.Counts.read(file)


@pytest.mark.parametrize(
    "settings", [{}, {"data_page_version": "2.0"}, {"use_dictionary": False, "compression": "none"}]
)
def test_pages_with_checksums(settings: dict[str, Any], log: Path, tmp_path: Path) -> None:
    """As Spark writes them; DuckDB counts a damaged page without a word."""
    file = tmp_path / "log.parquet"
    pq.write_table(pq.read_table(log), file, write_page_checksum=True, row_group_size=300, **settings)
    assert prudent.count(file).tally.lists == 900
    good, pages = file.read_bytes(), 0
    for chunk in (row.column(k) for row in _row_groups(file) for k in range(row.num_columns)):
        damaged = bytearray(good)
        damaged[chunk.data_page_offset + chunk.total_compressed_size // 2] ^= 4
        file.write_bytes(damaged)
        with pytest.raises(LogError, match=r"log\.parquet"):
            prudent.count(file)
        pages += 1
    assert pages == 9


def _row_groups(file: Path) -> list[Any]:
    footer = pq.read_metadata(file)
    return [footer.row_group(number) for number in range(footer.num_row_groups)]


def test_a_log_that_prudent_wrote(log: Path, tmp_path: Path) -> None:
    prudent.split(log, tmp_path)
    file = tmp_path / "train.parquet"
    content = bytearray(file.read_bytes())
    for at in range(4, len(content), len(content) // 12):
        file.write_bytes(bytes(content[:at]) + bytes([content[at] ^ 4]) + bytes(content[at + 1 :]))
        with pytest.raises(LogError, match=r"train\.parquet"):
            prudent.count(file)


@pytest.mark.parametrize("line", [1 << 30, 50], ids=["one line", "line breaks in quotes"])
@pytest.mark.parametrize(("size", "code"), [(200_000, 0), (3_000_000, 3), (40_000_000, 3)])
def test_a_field_above_the_limit(size: int, code: int, line: int, tmp_path: Path) -> None:
    """A line of 40 MB was dropped without a word, and the list counted without it."""
    file = tmp_path / "log.csv"
    item = "\n".join(["x" * min(size, line)] * max(1, size // line))
    file.write_text(f'impression,context,item,position,click\n1,c,a,1,0\n1,c,"{item}",2,1\n2,c,a,1,0\n2,c,b,2,1\n')
    done = run("count", file, "--layout", "rows", "-o", tmp_path / "counts.parquet")
    assert (done.code, "log.csv" in done.text) == (code, code == 3), done.text
    if code == 0:
        assert prudent.Counts.read(tmp_path / "counts.parquet").tally.lists == 2


READERS = {"ubi": "ubi.jsonl", "yandex": "yandex.tsv"}
CORPUS = Path(__file__).parents[1] / "corpus"


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("at", [-5, -2])
def test_a_gzipped_log_of_another_format(name: str, at: int, tmp_path: Path) -> None:
    """Its checksum, and its length."""
    damaged = bytearray(gzip.compress((CORPUS / READERS[name]).read_bytes()))
    damaged[at] ^= 4
    file = tmp_path / f"{READERS[name]}.gz"
    file.write_bytes(damaged)
    with pytest.raises(LogError, match=rf"{READERS[name]}\.gz.* damaged"):
        prudent.count(file, format=name)


@pytest.mark.parametrize("name", READERS)
def test_a_log_of_another_format_that_changes_while_it_is_read(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / READERS[name]
    file.write_bytes((CORPUS / READERS[name]).read_bytes())
    connect = Database.connect

    def and_write(self: Database, **how: Any) -> Any:
        with file.open("ab") as written:
            written.write(b"\n")
        return connect(self, **how)

    assert prudent.count(file, format=name, max_rejected=1).tally.lists
    monkeypatch.setattr(Database, "connect", and_write)
    with pytest.raises(LogError, match=rf"{READERS[name]} changed while it was read"):
        prudent.count(file, format=name, max_rejected=1)
