"""Files wherever Spark reaches them, hdfs://, s3a:// or file:, through the file systems of its Java side."""

import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from prudent.base.errors import LogError, UsageError, WriteError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_ERRORS = (Py4JError, PySparkException)
"""What Java throws, in both of the forms in which it arrives in Python."""


def locate(session: "SparkSession", path: str) -> tuple[Any, Any]:
    """The file system on which a path lies, and the path as this knows it: absolute, with its scheme."""
    java: Any = session._jvm
    place = java.org.apache.hadoop.fs.Path(path)
    system = place.getFileSystem(configuration(session))
    return system, system.makeQualified(place)


def configuration(session: "SparkSession") -> Any:
    """What Java's side knows of file systems, with what was set in this session."""
    return session._jsparkSession.sessionState().newHadoopConf()


def escaped(path: str) -> str:
    r"""A path for Spark, which takes all paths for patterns: ``log[1].csv`` is that file, not ``log1.csv``.

    >>> print(escaped("file:/logs/log[1].csv"))
    file:/logs/log\[1\].csv
    """
    return "".join(f"\\{sign}" if sign in "\\{}[]*?" else sign for sign in path)


def find(session: "SparkSession", name: str) -> list[str]:
    """The files that a path, a folder of Parquet files or a glob names, sorted; an error when there are none."""
    with _reading(name):
        system, place = locate(session, name)
        there = system.exists(place)
        matches = [system.getFileStatus(place)] if there else list(system.globStatus(place) or [])
        found = [file for match in matches for file in _files_of(system, match)]
    # A pattern is not meant for what lies beside an output, nor for what is hidden.
    aside = re.compile(r"[.]manifest[.]json$|/[._][^/]*$")
    kept = found if there else [file for file in found if not aside.search(file)]
    if not kept:
        folders = any(match.isDirectory() for match in matches)
        raise LogError(f"{name} holds no *.parquet file." if folders else f"There is no file {name}.")
    return sorted(kept)


def _files_of(system: Any, status: Any) -> Iterator[str]:
    if not status.isDirectory():
        yield status.getPath().toString()
        return
    inside = system.listFiles(status.getPath(), True)
    while inside.hasNext():
        file = inside.next().getPath()
        below = file.toString().removeprefix(status.getPath().toString())
        # As to Spark, what begins with a dot or an underscore is hidden.
        if below.endswith(".parquet") and "/." not in below and "/_" not in below:
            yield file.toString()


def size(session: "SparkSession", path: str) -> int:
    """Bytes of a file."""
    with _reading(path):
        system, place = locate(session, path)
        return int(system.getFileStatus(place).getLen())


class Footer(NamedTuple):
    """What a Parquet file says of itself."""

    said: dict[str, str]  # by key
    kinds: dict[str, str]  # what each column holds: BINARY, INT64 and so on


def read_footer(session: "SparkSession", path: str) -> Footer:
    """The end of a Parquet file, and nothing else of it."""
    java: Any = session._jvm
    with _reading(path):
        settings = session.sparkContext._jsc.hadoopConfiguration()
        file = java.org.apache.parquet.hadoop.util.HadoopInputFile.fromPath(locate(session, path)[1], settings)
        reader = java.org.apache.parquet.hadoop.ParquetFileReader.open(file)
        try:
            about = reader.getFooter().getFileMetaData()
            columns = [field for field in about.getSchema().getFields() if field.isPrimitive()]
            kinds = {field.getName(): field.asPrimitiveType().getPrimitiveTypeName().toString() for field in columns}
            return Footer(dict(about.getKeyValueMetaData()), kinds)
        finally:
            reader.close()


def first_bytes(session: "SparkSession", path: str, size: int) -> bytes:
    """The first bytes of a file, unzipped."""
    java: Any = session._jvm
    with _reading(path):
        system, place = locate(session, path)
        stream = system.open(place)
        try:
            plain = java.java.util.zip.GZIPInputStream(stream) if path.lower().endswith(".gz") else stream
            return bytes(plain.readNBytes(size))
        finally:
            stream.close()


def day_folders(session: "SparkSession", path: str) -> list[str]:
    """The names of the folders of days in a folder, if there is one."""
    with _reading(path):
        system, place = locate(session, path)
        inside = system.listStatus(place) if system.exists(place) else []
        days = [of for of in inside if of.isDirectory() and of.getPath().getName().startswith("day=")]
        # One without a file in it is what a writer left that was stopped.
        return [of.getPath().getName() for of in days if any(_files_of(system, of))]


def check_apart(session: "SparkSession", target: str, inputs: Sequence[str]) -> None:
    """Stop where an output would take the place of what it is made from."""
    out = locate(session, target)[1].toString().rstrip("/")
    for name in inputs:
        given = locate(session, name)[1].toString().rstrip("/")
        if out == given or out.startswith(f"{given}/") or given.startswith(f"{out}/"):
            raise UsageError(f"{target} would take the place of {name}, from which it is made. Choose another output.")


@contextmanager
def explaining(work: str) -> Iterator[None]:
    """What Java throws while it works, as one line."""
    try:
        yield
    except JAVA_ERRORS as error:
        raise LogError(f"Spark cannot {work}: {_reason(error)}.") from error


def exists(session: "SparkSession", path: str) -> bool:
    """Whether there is a file or folder."""
    with _reading(path):
        system, place = locate(session, path)
        return bool(system.exists(place))


def read_text(session: "SparkSession", path: str) -> str:
    """A small text file."""
    with _reading(path):
        system, place = locate(session, path)
        stream = system.open(place)
        try:
            return bytes(stream.readAllBytes()).decode("utf-8")
        finally:
            stream.close()


def write_text(session: "SparkSession", path: str, text: str) -> None:
    """Write a small text file, whole or not at all; one that is there is replaced."""
    with _writing(path):
        system, place = locate(session, path)
        part = _hidden(session, place)
        stream = system.create(part, True)
        try:
            stream.write(bytearray(text.encode("utf-8")))
        finally:
            stream.close()
        system.delete(place, False)
        _rename(system, part, place)


def fetch(session: "SparkSession", folder: str, target: Path) -> list[Path]:
    """The Parquet files of a folder on this machine: where they are, if they are here, or copied to the target."""
    system, place = locate(session, folder)
    files = find(session, folder)
    if place.toUri().getScheme() == "file":
        return [Path(locate(session, file)[1].toUri().getPath()) for file in files]
    java: Any = session._jvm
    target.mkdir(parents=True, exist_ok=True)
    copies = [target / f"{number}.parquet" for number in range(len(files))]
    with _reading(folder):
        for file, copy in zip(files, copies, strict=True):
            here = java.org.apache.hadoop.fs.Path(f"file:{copy.resolve()}")
            system.copyToLocalFile(False, java.org.apache.hadoop.fs.Path(file), here, True)
    return copies


@contextmanager
def replacing(session: "SparkSession", target: str, columns: Sequence[str]) -> Iterator[str]:
    """A folder to write to; it takes the target's place when the block ends well and vanishes when it does not.

    On this machine and on HDFS renaming is one step: the target is the old folder or the new one, whole, but for the
    moment between two renames, in which it is neither and the old one lies beside it, hidden. An object store such as
    S3 has no renames: files are copied one by one, and who reads in that time may see a part of them.
    """
    with _writing(target):
        system, place = locate(session, target)
        _check_target(session, system, place, target, columns)
        part, old = _hidden(session, place), _hidden(session, place)
        if not system.mkdirs(part):  # now and not after the work
            raise OSError("the folder cannot be made")
    try:
        yield part.toString()
        with _writing(target):
            moved = system.exists(place)
            if moved:
                _rename(system, place, old)
            try:
                _rename(system, part, place)
            except OSError:
                if moved:
                    _rename(system, old, place)
                raise
            system.delete(old, True)
    finally:
        with suppress(*JAVA_ERRORS):
            system.delete(part, True)


@contextmanager
def shared_folder(session: "SparkSession") -> Iterator[str]:
    """A temporary folder that all machines of a cluster see."""
    java: Any = session._jvm
    system, _ = locate(session, "/")
    home = system.getHomeDirectory()
    if home.toUri().getScheme() == "file":
        raise UsageError(
            "The machines of this cluster share no disk that Spark knows of (fs.defaultFS), on which counts could make "
            "their way to this one. Write them to a folder that all can reach: to='s3a://...'."
        )
    place = java.org.apache.hadoop.fs.Path(home, f".prudent-{secrets.token_hex(8)}")
    try:
        yield place.toString()
    finally:
        with suppress(*JAVA_ERRORS):
            system.delete(place, True)


def _check_target(session: "SparkSession", system: Any, place: Any, target: str, columns: Sequence[str]) -> None:
    """Only what has the same columns may be replaced: what is in the folder will be gone."""
    if not system.exists(place):
        return
    if not system.getFileStatus(place).isDirectory():
        raise WriteError(f"Cannot write {target}: it is a file, and Spark writes a folder. Name another, or remove it.")
    inside = [status.getPath().getName() for status in system.listStatus(place)]
    ours = re.compile(r"_SUCCESS|\._SUCCESS\.crc|part-[^/]*\.parquet|\.part-[^/]*\.crc")
    foreign = sorted(name for name in inside if not ours.fullmatch(name))
    if foreign:
        raise WriteError(f"Cannot write {target}: it is a folder with {foreign[0]} in it. Name a new folder.")
    if any(name.startswith("part-") for name in inside):
        there = session.read.parquet(escaped(place.toString())).columns
        if list(there) != list(columns):
            what = ", ".join(there)
            raise WriteError(f"Cannot write {target}: what lies there has the columns {what}. Name a new folder.")


def _hidden(session: "SparkSession", place: Any) -> Any:
    java: Any = session._jvm
    return java.org.apache.hadoop.fs.Path(place.getParent(), f".{place.getName()[:40]}.{secrets.token_hex(4)}.part")


def _rename(system: Any, one: Any, other: Any) -> None:
    if not system.rename(one, other):
        raise OSError(f"{one.getName()} cannot be renamed")


@contextmanager
def _reading(path: str) -> Iterator[None]:
    try:
        yield
    except JAVA_ERRORS as error:
        raise LogError(f"Cannot read {path}: {_reason(error)}.") from error


@contextmanager
def _writing(path: str) -> Iterator[None]:
    try:
        yield
    except (*JAVA_ERRORS, OSError) as error:
        raise WriteError(f"Cannot write {path}: {_reason(error)}. What was there before is untouched.") from error


def _reason(error: Exception) -> str:
    return causes(error)[-1].splitlines()[0].rstrip(".")


def causes(error: Exception) -> list[str]:
    """What Java said, from what was noticed down to what had happened."""
    thrown = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    said = []
    while thrown is not None:
        said.append(str(thrown.getMessage() or thrown.getClass().getSimpleName()))
        thrown = thrown.getCause()
    return said or [str(error) or type(error).__name__]
