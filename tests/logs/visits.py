"""Logs with users and times: people, bots of both kinds, duplicates, lists without a user; what a loop keeps."""

from datetime import datetime, timedelta
from hashlib import md5
from typing import Any

import numpy as np

START = datetime(2026, 11, 1)


def visits(seed: int) -> list[dict[str, Any]]:
    """Lists in any order, with names that need care, such as a quote and another letter case."""
    rng = np.random.default_rng(seed)
    names = ["a", "A", "a,b", "it's", "", "é", "x y", "|"]
    rows = []
    for user in range(120):
        rate, when = rng.beta(1, 9), START
        for _ in range(rng.poisson(6) + 1):
            when += timedelta(seconds=int(rng.integers(1, 4000)))
            items = rng.permutation(names)[: rng.integers(1, 9)].tolist()
            clicks = (rng.random(len(items)) < rate).astype(int).tolist()
            rows.append(_visit(f"u{user}", when, f"q{rng.integers(4)}", items, clicks))
    rows += [_visit("eager", START + timedelta(hours=n), "q1", names, [1] * 8) for n in range(9)]
    rows += [_visit("fast", START + timedelta(milliseconds=99 * n), "q1", [f"i{n}"], [n % 2]) for n in range(400)]
    rows += [_visit(None, START, "q2", ["a", "b"], [1, 0])] * 3
    rows += [_visit("untimed", None, "q2", ["a", "b"], [1, 0])] * 3
    rows += [rows[number] for number in rng.integers(len(rows), size=40)]
    return [rows[number] for number in rng.permutation(len(rows))]


def _visit(user: str | None, when: datetime | None, context: str, items: list[str], clicks: list[int]) -> Any:
    return {"who": user, "at": when, "context": context, "items": items, "clicks": clicks}


BOTS = ("eager", "fast")


def kept(rows: list[dict[str, Any]], *, duplicates: bool, bots: bool, limit: int | None) -> list[dict[str, Any]]:
    """What remains, where it is known who the bots are."""
    seen, remaining = set(), []
    for row in rows:
        key = str([row[name] for name in ("who", "at", "context", "items", "clicks")])
        if not (duplicates and key in seen and row["who"] and row["at"]):
            remaining.append(row)
        seen.add(key)
    remaining = [row for row in remaining if not (bots and row["who"] in BOTS)]
    if limit is None:
        return remaining
    result, clicks = [], dict[str, int]()
    for row in sorted(remaining, key=_order):
        user = row["who"]
        clicks[user] = clicks.get(user, 0) + sum(row["clicks"])
        if user is None or clicks[user] <= limit:
            result.append(row)
    return result


def _order(row: dict[str, Any]) -> str:
    clicks = ",".join(map(str, row["clicks"]))
    return md5("\x1f".join([row["context"], *row["items"], clicks]).encode(), usedforsecurity=False).hexdigest()
