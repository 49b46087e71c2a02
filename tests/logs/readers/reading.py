"""What a reader made of a file, as plain lists; and what it should have made of it, by plain loops."""

from collections.abc import Sequence
from pathlib import Path

import duckdb

import prudent
from tests.reference import LoggedList, Name

Record = tuple[int, ...]


def lists_of(log: prudent.Log) -> list[LoggedList]:
    """The lists of a log that a reader made."""
    rows = duckdb.connect().read_parquet([str(file) for file in log.source]).fetchall()
    return [(context, tuple(items), tuple(clicks)) for context, items, clicks in rows]


def write(path: Path, lines: Sequence[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def tabs(*fields: object) -> str:
    return "\t".join(map(str, fields))


class Sessions:
    """The rule for clicks, as a reader of one file would follow it by hand."""

    def __init__(self) -> None:
        self.pages: list[tuple[tuple[int, int, int, int], Name, list[int], set[int]]] = []
        self.clicks: list[tuple[tuple[int, int, int, int], int]] = []

    def shown(self, session: int, serp: int, time: int, line: int, context: Name, items: list[int]) -> None:
        self.pages.append(((session, serp, time, line), context, items, set()))

    def clicked(self, session: int, serp: int, time: int, line: int, url: int) -> None:
        self.clicks.append(((session, serp, time, line), url))

    def lists(self) -> tuple[list[LoggedList], int]:
        """The lists, sorted, and how many clicks are on none of them."""
        outside = 0
        for (session, serp, *when), url in self.clicks:
            own = [page for page in self.pages if page[0][:2] == (session, serp) and list(page[0][2:]) < when]
            own = [page for page in own if url in page[2]]
            if own:
                max(own, key=lambda page: page[0][2:])[3].add(url)
            else:
                outside += 1
        lists: list[LoggedList] = [
            (context, tuple(items), tuple(int(item in clicked) for item in items))
            for _, context, items, clicked in self.pages
        ]
        return sorted(lists), outside


def by_hand(file: Path) -> tuple[list[LoggedList], int]:
    """Of a file in the format yandex."""
    sessions = Sessions()
    for line, text in enumerate(file.read_text().splitlines()):
        session, time, kind, *rest = text.split("\t")
        if kind == "Q":
            query, region, *urls = rest
            sessions.shown(int(session), 0, int(time), line, f"{query}/{region}", list(map(int, urls)))
        else:
            sessions.clicked(int(session), 0, int(time), line, int(rest[0]))
    return sessions.lists()


def by_hand_personalized(file: Path, days: tuple[int, int]) -> tuple[list[LoggedList], int, int]:
    """Of a file in the format yandex-personalized; at the end, how many test queries there were."""
    sessions, tests = Sessions(), 0
    lines = [text.split("\t") for text in file.read_text().splitlines()]
    wanted = {fields[0] for fields in lines if fields[1] == "M" and days[0] <= int(fields[2]) <= days[1]}
    for line, fields in enumerate(lines):
        if fields[0] not in wanted or fields[1] == "M":
            continue
        session, time, kind, serp, *rest = fields
        if kind == "C":
            sessions.clicked(int(session), int(serp), int(time), line, int(rest[0]))
        elif kind == "T":
            tests += 1
        else:
            urls = [int(pair.split(",")[0]) for pair in rest[2:]]
            sessions.shown(int(session), int(serp), int(time), line, int(rest[0]), urls)
    return *sessions.lists(), tests
