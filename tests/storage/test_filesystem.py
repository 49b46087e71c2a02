"""Files on this machine, on a file system that renames folders, and on one that does not, like an object store."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import FileSystem, LocalFileSystem, SubTreeFileSystem

from prudent.base.errors import LogError, UsageError, WriteError
from prudent.storage.files import has_scheme
from prudent.storage.filesystem import (
    Location,
    check_apart,
    exists,
    fetch,
    find,
    first_bytes,
    locate,
    read_footer,
    read_text,
    replacing_folder,
    subfolders,
    total_size,
    write_text,
)

Place = Callable[[str], Location]
KINDS = ["local", "renaming", "object store"]


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Locations in an empty folder or bucket."""
    (tmp_path / "bucket").mkdir()
    if request.param == "local":
        return lambda name: locate(tmp_path / "bucket" / name)
    system: Any = SubTreeFileSystem(str(tmp_path), LocalFileSystem())
    if request.param == "object store":
        system = FileSystem.from_uri("mock:///")[0]
        system.create_dir("bucket")
    return lambda name: locate(f"remote://bucket/{name}", system)


def write(at: Location, column: str = "a") -> None:
    at.system.create_dir(at.path.rpartition("/")[0], recursive=True)
    with at.system.open_output_stream(at.path) as stream:
        pq.write_table(pa.table({column: [1]}), stream)


def names(files: list[Location]) -> list[str]:
    return [file.path.partition("bucket/")[2] for file in files]


def test_names_of_paths_and_uris(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a b/c:d.parquet", f"file:{tmp_path}/a b/c:d.parquet", f"file://{tmp_path}/a b/c:d.parquet"):
        at = locate(name)
        assert (at.name, at.local) == (name, tmp_path / "a b/c:d.parquet")
        assert at.uri == f"file:{tmp_path}/a b/c:d.parquet"
    assert has_scheme("s3a://b/k")
    assert not has_scheme("c:d.parquet")
    assert locate("gs://bucket/a b").path == "bucket/a b"
    for uri in ("nosuch://x/y", "viewfs://nowhere/x"):
        with pytest.raises(UsageError, match=rf"^Cannot open {uri}: .* pass a file system: prudent\.Spark\("):
            locate(uri)


def test_find(place: Place) -> None:
    for name in ("days/b.parquet", "days/one/a.parquet", "days/.hidden.parquet", "days/_x/c.parquet"):
        write(place(name))
    write_text(place("days/b.parquet.manifest.json"), "{}")
    assert names(find(place("days").name, place("").system)) == ["days/b.parquet", "days/one/a.parquet"]
    assert names(find(place("days/b.parquet").name, place("").system)) == ["days/b.parquet"]
    assert names(find(place("da*/*").name, place("").system)) == ["days/b.parquet"]
    assert names(find(place("days/*/a.parquet").name, place("").system)) == ["days/one/a.parquet"]
    for gone in ("gone.parquet", "days/*.csv"):
        with pytest.raises(LogError, match=r"^There is no file "):
            find(place(gone).name, place("").system)
    place("empty").system.create_dir(place("empty").path)
    with pytest.raises(LogError, match=r"holds no \*\.parquet file"):
        find(place("empty").name, place("").system)
    assert subfolders(place("days"), "o") == ["one"]
    assert subfolders(place("nowhere"), "day=") == []


def test_small_files_and_footers(place: Place, tmp_path: Path) -> None:
    assert read_text(place("a.json")) is None
    for content in ("{}\n", '{"é": 1}\n'):
        write_text(place("a.json"), content)
        assert read_text(place("a.json")) == content
    write(place("a.parquet"))
    assert first_bytes(place("a.parquet"), 4) == b"PAR1"
    assert total_size([place("a.parquet")]) > 100
    assert read_footer(place("a.parquet")).num_rows == 1
    (copy,) = fetch([place("a.parquet")], tmp_path)
    assert pq.read_table(copy).to_pydict() == {"a": [1]}
    with pytest.raises(LogError, match=r"^Cannot read .*a\.json: .*\. Write or copy it again: it is damaged\.$"):
        read_footer(place("a.json"))


def test_replacing_a_folder(place: Place) -> None:
    for number in (1, 2):
        with replacing_folder(place("out"), ["a"]) as part:
            assert not exists(place("out")) or number == 2
            write(part.child(f"part-{number}.parquet"))
    assert names(find(place("out").name, place("").system)) == ["out/part-2.parquet"]
    with suppress(RuntimeError), replacing_folder(place("out"), ["a"]) as part:
        write(part.child("part-3.parquet"))
        raise RuntimeError
    assert names(find(place("out").name, place("").system)) == ["out/part-2.parquet"]
    assert not exists(part)


def test_a_failed_copy_leaves_the_old_files(place: Place) -> None:
    write(place("out/part-1.parquet"))
    replacing = replacing_folder(place("out"), ["a"])
    part = replacing.__enter__()
    part.system.delete_dir(part.path)  # nothing is there to rename or copy
    with pytest.raises(WriteError, match="Cannot write"):
        replacing.__exit__(None, None, None)
    assert names(find(place("out").name, place("").system)) == ["out/part-1.parquet"]


@pytest.mark.parametrize(
    ("existing", "reason"),
    [
        ("out", "it is a file, and Spark writes a folder"),
        ("out/mine.txt", r"the folder contains mine\.txt"),
        ("out/part-0.parquet", "its files have the columns a"),
    ],
)
def test_only_our_folders_are_replaced(place: Place, existing: str, reason: str) -> None:
    write(place(existing))
    with pytest.raises(WriteError, match=reason), replacing_folder(place("out"), ["other"]):
        pass
    assert exists(place(existing))


def test_an_output_is_not_its_input(place: Place) -> None:
    for target in ("logs", "logs/day", ""):
        with pytest.raises(UsageError, match="which it is made from"):
            check_apart(place(target), [place("logs")])
    check_apart(place("log"), [place("logs")])
