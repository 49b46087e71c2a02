"""The rejection rules as SQL text for every engine.

An engine makes the relation `lists` (context, items, clicks, fault, copies and, where the log names it, propensity), in
which each row is one list, or `copies` rows that belong to no list. From there on the text is the same.
"""

from collections.abc import Collection

from prudent.engines.sql.dialect import Dialect
from prudent.logs.log import CODE, ODD


def list_fault(odd: bool) -> str:
    """The fault of one row in the layout ``lists``, where `odd` says whether the source has a column of that name."""
    return f"case when odd then {CODE[ODD]} else 0 end" if odd else "0"


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
    dialect: Dialect, max_positions: int, *, text: Collection[str] = (), propensity: str | None = None
) -> str:
    """The number of the first reason to reject a list, or 0.

    `text` are the columns, of context and items, in which to look for NUL bytes. `propensity` is the condition on the
    number of propensities under which they do not fit the list.
    """
    size, minimum, maximum = dialect.size, dialect.minimum, dialect.maximum
    nul = {
        "context": "contains(context, chr(0))",
        "items": f"{size}({dialect.where('items', 'item', 'contains(item, chr(0))')}) > 0",
    }
    # Below 10⁻¹² the inverse of a propensity is not a usable weight.
    improper = f"""
        when propensity is null or {size}(propensity) {propensity} or {dialect.has_null("propensity")}
            or {minimum}(propensity) < 1e-12 or {maximum}(propensity) > 1
            then {CODE["propensity outside (0, 1]"]}
    """
    return f"""
        case
            when fault > 0 then fault
            when context is null then {CODE["context missing"]}
            when items is null or {size}(items) = 0 then {CODE["empty list"]}
            when clicks is null or {size}(clicks) <> {size}(items) then {CODE["items and clicks differ in length"]}
            when {size}(items) > {max_positions:d} then {CODE["too many positions"]}
            when {dialect.has_null("items")} then {CODE["item missing"]}
            when {dialect.has_null("clicks")} or {minimum}(clicks) < 0 or {maximum}(clicks) > 1
                then {CODE["click other than 0 or 1"]}
            when {size}(array_distinct(items)) < {size}(items) then {CODE["duplicate item in a list"]}
            {improper if propensity else ""}
            {f"when {' or '.join(nul[name] for name in text)} then {CODE['NUL byte in a name']}" if text else ""}
            else 0
        end
    """


CLICK_WORDS = "when '0' then 0 when '1' then 1 when 'false' then 0 when 'true' then 1"
"""Clicks as text, in lower case and without blanks."""
