"""Examination probabilities and their inverses, for rankers that are trained on clicks rather than on judgments."""

from dataclasses import dataclass

import duckdb

from prudent.base.errors import PolicyError
from prudent.policies.export.base import Format
from prudent.policies.judgments.formats.base import judgment_formats


@judgment_formats.register("propensities")
@dataclass(frozen=True)
class Propensities(Format):
    """CSV with the columns ``position,examination,weight``: the fitted p of each position, and 1/p.

    For rankers that are trained on the clicks of a log, one row per impression: join it by position, and weight clicks
    by ``weight``. It also is what LightGBM (``position`` of a dataset) and XGBoost (``lambdarank_unbiased``) estimate
    themselves from position and clicks, to compare. Judgments need no such weight: positions are accounted for. Only
    click models with an examination probability per position, such as ``pbm``, have it. A position that nobody examines
    has no weight.
    """

    def parts(self, connection: duckdb.DuckDBPyConnection) -> str:
        """See `Format.parts`."""
        ((positions,),) = connection.execute("select count(*) from examination").fetchall()
        if not positions:
            raise PolicyError(
                "The click model of these judgments has no fitted examination probability per position. Judge with one "
                "that does: prudent judge --model pbm."
            )
        line = "concat(position, ',', p, ',', case when p > 0 then round(1 / p, 6) end, chr(10))"
        return f"""
            select encode(line) from (
                select 0 as position, 'position,examination,weight' || chr(10) as line
                union all
                select position, {line} from examination
            )
            order by position
        """
