"""Every sentence of SECURITY.md under *What prudent guarantees*, each with the tests that hold it."""

import ast
import re
import socket
from functools import cache
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import prudent
from prudent.storage.database import Database
from tests.command import run_process
from tests.strategies import table

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src/prudent").rglob("*.py"))
LISTS = [("shoes", ("a", "b"), (1, 0)), ("hats", ("b",), (0,))]

HELD = {
    "Column names and paths reach SQL through one quoting function each, or as bound values.": [
        "tests/test_security.py::test_columns_and_paths_are_names"
    ],
    "Logs, counts and policies are read by a DuckDB that neither installs nor loads extensions by itself.": [
        "tests/test_security.py::test_no_extension_is_installed_or_loaded"
    ],
    "`--memory` limits it.": ["tests/test_security.py::test_memory_is_limited"],
    "Nothing is unpickled and no YAML is read.": ["tests/test_security.py::test_nothing_that_is_read_can_run"],
    "Manifests are JSON.": ["tests/storage/test_manifest.py::test_written_and_read_back"],
    "Control characters in names are escaped before they reach a terminal.": [
        "tests/cli/test_cli.py::test_names_are_shown_and_not_obeyed",
        "tests/policies/test_diff.py::test_names_are_shown_and_not_obeyed",
    ],
    "Names in reports and exports are always escaped.": [
        "tests/reporting/test_render.py::test_no_name_becomes_markup",
        "tests/contract/test_exports.py::test_any_policy_is_held_or_refused",
    ],
    "No command uses the network, unless it is given a path on an object store, such as `s3://`, or `--engine spark` "
    "with remote paths or a remote master.": [
        "tests/test_security.py::test_nobody_is_called",
        "tests/test_security.py::test_no_module_knows_the_network",
    ],
    "Outputs are written to a temporary file in the same folder and renamed when they are complete.": [
        "tests/storage/test_files.py::test_killed_at_any_moment",
        "tests/storage/test_files.py::test_full_disk",
    ],
    "On an object store they are uploaded in one step.": [
        "tests/storage/test_object_store.py::test_a_failure_leaves_what_was_there"
    ],
}


def test_every_sentence_has_a_test() -> None:
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    section = page.partition("## What prudent guarantees")[2].partition("\n## ")[0]
    points = [" ".join(point.split()) for point in re.findall(r"^- (.*(?:\n  .*)*)", section, re.MULTILINE)]
    sentences = [sentence for point in points for sentence in re.split(r"(?<=\.) (?=[A-Z`])", point)]
    assert sentences == list(HELD)
    for tests in HELD.values():
        for file, _, name in (test.partition("::") for test in tests):
            assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), f"{file} has no {name}"


def test_there_is_a_contact() -> None:
    assert "private vulnerability report" in (ROOT / "SECURITY.md").read_text(encoding="utf-8")


HOSTILE = ["x'; drop table shown; --", 'x"; drop table shown; --', "$1", "a\nb", "../x", "*"]


@pytest.mark.parametrize("name", HOSTILE)
def test_columns_and_paths_are_names(name: str, tmp_path: Path) -> None:
    log = table(LISTS).rename_columns([name, "items", "clicks"])
    file = tmp_path / f"{name.replace('/', ' ').replace('*', ' ')}.parquet"
    pq.write_table(log, file)
    assert prudent.count(prudent.Log(file, context=name)) == prudent.count(prudent.Log(table(LISTS)))


def test_no_extension_is_installed_or_loaded() -> None:
    with Database().connect() as connection:
        for setting in ("autoinstall_known_extensions", "autoload_known_extensions"):
            assert connection.execute(f"select current_setting('{setting}')").fetchall() == [(False,)]
        loaded = connection.execute("select extension_name from duckdb_extensions() where loaded").fetchall()
    assert not {"httpfs", "aws", "azure", "postgres_scanner", "sqlite_scanner"} & {name for (name,) in loaded}


def test_memory_is_limited() -> None:
    with Database(memory="100MB").connect() as connection:
        assert connection.execute("select current_setting('memory_limit')").fetchall() == [("95.3 MiB",)]


@cache
def modules() -> list[tuple[Path, ast.Module]]:
    return [(file, ast.parse(file.read_text(encoding="utf-8"))) for file in SOURCES]


def imported(tree: ast.Module) -> set[str]:
    """The modules that a module imports, anywhere in it; urllib.parse takes paths apart and calls nobody."""
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in names if name != "urllib.parse"}


def test_nothing_that_is_read_can_run() -> None:
    for file, tree in modules():
        assert not imported(tree) & {"pickle", "cPickle", "dill", "marshal", "shelve", "joblib", "yaml"}, file
        called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and hasattr(node.func, "id")}
        assert not called & {"eval", "exec", "compile", "__import__"}, file
        text = file.read_text(encoding="utf-8")
        assert "allow_pickle=True" not in text, file


def test_no_module_knows_the_network() -> None:
    for file, tree in modules():
        assert not imported(tree) & {"socket", "urllib", "http", "requests", "httpx", "ftplib", "smtplib"}, file


@pytest.mark.parametrize("scheme", ["http", "https", "hdfs", "hf"])
def test_nobody_is_called(scheme: str, tmp_path: Path) -> None:
    """A path on another host is an error, and that host hears nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.05)
        path = f"{scheme}://127.0.0.1:{server.getsockname()[1]}/log.parquet"
        ran = run_process("count", path, "-o", "x.parquet", folder=tmp_path)
        assert ran.code == 3, ran.text
        with pytest.raises(TimeoutError):
            server.accept()
