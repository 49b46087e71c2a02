"""What `prudent compact` and `diff` show."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from prudent.cli.terminal import out, plain, say, table_of

if TYPE_CHECKING:
    from prudent.counts.compact import Compacted
    from prudent.policies.diff import Difference, Setting


def show_compacted(done: "Compacted") -> None:
    """What `prudent compact` says."""
    if done.file is None:
        say(f"Nothing to merge: no two days lie before {done.before}.")
        return
    say(f"Merged {done.days:,} days, {done.first} to {done.last}, into {plain(str(done.file))}.")
    table = table_of("", "before", "after")
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
    table = table_of("why items changed their place", "items")
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
    table = table_of("made differently", "before", "now")
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
    table = table_of("rank", "item", "lower bound", "impressions", "why", title=title)
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
