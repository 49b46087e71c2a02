-- Whole lists, for methods that weigh lists and not only items.
select
    context,
    items,   -- from the top down
    clicks,  -- 0 or 1 for each of them
    count(*) as n
from shown
group by context, items, clicks
