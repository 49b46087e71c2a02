"""Ranking on Spark: the lists, the numbers and the summary of `prudent.rank`, to the last bit."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import prudent
from prudent.base.errors import CountsError, LogError, PrudentError, PrudentWarning, UsageError, WriteError
from prudent.click_models.simulate import write_log
from prudent.click_models.world import make_world
from prudent.engines.spark import contexts
from prudent.policies.fitted_prior import FittedPrior
from tests.command import run


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Text names, some of them not ASCII, of contexts of different sizes."""
    folder = tmp_path_factory.mktemp("log")
    world = make_world("pbm", contexts=80, items=(3, 30), length=5, zipf=1.0, exploration=2, seed=3)
    table = pq.read_table(write_log(world, 6_000, folder / "numbers.parquet", seed=3))
    context = [f"запрос {c}" if c % 2 else f"query {c}" for c in table["context"].to_pylist()]
    items = [[f"{i}-é" for i in row] for row in table["items"].to_pylist()]
    named = pa.table({"context": context, "items": items, "clicks": table["clicks"]})
    pq.write_table(named, folder / "log.parquet")
    return folder / "log.parquet"


@pytest.fixture(scope="module")
def counts(log: Path) -> prudent.Counts:
    return prudent.count(prudent.Log(log), to=log.with_name("counts.parquet"))


def rank(counts: Any, session: SparkSession, folder: Path, **settings: Any) -> Any:
    """Rank on Spark into a folder; the manifest."""
    return prudent.rank(counts, engine=prudent.Spark(session), to=folder / "policy", **settings).manifest


def same(folder: Path, found: Any, policy: prudent.Policy) -> None:
    """The same bytes, once the part files are one with the same manifest, and the same account of them."""
    policy.write(folder / "one.parquet")
    replace(prudent.Policy.read(folder / "policy"), manifest=policy.manifest).write(folder / "other.parquet")
    assert (folder / "one.parquet").read_bytes() == (folder / "other.parquet").read_bytes()
    for key in ("model", "bound", "asked_model", "length", "min_lists"):
        assert found.settings[key] == policy.manifest.settings[key]
    assert found.results == policy.manifest.results
    assert found.sources["training"].tally == policy.manifest.sources["training"].tally


@pytest.mark.parametrize(
    ("model", "bound"),
    [
        ("auto", "exposure"),
        ("dcm", "eb"),
        ("dcm(tail=truncate)", "eb(pool=context)"),
        ("cm", "hierarchical"),
        ("ubm", "eb"),
        ("robust", "eb"),
        ("ensemble(model=dcm, replicates=5)", "anchored"),
    ],
)
def test_the_policy_of_one_machine(
    model: str, bound: str, counts: prudent.Counts, quick: SparkSession, tmp_path: Path
) -> None:
    found = rank(counts, quick, tmp_path, model=model, bound=bound)
    same(tmp_path, found, prudent.rank(counts, model, bound=bound))


def test_with_integers_for_names_and_samples_of_contexts(
    log: Path, quick: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there are more pairs than it takes, both learn from the same contexts."""
    monkeypatch.setattr("prudent.counts.sampling.MOST_PAIRS", 400)
    counts = prudent.count(prudent.Log(log.with_name("numbers.parquet")), to=tmp_path / "counts.parquet")
    found = rank(tmp_path / "counts.parquet", quick, tmp_path, length=3)
    same(tmp_path, found, prudent.rank(counts, length=3))
    assert found.results["fitted"]["prior"]["pairs"] <= 400 < counts.index.pairs


@pytest.mark.parametrize("bound", ["anchored", "anchored(lead=clicks)"])
def test_with_groups(bound: str, counts: prudent.Counts, quick: SparkSession, tmp_path: Path) -> None:
    """Workers make the same keys, and Spark adds up the same totals."""
    items = sorted({item for _, item in counts.pairs.fetchall()})
    table = pa.table({"item": items, "brand": [str(i % 7) for i in range(len(items))]})
    pq.write_table(table, tmp_path / "items.parquet")
    settings: dict[str, Any] = {"groups": "item,query", "item_groups": tmp_path / "items.parquet", "bound": bound}
    found = rank(counts, quick, tmp_path, **settings)
    same(tmp_path, found, prudent.rank(counts, **settings))
    assert found.results["fitted"]["groups"]["item"]["groups"] == len(items)


def rates_elsewhere(folder: Path) -> dict[tuple[str, str], float]:
    """The click-through rates of pairs in another log of the same world."""
    world = make_world("pbm", contexts=80, items=(3, 30), length=5, zipf=1.0, exploration=2, seed=3)
    write_log(world, 6_000, folder / "other.parquet", seed=4)
    rows = duckdb.execute(
        f"select context, item, avg(click) from (select context, unnest(items) as item, unnest(clicks) as click "
        f"from '{folder / 'other.parquet'}') group by all"
    ).fetchall()
    return {(f"{'запрос' if c % 2 else 'query'} {c}", f"{i}-é"): rate for c, i, rate in rows}


@pytest.mark.parametrize("model", ["ridge", "lightgbm(trees=20)"])
def test_with_features(model: str, counts: prudent.Counts, quick: SparkSession, tmp_path: Path) -> None:
    """Models are fitted where Spark is driven; workers look up the same features, also of a context nobody has seen."""
    if model != "ridge":
        pytest.importorskip("lightgbm")
    pairs = counts.pairs.fetchall()
    items = sorted({item for _, item in pairs})
    price = [float(number % 11) for number in range(len(items))]
    pq.write_table(pa.table({"item": items, "price": price}), tmp_path / "items.parquet")
    offered = {"context": [c for c, _ in pairs] + ["new"] * len(items), "item": [i for _, i in pairs] + items}
    pq.write_table(pa.table(offered), tmp_path / "offer.parquet")
    rates = rates_elsewhere(tmp_path)
    match = [rates.get(pair, 0.0) for pair in pairs]
    named = {name: column[: len(pairs)] for name, column in offered.items()}
    pq.write_table(pa.table({**named, "match": match}), tmp_path / "pairs.parquet")
    settings: dict[str, Any] = {
        "features": [tmp_path / "items.parquet", tmp_path / "pairs.parquet"],
        "feature_model": model,
        "groups": "item",
        "candidates": tmp_path / "offer.parquet",
        "unseen": True,
    }
    found = rank(counts, quick, tmp_path, **settings)
    same(tmp_path, found, prudent.rank(counts, **settings))
    assert found.results["fitted"]["prior"]["by_group"]["features"]["slope"] > 0.2


def test_features_that_are_too_large_for_tasks(
    counts: prudent.Counts, quick: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prudent.policies.rank_on_spark._MOST_BYTES", 20)
    with pytest.raises(UsageError, match="The features take 0 MB, and each task of Spark needs all of them"):
        rank(counts, quick, tmp_path, features=pa.table({"item": ["x", "y"], "n": [1, 2]}))


def test_too_many_groups_for_tasks(
    counts: prudent.Counts, quick: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prudent.policies.rank_on_spark._MOST_GROUPS", 5)
    with pytest.raises(UsageError, match="more than 5 groups"):
        rank(counts, quick, tmp_path, groups="item")


def test_with_candidates(counts: prudent.Counts, quick: SparkSession, tmp_path: Path) -> None:
    named = counts.pairs.fetchall()
    eligible = [*named[::2], ("query 2", "new"), ("nobody asked", "new"), ("nobody asked", "newer")]
    pq.write_table(
        pa.table({"context": [c for c, _ in eligible], "item": [i for _, i in eligible]}), tmp_path / "offer.parquet"
    )
    settings: dict[str, Any] = {"candidates": tmp_path / "offer.parquet", "min_lists": 0}
    found = rank(counts, quick, tmp_path, **settings)
    same(tmp_path, found, prudent.rank(counts, **settings))
    frame = quick.read.parquet(str(tmp_path / "offer.parquet"))
    again = rank(counts, quick, tmp_path, candidates=frame, min_lists=0)
    assert again.results["summary"] == found.results["summary"]
    contexts = sorted({context for context, _ in eligible})
    topics = pa.table({"context": contexts, "topic": [str(number % 2) for number in range(len(contexts))]})
    settings = {"candidates": tmp_path / "offer.parquet", "unseen": True, "groups": "item,host,query"}
    settings["context_groups"] = topics
    unseen = rank(counts, quick, tmp_path, **settings)
    one = prudent.rank(counts, **settings)
    same(tmp_path, unseen, one)
    assert unseen.results["summary"]["unseen"] == 1
    prior = (tmp_path / "policy" / "_prior.json").read_text(encoding="utf-8")
    assert isinstance(one.prior, FittedPrior)
    assert prior == one.prior.to_text(), "requests get the same lists too"


def test_days_of_which_the_older_weigh_less(log: Path, quick: SparkSession, tmp_path: Path) -> None:
    table = pq.read_table(log)
    for day, part in (("2026-11-01", table[:2000]), ("2026-11-05", table[2000:4500]), ("2026-11-09", table[4500:])):
        prudent.count(prudent.Log(part), to=tmp_path / "counts", day=day)
    half_life: dict[str, Any] = {"half_life": "4d", "since": "2026-11-02"}
    found = rank(tmp_path / "counts", quick, tmp_path, model="cm", **half_life)
    policy = prudent.rank(prudent.Counts.read(tmp_path / "counts", **half_life), "cm")
    policy.write(tmp_path / "one.parquet")
    prudent.Policy.read(tmp_path / "policy").write(tmp_path / "other.parquet")
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "other.parquet").read_bytes()
    # Lists are those that were read, whatever they weigh.
    one, other = found.sources["training"], policy.manifest.sources["training"]
    assert (one.days, one.tally) == (other.days, other.tally)
    assert found.results["summary"] == policy.manifest.results["summary"]


def test_counts_that_spark_made(log: Path, counts: prudent.Counts, quick: SparkSession, tmp_path: Path) -> None:
    engine = prudent.Spark(quick)
    made = prudent.count(prudent.Log(str(log)), engine=engine, to=f"file:{tmp_path}/counts")
    assert made == counts
    assert (tmp_path / "counts.manifest.json").read_text() == made.manifest.to_text()
    found = prudent.rank(f"file:{tmp_path}/counts", engine=engine, to=f"file:{tmp_path}/policy").manifest
    same(tmp_path, found, prudent.rank(counts))
    here = prudent.Counts.read(tmp_path / "counts")
    assert here == counts
    assert here.tally == counts.tally


def test_days_that_spark_counted(log: Path, quick: SparkSession, tmp_path: Path) -> None:
    """With what was rejected, once however many part files there are; the same day twice is one day."""
    engine, table = prudent.Spark(quick), pq.read_table(log)
    broken = pa.table({"context": ["a"], "items": [["x", "x"]], "clicks": [[0, 1]]})
    for day, part in (
        ("2026-11-01", table[:2000]),
        ("2026-11-02", pa.concat_tables([table[2000:], broken.cast(table.schema)])),
    ):
        pq.write_table(part, tmp_path / "day.parquet")
        for _ in range(2):
            prudent.count(prudent.Log(tmp_path / "day.parquet"), engine=engine, to=tmp_path / "counts", day=day)
            prudent.count(prudent.Log(tmp_path / "day.parquet"), to=tmp_path / "ours", day=day)
    one, other = (prudent.Counts.read(tmp_path / name, half_life="1d") for name in ("counts", "ours"))
    assert one == other
    assert one.tally == other.tally
    assert one.tally.rejected == {"duplicate item in a list": 1}
    with pytest.raises(UsageError, match=r"engine=prudent\.Spark"):
        prudent.count(prudent.Log(tmp_path / "day.parquet"), to="hdfs://somewhere/counts")


def test_files_follow_each_other_and_duckdb_reads_them(
    counts: prudent.Counts, quick: SparkSession, tmp_path: Path
) -> None:
    found = rank(counts, quick, tmp_path)
    assert (tmp_path / "policy.manifest.json").read_text() == found.to_text()
    files = sorted((tmp_path / "policy").glob("*.parquet"))
    rows = [row for file in files for row in duckdb.execute(f"select context, rank from '{file}'").fetchall()]
    assert rows == sorted(rows)
    assert duckdb.execute(f"select count(*) from '{tmp_path}/policy/*.parquet'").fetchall() == [(len(rows),)]


def test_ranking_again_replaces(counts: prudent.Counts, quick: SparkSession, tmp_path: Path) -> None:
    rank(counts, quick, tmp_path, length=1)
    rank(counts, quick, tmp_path, length=2)
    assert prudent.Policy.read(tmp_path / "policy").lists().aggregate("max(rank)").fetchall() == [(2,)]


def test_contexts_come_whole_however_batches_cut_them() -> None:
    rows = pa.table({"context": [1, 1, 1, 2, 3, 3, 3, 3, 4, 5, 5]})
    for size in range(1, 12):
        for most in range(1, 12):
            tables = list(contexts.whole_contexts(iter(rows.to_batches(max_chunksize=size)), most))
            assert pa.concat_tables(tables).equals(rows)
            seen = [set(table["context"].to_pylist()) for table in tables]
            assert sum(map(len, seen)) == 5, "no context in two of them"


def test_no_rows_are_no_contexts() -> None:
    assert list(contexts.whole_contexts(iter([]), 10)) == []
    assert contexts.changes(pa.array([], pa.string())).tolist() == []
    assert contexts.changes(pa.array(["a"])).tolist() == [True]


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda folder: folder / "nothing", LogError, "no file"),
        (lambda folder: _write(folder / "x.parquet", {"context": ["a"]}), CountsError, "does not hold counts"),
        (lambda folder: _copy(folder, b"prudent_counts", b"prudent_county"), CountsError, "does not hold counts"),
        (lambda folder: _copy(folder, b"prudent_tally", b"prudent_tallx"), CountsError, "is damaged"),
        (lambda folder: _count([2**63], folder / "unsigned.parquet").parent, CountsError, "unsigned"),
        (
            lambda folder: _count(["a"], _count([7], folder / "one.parquet").with_name("two.parquet")).parent,
            CountsError,
            "by integers and text, .* by text and text: they cannot be added",
        ),
    ],
)
def test_what_is_no_counts(
    make: Callable[[Path], Path], error: type[Exception], said: str, quick: SparkSession, tmp_path: Path
) -> None:
    """By what a file says of itself at its end, as on one machine, and not by its columns."""
    (tmp_path / "given").mkdir()
    given = make(tmp_path / "given")
    with pytest.raises(error, match=said):
        rank(given, quick, tmp_path)
    assert not (tmp_path / "policy").exists()


def _count(contexts: list[Any], file: Path) -> Path:
    """Three lists of each context."""
    lists = len(contexts)
    kind = pa.uint64() if isinstance(contexts[0], int) and max(contexts) >= 2**63 else None
    log = {"context": pa.array(contexts * 3, kind), "items": [["x", "y"]] * 3 * lists, "clicks": [[1, 0]] * 3 * lists}
    prudent.count(prudent.Log(pa.table(log)), to=file)
    return file


def _copy(folder: Path, old: bytes, new: bytes) -> Path:
    """Counts of which one word is another."""
    file = _count(["a"], folder / "counts.parquet")
    assert file.read_bytes().count(old) == 1
    file.write_bytes(file.read_bytes().replace(old, new))
    return file


def test_a_tally_stands_in_the_file_and_needs_no_manifest(quick: SparkSession, tmp_path: Path) -> None:
    lists = pa.table({"context": ["a"] * 199 + [None], "items": [["x", "y"]] * 200, "clicks": [[1, 0]] * 200})
    counts = prudent.count(prudent.Log(lists), to=tmp_path / "counts.parquet")
    (tmp_path / "counts.parquet.manifest.json").unlink()
    found = rank(counts, quick, tmp_path, model="cm")
    assert found.sources["training"].tally.rejected == {"context missing": 1} == dict(counts.tally.rejected)


def test_the_same_file_twice_is_a_mistake(counts: prudent.Counts, quick: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="named twice"):
        rank([*counts.files, *counts.files], quick, tmp_path)
    with pytest.raises(UsageError, match="named twice"):
        prudent.Counts.read(*counts.files, *counts.files)


def _write(file: Path, columns: dict[str, Any]) -> Path:
    pq.write_table(pa.table(columns), file)
    return file


def test_nothing_to_learn_and_nothing_to_rank(quick: SparkSession, tmp_path: Path) -> None:
    lists = pa.table({"context": ["a"] * 3, "items": [["x", "y"]] * 3, "clicks": [[0, 0]] * 3})
    prudent.count(prudent.Log(lists), to=tmp_path / "none.parquet")
    with pytest.raises(LogError, match="Not one of the 3 lists has a click"):
        rank(tmp_path / "none.parquet", quick, tmp_path)
    lists = lists.set_column(2, "clicks", pa.array([[1, 0]] * 3))
    prudent.count(prudent.Log(lists), to=tmp_path / "some.parquet")
    with pytest.raises(LogError, match="No context has a candidate and 4 logged lists"):
        rank(tmp_path / "some.parquet", quick, tmp_path, min_lists=4)
    with pytest.raises(UsageError, match="No bound is called"):
        rank(tmp_path / "some.parquet", quick, tmp_path, bound="ebb")


def test_warns_of_lists_that_are_longer_than_any_logged(quick: SparkSession, tmp_path: Path) -> None:
    lists = pa.table({"context": ["a"] * 4, "items": [["x"], ["y"]] * 2, "clicks": [[1], [0]] * 2})
    counts = prudent.count(prudent.Log(lists), to=tmp_path / "counts.parquet")
    with pytest.warns(PrudentWarning, match="Some lists are longer"):
        found = rank(counts, quick, tmp_path, model="cm", length=2)
    with pytest.warns(PrudentWarning, match="Some lists are longer"):
        same(tmp_path, found, prudent.rank(counts, "cm", length=2))


def test_a_skewed_context_is_ranked_like_any_other(quick: SparkSession, tmp_path: Path) -> None:
    """A third of all lists in one context: the counts have no more rows of it than of any other with as many items."""
    rng = np.random.default_rng(0)
    context = np.where(rng.random(9_000) < 1 / 3, "head", np.char.add("tail ", rng.integers(0, 300, 9_000).astype(str)))
    items = [[f"i{k}" for k in rng.permutation(12)[:5]] for _ in range(9_000)]
    clicks = (rng.random((9_000, 5)) < 0.2).astype(int).tolist()
    log = pa.table({"context": context.astype(object), "items": items, "clicks": clicks})
    counts = prudent.count(prudent.Log(log), to=tmp_path / "counts.parquet")
    found = rank(counts, quick, tmp_path, model="cm")
    same(tmp_path, found, prudent.rank(counts, "cm"))


def test_nothing_is_replaced_that_is_not_ours(
    log: Path, counts: prudent.Counts, quick: SparkSession, tmp_path: Path
) -> None:
    engine = prudent.Spark(quick)
    for name, file in (("mine", "part-0.parquet"), ("dots", ".git/config")):
        target = tmp_path / name / file
        target.parent.mkdir(parents=True)
        shutil.copy(log, target)
        with pytest.raises(WriteError, match="Cannot write"):
            prudent.count(prudent.Log(str(log)), engine=engine, to=tmp_path / name)
        assert target.exists()
    with pytest.raises(UsageError, match="would replace"):
        prudent.count(prudent.Log(str(tmp_path / "mine")), engine=engine, to=tmp_path / "mine")
    with pytest.raises(UsageError, match="would replace"):
        prudent.rank(counts, engine=engine, to=counts.files[0].parent)
    prudent.count(prudent.Log(str(log)), engine=engine, to=tmp_path / "counts")
    with pytest.raises(WriteError, match="have the columns context, items, cells"):
        prudent.rank(counts, engine=engine, to=tmp_path / "counts")


def test_a_merged_day_is_not_counted_again(log: Path, quick: SparkSession, tmp_path: Path) -> None:
    for day in ("2026-11-01", "2026-11-02", "2026-11-03"):
        prudent.count(prudent.Log(log), to=tmp_path / "counts", day=day)
    prudent.compact(tmp_path / "counts", before="2026-11-03")
    with pytest.raises(CountsError, match="was merged into"):
        prudent.count(prudent.Log(str(log)), engine=prudent.Spark(quick), to=tmp_path / "counts", day="2026-11-01")
    (tmp_path / "stopped/day=2026-11-01..2026-11-02").mkdir(parents=True)  # merged nothing: there is no file in it
    prudent.count(prudent.Log(str(log)), engine=prudent.Spark(quick), to=tmp_path / "stopped", day="2026-11-01")


@pytest.mark.parametrize("what", ["damaged", "none", "candidates", "table"])
def test_errors_are_one_line(what: str, counts: prudent.Counts, quick: SparkSession, tmp_path: Path) -> None:
    given: Any = list(counts.files)
    settings: dict[str, Any] = {}
    if what == "damaged":
        given = tmp_path / "damaged.parquet"
        given.write_bytes(counts.files[0].read_bytes()[:2000])
    elif what == "none":
        given = []
    elif what == "candidates":
        settings["candidates"] = tmp_path / "nowhere.parquet"
    else:
        settings["candidates"] = pa.table({"context": ["a"], "item": ["b"]})
    with pytest.raises(PrudentError) as error:
        rank(given, quick, tmp_path, **settings)
    assert len(str(error.value).splitlines()) == 1


# --- the command line -------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("session")  # in this process there is one Spark, which the commands find
def test_count_and_rank_on_the_command_line(log: Path, counts: prudent.Counts, tmp_path: Path) -> None:
    spark = ("--engine", "spark", "--master", "local[2]", "--conf", "spark.sql.shuffle.partitions=2")
    ran = run("count", log, "-o", tmp_path / "counts.parquet", *spark)
    assert (ran.code, "Counted 6,000 lists" in ran.text) == (0, True), ran.text
    assert prudent.Counts.read(tmp_path / "counts.parquet") == counts
    ran = run("count", log, "-o", f"file:{tmp_path}/days", "--day", "2026-11-15", *spark, "--json")
    assert ran.code == 0, ran.text
    assert json.loads(ran.out)["sources"]["log"]["lists"] == 6_000
    assert prudent.Counts.read(tmp_path / "days") == counts
    ran = run("rank", f"file:{tmp_path}/days", "-o", tmp_path / "policy", "--half-life", "7d", *spark)
    assert (ran.code, "80 lists by" in ran.text) == (0, True), ran.text
    assert len(prudent.Policy.read(tmp_path / "policy")) == 80
    ran = run("rank", tmp_path / "counts.parquet", "-o", tmp_path / "policy", "--json", *spark)
    assert json.loads(ran.out)["results"]["summary"]["contexts"] == 80


def test_what_is_no_log_no_counts_and_no_engine(counts: prudent.Counts, quick: SparkSession, tmp_path: Path) -> None:
    wrong: Any = quick
    with pytest.raises(LogError, match="has no column 'context'"):
        prudent.count(wrong.range(1), engine=prudent.Spark(quick))
    for call in (
        lambda: prudent.rank(counts, engine=wrong, to=tmp_path / "x"),
        lambda: prudent.count(prudent.Log("x.parquet"), engine=wrong),
    ):
        with pytest.raises(UsageError, match=r"The engine is <pyspark.*: prudent\.DuckDB\(\.\.\.\) or"):
            call()
    with pytest.raises(UsageError, match="Spark writes the lists to a folder: to="):
        prudent.rank(counts, engine=prudent.Spark(quick))


def test_counts_and_policies_elsewhere(
    log: Path, counts: prudent.Counts, remote: prudent.Spark, elsewhere: Path
) -> None:
    """Written and read by Spark, listed through pyarrow, and copied to this machine on first use."""
    shutil.copy(log, elsewhere / "log.parquet")
    (elsewhere / "days").mkdir()
    made = prudent.count(
        prudent.Log("viewfs://elsewhere/logs/log.parquet"),
        engine=remote,
        to="viewfs://elsewhere/logs/days",
        day="2026-11-15",
    )
    assert made.files == ()
    assert made == counts
    assert made.tally == counts.tally
    policy = prudent.rank(
        "viewfs://elsewhere/logs/days", engine=remote, to="viewfs://elsewhere/logs/policy", since="3d"
    )
    expected = prudent.rank(counts)
    assert policy.lists().fetchall() == expected.lists().fetchall()
    assert policy.manifest.results == expected.manifest.results
    assert policy["query 2"] == expected["query 2"]
    assert policy.counts is not None
    assert "_here" not in policy.counts.__dict__, "auto and Spark do not copy the cells"
    assert (made.sample().items == counts.sample().items).all()
    assert (elsewhere / "policy.manifest.json").read_text() == policy.manifest.to_text()
    assert (elsewhere / "policy" / "_manifest.json").read_text() == policy.manifest.to_text()
    (elsewhere / "days/day=2026-11-15.manifest.json").unlink()
    assert prudent.Counts.read("viewfs://elsewhere/logs/days", engine=remote).tally == made.tally
    (elsewhere / "days/day=2026-11-15/_manifest.json").unlink()
    with pytest.raises(CountsError, match=r"no viewfs://.*day=2026-11-15\.manifest\.json, which has the tally"):
        prudent.Counts.read("viewfs://elsewhere/logs/days", engine=remote)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (
            ["rank", "x.parquet", "-o", "p", "--engine", "spark", "--conf", "a"],
            "write a setting as key=value",
        ),
        (
            ["rank", "x.parquet", "-o", "p", "--engine", "spark", "--baseline", "ips"],
            "--baseline does not work with",
        ),
        (
            ["rank", "x.parquet", "-o", "p", "--engine", "spark", "--scores", "s"],
            "(--scores) are written beside a local file",
        ),
        (["rank", "x.parquet", "-o", "hdfs://h/p"], "Spark writes there"),
        (["rank", "x.parquet", "-o", "p", "--engine", "spark", "--memory", "1GB"], "--memory and --threads are for"),
        (["count", "x.parquet", "-o", "p", "--master", "yarn"], "--master and --conf are for Spark"),
    ],
)
def test_wrong_usage(args: list[str], said: str) -> None:
    ran = run(*args)
    assert ran.code == 2
    assert said in ran.text


def test_rules_on_spark_are_those_of_one_machine(
    log: Path, counts: prudent.Counts, quick: SparkSession, tmp_path: Path
) -> None:
    """Every kind at once, with names that are not ASCII, and groups of a table in memory."""
    table = pq.read_table(log)
    items = sorted({item for row in table["items"].to_pylist() for item in row})
    first = {
        context: row[0] for context, row in zip(*(table[n].to_pylist() for n in ("context", "items")), strict=True)
    }
    rules = {
        "pin": [{"item": first["запрос 1"], "position": 3, "context": "запрос 1"}],
        "exclude": [{"item": first["query 2"], "context": "query 2"}],
        "bury": [{"item": first["запрос 3"]}],
        "keep_first": 1,
        "at_most": {"brand": 2},
        "item_groups": pa.table({"item": items, "brand": [number % 7 for number in range(len(items))]}),
        "new": {"share": 0.2, "below_impressions": 30},
    }
    policy = prudent.rank(counts, "pbm", rules=rules)
    costs = policy.manifest.results["rules"]
    assert sum(cost["changed"] > 0 for cost in costs.values()) >= 4, costs
    same(tmp_path, rank(counts, quick, tmp_path, model="pbm", rules=rules), policy)
