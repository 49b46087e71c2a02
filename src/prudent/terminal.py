"""How results look on a terminal: progress, tables, and names that are shown and not obeyed."""

import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from rich.console import Console
from rich.table import Table
from rich.text import Text

from prudent.errors import PrudentWarning

if TYPE_CHECKING:
    from prudent.compaction import Compacted
    from prudent.difference import Difference, Setting
    from prudent.experiments.claims import Verdict
    from prudent.experiments.table import Row
    from prudent.health import Health
    from prudent.policy import Policy


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """The reader has seen enough: leave as a killed `cat` would, and not with the code of a gate that said no."""
        close_stdout()
        raise SystemExit(141)


out = _Console(highlight=False, emoji=False)
err = _Console(stderr=True, highlight=False, emoji=False)


@contextmanager
def busy(doing: str) -> Iterator[None]:
    """Show that something is going on, on a terminal only."""
    if not err.is_terminal:
        yield
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    with Progress(
        SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=err, transient=True
    ) as progress:
        progress.add_task(f"{doing} ...", total=None)
        yield


@contextmanager
def counting_down() -> Iterator[Callable[[str, int, int], None]]:
    """A bar with the time left, on a terminal only; told what is being done, how far it is, and how far it goes."""
    if not err.is_terminal:
        yield lambda doing, done, total: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=err,
        transient=True,
    ) as progress:
        task = progress.add_task("")

        def watch(doing: str, done: int, total: int) -> None:
            started = progress.tasks[task].description != doing or progress.tasks[task].total != total
            if started:  # the speed of the one before says nothing about this one
                progress.reset(task)
            progress.update(task, description=doing, completed=done, total=total)

        yield watch


def show_warning(message: Warning | str, category: type[Warning], *_: object) -> None:
    """In place of `warnings.showwarning`, whose file and line mean nothing to a user."""
    style = "yellow" if issubclass(category, PrudentWarning) else "dim"
    err.print(Text("Note: ", style=f"bold {style}") + Text(plain(str(message))), soft_wrap=True)


def plain(text: str) -> str:
    """Text that a terminal shows and does not obey: control characters are written out."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def say(line: str) -> None:
    """Print a line as it is: no markup in it, and no break inside a path."""
    out.print(line, markup=False, soft_wrap=True)


def print_json(content: object) -> None:
    """Print for a machine."""
    out.out(json.dumps(content, indent=2, ensure_ascii=True, default=dict), highlight=False)


def show_left_out(left_out: Mapping[str, int]) -> None:
    """What a reader of a named format did not turn into lists."""
    for what, n in left_out.items():
        say(f"Left out: {n:,} {plain(what)}.")


def _table(*columns: str, title: str | None = None) -> Table:
    table = Table(title_justify="left", box=None, pad_edge=False, header_style="dim")
    table.title = None if title is None else Text(title, style="bold")  # names are no markup
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right", overflow="fold")
    return table


def show_health(health: "Health") -> None:
    """What `prudent check` says."""
    from prudent.health import FEW

    table = _table("in the log", "")
    for name, value in (
        ("lists", f"{health.lists:,}"),
        ("contexts", f"{health.contexts:,}"),
        ("items", f"{health.items:,}"),
        ("context-item pairs", f"{health.pairs:,}"),
        ("positions", f"{health.positions:,}"),
        ("clicks", f"{health.clicks:,}"),
        ("lists without a click", f"{health.without_click:.1%}"),
        ("lists with several clicks", f"{health.several_clicks:.1%}"),
        (f"pairs shown fewer than {FEW} times", f"{health.rare_pairs:.1%}"),
        ("impressions of items that change position", f"{health.moving_impressions:.1%}"),
    ):
        table.add_row(name, value)
    out.print(table)
    out.print()
    top = max([*health.ctr, 1e-12])
    chart = _table("position", "click-through rate", "")
    chart.columns[2].justify = "left"
    for position, ctr in enumerate(health.ctr[:20], start=1):
        chart.add_row(str(position), f"{ctr:.3f}", "▇" * round(24 * ctr / top))
    out.print(chart)
    if len(health.ctr) > 20:
        out.print(f"... and {len(health.ctr) - 20} more positions (--json has them all)")
    out.print()
    if health.rejected:
        rejected = _table("rejected lists", "")
        for reason, n in sorted(health.rejected.items(), key=lambda entry: -entry[1]):
            rejected.add_row(Text(plain(reason)), f"{n:,}")
        out.print(rejected)
    else:
        out.print("No list was rejected.")
    show_left_out(health.left_out)
    out.print()
    for verdict in health.verdicts():
        out.print(f"• {verdict}", markup=False)


def show_counted(said: Mapping[str, Any], output: str) -> None:
    """What `prudent count` says."""
    say(f"Counted {said['lists']:,} lists into {plain(output)}.")
    _show_rejected(said)


def _show_rejected(counts: Mapping[str, Any]) -> None:
    from prudent.counts import describe_rejected
    from prudent.engines import Tally

    for reason in describe_rejected(Tally(0, counts["rejected"])):
        say(f"Rejected {plain(reason)}.")
    show_left_out(counts["left_out"])


def show_provenance(said: Mapping[str, Any]) -> None:
    """What `prudent rank` says of its lists."""
    from prudent.days import describe

    summary = said["summary"]
    method = said.get("method")
    made_by = method or f"{said['model']} and {said['bound']}"
    say(f"{summary['contexts']:,} lists by {made_by}, from {said['counts']['lists']:,} logged")
    _show_rejected(said["counts"])
    if "days" in said["counts"]:
        say(f"Read: {describe(said['counts']['days'])}.")
    if summary["too_few_lists"]:
        say(f"Left out for fewer than {said['min_lists']:,} logged lists: {summary['too_few_lists']:,} contexts.")
    if summary["without_candidates"]:
        say(f"Left out because nothing may be shown there: {summary['without_candidates']:,} contexts.")
    say(f"{summary['differ']:,} of {summary['contexts']:,} differ from the list that was mostly shown.\n")
    columns = ("estimated", "lower bound") if method is None else (f"as {method} estimates it",)
    table = _table(f"value of a list ({summary['unit']})", *columns)
    for name, of in (("new", ""), ("mostly shown", "usual_")):
        table.add_row(name, *(f"{summary[of + kind]:.4f}" for kind in ("value", "lower")[: len(columns)]))
    out.print(table)
    if method is None:
        out.print()
    else:
        say("The estimate is the method's own, and the new lists were chosen for it: it is not what they will get.")
    _show_fitted(said["fitted"])


def show_outputs(output: str, scores: Path | None) -> None:
    """Where `prudent rank` has left what it found."""
    say(f"\nThe lists are in {plain(output)}.")
    if scores is not None:
        say(f"Every candidate's scores are in {plain(str(scores))}.")


def show_compacted(done: "Compacted") -> None:
    """What `prudent compact` says."""
    if done.file is None:
        say(f"Nothing to merge: no two days lie before {done.before}.")
        return
    say(f"Merged {done.days:,} days, {done.first} to {done.last}, into {plain(str(done.file))}.")
    table = _table("", "before", "after")
    table.add_row("rows", f"{done.rows_before:,}", f"{done.rows_after:,}")
    table.add_row("bytes", f"{done.bytes_before:,}", f"{done.bytes_after:,}")
    out.print(table)


def show_difference(difference: "Difference", limit: int) -> None:
    """What `prudent diff` says."""
    _show_settings(difference.settings)
    contexts, items, sample = difference.contexts, difference.items, difference.sample(limit)
    say(
        f"Lists: {contexts['old']:,} before, {contexts['new']:,} now. {contexts['same']:,} are the same, "
        f"{contexts['changed']:,} changed, {contexts['gone']:,} are gone, {contexts['appeared']:,} are new."
    )
    where = "among the candidates" if difference.scored else "in these lists"
    say(
        f"Items {where}: {items['old']:,} before, {items['new']:,} now. {items['gone']:,} are gone, "
        f"{items['appeared']:,} are new."
    )
    for kind in ("contexts", "items"):
        for one in sample[f"renamed_{kind}"]:
            said = f"{plain(str(one['old']))} now looks like {plain(str(one['new']))}"
            say(f"Renamed {kind[:-1]}? {said}: {one['places']:,} of {one['of_places']:,} places are the same.")
        more = difference.renamed[kind] - len(sample[f"renamed_{kind}"])
        if more:
            say(f"... and {more:,} more {kind} that look renamed (--limit)")
    if not difference.why:
        return
    out.print()
    table = _table("why items changed their place", "items")
    for why, n in difference.why.items():
        table.add_row(why, f"{n:,}")
    out.print(table)
    if {"not listed before", "no longer listed"} & set(difference.why):
        say("Policies know only what they list: with --scores OLD NEW these items would be explained too.")
    for one in sample["affected"]:
        _show_affected(one)
    more = contexts["changed"] + contexts["gone"] + contexts["appeared"] - len(sample["affected"])
    if more and limit:
        say(f"\n... and {more:,} more lists (--limit; -o has them all)")


def _show_settings(settings: "Sequence[Setting]") -> None:
    """What was made differently, before all that may follow from it."""
    if not settings:
        return
    table = _table("made differently", "before", "now")
    for name, old, new in settings:
        table.add_row(Text(plain(name)), *(Text(plain(_short(value))) for value in (old, new)))
    out.print(table)
    say("Any of these can explain the changes below.\n")


def _short(value: object) -> str:
    if isinstance(value, list):
        return " ".join(map(_short, value[:6])) + (" ..." if len(value) > 6 else "")
    return f"{value:.3g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value or "–")


def _show_affected(one: dict[str, Any]) -> None:
    """The items of one list that changed their place."""
    how = {"gone": ", gone", "appeared": ", new"}.get(one["change"], "")
    title = plain(f"{one['context']} ({one['impressions']:,.0f} impressions{how})")
    table = _table("rank", "item", "lower bound", "impressions", "why", title=title)
    for column in (1, 4):
        table.columns[column].justify = "left"
    for change in one["changes"]:
        table.add_row(
            _from_to(change["old_rank"], change["new_rank"], ""),
            Text(plain(str(change["item"]))),
            _from_to(change["old_lower"], change["new_lower"], ".3f"),
            _from_to(change["old_impressions"], change["new_impressions"], ",.0f"),
            change["why"],
        )
    out.print()
    out.print(table)


def _from_to(old: float | None, new: float | None, how: str) -> str:
    """Both numbers, or – for what is not there or not known."""
    return " → ".join("–" if value is None else format(value, how) for value in (old, new))


def _show_fitted(fitted: dict[str, Any]) -> None:
    for parameter in ("examination", "continuation"):
        if parameter in fitted:
            values = " ".join(f"{value:.2f}" for value in fitted[parameter][:20])
            out.print(f"{parameter} by position: {values}{' ...' if len(fitted[parameter]) > 20 else ''}")
    prior = fitted.get("prior", {})
    if "slopes" in prior:
        from prudent.bounds.exposure import ExposurePrior
        from prudent.bounds.hierarchical import HierarchicalPrior

        curve = HierarchicalPrior(**prior) if "knot" in prior else ExposurePrior(**prior)
        shown = (0.1, 1.0, 10.0)
        means = curve.mean([math.log(times) for times in shown])
        if curve.shrinkage > 0:
            told = ", ".join(f"{mean:.3f} at {times:g}×" for mean, times in zip(means, shown, strict=True))
            out.print(
                f"attraction expected of an item by how often it was shown, against its context's average: {told}; "
                f"this weighs as much as {curve.strength:.1f} looks at the item (Wald statistic {curve.wald:.0f}: "
                f"{curve.shrinkage:.0%} of the slope is kept)"
            )
        else:
            out.print(
                f"how often an item was shown says nothing about its attraction here: {means[1]:.3f} is expected, "
                f"and weighs as much as {curve.strength:.1f} looks at the item"
            )
    elif "alpha" in prior:
        out.print(f"fitted prior: Beta({prior['alpha']:g}, {prior['beta']:g})")


def show_changes(policy: "Policy") -> None:
    """The lists that change most."""
    changes = (
        policy.contexts()
        .filter("differ")
        .order("abs(value - usual_value) * lists desc, context")
        .limit(5)
        .select("context, lists, usual_value, value, lower")
        .fetchall()
    )
    if not changes:
        return
    columns = ["before", "after", *(["lower bound"] if "bound" in policy.provenance else [])]
    table = _table("largest changes", "lists", *columns, "new first item")
    for context, lists, *estimates in changes:
        first = plain(str(policy[context][0]))
        values = (f"{value:.3f}" for value in estimates[: len(columns)])
        table.add_row(Text(plain(str(context))), f"{lists:,.0f}", *values, Text(first))
    out.print()
    out.print(table)


def fail(message: str, code: int) -> NoReturn:
    """Say what went wrong in one line, and leave."""
    err.print(Text("Error: ", style="bold red") + Text(plain(message)), soft_wrap=True)
    sys.exit(code)


def close_stdout() -> None:
    """Let what is still buffered go nowhere; Python would try again to write it, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def show_rows(name: str, rows: "Sequence[Row]") -> None:
    """What `prudent reproduce` says: the error of every method as a share of the MLE's."""
    groups: dict[tuple[str, str], dict[tuple[str, int], list[Row]]] = {}
    for row in rows:
        groups.setdefault((row.data, row.logging), {}).setdefault((row.model, row.n), []).append(row)
    methods = list(dict.fromkeys(row.method for row in rows if row.method != "mle"))
    for (data, logging), panels in groups.items():
        table = _table("model", "n", "mle", *methods, title=plain(f"{name}: {data}; logging: {logging}"))
        for (model, n), of in panels.items():
            mle = next((row.error for row in of if row.method == "mle"), math.nan)
            table.add_row(plain(model), f"{n:,}", f"{mle:.4f}", *(_share(of, method, mle) for method in methods))
        out.print(table)
    say("mle: its error V(A*) − V(Â). The others: theirs as a share of it; of several δ, the one nearest to")
    say("0.2 (exposure: 0.5).")


def show_page(name: str, page: str) -> None:
    """What `prudent reproduce` says where the result is a table of its own."""
    from rich.markdown import Markdown

    out.print(Text(name, style="bold"))
    out.print(Markdown(page))


def _share(rows: "Sequence[Row]", method: str, mle: float) -> str:
    level = 0.5 if method.startswith("exposure") else 0.2
    known = [row for row in rows if row.method == method]
    best = min(known, key=lambda row: abs((row.delta or 0) - level), default=None)
    return "" if best is None else f"{best.error / mle:.2f}" if mle > 0 else "–"


def show_catalogue(abouts: dict[str, str]) -> None:
    """What `prudent reproduce list` says."""
    table = _table("experiment", "what it shows")
    table.columns[1].justify = "left"
    for name, about in abouts.items():
        table.add_row(name, about)
    out.print(table)


def show_claims(verdicts: "Sequence[Verdict]") -> None:
    """What `prudent reproduce claims` says."""
    from prudent.experiments.claims import LEGEND

    table = Table("claim", "where", "verdict", "measured", box=None, pad_edge=False, header_style="dim")
    for column, width in zip(table.columns, (20, 10, 16, None), strict=True):
        column.overflow, column.width = "fold", width
    before = ""
    for one in verdicts:
        colour = {"holds": "green", "fails": "red", "depends": "yellow"}.get(one.word, "dim")
        said = (plain(one.claim), one.where) if one.claim != before else ("", "")
        measured = f"{one.data} ({one.experiment}): {one.measured}" if one.measured else ""
        if len(measured) > 200:  # the files have it all
            measured = measured[:200].rpartition(",")[0] + ", …"
        table.add_row(*said, Text(plain(one.verdict), style=colour), Text(plain(measured)))
        table.add_row()
        before = one.claim
    out.print(table)
    words = [one.word for one in verdicts]
    say("; ".join(f"{word}: {words.count(word)}" for word in dict.fromkeys(sorted(words))) + f". {LEGEND}")
