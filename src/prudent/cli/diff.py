"""`prudent diff`: what changed from one policy to another."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import prudent
from prudent.base.text import MISSING, Column, number
from prudent.cli.options import Json, command, option
from prudent.cli.output import busy, print_json, print_table, say, short

if TYPE_CHECKING:
    from prudent.policies.difference import Difference, Setting


@command("diff", "Daily")
def diff_command(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="The policy before.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The policy after.")],
    scores: Annotated[
        tuple[Path, Path] | None,
        typer.Option(metavar="OLD NEW", help="Their scores, which explain why an item entered or left a list."),
    ] = None,
    to: Annotated[Path | None, option("--to", "-o", help="Parquet file for all changes.")] = None,
    limit: Annotated[int, typer.Option(min=0, max=10_000, help="Contexts to show, those with most impressions.")] = 5,
    as_json: Json = False,
) -> None:
    """Show what changed from one policy to another, and why.

    With [bold]--json[/bold], totals are complete; changes are limited to [bold]--limit[/bold] contexts.
    """
    with busy("Comparing"):
        difference = prudent.diff(old, new, scores=scores, to=to)
    if as_json:
        print_json({**difference.manifest.to_json(), **difference.sample(limit)})
        return
    _show_difference(difference, limit)
    if to is not None:
        say()
        say(f"All changes are in {to}.")


def _show_difference(difference: "Difference", limit: int) -> None:
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
            same = f"{one['places']:,} of {one['of_places']:,} places are the same"
            say(f"Renamed {kind[:-1]}? {one['old']} may now be {one['new']}: {same}.")
        more = difference.renamed[kind] - len(sample[f"renamed_{kind}"])
        if more:
            say(f"... and {more:,} more {kind} that may be renamed (--limit)")
    if not difference.why:
        return
    say()
    print_table(["why items changed their place", "items"], list(difference.why.items()))
    if {"not listed before", "no longer listed"} & set(difference.why):
        say("Policies have scores only for listed items: --scores OLD NEW explains the others too.")
    for one in sample["affected"]:
        _show_affected(one)
    more = contexts["changed"] + contexts["gone"] + contexts["appeared"] - len(sample["affected"])
    if more and limit:
        say()
        say(f"... and {more:,} more lists (--limit; -o has them all)")


def _show_settings(settings: "Sequence[Setting]") -> None:
    """Settings that differ, before the changes that may follow from them."""
    if not settings:
        return
    rows = [(name, short(old, 6), short(new, 6)) for name, old, new in settings]
    right = (Column(name, str, align="right") for name in ("before", "now"))
    print_table([Column("setting", str, "settings that differ"), *right], rows)
    say("Any of these can explain the changes below.")
    say()


def _show_affected(one: dict[str, Any]) -> None:
    """The items of one list that changed their place."""
    state = {"gone": ", gone", "appeared": ", new"}.get(one["change"], "")
    columns: list[Column | str] = [
        Column("rank", str, align="right"),
        "item",
        Column("lower bound", str, align="right"),
        Column("impressions", str, align="right"),
        "why",
    ]
    rows = [
        (
            _from_to(change["old_rank"], change["new_rank"], 0),
            change["item"],
            _from_to(change["old_lower"], change["new_lower"], 3),
            _from_to(change["old_impressions"], change["new_impressions"], 0),
            change["why"],
        )
        for change in one["changes"]
    ]
    say()
    print_table(columns, rows, title=f"{one['context']} ({number(one['impressions'], 0)} impressions{state})")


def _from_to(old: float | None, new: float | None, digits: int) -> str:
    return " → ".join(MISSING if value is None else number(value, digits) for value in (old, new))
