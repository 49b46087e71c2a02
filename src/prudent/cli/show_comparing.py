"""What `prudent compare` and `tune` show."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from prudent.cli.terminal import out, say, several, table_of, tell

if TYPE_CHECKING:
    from prudent.click_models.compare import Comparison
    from prudent.evaluation.tune import Tuning

_POSITIONS = 20  # that a table shows


def show_comparison(found: "Comparison") -> None:
    """What `prudent compare` says."""
    say(f"Fitted to {several(found.train_lists, 'list')}, scored on {several(found.test_lists, 'other')}.\n")
    head, *rows = found.rows()
    table = table_of(*head)
    for row in rows:
        table.add_row(*row)
    out.print(table)
    tell(
        "Log-likelihood: higher is better. Perplexity: 1 foresees every click, 2 tosses coins; cond. is the same given "
        "the clicks above. In brackets: click rates, no click models, which cannot win."
    )
    for score in found.scores:
        if score.why:
            tell(f"{score.model}: {score.why}")
    told = [score for score in found.scores if score.predicted_ctr]
    names = [score.model for score in told]
    _show_by_position(
        "click rate", [("observed", found.observed_ctr), *((s.model, s.predicted_ctr) for s in told)], ".3f"
    )
    _show_by_position("perplexity", list(zip(names, (score.by_position for score in told), strict=True)), ".3f")
    out.print()
    tell(found.verdict)


def show_tuning(found: "Tuning") -> None:
    """What `prudent tune` says."""
    from prudent.evaluation.tune import DEFAULT

    about = found.manifest.results
    say(
        f"{found.repetitions} logs with clicks by {found.model}, fitted to {several(about['past_lists'], 'list')} of "
        f"{several(about['contexts'], 'context')}."
    )
    say(f"Error: what lists lack of the value of the best ones ({found.unit}).")
    say(f"That of the logged lists: {found.logged_error:.4f}\n")
    head, *rows = found.rows()
    table = table_of(*head)
    for row in rows:
        table.add_row(*row)
    out.print(table)
    later = found.confirmation
    if later is not None:
        worth = f"{later.bound} is worth {later.value:.4f}, {DEFAULT} {later.default_value:.4f}"
        held_out, gain = several(later.lists, "held-out list"), f"{later.difference:+.4f} ± {later.difference_se:.4f}"
        out.print()
        tell(f"On {held_out} {worth}: {gain}.")
    out.print()
    tell(found.verdict)


def _show_by_position(what: str, columns: Sequence[tuple[str, Sequence[float | None]]], how: str) -> None:
    positions = len(columns[0][1])
    table = table_of("position", *(name for name, _ in columns), title=f"{what} by position")
    for position in range(min(positions, _POSITIONS)):
        values = (of[position] for _, of in columns)
        table.add_row(str(position + 1), *("–" if value is None else format(value, how) for value in values))
    out.print()
    out.print(table)
    if positions > _POSITIONS:
        say(f"... and {several(positions - _POSITIONS, 'more position')} (--json has them all)")
