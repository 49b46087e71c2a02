"""Contexts are ranked part by part, and what is common to all is learned from some: neither may show in the result."""

from functools import partial
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import prudent
from prudent.base.numerics.squarem import fixed_point
from prudent.bounds import bayes
from prudent.click_models.simulate import write_log
from prudent.click_models.world import make_world
from prudent.counts import index as numbered
from prudent.counts.cells import Cells
from prudent.counts.sampling import heaviest, samples
from tests.reference import LoggedList
from tests.strategies import table

MODELS = ["cm", "dcm", "dcm(tail=truncate)", "dcm(continuation=[.5, .6, .7, .8, .9, 1])", "pbm", "pbm(counts=weighted)"]
BOUNDS = ["mle", "hoeffding", "bayes", "eb", "eb(pool=context)", "exposure", "hierarchical"]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Contexts of very different sizes, with lists of different lengths."""
    folder = tmp_path_factory.mktemp("log")
    world = make_world("pbm", contexts=30, items=(3, 40), length=6, zipf=1.2, exploration=2, seed=5)
    table = pq.read_table(write_log(world, 8_000, folder / "log.parquet", seed=5))
    rng = np.random.default_rng(0)
    length = rng.integers(1, 7, table.num_rows).tolist()
    cut = {
        name: [row[:k] for row, k in zip(table[name].to_pylist(), length, strict=True)] for name in ("items", "clicks")
    }
    pq.write_table(pa.table({"context": table["context"], **cut}), folder / "cut.parquet")
    return folder / "cut.parquet"


@pytest.fixture(scope="module")
def counts(log: Path) -> prudent.Counts:
    return prudent.count(prudent.Log(log))


def written(counts: prudent.Counts, folder: Path, **settings: object) -> tuple[str, ...]:
    """The bytes of everything that is written."""
    prudent.rank(counts, **settings).write(folder / "policy.parquet", folder / "scores.parquet")  # type: ignore[arg-type]
    return tuple(sha256(file.read_bytes()).hexdigest() for file in sorted(folder.glob("*.parquet*")))


def in_parts(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbered, "_MOST_CELLS", cells)


@pytest.mark.parametrize("model", MODELS)
def test_the_size_of_parts_does_not_show(
    model: str, counts: prudent.Counts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = written(counts, tmp_path, model=model, bound="eb(pool=context)")
    for cells in (1, 1_000):  # one context at a time, a few
        in_parts(cells, monkeypatch)
        assert written(counts, tmp_path, model=model, bound="eb(pool=context)") == whole


# Quantiles of posteriors are tabulated; the first two bounds have none.
@pytest.mark.parametrize(
    ("bound", "tabulated"), [*((bound, False) for bound in BOUNDS), *((bound, True) for bound in BOUNDS[2:])]
)
def test_nor_with_any_bound(
    bound: str, tabulated: bool, counts: prudent.Counts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bayes, "TABLE_FROM", 1 if tabulated else 10**9)
    whole = written(counts, tmp_path, model="cm", bound=bound)
    in_parts(100, monkeypatch)
    assert written(counts, tmp_path, model="cm", bound=bound) == whole


def test_nor_with_candidates(counts: prudent.Counts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some that were never logged, in contexts that were and in contexts that were not; of some contexts none."""
    named = counts.pairs.fetchall()
    eligible = [(context, item) for context, item in named if item % 3 and context % 7] + [
        (context, 10**6 + item) for context in (1, 5, 999, 1000) for item in range(4)
    ]
    table = pa.table({"context": [c for c, _ in eligible], "item": [i for _, i in eligible]})
    whole = written(counts, tmp_path, candidates=table, min_lists=0)
    in_parts(1, monkeypatch)
    monkeypatch.setattr("prudent.engines.duckdb.engine._KEPT", 0)  # counts are read anew for every pass
    assert written(counts, tmp_path, candidates=table, min_lists=0) == whole


def test_parts_are_the_whole(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = prudent.count(prudent.Log(log)).index
    whole = names.whole().cells
    in_parts(500, monkeypatch)
    parts = list(names.parts())
    assert len(parts) > 10
    assert sum(part.cells.pairs for part in parts) == whole.pairs
    for name in ("position", "prev", "click", "more", "n"):
        together = np.concatenate([getattr(part.cells, name) for part in parts])
        np.testing.assert_array_equal(together, getattr(whole, name))
    pairs, contexts = (np.cumsum([0, *(getattr(part.cells, name) for part in parts)]) for name in ("pairs", "contexts"))
    pair = np.concatenate([part.cells.pair + first for part, first in zip(parts, pairs, strict=False)])
    np.testing.assert_array_equal(pair, whole.pair)
    context = np.concatenate([part.cells.context + first for part, first in zip(parts, contexts, strict=False)])
    np.testing.assert_array_equal(context, whole.context)
    assert [name for part in parts for name in part.items.to_list()] == names.whole().items.to_list()


@pytest.mark.parametrize("chunk", [1, 7, 1 << 16])
def test_sizes_of_contexts_are_those_of_a_plain_loop(log: Path, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However their cells are cut."""
    monkeypatch.setattr(numbered, "_CHUNK", chunk)
    names = prudent.count(prudent.Log(log)).index
    cells = names.whole().cells
    expected = np.zeros((names.contexts, 5), np.int64)
    for pair, position, click, n in zip(cells.pair, cells.position, cells.click, cells.n, strict=True):
        row = expected[cells.context[pair]]
        row[0] += 1
        row[1] = max(row[1], position)
        row[2] += n * (position == 1)
        row[3] += n * click
    expected[:, 4] = np.bincount(cells.context)
    found = names.cells_of, names.longest_of, names.lists_of, expected[:, 3], names.pairs_of
    np.testing.assert_array_equal(np.stack(found, axis=1), expected)
    assert names.clicks == expected[:, 3].sum()


def test_some_contexts_are_those_of_the_whole(log: Path) -> None:
    """Also several selections at once, one of them of all."""
    names = prudent.count(prudent.Log(log)).index
    third = np.arange(names.contexts) % 3 == 1
    selections = third, ~third, np.ones_like(third)
    for marked, some in zip(selections, names.only(*selections), strict=True):
        expected = names.whole().cells.only(marked)
        for name in Cells.__dataclass_fields__:
            np.testing.assert_array_equal(getattr(some.cells, name), getattr(expected, name))


def test_names_are_numbered_in_their_order(tmp_path: Path) -> None:
    """That of bytes, in any number of pieces."""
    contexts = [
        "",
        "'; drop table pairs; --",
        "A",
        "a",
        "a\u0301",
        "á",
        "z",
        "é",
        "Ω",
        "\U0001f600",
        "\uffff",
        "10",
        "9",
    ]
    lists: list[LoggedList] = [
        (context, (f"{context}1", "b", "'"), (1, 0, 1)) for context in contexts for _ in range(3)
    ]
    counts = prudent.count(prudent.Log(table(lists)))
    pairs = counts.pairs.fetchall()
    assert pairs == sorted(pairs, key=lambda pair: (pair[0].encode(), pair[1].encode()))
    assert counts.index.names.to_list() == sorted(contexts, key=str.encode)
    assert counts.index.find([*contexts, "none", 7]) == {
        name: at for at, name in enumerate(counts.index.names.to_list())
    }


# --- learning from some contexts --------------------------------------------------------------------------------------


def test_a_sample_is_of_whole_contexts_and_of_few_pairs(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = prudent.count(prudent.Log(log)).index
    monkeypatch.setattr("prudent.counts.sampling.MOST_PAIRS", 300)
    heavy, fair = samples(names)
    assert 250 < heavy.cells.pairs <= 300
    assert 250 < fair.cells.pairs <= 300
    lists = np.sort(names.lists_of)[::-1]
    np.testing.assert_array_equal(np.sort(heavy.cells.lists_per_context())[:3:-1], lists[: heavy.cells.contexts - 4])
    assert fair.cells.lists_per_context().mean() < heavy.cells.lists_per_context().mean() / 2
    monkeypatch.setattr("prudent.counts.sampling.MOST_CELLS", 400)
    heavy, _ = samples(names)
    assert heavy.cells.contexts == 5, "five contexts, however large"


def test_cells_are_cut_to_the_same_sample(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is learned from cells in memory is learned from the contexts that ranking would take."""
    names = prudent.count(prudent.Log(log)).index
    whole = names.whole().cells
    assert whole.heaviest() is whole
    monkeypatch.setattr("prudent.counts.sampling.MOST_PAIRS", 300)
    order = np.arange(names.contexts)
    marked = heaviest(order, names.pairs_of, names.cells_of, names.lists_of, names.longest_of)
    some, expected = whole.heaviest(), whole.only(marked)
    assert 200 < some.pairs <= 300
    for name in Cells.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(some, name), getattr(expected, name))
    model = prudent.click_models.parse("dcm")
    one, other = (model.fit(cells, whole.positions).parameters["continuation"] for cells in (whole, expected))
    np.testing.assert_array_equal(one, other)


def test_a_sample_has_all_positions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The contexts with most lists have short ones: what is learned of the last positions comes from others."""
    rng = np.random.default_rng(3)
    rows: list[tuple[int, list[int], list[int]]] = []
    for name, times, length in [*((c, 900, 4) for c in range(30)), *((100 + c, 300, 6) for c in range(10))]:
        for _ in range(times):
            items = rng.permutation(8)[:length]
            rows.append((name, items.tolist(), (rng.random(length) < 0.3).astype(int).tolist()))
    log = pa.table(dict(zip(("context", "items", "clicks"), map(list, zip(*rows, strict=True)), strict=True)))
    counts = prudent.count(prudent.Log(log))
    monkeypatch.setattr("prudent.counts.sampling.MOST_PAIRS", 100)
    fitted = prudent.rank(counts, "pbm").manifest.results["fitted"]["examination"]  # identified, or this would raise
    assert len(fitted) == 6
    continuation = prudent.rank(counts, "dcm").manifest.results["fitted"]["continuation"]
    assert 0.5 not in continuation


def test_what_is_learned_from_some_holds_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fifth of the pairs give the examination to .02 and means to .01 of what all of them give."""
    world = make_world("pbm", contexts=500, items=(20, 30), length=5, zipf=0.3, exploration=3, seed=7)
    counts = prudent.count(prudent.Log(write_log(world, 60_000, tmp_path / "log.parquet", seed=7)))
    of_all = prudent.rank(counts, "pbm")
    monkeypatch.setattr("prudent.counts.sampling.MOST_PAIRS", 2_500)
    of_some = prudent.rank(counts, "pbm")
    one, other = (np.array(policy.manifest.results["fitted"]["examination"]) for policy in (of_all, of_some))
    assert 0 < np.max(np.abs(one - other)) < 0.02
    means = [policy.scores().fetchnumpy()["mean"] for policy in (of_all, of_some)]
    assert 0 < np.mean(np.abs(means[0] - means[1])) < 0.01


def test_each_group_comes_to_rest_by_itself() -> None:
    """The same steps, bit for bit, alone and beside groups that take longer."""
    rate = np.array([0.1, 0.2, 0.9, 0.99, 0.5])
    aim = np.array([0.3, 0.6, 0.2, 0.9, 0.5])
    groups = np.array([0, 2, 4])

    def step(x: np.ndarray, of: slice = slice(None)) -> np.ndarray:
        return np.asarray(aim[of] + rate[of] * (x - aim[of]) + 0.05 * (x - aim[of]) ** 2)

    together, rest = fixed_point(step, np.full(5, 0.1), 1e-9, groups, 200)
    assert rest.all()
    np.testing.assert_allclose(together, aim, atol=1e-6)
    for first, last in ((0, 2), (2, 4), (4, 5)):
        own = partial(step, of=slice(first, last))
        alone, _ = fixed_point(own, np.full(last - first, 0.1), 1e-9, np.zeros(1, np.int64), 200)
        np.testing.assert_array_equal(together[first:last], alone)
    _, rest = fixed_point(step, np.full(5, 0.1), 1e-9, groups, 2)
    assert not rest.all()


def test_large_files_are_packed_the_same_however_parts_are_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More rows than DuckDB packs together, 122,880: where a part ends in between must not show."""
    contexts = 13_000
    items = [[10 * context + k for k in range(10)] for context in range(contexts)]
    log = pa.table({"context": list(range(contexts)), "items": items, "clicks": [[1] + [0] * 9] * contexts})
    counts = prudent.count(prudent.Log(log))
    files = []
    for most in (numbered._MOST_CELLS, 50_000):
        monkeypatch.setattr(numbered, "_MOST_CELLS", most)
        files.append((tmp_path / f"{most}.parquet", tmp_path / f"{most}.scores"))
        prudent.rank(counts, "cm", bound="mle").write(files[-1][0], scores=files[-1][1])
    assert len(list(counts.index.parts())) > 2
    for one, other in zip(*files, strict=True):
        assert one.read_bytes() == other.read_bytes()
