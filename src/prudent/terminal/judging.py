"""What `prudent evaluate` and `gate` show."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from prudent.terminal import out, plain, print_json, say, table_of

if TYPE_CHECKING:
    from prudent.evaluation import Evaluation, Mixture, Verdict


NARROW = 80
"""Letters of a line that the table needs."""


def show_evaluation(evaluation: "Evaluation") -> None:
    """A table of what can be told, and a sentence for what cannot."""
    from prudent.evaluation.offline import HEADINGS

    if out.width < NARROW:  # lines that are too long are better than numbers that are cut
        for line in str(evaluation).splitlines():
            say(plain(line))
        return
    told = [estimate for estimate in evaluation if estimate.tells]
    say(plain(evaluation.title))
    if told:
        table = table_of(*HEADINGS)
        table.padding = (0, 1, 0, 0)  # eight columns within eighty letters, of which only the last heading breaks
        for column in table.columns[:-1]:
            column.no_wrap = True
        for row in evaluation.rows:
            if len(row) == len(HEADINGS):
                table.add_row(*map(Text, row))
        out.print(table)
    for estimate in evaluation:
        if not estimate.tells:
            name = Text(f"{estimate.estimator} cannot tell: ", style="yellow")
            out.print(name + Text(plain(estimate.why)), soft_wrap=True)
    for note in evaluation.notes:
        out.print(Text(plain(note), style="dim"), soft_wrap=True)


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
