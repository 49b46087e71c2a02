"""`prudent rank`, `count` and `check`: from logs to counts to lists."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import prudent
from prudent.base.errors import UsageError
from prudent.base.text import Column, join_names, number, several
from prudent.cli.log_options import EngineOptions, LogOptions, LogReward
from prudent.cli.options import (
    DayOptions,
    GroupOptions,
    Inputs,
    Json,
    Length,
    MaxRejected,
    Model,
    Verbose,
    as_words,
    command,
    only_set,
    option,
)
from prudent.cli.output import busy, print_json, print_table, say, say_next, say_wrapped, short
from prudent.policies.group_terms import feature_sentences, group_sentences

if TYPE_CHECKING:
    from prudent.click_models.check import Health
    from prudent.policies.policy import Policy
    from prudent.storage.manifest import Manifest, Tally

_POSITIONS = 20  # in a table or line; --json has them all
_CLEARLY = 0.005  # relative difference of two values below which none is called worse


@command("rank", "Rank")
def rank_command(
    inputs: Inputs,
    to: Annotated[str, option("--to", "-o", help="Policy to write; with --engine spark, a folder.")],
    log: LogOptions,
    days: DayOptions,
    grouped: GroupOptions,
    engine: EngineOptions,
    scores: Annotated[Path | None, typer.Option(help="Also write the scores of every candidate.")] = None,
    length: Length = None,
    model: Model = None,
    bound: Annotated[str | None, typer.Option(help="Lower bound: {bounds}; e.g. 'eb(delta=0.2)'.")] = None,
    baseline: Annotated[
        str | None, typer.Option(help="Rank by a baseline instead: {baselines}; e.g. 'ips(clip=50)'.")
    ] = None,
    candidates: Annotated[
        str | None, typer.Option(help="File with columns context and item: the items that may be shown.")
    ] = None,
    min_lists: Annotated[int | None, typer.Option(help="Leave out contexts with fewer logged lists.")] = None,
    unseen: Annotated[
        bool, typer.Option("--unseen", help="Also rank contexts that --candidates names and the log does not have.")
    ] = False,
    max_moves: Annotated[
        int | None, typer.Option(help="Maximum number of positions an item may rise above its incumbent place.")
    ] = None,
    reward: LogReward = None,
    rules: Annotated[
        Path | None, typer.Option(help="JSON file of business rules: pin, bury, exclude, at_most, new, keep_first.")
    ] = None,
    max_rejected: MaxRejected = None,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Find the best list for every context, from logs or counts."""
    both = only_set(to=to, scores=scores, length=length, min_lists=min_lists, max_rejected=max_rejected, **log.settings)
    own = only_set(model=model, bound=bound, candidates=candidates, max_moves=max_moves, rules=rules, reward=reward)
    own |= only_set(unseen=unseen or None) | days.settings | grouped.settings
    if baseline is not None:
        for name in [*own, *(["engine"] if engine.on_spark else [])]:
            raise UsageError(f"--baseline does not work with --{name.replace('_', '-')}: leave out one of the two.")
    with busy("Ranking"):
        if baseline is None:
            policy = prudent.rank(inputs, engine=engine.start(log), **both, **own)
        else:
            policy = prudent.rank_baseline(inputs, baseline, engine=log.engine, **both)
    if as_json:
        print_json(policy.manifest.to_json())
        return
    _show_summary(policy.manifest)
    _show_signals(policy.manifest)
    if verbose:
        _show_fitted(policy.manifest)
    if not engine.on_spark:
        _show_changes(policy)
    say()
    say(f"The lists are in {to}.")
    if scores is not None:
        say(f"Every candidate's scores are in {scores}.")
    if not engine.on_spark:
        _say_evaluate(policy, to, inputs, log)


def _say_evaluate(policy: "Policy", to: str, inputs: Sequence[str], log: LogOptions) -> None:
    """The next command: evaluate on the holdout of `prudent split`, if the policy was trained on its train.parquet."""
    again = [*log.again(), *(["--reward", policy.reward] if policy.reward else [])]
    holdout = Path(inputs[0]).with_name("holdout.parquet")
    if [Path(name).name for name in inputs] == ["train.parquet"] and holdout.is_file():
        say_next("prudent", "evaluate", to, "--log", holdout, *again)
        return
    if policy.manifest.sources["training"].tally.unit == "impression":
        say_next("prudent", "evaluate", to, "--log", "HOLDOUT")
        say_wrapped(
            "HOLDOUT is a log of whole lists (layout lists or rows) that the policy was not trained on: single "
            "impressions cannot be evaluated."
        )
        return
    say_next("prudent", "evaluate", to, "--log", "HOLDOUT", *again)
    say_wrapped(
        "HOLDOUT is a log the policy was not trained on: of another day, or the holdout of prudent split, made before "
        "ranking."
    )


@command("count", "Rank")
def count_command(
    inputs: Inputs,
    to: Annotated[str, option("--to", "-o", help="File to write; with --day, the folder of all days.")],
    log: LogOptions,
    engine: EngineOptions,
    day: Annotated[
        str | None, typer.Option(help="Day of these lists, such as 2026-11-15: its folder in --to is replaced.")
    ] = None,
    reward: LogReward = None,
    max_rejected: MaxRejected = None,
    as_json: Json = False,
) -> None:
    """Count logs once; counts of several days add up.

    With --engine spark, an output that ends in .parquet is one file on this machine; any other, such as s3a://counts, is a folder of Parquet files.
    """  # noqa: E501 (a line break here would be one in a terminal)
    with busy("Counting"):
        settings = only_set(day=day, max_rejected=max_rejected, reward=reward, **log.settings)
        counts = prudent.count(inputs, engine=engine.start(log), to=to, **settings)
    if as_json:
        print_json(counts.manifest.to_json())
        return
    say(f"Counted {several(counts.tally.lists, counts.tally.unit)} into {to if day is None else counts.files[0]}.")
    _show_rejected(counts.tally)
    say_next("prudent", "rank", to, "-o", "policy.parquet", *(["--engine", "spark"] if engine.on_spark else []))


@command("check", "Rank")
def check_command(inputs: Inputs, log: LogOptions, days: DayOptions, as_json: Json = False) -> None:
    """Summarize a log: contents, rejected lists, what it can support."""
    with busy("Counting"):
        health = prudent.check(inputs, engine=log.engine, **days.settings, **log.settings)
    if as_json:
        print_json(health.to_json())
    else:
        _show_health(health)
        if health.rankable:
            say_next("prudent", "rank", *inputs, "-o", "policy.parquet", *as_words(days.settings), *log.again())


# --- output -----------------------------------------------------------------------------------------------------------


def _show_health(health: "Health") -> None:
    print_table([Column("in the log"), Column("value", str, " ", align="right")], health.facts())
    say()
    if health.ctr:
        _show_positions(health.ctr)
        say()
    if health.rejected:
        rejected = sorted(health.rejected.items(), key=lambda entry: -entry[1])
        print_table([Column("rejected lists"), Column("number", int, " ")], rejected)
    else:
        say("No list was rejected.")
    _show_left_out(health.left_out)
    say()
    for verdict in health.verdicts():
        say_wrapped(f"• {verdict}")


def _show_positions(ctr: Sequence[float]) -> None:
    top = max([*ctr, 1e-12])
    columns = [Column("position", str), Column("click-through rate", float), Column("bar", str, " ", str)]
    shown = enumerate(ctr[:_POSITIONS], start=1)
    print_table(columns, [(str(position), rate, "▇" * round(24 * rate / top)) for position, rate in shown])
    if len(ctr) > _POSITIONS:
        say(f"... and {several(len(ctr) - _POSITIONS, 'more position')} (--json has them all)")


def _show_rejected(tally: "Tally") -> None:
    for reason in tally.reasons:
        say(f"Rejected {reason}.")
    _show_left_out(tally.left_out)


def _show_left_out(left_out: Mapping[str, int]) -> None:
    """Records of a predefined format that did not become lists."""
    for reason, n in left_out.items():
        say(f"Left out: {n:,} {reason}.")


def _show_summary(manifest: "Manifest") -> None:
    from prudent.policies.list_bound import list_promise

    settings, summary, training = manifest.settings, manifest.results["summary"], manifest.sources["training"]
    baseline = settings.get("baseline")
    ranker = baseline or f"{settings['model']} and {settings['bound']}"
    logged = several(training.tally.lists, f"logged {training.tally.unit}")
    say(f"{several(summary['contexts'], 'list')} by {ranker}, from {logged}.")
    _show_choice(manifest)
    _show_rejected(training.tally)
    if training.days is not None:
        say(f"Read: {training.days}.")
    if summary["too_few_lists"]:
        few = several(summary["too_few_lists"], "context")
        say(f"Left out: {few} with fewer than {several(settings['min_lists'], 'logged list')}.")
    if summary["without_candidates"]:
        say(f"Left out: {several(summary['without_candidates'], 'context')} without a candidate.")
    differ, contexts = summary["differ"], summary["contexts"]
    say(f"{differ:,} of {several(contexts, 'list')} {'differs' if differ == 1 else 'differ'} from the incumbent.")
    if summary.get("unseen"):
        say(f"{several(summary['unseen'], 'list')} by the prior alone: the log does not have their contexts.")
    if summary.get("unclicked"):
        lists = several(summary["unclicked"], "more list")
        led = not manifest.results["fitted"].keys().isdisjoint(("groups", "features"))
        why = "by clicks in other contexts" if led else f"{settings['bound']} does not start from it"
        say_wrapped(f"{lists} without a click have another order than production's: {why}.")
    _show_rules(manifest)
    say()
    kinds = (
        {"value": "estimated", "lower": "lower bound"} if baseline is None else {"value": f"by {baseline}'s estimate"}
    )
    columns = [Column("list", str, f"value of a list ({summary['unit']})")]
    columns += [Column(kind, float, title, lambda value: number(value, 4)) for kind, title in kinds.items()]
    names = (("new", ""), ("incumbent", "incumbent_"))
    print_table(columns, [(name, *(summary[prefix + kind] for kind in kinds)) for name, prefix in names])
    if baseline is not None:
        say_wrapped("The new lists maximize this estimate, so it is too high for them. Evaluate them on a holdout.")
        return
    if reward := training.tally.reward:
        say_wrapped(f"The reward is {reward}: bounds are of what an examination of an item earns.")
    say_wrapped(list_promise(summary["level"], settings["bound"]))
    if summary["value"] < (1 - _CLEARLY) * summary["incumbent_value"]:
        lost = sum(cost["lost"] for cost in manifest.results.get("rules", {}).values())
        ruled = summary["value"] + lost >= (1 - _CLEARLY) * summary["incumbent_value"]
        why = "by what the rules cost" if ruled else "this log is no reason to change"
        say_wrapped(f"The new lists are estimated to be worse than the incumbent: {why}.")


def _show_choice(manifest: "Manifest") -> None:
    """How ``auto`` or ``robust`` chose the click model, and which others lists hold under."""
    asked = manifest.settings.get("asked_model")
    if asked not in ("auto", "robust"):
        return
    model, comparison = manifest.settings["model"], manifest.results.get("comparison")
    if manifest.sources["training"].tally.reward:
        say(f"{asked}: {model}, under which the rewards of the items of a list add up.")
        return
    if comparison is None:
        say(f"{asked}: {model}, the simplest click model that this log identifies; models were not compared.")
        return
    scores = {score["model"]: score["log_likelihood"] for score in comparison["scores"]}
    others = [name for name, score in scores.items() if score is not None and name != model]
    against = f", {others[0]} {number(scores[others[0]], 4)}" if others else "; no other model can be scored"
    tie = "" if comparison["winner"] == model else "; the difference is within two standard errors"
    compared = comparison["lists"]
    sample = f", on a sample of {compared:,} lists" if compared < manifest.sources["training"].tally.lists else ""
    say_wrapped(
        f"{asked}: {model}. Held-out log-likelihood per list{sample}: {model} {number(scores[model], 4)}{against}{tie}."
    )
    if plausible := manifest.results.get("plausible"):
        summary = manifest.results["summary"]
        hedged, differ = summary["hedged"], "differs" if summary["hedged"] == 1 else "differ"
        say_wrapped(
            f"The lists hold under {join_names(plausible)}: {hedged:,} of {several(summary['contexts'], 'list')} "
            f"{differ} from the first choice of {model}, for a better worst case."
        )


def _show_rules(manifest: "Manifest") -> None:
    """What each kind of rules changed, and what it costs."""
    rules = manifest.results.get("rules")
    if not rules:
        return
    say()
    rows = [(kind, cost["changed"], cost["lost"]) for kind, cost in rules.items()]
    columns = [
        Column("rule", str),
        Column("lists changed", int),
        Column("lost", float, f"value lost per list ({manifest.results['summary']['unit']})"),
    ]
    print_table(columns, rows)
    idle = [kind for kind, cost in rules.items() if kind in ("exclude", "pin", "bury") and not cost["changed"]]
    if idle:
        changes = "changes" if len(idle) == 1 else "change"
        say_wrapped(f"{join_names(idle)} {changes} no list: if that is not meant, are items named as in the log?")
    if rules.get("new", {}).get("lacking"):
        lists = several(rules["new"]["lacking"], "list")
        say_wrapped(f"{lists} cannot have as many new items: name them with --candidates.")


def _show_signals(manifest: "Manifest") -> None:
    """What the prior makes of groups and features."""
    fitted = manifest.results.get("fitted", {})
    parts = (
        ("Groups", group_sentences(fitted)),
        ("Features", feature_sentences(fitted, manifest.settings.get("feature_model", ""))),
    )
    for what, sentences in parts:
        if sentences:
            say()
            say(f"{what}, by clicks in other contexts:")
            for sentence in sentences:
                say_wrapped(f"  {sentence}")


def _show_fitted(manifest: "Manifest") -> None:
    """Fitted parameters of the click model, and of the bound's prior without signals, which are in words."""
    from prudent.policies.trained_model import fitted_parameters

    prior = {k: v for k, v in manifest.results["fitted"].get("prior", {}).items() if k != "by_group"}
    say()
    for parameter, values in fitted_parameters(manifest).items():
        say_wrapped(f"fitted {parameter}: {short(values, _POSITIONS)}")
    if prior:
        say_wrapped(f"fitted prior: {', '.join(f'{name} {short(value, _POSITIONS)}' for name, value in prior.items())}")


def _show_changes(policy: "Policy") -> None:
    """The lists that change most."""
    rows = policy.changes().limit(5).select("context, lists, incumbent_value, value, lower, first_item").fetchall()
    rows = [row for row in rows if number(row[2]) != number(row[3])]  # as it is printed
    if not rows:
        return
    columns = [
        Column("context", object, "largest changes", align="left"),
        Column("lists", float, show=lambda n: number(n, 0)),
        *(Column(name, float) for name in ("before", "after", "lower bound")),
        Column("first item", object, align="left"),
    ]
    if "bound" not in policy.manifest.settings:  # a baseline has no lower bound
        columns, rows = [*columns[:4], columns[5]], [(*row[:4], row[5]) for row in rows]
    say()
    print_table(columns, rows)
