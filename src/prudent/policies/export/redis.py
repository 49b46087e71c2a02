"""Commands for ``redis-cli --pipe``, for Redis and Valkey: one hash with a list per context."""

import shlex
from dataclasses import dataclass
from pathlib import Path

import duckdb

from prudent.policies.export.base import Format, check_name, formats
from prudent.storage.quoting import text

_DAY = 24 * 60 * 60  # seconds after which what a broken load left behind goes by itself

# Pipes go on after an error, such as memory running out: only the number of lists tells whether all arrived. Both
# names change hands within one script, so that nobody sees the time in between; the old lists are freed later.
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

    The lists are loaded under another key, which no reader knows, and take the place of the old ones in one step, if
    all of them have arrived. So a reader sees the old lists or the new ones; contexts that are gone are gone.
    """

    key: str = "prudent:lists"

    macros = (
        "create temp macro bulk(value) as '$' || strlen(value) || chr(13) || chr(10) || value || chr(13) || chr(10)",
    )

    def __post_init__(self) -> None:
        check_name("key", self.key)

    def parts(self, connection: duckdb.DuckDBPyConnection) -> str:
        """See `Format.parts`."""
        # Loads of two policies at once do not meet under one key. In braces, so that a cluster keeps both together.
        said = "md5_number(concat_ws(chr(0), strlen(context::varchar), context, to_json(items)))"
        ((contexts, digest),) = connection.execute(
            f"select count(*), md5(coalesce(bit_xor({said}), 0)::varchar) from numbered"
        ).fetchall()
        loading = text(f"{{{self.key}}}:loading:{digest}")
        lists = _command("'HSET'", loading, "context::varchar", "to_json(items)::varchar")
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
    """SQL text for a command of these arguments, which are SQL text too."""
    return " || ".join([f"'*{len(arguments)}' || chr(13) || chr(10)", *(f"bulk({one})" for one in arguments)])
