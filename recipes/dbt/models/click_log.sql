-- One row per list, in the layout `lists` that prudent reads without any option: context, items, clicks.
-- dbt-duckdb writes it to where nightly.sh looks. On another warehouse, materialise a table and unload it as Parquet.
{{ config(
    materialized='external',
    location='logs/' ~ var('day') ~ '/click_log.parquet',
    format='parquet'
) }}

select
    query as context,
    array_agg(item order by position) as items,
    array_agg(click order by position) as clicks
from {{ ref('shown_items') }}
group by list_id, query
-- A list that lost an event would move items up and change who was seen: leave it out. So is one with two items at a place.
having min(position) = 1
   and max(position) = count(*)
   and count(distinct position) = count(*)
