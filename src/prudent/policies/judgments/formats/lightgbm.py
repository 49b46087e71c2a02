"""Labels and weights for rankers of LightGBM and XGBoost."""

from dataclasses import dataclass

import duckdb

from prudent.policies.export.base import Format
from prudent.policies.judgments.formats.base import csv_parts, judgment_formats, quoted, refuse_lines

_EXACT = "decimal(38, 12)"  # sums of decimals are the same in any order


@judgment_formats.register("lightgbm")
@dataclass(frozen=True)
class LightGbm(Format):
    """CSV with the columns ``label,weight,qid,item,context`` to join features to, sorted by qid.

    For LightGBM these are ``label_column=name:label``, ``weight_column=name:weight`` and ``group_column=name:qid``,
    and item and context are in ``ignore_column``. The weight is the information in the log about the item:
    ``max(0, 1 − σ²/v)``, with σ the posterior standard deviation of the item and v the variance of attraction over all
    items, ``Var(mean) + E(σ²)``. It is 0 for an item that was never examined and nears 1 with its impressions.
    """

    def parts(self, connection: duckdb.DuckDBPyConnection) -> str:
        """See `Format.parts`."""
        refuse_lines(connection, "a line of CSV here")
        means = [f"avg(({value})::{_EXACT})" for value in ("mean * mean", "mean", "deviation * deviation")]
        ((square, mean, noise),) = connection.execute(f"select {', '.join(means)} from judgments").fetchall()
        variance = max(float(square) - float(mean) ** 2 + float(noise), 1e-12)
        weight = f"round(greatest(0, 1 - deviation * deviation / {variance!r}::double), 6)"
        return csv_parts("label,weight,qid,item,context", "grade", weight, "number", quoted("item"), quoted("context"))
