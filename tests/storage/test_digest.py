"""The digest of a log is that of its lists, whatever holds them, and of what is counted by days."""

import hashlib
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prudent
from prudent.counts.lists import digest_of, read_whole_lists
from prudent.engines.duckdb.engine import DuckDB
from prudent.storage import digest as module
from prudent.storage.digest import Digest, digest_lists
from prudent.storage.manifest import Manifest, Source, Tally
from tests import strategies

LOGS = strategies.logs(max_items=4)


def as_table(lists: Any) -> pa.Table:
    context, items, clicks = zip(*lists, strict=True)
    return pa.table({"context": list(context), "items": list(map(list, items)), "clicks": list(map(list, clicks))})


def plain(lists: Any, most: int) -> tuple[dict[str, int], str]:
    """How often each of the first lists by hash occurs, and the hash of the next one."""
    found: dict[str, int] = {}
    for context, items, clicks in lists:
        text = "\x1e".join([str(context), "\x1f".join(map(str, items)), "".join(map(str, map(int, clicks)))])
        name = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()[:10]
        found[name] = found.get(name, 0) + 1
    ordered = sorted(found)
    return {name: found[name] for name in ordered[:most]}, ordered[most] if len(ordered) > most else "g"


@settings(max_examples=8)  # each counts four logs
@given(LOGS, st.sampled_from([2, 4_096]))
def test_the_digest_of_counts_and_of_a_log_is_that_of_a_plain_loop(lists: Any, most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MOST", most)
        log = as_table(lists)
        _, whole, _ = read_whole_lists(prudent.Log(log), DuckDB(), max_rejected=0)
        digests = [prudent.count(log).training.digest, digest_of(whole, DuckDB())]
        half = len(lists) // 2
        if half:
            digests.append((prudent.count(log[:half]) + prudent.count(log[half:])).training.digest)
    expected, below = plain(lists, most)
    for digest in digests:
        assert digest is not None
        assert (digest.lists, digest.contexts, digest.below) == (expected, "g", below)


def test_another_log_is_counted_in_the_same_sample() -> None:
    one = [("q", ("a", "b"), (0, 1))] * 3 + [("q", ("b", "a"), (0, 0))]
    two = [("q", ("a", "b"), (0, 1))] * 2 + [("q", ("a", "b"), (0, 0))]
    with duckdb.connect() as connection:
        for name, lists in (("one", one), ("two", two)):
            connection.register(name, as_table(lists))
        digest = digest_lists(connection, "select *, 1 as n from one")
        assert digest is not None
        n, m = digest.counted(connection, "select *, 1 as n from two")
    assert sorted(zip(n.tolist(), m.tolist(), strict=True)) == [(0, 1), (1, 0), (3, 2)]


def test_a_manifest_keeps_it_and_a_damaged_one_is_refused(tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        connection.register("one", as_table([("q", ("a", "b"), (0, 1))]))
        digest = digest_lists(connection, "select *, 1 as n from one")
    manifest = Manifest("policy", sources={"training": Source(("log",), Tally(1), digest=digest)})
    manifest.write(tmp_path / "policy.parquet")
    assert Manifest.read(tmp_path / "policy.parquet") == manifest
    for text in ("", "g", "g:g", "g:g:!", "g:g:AAAA", "zz:g:", "' or 1=1:g:", f"g:{'a' * 11}:", "g:g:A==="):
        with pytest.raises(ValueError, match="damaged"):
            Digest(text)
