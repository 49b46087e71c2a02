"""What the benchmarks compute, apart from time: logs, plain models, lists by hand, made-up counts, slopes."""

import sys
from pathlib import Path

import duckdb
import numpy as np
import pytest

import prudent
from prudent.click_models.simulate import write_log
from prudent.click_models.world import make_world

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks import grading, logs, measuring, pairs, plain_models, work
from benchmarks.agreement import agree
from benchmarks.measuring import Figure, Run

LENGTH = 4


def logged(kind: str, folder: Path, lists: int) -> tuple[prudent.Counts, list[plain_models.Session]]:
    """A small log, counted and as sessions."""
    log = folder / "log.parquet"
    write_log(make_world(kind, contexts=5, items=(5, 6), length=LENGTH, seed=3), lists, log, seed=3)
    rows = duckdb.execute(f"select context, items, clicks from '{log}'").fetchall()
    return prudent.count(prudent.Log(log)), [plain_models.Session(*row) for row in rows]


def shares(model: plain_models.CascadeModel | plain_models.DependentClickModel, counts: prudent.Counts) -> np.ndarray:
    actual = [model.attraction[context][item] for context, item in counts.pairs.fetchall()]
    return np.array([(share.hits, share.trials) for share in actual])


def test_plain_cascade_counts_what_prudent_counts(tmp_path: Path) -> None:
    counts, sessions = logged("cm", tmp_path, 500)
    model = plain_models.CascadeModel()
    model.fit(sessions)
    evidence = prudent.click_models.parse("cm").evidence(counts)
    np.testing.assert_array_equal(shares(model, counts), np.stack([evidence.positive, evidence.examined], axis=1))


def test_plain_dependent_click_counts_what_prudent_counts(tmp_path: Path) -> None:
    """λ of the last position is not observed: prudent borrows the one above."""
    counts, sessions = logged("dcm", tmp_path, 500)
    model = plain_models.DependentClickModel()
    model.fit(sessions)
    evidence = prudent.click_models.parse("dcm(tail=truncate)").evidence(counts)
    np.testing.assert_array_equal(shares(model, counts), np.stack([evidence.positive, evidence.examined], axis=1))
    continuation = [model.continuation[rank].value for rank in range(1, LENGTH)]
    np.testing.assert_allclose(continuation, evidence.fitted.parameters["continuation"][:-1])


def test_plain_em_goes_where_newton_goes(tmp_path: Path) -> None:
    """The same likelihood with the same smoothing has one maximum; EM is within 1e-3 of it after 300 rounds."""
    counts, sessions = logged("pbm", tmp_path, 600)
    model = plain_models.PositionBasedModel(prior=0.01)
    model.fit(sessions, rounds=300)
    evidence = prudent.click_models.parse("pbm(smooth=0.01)").evidence(counts)
    examination = np.array([model.examination[rank].value for rank in range(1, LENGTH + 1)])
    np.testing.assert_allclose(examination / examination.max(), evidence.fitted.parameters["examination"], atol=1e-3)


def test_plain_em_of_ubm_goes_where_ours_goes(tmp_path: Path) -> None:
    """Likelihoods of held-out lists, since single γ are hardly determined: within .02 per list."""
    sessions = logged("ubm", tmp_path, 3_000)[1]
    train, test = sessions[:2_000], sessions[2_000:]
    model = plain_models.UserBrowsingModel(prior=0.01)
    model.fit(train, rounds=100)
    actual = np.mean([np.log(chances(model, session)).sum() for session in test])
    halves = [tmp_path / name for name in ("train.parquet", "test.parquet")]
    for half, rows in zip(halves, ("limit 2000", "offset 2000"), strict=True):
        duckdb.execute(f"copy (from '{tmp_path}/log.parquet' {rows}) to '{half}' (format parquet)")
    ours = prudent.compare(halves[0], halves[1], model=["ubm"])["ubm"].log_likelihood
    assert actual == pytest.approx(ours, abs=0.02)


def chances(model: plain_models.UserBrowsingModel, session: plain_models.Session) -> np.ndarray:
    """The probability of what happened at each position."""
    clicks = np.array(session.clicks)
    return np.where(clicks, model.clicks_above(session), 1 - np.array(model.clicks_above(session)))


@pytest.mark.parametrize("name", ["head", "real", "integers", "rows"])
def test_lists_by_hand_are_ours(name: str, tmp_path: Path) -> None:
    """Of every kind of log: evidence and lists of `cm`, by SQL, by Polars, and by prudent."""
    log, file = logs.LOGS[name], tmp_path / "log.parquet"
    logs.make_log(str(file), "400", "30", log.contexts, log.names, log.layout)
    work.count(str(file), log.layout, str(tmp_path))
    work.policy(str(file), log.layout, str(tmp_path), "cm", f"hoeffding(delta={work.DELTA})")
    for by_hand in (work.sql_evidence, work.sql_policy, work.polars_evidence, work.polars_policy):
        by_hand(str(file), log.layout, str(tmp_path))
    counted = agree(str(file), log.layout, str(tmp_path))
    assert counted["cells"] >= counted["pairs"] > counted["contexts"] > 20
    assert prudent.count(file, layout=log.layout).tally.lists == 400


def test_contexts_of_a_real_log_are_mostly_seen_once(tmp_path: Path) -> None:
    """0.86 of those in 100,000 lists, and 0.80 of those in a million; half of all lists are of others."""
    logs.make_log(str(tmp_path / "log.parquet"), "5000", "0", "real")
    ((once, most),) = duckdb.execute(
        "select count_if(n = 1) / count(*), max(n) "
        f"from (select count(*) as n from '{tmp_path}/log.parquet' group by context)"
    ).fetchall()
    assert 0.85 < once < 0.97
    assert most > 200


def test_made_up_counts_are_like_counts_of_lists(tmp_path: Path) -> None:
    """Every pair has two cells, every position of a context as many lists, each list of the second kind one click."""
    file = tmp_path / "counts.parquet"
    pairs.make_counts(str(file), "1000")
    counts = prudent.Counts.read(file)
    cells = counts.cells
    assert cells.pairs == 1000
    assert cells.contexts == 1000 // pairs.ITEMS
    assert np.bincount(cells.pair).tolist() == [2] * 1000
    shown = np.bincount(cells.context[cells.pair] * 11 + cells.position, cells.n).reshape(cells.contexts, 11)[:, 1:]
    assert (shown == shown[:, :1]).all()
    assert counts.tally.lists == cells.lists_per_context().sum()
    assert cells.n[cells.click].sum() == cells.n[cells.more | (cells.prev > 0)].sum() / 9
    assert prudent.rank(counts, length=5).manifest.settings["model"] == "pbm"


def test_a_slope_is_that_of_the_logarithms() -> None:
    assert measuring.slope([1e5, 1e6, 1e7], [3.0, 30.0, 300.0]) == pytest.approx(1)
    assert measuring.slope([1, 10, 100], [5, 500, 50_000]) == pytest.approx(2)


def test_a_figure_knows_its_aim() -> None:
    assert not Figure(1.2, at_most=1.3).missed
    assert Figure(1.4, at_most=1.3).missed
    assert Figure(99, at_least=100).missed
    assert not Figure(99).missed


def test_the_median_is_taken_of_each_number() -> None:
    runs = [Run(1, 9, 2), Run(2, 7, 3), Run(3, 8, 1)]
    assert measuring.median(runs) == Run(2, 8, 2)


def test_a_process_is_measured_with_what_it_returns(tmp_path: Path) -> None:
    run, returned = measuring.measure(pairs.make_counts, tmp_path / "counts.parquet", 100)
    assert returned is None
    assert 0 < run.cpu < 60
    assert 0.01 < run.peak < 10


def test_errors_are_graded_alike_whatever_the_scale_of_a_position_based_model() -> None:
    """Only pₖθ is identified: half the θ and twice the p are the same model."""
    truth, p, shown = np.array([0.2, 0.4]), np.array([1.0, 0.5]), np.array([300, 100])
    assert grading.grade("pbm", 2 * truth, p / 2, truth, p, shown)["rmse"] == pytest.approx(0)
    off = grading.grade("cm", truth + np.array([0.1, 0.2]), p, truth, p, shown)
    assert off["rmse"] == pytest.approx(np.sqrt((3 * 0.1**2 + 0.2**2) / 4))
    assert off["rmse_often"] == pytest.approx(np.sqrt((0.1**2 + 0.2**2) / 2))
    assert off["rmse_position"] is None
    last_is_not_seen = grading.grade("dcm", truth, np.array([0.9, 0.1]), truth, np.array([0.8, 0.9]), shown)
    assert last_is_not_seen["rmse_position"] == pytest.approx(0.1)
