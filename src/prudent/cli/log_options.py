"""Options about the log that is read, and the engine that reads it; see `prudent.cli.options`."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import prudent
from prudent.base.errors import UsageError
from prudent.cli.options import Memory, Threads, as_words, column, only_set, option, settings_of

LayoutOption = Annotated[
    Literal["lists", "rows", "impressions"] | None,
    option(
        "--layout",
        panel="Log",
        metavar="NAME",
        help="lists: one row per list; rows: one per impression, with the id of the list; impressions: without it.",
    ),
]

LogReward = Annotated[
    str | None,
    column(
        "--reward",
        "What a click was worth, such as a purchase or a margin: lists are ranked by it. "
        "ubi: what actions are worth, 'click=1, cart=3'.",
    ),
]


@dataclass(frozen=True)
class LogOptions:
    """The columns of a log, its format, and what DuckDB may use."""

    format: Annotated[str | None, option("--format", panel="Log", help="Predefined log format: {formats}.")] = None
    layout: LayoutOption = None
    context: Annotated[
        list[str] | None, column("--context", "The context; repeatable: several columns make one context.")
    ] = None
    items: Annotated[str | None, column("--items", "The items (layout lists).")] = None
    clicks: Annotated[str | None, column("--clicks", "The 0/1 clicks (layout lists).")] = None
    clicked_items: Annotated[
        str | None, column("--clicked-items", "The clicked items, in place of clicks (layout lists).")
    ] = None
    clicked_positions: Annotated[
        str | None, column("--clicked-positions", "The clicked positions, in place of clicks (layout lists).")
    ] = None
    first_position: Annotated[
        int | None, option("--first-position", panel="Log", help="Whether positions count from 0 or from 1.")
    ] = None
    impression: Annotated[str | None, column("--impression", "The id of the list (layout rows).")] = None
    item: Annotated[str | None, column("--item", "The item (layouts rows, impressions).")] = None
    position: Annotated[str | None, column("--position", "The position (layouts rows, impressions).")] = None
    click: Annotated[str | None, column("--click", "The 0/1 click (layouts rows, impressions).")] = None
    grid_row: Annotated[
        str | None, column("--grid-row", "The row of a grid, in place of the position (layout impressions).")
    ] = None
    grid_column: Annotated[str | None, column("--grid-column", "The column of a grid (layout impressions).")] = None
    grid_width: Annotated[
        int | None, option("--grid-width", panel="Log", help="Columns of the grid, which is read row by row.")
    ] = None
    max_positions: Annotated[
        int | None, option("--max-positions", panel="Log", help="Lists with more positions are rejected.")
    ] = None
    user: Annotated[str | None, column("--user", "The user or session, for --leave-out.")] = None
    shown_at: Annotated[str | None, column("--shown-at", "The time of the list, for --leave-out.")] = None
    leave_out: Annotated[
        list[str] | None,
        option("--leave-out", panel="Log", metavar="KIND", help="Leave out duplicates, or lists of bots; repeatable."),
    ] = None
    max_user_clicks: Annotated[
        int | None, option("--max-user-clicks", panel="Log", help="Leave out lists of a user beyond so many clicks.")
    ] = None
    click_action: Annotated[
        list[str] | None, option("--click-action", panel="Log", help="Action that counts as a click (ubi); repeatable.")
    ] = None
    impression_action: Annotated[
        list[str] | None, option("--impression-action", panel="Log", help="Action that is an impression (ubi).")
    ] = None
    memory: Memory = None
    threads: Threads = None

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments of `as_log`: what is set."""
        settings = settings_of(self, "memory", "threads")
        if len(self.context or ()) == 1:  # readers take one
            settings["context"] = settings["context"][0]
        return settings

    @property
    def engine(self) -> "prudent.DuckDB":
        """DuckDB within the limits."""
        return prudent.DuckDB(self.memory, self.threads)

    def again(self) -> list[str]:
        """The options that the next command needs to read the same log."""
        return as_words(self.settings)


@dataclass(frozen=True)
class EngineOptions:
    """Which engine counts and ranks."""

    engine: Annotated[
        Literal["duckdb", "spark"], option("--engine", panel="Engine", help="DuckDB on this machine, or Spark.")
    ] = "duckdb"
    master: Annotated[
        str | None, option("--master", panel="Engine", help="Spark master: local[2], spark://..., yarn.")
    ] = None
    conf: Annotated[
        list[str] | None, option("--conf", panel="Engine", metavar="KEY=VALUE", help="Spark setting; repeatable.")
    ] = None

    @property
    def on_spark(self) -> bool:
        """Whether the engine is Spark."""
        return self.engine == "spark"

    def start(self, log: LogOptions) -> "prudent.DuckDB | prudent.Spark":
        """The engine; options of the other one are an error."""
        if not self.on_spark:
            if self.conf or self.master:
                raise UsageError("--master and --conf are for Spark: add --engine spark.")
            return log.engine
        if log.memory is not None or log.threads is not None:
            raise UsageError(
                "--memory and --threads are for DuckDB. For Spark: --conf spark.driver.memory=4g, --master local[2]."
            )
        settings = {}
        for setting in self.conf or []:
            key, sign, value = setting.partition("=")
            if not (key.strip() and sign):
                raise UsageError(f"--conf {setting}: write a setting as key=value, such as spark.driver.memory=4g.")
            settings[key.strip()] = value.strip()
        return prudent.Spark.start(**only_set(master=self.master), conf=settings)
