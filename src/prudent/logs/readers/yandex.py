"""Yandex's two public click logs: sessions of queries, each with its page of results, and of clicks.

A file becomes a Parquet file of lists in two DuckDB steps: parse lines into records, then assign clicks to pages. Both
files are temporary and may be larger than memory.
"""

import gzip
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import duckdb

from prudent.base.errors import LogError, UsageError, WriteError
from prudent.logs.formats import find_text_files
from prudent.logs.intact import intact
from prudent.logs.log import Log
from prudent.logs.readers.base import readers
from prudent.storage.database import Database, first_line
from prudent.storage.files import TemporaryFolder, reason
from prudent.storage.quoting import file_text, text

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]

PAGE = 10
"""Results per page in both logs."""

_ID = "(?:0|[1-9][0-9]{0,17})"  # no 007, which would become 7, and nothing beyond 64 bits


@dataclass(frozen=True)
class _Format:
    name: str
    line: str  # a pattern for a whole line, with the same meaning in DuckDB and Python
    described: str  # the same, for error messages
    record: str  # SQL: the columns of a record, from the fields of a line


_RELEVANCE = _Format(
    name="yandex",
    line=rf"{_ID}\t{_ID}\t(?:Q\t{_ID}\t{_ID}(?:\t{_ID}){{0,{PAGE}}}|C\t{_ID})",
    described="SessionID TimePassed Q QueryID RegionID URL1 ... URL10, or SessionID TimePassed C URLID",
    record="""
        field[1]::bigint as session,
        field[2]::bigint as time,
        field[3] as kind,
        0 as serp,
        case kind when 'Q' then field[4] || '/' || field[5] end as context,
        case kind when 'Q' then list_transform(field[6:], lambda url: url::bigint) end as items,
        case kind when 'C' then field[4]::bigint end as url,
        null::bigint as day
    """,
)

_PERSONALIZED = _Format(
    name="yandex-personalized",
    line=rf"{_ID}\t(?:M\t{_ID}\t{_ID}|{_ID}\t(?:[QT]\t{_ID}\t{_ID}\t[0-9,]*(?:\t{_ID},{_ID}){{0,{PAGE}}}|C\t{_ID}\t{_ID}))",
    described=(
        "SessionID M Day USERID, or SessionID TimePassed Q SERPID QueryID TERM,TERM,... URLID,DomainID (10 times), or "
        "SessionID TimePassed C SERPID URLID"
    ),
    record="""
        field[1]::bigint as session,
        case when field[2] <> 'M' then field[2]::bigint end as time,
        case when field[2] <> 'M' then field[3] else 'M' end as kind,
        case when kind <> 'M' then field[4]::bigint end as serp,
        case when kind in ('Q', 'T') then field[5]::bigint end as context,
        case kind when 'Q' then list_transform(field[7:], lambda pair: split_part(pair, ',', 1)::bigint) end as items,
        case kind when 'C' then field[5]::bigint end as url,
        case kind when 'M' then field[3]::bigint end as day
    """,
)


@readers.register("yandex")
def read_yandex(source: Paths, *, engine: Database | None = None) -> Log:
    """Read the log of Yandex's relevance-prediction challenge (2011) as a `Log`.

    ``source`` is a file, a glob or several of them, gzipped or not, with tab-separated lines
    ``SessionID TimePassed Q QueryID RegionID URL1 ... URL10`` and ``SessionID TimePassed C URLID``. The context is
    query and region, as the text ``"123/7"``; items are the numbers of urls.

    A click belongs to the last query before it in its session, by time and then by line, whose page has the url.
    Other clicks are counted in ``left_out``. Sessions do not span files: the same id in another file is another
    session.
    """
    return _read(source, _RELEVANCE, engine or Database())


@readers.register("yandex-personalized")
def read_yandex_personalized(
    source: Paths, *, days: tuple[int, int] | None = None, engine: Database | None = None
) -> Log:
    """Read the log of Yandex's Personalized Web Search Challenge (Kaggle, 2013) as a `Log`.

    ``source`` is as in `read_yandex`, with the lines ``SessionID M Day USERID``, ``SessionID TimePassed Q SERPID
    QueryID ListOfTerms URLID,DomainID ...`` and ``SessionID TimePassed C SERPID URLID``. The context is the query,
    items are the numbers of urls; terms, domains and users are not kept. ``days=(1, 23)`` reads the sessions of
    these days, inclusive.

    A click belongs to the page that it names, if that was shown before in the session and has the url. Other clicks,
    and test queries (``T``), whose clicks are not public, are counted in ``left_out``.
    """
    if days is not None and (len(days) != 2 or days[0] > days[1]):
        raise UsageError(f"days is {days!r}; it is the first and the last day, such as days=(1, 23).")
    return _read(source, _PERSONALIZED, engine or Database(), days)


def _read(source: Paths, format_: _Format, base: Database, days: tuple[int, int] | None = None) -> Log:
    files = find_text_files(source)
    folder = TemporaryFolder()
    lists = [folder.path / f"{number}.parquet" for number in range(len(files))]
    left_out: Counter[str] = Counter()
    for file, target in zip(files, lists, strict=True):  # sessions do not span files
        left_out.update(_convert(file, format_, base, days, target))
    counted = {what: n for what, n in left_out.items() if n}
    return Log(lists, origin=tuple(map(str, files)), left_out=counted, _folder=folder)


def _convert(file: Path, format_: _Format, base: Database, days: tuple[int, int] | None, lists: Path) -> dict[str, int]:
    """Write the lists of one file; return how many records were left out, by reason."""
    records = lists.with_name("records.parquet")
    with intact([file]), base.connect(spill=lists.parent) as connection:
        try:
            connection.execute(f"copy ({_records(file, format_)}) to {text(records)} (format parquet)")
            if connection.execute(f"select 1 from {file_text(records)} where session is null limit 1").fetchone():
                raise LogError(_fault(file, format_) or f"{file} changed while it was read. Read it again.")
            connection.execute("set preserve_insertion_order = false")  # records are numbered from here on
            for step in _steps(records, days):
                connection.execute(step)
            connection.execute(f"copy ({_LISTS}) to {text(lists)} (format parquet)")
            ((clicks, queries, dayless),) = connection.execute(_LEFT_OUT).fetchall()
        except duckdb.Error as error:
            raise _explain(error, file, format_) from error
        finally:
            records.unlink(missing_ok=True)
    return {
        "clicks outside their list": clicks,
        "test queries": queries,
        "queries without a day": dayless if days is not None else 0,
    }


# --- the two steps ------------------------------------------------------------------------------------------------


def _records(file: Path, format_: _Format) -> str:
    """One row per line, in the order of the file; its session is null where the line is not of the format."""
    # Not an error within the query: DuckDB 2.0 can wait for ever when a thread fails while another writes a row group.
    # A line is one column of text: sniffed dialects lose rows, and DuckDB reads 1.5 as the integer 2.
    zipped = "gzip" if file.suffix.lower() == ".gz" else "none"
    lines = (
        f"read_csv({file_text(file)}, auto_detect = false, header = false, columns = {{line: 'VARCHAR'}}, "
        f"delim = '\x01', quote = '', escape = '', compression = '{zipped}', strict_mode = true)"
    )
    return f"""
        with lines as (
            select case when regexp_full_match(line, {text(format_.line)}) then string_split(line, '\t') end as field
            from {lines}
            where line is not null
        )
        select {format_.record} from lines
    """


def _steps(records: Path, days: tuple[int, int] | None) -> list[str]:
    wanted = "true" if days is None else "session in (from sessions)"
    first, last = days or (0, 0)
    read = f"read_parquet({file_text(records)}, file_row_number = true, hive_partitioning = false)"
    return [
        f"create temp view records as from {read}",
        f"create temp view sessions as select session from records where day between {first:d} and {last:d}",
        f"""
            create temp view pages as
            select file_row_number as page, session, serp, time, context, list_resize(items, {PAGE}) as items
            from records
            where kind = 'Q' and {wanted}
        """,
        f"""
            create temp view clicks as
            select file_row_number as click, session, serp, time, url
            from records
            where kind = 'C' and {wanted}
        """,
        f"create temp view test_queries as from records where kind = 'T' and {wanted}",
        # The page of a click is the last that it may belong to. Time, page and position are packed into one number
        # whose maximum is the latest page.
        f"""
            create temp table clicked as
            with landed as (
                select max(pages.time::hugeint * {10**18} + page * {PAGE} + list_position(items, url) - 1) as spot
                from clicks join pages using (session, serp)
                where list_contains(items, url)
                  and (pages.time < clicks.time or (pages.time = clicks.time and page < click))
                group by click
            )
            select (spot % {10**18} // {PAGE})::bigint as page, bit_or(1 << (spot % {PAGE})::integer) as spots,
                count(*) as clicks
            from landed
            group by page
        """,
    ]


_LISTS = f"""
    select context, items, list_transform(range({PAGE}), lambda i: (coalesce(spots, 0) >> i & 1)::utinyint) as clicks
    from pages left join clicked using (page)
"""

_LEFT_OUT = """
    select
        (select count(*) from clicks) - (select coalesce(sum(clicks), 0)::bigint from clicked),
        (select count(*) from test_queries),
        (select count(*) from records
         where kind = 'Q' and session not in (select session from records where kind = 'M'))
"""


# --- errors -------------------------------------------------------------------------------------------------------


def _explain(error: duckdb.Error, file: Path, format_: _Format) -> LogError | WriteError:
    """The error with the line that caused it, or else with DuckDB's own message."""
    message = str(error)
    if isinstance(error, duckdb.OutOfMemoryException):
        return LogError(f"Reading {file} needs more memory than allowed: {first_line(error)} Raise --memory.")
    if "Could not write" in message or "No space left" in message:
        return WriteError(
            f"Cannot write temporary files while reading {file}: {reason(error)}. Set TMPDIR to a folder with space."
        )
    fault = _fault(file, format_)
    if fault is None and "invalid state" in message:
        fault = f"{file} mixes line endings (\\n and \\r\\n). Use one line ending."
    return LogError(fault or f"Cannot read {file}: {first_line(error)}")


def _fault(file: Path, format_: _Format) -> str | None:
    pattern = re.compile(format_.line.encode())
    try:
        with gzip.open(file) if file.suffix.lower() == ".gz" else file.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                line = line.removeprefix(b"\xef\xbb\xbf" if number == 1 else b"").rstrip(b"\r\n")
                if line and not pattern.fullmatch(line):
                    shown = line[:60].decode(errors="replace")
                    return (
                        f"{file}, line {number} is not of the format {format_.name}: {shown!r}. Its lines are "
                        f"{format_.described}; separated by tabs, with integer ids. Fix or remove it."
                    )
    except (OSError, EOFError, zlib.error) as error:
        return f"Cannot read {file}: {error}. The file is damaged: write or copy it again."
    return None
