"""What the paper says came out, sentence by sentence, against what comes out here.

A claim is tried on the tables that `prudent reproduce` left in a folder. No verdict is written down anywhere: all are
computed, by the criteria of `prudent.research.checks`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, permutations
from pathlib import Path

import numpy as np

from prudent.research.checks import (
    BASELINES,
    LCBS,
    LINEAR,
    SIMILAR,
    Cell,
    Check,
    baselines_keep_up,
    beats_mle_later,
    better_logging,
    chosen_delta,
    comparable,
    gain_mostly_at_one,
    higher_than_mle,
    largest_at,
    lower_than,
    more_robust,
    number_of_queries,
    prior_found,
    ratio_within,
    same_beyond_ten,
    sweet_spot,
)
from prudent.research.comparing import ALMOST_ANY_DELTA, MOST_DELTAS, Table, Word, read_table
from prudent.research.table import write_texts
from prudent.storage.files import make_folder, replacing

MARKS: Mapping[Word, str] = {"holds": "✓", "fails": "✗", "depends": "~", "unclear": "?"}


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, in our words."""

    sentence: str
    where: str
    experiments: tuple[str, ...]  # whose tables it is tried on
    check: Check | None  # none: no experiment here could tell
    why_not: str = ""  # where there is no check


@dataclass(frozen=True)
class Verdict:
    """A claim after a trial."""

    claim: str
    where: str
    data: str
    experiment: str
    measured: str
    verdict: str  # begins with holds, fails, depends, unclear or not tried

    @property
    def word(self) -> str:
        """The verdict without its conditions."""
        return self.verdict.partition(":")[0].partition(" on ")[0]


def sum_up(cells: Sequence[Cell]) -> str:
    """One verdict for all conditions; where they differ, it says which conditions make the difference.

    >>> sum_up([Cell(("production", "cm"), "holds", ""), Cell(("uniform", "cm"), "fails", "")])
    'depends: production holds; uniform fails'
    """
    words = {cell.word for cell in cells}
    if len(words) == 1:
        on = {cell.on for cell in cells}
        return f"depends on {on.pop()}" if words == {"depends"} and len(on) == 1 else words.pop()
    head = "unclear" if len(words - {"unclear"}) == 1 else "depends"
    orders = permutations(_that_vary([cell.conditions for cell in cells]))
    text = min((_factor([(tuple(c.conditions[i] for i in order), c.word) for c in cells]) for order in orders), key=len)
    return f"{head}: {text if len(text) <= 100 else _counted(cells)}"


def _that_vary(conditions: Sequence[tuple[str, ...]]) -> list[int]:
    return [i for i, values in enumerate(zip(*conditions, strict=True)) if len(set(values)) > 1]


def _factor(cells: Sequence[tuple[tuple[str, ...], str]]) -> str:
    """The words by their conditions, with what is the same for several conditions said once."""
    if len({word for _, word in cells}) == 1:
        return cells[0][1]
    parts: dict[str, list[str]] = {}
    for value in dict.fromkeys(conditions[0] for conditions, _ in cells):
        below = [(conditions[1:], word) for conditions, word in cells if conditions[0] == value]
        parts.setdefault(_factor(below), []).append(value)
    return "; ".join(
        f"{', '.join(values)} {f'({below})' if ' ' in below else below}" for below, values in parts.items()
    )


def _counted(cells: Sequence[Cell]) -> str:
    """How often each word was said, under each of the first conditions."""
    parts = []
    for value in dict.fromkeys(cell.conditions[0] for cell in cells):
        words = [cell.word for cell in cells if cell.conditions[0] == value]
        each = ", ".join(f"{word} {words.count(word)}" for word in MARKS if word in words)
        parts.append(f"{value} {each} of {len(words)}")
    return "; ".join(parts)


def tell(cells: Iterable[Cell]) -> str:
    """What was measured under each set of conditions.

    >>> tell([Cell(("production", "cm", method), "holds", "16/16") for method in ("bayes", "eb")])
    'production cm: bayes ✓ 16/16, eb ✓ 16/16'
    """
    cells, parts, before = list(cells), [], ""
    if len({cell.conditions[-1] for cell in cells}) == 1 and all(len(cell.conditions) > 2 for cell in cells):
        cells = [replace(cell, conditions=cell.conditions[:-1]) for cell in cells]  # it goes without saying
    for (first, *more), group in groupby(cells, key=lambda cell: cell.conditions[:-1] or ("",)):
        head = " ".join([first] * (first != before) + more)
        marks = ", ".join(f"{cell.conditions[-1]} {MARKS[cell.word]} {cell.measured}" for cell in group)
        parts.append(f"{head}: {marks}" if head else marks)
        before = first
    return "; ".join(parts)


# --- the claims ------------------------------------------------------------------------------------------------------

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
        ("top-queries", "logging-quality"),
        ratio_within(LCBS, 0.9, np.inf, loggings=("uniform", "quality 0")),
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


# --- trying them -----------------------------------------------------------------------------------------------------


def try_claims(folders: Sequence[Path], claims: Sequence[Claim] = CLAIMS) -> list[Verdict]:
    """Every claim on every table of its experiments that is in one of the folders."""
    tables: dict[Path, Table] = {}  # each is read once
    found: list[Verdict] = []
    for claim in claims:
        said = len(found)
        for name in claim.experiments:
            for folder in folders:
                file = folder / f"{name}.repetitions.parquet"
                if claim.check is not None and file.exists():
                    table = tables[file] = tables.get(file) or read_table(file)
                    found.append(try_claim(claim, name, table))
        if len(found) == said:
            how = claim.why_not or f"run prudent reproduce {claim.experiments[0]} -o {folders[0]}"
            experiment = ", ".join(claim.experiments)
            found.append(Verdict(claim.sentence, claim.where, "", experiment, "", f"not tried: {how}"))
    return found


def folders_in(folder: Path) -> list[Path]:
    """A folder and those right inside it, where results may lie."""
    inside = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    return [folder, *(path for path in inside if not path.name.startswith("."))]


def try_claim(claim: Claim, experiment: str, table: Table) -> Verdict:
    """One claim on one table."""
    cells = claim.check.cells(table) if claim.check is not None else []
    verdict = sum_up(cells) if cells else "not tried: the table does not have what it takes"
    return Verdict(claim.sentence, claim.where, table.data, experiment, tell(cells), verdict)


def write_claims(verdicts: Sequence[Verdict], folder: Path) -> None:
    """Write ``claims.csv``, ``claims.parquet`` and ``claims.md``."""
    make_folder(folder)
    names = ("claim", "where", "data", "experiment", "measured", "verdict")
    write_texts({name: [getattr(verdict, name) for verdict in verdicts] for name in names}, folder / "claims.parquet")
    with replacing(folder / "claims.md") as part:
        part.write_text(f"# The claims of the paper\n\n{markdown(verdicts)}", encoding="utf-8")


def markdown(verdicts: Sequence[Verdict], claims: Sequence[Claim] = CLAIMS) -> str:
    """A table of verdicts, and below it what was measured and how it was judged."""
    criteria = {claim.sentence: claim.check.criterion for claim in claims if claim.check is not None}
    groups = [(sentence, list(of)) for sentence, of in groupby(verdicts, key=lambda verdict: verdict.claim)]
    lines = ["| | claim | where | tried on | verdict |", "|---|---|---|---|---|"]
    for number, (sentence, of) in enumerate(groups, 1):
        for i, one in enumerate(of):
            first = (str(number), sentence, one.where) if i == 0 else ("", "", "")
            on = f"{one.data} (`{one.experiment}`)" if one.data else ""
            lines.append(f"| {' | '.join(first)} | {on} | {one.verdict} |")
    lines += ["", "## What was measured", "", LEGEND, ""]
    for number, (sentence, of) in enumerate(groups, 1):
        if not any(one.measured for one in of):
            continue
        lines += [f"**{number}. {sentence}** {criteria.get(sentence, '')}", ""]
        lines += [f"- {one.data} (`{one.experiment}`), *{one.word}*: {one.measured}" for one in of]
        lines.append("")
    return "\n".join(lines)


LEGEND = (
    "Marks: ✓ holds, ✗ fails, ~ depends on δ (or on what else is said), ? too few repetitions to tell. "
    "Numbers after ± are one standard error, paired where both methods saw the same logs."
)
