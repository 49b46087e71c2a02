"""The first and the last day of a log, by its column of times."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from prudent.base.errors import LogError
from prudent.engines.duckdb.engine import DuckDB
from prudent.engines.duckdb.open import INTEGERS, opened
from prudent.logs.log import Log, Table

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = ((1e8, 1e11, 1e6), (1e11, 1e14, 1e3), (1e14, 1e17, 1.0))  # seconds, milliseconds, microseconds since 1970


@dataclass(frozen=True, eq=False)
class _Timed(Table):
    """A log as a table with one column, the time."""

    source: Any
    time: str

    @property
    def columns(self) -> dict[str, str]:
        """The time."""
        return {"time": self.time}


def read_period(log: Log, time: str, engine: DuckDB) -> tuple[str, str]:
    """The first and the last day, in UTC where the column has a time zone or is a Unix time; of text, as it is written.

    Times are dates, timestamps, text of these, or seconds, milliseconds or microseconds since 1970.
    """
    with engine.connect() as connection, opened(connection, _Timed(log.source, time)) as source:
        kind = source.types["time"]
        if kind == "VARCHAR":
            column = f"coalesce(try_cast(time as timestamp), {_from_number('try_cast(time as double)')})"
        elif kind in INTEGERS or kind in ("DOUBLE", "FLOAT"):
            column = _from_number("time::double")
        elif kind.startswith(("DATE", "TIMESTAMP")):
            column = "time" if kind == "TIMESTAMP WITH TIME ZONE" else "time::timestamp"
        else:
            raise LogError(f"The column {time!r} of {log.name} is {kind.lower()}, which is no time.")
        ((first, last, bad),) = connection.execute(
            f"select epoch_us(min(moment)), epoch_us(max(moment)), count(*) filter (moment is null) "
            f"from (select {column} as moment from source)"
        ).fetchall()
    if bad or first is None:
        raise LogError(f"{bad:,} rows of {log.name} have no time in {time!r}, or none that can be read.")
    return _day(first), _day(last)


def _from_number(number: str) -> str:
    units = " ".join(
        f"when {number} >= {low:.0f} and {number} < {high:.0f} then make_timestamp(({number} * {scale:.0f})::bigint)"
        for low, high, scale in _UNITS
    )
    return f"(case {units} end)"


def _day(microseconds: int) -> str:
    return (_EPOCH + timedelta(microseconds=microseconds)).date().isoformat()
