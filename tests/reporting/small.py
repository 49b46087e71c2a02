"""Results to report on that take no time to make."""

from typing import Any

import prudent
from prudent.click_models.check import check
from prudent.click_models.comparison import Comparison, Score
from prudent.evaluation.evaluate import Evaluation
from prudent.evaluation.intervals import Estimate
from prudent.evaluation.verdict import Verdict
from prudent.reporting.summarize import summarize
from prudent.storage.manifest import Manifest
from tests.reference import LoggedList
from tests.strategies import count

GOOD = Estimate(
    "dr", "clicks", 900, 0.8, 0.7, 0.9, 0.84, 0.8, 0.9, 0.05, 0.01, 0.09, 400.0, 0.9, 12.0, "The click model is pbm."
)
UNKNOWN = Estimate("ips", "clicks", 900, why="No context has held-out lists with the policy's whole list.")
MANIFEST = Manifest("evaluation", {"confidence": 0.95}, results={"contexts": {"log": 3, "policy": 2, "both": 2}})
EVALUATION = Evaluation((GOOD, UNKNOWN), MANIFEST)
YES = Verdict("pass", "dr: lift +5.0 %, at least +2.0 % with confidence 95 %, above 0 %", GOOD, 0.0, 0.95)
NO = Verdict("unknown", "ips cannot tell: no list is like the policy's", UNKNOWN, 0.0, 0.95)
COMPARISON = Comparison(
    scores=(
        Score("pbm", -1.5, 1.3, 1.3, (1.4, 1.2), (0.4, 0.2), 1.0, behind=0.0, behind_se=0.0),
        Score("dcm", -1.6, 1.4, 1.4, (1.5, None), (0.5, 0.1), 1.0, behind=0.1, behind_se=0.01),
        Score("cm", None, None, None, (), (), 1.0, why="A second click is impossible."),
    ),
    winner="pbm",
    observed_ctr=(0.41, 0.19),
    train_lists=80,
    test_lists=20,
)
LISTS: list[LoggedList] = [
    *[("shoes", ("a", "b", "c"), clicks) for clicks in [(1, 1, 0), (0, 1, 0), (1, 1, 0), (0, 0, 1)] * 15],
    *[("shoes", ("b", "a", "c"), clicks) for clicks in [(1, 1, 0), (1, 0, 0), (1, 0, 0)] * 10],
    *[("shoes", ("c", "b", "a"), clicks) for clicks in [(0, 1, 0), (0, 1, 1), (0, 1, 0)] * 10],
    ("shoes", ("a", "d", "c"), (0, 1, 0)),
    *[("boots", ("x", "y"), (1, 0))] * 5,
]


def ranked(**settings: Any) -> prudent.Policy:
    return prudent.rank(count(LISTS), **{"model": "pbm", "bound": "bayes(delta=0.2)", "length": 2, **settings})


def summary(policy: prudent.Policy | None = None, **other: Any) -> dict[str, Any]:
    policy = policy or ranked()
    counts = other.pop("counts", policy.counts)
    given = {"evaluation": EVALUATION, "verdict": YES, "comparison": COMPARISON, "title": "A title", "trained": True}
    return summarize(policy, counts, check(counts), **{**given, **other})
