"""Names, images and links of items, and names of contexts, from a table that the user has.

The table is untrusted. Names are text; a link leads to an http or https address or is left out; an image is a file of
pixels in the folder of the table, embedded by its first bytes and never by its name, or, only where the user asks for
it, an address that the browser loads.
"""

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import duckdb

from prudent.base.errors import LogError
from prudent.base.text import visible
from prudent.engines.duckdb.engine import DuckDB
from prudent.engines.duckdb.open import name_as, opened
from prudent.logs.formats import find_files
from prudent.logs.log import Table
from prudent.policies.explain import as_column
from prudent.policies.lookup import Name

MOST_BYTES = 50_000
"""Of one image."""
BUDGET = 2_000_000
"""Of all images, which become a third larger in the page."""
_LONGEST_LINK = 2_000
_OPTIONAL = ("name", "image", "link")
_KEYS = ("item", "context")
_PIXELS = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "image/webp"),
    (re.compile(rb"....ftypavi[fs]", re.DOTALL), "image/avif"),
)


@dataclass(eq=False)
class _Names(Table):
    """A table with the column item, context or both, and any of name, image and link."""

    source: Any
    known: set[str] = field(default_factory=lambda: {*_KEYS, *_OPTIONAL})  # columns that it has

    @property
    def columns(self) -> dict[str, str]:
        """Those that it has."""
        return {name: name for name in (*_KEYS, *_OPTIONAL) if name in self.known}

    def check_columns(self, columns: Iterable[str], where: str) -> None:
        """Raise `LogError` unless names can be read from these columns; the others are not."""
        columns = list(columns)
        self.known &= set(columns)
        if not self.known.intersection(_KEYS) or not self.known.intersection(_OPTIONAL):
            raise LogError(
                f"{where} has no names: it needs a column item or context, and any of name, image and link. It has: "
                f"{', '.join(columns) or 'no columns at all'}."
            )
        super().check_columns(columns, where)


@dataclass(frozen=True)
class Label:
    """What the table says of an item, as it is written there."""

    name: str = ""
    image: str = ""
    link: str = ""


_NOTHING = Label()


class Labels:
    """What is shown for items and contexts, and how much of it was left out."""

    def __init__(self, table: Any = None, *, remote_images: bool = False, engine: DuckDB | None = None) -> None:
        self.remote_images = remote_images
        self.files: Sequence[Path] = ()
        self._left_out: dict[str, set[str]] = {}
        self._folder = Path()
        self._bytes = 0
        self._images: dict[Path, str] = {}
        self._connection: duckdb.DuckDBPyConnection | None = None
        if table is not None:
            self._connection = (engine or DuckDB()).open()
            self._read(self._connection, _Names(table))

    def __bool__(self) -> bool:
        return self._connection is not None

    def _read(self, connection: duckdb.DuckDBPyConnection, table: _Names) -> None:
        if table.in_files:
            self.files = find_files(table.source)
            self._folder = self.files[0].resolve().parent
        with opened(connection, table) as source:
            columns = ["null::varchar as " + one for one in (*_KEYS, *_OPTIONAL) if one not in table.known]
            for one, kind in source.types.items():
                column = name_as(one, kind, table) if one in _KEYS else one
                columns.append(f"{column}::varchar as {one}")
            connection.execute(f"create temp table labels as select {', '.join(columns)} from source")
        ((both,),) = connection.execute(
            "select count(*) from labels where item is not null and context is not null"
        ).fetchall()
        if both:
            raise LogError(f"{both:,} rows of {table.name} name an item and a context: write a row for each.")
        for key in _KEYS:
            query = f"select {key} from labels where {key} is not null group by {key} having count(*) > 1"
            ((first,),) = connection.execute(f"select min({key}) from ({query})").fetchall()
            if first is not None:
                raise LogError(f"{table.name} has several rows for the {key} {visible(first)!r}. Keep one.")

    def of_items(self, items: Iterable[Name]) -> dict[Name, Label]:
        """What the table says of these items; nothing of those that it does not have."""
        return {name: Label(*(one or "" for one in row)) for name, row in self._rows("item", items)}

    def of_contexts(self, contexts: Iterable[Name]) -> dict[Name, str]:
        """The names of these contexts, as far as the table has them."""
        return {name: visible(row[0]) for name, row in self._rows("context", contexts) if row[0]}

    def _rows(self, key: str, wanted: Iterable[Name]) -> list[tuple[Name, Sequence[str | None]]]:
        by_text = {str(name): name for name in wanted}
        if self._connection is None or not by_text:
            return []
        self._connection.register("wanted", {key: as_column([*by_text])})
        query = f"select {key}, {', '.join(_OPTIONAL)} from labels semi join wanted using ({key})"
        rows = {one: rest for one, *rest in self._connection.execute(query).fetchall()}
        self._connection.unregister("wanted")
        return [(name, rows[one]) for one, name in by_text.items() if one in rows]

    def shown(self, item: Name, labels: Mapping[Name, Label]) -> dict[str, str]:
        """An item as a page shows it: ``item``, ``name``, ``link`` and ``image``, empty where there is none."""
        label = labels.get(item, _NOTHING)
        name = visible(label.name) if label.name else ""
        return {"item": visible(item), "name": name, "link": self.link(label), "image": self.image(label)}

    def link(self, label: Label) -> str:
        """The link, if it is an address."""
        if not label.link or is_address(label.link):
            return label.link
        return self._leave_out("links that are not http or https addresses", label.link)

    def image(self, label: Label) -> str:
        """The image as a data: URI, until there are too many, or its address where the page may load it."""
        image = label.image
        if is_address(image):
            return image if self.remote_images else self._leave_out("images on servers (see --remote-images)", image)
        return self._embedded(image) if image else ""

    def _embedded(self, image: str) -> str:
        try:
            path = (self._folder / image).resolve()
            inside = path.is_relative_to(self._folder.resolve()) and path.is_file()
            size = path.stat().st_size if inside else 0
            if path in self._images:
                return self._images[path]
            content = path.read_bytes() if 0 < size <= MOST_BYTES else b""
        except (OSError, ValueError, RuntimeError):  # a name that is too long, or has a NUL byte, or a loop of links
            inside, size, content = False, 0, b""
        if not inside:
            return self._leave_out("images that are not files in the folder of their table", image)
        if size > MOST_BYTES:
            return self._leave_out(f"images larger than {MOST_BYTES // 1000} kB", image)
        kind = next((kind for start, kind in _PIXELS if start.match(content)), None)
        if kind is None:
            return self._leave_out("images that are not PNG, JPEG, GIF, WebP or AVIF", image)
        if self._bytes + size > BUDGET:
            return self._leave_out(f"images beyond {BUDGET / 1e6:g} MB in all", image)
        self._bytes += size
        self._images[path] = f"data:{kind};base64,{b64encode(content).decode()}"
        return self._images[path]

    def _leave_out(self, what: str, which: str) -> str:
        self._left_out.setdefault(what, set()).add(which)
        return ""

    @property
    def notes(self) -> list[str]:
        """What was left out, in words."""
        return [f"Not shown: {len(which):,} {what}." for what, which in self._left_out.items()]


def is_address(text: str) -> bool:
    """Whether a text is an http or https address and nothing else.

    >>> is_address("https://shop.example/p/7?q=a%20b"), is_address("javascript:alert(1)"), is_address("https://")
    (True, False, False)
    """
    if len(text) > _LONGEST_LINK or not re.fullmatch(r"(?i:https?://[!#-;=?-\[\]_a-z~]+)", text, re.ASCII):
        return False
    try:
        parts = urlsplit(text)
        return bool(parts.hostname) and "@" not in parts.netloc and parts.port != 0
    except ValueError:
        return False
