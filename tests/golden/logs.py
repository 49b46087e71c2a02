"""A handful of small logs, drawn by Python's own generator: nothing of the product decides what is in them."""

import json
import random
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

EXAMINATION = (1.0, 0.7, 0.5, 0.35)


class Shown(NamedTuple):
    context: Any
    items: list[Any]
    clicks: list[int]
    propensity: float


def draw(seed: int, lists: int, text: bool, users: str) -> list[Shown]:
    """Lists of up to 4 of 9 items in 6 contexts; shown and clicked more often the better they are."""
    rng = random.Random(seed)
    shown = []
    for _ in range(lists):
        context = min(int(rng.expovariate(0.5)), 5)
        theta = [0.05 + 0.6 * random.Random(f"{context}/{i}").random() ** 2 for i in range(9)]
        size = 4 if rng.random() < 0.9 else 3
        left, items, propensity = list(range(9)), [], 1.0
        for _ in range(size):
            weight = [theta[i] + 0.1 for i in left]
            (item,) = rng.choices(left, weight)
            propensity *= weight[left.index(item)] / sum(weight)
            left.remove(item)
            items.append(item)
        clicks = []
        reading = True
        for k, item in enumerate(items):
            if users == "positions":
                clicks.append(int(rng.random() < EXAMINATION[k] * theta[item]))
            else:
                click = reading and rng.random() < theta[item]
                clicks.append(int(click))
                reading = reading and not (click and rng.random() > 0.6)
        named = [f"item-{chr(97 + item)}" if text else 100 + item for item in items]
        shown.append(Shown(f"query-{context}" if text else context, named, clicks, propensity))
    return shown


def write_lists(shown: list[Shown], path: Path) -> Path:
    """JSON Lines, one list each."""
    rows = (
        {"context": one.context, "items": one.items, "clicks": one.clicks, "propensity": one.propensity}
        for one in shown
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_rows(shown: list[Shown], path: Path) -> Path:
    """Parquet, one row per shown item, in an order of its own."""
    rows = [
        (number, one.context, item, position, click)
        for number, one in enumerate(shown)
        for position, (item, click) in enumerate(zip(one.items, one.clicks, strict=True), start=1)
    ]
    random.Random(1).shuffle(rows)
    with duckdb.connect() as connection:
        connection.execute("create table t (impression int, context int, item int, position int, click int)")
        connection.executemany("insert into t values (?, ?, ?, ?, ?)", rows)
        connection.execute(f"copy t to '{path}' (format parquet)")
    return path


def write_candidates(path: Path) -> Path:
    """What may be shown: some of what was, and one item that never was."""
    with duckdb.connect() as connection:
        connection.execute(
            f"copy (select 'query-' || c as context, 'item-' || i as item from range(6) t(c), "
            f"unnest(['a', 'b', 'd', 'e', 'g', 'z']) u(i)) to '{path}' (format parquet)"
        )
    return path
