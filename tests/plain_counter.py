"""What `prudent.count` finds in a file, once more, by loops over lines: nothing is shared with the package but words.

A loop that cannot read a file raises ValueError: then the package has to refuse it too.
"""

import csv
import gzip
import json
import re
import string
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from tests import reference
from tests.logs.readers import test_ubi
from tests.logs.readers.reading import Sessions

ODD = "name of another type than the others"
MOST = 1_000  # positions
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(\s*[\]}])')  # behind the last value, which DuckDB passes over
_INTEGER = re.compile(r"-?\d+", re.ASCII)


class Counted(NamedTuple):
    lists: int
    rejected: dict[str, int]
    cells: Counter[Any]


class Shown(NamedTuple):
    """A list before it is checked; `copies` rows that belong to no list have a fault."""

    context: Any
    items: Sequence[Any] | None
    clicks: Sequence[Any] | None
    fault: str | None = None
    copies: int = 1


def count(file: Path, *, layout: str = "lists", format: str | None = None, **columns: Any) -> Counted:
    """The counts of a file."""
    form = Form(layout, **columns)
    if format is not None:
        return tally(_ubi(file) if format == "ubi" else _yandex(file), nul=False)
    kind = file.name.removesuffix(".gz").rpartition(".")[2]
    if kind == "parquet":
        rows: list[dict[str, Any]] = pq.read_table(file).to_pylist()
    else:
        rows = list(_json_lines(file) if kind == "jsonl" else _csv_rows(file, "\t" if kind == "tsv" else ",", form))
    if layout == "impressions":
        return _singles(_one_type(rows, form) if kind == "jsonl" else [(row, False) for row in rows], form, kind)
    typed = _one_type(rows, form) if kind == "jsonl" else [(row, False) for row in rows]
    if kind == "parquet" and form.clicked_items:
        _check_kinds(file, form)
    lists = _lists(typed, form) if layout == "lists" else _grouped(typed, form)
    return tally(lists, nul=kind != "parquet")


class Form(NamedTuple):
    """How a log is written."""

    layout: str = "lists"
    context: Sequence[str] = ("context",)
    clicked_items: str | None = None
    clicked_positions: str | None = None
    first_position: int = 1

    @property
    def names(self) -> list[str]:
        """Columns of names."""
        if self.layout != "lists":
            return [*(["impression"] if self.layout == "rows" else []), *self.context, "item"]
        return [*self.context, "items", *([self.clicked_items] if self.clicked_items else [])]

    @property
    def columns(self) -> list[str]:
        """All columns that are read."""
        clicked = self.clicked_items or self.clicked_positions or "clicks"
        return [*self.names, *(["position", "click"] if self.layout != "lists" else [clicked])]

    def context_of(self, row: Mapping[str, Any]) -> Any:
        """The name of a context, of several columns where there are several."""
        values = [row.get(column) for column in self.context]
        if len(values) == 1 or None in values:
            return values[0] if len(values) == 1 else None
        return "|".join(str(value).replace("\\", "\\\\").replace("|", "\\|") for value in values)


def _check_kinds(file: Path, form: Form) -> None:
    """Items and clicked items are both text, or both integers."""
    schema = pq.read_schema(file)
    whole = [pa.types.is_integer(schema.field(name).type.value_type) for name in ("items", form.clicked_items)]
    if whole[0] != whole[1]:
        raise ValueError("items of two types")


# --- files ------------------------------------------------------------------------------------------------------------


def text_of(file: Path, errors: str = "strict") -> str:
    """Without a byte order mark."""
    content = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    return content.removeprefix(b"\xef\xbb\xbf").decode("utf-8", errors)


class Whole(float):
    """A number with the digits in the file."""

    text: str


def _number(digits: str) -> Whole:
    number = Whole(digits)
    number.text = digits
    return number


def _json_lines(file: Path) -> Iterator[dict[str, Any]]:
    for line in text_of(file).split("\n"):
        if line := line.strip(string.whitespace):  # all of ASCII's, of which JSON has four
            line = _COMMA.sub(lambda found: found[1] or found[2], line)
            record = json.loads(line, parse_int=_number, parse_float=_number, parse_constant=_refuse)
            if not isinstance(record, dict):
                raise ValueError("not an object")
            json.dumps(record, ensure_ascii=False).encode()  # half of a surrogate pair is no text
            yield record


def _refuse(constant: str) -> float:
    raise ValueError(constant)


def _csv_rows(file: Path, delimiter: str, form: Form) -> Iterator[dict[str, Any]]:
    """Bytes that are no text matter in the columns that are read alone."""
    csv.field_size_limit(1 << 30)
    try:
        header, *rows = csv.reader(
            text_of(file, "surrogateescape").splitlines(keepends=True), delimiter=delimiter, strict=True
        )
    except csv.Error as error:
        raise ValueError from error
    for row in filter(None, rows):
        if len(row) != len(header):
            raise ValueError("another number of fields")
        values = {name: value or None for name, value in zip(header, row, strict=True)}
        for column in form.columns:
            (values.get(column) or "").encode()
        yield values


# --- values -----------------------------------------------------------------------------------------------------------


def as_click(value: object) -> int | None:
    """0, 1, another integer, or None."""
    if isinstance(value, Whole):
        value = value.text
    if isinstance(value, bool | int):
        return int(value)
    if isinstance(value, str):
        word = value.strip(" ").lower()
        if word in ("0", "1", "false", "true"):
            return int(word in ("1", "true"))
        value = float(value) if _NUMBER.fullmatch(value) else None
    return int(value) if isinstance(value, float | Decimal) and value in (0, 1) else None


def as_position(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, Whole):
        value = value.text
    if isinstance(value, str):
        value = float(value) if _NUMBER.fullmatch(value) else None
    if not isinstance(value, int | float | Decimal) or value != value or not -(2**63) <= value < 2**63:
        return None
    return int(value) if value == int(value) else None


def _kind(name: object) -> str | None:
    if isinstance(name, str):
        return "text"
    if isinstance(name, Whole) and _INTEGER.fullmatch(name.text) and -(2**63) <= int(name.text) < 2**64:
        return "whole"
    return None if name is None else "other"


def _one_type(rows: Sequence[dict[str, Any]], form: Form) -> list[tuple[dict[str, Any], bool]]:
    """Names are text or integers, as most of them in their column are; and whether a row has another one."""
    columns, listed = form.names, ("items", form.clicked_items)
    kinds = {}
    for column in columns:
        values = [row.get(column) for row in rows]
        names = [name for value in values for name in (value or [] if column in listed else [value])]
        found = Counter(map(_kind, names))
        if not found["text"] and not found["whole"] and found["other"]:
            raise ValueError("no names")
        kinds[column] = "text" if found["text"] >= found["whole"] else "whole"
    if form.clicked_items:
        kinds[form.clicked_items] = kinds["items"]

    def convert(name: Any, column: str) -> Any:
        if _kind(name) != kinds[column]:
            return None
        whole = int(name.text) if kinds[column] == "whole" else name
        return None if isinstance(whole, int) and whole >= 2**63 else whole

    typed = []
    for row in rows:
        converted, odd = dict(row), False
        for column in columns:
            value = row.get(column)
            if column in listed and not isinstance(value, list | None):
                raise ValueError("not a list")
            before = (value or []) if column in listed else [value]
            after = [convert(name, column) for name in before]
            odd |= any(one is not None and other is None for one, other in zip(before, after, strict=True))
            converted[column] = (None if value is None else after) if column in listed else after[0]
        typed.append((converted, odd))
    return typed


# --- lists ------------------------------------------------------------------------------------------------------------


def _lists(rows: Sequence[tuple[dict[str, Any], bool]], form: Form) -> Iterator[Shown]:
    for row, odd in rows:
        items, context = row.get("items"), form.context_of(row)
        clicks = row.get(form.clicked_items or form.clicked_positions or "clicks")
        if not isinstance(clicks, list | None):
            raise ValueError("not a list")
        fault = ODD if odd else None
        if form.clicked_items or form.clicked_positions:
            clicks, wrong = _from_clicked(items, clicks, form)
            fault = fault or wrong
        elif clicks is not None:
            clicks = [as_click(click) for click in clicks]
        yield Shown(context, items, clicks, fault)


def _from_clicked(items: Any, clicked: Any, form: Form) -> tuple[list[int] | None, str | None]:
    if clicked is None:
        return None, "clicks missing"
    if items is None:
        return None, None
    if form.clicked_positions:
        clicked = list(map(as_position, clicked))
        if None in clicked:
            return None, "click outside its list"
        places: list[Any] = list(range(form.first_position, len(items) + form.first_position))
    else:
        places = items
    if None in clicked or not set(clicked) <= set(places):
        return None, "click outside its list"
    return [int(place in clicked) for place in places], None


def _grouped(rows: Sequence[tuple[dict[str, Any], bool]], form: Form) -> Iterator[Shown]:
    groups: dict[Any, list[tuple[dict[str, Any], bool]]] = defaultdict(list)
    for row, odd in rows:
        groups[row.get("impression")].append((row, odd))
    for impression, group in groups.items():
        positions = [as_position(row.get("position")) for row, _ in group]
        contexts = [form.context_of(row) for row, _ in group]
        known = [position for position in positions if position is not None]
        fault = None
        if any(odd for _, odd in group):
            fault = ODD
        elif impression is None:
            fault = "impression id missing"
        elif None in contexts:
            fault = "context missing"
        elif len(set(contexts)) > 1:
            fault = "impression id in several contexts"
        elif len(set(known)) < len(known):
            fault = "duplicate position in a list"
        elif sorted(known) != list(range(form.first_position, len(group) + form.first_position)):
            fault = "positions other than 1, 2, 3, ..."
        if fault is not None:
            yield Shown(None, None, None, fault, len(group) if impression is None else 1)
            continue
        ordered = [row for _, row in sorted(zip(known, (row for row, _ in group), strict=True), key=lambda one: one[0])]
        clicks = [as_click(row.get("click")) for row in ordered]
        yield Shown(contexts[0], [row.get("item") for row in ordered], clicks)


def _singles(rows: Sequence[tuple[dict[str, Any], bool]], form: Form, kind: str) -> Counted:
    """Impressions, each of which counts as a list."""
    cells, rejected = Counter[Any](), Counter[str]()
    for row, odd in rows:
        context, item = form.context_of(row), row.get("item")
        place, click = as_position(row.get("position")), as_click(row.get("click"))
        position = None if place is None else place + 1 - form.first_position
        if odd:
            rejected[ODD] += 1
        elif context is None:
            rejected["context missing"] += 1
        elif position is not None and position > MOST:
            rejected["too many positions"] += 1
        elif item is None:
            rejected["item missing"] += 1
        elif click not in (0, 1):
            rejected["click other than 0 or 1"] += 1
        elif position is None or position < 1:
            rejected["positions other than 1, 2, 3, ..."] += 1
        elif kind != "parquet" and any("\0" in name for name in (context, item) if isinstance(name, str)):
            rejected["NUL byte in a name"] += 1
        else:
            cells[context, item, position, position, bool(click), False] += 1
    return Counted(cells.total(), dict(rejected), cells)


def _reason(shown: Shown, nul: bool) -> str | None:
    context, items, clicks = shown[:3]
    if shown.fault is not None:
        return shown.fault
    if context is None:
        return "context missing"
    if not items:
        return "empty list"
    if clicks is None or len(clicks) != len(items):
        return "items and clicks differ in length"
    if len(items) > MOST:
        return "too many positions"
    if None in items:
        return "item missing"
    if not all(click in (0, 1) for click in clicks):
        return "click other than 0 or 1"
    if len(set(items)) < len(items):
        return "duplicate item in a list"
    if nul and any("\0" in name for name in (context, *items) if isinstance(name, str)):
        return "NUL byte in a name"
    return None


def tally(lists: Iterator[Shown], nul: bool) -> Counted:
    accepted, rejected = [], Counter[str]()
    for shown in lists:
        why = _reason(shown, nul)
        if why is None:
            accepted.append((shown.context, tuple(shown.items or ()), tuple(shown.clicks or ())))
        else:
            rejected[why] += shown.copies
    return Counted(len(accepted), dict(rejected), reference.histogram(accepted))


# --- formats with a reader --------------------------------------------------------------------------------------------

_LINE = re.compile(r"(\d+)\t(\d+)\t(?:Q\t(\d+)\t(\d+)((?:\t\d+){0,10})|C\t(\d+))", re.ASCII)


def _yandex(file: Path) -> Iterator[Shown]:
    sessions = Sessions()
    for number, line in enumerate(re.split(r"\r\n|\n|\r", text_of(file))):
        if not line:
            continue
        found = _LINE.fullmatch(line)
        if found is None:
            raise ValueError(line)
        session, time, query, region, urls, url = found.groups()
        if url is None:
            items = [int(one) for one in urls.split("\t")[1:]]
            sessions.shown(int(session), 0, int(time), number, f"{query}/{region}", items)
        else:
            sessions.clicked(int(session), 0, int(time), number, int(url))
    for context, page, clicks in sessions.lists()[0]:
        missing = 10 - len(page)
        yield Shown(context, [*page, *[None] * missing], [*clicks, *[0] * missing])


def _ubi(file: Path) -> Iterator[Shown]:
    records: list[dict[str, Any]] = []
    for raw in _json_lines(file):
        if list(raw) in (["index"], ["create"], ["update"], ["delete"]):
            continue

        def at(*path: str, record: Any = raw) -> Any:
            for top in (record, record.get("_source")):
                for key in path:
                    top = top.get(key) if isinstance(top, dict) else None
                if top is not None:
                    return top
            return None

        hits = at("query_response_hit_ids")
        hits = at("query_response_object_ids") if hits is None else hits
        query_id, action = _name(at("query_id")), _name(at("action_name"))
        if action is not None:
            attributes = {
                "object": {"object_id": _name(at("event_attributes", "object", "object_id"))},
                "position": {"ordinal": _ordinal(at("event_attributes", "position", "ordinal"))},
            }
            if action in ("click", "impression"):
                records.append({"query_id": query_id, "action_name": action, "event_attributes": attributes})
        elif at("event_attributes") is None and not (at("query_id") is hits is at("user_query") is None):
            named = None if hits is None else [_name(hit) for hit in (hits if isinstance(hits, list) else [hits])]
            asked = _name(at("user_query"))
            records.append({"query_id": query_id, "user_query": asked, "query_response_hit_ids": named})
    for context, items, clicks in test_ubi.by_hand(records)[0]:
        yield Shown(context, items, clicks)


def _name(field: object) -> str | None:
    if isinstance(field, str):
        return None if "\0" in field else field
    return field.text if isinstance(field, Whole) and _INTEGER.fullmatch(field.text) else None


def _ordinal(field: object) -> int | None:
    text = field.text if isinstance(field, Whole) else field
    found = re.fullmatch(r"([0-9]{1,9})(\.0+)?", text) if isinstance(text, str) else None
    return int(found[1]) if found else None


def differences(counted: Mapping[str, Any], plain: Counted) -> str:
    """In which way the counts of the package differ from those of the loop; empty where they do not."""
    for name, value in plain._asdict().items():
        if counted[name] != value:
            one, two = counted[name], value
            if name == "cells":
                one, two = counted[name] - value, value - counted[name]
            return f"{name}: {str(one)[:90]} and by the loop {str(two)[:90]}"
    return ""
