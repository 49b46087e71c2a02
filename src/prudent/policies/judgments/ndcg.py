"""nDCG of a policy by judgments, with an interval: that of the posterior, since grades from clicks are uncertain."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import duckdb
import numpy as np
from scipy.special import expit, logit

from prudent.base.arrays import FloatArray, IntArray
from prudent.base.errors import PolicyError
from prudent.base.numerics.beta_binomial import clip_logit
from prudent.base.results import ArrowStream
from prudent.base.text import percent, several
from prudent.policies.judgments.grades import beta_parameters, grade
from prudent.policies.policy import Policy


class Ndcg(NamedTuple):
    """The mean nDCG of the judged lists of a policy: posterior mean, and an interval that holds `level` of it."""

    estimate: float
    lower: float
    upper: float
    level: float
    k: int
    contexts: int  # that have a list and judgments
    unjudged: int  # listed items up to rank k without a judgment, whose gain is 0

    def __str__(self) -> str:
        interval = f"{self.lower:.3f} to {self.upper:.3f}"
        lists = several(self.contexts, "list")
        return f"nDCG@{self.k} {self.estimate:.3f}, {percent(self.level, 0)} interval {interval}, of {lists}"


class Judged(NamedTuple):
    """The judged items of the contexts that have a list, sorted by context."""

    context: IntArray  # from 0
    rank: IntArray  # in the list; 0 for none
    mean: FloatArray
    deviation: FloatArray
    shared: FloatArray  # a row for each item: by how much the logit of its mean moves with errors that items share


def join(connection: duckdb.DuckDBPyConnection, policy: Policy, k: int) -> tuple[Judged, int]:
    """The judgments with the ranks of a policy's lists, and how many listed items up to rank k have no judgment."""
    connection.register("policy_lists", ArrowStream(policy.lists()))
    try:
        connection.execute("create or replace temp table ranked as select context, item, rank from policy_lists")
    finally:
        connection.unregister("policy_lists")
    found = connection.execute(
        "select dense_rank() over (order by context) - 1 as context, coalesce(rank, 0) as rank, mean, deviation, "
        "shared from judgments left join ranked using (context, item) "
        "where context in (select context from ranked) order by context, item"
    ).fetchnumpy()
    missing = (
        f"select count(*) from (select context, item from ranked where rank <= {k} and context in "
        "(select context from judgments)) anti join judgments using (context, item)"
    )
    ((unjudged,),) = connection.execute(missing).fetchall()
    context, rank, mean, deviation = (np.asarray(found[name]) for name in ("context", "rank", "mean", "deviation"))
    shared = np.stack(found["shared"].tolist()) if len(found["shared"]) else np.zeros((0, 0))
    return Judged(context, rank, mean, deviation, shared), int(unjudged)


def draw_attraction(judged: Judged, draws: int, random: np.random.Generator) -> Iterator[FloatArray]:
    """Every attraction from its posterior, each time after one draw of the errors that items share."""
    alpha, beta = beta_parameters(judged.mean, judged.deviation)
    strength, center = alpha + beta, logit(judged.mean)
    for _ in range(draws):
        error = random.standard_normal(judged.shared.shape[1])
        # einsum: a product of matrices goes to as many threads as there are, which last digits show.
        mean = expit(clip_logit(center + np.einsum("ij,j->i", judged.shared, error)))
        yield random.beta(mean * strength, (1 - mean) * strength)


def gains(attraction: FloatArray, thresholds: Sequence[float]) -> FloatArray:
    """2^grade − 1.

    >>> gains(np.array([0.01, 0.15, 0.9]), [0.05, 0.1, 0.2, 0.4]).tolist()
    [0.0, 3.0, 15.0]
    """
    return np.asarray(np.exp2(grade(attraction, thresholds)) - 1, dtype=float)


def mean_ndcg(context: IntArray, rank: IntArray, gain: FloatArray, k: int) -> float:
    """The mean nDCG@k of contexts with an item of gain above 0; NaN where there is none."""
    contexts = int(context[-1]) + 1
    listed = (rank > 0) & (rank <= k)
    discount = np.where(listed, 1 / np.log2(1 + np.maximum(rank, 1)), 0.0)
    value = np.bincount(context, gain * discount, minlength=contexts)
    order = np.lexsort((-gain, context))
    place = np.arange(len(context)) - np.searchsorted(context, context)
    ideal_discount = np.where(place < k, 1 / np.log2(2 + place), 0.0)
    ideal = np.bincount(context, gain[order] * ideal_discount, minlength=contexts)
    some = ideal > 0
    return float(np.mean(value[some] / ideal[some])) if some.any() else float("nan")


def ndcg_interval(
    judged: Judged, unjudged: int, thresholds: Sequence[float], k: int, level: float, draws: int, seed: int
) -> Ndcg:
    """Posterior mean and quantiles of the mean nDCG, over draws of every attraction.

    The error of the fitted prior is drawn once for all items, the rest for each. Errors of the examination
    probabilities, which items also share, are in the deviations but not in their correlation. `docs/ndcg_coverage.py`
    measures in simulated worlds how often the 95 % interval covers; under a bound whose slopes are shrunk it covers
    less, since items that were hardly ever shown are estimated too high, and so is the gain of the ideal list.
    """
    if not judged.context.size:
        raise PolicyError("No list of this policy is of a judged context: judge a log of the same contexts.")
    random = np.random.default_rng(seed)
    drawn = (gains(attraction, thresholds) for attraction in draw_attraction(judged, draws, random))
    values = np.array([mean_ndcg(judged.context, judged.rank, gain, k) for gain in drawn])
    values = values[~np.isnan(values)]
    if not values.size:
        raise PolicyError("No item reaches grade 1 by these thresholds, so that no list has an nDCG. Set lower ones.")
    tail = (1 - level) / 2
    lower, upper = np.quantile(values, [tail, 1 - tail]).tolist()
    contexts = int(judged.context[-1]) + 1
    return Ndcg(float(values.mean()), lower, upper, level, k, contexts, unjudged)
