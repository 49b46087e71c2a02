"""What the paper says came out, sentence by sentence, and how each sentence is tried.

No verdict is written down anywhere: `prudent.research.verdicts` computes them, from the tables that `prudent reproduce`
left in a folder.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from prudent.research.checks import (
    BASELINES,
    LCBS,
    LINEAR,
    SIMILAR,
    Check,
    higher_than_mle,
    lower_than,
    number_of_queries,
    ratio_within,
)
from prudent.research.claim_checks import (
    baselines_keep_up,
    beats_mle_later,
    better_logging,
    chosen_delta,
    comparable,
    gain_mostly_at_one,
    largest_at,
    more_robust,
    prior_found,
    same_beyond_ten,
    sweet_spot,
)
from prudent.research.comparing import ALMOST_ANY_DELTA, MOST_DELTAS


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, in our words."""

    sentence: str
    where: str
    experiments: tuple[str, ...]  # whose tables it is tried on
    check: Check | None  # none: no experiment here could tell
    why_not: str = ""  # where there is no check


_LABELS = ("yahoo", "mslr", "istella")
_WRONG, _OPPOSITE = "dcm on clicks of pbm", "pbm on clicks of dcm"
_HARMFUL = ("quality -2", "quality -1")

CLAIMS: Sequence[Claim] = (
    Claim(
        "Acting on lower bounds outperforms the MLE and all IPS methods.",
        "Abstract, Sec. 1 and 9",
        ("top-queries", *_LABELS),
        lower_than(("mle", *BASELINES), MOST_DELTAS),
    ),
    Claim(
        "Lower bounds err less where logging is near optimal than where it is uniform.",
        "Sec. 7",
        ("logging-quality",),
        better_logging,
    ),
    Claim(
        "For almost any δ, in all click models, the error is lower than the MLE's.",
        "Sec. 8.3, top 10 queries; Sec. 9",
        ("top-queries",),
        lower_than(("mle",), ALMOST_ANY_DELTA),
    ),
    Claim(
        "In cm and dcm, lower bounds outperform all baselines that assume linearity.",
        "Sec. 8.3, top 10 queries",
        ("top-queries",),
        lower_than(LINEAR, ALMOST_ANY_DELTA, models=("cm", "dcm")),
    ),
    Claim(
        "In pbm, the linear baselines can perform about as well as lower bounds.",
        "Sec. 8.3, top 10 queries",
        ("top-queries",),
        baselines_keep_up,
    ),
    Claim(
        "A prior fitted by empirical Bayes improves upon Beta(1, 1).",
        "Sec. 8.3, top 10 queries",
        ("top-queries",),
        lower_than(("bayes",), MOST_DELTAS, methods=("eb",)),
    ),
    Claim(
        "The fitted prior improves upon Beta(1, 1) mostly at δ = 1.",
        "App. C, finding prior",
        ("top-queries",),
        gain_mostly_at_one,
    ),
    Claim(
        "The same is seen on the most frequent query alone.",
        "App. C, most frequent query",
        ("top-query",),
        lower_than(("mle",), ALMOST_ANY_DELTA),
    ),
    Claim(
        "With less frequent queries too, lower bounds have a lower error than the MLE (dcm).",
        "App. C, less frequent queries",
        ("less-frequent",),
        lower_than(("mle",), MOST_DELTAS, label=number_of_queries),
    ),
    Claim(
        "With less frequent queries the improvements are comparable (dcm).",
        "App. C, less frequent queries",
        ("less-frequent",),
        comparable,
    ),
    Claim(
        "With less frequent queries cm and pbm behave alike.",
        "App. C, less frequent queries",
        (),
        None,
        "less-frequent has dcm only",
    ),
    Claim(
        "The δ that minimises the Bayesian bound's error on the past is 0.2.",
        "Sec. 8.3, more realistic comparison",
        ("sample-size",),
        chosen_delta,
    ),
    Claim(
        "With δ learned from the past, the Bayesian bound beats the MLE on later data.",
        "Sec. 8.3, more realistic comparison",
        ("sample-size",),
        beats_mle_later,
    ),
    Claim(
        "The largest improvement is at n = 100,000.",
        "Sec. 8.3, more realistic comparison",
        ("sample-size",),
        largest_at,
    ),
    Claim(
        "There is a sweet spot: smaller and larger samples gain less.",
        "Sec. 8.3, more realistic comparison",
        ("sample-size",),
        sweet_spot,
    ),
    Claim(
        "Learning clicks of pbm by dcm, Bayesian bounds have half the MLE's error.",
        "Sec. 8.3, robustness",
        ("misspecified",),
        ratio_within(("bayes", "eb"), 0, 0.55, models=(_WRONG,)),
    ),
    Claim(
        "Learning clicks of pbm by dcm, linear baselines do better than the MLE and all bounds.",
        "Sec. 8.3, robustness",
        ("misspecified",),
        lower_than(("mle", *LCBS), MOST_DELTAS, methods=LINEAR, models=(_WRONG,)),
    ),
    Claim(
        "Learning clicks of dcm by pbm, the MLE is comparable to the other baselines.",
        "Sec. 8.3, robustness",
        ("misspecified",),
        ratio_within(BASELINES, 1 / SIMILAR, SIMILAR, models=(_OPPOSITE,), level=None),
    ),
    Claim(
        "Learning clicks of dcm by pbm, lower bounds consistently outperform all baselines.",
        "Sec. 8.3, robustness",
        ("misspecified",),
        lower_than(("mle", *BASELINES), ALMOST_ANY_DELTA, models=(_OPPOSITE,)),
    ),
    Claim(
        "Lower bounds are more robust than the MLE to a wrong click model.",
        "Sec. 8.3, robustness; Sec. 9",
        ("misspecified",),
        lower_than(("mle",), MOST_DELTAS),
    ),
    Claim(
        "On Yahoo, MSLR and Istella, lower bounds outperform the MLE for most δ.",
        "Sec. 8.4",
        _LABELS,
        lower_than(("mle",), MOST_DELTAS),
    ),
    Claim(
        "On Yahoo, MSLR and Istella, lower bounds outperform the other baselines for most δ.",
        "Sec. 8.4",
        _LABELS,
        lower_than(BASELINES, MOST_DELTAS),
    ),
    Claim(
        "On Yahoo, MSLR and Istella, the improvements over the MLE are major: a fifth or more.",
        "Sec. 8.4",
        _LABELS,
        ratio_within(LCBS, 0, 0.8),
    ),
    Claim(
        "Other sample sizes and list lengths give similar results on these sets.",
        "Sec. 8.4",
        (),
        None,
        "no experiment here varies them",
    ),
    Claim(
        "With all ten positions the improvements are there, but less pronounced.",
        "Sec. 8.1",
        (),
        None,
        "all experiments here have four positions",
    ),
    Claim(
        "On real clicks of later days, Bayesian bounds outperform all baselines.",
        "App. C, cross-validation",
        ("cross-validation",),
        lower_than(("mle", *BASELINES), MOST_DELTAS, methods=("bayes", "eb")),
    ),
    Claim(
        "On real clicks of later days, lower bounds are still better than the MLE.",
        "App. C, cross-validation",
        ("cross-validation",),
        lower_than(("mle",), MOST_DELTAS),
    ),
    Claim(
        "There, linear baselines do considerably worse in cm and dcm.",
        "App. C, cross-validation",
        ("cross-validation",),
        ratio_within(LINEAR, SIMILAR, np.inf, models=("cm", "dcm"), level=None),
    ),
    Claim(
        "Other splits into earlier and later days do not change these results much.",
        "App. C, cross-validation",
        (),
        None,
        "the split is fixed here",
    ),
    Claim(
        "Larger grids for the prior make the error more robust against δ, up to ten values.",
        "App. C, finding prior",
        ("prior-grid",),
        more_robust,
    ),
    Claim(
        "Beyond ten values the same prior is found.",
        "App. C, finding prior",
        ("prior-grid",),
        same_beyond_ten,
    ),
    Claim(
        "The prior that is found for attraction is Beta(1, 8).",
        "App. C, finding prior",
        ("prior-grid",),
        prior_found,
    ),
    Claim(
        "The prior that is found for λ is Beta(1, 64).",
        "App. C, finding prior",
        (),
        None,
        "no prior is put on λ here",
    ),
    Claim(
        "With lists drawn uniformly the paper's bounds gain less than a tenth on the MLE.",
        "ours",
        ("top-queries",),
        ratio_within(LCBS, 0.9, np.inf, loggings=("uniform",)),
    ),
    Claim(
        "Where users' favourites were shown least, the paper's bounds do harm.",
        "ours",
        ("logging-quality",),
        higher_than_mle(LCBS, _HARMFUL),
    ),
    Claim(
        "exposure at δ = 0.5 has at most 1.1 times the MLE's error.",
        "ours",
        ("top-queries", "top-query", "misspecified", "cross-validation", *_LABELS, "logging-quality"),
        ratio_within(("exposure",), 0, 1.1, level=0.5),
    ),
)
"""In the order of the paper; the last ones are ours."""
