"""What `prudent evaluate` and `gate` show."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from prudent.cli.terminal import out, plain, print_json, say, table_of, tell

if TYPE_CHECKING:
    from prudent.evaluation.evaluate import Evaluation
    from prudent.evaluation.gate import Verdict
    from prudent.evaluation.rollout import Mixture


def show_evaluation(evaluation: "Evaluation") -> None:
    """A table of what can be told, and a sentence for what cannot."""
    from prudent.evaluation.evaluate import HEADINGS

    told = [row for row in evaluation.rows() if len(row) == len(HEADINGS)]
    heads = (*HEADINGS[:-1], "effective")  # of eight columns within eighty letters, the last heading breaks
    needed = sum(max(map(len, column)) + 1 for column in zip(heads, *told, strict=True)) - 1
    if out.width < needed:  # lines that are too long are better than numbers that are cut
        for line in str(evaluation).splitlines():
            say(plain(line))
        _close(evaluation)
        return
    say(plain(evaluation.title))
    if told:
        table = table_of(*HEADINGS)
        table.padding = (0, 1, 0, 0)
        for column in table.columns[:-1]:
            column.no_wrap = True
        for row in told:
            table.add_row(*map(Text, row))
        out.print(table)
    for names, why in _together(evaluation, told=False):
        out.print(Text(f"{names} cannot tell: ", style="yellow") + Text(plain(why)))
    for names, why in _together(evaluation, told=True):
        out.print(Text(plain(f"{names}: {why}"), style="dim"))
    _close(evaluation)


def _together(evaluation: "Evaluation", told: bool) -> list[tuple[str, str]]:
    """Estimators about which there is the same to say, and what."""
    by_reason: dict[str, list[str]] = {}
    for estimate in evaluation:
        if estimate.why and estimate.tells == told:
            by_reason.setdefault(estimate.why, []).append(estimate.estimator)
    return [(", ".join(names), why) for why, names in by_reason.items()]


def _close(evaluation: "Evaluation") -> None:
    """What to make of the numbers."""
    out.print()
    tell(evaluation.verdict)


def show_verdict(verdict: "Verdict", as_json: bool) -> None:
    """One line why."""
    if as_json:
        print_json(asdict(verdict))
        return
    _line(verdict.passed, verdict.why)


def show_mixture(mixture: "Mixture", output: Path, as_json: bool) -> None:
    """One line why, and where the mixed policy is."""
    if as_json:
        counts = {name: getattr(mixture, name) for name in ("better", "same", "unsure", "unseen")}
        settings = {"min_lift": mixture.min_lift, "confidence": mixture.confidence}
        print_json({"passed": mixture.passed, "why": mixture.why, **counts, **settings})
        return
    _line(mixture.passed, mixture.why)
    say(f"The mixed policy is in {plain(str(output))}.")


def _line(passed: bool, why: str) -> None:
    word = Text("pass  ", style="bold green") if passed else Text("no  ", style="bold red")
    out.print(word + Text(plain(why)), soft_wrap=True)
