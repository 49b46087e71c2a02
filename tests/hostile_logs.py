"""Hostile but mostly readable logs of every format and layout, for `tests.fuzz` to compare with a plain counter."""

import csv
import gzip
import io
import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

_PLAIN = ["a", "b", "c", "d", "7", "07"]
_TEXTS = [
    *_PLAIN,
    "",
    " a",
    "é",
    "e\u0301",
    "\u202e",
    "a\nb",
    'a"b',
    "a,b",
    "a\tb",
    "\r",
    "\0b",
    "null",
    "😀",
    "[",
    "~",
]
_WHOLE = [1, 2, 3, 7, -1, 0, 2**31, 2**63 - 1, -(2**63)]
_ODD: list[Any] = [2**63, 2**64, 1.0, 1.5, 1e300, True, None, [], {}, ["a"], {"a": 1}]
_CLICKS: list[Any] = [0, 1] * 8 + [
    True,
    False,
    "1",
    "0",
    " 1",
    "true",
    "TRUE",
    "yes",
    1.0,
    0.0,
    2,
    -1,
    None,
    "",
    0.5,
    "1e0",
    "+1",
]
_CLICKS += ["01", "0x1", "nan", "inf", "1.", ".0", "1 0", "1,0", [], {}]
_POSITIONS: list[Any] = [
    "1",
    "2",
    1.0,
    "1.0",
    0,
    -1,
    None,
    1.5,
    True,
    "x",
    1e30,
    "+1",
    "1e0",
    " 2",
    "",
    "nan",
    2**63,
    "2.",
]


@st.composite
def _lists(draw: DrawFn, hostile: int) -> list[dict[str, Any]]:
    """Lists of text or integers; `hostile` of 10 names, clicks and lengths are not what they should be."""
    usual: list[Any] = draw(st.sampled_from([_PLAIN, _WHOLE[:4], _TEXTS, _WHOLE]))
    name = st.sampled_from(usual)
    bad = st.sampled_from([*_TEXTS, *_WHOLE, *_ODD])
    lists = []
    for _ in range(draw(st.integers(1, 8))):
        wrong = draw(st.integers(1, 10)) <= hostile
        items: Any = draw(st.lists(name, unique_by=repr, min_size=1, max_size=5))
        clicks: Any = [draw(st.integers(0, 1)) for _ in items]
        context: Any = draw(name)
        if wrong:
            place = draw(st.integers(0, len(items) - 1))
            fault = draw(st.integers(0, 7))
            if fault == 0:
                context = draw(bad)
            elif fault == 1:
                items[place] = draw(bad)
            elif fault == 2:
                items[place] = items[0]
            elif fault == 3:
                clicks = [draw(st.sampled_from(_CLICKS)) for _ in items]
            elif fault == 4:
                clicks = clicks[:place]
            elif fault == 5:
                items, clicks = draw(st.sampled_from([([], []), (None, []), (items, None), ([], None)]))
            elif fault == 6:
                items, clicks = [f"i{k}" for k in range(1001)], [0] * 1001
            else:
                clicks[place] = draw(st.sampled_from(_CLICKS))
        lists.append({"context": context, "items": items, "clicks": clicks})
    return lists


def _as_rows(lists: list[dict[str, Any]], draw: DrawFn, hostile: int, first: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    ids = draw(st.sampled_from([lambda number: number, lambda number: f"i{number}"]))
    for number, one in enumerate(lists):
        clicks = one["clicks"] or []
        for place, item in enumerate((one["items"] or [])[:30]):
            click = clicks[place] if place < len(clicks) else None
            row = {"impression": ids(number), "context": one["context"], "item": item, "position": place + first}
            row |= {"market": one["market"]} if "market" in one else {}
            rows.append({**row, "click": click})
    for row in rows:
        if draw(st.integers(1, 40)) <= hostile:
            column = draw(st.sampled_from(["impression", "position", "context"]))
            pool = _POSITIONS if column == "position" else [*_TEXTS, *_WHOLE, *_ODD]
            row[column] = draw(st.sampled_from(pool))
    order: list[dict[str, Any]] = draw(st.permutations(rows)) if len(rows) < 40 else rows
    return order


def _json(records: list[dict[str, Any]], draw: DrawFn) -> bytes:
    ascii_only, end = draw(st.booleans()), draw(st.sampled_from(["\n", "\r\n", "\n\n"]))
    kept = [{key: value for key, value in one.items() if value is not None or draw(st.booleans())} for one in records]
    return end.join(json.dumps(one, ensure_ascii=ascii_only) for one in kept).encode()


def _csv(rows: list[dict[str, Any]], draw: DrawFn, delimiter: str) -> bytes:
    out = io.StringIO(newline="")
    end, quoting = draw(st.sampled_from(["\n", "\r\n"])), draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    names = [
        "impression",
        "context",
        "item",
        "position",
        "click",
        *(["market"] if rows and "market" in rows[0] else []),
    ]
    writer = csv.DictWriter(out, names, delimiter=delimiter, lineterminator=end, quoting=quoting)  # type: ignore[arg-type]
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode("utf-8", "replace")


_TEXT_TYPES = [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]
_WHOLE_TYPES = [pa.int64(), pa.int32(), pa.uint64(), pa.int8()]
_CLICK_TYPES = [
    pa.int8(),
    pa.int64(),
    pa.bool_(),
    pa.float64(),
    pa.string(),
    pa.uint8(),
    pa.float32(),
    pa.decimal128(5, 2),
]


def _parquet(rows: list[dict[str, Any]], draw: DrawFn) -> bytes:
    """Each column in one type; what does not fit is missing."""
    columns = {}
    for column in rows[0] if rows else ():
        values = [row[column] for row in rows]
        kinds = _CLICK_TYPES if column in ("clicks", "click", "position") else [*_TEXT_TYPES, *_WHOLE_TYPES]
        kinds = [*kinds, *_CLICK_TYPES] if column == "clicked" else kinds
        kind = draw(st.sampled_from(kinds))
        if column in ("items", "clicks", "clicked"):
            lists = [None if value is None else [_fit(one, kind) for one in value] for value in values]
            columns[column] = pa.array(lists, pa.list_(kind))
        else:
            columns[column] = pa.array([_fit(value, kind) for value in values], kind)
    out = io.BytesIO()
    settings = {"compression": draw(st.sampled_from(["snappy", "zstd", "none"])), "row_group_size": 3}
    pq.write_table(pa.table(columns), out, write_page_checksum=draw(st.booleans()), **settings)
    return out.getvalue()


def _fit(value: Any, kind: Any) -> Any:
    try:
        if pa.types.is_dictionary(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
            return None if value is None else str(value)
        return pa.scalar(value, kind).as_py()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None


def _ubi(lists: list[dict[str, Any]], draw: DrawFn, hostile: int) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    for number, one in enumerate(lists):
        query_id: Any = f"q{number}" if draw(st.integers(1, 30)) > hostile else draw(st.sampled_from([*_ODD, "q0"]))
        query = {"query_id": query_id, "user_query": one["context"], "query_response_hit_ids": one["items"]}
        if draw(st.integers(1, 10)) <= hostile // 2 and isinstance(one["items"], list):
            query.pop("query_response_hit_ids")
            for place, item in enumerate(one["items"][:8]):
                attributes = {"object": {"object_id": item}, "position": {"ordinal": place + 1}}
                records.append({"action_name": "impression", "query_id": query_id, "event_attributes": attributes})
        records.append(draw(st.sampled_from([query, {"_source": query}])))
        for item, click in zip(one["items"] or [], one["clicks"] or [], strict=False):
            if click:
                event = {"action_name": "click", "query_id": query_id}
                records.append({**event, "event_attributes": {"object": {"object_id": item}}})
    if draw(st.integers(1, 10)) <= hostile:
        records.append(draw(st.sampled_from([{"index": {}}, {"x": 1}, {"query_id": None}, {"event_attributes": {}}])))
    order: list[dict[str, Any]] = draw(st.permutations(records)) if len(records) < 40 else records
    return [*order, {"query_id": "z", "user_query": "z", "query_response_hit_ids": ["z"]}, _landing("z")]


def _landing(item: str) -> dict[str, Any]:
    return {"action_name": "click", "query_id": item, "event_attributes": {"object": {"object_id": item}}}


def _yandex(draw: DrawFn, hostile: int) -> bytes:
    lines = []
    number = st.integers(0, 4)
    for _ in range(draw(st.integers(1, 9))):
        session, time = draw(number), draw(number)
        if draw(st.booleans()):
            size = 10 if draw(st.integers(1, 10)) > hostile else draw(st.integers(0, 10))
            urls = draw(st.lists(st.integers(0, 14), min_size=size, max_size=size, unique=draw(st.booleans())))
            lines.append([session, time, "Q", draw(number), draw(number), *urls])
        else:
            lines.append([session, time, "C", draw(st.integers(0, 14))])
    if draw(st.integers(1, 20)) <= hostile:
        odd = ["007", "-1", 10**17, 10**18, "", "1.0", "x", 2**63]
        line = draw(st.sampled_from(lines))
        line[draw(st.integers(0, len(line) - 1))] = draw(st.sampled_from(odd))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    return end.join("\t".join(map(str, line)) for line in lines).encode()


def _in_form(lists: list[dict[str, Any]], draw: DrawFn, hostile: int, columns: Mapping[str, Any]) -> None:
    """Write what was clicked as items or positions, and a second column of the context."""
    first, of_items = columns.get("first_position", 1), "clicked_items" in columns
    for one in lists:
        if "clicked" in columns.values():
            items, clicks = one["items"] or [], one.pop("clicks") or []
            places = [place for place, click in enumerate(clicks[: len(items)]) if click in (1, True, "1")]
            clicked: Any = [items[place] if of_items else place + first for place in places]
            if draw(st.integers(1, 12)) <= hostile:
                clicked = draw(
                    st.sampled_from([None, [], clicked * 2, [None], ["a"], [first - 1], [len(items) + first]])
                )
                clicked = [draw(st.sampled_from(_POSITIONS))] if draw(st.integers(1, 5)) == 1 else clicked
            one["clicked"] = clicked
        if "market" in columns.get("context", ()):
            usual: list[Any] = draw(st.sampled_from([["a", "b|", "\\"], [1, 2]]))
            one["market"] = draw(st.sampled_from(usual if draw(st.integers(1, 12)) > hostile else _ODD))


@st.composite
def _content(draw: DrawFn, ending: str, layout: str, format: str | None, columns: Mapping[str, Any]) -> bytes:
    hostile = draw(st.sampled_from([0, 1, 3, 6]))
    if format == "yandex":
        return _yandex(draw, hostile)
    lists = draw(_lists(hostile))
    if format == "ubi":
        return _json(_ubi(lists, draw, hostile), draw)
    _in_form(lists, draw, hostile, columns)
    rows = lists if layout == "lists" else _as_rows(lists, draw, hostile, columns.get("first_position", 1))
    if ending == ".parquet":
        return _parquet(rows, draw)
    content = _json(rows, draw) if ".jsonl" in ending else _csv(rows, draw, "\t" if ending == ".tsv" else ",")
    if draw(st.integers(1, 10)) == 1:
        content = b"\xef\xbb\xbf" + content
    return gzip.compress(content, mtime=0) if ending.endswith(".gz") else content


CLICKED: dict[str, Any] = {"clicked_items": "clicked"}
PLACES: dict[str, Any] = {"clicked_positions": "clicked", "first_position": 0}
TWO: dict[str, Any] = {"context": ["context", "market"]}

LOGS: Mapping[str, tuple[str, str, str | None, Mapping[str, Any]]] = {
    # name -> ending, layout, format, columns
    "hostile lists.jsonl": (".jsonl", "lists", None, {}),
    "hostile lists.jsonl.gz": (".jsonl.gz", "lists", None, {}),
    "hostile lists.parquet": (".parquet", "lists", None, {}),
    "hostile rows.jsonl": (".jsonl", "rows", None, {}),
    "hostile rows.csv": (".csv", "rows", None, {}),
    "hostile rows.csv.gz": (".csv.gz", "rows", None, {}),
    "hostile rows.tsv": (".tsv", "rows", None, {}),
    "hostile rows.parquet": (".parquet", "rows", None, {}),
    "hostile ubi": (".jsonl", "lists", "ubi", {}),
    "hostile yandex": (".txt", "lists", "yandex", {}),
    "hostile clicked items.jsonl": (".jsonl", "lists", None, CLICKED),
    "hostile clicked items.parquet": (".parquet", "lists", None, CLICKED | TWO),
    "hostile clicked positions.jsonl": (".jsonl", "lists", None, PLACES | TWO),
    "hostile clicked positions.parquet": (".parquet", "lists", None, {"clicked_positions": "clicked"}),
    "hostile impressions.jsonl": (".jsonl", "impressions", None, {}),
    "hostile impressions.csv": (".csv", "impressions", None, TWO),
    "hostile impressions.parquet": (".parquet", "impressions", None, {"first_position": 0}),
    "hostile rows from 0.csv": (".csv", "rows", None, {"first_position": 0, **TWO}),
    "hostile rows from 0.parquet": (".parquet", "rows", None, {"first_position": 0, **TWO}),
}


def hostile(name: str) -> SearchStrategy[bytes]:
    """Contents of a file of this kind."""
    return _content(*LOGS[name])
