"""Every experiment has the panels, methods and data that its figure shows, and leaves its files."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest

from prudent.research import paper
from prudent.research.bench import Bench, Outcome
from prudent.research.data import ClickLog, LabelSet, read_click_log, synthetic_log
from prudent.research.laboratory import Laboratory
from prudent.research.reproduce import CATALOGUE, Request, reproduce
from prudent.research.sources import FittedTruth, HeldOutClicks, LabelledQueries, LabelsLike, YandexLike

pytestmark = pytest.mark.usefixtures("small")


@pytest.fixture
def bench() -> Bench:
    return Bench(Laboratory(), repetitions=2, deltas=(0.2, 1.0), methods=("mle", "eb", "ips"))


@pytest.fixture(scope="module")
def clicks() -> ClickLog:
    """Six of the synthetic queries, as if they were real."""
    whole = synthetic_log(0)
    among = whole.contexts < 6
    return ClickLog(
        "log",
        whole.contexts[among],
        tuple(replace(whole.top(6, slice(part, part + 1)), context=whole.contexts[among]) for part in range(3)),
    )


def panels(outcome: Outcome) -> list[tuple[str, str, str]]:
    """Data, logging and model, in the order of the table."""
    return list(dict.fromkeys((row.data, row.logging, row.model) for row in outcome.rows))


ARMS = [("mle", None), ("eb", 0.2), ("eb", 1.0), ("ips", 0.2), ("ips", 1.0)]


def arms(outcome: Outcome) -> list[tuple[str, float | None]]:
    return list(dict.fromkeys((row.method, row.delta) for row in outcome.rows))


LOGGINGS = ("production", "uniform")


def top_queries(outcome: Outcome) -> None:
    data = "Yandex-like, 10 most frequent queries"
    assert panels(outcome) == [(data, logging, kind) for logging in LOGGINGS for kind in ("cm", "dcm", "pbm")]
    assert arms(outcome) == ARMS
    assert {(row.n, row.repetitions) for row in outcome.rows} == {(1_000, 2)}
    assert min(row.error for row in outcome.rows) > -1e-12
    sources = [result.protocol.source for result in outcome.results]
    weights = [(source.quality, source.noise) for source in sources if isinstance(source, YandexLike)]
    assert weights == [(2.0, 1.4)] * 3 + [(0.0, 0.0)] * 3


def the_most_frequent_query(outcome: Outcome) -> None:
    assert {data for data, *_ in panels(outcome)} == {"Yandex-like, the most frequent query"}


def less_frequent_queries(outcome: Outcome) -> None:
    sizes = [f"Yandex-like, {size} most frequent queries" for size in (10, 20, 50, 100)]
    assert panels(outcome) == [(data, logging, "dcm") for logging in LOGGINGS for data in sizes]


def delta_is_chosen_on_the_past(outcome: Outcome) -> None:
    """The δ with the smallest mean error there, for each method and model; the future is told at that δ alone."""
    chosen = outcome.facts["delta"]
    bench = Bench(Laboratory(), repetitions=2, deltas=(0.2, 1.0))
    past = [
        bench.sweep(data, "past", source, kind, bounds={"eb": bench.bounds["eb"]}, baselines={})
        for kind, data, source in paper._days(bench, 0)
    ]
    for protocol in past:
        error = dict(zip(protocol.arms, np.mean([protocol.errors(0, r)[0] for r in range(2)], axis=0), strict=True))
        assert chosen[protocol.source.kind] == {"eb": min((0.2, 1.0), key=lambda delta: error["eb", delta])}
    actual = [(row.model, row.n, row.method, row.delta) for row in outcome.rows]
    assert actual == [
        (kind, n, method, delta)
        for kind in ("cm", "dcm", "pbm")
        for n in (50, 200)
        for method, delta in (("mle", None), ("eb", chosen[kind]["eb"]))
    ]
    assert {row.data for row in outcome.rows} == {"Yandex-like, future"}
    assert [note.partition(":")[0] for note in outcome.notes][:3] == ["cm", "dcm", "pbm"]


def grids_of_priors(outcome: Outcome) -> None:
    methods = ["mle", *(f"eb, {m} × {m} grid" for m in (1, 2, 5, 10, 20))]
    assert list(dict.fromkeys(method for method, _ in arms(outcome))) == methods
    assert panels(outcome) == [("Yandex-like, 10 most frequent queries", logging, "dcm") for logging in LOGGINGS]
    # A grid of the one prior Beta(1, 1) is `bayes`.
    result = outcome.results[0]
    alone = replace(result.protocol, bounds={"bayes": Bench(Laboratory()).bounds["bayes"]})
    expected = np.concatenate([alone.errors(0, repetition) for repetition in range(2)])
    np.testing.assert_allclose(result.errors[:, 1:3], expected)


def the_wrong_model(outcome: Outcome) -> None:
    assert [model for _, _, model in panels(outcome)] == ["dcm on clicks of pbm", "pbm on clicks of dcm"] * 2
    assert [result.protocol.source.kind for result in outcome.results] == ["pbm", "dcm"] * 2
    assert [str(result.protocol.model).partition("(")[0] for result in outcome.results] == ["dcm", "pbm"] * 2


def labels(outcome: Outcome) -> None:
    loggings = [logging for _, logging, _ in panels(outcome)]
    assert loggings == ["Dirichlet per query"] * 3 + ["Dirichlet per list"] * 3
    assert {(row.n, row.repetitions) for row in outcome.rows} == {(100, 2)}
    for result in outcome.results:
        source = result.protocol.source
        assert isinstance(source, LabelsLike)
        assert (source.queries, source.per) == (6, result.protocol.logging.split()[-1])
        assert sum(source.mix) == pytest.approx(1)


def qualities_of_logging(outcome: Outcome) -> None:
    qualities = [f"quality {quality}" for quality in ("-2", "-1", "-0.5", "0", "0.5", "1", "2")]
    assert [logging for _, logging, _ in panels(outcome)] == [of for of in qualities for _ in range(3)]


def later_clicks(outcome: Outcome) -> None:
    assert panels(outcome) == [
        ("a simulated log, later clicks, 10 queries", "production", kind) for kind in ("cm", "dcm", "pbm")
    ]
    assert all(isinstance(result.protocol.source, HeldOutClicks) for result in outcome.results)


CHECKS: dict[str, Callable[[Outcome], None]] = {
    "top-queries": top_queries,
    "top-query": the_most_frequent_query,
    "less-frequent": less_frequent_queries,
    "sample-size": delta_is_chosen_on_the_past,
    "cross-validation": later_clicks,
    "prior-grid": grids_of_priors,
    "misspecified": the_wrong_model,
    "yahoo": labels,
    "mslr": labels,
    "istella": labels,
    "logging-quality": qualities_of_logging,
}
FILES = ["csv", "parquet", "parquet.manifest.json", "png", "repetitions.parquet", "svg"]


@pytest.mark.slow
@pytest.mark.parametrize("name", CATALOGUE)
def test_every_experiment(name: str, tmp_path: Path) -> None:
    """Run once, on synthetic data: what is in its table, and which files it leaves."""
    request = Request(repetitions=2, deltas=(0.2, 1.0), methods=("mle", "eb", "ips"))
    said: list[tuple[str, int, int]] = []
    folder = tmp_path / "new" / "folder"
    ((actual, outcome),) = reproduce(name, folder, request, lambda *of: said.append(of))
    assert actual == name
    ends = sorted([*FILES, "md"]) if outcome.page else FILES
    assert sorted(file.name for file in folder.iterdir()) == [f"{name}.{end}" for end in ends]
    with duckdb.connect() as connection:
        count = "select count(*), min(error) from read_parquet(?)"
        rows, least = connection.execute(count, [str(folder / f"{name}.parquet")]).fetchall()[0]
    assert rows == len(outcome.rows) > 0
    assert least > -1e-12
    manifest = json.loads((folder / f"{name}.parquet.manifest.json").read_text())["settings"]
    assert (manifest["experiment"], manifest["data"]) == (name, "synthetic")
    assert (manifest["repetitions"], manifest["seed"]) == (2, 0)
    assert {one for one, *_ in said} == {name}
    assert said[-1][1] == said[-1][2]
    if name in CHECKS:
        CHECKS[name](outcome)


def test_real_labels(bench: Bench) -> None:
    labels = LabelSet("mine.txt", np.tile([0, 1, 2, 3, 4], 8), np.full(8, 5))
    outcome = paper.mslr(replace(bench, labels=labels))
    assert {data for data, *_ in panels(outcome)} == {"MSLR labels, 6 queries"}
    for result in outcome.results:
        assert isinstance(result.protocol.source, LabelledQueries)
        assert result.protocol.source.queries == 6


# --- with a log of one's own -----------------------------------------------------------------------------------------


def test_a_log_is_resampled_under_a_truth_fitted_to_it(bench: Bench, clicks: ClickLog) -> None:
    outcome = paper.top_queries(replace(bench, clicks=clicks, methods=("mle",)))
    assert {data for data, *_ in panels(outcome)} == {"Yandex, 6 most frequent queries"}
    for result in outcome.results:
        source = result.protocol.source
        assert isinstance(source, FittedTruth)
        assert source.logging == result.protocol.logging
        assert source.kind == str(result.protocol.model).partition("(")[0]
        inside = source.lists.items[source.lists.items >= 0]
        assert np.bincount(inside).min() > 0  # every item is in some list


def test_later_clicks_are_graded_by_earlier_ones(bench: Bench, clicks: ClickLog) -> None:
    outcome = paper.cross_validation(replace(bench, clicks=clicks, methods=("mle",)))
    assert {data for data, *_ in panels(outcome)} == {"Yandex, later clicks, 6 queries"}
    assert all(isinstance(result.protocol.source, HeldOutClicks) for result in outcome.results)


@pytest.mark.data
def test_pessimism_pays_on_real_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """Real Yandex lists, cm, δ = .2: `eb` loses about half as much as the MLE; 40 paired repetitions tell."""
    monkeypatch.undo()
    folder = Path(os.environ["PRUDENT_DATA"]) / "yandex"
    clicks = read_click_log([folder / "train.tsv.gz", folder / "test.tsv.gz"], "yandex")
    bench = Bench(Laboratory(), clicks, repetitions=40, deltas=(0.2,), methods=("mle", "eb"))
    result = paper.top_queries(bench).results[0]
    assert (result.protocol.logging, result.protocol.source.kind) == ("production", "cm")
    gain = result.difference("mle", "eb", 0.2)
    assert gain.error > 4 * gain.se
