"""What `prudent rank`, `count` and `check` show."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from prudent.cli.terminal import out, plain, say, several, table_of

if TYPE_CHECKING:
    from prudent.click_models.check import Health
    from prudent.policies.policy import Policy
    from prudent.storage.manifest import Manifest, Tally


def show_left_out(left_out: Mapping[str, int]) -> None:
    """What a reader of a named format did not turn into lists."""
    for what, n in left_out.items():
        say(f"Left out: {n:,} {plain(what)}.")


def show_health(health: "Health") -> None:
    """What `prudent check` says."""
    table = table_of("in the log", "")
    for name, value in health.facts():
        table.add_row(name, value)
    out.print(table)
    out.print()
    top = max([*health.ctr, 1e-12])
    chart = table_of("position", "click-through rate", "")
    chart.columns[2].justify = "left"
    for position, ctr in enumerate(health.ctr[:20], start=1):
        chart.add_row(str(position), f"{ctr:.3f}", "▇" * round(24 * ctr / top))
    out.print(chart)
    if len(health.ctr) > 20:
        say(f"... and {several(len(health.ctr) - 20, 'more position')} (--json has them all)")
    out.print()
    if health.rejected:
        rejected = table_of("rejected lists", "")
        for reason, n in sorted(health.rejected.items(), key=lambda entry: -entry[1]):
            rejected.add_row(Text(plain(reason)), f"{n:,}")
        out.print(rejected)
    else:
        out.print("No list was rejected.")
    show_left_out(health.left_out)
    out.print()
    for verdict in health.verdicts():
        out.print(f"• {verdict}", markup=False)


def show_counted(manifest: "Manifest", output: str) -> None:
    """What `prudent count` says."""
    tally = manifest.sources["log"].tally
    say(f"Counted {several(tally.lists, 'list')} into {plain(output)}.")
    _show_rejected(tally)


def _show_rejected(tally: "Tally") -> None:
    for reason in tally.reasons:
        say(f"Rejected {plain(reason)}.")
    show_left_out(tally.left_out)


def show_manifest(manifest: "Manifest") -> None:
    """What `prudent rank` says of its lists."""
    settings, summary, training = manifest.settings, manifest.results["summary"], manifest.sources["training"]
    method = settings.get("method")
    made_by = method or f"{settings['model']} and {settings['bound']}"
    say(f"{several(summary['contexts'], 'list')} by {made_by}, from {training.tally.lists:,} logged")
    _show_choice(manifest)
    _show_rejected(training.tally)
    if training.days is not None:
        say(f"Read: {training.days}.")
    if summary["too_few_lists"]:
        few = several(summary["too_few_lists"], "context")
        say(f"Left out for fewer than {several(settings['min_lists'], 'logged list')}: {few}.")
    if summary["without_candidates"]:
        say(f"Left out because nothing may be shown there: {several(summary['without_candidates'], 'context')}.")
    differ = summary["differ"]
    some = f"All {differ:,}" if 1 < differ == summary["contexts"] else f"{differ:,} of {summary['contexts']:,}"
    say(f"{some} {'differs' if differ == 1 else 'differ'} from the list that was mostly shown.\n")
    columns = ("estimated", "pessimistic") if method is None else (f"as {method} estimates it",)
    table = table_of(f"value of a list ({summary['unit']})", *columns)
    for name, of in (("new", ""), ("mostly shown", "incumbent_")):
        table.add_row(name, *(f"{summary[of + kind]:.4f}" for kind in ("value", "lower")[: len(columns)]))
    out.print(table)
    if method is None and round(summary["value"], 4) < round(summary["incumbent_value"], 4):
        say("By this estimate the new lists are worse than what was mostly shown: this log is no reason to change.\n")
    elif method is None:
        out.print()
    else:
        say("The estimate is the method's own, and the new lists were chosen for it: it is not what they will get.")
    _show_fitted(manifest.results["fitted"])


def _show_choice(manifest: "Manifest") -> None:
    """Why ``auto`` took the model it took."""
    if manifest.settings.get("asked_model") != "auto":
        return
    model = manifest.settings["model"]
    if "comparison" not in manifest.results:
        if model == "pbm":  # otherwise a note has said why not
            rule = "only logs (not counts) of 1,000 lists or more are used to compare models"
            say(f"auto took pbm, which this log identifies; {rule}.")
        return
    compared = manifest.results["comparison"]
    scores = {score["model"]: score["log_likelihood"] for score in compared["scores"]}
    others = [name for name, likelihood in scores.items() if likelihood is not None and name != model]
    against = f" against {scores[others[0]]:.4f} ({others[0]})" if others else ", and no other model can be scored"
    verb = "chose" if compared["winner"] == model else "kept"
    noise = "" if compared["winner"] == model else ", which is within two standard errors"
    say(f"auto {verb} {model}: log-likelihood per held-out list {scores[model]:.4f}{against}{noise}")


def show_outputs(output: str, scores: Path | None) -> None:
    """Where `prudent rank` has left what it found."""
    say(f"\nThe lists are in {plain(output)}.")
    if scores is not None:
        say(f"Every candidate's scores are in {plain(str(scores))}.")


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
        .order("abs(value - incumbent_value) * lists desc, context")
        .limit(5)
        .select("context, lists, incumbent_value, value, lower")
        .fetchall()
    )
    if not changes:
        return
    columns = ["before", "after", *(["pessimistic"] if "bound" in policy.manifest.settings else [])]
    table = table_of("largest changes", "lists", *columns, "new first item")
    for context, lists, *estimates in changes:
        first = plain(str(policy[context][0]))
        values = (f"{value:.3f}" for value in estimates[: len(columns)])
        table.add_row(Text(plain(str(context))), f"{lists:,.0f}", *values, Text(first))
    out.print()
    out.print(table)
