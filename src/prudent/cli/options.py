"""Options that several commands share, each defined once, and the objects they stand for.

Options that belong together are a group: a frozen dataclass whose fields are options. A command with a parameter of
that type has all of them.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperCommand

import prudent

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


PANELS = ("Log", "Groups and features", "Days", "Engine")  # of the help, in this order, below those without a name


def option(*names: str, panel: str | None = None, **settings: Any) -> Any:
    """An option in a panel of the help."""
    return typer.Option(*names, rich_help_panel=panel, **settings)


def column(name: str, meaning: str) -> Any:
    """An option that names a column of the log."""
    return option(name, panel="Log", metavar="COLUMN", help=meaning)


def fraction(text: str) -> float:
    """A number; the error for 5% suggests 0.05."""
    try:
        return float(text)
    except ValueError:
        percentage = text.rstrip("% ")
        try:
            example = f"{float(percentage) / 100:g}" if percentage != text else "0.05"
        except ValueError:
            example = "0.05"
        raise typer.BadParameter(f"{text!r} is not a number. Write a fraction, such as {example}.") from None


def share_of(text: str) -> float:
    """A share as a fraction or in percent: 0.05 or 5%.

    >>> share_of("5%"), share_of("0.05")
    (0.05, 0.05)
    """
    return fraction(text[:-1]) / 100 if text.endswith("%") else fraction(text)


def only_set(**options: Any) -> dict[str, Any]:
    """The options that were set; the others have the defaults of the public function."""
    return {name: value for name, value in options.items() if value not in (None, [], ())}


# --- arguments and single options -------------------------------------------------------------------------------------

Inputs = Annotated[
    list[str], typer.Argument(metavar="INPUT", help="Click logs (Parquet, JSON Lines, CSV; globs), or counts.")
]
Logs = Annotated[list[str], typer.Argument(metavar="LOG", help="Click logs (Parquet, JSON Lines, CSV; globs).")]
PolicyFile = Annotated[Path, typer.Argument(metavar="POLICY", help="Policy written by prudent rank.")]
HoldoutLog = Annotated[
    list[str],
    option("--log", metavar="LOG", help="Holdout: click logs the policy was not trained on; files, globs; repeatable."),
]
To = Annotated[Path, option("--to", "-o", help="File to write.")]
Chart = Annotated[
    Path | None, option("--to", "-o", help="Also draw a chart: NAME.svg or NAME.png (needs prudent\\[report]).")
]
Json = Annotated[bool, option("--json", help="Print the result as JSON.")]
Verbose = Annotated[bool, option("--verbose", "-v", help="Also print the statistics of the fit.")]
Seed = Annotated[int | None, option("--seed", help="Seed of the random numbers.")]
Memory = Annotated[
    str | None, option("--memory", panel="Engine", help="Memory limit of DuckDB, such as 1GB; the rest spills to disk.")
]
Threads = Annotated[int | None, option("--threads", panel="Engine", help="Threads of DuckDB.")]
MaxRejected = Annotated[float | None, option("--max-rejected", panel="Log", help="Maximum share of rejected lists.")]
Model = Annotated[str | None, option("--model", help="Click model: auto, robust, {click_models}, ensemble(model=...).")]
Length = Annotated[int | None, option("--length", help="Items per list. [dim]Default: the longest logged list.[/dim]")]
Holdout = Annotated[
    float | None, option("--holdout", parser=fraction, metavar="SHARE", help="Share of lists to hold out.")
]
By = Annotated[
    Literal["hash", "time"] | None,
    option("--by", metavar="NAME", help="Hold out lists by a hash of their content, or by time: the latest."),
]
Time = Annotated[str | None, option("--time", help="Column of the time, for --by time.")]
Reward = Annotated[
    str | None,
    option(
        "--reward",
        metavar="NAME",
        help="What a list earns: clicks, or any-click (whether it has one).",
    ),
]
AnyReward = Annotated[
    str | None,
    option(
        "--reward",
        metavar="NAME",
        help="What a list earns: clicks, any-click (whether it has one), or a column of what clicks were worth "
        "(ubi: what actions are worth).",
    ),
]
Propensity = Annotated[
    str | None,
    option(
        "--propensity",
        panel="Log",
        help="Column of the list's probability under the logging policy: a number, or one per position. "
        "[dim]Default: frequencies.[/dim]",
    ),
]
Segment = Annotated[
    list[str] | None,
    option(
        "--segment",
        panel="Log",
        metavar="COLUMN",
        help="Column to test for confounding, such as the device; any type; repeatable.",
    ),
]
OneSided = Annotated[float | None, option("--confidence", parser=fraction, help="Confidence level, one-sided.")]
Interval = Annotated[
    Literal["bootstrap", "bernstein"] | None,
    option(
        "--interval",
        metavar="NAME",
        help="bootstrap, or bernstein (empirical): guaranteed, for clipped weights and a propensity column.",
    ),
]
Replicates = Annotated[int | None, option("--replicates", help="Bootstrap replicates.")]


# --- groups -----------------------------------------------------------------------------------------------------------


def settings_of(group: Any, *without: str) -> dict[str, Any]:
    """The options of a group that were set, by name."""
    return only_set(**{f.name: getattr(group, f.name) for f in fields(group) if f.name not in without})


def as_words(settings: Mapping[str, Any]) -> list[str]:
    """Options with these values, as words of a command."""
    words = []
    for name, value in settings.items():
        for one in value if isinstance(value, list) else [value]:
            words += [f"--{name.replace('_', '-')}", str(one)]
    return words


@dataclass(frozen=True)
class DayOptions:
    """The days of a folder of counts."""

    since: Annotated[
        str | None,
        option("--since", panel="Days", help="First day: a date, or an age such as 30d before the newest day."),
    ] = None
    until: Annotated[str | None, option("--until", panel="Days", help="Last day.")] = None
    half_life: Annotated[
        str | None,
        option(
            "--half-life",
            panel="Days",
            help="Age at which a list's weight halves, such as 14d. The newest day has weight 1.",
        ),
    ] = None

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments of `Counts.read`."""
        return settings_of(self)


@dataclass(frozen=True)
class GroupOptions:
    """What the clicks of other contexts are grouped by, and what is known of items and contexts."""

    groups: Annotated[
        str | None,
        option(
            "--groups",
            panel="Groups and features",
            help="Automatic groupings, such as item,host,query: the item in all contexts, the host of a URL, and the "
            "query in normal form.",
        ),
    ] = None
    item_groups: Annotated[
        str | None,
        option(
            "--item-groups",
            panel="Groups and features",
            help="File with the column item and one for each grouping of items.",
        ),
    ] = None
    context_groups: Annotated[
        str | None,
        option(
            "--context-groups",
            panel="Groups and features",
            help="File with the column context and one for each grouping of contexts.",
        ),
    ] = None

    features: Annotated[
        list[str] | None,
        option(
            "--features",
            panel="Groups and features",
            metavar="FILE",
            help="File with the column item, context or both, and one for each feature: numbers, text or booleans; "
            "repeatable.",
        ),
    ] = None
    feature_model: Annotated[
        str | None,
        option(
            "--feature-model",
            panel="Groups and features",
            help="What learns from features: {feature_models}; e.g. 'lightgbm(decreasing=\\[price])'. "
            "[dim]Default: ridge.[/dim]",
        ),
    ] = None

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments of `prudent.rank`: what is set."""
        return settings_of(self)


@dataclass(frozen=True)
class GateOptions:
    """What decides whether a policy passes, and what the holdout has for it."""

    reward: Reward = None
    min_lift: Annotated[
        float | None, option("--min-lift", parser=fraction, help="Pass if the lift is above this: 0.01 is +1%.")
    ] = None
    min_support: Annotated[
        float | None,
        option("--min-support", parser=fraction, help="Unknown if support is below this share of changed lists."),
    ] = None
    acknowledge: Annotated[
        list[str] | None,
        option(
            "--acknowledge",
            help="A refusal to take responsibility for: click-model, confounding, provenance, repeats, selection, "
            "trust-bias.",
        ),
    ] = None
    personalised: Annotated[
        bool, option("--personalised", help="Production chooses lists by something about the user; needs --propensity.")
    ] = False
    propensity: Propensity = None
    segment: Segment = None
    max_rejected: MaxRejected = None

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments of `prudent.gate`: what is set."""
        return settings_of(self)


@dataclass(frozen=True)
class AnyRewardGateOptions(GateOptions):
    """The same, where what a list earns may also be in a column."""

    reward: AnyReward = None


# --- commands ---------------------------------------------------------------------------------------------------------


def command(name: str, panel: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add a function to the application; typer needs every option of a group as an argument of its own."""

    def add(function: Callable[..., None]) -> Callable[..., None]:
        parameters = inspect.signature(function).parameters.values()
        groups: dict[str, Any] = {p.name: p.annotation for p in parameters if is_dataclass(p.annotation)}
        options = sorted((one for p in parameters for one in _options(p)), key=_panel)

        @wraps(function)
        def spread(**values: Any) -> None:
            made = {n: group(**{f.name: values.pop(f.name) for f in fields(group)}) for n, group in groups.items()}
            function(**values, **made)

        spread.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
        spread.__annotations__ = {p.name: p.annotation for p in options}
        app.command(name, rich_help_panel=panel, cls=_Command)(spread)
        return function

    return add


def _options(parameter: inspect.Parameter) -> list[inspect.Parameter]:
    """A parameter of a command as options of its own: one, or those of its group."""
    if not is_dataclass(parameter.annotation):
        return [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)]
    return [
        inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=f.type)
        for f in fields(parameter.annotation)
    ]


def _panel(parameter: inspect.Parameter) -> int:
    """The place of its panel in the help; options of one panel keep the order of the signature."""
    panel = getattr(parameter.annotation.__metadata__[0], "rich_help_panel", None)
    return PANELS.index(panel) if panel else -1


class _Command(TyperCommand):
    """Adds to the help, when it is shown, the registered names for {click_models}, {bounds}, ... and the defaults.

    An option that is not set has the default of the public function, which has the name of the command. Not earlier:
    registries and functions load NumPy and SciPy, and `prudent --help` needs neither.
    """

    def format_help(self, ctx: Any, formatter: Any) -> None:
        with self.documented():
            super().format_help(ctx, formatter)

    @contextmanager
    def documented(self) -> Iterator[None]:
        """The parameters with all of their names and defaults, as the help and the reference page show them."""
        defaults = _defaults(str(self.name).replace("-", "_"))
        unset = [parameter for parameter in self.params if parameter.default is None]
        for parameter in self.params:
            text = getattr(parameter, "help", None)
            if text and "{" in text:
                setattr(parameter, "help", text.format_map(_Registered()))  # noqa: B010 (arguments have none)
        for parameter in unset:
            parameter.default = defaults.get(str(parameter.name))
        yield
        for parameter in unset:
            parameter.default = None


def _defaults(function: str) -> dict[str, Any]:
    """The defaults of a public function; empty where no function has this name."""
    if function not in prudent.__all__:
        return {}
    from prudent.click_models.world import make_world

    takes: list[Callable[..., Any]] = [prudent.Log, prudent.Spark.start, getattr(prudent, function)]
    if function == "simulate":
        takes.append(make_world)
    parameters = [one for call in takes for one in inspect.signature(call).parameters.values()]
    return {one.name: one.default for one in parameters if one.default is not one.empty}


class _Registered(dict[str, str]):
    def __missing__(self, registry: str) -> str:
        from prudent.bounds import bounds
        from prudent.bounds.feature_models import feature_models
        from prudent.click_models.selection import names
        from prudent.evaluation.estimators import estimators
        from prudent.logs.readers import readers
        from prudent.policies.baselines import baselines
        from prudent.policies.export import formats
        from prudent.policies.judgments.formats import judgment_formats

        registered: dict[str, Iterable[str]] = {
            "click_models": names(),
            "feature_models": feature_models,
            "bounds": bounds,
            "estimators": estimators,
            "baselines": baselines,
            "exports": formats,
            "judgments": judgment_formats,
            "formats": readers,
        }
        return ", ".join(registered[registry])
