"""The file of Solr's query elevation component: for each context of a policy, its items on top."""

import shlex
from dataclasses import dataclass
from pathlib import Path

import duckdb

from prudent.policies.export.base import Format, formats, refuse

_NO_XML = r"[\x00-\x08\x0B\x0C\x0E-\x1F\x{FFFE}\x{FFFF}]"
"""Characters that XML 1.0 does not have, not even escaped."""


@formats.register("solr")
@dataclass(frozen=True)
class Solr(Format):
    """``elevate.xml``: each context is a ``query`` whose ``doc`` elements are the items of its list, from the top."""

    macros = (
        # A parser turns line breaks and tabs of attributes into blanks unless they are written as references.
        """
            create temp macro xml(value) as replace(replace(replace(replace(replace(replace(replace(
                value, '&', '&amp;'), '<', '&lt;'), '>', '&gt;'), '"', '&quot;'),
                chr(9), '&#9;'), chr(10), '&#10;'), chr(13), '&#13;')
        """,
    )

    def parts(self, connection: duckdb.DuckDBPyConnection) -> str:
        """See `Format.parts`."""
        for column in ("context", "item"):
            refuse(
                connection,
                column,
                f"name = '' or regexp_matches(name, '{_NO_XML}')",
                "is empty or has a character that XML cannot hold.",
            )
        docs = """list_transform(items, lambda item: '    <doc id="' || xml(item::varchar) || '"/>' || chr(10))"""
        return f"""
            select part from (
                select 0 as number,
                    encode('<?xml version="1.0" encoding="UTF-8"?>' || chr(10) || '<elevate>' || chr(10)) as part
                union all
                select number, encode(
                    '  <query text="' || xml(context::varchar) || '">' || chr(10)
                    || array_to_string({docs}, '') || '  </query>' || chr(10)
                ) from numbered
                union all
                select (select count(*) + 1 from numbered), encode('</elevate>' || chr(10))
            )
            order by number
        """

    def load(self, path: Path) -> str:
        """See `Format.load`."""
        return f"solr zk cp {shlex.quote(f'file:{path}')} zk:/configs/CONFIGSET/elevate.xml -z ZOOKEEPER"
