"""Queries find their lists and clicks their queries; what finds nothing is counted, and nothing is guessed."""

import gzip
import json
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

import prudent
from prudent.base.errors import LogError, UsageError
from prudent.logs.readers import read_ubi
from tests.command import run
from tests.logs.readers.reading import lists_of
from tests.reference import LoggedList

Record = dict[str, Any]


def query(query_id: Any, hits: Any, asked: Any = "shoes", **more: Any) -> Record:
    return {"query_id": query_id, "user_query": asked, "query_response_hit_ids": hits, **more}


def event(action: Any, query_id: Any, item: Any, ordinal: Any = None) -> Record:
    position = {"ordinal": ordinal, "xy": {"x": 1, "y": 2.5}}
    return {
        "action_name": action,
        "query_id": query_id,
        "client_id": "a client",
        "timestamp": "2026-11-16T12:00:00Z",
        "event_attributes": {"object": {"object_id": item, "object_id_field": "sku"}, "position": position},
    }


def click(query_id: Any, item: Any) -> Record:
    return event("click", query_id, item)


def shown(query_id: Any, item: Any, ordinal: Any) -> Record:
    return event("impression", query_id, item, ordinal)


def write(path: Path, records: Sequence[Any]) -> Path:
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    return path


def read(folder: Path, *records: Any, **settings: Any) -> prudent.Log:
    return read_ubi(write(folder / "records.ndjson", records), **settings)


# --- lists ----------------------------------------------------------------------------------------------------------


def test_hits_in_their_order_and_the_clicks_on_them(tmp_path: Path) -> None:
    queries = write(tmp_path / "ubi_queries.ndjson", [query("q1", ["c", "a", "b"]), query("q2", ["a", "c"], "hats")])
    events = write(tmp_path / "ubi_events.ndjson", [click("q1", "b"), click("q1", "c"), click("q1", "b")])
    log = read_ubi(queries, events)
    assert sorted(lists_of(log)) == [("hats", ("a", "c"), (0, 0)), ("shoes", ("c", "a", "b"), (1, 0, 1))]
    assert not log.left_out
    assert log.names == [str(queries), str(events)]


@pytest.mark.parametrize("first", [0, 1])
def test_impressions_where_there_are_no_hits(first: int, tmp_path: Path) -> None:
    """In any order, and as often as they come."""
    impressions = [shown("q", "b", first + 1), shown("q", "a", first), shown("q", "c", first + 2)]
    absent: list[list[str] | None] = [None, []]
    for hits in absent:
        log = read(tmp_path, *impressions, query("q", hits), impressions[0], click("q", "c"))
        assert lists_of(log) == [("shoes", ("a", "b", "c"), (0, 0, 1))]
        assert not log.left_out


def test_hits_come_before_impressions(tmp_path: Path) -> None:
    log = read(
        tmp_path,
        query("q", ["a", "b"]),
        shown("q", "b", 1),
        shown("q", "z", 2),
        shown("q", None, None),
        click("q", "b"),
    )
    assert lists_of(log) == [("shoes", ("a", "b"), (0, 1))]
    assert not log.left_out


def test_one_impression_at_0_tells_that_all_begin_there(tmp_path: Path) -> None:
    """So that of lists which began to count at 1, the first item is not taken for the second: they are left out."""
    log = read(
        tmp_path,
        *(query("zero", None), shown("zero", "a", 0), shown("zero", "b", 1)),
        *(query("one", None), shown("one", "a", 1), shown("one", "b", 2)),
        *(query("hits", ["a"]), shown("hits", "a", 5)),
        click("zero", "b"),
        click("one", "a"),
    )
    assert sorted(lists_of(log)) == [("shoes", ("a",), (0,)), ("shoes", ("a", "b"), (0, 1))]
    assert log.left_out == {"queries with a gap in their impressions": 1, "clicks of queries that are left out": 1}


@pytest.mark.parametrize("ordinal", [1, 1.0, "1", "1.0"])
def test_ordinals_as_the_index_reads_them(ordinal: Any, tmp_path: Path) -> None:
    log = read(tmp_path, query("q", None), shown("q", "a", ordinal), shown("q", "b", 2), click("q", "a"))
    assert lists_of(log) == [("shoes", ("a", "b"), (1, 0))]


@pytest.mark.parametrize("ordinal", [None, -1, 1.5, "first", "", True, [1], {"n": 1}, 10**12])
def test_no_ordinals(ordinal: Any, tmp_path: Path) -> None:
    log = read(tmp_path, query("q", None), shown("q", "a", 1), shown("q", "b", ordinal), click("q", "a"))
    assert lists_of(log) == [("shoes", ("a",), (1,))]
    assert log.left_out == {"impressions without an item or an ordinal": 1}


def test_ids_are_text_as_in_the_index(tmp_path: Path) -> None:
    log = read(tmp_path, query(1, [7, "8"], asked=12), click("1", "7"), click(1, 8))
    assert lists_of(log) == [("12", ("7", "8"), (1, 1))]


@pytest.mark.parametrize("big", [2**63, 2**64, -(2**63) - 1, 10**30])
def test_integers_of_any_size_are_ids(big: int, tmp_path: Path) -> None:
    log = read(tmp_path, query(big, [big, "b"], asked=big), click(str(big), big))
    assert lists_of(log) == [(str(big), (str(big), "b"), (1, 0))]


def test_a_single_hit_need_not_be_a_list(tmp_path: Path) -> None:
    assert lists_of(read(tmp_path, query("q", "a"), click("q", "a"))) == [("shoes", ("a",), (1,))]


def test_the_former_name_of_the_hits(tmp_path: Path) -> None:
    """Before specification 1.0, query_response_hit_ids were query_response_object_ids."""
    former = {"query_id": "q", "user_query": "shoes", "query_response_object_ids": ["a", "b"]}
    log = read(tmp_path, former, click("q", "b"))
    assert lists_of(log) == [("shoes", ("a", "b"), (0, 1))]
    assert not log.left_out


@pytest.mark.parametrize("action", ["index", "create"])
def test_action_lines_of_a_bulk_request_are_skipped(action: str, tmp_path: Path) -> None:
    line = {action: {"_index": "ubi_queries", "_id": "7"}}
    log = read(tmp_path, line, query("q", ["a", "b"]), line, click("q", "b"))
    assert lists_of(log) == [("shoes", ("a", "b"), (0, 1))]
    assert not log.left_out


@pytest.mark.parametrize(
    "wrap", [lambda record: {"_index": "ubi", "_id": "x", "_source": record}, lambda record: record]
)
def test_search_hits(wrap: Any, tmp_path: Path) -> None:
    log = read(tmp_path, *map(wrap, [query("q", None), shown("q", "a", 1), click("q", "a")]))
    assert lists_of(log) == [("shoes", ("a",), (1,))]


def test_hostile_names(tmp_path: Path) -> None:
    names = ["a'b\"c", "x\ny\tz", "ünïcødé 🥾", " ", "", "null", "'; drop table records; --", "$.a[0]", "\\u0041"]
    log = read(tmp_path, query("q'", names, names[0]), click("q'", names[1]), click("q'", names[4]))
    assert lists_of(log) == [(names[0], tuple(names), (0, 1, 0, 0, 1, 0, 0, 0, 0))]


# --- options --------------------------------------------------------------------------------------------------------


def test_which_actions_are_clicks_and_impressions(tmp_path: Path) -> None:
    records = [query("q", None), event("view", "q", "a", 1), event("seen", "q", "b", 2), event("buy", "q", "a")]
    log = read(
        tmp_path, *records, event("it's", "q", "b"), click_action=["buy", "it's"], impression_action=("view", "seen")
    )
    assert lists_of(log) == [("shoes", ("a", "b"), (1, 1))]
    log = read(tmp_path, *records, click_action="buy", impression_action="view")
    assert lists_of(log) == [("shoes", ("a",), (1,))]


@pytest.mark.parametrize(
    ("path", "actual"), [("query_attributes.category", "boots"), ("client_id", "me"), ("query_attributes.a/b~c", "5")]
)
def test_another_context(path: str, actual: str, tmp_path: Path) -> None:
    asked = query("q", ["a"], query_attributes={"category": "boots", "a/b~c": 5}, client_id="me")
    assert lists_of(read(tmp_path, asked, click("q", "a"), context=path)) == [(actual, ("a",), (1,))]


def test_segments_are_fields_of_the_query(tmp_path: Path) -> None:
    """Of any type; a missing value is one of its own. Repeated records and clicks do not change them."""
    devices: list[Any] = ["phone", 7, True, None, {"a": 1}]
    records = [query(f"q{i}", [f"i{i}"], query_attributes={"device": one}) for i, one in enumerate(devices)]
    log = read(tmp_path, *records, records[0], click("q0", "i0"), segment=["query_attributes.device", "user_query"])
    assert log.segments == {"segment1": "query_attributes.device", "segment2": "user_query"}
    found = duckdb.execute(f"select * from '{log.source[0]}' order by items").fetchall()
    assert [row[0] for row in found] == ["phone", "7", "true", None, '{"a":1}']
    assert {row[1] for row in found} == {"shoes"}
    with pytest.raises(LogError, match=r"No query has the field 'device'.*'query_attributes\.device'"):
        read(tmp_path, *records, click("q0", "i0"), segment="device")


def test_user_and_time_are_fields_of_the_query(tmp_path: Path) -> None:
    """A query whose record was sent twice under two ids is a duplicate."""
    records = [query(f"q{i}", ["i"], client_id=f"c{i // 2}", timestamp="2026-11-01T10:00:00Z") for i in range(4)]
    log = read(tmp_path, *records, click("q0", "i"), click("q1", "i"), user="client_id", shown_at="timestamp")
    log = replace(log, leave_out="duplicates")
    assert prudent.count(log).tally.left_out == {"duplicate lists": 2}
    with pytest.raises(LogError, match="No query has the field 'session': user is a field"):
        read(tmp_path, *records, click("q0", "i"), user="session")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"click_action": []}, "click_action is"),
        ({"click_action": ""}, "click_action is ''"),
        ({"click_action": "view", "impression_action": ["view"]}, "'view' cannot be a click and an impression"),
        ({"context": "query_attributes."}, "context is 'query_attributes.'"),
        ({"segment": ["client_id", ""]}, "segment is ''"),
    ],
)
def test_wrong_usage(wrong: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said):
        read(tmp_path, query("q", ["a"]), click("q", "a"), **wrong)


# --- what is left out -----------------------------------------------------------------------------------------------

LEFT_OUT: dict[str, list[Any]] = {
    "records that are neither a query nor an event": [
        {"query_id": "q", "event_attributes": {}},
        [1],
        "text",
    ],
    "queries without an id": [query(None, ["a"]), query(1.5, ["a"]), query({"id": 1}, ["a"])],
    "repeated records of a query": [query("q", ["a", "b"]), query("q", None, "other"), query("q", [], None)],
    "queries with several pages of hits under one id": [query("r", ["a", "b"]), query("r", ["c"]), query("r", None)],
    "queries whose records disagree": [query("r", ["a", "b"]), query("r", ["b", "a"])],
    "queries without a list": [query("r", None)],
    "queries whose impressions contradict each other": [query("r", None), shown("r", "a", 1), shown("r", "b", 1)],
    "queries with a gap in their impressions": [query("r", None), shown("r", "a", 1), shown("r", "b", 3)],
    "events without a query": [click(None, "a"), shown(None, "a", 1)],
    "events of unknown queries": [click("r", "a"), shown("r", "a", 1)],
    "clicks without an item": [click("q", None), click("q", ["a"]), {"action_name": "click", "query_id": "q"}],
    "clicks outside their list": [click("q", "z"), click("q", "A")],
}
COUNTS = dict.fromkeys(
    [why for why in LEFT_OUT if why.startswith("queries w") and not why.endswith("without an id")], 1
)


@pytest.mark.parametrize("why", LEFT_OUT)
def test_left_out(why: str, tmp_path: Path) -> None:
    """Each of the records, or all of them together, beside a list that is whole."""
    log = read(tmp_path, query("q", ["a", "b"]), *LEFT_OUT[why], click("q", "b"))
    assert lists_of(log) == [("shoes", ("a", "b"), (0, 1))]
    assert log.left_out == {why: COUNTS.get(why, len(LEFT_OUT[why]))}
    assert prudent.count(log).tally.left_out == log.left_out


def test_an_item_at_two_ordinals_is_a_contradiction(tmp_path: Path) -> None:
    impressions = [shown("r", "a", 1), shown("r", "a", 2)]
    log = read(tmp_path, query("q", ["a"]), click("q", "a"), query("r", None), *impressions)
    assert log.left_out == {"queries whose impressions contradict each other": 1}


def test_scrolling_is_paging_too_and_its_clicks_are_counted(tmp_path: Path) -> None:
    scrolled = [query("r", ["a", "b"]), query("r", ["a", "b", "c"]), query("r", ["a", "b", "c", "d"])]
    log = read(tmp_path, query("q", ["a"]), click("q", "a"), *scrolled, click("r", "d"))
    assert log.left_out == {
        "queries with several pages of hits under one id": 1,
        "clicks of queries that are left out": 1,
    }


@pytest.mark.parametrize("asked", ["other", None])
def test_what_is_asked_otherwise_is_no_page(asked: str | None, tmp_path: Path) -> None:
    log = read(tmp_path, query("q", ["a"]), click("q", "a"), query("r", ["a"]), query("r", ["b"], asked))
    assert log.left_out == {"queries whose records disagree": 1}


def test_queries_whose_contexts_differ_disagree(tmp_path: Path) -> None:
    log = read(tmp_path, query("q", ["a"]), click("q", "a"), query("r", ["a"], "x"), query("r", ["a"], "y"))
    assert log.left_out == {"queries whose records disagree": 1}


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (query("r", ["a", None]), "item missing"),
        (query("r", ["a", {"id": "b"}]), "item missing"),
        (query("r", [1.5]), "item missing"),
        (query("r", ["a\0"]), "item missing"),
        (query("r", ["a"], "\0"), "context missing"),
        (query("r", ["a", "a"]), "duplicate item in a list"),
        (query("r", ["a"], None), "context missing"),
        (query("r", ["a"], ["x"]), "context missing"),
    ],
)
def test_lists_that_are_rejected(bad: Record, reason: str, tmp_path: Path) -> None:
    """As in every log: a list that is not whole is counted under its reason, and may not be one of few."""
    log = read(tmp_path, query("q", ["a"]), click("q", "a"), bad)
    assert prudent.count(log, max_rejected=0.5).tally.rejected == {reason: 1}
    with pytest.raises(LogError, match=f"1 × {reason}"):
        prudent.count(log)


# --- against plain loops --------------------------------------------------------------------------------------------


def by_hand(records: Sequence[Record]) -> tuple[list[LoggedList], Counter[str]]:
    """The rules, one record after the other."""
    queries: dict[str, list[Record]] = defaultdict(list)
    clicks: list[tuple[Any, Any, Any]] = []
    impressions: list[tuple[Any, Any, Any]] = []
    left_out = Counter[str]()
    for record in records:
        if "action_name" in record:
            attributes = record["event_attributes"]
            known = (record["query_id"], attributes["object"]["object_id"], attributes["position"]["ordinal"])
            {"click": clicks, "impression": impressions}[record["action_name"]].append(known)
        elif record["query_id"] is None:
            left_out["queries without an id"] += 1
        else:
            queries[record["query_id"]].append(record)
    first = 0 if any(ordinal == 0 for _, _, ordinal in impressions) else 1
    lists: dict[str, tuple[str, list[str]]] = {}
    for query_id, told in queries.items():
        listed = [record for record in told if record["query_response_hit_ids"]]
        said = {(record["user_query"], tuple(record["query_response_hit_ids"] or ())) for record in listed or told}
        if len(said) > 1:
            pages = "with several pages of hits under one id"
            left_out[f"queries {pages if paged(said) else 'whose records disagree'}"] += 1
            continue
        left_out["repeated records of a query"] += len(told) - 1
        ((asked, hits),) = said
        if hits:
            lists[query_id] = asked, list(hits)
            continue
        own = [(ordinal, item) for of, item, ordinal in impressions if of == query_id]
        spots = sorted({(ordinal, item) for ordinal, item in own if ordinal is not None and item is not None})
        left_out["impressions without an item or an ordinal"] += sum(None in pair for pair in own)
        if not spots:
            left_out["queries without a list"] += 1
        elif len({o for o, _ in spots}) < len(spots) or len({i for _, i in spots}) < len(spots):
            left_out["queries whose impressions contradict each other"] += 1
        elif [ordinal for ordinal, _ in spots] != list(range(first, first + len(spots))):
            left_out["queries with a gap in their impressions"] += 1
        else:
            lists[query_id] = asked, [item for _, item in spots]
    clicked: dict[str, set[str]] = defaultdict(set)
    for query_id, item, _ in clicks:
        if query_id is None:
            left_out["events without a query"] += 1
        elif query_id not in queries:
            left_out["events of unknown queries"] += 1
        elif item is None:
            left_out["clicks without an item"] += 1
        elif query_id not in lists:
            left_out["clicks of queries that are left out"] += 1
        elif item not in lists[query_id][1]:
            left_out["clicks outside their list"] += 1
        else:
            clicked[query_id].add(item)
    left_out["events without a query"] += sum(query_id is None for query_id, _, _ in impressions)
    left_out["events of unknown queries"] += sum(
        query_id is not None and query_id not in queries for query_id, _, _ in impressions
    )
    shown_lists: list[LoggedList] = [
        (asked, tuple(items), tuple(int(item in clicked[query_id]) for item in items))
        for query_id, (asked, items) in lists.items()
    ]
    return shown_lists, +left_out


def paged(said: set[tuple[str, tuple[str, ...]]]) -> bool:
    """Whether these are lists for one context, each further down than the others, or a beginning of the longest."""
    contexts, lists = {asked for asked, _ in said}, [hits for _, hits in said]
    longest = max(lists, key=len)
    further = len({item for hits in lists for item in hits}) == sum(map(len, lists))
    return len(contexts) == 1 and all(lists) and (further or all(longest[: len(hits)] == hits for hits in lists))


@st.composite
def record_sets(draw: DrawFn) -> list[Record]:
    """Few ids, items and ordinals, so that everything coincides; and one click that lands."""
    ids = st.sampled_from(["q1", "q2", "q3", None])
    items = st.sampled_from(["a", "b", "c"])
    hits = st.one_of(st.none(), st.lists(items, unique=True, max_size=3))
    queries = st.builds(query, ids, hits, st.sampled_from(["x", "x", "y"]))
    maybe = st.one_of(items, items, items, st.none())
    ordinals = st.sampled_from([draw(st.integers(0, 1)), 1, 1, 2, 2, 3, None])
    events = st.builds(event, st.sampled_from(["click", "impression", "impression"]), ids, maybe, ordinals)
    made = draw(st.lists(queries, max_size=4)) + draw(st.lists(events, max_size=12))
    return [*draw(st.permutations(made)), query("landing", ["a"]), click("landing", "a")]


same = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])


@same
@given(records=record_sets())
def test_equals_plain_loops(records: list[Record], tmp_path: Path) -> None:
    log = read(tmp_path, *records)
    lists, left_out = by_hand(records)
    assert sorted(lists_of(log)) == sorted(lists)
    assert log.left_out == left_out


def many(n: int, folder: Path) -> tuple[Path, Path]:
    """Records of n queries, a quarter of them with impressions instead of hits; a third with a click."""
    queries, events = folder / "queries.ndjson", folder / "events.ndjson"
    with duckdb.connect() as connection:
        item = "'item' || ((i * 31 + k * 7) % 1000)"
        connection.execute(
            f"copy (select 'q' || md5(i::varchar) as query_id, 'query ' || (i % 50) as user_query, "
            f"case when i % 4 > 0 then list_transform(range(10), lambda k: {item}) end as query_response_hit_ids "
            f"from range({n}) t(i)) to '{queries}' (format json)"
        )
        attributes = f"{{'object': {{'object_id': {item}}}, 'position': {{'ordinal': k}}}} as event_attributes"
        connection.execute(
            f"copy (select 'click' as action_name, 'q' || md5(i::varchar) as query_id, {attributes} "
            f"from (select i, i % 10 as k from range({n}) t(i) where i % 3 = 0) union all "
            f"select 'impression', 'q' || md5(i::varchar), {attributes} from range({n}) t(i), range(10) u(k) "
            f"where i % 4 = 0) to '{events}' (format json)"
        )
    return queries, events


@pytest.mark.slow
def test_little_memory_and_one_thread_are_enough_and_the_time_is_short(tmp_path: Path) -> None:
    """A hundred thousand queries and 283,334 events take about 2 s on one core."""
    files = many(100_000, tmp_path)
    began = time.monotonic()
    log = read_ubi(*files, engine=prudent.DuckDB(memory="150MB", threads=1))
    assert time.monotonic() - began < 30
    lists = lists_of(log)
    assert len(lists) == 100_000
    assert sum(sum(clicks) for _, _, clicks in lists) == 33_334
    assert not log.left_out
    assert sorted(lists_of(read_ubi(*files))) == sorted(lists)


# --- files as people have them --------------------------------------------------------------------------------------

RECORDS = [query("q", ["a", "b"]), click("q", "b")]
CONTENT = "".join(f"{json.dumps(record)}\n" for record in RECORDS).encode()
ACCEPTED = {
    "plain": ("log.jsonl", CONTENT),
    "gzip": ("log.ndjson.gz", gzip.compress(CONTENT)),
    "lines that end as in Windows": ("log.json", CONTENT.replace(b"\n", b"\r\n")),
    "a byte order mark": ("log.jsonl", b"\xef\xbb\xbf" + CONTENT),
    "a byte order mark, gzipped": ("log.jsonl.gz", gzip.compress(b"\xef\xbb\xbf" + CONTENT)),
    "blank lines, and none at the end": ("log.jsonl", CONTENT.replace(b"\n", b"\n\n").rstrip()),
}


@pytest.mark.parametrize(("name", "content"), ACCEPTED.values(), ids=ACCEPTED)
def test_accepted(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    log = read_ubi(tmp_path / name)
    assert lists_of(log) == [("shoes", ("a", "b"), (0, 1))]
    lists = Path(log.source[0])
    assert [file.name for file in lists.parent.iterdir()] == ["lists.parquet"]
    del log
    assert not lists.parent.exists()


def test_parquet_with_structures(tmp_path: Path) -> None:
    """As well as beside JSON Lines, with ids that are integers there."""
    with duckdb.connect() as connection:
        connection.execute(
            "copy (select 'click' as action_name, 7 as query_id, now() as timestamp, "
            "{'object': {'object_id': 5::bigint}, "
            f"'position': {{'ordinal': null::integer}}}} as event_attributes) to '{tmp_path}/events.parquet'"
        )
        connection.execute(
            "copy (select null as action_name, '7' as query_id, 'shoes'::blob as user_query, [3, 5] "
            f"as query_response_hit_ids, null as event_attributes) to '{tmp_path}/queries.parquet'"
        )
    queries = write(tmp_path / "queries.jsonl", [query(7, ["3", "5"])])
    for source in (tmp_path / "queries.parquet", queries):
        log = read_ubi(source, tmp_path / "events.parquet")
        assert lists_of(log) == [("shoes", ("3", "5"), (0, 1))]
        assert not log.left_out


REFUSED = {
    "a broken line": ("log.jsonl", CONTENT + b'{"query_id":\n', ["line 3 is not JSON"]),
    "not UTF-8": ("log.jsonl", CONTENT + b'{"query_id": "\xe9"}\n', ["line 3 is not UTF-8"]),
    "two records in a line": ("log.jsonl", CONTENT.replace(b"\n", b" "), ["line 1 is not JSON"]),
    "an array of records": ("log.json", b"[" + CONTENT + b"]", ["is not JSON Lines"]),
    "printed prettily": ("log.json", json.dumps(RECORDS[0], indent=2).encode(), ["line 1 is not JSON"]),
    "CSV": ("log.csv", b"query_id,user_query\nq,shoes\n", ["export JSON Lines or Parquet"]),
    "nothing": ("log.jsonl", b"", ["is empty"]),
    "only queries": ("log.jsonl", CONTENT.splitlines()[0], ["only queries", "action_name"]),
    "only events": ("log.jsonl", CONTENT.splitlines()[1], ["only events", "query_response_hit_ids"]),
    "a response to a search": ("log.jsonl", b'{"took": 3, "hits": {"hits": []}}', ["jq -c '.hits.hits[]'"]),
    "no clicks": (
        "log.jsonl",
        CONTENT.replace(b'"click"', b'"product_click"'),
        ["no event has the action 'click'", "'product_click' (1)", "--click-action"],
    ),
    "ids of two kinds": (
        "log.jsonl",
        CONTENT.replace(b'"object_id": "b"', b'"object_id": "sku-1"'),
        ["no click is on an item of its list", "'sku-1'", "'a', 'b'"],
    ),
    "other days": ("log.jsonl", CONTENT.replace(b'"q"', b'"r"', 1), ["query_id of a query with a list", "same days"]),
    "no query_id in clicks": (
        "log.jsonl",
        CONTENT.replace(b'"query_id": "q", "client', b'"client'),
        ["no click has a query_id"],
    ),
    "no object_id in clicks": (
        "log.jsonl",
        CONTENT.replace(b'"object_id": "b", ', b""),
        ["no click has an event_attributes.object.object_id"],
    ),
    "no lists": (
        "log.jsonl",
        CONTENT.replace(b'"query_response_hit_ids"', b'"hits"'),
        ["no query has a list", "query_response_hit_ids"],
    ),
}


@pytest.mark.parametrize(("name", "content", "said"), REFUSED.values(), ids=REFUSED)
def test_refused(name: str, content: bytes, said: list[str], tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(LogError) as refused:
        read_ubi(tmp_path / name)
    for part in [name, *said]:
        assert part in str(refused.value)
    assert ("same days" in str(refused.value)) == ("same days" in said)


# --- the command line -----------------------------------------------------------------------------------------------


def test_commands(tmp_path: Path) -> None:
    queries = write(tmp_path / "queries.ndjson", [query("q", None, client_id="me"), query("q", None, client_id="me")])
    events = write(
        tmp_path / "events.ndjson", [event("view", "q", "a", 1), event("buy", "q", "a"), event("tap", "q", "a")]
    )
    actions = ("--click-action", "buy", "--click-action", "tap", "--impression-action", "view")
    policy = tmp_path / "policy.parquet"
    ran = run("rank", queries, events, "--format", "ubi", "--context", "client_id", *actions, "-o", policy)
    assert ran.code == 0
    assert "Left out: 1 repeated records of a query." in ran.text
    assert prudent.Policy.read(policy)["me"] == ["a"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--click-action", "buy"], "A log has no setting click_action (--click-action)"),
        (["--format", "ubi", "--items", "shown"], "The format ubi has no setting items (--items): leave it out"),
        (["--format", "yandex", "--impression-action", "view"], "no setting impression_action (--impression-action)"),
    ],
)
def test_options_that_do_not_go_together(options: list[str], said: str, tmp_path: Path) -> None:
    ran = run("check", write(tmp_path / "log.jsonl", RECORDS), *options)
    assert ran.code == 2
    assert said in ran.text


def test_a_fault_is_one_line_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(CONTENT + b"{\n")
    ran = run("check", tmp_path / "log.jsonl", "--format", "ubi")
    assert ran.code == 3
    assert "log.jsonl, line 3 is not JSON" in ran.text


def test_what_was_read_and_split_is_no_ubi_any_more(tmp_path: Path) -> None:
    records = write(tmp_path / "ubi.jsonl", [one for q in "abcdefgh" for one in (query(q, ["x", "y"]), click(q, "x"))])
    assert run("split", records, "--format", "ubi", "-o", tmp_path / "parts", "--holdout", "0.5").code == 0
    ran = run("check", tmp_path / "parts" / "train.parquet", "--format", "ubi")
    assert ran.code == 3
    assert "these are already lists, such as prudent split writes. Leave out --format" in ran.text
    assert run("check", tmp_path / "parts" / "train.parquet").code == 0


@pytest.mark.parametrize("record", [{"context": "c"}, [1], "text", 5, None])
def test_neither_lists_nor_records(record: Any, tmp_path: Path) -> None:
    with pytest.raises(LogError, match="neither queries nor events"):
        read(tmp_path, {"context": "c"}, record)
