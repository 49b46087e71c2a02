"""A path means the file of that name, whatever characters it has, and no other."""

import os
from pathlib import Path

import duckdb
import pytest

import prudent
from prudent.base.errors import LogError
from prudent.storage.database import Database
from tests.command import run

HOSTILE = ["~/log.parquet", "file:log.parquet", "file:/log.parquet", "[l]og.parquet", "*.parquet", "a\\b/log.parquet"]


def write_log(file: Path, lists: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.parent.resolve() / "plain.tmp"
    log = f"select 'shoes' as context, ['a', 'b'] as items, [1, 0] as clicks from range({lists})"
    duckdb.execute(f"copy ({log}) to '{part}' (format parquet)")
    part.rename(file)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory, beside decoys in $HOME and under the names that a pattern would match."""
    for decoy in (tmp_path / "home" / "log.parquet", tmp_path / "work" / "log.parquet", tmp_path / "work" / "a" / "b"):
        write_log(decoy, 7)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


@pytest.mark.parametrize("name", HOSTILE)
def test_the_file_of_that_name_is_read(name: str, elsewhere: Path) -> None:
    write_log(Path(name), 3)
    assert prudent.count(name).tally.lists == 3


@pytest.mark.parametrize("name", [name for name in HOSTILE if name != "file:/log.parquet"])  # refused: it is Spark's
def test_the_file_of_that_name_is_written(name: str, elsewhere: Path) -> None:
    write_log(Path("lists"), 3)
    Path("lists").rename("lists.parquet")
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    before = set(elsewhere.parent.rglob("*"))
    assert run("rank", "lists.parquet", "-o", name, "--model", "cm", "--scores", f"{name}s").code == 0
    assert dict(prudent.Policy.read(name, f"{name}s")) == {"shoes": ["a", "b"]}
    files = [Path(f"{name}{end}") for end in ("", ".manifest.json", "s", "s.manifest.json")]
    assert set(elsewhere.parent.rglob("*")) - before == {elsewhere / file for file in files}


def test_spills_beside_the_output(elsewhere: Path) -> None:
    Path("~").mkdir()
    with Database(memory="20MB", threads=1).connect(spill=Path("~")) as connection:
        connection.execute("create table big as select i, md5(i::varchar) from range(1000000) t(i)")
        assert [entry.name.startswith(".prudent-spill-") for entry in Path("~").iterdir()] == [True]
    assert os.listdir(Path.home()) == ["log.parquet"]


def test_a_name_that_duckdb_cannot_spell(elsewhere: Path) -> None:
    """In a pattern its backslash is a slash: it would read d/*.parquet."""
    write_log(Path("d", "*.parquet"), 7)
    write_log(Path("d\\*.parquet"), 3)
    with pytest.raises(LogError, match=r"has a backslash and one of"):
        prudent.count("d\\*.parquet")


def test_errors_name_a_file_as_the_user_does(elsewhere: Path) -> None:
    Path("log.csv").write_text('id,context,item,position,click\n1,c,"i,1,0\n')
    with pytest.raises(LogError, match=r"^log\.csv, line 2 "):
        prudent.count("log.csv", layout="rows", impression="id")
