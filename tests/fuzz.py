"""Damaged and hostile files for every reader: an error of prudent or a result, never a traceback, a crash or a hang.

    python -m tests.fuzz SECONDS [SEED]

Seeds are the files of ``tests/corpus`` and what prudent writes from them; Hypothesis chooses what happens to the bytes,
and makes logs of every format and layout that are hostile but readable. What is counted of text files and of these
logs has to be what a plain loop counts. Each batch runs in a process of its own, for a damaged file may crash the
library that reads it. Printed are the seed, the numbers of inputs, of those that were compared, of tracebacks, crashes,
hangs and differences, and the folder with every input that went wrong.
"""

import gzip
import json
import multiprocessing
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache, partial
from hashlib import md5
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import prudent
from prudent.base.errors import PrudentError
from prudent.policies.fitted_prior import FittedPrior
from prudent.storage.manifest import Manifest
from tests import plain_counter
from tests.hostile_logs import LOGS, hostile

CORPUS = Path(__file__).parent / "corpus"
HANG = 10
"""Seconds of CPU time that no input may take."""
WRONG = ("TRACEBACK", "CRASH", "HANG", "DIFFERENCE")
_TOKENS = [b'"', b"{", b"}", b"[", b"]", b",", b"\n", b"\r\n", b"\t", b"\0", b"\xff", b"null", b"-1", b"1e999", b"PAR1"]
_TOKENS += [b"9" * 30, b" " * 5000, b"[" * 5000, b"../*", b'""', b"NaN", b"\xef\xbb\xbf", b"\x1f\x8b", b"true", b"~"]


class Change(NamedTuple):
    """What happens at a place of a file."""

    where: float  # from 0, its start, to 1, its end
    how: str
    token: bytes

    def apply(self, content: bytes) -> bytes:
        at = int(self.where * len(content))
        if self.how == "flip":
            return (
                content[:at] + bytes([content[at] ^ (1 << len(self.token) % 8)]) + content[at + 1 :] if content else b""
            )
        if self.how == "cut":
            return content[:at]
        if self.how == "drop":
            return content[:at] + content[at + len(self.token) :]
        if self.how == "double":
            return content[:at] + content
        return content[:at] + self.token + content[at if self.how == "insert" else at + len(self.token) :]


places = st.floats(0, 1, exclude_max=True)
hows = st.sampled_from(["flip", "flip", "insert", "replace", "drop", "cut", "double"])
changes = st.lists(st.builds(Change, places, hows, st.sampled_from(_TOKENS) | st.binary(max_size=6)), max_size=5)


def _read_counts(file: Path) -> None:
    prudent.rank(prudent.Counts.read(file), model="cm")


def _read_policy(file: Path) -> None:
    policy = prudent.Policy.read(file)
    dict(policy)
    repr(policy)


@cache
def _counts() -> prudent.Counts:
    """Those of the corpus, for what is read beside a log."""
    return prudent.count(CORPUS / "lists.jsonl")


def _rank_with(beside: str, file: Path) -> None:
    how: dict[str, Any] = (
        {beside: file} if beside.endswith(("groups", "features")) else {beside: file, "bound": "mle"}
    )  # the default takes longer
    dict(prudent.rank(_counts(), model="cm", unseen=beside == "candidates", **how))


def _read_judgments(file: Path) -> None:
    judgments = prudent.Judgments.read(file)
    repr(judgments)
    judgments.rows()


def _read_prior(file: Path) -> None:
    prior = FittedPrior.from_text(file.read_text(encoding="utf-8", errors="surrogateescape"), "policy.parquet")
    found = prior.rank("socks", ["a", "http://b.com/c"], {})
    highest = np.where(found.mean > 0.99, 1, found.mean + 1e-9)  # nearly all mass at 1 has its quantiles above the mean
    if not ((found.lower >= 0) & (found.lower <= highest) & (found.mean <= 1)).all():
        raise DifferenceError(f"bounds that are none: {found}")


class DifferenceError(Exception):
    """The counts are not those of the loop."""


def _compare(file: Path, layout: str = "lists", format: str | None = None, **columns: Any) -> str:
    """Count a log twice."""
    how: dict[str, Any] = {"layout": layout} if format is None else {"format": format}
    counts = prudent.count(file, max_rejected=1, **how, **columns)
    with duckdb.connect() as connection:
        cells = Counter({key: n for *key_, n in connection.execute(counts.sql).fetchall() if (key := tuple(key_))})
    try:
        plain = plain_counter.count(file, layout=layout, format=format, **columns)
    except (ValueError, EOFError, OSError, zlib.error) as error:
        raise DifferenceError(f"the loop cannot read it: {error!r}") from error
    found = {"lists": counts.tally.lists, "rejected": dict(counts.tally.rejected), "cells": cells}
    if different := plain_counter.differences(found, plain):
        raise DifferenceError(different)
    return "compared"


READERS: Mapping[str, tuple[str, Callable[[Path], Any]]] = {
    # name of the seed -> ending of the file, and what reads it
    "lists.jsonl": (".jsonl", _compare),
    "lists.gz": (".jsonl.gz", _compare),
    "lists.parquet": (".parquet", lambda file: prudent.count(file, max_rejected=1)),
    "rows.csv": (".csv", lambda file: _compare(file, "rows")),
    "ubi.jsonl": (".jsonl", lambda file: _compare(file, format="ubi")),
    "yandex.tsv": (".tsv", lambda file: _compare(file, format="yandex")),
    "counts.parquet": (".parquet", _read_counts),
    "policy.parquet": (".parquet", _read_policy),
    "judgments.parquet": (".parquet", _read_judgments),
    "rules.json": (".json", partial(_rank_with, "rules")),
    "groups.csv": (".csv", partial(_rank_with, "item_groups")),
    "groups.jsonl": (".jsonl", partial(_rank_with, "context_groups")),
    "features.csv": (".csv", partial(_rank_with, "features")),
    "features.jsonl": (".jsonl", partial(_rank_with, "features")),
    "candidates.csv": (".csv", partial(_rank_with, "candidates")),
    "prior.json": (".json", _read_prior),
    "manifest.json": (".parquet.manifest.json", lambda file: Manifest.read(str(file)[: -len(".manifest.json")])),
    **{
        name: (ending, partial(_compare, layout=layout, format=how, **columns))
        for name, (ending, layout, how, columns) in LOGS.items()
    },
}


_RULES = {
    "exclude": [{"item": "a", "context": "shoes"}, {"item": "\u00e9"}],
    "pin": [{"item": "b", "context": "boots", "position": 1}],
    "at_most": {"brand": 1},
    "new": {"share": 0.1, "below_impressions": 2},
    "bury": [{"item": "d"}],
    "item_groups": str(CORPUS / "groups.csv"),
}


_VALUES: list[Any] = [None, True, 0, -1, 0.5, 1e308, 10**30, 1 << 63, "", "a", "\ud83d", [], [[]], {}, {"a": 1}]


def swapped(content: bytes, where: float, value: Any) -> bytes:
    """JSON with another value at one place."""
    whole = json.loads(content)
    places: list[tuple[Any, Any]] = []
    level = [whole]
    for outer in level:  # it grows
        inside = list(outer.items() if isinstance(outer, dict) else enumerate(outer[:2]))
        places += [(outer, key) for key, _ in inside]
        level += [inner for _, inner in inside if isinstance(inner, dict | list)]
    outer, key = places[int(where * len(places))]
    outer[key] = value
    return json.dumps(whole).encode()


def inputs(name: str) -> st.SearchStrategy[bytes]:
    """Contents of a file for a reader: those of the seed, changed, or hostile ones, hardly changed."""
    if name.endswith(".json"):  # most changed bytes are no JSON
        bytes_changed = changes.map(lambda made: changed(seeds()[name], made))
        return bytes_changed | st.builds(partial(swapped, seeds()[name]), places, st.sampled_from(_VALUES))
    if name not in LOGS:
        return changes.map(lambda made: changed(seeds()[name], made))
    # A Parquet file without checksums is read in other ways where its bits flip; gzipped files would not be read.
    whole: st.SearchStrategy[list[Change]] = st.just([])
    plain = LOGS[name][0] in (".jsonl", ".csv", ".tsv", ".txt")
    return st.builds(changed, hostile(name), whole | whole | whole | changes if plain else whole)


def changed(content: bytes, made: list[Change]) -> bytes:
    for change in made:
        content = change.apply(content)
    return content


@cache
def seeds() -> dict[str, bytes]:
    """The content of every seed, by the name of its reader."""
    found = {file.name: file.read_bytes() for file in CORPUS.iterdir()}
    found["lists.gz"] = gzip.compress(found["lists.jsonl"], mtime=0)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        log = Path(folder, "lists.parquet")
        duckdb.execute(f"copy (from '{CORPUS / 'lists.jsonl'}') to '{log}' (format parquet)")
        prudent.count(log, to=Path(folder, "counts.parquet"))
        prudent.rank(log, model="cm", to=Path(folder, "policy.parquet"))
        prudent.judge(log, model="cm", to=Path(folder, "judgments.parquet"))
        for name in ("lists.parquet", "counts.parquet", "policy.parquet", "judgments.parquet"):
            found[name] = Path(folder, name).read_bytes()
        found["rules.json"] = json.dumps(_RULES).encode()
        prior = prudent.rank(log, model="cm", groups="item,host,query", item_groups=CORPUS / "groups.csv").prior
        found["prior.json"] = prior.to_text().encode() if isinstance(prior, FittedPrior) else b""
        found["manifest.json"] = Path(folder, "policy.parquet.manifest.json").read_bytes()
    return found


def read(name: str, content: bytes, folder: Path, keep: Path | None = None) -> str:
    """Read a file of this content: ``ok``, ``compared``, the name of an error of prudent, or what is wrong.

    A file for which something is wrong is copied to the folder `keep`.
    """
    ending, reader = READERS[name]
    file = folder / f"input{ending}"
    file.write_bytes(content)
    started = time.process_time()  # on a busy machine, an input may wait for long; the alarm of a batch ends a deadlock
    try:
        answer = "compared" if reader(file) == "compared" else "ok"
    except PrudentError as error:
        answer = type(error).__name__
    except DifferenceError as error:
        answer = f"DIFFERENCE {name} {error}"
    except Exception as error:  # what a user would see as a traceback
        trace = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(trace.filename).name}:{trace.lineno}"
        answer = f"TRACEBACK {name} {type(error).__name__} at {where} {str(error)[:90]}"
    if time.process_time() - started > HANG:
        answer = f"HANG {name}"
    return f"{answer} {_kept(file, keep)}" if keep is not None and answer.startswith(WRONG) else answer


def _kept(file: Path, keep: Path) -> str:
    """The name of a copy."""
    name = f"{md5(file.read_bytes()).hexdigest()[:8]}{''.join(file.suffixes)}"
    shutil.copy(file, keep / name)
    return name


def batch(name: str, number: int, examples: int, answers: Any, folder: Path, keep: Path) -> None:
    """Some inputs of one reader, one after the other in a folder."""
    warnings.simplefilter("ignore")
    signal.alarm(examples * HANG)

    @seed(number)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(inputs(name))
    def run(content: bytes) -> None:
        answers.append(read(name, content, folder, keep))

    run()


def apart(name: str, number: int, examples: int, keep: Path) -> list[str]:
    """The answers of a batch in a process of its own. Of one that died, the input that it died of is kept."""
    with tempfile.TemporaryDirectory() as folder, multiprocessing.Manager() as manager:
        answers, task = manager.list(), (name, number, examples)
        worker = multiprocessing.get_context("spawn").Process(target=batch, args=(*task, answers, Path(folder), keep))
        worker.start()
        worker.join()
        said = list(answers)
        if worker.exitcode:
            last = [_kept(file, keep) for file in Path(folder).glob("input*") if file.is_file()]
            said.append(f"CRASH {name} exit code {worker.exitcode}, seed {number} {' '.join(last)}")
        return said


def main(seconds: float, first: int) -> int:
    """Fuzz for so long; how many inputs went wrong."""
    started, number, found, wrong = time.monotonic(), first, Counter[str](), set[str]()
    keep = Path(tempfile.mkdtemp(prefix="prudent-fuzz-"))
    while time.monotonic() - started < seconds:
        for name in READERS:
            number += 1
            said = apart(name, number, 100, keep)
            found.update(answer.partition(" ")[0] for answer in said)
            wrong |= {answer for answer in said if answer.startswith(WRONG)}
    bad = {kind.lower(): found[kind] for kind in WRONG}
    read_well = {"inputs": found.total() - found["CRASH"], "compared": found["compared"], "read": found["ok"]}
    about = {"seed": first, "seconds": round(time.monotonic() - started)}
    if not any(keep.iterdir()):
        keep.rmdir()
    kept = {"kept": str(keep), "wrong": sorted(wrong)} if wrong else {}
    print(json.dumps({**about, **read_well, **bad, **kept}, indent=1))  # noqa: T201
    return sum(bad.values())


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0) > 0)
