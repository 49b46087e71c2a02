"""Blocks use a database one after the other, and see nothing of each other."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

import duckdb
import pytest

from prudent.storage import database
from prudent.storage.database import Database
from tests.command import run_apart


def test_a_block_finds_neither_tables_nor_settings_of_another(tmp_path: Path) -> None:
    with Database().connect() as one, Database().connect(spill=tmp_path) as two:
        for connection in (one, two):
            connection.execute("create temp table lists as select 1")
            connection.execute("set preserve_insertion_order = false")
    for spill in (None, tmp_path, None):
        with Database().connect(spill=spill) as connection:
            with pytest.raises(duckdb.CatalogException):
                connection.execute("from lists")
            settings = "current_setting('preserve_insertion_order'), current_setting('temp_directory')"
            ((ordered, folder),) = connection.execute(f"select {settings}").fetchall()
            assert (ordered, Path(folder).is_relative_to(tmp_path)) == (True, spill is not None)
    assert list(tmp_path.iterdir()) == []


def test_settings_are_those_of_the_caller() -> None:
    for threads in (1, 2, 1):
        with Database(threads=threads).connect() as connection:
            assert connection.execute("select current_setting('threads')").fetchall() == [(threads,)]


def test_one_that_spilled_or_broke_is_not_used_again(tmp_path: Path) -> None:
    small = Database(memory="40MB", threads=1)
    with small.connect(spill=tmp_path) as connection:
        connection.execute("create temp table lists as select i, md5(i::varchar) as name from range(2000000) t(i)")
        assert list(tmp_path.glob("*/spill-*"))
    assert not database._idle.get(small)
    assert list(tmp_path.iterdir()) == []
    broken = mock.Mock()
    broken.execute.side_effect = duckdb.FatalException("database has been invalidated")
    with mock.patch.dict(database._idle, {Database(): [broken]}), Database().connect() as connection:
        assert connection.execute("select 7").fetchall() == [(7,)]


def test_threads_have_one_each() -> None:
    def use(number: int) -> list[tuple[int, ...]]:
        with Database(threads=1).connect() as connection:
            connection.execute(f"create temp table lists as select {number}")
            return connection.execute("from lists").fetchall()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(use, range(60))) == [[(number,)] for number in range(60)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_fork_inherits_none() -> None:
    code = (
        "import os, sys\nfrom prudent.storage.database import Database\n"
        "with Database().connect() as connection: connection.execute('select 1').fetchall()\n"
        "if (child := os.fork()) == 0: sys.exit(0)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))"
    )
    assert run_apart([sys.executable, "-c", code], timeout=60).returncode == 0
