"""Contexts and items that look like one under two names in two policies."""

import duckdb

ALIKE = 0.8
"""Share of equal places above which two lists, or the places of two items, look like one under two names."""

_NEGLIGIBLE_SHARE = 0.1  # relative difference of impressions that counts as none
_RARE = 5  # an item at a place in more lists than that does not tell which two of them belong together


def find_renamed(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the tables `renamed_contexts` and `renamed_items`: old, new, and how many places are equal, of how many."""
    # A place has one item before and one after, so that this join is no larger than the lists.
    connection.execute(
        f"""
        create temp table renamed_items as
        with gone as (select * from old_lists where item in (select was from names where is_ is null)),
        appeared as (select * from new_lists where item in (select is_ from names where was is null)),
        pairs as (
            select gone.item as old, appeared.item as new, count(*) as places
            from gone join appeared using (context, rank) group by all
        ),
        sizes as (
            select pairs.*, o.size as old_size, n.size as new_size, o.shown as old_shown, n.shown as new_shown
            from pairs
            join (select item, count(*) as size, sum(impressions) as shown from gone group by item) as o
                on o.item = old
            join (select item, count(*) as size, sum(impressions) as shown from appeared group by item) as n
                on n.item = new
        )
        select old, new, places, greatest(old_size, new_size) as of_places
        from sizes
        where places >= {ALIKE} * greatest(old_size, new_size)
            -- A new item in the one place of an old one is common; in two, with the same evidence, it is not.
            and (places >= 3 or places = 2
                and abs(old_shown - new_shown) <= {_NEGLIGIBLE_SHARE} * greatest(old_shown, new_shown))
        """
    )
    connection.execute(
        f"""
        create temp table renamed_contexts as
        with gone as (select l.* from old_lists as l join compared using (context) where new_size = 0),
        appeared as (select l.* from new_lists as l join compared using (context) where old_size = 0),
        telling as (
            select rank, item from gone group by all having count(*) <= {_RARE}
            intersect
            select rank, item from appeared group by all having count(*) <= {_RARE}
        ),
        candidates as (
            select distinct gone.context as old, appeared.context as new
            from gone join telling using (rank, item) join appeared using (rank, item)
        ),
        pairs as (
            select old, new, count(*) as places
            from candidates join gone on gone.context = old
            join appeared on appeared.context = new and appeared.rank = gone.rank and appeared.item = gone.item
            group by all
        ),
        alike as (
            select old, new, places, greatest(o.old_size, n.new_size) as of_places
            from pairs join compared as o on o.context = old join compared as n on n.context = new
            where of_places >= 2 and places >= {ALIKE} * of_places
        )
        from alike qualify count(*) over (partition by old) = 1 and count(*) over (partition by new) = 1
        """
    )
