"""The few functions that DuckDB and Spark spell differently; everything else in `prudent.engines.sql` is one text."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Dialect:
    """Names and templates of functions over lists."""

    size: str
    minimum: str
    maximum: str
    filter: str  # of a list, the name of an element and a condition
    missing: str  # whether an element is null

    def where(self, values: str, name: str, condition: str) -> str:
        """The elements that meet a condition."""
        return self.filter.format(values=values, name=name, condition=condition)

    def has_null(self, values: str) -> str:
        """Whether an element is null."""
        return self.missing.format(values=values)


DUCKDB = Dialect(
    size="len",
    minimum="list_min",
    maximum="list_max",
    filter="list_filter({values}, lambda {name}: {condition})",
    missing="list_count({values}) < len({values})",  # faster than a lambda
)
SPARK = Dialect(
    size="size",
    minimum="array_min",
    maximum="array_max",
    filter="filter({values}, {name} -> {condition})",
    missing="exists({values}, value -> value is null)",
)
