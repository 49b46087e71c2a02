-- One row per item that was shown on a day, with whether it was clicked. Run it for a day, the last whole one:
--     dbt run --select +click_log --vars '{day: 2026-11-15}'
{{ config(materialized='view') }}

with shown as (
    -- Events arrive more than once: one row per list and item.
    select distinct list_id, query, item, position
    from {{ source('events', 'impressions') }}
    where shown_at >= date '{{ var("day") }}'
      and shown_at < date '{{ var("day") }}' + interval 1 day
),

clicked as (
    -- Two clicks on an item are one, and a click on something that was not shown matches nothing.
    select distinct list_id, item
    from {{ source('events', 'clicks') }}
)

select
    shown.list_id,
    shown.query,
    shown.item,
    shown.position,
    case when clicked.item is null then 0 else 1 end as click
from shown
left join clicked
    on shown.list_id = clicked.list_id
    and shown.item = clicked.item
