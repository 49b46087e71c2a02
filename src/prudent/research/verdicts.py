"""A verdict for each claim and table of `prudent reproduce`, by the criterion of its check."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, permutations
from pathlib import Path

from prudent.research.checks import Cell
from prudent.research.claims import CLAIMS, Claim
from prudent.research.comparing import Table, Word, read_table
from prudent.research.table import write_texts
from prudent.storage.files import make_folder, replacing

MARKS: Mapping[Word, str] = {"holds": "✓", "fails": "✗", "depends": "~", "unclear": "?"}


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
    """The words by their conditions, with what several conditions share written once."""
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
    """How often each word occurs under each of the first conditions."""
    parts = []
    for value in dict.fromkeys(cell.conditions[0] for cell in cells):
        words = [cell.word for cell in cells if cell.conditions[0] == value]
        each = ", ".join(f"{word} {words.count(word)}" for word in MARKS if word in words)
        parts.append(f"{value} {each} of {len(words)}")
    return "; ".join(parts)


def measured_cells(cells: Iterable[Cell]) -> str:
    """What was measured under each set of conditions.

    >>> measured_cells([Cell(("production", "cm", method), "holds", "16/16") for method in ("bayes", "eb")])
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


def try_claims(folders: Sequence[Path], claims: Sequence[Claim] = CLAIMS) -> list[Verdict]:
    """Every claim on every table of its experiments that is in one of the folders."""
    tables: dict[Path, Table] = {}  # each is read once
    verdicts: list[Verdict] = []
    for claim in claims:
        before = len(verdicts)
        for name in claim.experiments:
            for folder in folders:
                file = folder / f"{name}.repetitions.parquet"
                if claim.check is not None and file.exists():
                    table = tables[file] = tables.get(file) or read_table(file)
                    verdicts.append(try_claim(claim, name, table))
        if len(verdicts) == before:
            how = claim.why_not or f"run prudent reproduce {claim.experiments[0]} -o {folders[0]}"
            experiment = ", ".join(claim.experiments)
            verdicts.append(Verdict(claim.sentence, claim.where, "", experiment, "", f"not tried: {how}"))
    return verdicts


def folders_in(folder: Path) -> list[Path]:
    """A folder and those right inside it, where results may lie."""
    inside = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    return [folder, *(path for path in inside if not path.name.startswith("."))]


def try_claim(claim: Claim, experiment: str, table: Table) -> Verdict:
    """One claim on one table."""
    cells = claim.check.cells(table) if claim.check is not None else []
    verdict = sum_up(cells) if cells else "not tried: the table does not have what it takes"
    return Verdict(claim.sentence, claim.where, table.data, experiment, measured_cells(cells), verdict)


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
    groups = [(sentence, list(own)) for sentence, own in groupby(verdicts, key=lambda verdict: verdict.claim)]
    lines = ["| | claim | where | tried on | verdict |", "|---|---|---|---|---|"]
    for number, (sentence, own) in enumerate(groups, 1):
        for i, one in enumerate(own):
            first = (str(number), sentence, one.where) if i == 0 else ("", "", "")
            on = f"{one.data} (`{one.experiment}`)" if one.data else ""
            lines.append(f"| {' | '.join(first)} | {on} | {one.verdict} |")
    lines += ["", "## What was measured", "", LEGEND, ""]
    for number, (sentence, own) in enumerate(groups, 1):
        if not any(one.measured for one in own):
            continue
        lines += [f"**{number}. {sentence}** {criteria.get(sentence, '')}", ""]
        lines += [f"- {one.data} (`{one.experiment}`), *{one.word}*: {one.measured}" for one in own]
        lines.append("")
    return "\n".join(lines)


LEGEND = (
    "Marks: ✓ holds, ✗ fails, ~ depends on δ (or on what is named), ? unclear: too few repetitions. "
    "Numbers after ± are one standard error, paired where both methods saw the same logs."
)
