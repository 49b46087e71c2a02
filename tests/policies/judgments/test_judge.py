"""Judgments: grades, intervals and confidences against plain loops, and files that hold them."""

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import beta as beta_distribution

import prudent
from prudent.base.errors import PolicyError, UsageError
from prudent.bounds import parse
from prudent.bounds.base import Prior
from prudent.bounds.bayes import posterior
from prudent.click_models.evidence import Evidence
from prudent.click_models.simulate import write_log
from prudent.click_models.world import make_world
from prudent.counts.sampling import samples
from prudent.policies.judgments.grades import check_thresholds, confidence, grade, log_thresholds
from prudent.policies.plan import check_request, learn
from prudent.policies.rank import measure

THRESHOLDS = (0.05, 0.1, 0.2, 0.4)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulated log."""
    path = tmp_path_factory.mktemp("judge") / "log.parquet"
    write_log(make_world("pbm", contexts=12, items=(6, 12), length=5, seed=4), 3000, str(path), seed=4)
    return path


def test_grades_and_confidences_by_plain_loops() -> None:
    """A confidence is the integral of the Beta density with that mean and deviation between two thresholds."""
    random = np.random.default_rng(0)
    alpha, beta = random.uniform(0.2, 40, 200), random.uniform(0.2, 40, 200)
    mean = alpha / (alpha + beta)
    deviation = np.sqrt(alpha * beta / (alpha + beta + 1)) / (alpha + beta)
    grades = grade(mean, THRESHOLDS)
    certain = confidence(grades, mean, deviation, THRESHOLDS)
    for k in range(200):
        reached = sum(mean[k] >= threshold for threshold in THRESHOLDS)
        assert grades[k] == reached
        low, high = ((0.0, *THRESHOLDS, 1.0)[reached + i] for i in (0, 1))
        expected = beta_distribution(alpha[k], beta[k]).cdf(high) - beta_distribution(alpha[k], beta[k]).cdf(low)
        assert certain[k] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("rate", "clicked"), [(0.1, 3), (0.02, 4)])
def test_items_of_a_sparse_log_without_a_click_have_grade_0(rate: float, clicked: int) -> None:
    """Nearly all estimates are equal: by rounding alone, a threshold at them would be reached by all items, or none."""
    rng = np.random.default_rng(4)
    clicks = (rng.random((800, 4)) < rate).astype(int)
    lists = [
        {"context": f"q{n}", "items": [f"{n} {k}" for k in range(4)], "clicks": row} for n, row in enumerate(clicks)
    ]
    judgments = prudent.judge(pa.Table.from_pylist(lists), "cm", bound="eb(delta=0.05)")
    found = set(judgments.relation().project("positive > 0, grade").fetchall())
    assert found == {(False, 0), (True, clicked)}
    again = prudent.judge(pa.Table.from_pylist(lists), "cm", bound="bayes(delta=0.05)", thresholds=judgments.thresholds)
    assert again.thresholds == judgments.thresholds


@pytest.mark.parametrize("bound", ["anchored(delta=0.1)", "eb(delta=0.05)", "hierarchical(delta=0.2)"])
@pytest.mark.parametrize("model", ["pbm", "cm"])
def test_judgments_are_graded_scores(log: Path, model: str, bound: str) -> None:
    """Estimate, interval and evidence are those of `rank`; thresholds are quantiles of the estimates."""
    judgments = prudent.judge(log, model, bound=bound)
    policy = prudent.rank(log, model, bound=bound)
    names = "context, item, mean, lower, upper, positive, negative, impressions"
    scores = policy.scores().project(names).order("context, item").fetchall()
    assert judgments.relation().project(names).fetchall() == scores
    frame = judgments.to_frame()
    examined = frame[frame.positive + frame.negative > 0]
    expected = [float(f"{np.quantile(examined['mean'], share):.4g}") for share in (0.5, 0.75, 0.9, 0.97)]
    assert list(judgments.thresholds) == expected
    assert frame.grade.tolist() == [sum(mean >= start for start in expected) for mean in frame["mean"]]
    assert frame.confidence.between(0, 1).all()


def test_deviation_is_that_of_draws(log: Path) -> None:
    """Of 4,000 draws of each posterior; 10 % is 9 standard errors, and what the thinned posterior may deviate."""
    counts = prudent.count(log)
    request = check_request("pbm", "eb(delta=0.05)", None, 0, None)
    sampled = samples(counts.index)
    plan = learn(request, measure(counts.index, counts.tally.lists, 0), counts, lambda: sampled)
    evidence, scores = plan.score(counts.index.whole())
    prior = plan.prior
    random = np.random.default_rng(1)
    after = posterior(evidence, Prior(prior["alpha"], prior["beta"]), tabulated=False)
    draws = np.stack([after.sample(random) for _ in range(4000)])
    assert scores.deviation is not None
    found = scores.deviation(np.arange(len(scores.mean)))
    often = evidence.examined > 5
    assert found[often] == pytest.approx(draws.std(axis=0)[often], rel=0.1)


def test_every_bound_with_an_upper_end_by_draws_has_a_deviation(evidence: Evidence) -> None:
    for name, has in {"anchored": True, "bayes": True, "eb": True, "exposure": True, "hierarchical": True}.items():
        deviation = parse(name).score(evidence).deviation
        assert (deviation is not None) == has
        assert deviation is not None
        assert np.all(deviation(np.arange(len(evidence.context))) > 0)


@pytest.fixture
def evidence(log: Path) -> Evidence:
    counts = prudent.count(log)
    sampled = samples(counts.index)
    request = check_request("cm", "bayes", None, 0, None)
    plan = learn(request, measure(counts.index, counts.tally.lists, 0), counts, lambda: sampled)
    return plan.score(counts.index.whole())[0]


def test_files_hold_judgments(log: Path, tmp_path: Path) -> None:
    made = prudent.judge(log, "pbm", to=tmp_path / "j.parquet")
    read = prudent.Judgments.read(tmp_path / "j.parquet")
    assert read.rows() == made.rows()
    assert read.manifest == made.manifest
    assert read.thresholds == made.thresholds
    assert repr(read) == made.title
    assert "grade" in str(read)
    assert pa.table(made).num_rows == len(made)


def test_the_same_bytes_in_any_order_of_rows(log: Path, tmp_path: Path) -> None:
    shuffled = f"copy (from '{log}' order by hash(items::varchar), clicks) to '{tmp_path}/log.parquet'"
    duckdb.execute(shuffled)
    for name, source in (("a", log), ("b", tmp_path / "log.parquet")):
        counts = prudent.count(source, to=tmp_path / f"{name}-counts.parquet")
        prudent.judge(counts, "pbm", engine=prudent.DuckDB(threads=1 + (name == "a"))).write(
            tmp_path / f"{name}.parquet"
        )
    rows = [pq.read_table(tmp_path / f"{name}.parquet") for name in "ab"]
    assert rows[0].equals(rows[1])


def test_candidates_limit_what_is_judged(log: Path) -> None:
    some = duckdb.execute(
        f"select distinct context, unnest(items) as item from '{log}' order by all limit 7"
    ).fetchall()
    table = pa.table({"context": [row[0] for row in some], "item": [row[1] for row in some]})
    judged = prudent.judge(log, "pbm", candidates=table).rows()
    assert [row[:2] for row in judged] == some


@pytest.mark.parametrize("thresholds", ["0.1", "0.1,0.2,0.3,x", [0.1, 0.2, 0.2, 0.3], [0, 0.1, 0.2, 0.3], 5, [0.1] * 5])
def test_thresholds_rise_between_0_and_1(thresholds: Any) -> None:
    with pytest.raises(UsageError, match="grades 1 to 4 start at"):
        check_thresholds(thresholds)


@pytest.mark.parametrize(
    ("estimates", "grades"),
    [
        ([0.2] * 9, {0.2: 0}),  # nothing tells them apart
        ([0.1] * 40 + [0.2] * 60, {0.1: 0, 0.2: 1}),
        ([0.1] * 60 + [0.2] * 40, {0.1: 0, 0.2: 2}),
        ([0.1] * 30 + [0.2] * 63 + [0.4] * 7, {0.1: 0, 0.2: 1, 0.4: 3}),
    ],
)
def test_equal_estimates_have_the_grade_of_about_as_many(estimates: list[float], grades: dict[float, int]) -> None:
    thresholds = log_thresholds(np.array(estimates))
    assert check_thresholds(thresholds) == thresholds
    assert {one: int(grade(np.array(one), thresholds)) for one in set(estimates)} == grades


def test_what_cannot_be_judged(log: Path, tmp_path: Path) -> None:
    for bound in ("mle", "hoeffding", "clopper-pearson", "anytime"):
        with pytest.raises(UsageError, match="no posterior"):
            prudent.judge(log, "cm", bound=bound)
    with pytest.raises(UsageError, match="judge the counts"):
        prudent.judge(log, engine=object())  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        prudent.judge(log, "cm", to=tmp_path / "j.csv")


def test_what_is_no_file_of_judgments(log: Path, tmp_path: Path) -> None:
    path = tmp_path / "j.parquet"
    with pytest.raises(PolicyError, match="has no judgments"):
        prudent.Judgments.read(log)
    prudent.judge(log, "cm", to=path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 3] + b"\1" + whole[len(whole) // 3 + 1 :])
    with pytest.raises(PolicyError):
        prudent.Judgments.read(path)
    path.write_bytes(whole)
    table = pq.read_table(path)
    wrong = table.set_column(2, "grade", pa.array([7] * table.num_rows, pa.int32()))
    for metadata in (None, table.schema.metadata):
        pq.write_table(wrong.replace_schema_metadata(metadata), tmp_path / "other.parquet")
        with pytest.raises(PolicyError):
            prudent.Judgments.read(tmp_path / "other.parquet")
