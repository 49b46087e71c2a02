"""Columns of the log that confound clicks: `--segment`."""

import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prudent
from prudent.base.arrays import BoolArray, IntArray
from prudent.base.errors import LogError, UsageError
from prudent.counts.lists import ListBatch
from prudent.evaluation.confounding import without_clicks_above
from prudent.evaluation.confounding_by_segment import SegmentTest, by_value, detect_by_segment, excess_share
from prudent.evaluation.holdout_log import open_holdout
from prudent.evaluation.verdict import Verdict
from tests import strategies
from tests.command import run
from tests.evaluation.small import TRAINED_ELSEWHERE

CONTEXTS, ITEMS, LISTS = 8, 4, 2_000


class Drawn(NamedTuple):
    """Two kinds of users, and the lists that they were shown."""

    context: IntArray
    user: IntArray
    order: IntArray
    clicks: BoolArray
    coin: IntArray

    @property
    def lists(self) -> ListBatch:
        pairs = np.repeat(np.arange(CONTEXTS), ITEMS)
        return ListBatch(pairs, self.context[:, None] * ITEMS + self.order, self.clicks, np.ones(LISTS, np.int64))


def draw(seed: int, *, knows: float = 0.0, clicks_more: float = 0.0, likes: float = 0.0) -> Drawn:
    """Production `knows` what users of two kinds like, which they do to that degree, and one kind clicks more."""
    random = np.random.default_rng(seed)
    logits = random.normal(-1, 0.7, (CONTEXTS, ITEMS))
    taste = random.normal(size=(2, CONTEXTS, ITEMS))
    context, user = random.integers(0, CONTEXTS, LISTS), random.integers(0, 2, LISTS)
    own = logits[context] + likes * taste[user, context] + clicks_more * user[:, None]
    score = logits[context] + knows * taste[user, context] + random.gumbel(0, 1, own.shape)
    order = np.argsort(-score, axis=1)[:, :2]
    theta = 1 / (1 + np.exp(-np.take_along_axis(own, order, axis=1)))
    clicks = random.random((LISTS, 2)) < theta * np.array([1.0, 0.6])
    return Drawn(context, user, order, clicks, random.integers(0, 2, LISTS))


def simulate(seed: int, **strengths: float) -> pa.Table:
    """The same as a log, with the columns `device` and `coin`."""
    drawn = draw(seed, **strengths)
    return pa.table(
        {
            "context": [f"q{one}" for one in drawn.context],
            "items": [[f"i{item}" for item in items] for items in drawn.order.tolist()],
            "clicks": drawn.clicks.astype(int).tolist(),
            "device": np.where(drawn.user == 1, "phone", "desk").tolist(),
            "coin": drawn.coin,
        }
    )


POLICY = replace(
    prudent.Policy.from_table(
        pa.table({"context": [f"q{one}" for one in range(CONTEXTS)], "items": [["i1", "i0"]] * CONTEXTS}), items="items"
    ),
    manifest=TRAINED_ELSEWHERE,
)


def gate(log: Any, **settings: Any) -> Verdict:
    return prudent.gate(POLICY, log, min_lift=-0.9, estimator="dm(model=pbm)", **settings)


def segments_of(log: Any, **columns: Any) -> tuple[SegmentTest, ...]:
    return open_holdout(POLICY, log, None, 0.0, **columns).segments


def test_a_column_that_lists_and_clicks_depend_on_is_found() -> None:
    log = simulate(0, knows=1.2, likes=1.2)
    verdict = gate(log, segment=["device", "coin"], acknowledge="confounding")
    device, coin = verdict.segments
    assert (device.segment, device.values, device.found) == ("device", 2, True)
    assert (coin.segment, coin.values, coin.found) == ("coin", 2, False)
    assert device.test is not None
    assert device.test.p_value == 1 / 200, "no permutation is as extreme"
    assert device.test.bias > 0.05
    assert verdict.passed
    assert any("depend on 'device'" in one for one in verdict.acknowledged)
    refused = gate(log, segment="device")
    assert refused.verdict == "unknown"
    assert "make it part of the context, or log propensities" in refused.why
    per_context = prudent.gate_contexts(POLICY, log, min_lift=-0.9, estimator="dm(model=pbm)", segment="device")
    assert (per_context.verdict, per_context.segments) == ("unknown", (device,))
    notes = prudent.evaluate(POLICY, log, estimator="dm(model=pbm)", segment="device").notes
    assert any("Hidden confounding" in note and "'device'" in note for note in notes)


def test_estimates_do_not_depend_on_segments() -> None:
    """Lists are taken together again after the test: the bootstrap draws the same lists."""
    log = simulate(1)
    assert gate(log, segment=["device", "coin"]).estimate == gate(log).estimate


def test_the_bias_is_that_of_lists_that_depend_on_the_column() -> None:
    """Users who click more everywhere bias nothing unless they are also shown other lists.

    About 90 impressions per item and position leave some imbalance by chance: a bias of a few percent.
    """
    random, chosen = simulate(2, clicks_more=1.5), simulate(2, clicks_more=1.5, knows=1.5)
    random_test, chosen_test = (
        gate(log, segment="device", acknowledge="confounding").segments[0].test for log in (random, chosen)
    )
    assert random_test is not None
    assert chosen_test is not None
    assert random_test.p_value == chosen_test.p_value == 1 / 200
    assert random_test.bias < 0.06 < 0.12 < chosen_test.bias


def test_columns_without_a_bearing_on_clicks_are_rarely_suspected() -> None:
    """Of 30, 1.5 on average at p ≤ .05; six or more would be an event of 1 in 300."""
    unmoved, unknown = [draw(seed, knows=1) for seed in range(15)], [draw(seed, likes=1) for seed in range(15)]
    outcomes = [detect_by_segment(one.lists, one.user, permutations=99) for one in unmoved]
    outcomes += [detect_by_segment(one.lists, one.coin, permutations=99) for one in unknown]
    found = [test is not None and test.p_value <= 0.05 for test in outcomes]
    assert sum(found) < 6


@settings(max_examples=60)
@given(strategies.logs(max_items=4), st.data())
def test_the_bias_of_a_cell_is_that_of_standardised_click_rates(log: Any, data: st.DataObject) -> None:
    values = [data.draw(st.integers(0, 2)) for _ in log]
    lists = strategies.as_batch(log)
    impressions = without_clicks_above(lists, np.random.default_rng(0))
    excess = excess_share(lists, np.array(values), impressions) if len(impressions.cell) else np.zeros(0)
    places: dict[Any, list[int]] = defaultdict(list)
    cells: dict[Any, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for (context, items, clicks), value in zip(log, values, strict=True):
        for k, item in enumerate(items):
            if not any(clicks[:k]):
                places[context, k].append(value)
                cells[context, item, k][value].append(clicks[k])
    expected = []
    for (context, _, k), by in cells.items():
        every = [click for own in by.values() for click in own]
        if 0 < sum(every) < len(every):
            rate, b = sum(every) / len(every), 0.0
            for value, own in by.items():
                share, there = len(own) / len(every), places[context, k].count(value) / len(places[context, k])
                b += (share - there) * (sum(own) / len(own) - rate)
            expected.append(b)
    if expected:
        size = np.bincount(impressions.cell)
        actual = np.bincount(impressions.cell, impressions.residual * excess) / size
        assert sorted(actual) == pytest.approx(sorted(expected), abs=1e-9)
        assert len(np.unique(by_value(np.array(values), impressions))) == sum(
            len(by) for by in cells.values() if 0 < sum(map(sum, by.values())) < sum(map(len, by.values()))
        )


# --- columns of any kind ----------------------------------------------------------------------------------------------

HOSTILE = "de'vi\"ce; drop table lists --\u202e<b>"


def with_column(log: pa.Table, values: Any, name: str = "device") -> pa.Table:
    return log.drop_columns(["device"]).append_column(
        name, values if isinstance(values, pa.Array) else pa.array(values)
    )


@pytest.mark.parametrize(
    "kind", ["boolean", "number", "date", "missing", "all missing", "struct", "list", "hostile text", "dictionary"]
)
def test_columns_of_any_type(kind: str) -> None:
    log = simulate(0, knows=1.2, likes=1.2)
    phone = np.array(log["device"].to_pylist()) == "phone"
    made: dict[str, Any] = {
        "boolean": phone,
        "number": np.where(phone, 0.5, np.nan),
        "date": pa.array(np.where(phone, 1, 20_000).astype(np.int32)).cast(pa.date32()),
        "missing": [None if one else "desk" for one in phone.tolist()],
        "all missing": pa.nulls(LISTS),
        "struct": [{"os": "a" if one else None} for one in phone.tolist()],
        "list": [["a"] if one else [] for one in phone.tolist()],
        "hostile text": ["\x1b[31m'; \n" if one else "" for one in phone.tolist()],
        "dictionary": pa.array(log["device"].to_pylist()).dictionary_encode(),
    }
    (one,) = segments_of(with_column(log, made[kind]), segment="device")
    assert (one.values, one.found) == ((1, False) if kind == "all missing" else (2, True))


def test_many_values() -> None:
    """Users with a handful of lists each are compared as well; values that never recur say nothing."""
    log = simulate(0, knows=1.2, likes=1.2)
    phone = np.array(log["device"].to_pylist()) == "phone"
    often = np.random.default_rng(0).integers(0, 20, LISTS) * 2 + phone
    assert segments_of(with_column(log, often), segment="device")[0].found
    (never,) = segments_of(with_column(log, np.arange(LISTS)), segment="device")
    assert (never.values, never.found) == (LISTS, False)
    assert str(never) == "values of 'device' hardly recur, so that there is nothing to compare: group them"


def test_columns_that_are_not_there() -> None:
    log = simulate(0)
    with pytest.raises(
        LogError,
        match=r"no column 'devise' for the segment\. Did you mean 'device'\?.*Set segment=\.\.\. \(--segment\)",
    ):
        gate(log, segment=["coin", "devise"])
    with pytest.raises(UsageError, match="'context' is named for two different things"):
        gate(log, segment="context")
    assert len(segments_of(log, segment=["coin", "coin"])) == 1


@pytest.mark.parametrize("kind", ["lists.parquet", "lists.jsonl", "rows.parquet", "rows.csv"])
def test_files_of_every_format_and_hostile_names(kind: str, tmp_path: Path) -> None:
    log = simulate(0, knows=1.2, likes=1.2)
    log = with_column(log, log["device"].combine_chunks(), HOSTILE)
    expected = segments_of(log, segment=HOSTILE)
    assert expected[0].found
    file, columns = tmp_path / kind, {}
    if kind.startswith("rows"):
        columns = {"layout": "rows"}
        rows = [
            {
                "impression": i,
                "context": one["context"],
                "item": item,
                "position": k,
                "click": click,
                HOSTILE: one[HOSTILE],
            }
            for i, one in enumerate(log.to_pylist())
            for k, (item, click) in enumerate(zip(one["items"], one["clicks"], strict=True), start=1)
        ]
        log = pa.Table.from_pylist(rows)
    if kind.endswith("parquet"):
        pq.write_table(log, file)
    elif kind.endswith("csv"):
        pyarrow.csv.write_csv(log, file)
    else:
        file.write_text("\n".join(json.dumps(one) for one in log.to_pylist()))
    assert segments_of(file, segment=HOSTILE, **columns) == expected


def test_commands_and_the_report_say_what_was_found(tmp_path: Path) -> None:
    log, policy, page = tmp_path / "log.parquet", tmp_path / "policy.parquet", tmp_path / "report.html"
    table = simulate(0, knows=1.2, likes=1.2)
    pq.write_table(with_column(table, table["device"].combine_chunks(), HOSTILE), log)
    POLICY.write(policy)
    options = ("--segment", HOSTILE, "--segment", "coin", "--min-lift", "-0.9", "-e", "dm(model=pbm)")
    for words in (("gate",), ("gate-contexts", "-o", str(tmp_path / "mixed.parquet"))):
        done = run(words[0], str(policy), "--log", str(log), *words[1:], *options)
        assert done.code == 1
        assert done.text.startswith("unknown")
        assert "click rates of an item at a position do not depend on 'coin'" in done.text
        assert "\u202e" not in done.text
    data = prudent.report(POLICY, log, to=page, segment=[HOSTILE, "coin"], estimator="dm(model=pbm)", min_lift=-0.9)
    assert data["verdict"]["verdict"] == "unknown"
    assert len(data["verdict"]["segments"]) == 2
    assert "<b>" not in page.read_text().split('<div class="verdict')[1].split("</div>")[0]


def test_with_propensities_there_is_nothing_to_test() -> None:
    log = simulate(0, knows=1.2, likes=1.2).append_column("p", pa.array(np.full(LISTS, 0.1)))
    assert segments_of(log, segment="device", propensity="p") == ()


def test_one_value_is_nothing_to_compare() -> None:
    lists = strategies.as_batch([("q", ("a", "b"), (i % 2, 0)) for i in range(40)])
    test = detect_by_segment(lists, np.zeros(40, np.int64))
    assert test is not None
    assert (test.p_value, test.bias) == (1.0, 0.0)


def test_segments_of_ubi_records(tmp_path: Path) -> None:
    """The same lists as a table and as records: the same test, from the command line too."""
    log = simulate(0, knows=1.2, likes=1.2)
    with (tmp_path / "ubi.ndjson").open("w") as records:
        for number, one in enumerate(log.to_pylist()):
            asked = {"user_query": one["context"], "query_response_hit_ids": one["items"]}
            records.write(
                json.dumps({"query_id": number, **asked, "query_attributes": {"device": one["device"]}}) + "\n"
            )
            for item, clicked in zip(one["items"], one["clicks"], strict=True):
                event = {
                    "query_id": number,
                    "action_name": "click",
                    "event_attributes": {"object": {"object_id": item}},
                }
                records.write(f"{json.dumps(event)}\n" if clicked else "")
    field = "query_attributes.device"
    (found,) = segments_of(tmp_path / "ubi.ndjson", format="ubi", segment=field)
    assert replace(found, segment="device") == segments_of(log, segment="device")[0]
    POLICY.write(tmp_path / "policy.parquet")
    options = ("--log", tmp_path / "ubi.ndjson", "--format", "ubi", "--segment", field, "-e", "dm(model=pbm)")
    done = run("gate", tmp_path / "policy.parquet", *options, "--min-lift", "-0.9")
    assert done.code == 1
    assert f"depend on '{field}' (p = 0.005)" in done.text
