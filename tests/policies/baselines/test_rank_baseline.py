"""From a log to a policy by a method that weighs whole lists: the engine's pass, the policy, the command line."""

import json
import random
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prudent
from prudent.base.errors import LogError, UsageError
from prudent.counts.lists import batch_of, name_tables, read_whole_lists
from prudent.counts.lists import cut as cut_lists
from prudent.engines.duckdb.engine import DuckDB
from prudent.policies.baselines import baselines, fold
from prudent.storage.sketch import EVERYTHING
from tests import reference
from tests.command import run
from tests.policies.baselines import reference as plain
from tests.reference import LoggedList, Name, Pair
from tests.strategies import as_batch, integer_names, logs, plain_names, rows, table, text_names

METHODS = ["ips", "ips(clip=2)", "ip-ips", "ip-ips(clip=2)", "pi"]
LOG: list[LoggedList] = [
    *[("shoes", ("a", "b", "c"), (1, 0, 0))] * 6,
    *[("shoes", ("b", "c", "a"), (0, 1, 0))] * 3,
    ("shoes", ("c", "a"), (1, 1)),
    *[("boots", ("d", "a"), (0, 1))] * 2,
    ("boots", ("a", "d"), (1, 0)),
    ("socks", ("e",), (0,)),
]


def rank_baseline(lists: Sequence[LoggedList], method: str, **settings: Any) -> prudent.Policy:
    return prudent.rank_baseline(prudent.Log(table(lists)), method, **settings)


def chosen(policy: prudent.Policy) -> dict[Name, tuple[Name, ...]]:
    return {context: tuple(policy[context]) for context in policy}


def cut(lists: Sequence[LoggedList], length: int) -> list[LoggedList]:
    return [(context, items[:length], clicks[:length]) for context, items, clicks in lists]


# --- the pass -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [plain_names, text_names, integer_names], ids=["plain", "text", "integers"])
@pytest.mark.parametrize("layout", ["lists", "rows"])
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_lists_come_out_as_they_went_in(names: st.SearchStrategy[Any], layout: Any, data: st.DataObject) -> None:
    lists = data.draw(logs(names))
    length = data.draw(st.none() | st.integers(1, 6))
    log = prudent.Log(table(lists) if layout == "lists" else rows(lists), layout=layout)
    engine = DuckDB(threads=2)
    tally, whole, threshold = read_whole_lists(log, engine, max_rejected=0)
    piece = cut_lists(whole, length)
    shown = batch_of([piece])
    assert threshold == EVERYTHING
    lists = cut(lists, length or reference.longest(lists))
    assert (tally.lists, tally.rejected_lists) == (len(lists), 0)
    assert sum(shown.n) == len(lists)
    actual, expected = fold(shown), fold(as_batch(lists))
    for name in ("context", "items", "clicks", "n"):
        assert getattr(actual, name).tolist() == getattr(expected, name).tolist()
    pairs = sorted({(context, item) for context, items, _ in lists for item in items})
    with engine.connect() as connection:
        name_tables(connection, piece.run)
        assert connection.execute("select context, item from pairs order by number").fetchall() == pairs
        contexts = connection.execute("select number, context from contexts order by number").fetchall()
    assert contexts == list(enumerate(sorted({context for context, _ in pairs})))


def test_bad_lists_are_rejected_as_they_are_counted() -> None:
    bad = [
        {"context": None, "items": ["a"], "clicks": [0]},
        {"context": "x", "items": [], "clicks": []},
        {"context": "x", "items": ["a", "b"], "clicks": [1]},
        {"context": "x", "items": ["a", "a"], "clicks": [0, 1]},
        {"context": "x", "items": ["a", None], "clicks": [0, 1]},
        {"context": "x", "items": ["a", "b"], "clicks": [0, 2]},
    ]
    good = [{"context": "x", "items": ["a", "b"], "clicks": [1, 1]}] * 4
    log = prudent.Log(pa.Table.from_pylist(good + bad))
    tally = prudent.count(log, max_rejected=1).tally
    assert len(tally.rejected) == 6
    said = prudent.rank_baseline(log, "ips", max_rejected=1).manifest.sources["training"]
    assert said.tally.lists == tally.lists == 4
    assert said.tally.rejected == tally.rejected
    # A click that is no click counts as bad even where the list is cut above it.
    assert prudent.rank_baseline(log, "ip-ips", length=1, max_rejected=1).manifest.sources["training"] == said
    for learn in (prudent.count, lambda log: prudent.rank_baseline(log, "ips")):
        with pytest.raises(LogError, match=r"6 of 10 lists .* are rejected \(60.0%, more than max_rejected=0.01"):
            learn(log)


# --- the policy ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=10, deadline=None)
@given(lists=logs())
def test_the_policy_is_the_method_s_choice(method: str, lists: list[LoggedList]) -> None:
    if not any(any(clicks) for _, _, clicks in lists):
        with pytest.raises(LogError, match="has a click"):
            rank_baseline(lists, method)
        return
    policy = rank_baseline(lists, method)
    choice = baselines.parse(method).choose(fold(as_batch(lists)))
    pairs = sorted({(context, item) for context, items, _ in lists for item in items})
    shown = reference.impressions(lists)
    clicks = dict.fromkeys(pairs, 0)
    for context, items, clicked in lists:
        for item, click in zip(items, clicked, strict=True):
            clicks[context, item] += click

    def evidence(pair: Pair) -> tuple[float, float, int]:
        return clicks[pair], shown[pair] - clicks[pair], shown[pair]

    row, _, rank = (column.tolist() for column in choice.lists)
    assert policy.lists().fetchall() == [
        (pairs[i][0], k, pairs[i][1], adds, adds, None, None, *evidence(pairs[i]))
        for i, k, adds in zip(row, rank, choice.adds.tolist(), strict=True)
    ]
    assert policy.scores().fetchall() == [
        (*pair, best, best, None, None, *evidence(pair)) for pair, best in zip(pairs, choice.best.tolist(), strict=True)
    ]
    summary = policy.manifest.results["summary"]
    assert summary["value"] * len(lists) == pytest.approx(sum(n * v for _, n, v, *_ in policy.contexts().fetchall()))


def test_contexts_compare_with_the_list_that_was_shown_most() -> None:
    contexts = rank_baseline(LOG, "ips").contexts()
    values = ["value", "lower", "incumbent_value", "incumbent_lower"]
    assert contexts.columns == ["context", "lists", *values, "differ", "evidence"]
    assert contexts.fetchall() == [
        ("boots", 3, 1, 1, 1, 1, False, "log"),
        ("shoes", 10, 2, 2, 1, 1, True, "log"),
        ("socks", 1, 0, 0, 0, 0, False, "log"),
    ]


def test_provenance_names_the_method_and_neither_model_nor_bound(tmp_path: Path) -> None:
    policy = rank_baseline(LOG, "ips(clip=50)", min_lists=2)
    assert repr(policy).startswith("Policy for 2 contexts by ips(clip=50)\n")
    policy.write(tmp_path / "policy.parquet")
    read = prudent.Policy.read(tmp_path / "policy.parquet")
    assert chosen(read) == chosen(policy) == {"boots": ("d", "a"), "shoes": ("c", "a")}
    assert read.manifest.settings == {"baseline": "ips(clip=50)", "length": 3, "min_lists": 2}
    assert read.manifest.sources["training"].tally.lists == 14
    assert read.manifest.results["summary"]["too_few_lists"] == 1
    assert "lower" not in read.manifest.results["summary"], "there is no bound"


@pytest.mark.parametrize("method", METHODS)
def test_a_shorter_length_cuts_the_log(method: str) -> None:
    assert chosen(rank_baseline(LOG, method, length=2)) == chosen(rank_baseline(cut(LOG, 2), method))
    assert rank_baseline(LOG, method, length=2).manifest.settings["length"] == 2
    for long in (3, 10, 10**30):
        assert chosen(rank_baseline(LOG, method, length=long)) == chosen(rank_baseline(LOG, method))


@pytest.mark.parametrize("method", METHODS)
def test_same_bytes_whatever_the_order_and_the_threads(method: str, tmp_path: Path) -> None:
    actual = set()
    for threads in (1, 4):
        shuffled = random.Random(threads).sample(LOG, len(LOG))
        policy = rank_baseline(shuffled, method, engine=DuckDB(threads=threads))
        policy.write(tmp_path / "policy.parquet", tmp_path / "scores.parquet")
        actual.add(
            sha256((tmp_path / "policy.parquet").read_bytes() + (tmp_path / "scores.parquet").read_bytes()).digest()
        )
    assert len(actual) == 1


@pytest.mark.parametrize("method", METHODS)
def test_hostile_names_are_names(method: str) -> None:
    names = ['"; drop table pairs; --', "'", "\x1b[31m", "[bold]", "{}", "null", "", " ", "ä", "𝕏"]
    lists: list[LoggedList] = [(name, (name, *names[:2]) if i > 1 else (name,), (1,)) for i, name in enumerate(names)]
    lists = [(context, items, clicks + (0,) * (len(items) - 1)) for context, items, clicks in lists]
    policy = rank_baseline(lists, method)
    assert set(policy) == set(names)
    for name in names:
        assert policy[name][0] == name


@pytest.mark.parametrize("method", METHODS)
def test_names_keep_their_type(method: str) -> None:
    policy = rank_baseline([(7, (1, 2), (0, 1)), (8, (2**62, 3), (1, 0))], method)
    assert {type(name) for context in policy for name in [context, *policy[context]]} == {int}


def test_agrees_with_the_plain_loop_on_a_shortened_log() -> None:
    policy = rank_baseline(LOG, "ips(clip=2)", length=2)
    for context in ("shoes", "boots", "socks"):
        assert tuple(policy[context]) == plain.best_ips(cut(LOG, 2), context, 2)


# --- refusals -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"method": "isp"}, "No baseline is called 'isp'. Did you mean 'ips'?"),
        ({"method": "pi(clip=5)"}, "pi has no setting 'clip'. It has none."),
        ({"method": "ips", "length": 0}, "length is 0; it must be a whole number, at least 1"),
        ({"method": "ips", "length": 1.5}, "length is 1.5; it must be a whole number"),
        ({"method": "ips", "min_lists": -1}, "min_lists is -1"),
        ({"method": "ips", "max_rejected": 2}, "max_rejected is 2; it is a share"),
    ],
)
def test_wrong_settings(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as refusal:
        rank_baseline(LOG, **settings)
    assert said in str(refusal.value)


def test_counts_do_not_keep_whole_lists() -> None:
    log = prudent.Log(table(LOG))
    wrong: Any = prudent.count(log)
    with pytest.raises(UsageError, match="pi needs the log itself: counts do not keep whole lists"):
        prudent.rank_baseline(wrong, "pi")


def test_nothing_to_rank() -> None:
    with pytest.raises(LogError, match="No context has 11 logged lists"):
        rank_baseline(LOG, "ips", min_lists=11)
    with pytest.raises(LogError, match="Not one of the 3 lists has a click in its first 1 positions"):
        rank_baseline([("x", ("a", "b"), (0, 1))] * 3, "pi", length=1)
    with pytest.raises(LogError, match="has no lists"):
        prudent.rank_baseline(prudent.Log(table(LOG).slice(0, 0)), "ips")


# --- the command line ---------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pq.write_table(table(LOG), "log.parquet")
    return tmp_path


@pytest.mark.parametrize("method", METHODS)
def test_command_writes_the_same_policy(folder: Path, method: str) -> None:
    ran = run("rank", "log.parquet", "-o", "policy.parquet", "--scores", "scores.parquet", "--baseline", method)
    assert ran.code == 0, ran.text
    assert f"3 lists by {method}, from 14 logged" in ran.text
    assert f"by {method}" in ran.text
    assert "pessimistic" not in ran.text
    assert chosen(prudent.Policy.read("policy.parquet")) == chosen(rank_baseline(LOG, method))
    assert pq.read_table("scores.parquet").num_rows == 6


def test_command_takes_the_options_of_a_log(folder: Path) -> None:
    pq.write_table(rows(LOG), "rows.parquet")
    options = ["--baseline", "ips", "--layout", "rows", "--length", 2, "--min-lists", 2, "--json", "--threads", 1]
    ran = run("rank", "rows.parquet", "-o", "policy.parquet", *options)
    assert ran.code == 0, ran.text
    said = json.loads(ran.out)
    assert said["settings"] == {"baseline": "ips", "length": 2, "min_lists": 2}
    assert chosen(prudent.Policy.read("policy.parquet")) == chosen(rank_baseline(LOG, "ips", length=2, min_lists=2))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--baseline", "isp"], "Did you mean 'ips'?"),
        (["--baseline", "ips(clip=0)"], "clip is 0.0"),
        (["--baseline", "pi", "--model", "cm"], "--baseline does not work with --model: leave out one of the two"),
        (["--baseline", "pi", "--bound", "mle"], "--baseline does not work with --bound"),
        (["--baseline", "pi", "--candidates", "log.parquet"], "--baseline does not work with --candidates"),
        (["--baseline", "pi", "log.parquet"], "log.parquet is named twice"),
    ],
)
def test_command_refuses(folder: Path, options: list[str], said: str) -> None:
    ran = run("rank", "log.parquet", "-o", "policy.parquet", *options)
    assert ran.code == 2
    assert said in ran.text
    assert not Path("policy.parquet").exists()


def test_command_refuses_counts(folder: Path) -> None:
    assert run("count", "log.parquet", "-o", "counts.parquet").code == 0
    ran = run("rank", "counts.parquet", "-o", "policy.parquet", "--baseline", "ip-ips")
    assert ran.code == 3
    assert "counts.parquet holds counts, which do not keep whole lists. The log itself is needed here." in ran.text


def test_help_mentions_methods() -> None:
    assert "--baseline" in run("rank", "--help").out
