"""Results as rows: one for each thing measured, with the means over repetitions and their standard errors."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from prudent.base.arrays import FloatArray
from prudent.base.numerics.paired import TINY, standard_error
from prudent.engines.duckdb.engine import DuckDB
from prudent.research.protocol import Protocol
from prudent.storage.files import replacing
from prudent.storage.manifest import Manifest
from prudent.storage.parquet import write_parquet
from prudent.storage.quoting import file_text, text


@dataclass(frozen=True)
class Arm:
    """What an error belongs to."""

    data: str
    logging: str
    model: str
    method: str
    delta: float | None
    n: int


_KEYS = tuple(field.name for field in fields(Arm))


@dataclass(frozen=True)
class Row(Arm):
    """The error of an arm, on average over repetitions; its fields are the columns of a table."""

    error: float
    se: float
    repetitions: int


@dataclass(frozen=True, eq=False)
class Results:
    """The errors of one protocol: a row for each repetition (or block of contexts in it), a column for each arm."""

    protocol: Protocol
    errors: FloatArray

    def rows(self) -> list[Row]:
        """Mean and standard error of every arm."""
        return [self.row(number) for number in range(len(self.protocol.arms))]

    def row(self, arm: int) -> Row:
        """Mean and standard error of one arm."""
        method, delta = self.protocol.arms[arm]
        return self._row(method, delta, self.errors[:, arm])

    def of(self, method: str, delta: float | None = None) -> FloatArray:
        """The errors of one arm, repetition by repetition."""
        return np.asarray(self.errors[:, self.protocol.arms.index((method, delta))])

    def difference(self, base: str, method: str, delta: float | None) -> Row:
        """How much smaller the error of a method is than that of a base that knows no δ; the error is paired."""
        return self._row(method, delta, self.of(base) - self.of(method, delta))

    def _row(self, method: str, delta: float | None, errors: FloatArray) -> Row:
        protocol = self.protocol
        return Row(
            protocol.data,
            protocol.logging,
            protocol.label or str(protocol.model),
            method,
            delta,
            protocol.n,
            float(errors.mean()),
            standard_error(errors),
            len(errors) // protocol.blocks,
        )


def paired_ratio(errors: FloatArray, others: FloatArray) -> tuple[float, float]:
    """The ratio of two mean errors on the same logs, and its standard error; NaN where the other is 0.

    To first order a ratio r = x̄/ȳ moves by the mean of (x − r·y)/ȳ: what both have in common cancels.
    """
    base = float(others.mean())
    if not base > TINY:
        return float("nan"), float("nan")
    ratio = float(errors.mean()) / base
    return ratio, standard_error(errors - ratio * others) / base


def write_rows(rows: Sequence[Row], path: Path, manifest: Manifest | None = None) -> None:
    """Write rows to a Parquet file, with the manifest in its footer, and to a CSV file beside it."""
    columns = {f.name: _column([getattr(row, f.name) for row in rows]) for f in fields(Row)}
    _write(columns, path, path.with_suffix(".csv"), manifest=manifest)


def write_repetitions(results: Iterable[Results], path: Path, manifest: Manifest | None = None) -> None:
    """Write the error of every arm in every repetition, for paired comparisons."""
    parts: dict[str, list[Any]] = {name: [] for name in (*_KEYS, "repetition", "error")}
    for result in results:
        for number in range(len(result.protocol.arms)):
            row = result.row(number)
            size = len(result.errors)
            for name in _KEYS:
                parts[name] += [getattr(row, name)] * size
            parts["repetition"] += range(1, size + 1)
            parts["error"] += result.errors[:, number].tolist()
    columns = {name: _column(values) for name, values in parts.items()}
    _write(columns, path, manifest=manifest)


def _column(values: Sequence[Any]) -> np.ndarray:
    if any(isinstance(value, float) or value is None for value in values):
        return np.array([np.nan if value is None else value for value in values], float)
    return np.array(values)


def write_texts(columns: Mapping[str, Sequence[str]], path: Path) -> None:
    """Write columns of text to a Parquet file and to a CSV file beside it."""
    _write({name: np.array(values, dtype=object) for name, values in columns.items()}, path, path.with_suffix(".csv"))


def _write(columns: Mapping[str, np.ndarray], *paths: Path, manifest: Manifest | None = None) -> None:
    # NaN stands for "no such thing" in arrays; in files that is null.
    gaps = [name for name in ("delta", "se") if name in columns]
    tidy = ", ".join(f"case when isnan({name}) then null else {name} end as {name}" for name in gaps)
    for path in paths:
        # One thread: where row groups end must not depend on how many there are.
        with replacing(path) as part, DuckDB(threads=1).connect() as connection:
            connection.register("results", dict(columns))
            query = f"select * {f'replace ({tidy})' if tidy else ''} from results"
            if path.suffix == ".parquet":
                write_parquet(connection, query, part, footer={} if manifest is None else manifest.footer)
            else:
                connection.execute(f"copy ({query}) to {text(part)} (format csv, header)")


def read_repetitions(path: Path) -> dict[Arm, FloatArray]:
    """What `write_repetitions` wrote: the errors of every arm, repetition by repetition, in the order of the file."""
    keys = ", ".join(_KEYS)
    with DuckDB(threads=1).connect() as connection:
        rows = connection.execute(
            f"select {keys}, list(error order by repetition) from (select *, row_number() over () as row "
            f"from read_parquet({file_text(path)})) group by {keys} order by min(row)"
        ).fetchall()
    return {Arm(*row[:-1]): np.array(row[-1], float) for row in rows}
