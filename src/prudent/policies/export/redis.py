"""Commands for ``redis-cli --pipe``, for Redis and Valkey: one hash with a list per context."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import duckdb

from prudent.base.errors import UsageError
from prudent.policies.export.base import Format, check_name, formats
from prudent.storage.quoting import text

_DAY = 24 * 60 * 60  # seconds after which the rest of an interrupted load expires

# A pipe continues after an error, such as no memory: only the number of lists shows whether all arrived. The script
# renames in one step, so that no reader sees a state in between; the old lists are freed later.
_SWAP = """\
if redis.call('HLEN', KEYS[1]) ~= tonumber(ARGV[1]) then
  return redis.error_reply('ERR only ' .. redis.call('HLEN', KEYS[1]) .. ' of ' .. ARGV[1] .. \
' lists arrived; the old ones stay')
end
redis.call('UNLINK', KEYS[2])
if tonumber(ARGV[1]) > 0 then
  redis.call('PERSIST', KEYS[1])
  redis.call('RENAME', KEYS[1], KEYS[2])
end
return 'OK'
"""


@formats.register("redis")
@dataclass(frozen=True)
class Redis(Format):
    """The commands, in Redis's protocol, that fill the hash ``key``: fields are contexts, values JSON arrays of items.

    The lists are loaded under a temporary key, and replace the old ones in one step if all of them arrived. A reader
    sees either all old lists or all new ones; contexts without a new list are removed.
    """

    endings = (".resp", ".redis")

    key: str = "prudent:lists"

    macros = (
        "create temp macro bulk(value) as '$' || strlen(value) || chr(13) || chr(10) || value || chr(13) || chr(10)",
    )

    def __post_init__(self) -> None:
        check_name("key", self.key)
        if not self._tagged and "}" in self.key:
            raise UsageError(
                f"key is {self.key!r}; a closing brace belongs to a hash tag, as in {{shop}}:lists. Otherwise the key "
                "and the one that lists are loaded under would be in two slots of a cluster."
            )

    @property
    def _tagged(self) -> bool:
        """Whether the key has a hash tag: text in its first braces, which alone decides on the slot of a cluster."""
        return re.search(r"^[^{]*\{[^}]+\}", self.key) is not None

    def parts(self, connection: duckdb.DuckDBPyConnection) -> str:
        """See `Format.parts`."""
        return self._commands(connection, "to_json(items)")

    def weighted(self, connection: duckdb.DuckDBPyConnection) -> str:
        """See `Format.weighted`: values are JSON objects with ``lists`` and ``probabilities``."""
        return self._commands(connection, "to_json({'lists': lists, 'probabilities': probabilities})")

    def _commands(self, connection: duckdb.DuckDBPyConnection, value: str) -> str:
        # Concurrent loads of two policies use two keys. A hash tag keeps both keys in one slot of a cluster.
        content = f"md5_number(concat_ws(chr(0), strlen(context::varchar), context, {value}))"
        ((contexts, digest),) = connection.execute(
            f"select count(*), md5(coalesce(bit_xor({content}), 0)::varchar) from numbered"
        ).fetchall()
        loading = text(f"{self.key if self._tagged else f'{{{self.key}}}'}:loading:{digest}")
        lists = _command("'HSET'", loading, "context::varchar", f"{value}::varchar")
        expire = _command("'EXPIRE'", loading, f"'{_DAY}'")
        swap = _command("'EVAL'", text(_SWAP), "'2'", loading, text(self.key), f"'{contexts}'")
        return f"""
            select part from (
                select 0 as number, encode({_command("'UNLINK'", loading)}) as part
                union all
                select number, encode({lists} || case when number = 1 then {expire} else '' end) from numbered
                union all
                select {contexts + 1}, encode({swap})
            )
            order by number
        """

    def load(self, path: Path) -> str:
        """See `Format.load`."""
        return f"redis-cli --pipe < {shlex.quote(str(path))}"


def _command(*arguments: str) -> str:
    """SQL text for a command; its arguments are SQL text, too."""
    return " || ".join([f"'*{len(arguments)}' || chr(13) || chr(10)", *(f"bulk({one})" for one in arguments)])
