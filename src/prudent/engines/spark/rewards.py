"""What a task of Spark does with rewards: check its lists as DuckDB does, and add up what they earned.

Needs pyarrow.
"""

from pathlib import Path

import duckdb
import pyarrow as pa

from prudent.engines.duckdb.rewards import sums_of, write_sums
from prudent.engines.sql import rules

_SUMS = 1_000_000  # rows of sums, of which those of the same pair are then added up


class Rewards:
    """The sums of rewards of a task's lists, batch by batch, in the table `rewarded` of a database."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, schema: pa.Schema, *, max_positions: int, text_files: bool
    ) -> None:
        text = [name for name in ("context", "items") if text_files and _is_text(schema.field(name).type)]
        self._connection = connection
        self._why = rules.rejection(max_positions, text=text, rewards=True)
        self._rows, self._most = 0, _SUMS

    def take(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Add the rewards of a batch; the batch without them, where the fault of a list is why it is rejected."""
        connection = self._connection
        connection.register("lists", pa.Table.from_batches([batch]))
        connection.execute(
            f"create or replace temp table checked as select *, ({self._why})::integer as reason from lists"
        )
        connection.unregister("lists")
        sums = sums_of("checked")
        connection.execute(f"create temp table if not exists rewarded as from ({sums}) limit 0")
        self._rows += int(connection.execute(f"insert into rewarded {sums}").fetchall()[0][0])
        if self._rows > self._most:
            self._add_up()
        reasons = connection.execute("select reason from checked order by rowid").fetchnumpy()["reason"]
        fault = batch.schema.get_field_index("fault")
        return batch.set_column(fault, "fault", pa.array(reasons, pa.int32())).drop_columns(["rewards"])

    def _add_up(self) -> None:
        """Make one row of each pair, which bounds the memory by that of pairs."""
        sums = "sum(reward) as reward, sum(reward_squares) as reward_squares"
        self._connection.execute(
            f"create or replace temp table rewarded as select context, item, {sums} from rewarded group by all"
        )
        self._rows = int(self._connection.execute("select count(*) from rewarded").fetchall()[0][0])
        self._most = max(_SUMS, 2 * self._rows)

    def write(self, to: Path) -> None:
        """Write a row for each pair of the batches."""
        write_sums(self._connection, to)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind.value_type if pa.types.is_list(kind) else kind))
