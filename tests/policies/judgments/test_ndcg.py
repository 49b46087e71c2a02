"""nDCG with an interval, against plain loops and on simulated logs."""

from math import log2
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import prudent
from prudent.base.errors import PolicyError, UsageError
from prudent.policies.judgments.ndcg import Judged, draw_attraction, gains, join, mean_ndcg


def plain_ndcg(ranks: list[int], gains: list[float], k: int) -> float | None:
    """Of one context; None where no item has a gain."""
    value = sum(gain / log2(1 + rank) for rank, gain in zip(ranks, gains, strict=True) if 0 < rank <= k)
    ideal = sum(gain / log2(2 + place) for place, gain in enumerate(sorted(gains, reverse=True)[:k]))
    return value / ideal if ideal else None


@pytest.mark.parametrize("seed", range(20))
def test_mean_ndcg_by_a_plain_loop(seed: int) -> None:
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 8, 6)
    context = np.repeat(np.arange(6), sizes)
    rank = np.concatenate([random.permutation(size) for size in sizes])  # 0 is not listed
    gain = random.choice([0.0, 1.0, 3.0, 7.0], len(context), p=[0.5, 0.2, 0.2, 0.1])
    rows = [context == one for one in range(6)]
    plain = [plain_ndcg(rank[row].tolist(), gain[row].tolist(), 3) for row in rows]
    known = [value for value in plain if value is not None]
    assert mean_ndcg(context, rank, gain, 3) == pytest.approx(sum(known) / len(known))


def log(clicks: list[list[int]]) -> pa.Table:
    return pa.Table.from_pylist([{"context": "shoes", "items": ["a", "b"], "clicks": row} for row in clicks])


def test_more_evidence_narrows_the_interval() -> None:
    worse = prudent.Policy.from_table(pa.table({"context": ["shoes"], "items": [["b", "a"]]}), items="items")
    widths = []
    for times in (3, 300):
        judgments = prudent.judge(
            log([[1, 0], [0, 1], [1, 0]] * times), "cm", bound="bayes", thresholds=[0.1, 0.3, 0.5, 0.7]
        )
        found = judgments.ndcg(worse, k=2)
        assert found == judgments.ndcg(worse, k=2)  # the same seed
        assert found.lower <= found.estimate <= found.upper
        assert (found.contexts, found.unjudged) == (1, 0)
        widths.append(found.upper - found.lower)
    assert widths[1] < widths[0]


def test_unjudged_items_and_errors() -> None:
    judgments = prudent.judge(log([[1, 0]] * 9), "cm", bound="bayes", thresholds=[0.1, 0.3, 0.5, 0.7])
    other = prudent.Policy.from_table(pa.table({"context": ["shoes"], "items": [["x", "a"]]}), items="items")
    assert judgments.ndcg(other).unjudged == 1
    hats = prudent.Policy.from_table(pa.table({"context": ["hats"], "items": [["x"]]}), items="items")
    with pytest.raises(PolicyError, match="judged context"):
        judgments.ndcg(hats)
    for wrong in ({"k": 0}, {"draws": 1}, {"confidence": 1.5}):
        with pytest.raises(UsageError):
            judgments.ndcg(other, **wrong)


def test_items_share_errors() -> None:
    """10,000 draws: standard deviations have an error of .7 %, correlations one of .01."""
    mean, deviation = np.array([0.1, 0.2, 0.3]), np.array([1e-4, 1e-4, 0.1])
    judged = Judged(
        np.zeros(3, np.int64), np.arange(3), mean, deviation, np.array([[0.3, 0.4], [0.3, 0.4], [0.0, 0.0]])
    )
    drawn = np.array(list(draw_attraction(judged, 10_000, np.random.default_rng(0))))
    logits = np.log(drawn / (1 - drawn))
    assert logits[:, :2].std(axis=0) == pytest.approx([0.5, 0.5], rel=0.03)
    assert np.corrcoef(logits.T)[0] == pytest.approx([1, 1, 0], abs=0.04)
    assert drawn[:, 2].std() == pytest.approx(0.1, rel=0.03)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::prudent.PrudentWarning")
def test_the_interval_covers(tmp_path: Path) -> None:
    """The 95 % interval, in 100 simulated logs of `cm`: 88 to 100 is within 3 standard errors."""
    held = 0
    for seed in range(100):
        to, truth = tmp_path / "log.parquet", tmp_path / "truth.parquet"
        prudent.simulate(to, truth=truth, model="cm", lists=4000, contexts=15, items=(6, 12), length=5, seed=seed)
        counts = prudent.count(to)
        judgments, policy = prudent.judge(counts, "cm"), prudent.rank(counts, "cm")
        found = judgments.ndcg(policy, k=5, draws=300)
        judged, _ = join(judgments.connection, policy, 5)
        attraction = judgments.connection.execute(
            f"select attraction from judgments join '{truth}' using (context, item) order by context, item"
        ).fetchnumpy()["attraction"]
        gain = gains(np.asarray(attraction), judgments.thresholds)
        held += found.lower <= mean_ndcg(judged.context, judged.rank, gain, 5) <= found.upper
    assert held >= 88
