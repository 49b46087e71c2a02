"""The rejection rules as SQL text.

An engine makes the relation `lists` (context, items, clicks, fault, copies and, where the log names it, propensity), in
which each row is one list, or `copies` rows that belong to no list. The faults that only rows have are one text for
every engine. The kernel looks for the others; where DuckDB handles whole lists, `rejection` does, by the same rules.
"""

from collections.abc import Collection

from prudent.logs.log import CODE, ODD


def list_fault(odd: bool, clicked: str = "") -> str:
    """The fault of one row in the layout ``lists``, where `odd` says whether the source has a column of that name.

    `clicked` is what `clicked_fault` makes.
    """
    whens = f"{f'when odd then {CODE[ODD]}' if odd else ''} {clicked}"
    return f"case {whens} else 0 end" if whens.strip() else "0"


def clicked_fault(column: str, outside: str) -> str:
    """What is wrong with a list of what was clicked, where `outside` is the condition that it is not in its list.

    Without items there is no list to be outside of: that is the fault, whatever was clicked.
    """
    return (
        f"when {column} is null then {CODE['clicks missing']} "
        f"when items is not null and ({outside}) then {CODE['click outside its list']}"
    )


def row_fault(*, odd: bool, whole: str, repeated: str) -> str:
    """The fault that only rows of the layout ``rows`` can have, once they are grouped by impression id.

    A group has `rows`, `contexts` that are not null, its `first_context` and `last_context`. `whole` is the condition
    that its positions are 1, 2, 3 and so on, `repeated` that one of them occurs twice.
    """
    return f"""
        case
            {f"when odd then {CODE[ODD]}" if odd else ""}
            when impression is null then {CODE["impression id missing"]}
            when contexts < rows then {CODE["context missing"]}
            when first_context <> last_context then {CODE["impression id in several contexts"]}
            when {whole} then 0
            when {repeated} then {CODE["duplicate position in a list"]}
            else {CODE["positions other than 1, 2, 3, ..."]}
        end
    """


def rejection(
    max_positions: int, *, text: Collection[str] = (), propensity: str | None = None, rewards: bool = False
) -> str:
    """In DuckDB, the number of the first reason to reject a list, or 0.

    `text` are the columns, of context and items, in which to look for NUL bytes. `propensity` is the condition on the
    number of propensities under which they do not fit the list. `rewards` says whether there is such a column, of
    whole numbers, or nulls where they are none.
    """
    nul = {
        "context": "contains(context, chr(0))",
        "items": "len(list_filter(items, lambda item: contains(item, chr(0)))) > 0",
    }
    # Below 10⁻¹² the inverse of a propensity is not a usable weight.
    improper = f"""
        when propensity is null or len(propensity) {propensity} or {_has_null("propensity")}
            or list_min(propensity) < 1e-12 or list_max(propensity) > 1
            then {CODE["propensity outside (0, 1]"]}
    """
    worthless = f"""
        when rewards is null or len(rewards) <> len(items) then {CODE["items and rewards differ in length"]}
        when {_has_null("rewards")} then {CODE["reward outside 0 to 100,000"]}
        when len(list_filter(rewards, lambda reward, k: reward > 0 and clicks[k] = 0)) > 0
            then {CODE["reward without a click"]}
    """
    return f"""
        case
            when fault > 0 then fault
            when context is null then {CODE["context missing"]}
            when items is null or len(items) = 0 then {CODE["empty list"]}
            when clicks is null or len(clicks) <> len(items) then {CODE["items and clicks differ in length"]}
            when len(items) > {max_positions:d} then {CODE["too many positions"]}
            when {_has_null("items")} then {CODE["item missing"]}
            when {_has_null("clicks")} or list_min(clicks) < 0 or list_max(clicks) > 1
                then {CODE["click other than 0 or 1"]}
            when len(array_distinct(items)) < len(items) then {CODE["duplicate item in a list"]}
            {improper if propensity else ""}
            {worthless if rewards else ""}
            {f"when {' or '.join(nul[name] for name in text)} then {CODE['NUL byte in a name']}" if text else ""}
            else 0
        end
    """


def _has_null(values: str) -> str:
    return f"list_count({values}) < len({values})"  # faster than a lambda


CLICK_WORDS = "when '0' then 0 when '1' then 1 when 'false' then 0 when 'true' then 1"
"""Clicks as text, in lower case and without blanks."""
