"""The registry of formats for judgments, and what several of them share.

They are `prudent.policies.export.base.Format`s. Their queries read the view `judgments`, which has the columns of
`Judgments` and `number`: that of the context, from 1, in the order of contexts. The table `examination` has `position`
and `p`, where the click model has an examination probability per position.
"""

import duckdb

from prudent.base.spec import Registry
from prudent.policies.export.base import Format, refuse
from prudent.storage.quoting import text

judgment_formats: Registry[Format] = Registry(
    "judgment format", "prudent.judgment_formats", "parts", "prudent.policies.judgments.formats"
)


def json_parts(head: str, context: str, rating: str, tail: str) -> str:
    """A query for the parts of one JSON object with an array of contexts.

    `head` and `tail` are JSON around it; `context` and `rating` are SQL, of one element and of one of its `ratings`.
    """
    return f"""
        select part from (
            select 0 as place, encode({text(head)}) as part
            union all
            select number, encode(case when number = 1 then '' else ',' end || chr(10) || to_json({context})::varchar)
            from (select number, context, list({rating} order by item) as ratings from judgments group by all)
            union all
            select {2**62}, encode({text(tail)})
        )
        order by place
    """


def refuse_lines(connection: duckdb.DuckDBPyConnection, what: str) -> None:
    """Raise where a name has a line break, and a reader of lines would take it for the end of one."""
    for column in ("context", "item"):
        bad = r"regexp_matches(name, '[\x{00}\r\n]')"
        refuse(connection, column, bad, f"has a line break or a NUL byte, which {what} cannot hold.", "judgments")


def csv_parts(header: str, *columns: str) -> str:
    """A query for the lines of a CSV file below a header; `columns` are SQL."""
    return f"""
        select part from (
            select 0 as number, null as item, encode({text(header)} || chr(10)) as part
            union all
            select number, item, encode(concat_ws(',', {", ".join(columns)}) || chr(10)) from judgments
        )
        order by number, item
    """


def quoted(name: str) -> str:
    """SQL for a column as a field of CSV in quotes."""
    return f"""'"' || replace({name}::varchar, '"', '""') || '"'"""
