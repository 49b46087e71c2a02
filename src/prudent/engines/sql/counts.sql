-- The counts: one histogram, from which every click model is a fold. Both engines run this text word for word.
select
    context,
    item,
    position,  -- 1-based; pbm asks how often an item was shown and clicked at each
    prev,      -- position of the last click above, 0 if none: cm stops there, dcm's tail knows where reading may have ended
    click,
    more,      -- whether there is a click below: dcm knows then that reading went on
    count(*) as n
from impressions
group by context, item, position, prev, click, more
