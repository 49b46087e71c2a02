"""What every registered reader of a log format promises; a new one joins with a line in EXAMPLES."""

import gzip
import inspect
import json
import os
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import prudent
from prudent.base.errors import LogError, UsageError
from prudent.logs.log import as_log
from prudent.logs.readers import readers
from prudent.storage.database import Database
from tests.command import run, run_process
from tests.logs.readers.reading import lists_of

EXAMPLES = {
    # format -> lines with one list of two or more items and one click, on the second item
    "ubi": [
        json.dumps({"query_id": "q", "user_query": "shoes", "query_response_hit_ids": ["a", "b"]}),
        json.dumps({"action_name": "click", "query_id": "q", "event_attributes": {"object": {"object_id": "b"}}}),
    ],
    "yandex": ["\t".join(["1", "0", "Q", "5", "7", *map(str, range(100, 110))]), "1\t3\tC\t101"],
    "yandex-personalized": [
        "1\tM\t1\t9",
        "\t".join(["1", "0", "Q", "0", "5", "1,2", *(f"{url},3" for url in range(100, 110))]),
        "1\t3\tC\t0\t101",
    ],
}
formats = pytest.mark.parametrize("name", list(readers))


def example(name: str, folder: Path) -> Path:
    file = folder / "log.jsonl"
    file.write_text("\n".join(EXAMPLES[name]) + "\n", encoding="utf-8")
    return file


@formats
def test_takes_a_source_and_keyword_settings(name: str) -> None:
    source, *settings = inspect.signature(readers[name]).parameters.values()
    assert source.name == "source"
    assert all(setting.kind is inspect.Parameter.KEYWORD_ONLY for setting in settings)
    assert "engine" in [setting.name for setting in settings]
    assert inspect.getdoc(readers[name])


@formats
def test_reads_lists_and_clicks(name: str, tmp_path: Path) -> None:
    file = example(name, tmp_path)
    log = as_log(file, format=name)
    ((_, items, clicks),) = lists_of(log)
    assert clicks == tuple(int(place == 1) for place in range(len(items)))
    assert (log.names, log.layout, dict(log.left_out)) == ([str(file)], "lists", {})
    assert prudent.count(log).tally.lists == 1


@formats
def test_gzipped_and_within_limits_it_is_the_same(name: str, tmp_path: Path) -> None:
    file = example(name, tmp_path)
    zipped = tmp_path / "log.jsonl.gz"
    zipped.write_bytes(gzip.compress(file.read_bytes()))
    limited = prudent.DuckDB(memory="100MB", threads=1)
    assert lists_of(as_log(file, format=name)) == lists_of(as_log(zipped, format=name, engine=limited))


@formats
def test_temporary_files_go_with_the_log(name: str, tmp_path: Path) -> None:
    log = as_log(example(name, tmp_path), format=name)
    folder = Path(log.source[0]).parent
    assert folder.exists()
    del log
    assert not folder.exists()


@formats
@pytest.mark.parametrize("content", [b"", b"{\n", b"\xff\xfe\n", b'{"some": "thing"}\n', b"a,b\n1,2\n"])
def test_other_content_is_an_error_that_names_the_file(name: str, content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    file.write_bytes(content)
    with pytest.raises(LogError, match=r"log\.jsonl"):
        as_log(file, format=name)


@formats
def test_no_file_and_unknown_settings_are_errors(name: str, tmp_path: Path) -> None:
    with pytest.raises(LogError, match=r"There is no file"):
        as_log(tmp_path / "nothing.jsonl", format=name)
    with pytest.raises(UsageError, match=rf"The format {name} has no setting layuot"):
        as_log(example(name, tmp_path), format=name, layuot="rows")


@formats
def test_the_command_line_has_it(name: str, tmp_path: Path) -> None:
    ran = run("count", example(name, tmp_path), "--format", name, "-o", tmp_path / "counts.parquet")
    assert ran.code == 0
    assert name in run("count", "--help").out


def test_an_unknown_format() -> None:
    with pytest.raises(UsageError, match=r"No log format is called 'ubl'\. Did you mean 'ubi'"):
        as_log("log.jsonl", format="ubl")


PLUGIN = """
from prudent import Log

def read_pairs(source, *, engine=None):
    \"\"\"A format of another package.\"\"\"
    return Log(source, context="query")
"""


def test_readers_of_other_packages(tmp_path: Path) -> None:
    """One joins by its entry point; one that cannot be loaded is a warning, not a traceback."""
    (tmp_path / "pairs.py").write_text(PLUGIN)
    about = tmp_path / "pairs-1.2.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: pairs\nVersion: 1.2\n")
    entries = ["pairs = pairs:read_pairs", "gone = pairs:gone", "text = pairs:PLUGIN", "name = pairs:__name__"]
    (about / "entry_points.txt").write_text("\n".join(["[prudent.readers]", *entries]) + "\n")
    pq.write_table(pa.table({"query": ["q"], "items": [["a"]], "clicks": [[1]]}), tmp_path / "log.parquet")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    for command, code in (
        (["check", "log.parquet", "--format", "pairs"], 0),
        (["check", "--help"], 0),
        (["check", "log.parquet", "--format", "gone"], 2),
    ):
        ran = run_process(*command, env={**os.environ, "PYTHONPATH": path}, folder=tmp_path)
        assert (ran.code, "Traceback" in ran.text) == (code, False), ran.text
        assert "log format 'gone' of pairs 1.2 is not available" in ran.text or command[-1] == "pairs"
    assert "No log format is called 'gone'" in ran.text


@formats
@pytest.mark.parametrize("at", [-6, -2, 0.6])
def test_damaged_gzip(name: str, at: float, tmp_path: Path) -> None:
    """A wrong checksum, a wrong length and a wrong byte gave lists without a word."""
    lines = "\n".join([*EXAMPLES[name], *EXAMPLES[name][:-1] * 200]) + "\n"
    damaged = bytearray(gzip.compress(lines.encode()))
    damaged[int(at * len(damaged)) if at == 0.6 else int(at)] ^= 4
    file = tmp_path / "log.jsonl.gz"
    file.write_bytes(damaged)
    done = run("count", file, "--format", name, "-o", tmp_path / "counts.parquet", "--max-rejected", "1")
    assert (done.code, (tmp_path / "counts.parquet").exists()) == (3, False), done.text
    assert "log.jsonl.gz" in done.text


@formats
def test_a_file_that_changes_while_it_is_read(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = example(name, tmp_path)
    os.utime(file, ns=(0, 0))
    connect = Database.connect

    def and_touch(self: Database, *args: Any, **how: Any) -> Any:
        os.utime(file)
        return connect(self, *args, **how)

    monkeypatch.setattr(Database, "connect", and_touch)
    with pytest.raises(LogError, match="changed while it was read"):
        as_log(file, format=name)
