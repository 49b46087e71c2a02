"""Single impressions as SQL text: what is wrong with one, and the code of its cell.

An engine makes the relation `impressions` (context, item, position, click, fault) of a log in the layout
``impressions``, groups it by context, item and code, and puts what it counts in the columns of a counts file. The
counting kernel, which counts lists, has no part in it.
"""

from prudent.logs.log import CODE


def impression_fault(max_positions: int, *, odd: bool, nul: str, columns: int | None, rewards: bool) -> str:
    """The number of the first reason to reject an impression, or 0.

    `nul` is the condition that a name has a NUL byte. With `columns`, those of a grid, ``row_place`` and
    ``column_place`` are places in it, from 0. With `rewards`, there is also a column `reward`.
    """
    outside = "position is null or position < 1"
    if columns is not None:
        outside += f" or row_place < 0 or column_place < 0 or column_place >= {columns:d}"
    worthless = f"""
        when reward is null then {CODE["reward outside 0 to 100,000"]}
        when reward > 0 and click = 0 then {CODE["reward without a click"]}
    """
    return f"""
        case
            {f"when odd then {CODE['name of another type than the others']}" if odd else ""}
            when context is null then {CODE["context missing"]}
            when position > {max_positions:d} then {CODE["too many positions"]}
            when item is null then {CODE["item missing"]}
            when click is null or click not in (0, 1) then {CODE["click other than 0 or 1"]}
            when {outside} then {CODE["positions other than 1, 2, 3, ..."]}
            {worthless if rewards else ""}
            {f"when {nul} then {CODE['NUL byte in a name']}" if nul else ""}
            else 0
        end
    """


CODE_OF_CELL = "try_cast(position * 65540 + click * 2 as int)"
"""``position << 16 | prev << 2 | click << 1`` where ``prev`` is the position: what was clicked above is not known."""
