"""Short reads share a database, and see nothing of each other."""

from unittest import mock

import duckdb
import pytest

from prudent.storage import database
from prudent.storage.database import Database


def test_temporary_tables_are_those_of_a_block() -> None:
    with Database().connect() as one, Database().connect() as other:
        one.execute("create temp table lists as select 1")
        with pytest.raises(duckdb.CatalogException):
            other.execute("from lists")
    with Database().connect() as later, pytest.raises(duckdb.CatalogException):
        later.execute("from lists")


def test_settings_are_those_of_the_caller() -> None:
    for threads in (1, 2, 3):
        with Database(threads=threads).connect() as connection:
            assert connection.execute("select current_setting('threads')").fetchall() == [(threads,)]


def test_a_fatal_error_does_not_reach_the_next_block() -> None:
    broken = mock.Mock()
    broken.cursor.return_value.execute.side_effect = duckdb.FatalException("database has been invalidated")
    fresh = duckdb.connect()
    shared = mock.Mock(side_effect=[broken, fresh])
    with mock.patch.object(database, "_shared", shared), Database().connect() as connection:
        assert connection.execute("select 7").fetchall() == [(7,)]
    shared.cache_clear.assert_called_once()
