"""Damaged and hostile files for every reader: an error of prudent or a result, never a traceback, a crash or a hang.

    python -m tests.fuzz SECONDS [SEED]

Seeds are the files of ``tests/corpus`` and what prudent writes from them; Hypothesis chooses what happens to the bytes.
Each batch runs in a process of its own, for a damaged file may crash the library that reads it.
"""

import gzip
import json
import multiprocessing
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import prudent
from prudent.base.errors import PrudentError
from prudent.storage.manifest import Manifest

CORPUS = Path(__file__).parent / "corpus"
HANG = 10
"""Seconds that no input may take."""
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


def _rows(file: Path) -> None:
    prudent.count(file, layout="rows", max_rejected=1)


READERS: Mapping[str, tuple[str, Callable[[Path], Any]]] = {
    # name of the seed -> ending of the file, and what reads it
    "lists.jsonl": (".jsonl", lambda file: prudent.count(file, max_rejected=1)),
    "lists.gz": (".jsonl.gz", lambda file: prudent.count(file, max_rejected=1)),
    "lists.parquet": (".parquet", lambda file: prudent.count(file, max_rejected=1)),
    "rows.csv": (".csv", _rows),
    "ubi.jsonl": (".jsonl", lambda file: prudent.count(file, format="ubi", max_rejected=1)),
    "yandex.tsv": (".tsv", lambda file: prudent.count(file, format="yandex", max_rejected=1)),
    "counts.parquet": (".parquet", _read_counts),
    "policy.parquet": (".parquet", _read_policy),
    "manifest.json": (".parquet.manifest.json", lambda file: Manifest.read(str(file)[: -len(".manifest.json")])),
}


@cache
def seeds() -> dict[str, bytes]:
    """The content of every seed."""
    found = {file.name: file.read_bytes() for file in CORPUS.iterdir()}
    found["lists.gz"] = gzip.compress(found["lists.jsonl"], mtime=0)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        log = Path(folder, "lists.parquet")
        duckdb.execute(f"copy (from '{CORPUS / 'lists.jsonl'}') to '{log}' (format parquet)")
        prudent.count(log, to=Path(folder, "counts.parquet"))
        prudent.rank(log, model="cm", to=Path(folder, "policy.parquet"))
        for name in ("lists.parquet", "counts.parquet", "policy.parquet"):
            found[name] = Path(folder, name).read_bytes()
        found["manifest.json"] = Path(folder, "policy.parquet.manifest.json").read_bytes()
    return found


def read(name: str, made: list[Change], folder: Path) -> str:
    """Read a seed after these changes: ``ok``, the name of an error of prudent, or what is wrong."""
    content = seeds()[name]
    for change in made:
        content = change.apply(content)
    ending, reader = READERS[name]
    file = folder / f"input{ending}"
    file.write_bytes(content)
    started = time.monotonic()
    try:
        reader(file)
        answer = "ok"
    except PrudentError as error:
        answer = type(error).__name__
    except Exception as error:  # what a user would see as a traceback
        trace = traceback.extract_tb(error.__traceback__)[-1]
        answer = (
            f"TRACEBACK {name} {type(error).__name__} at {Path(trace.filename).name}:{trace.lineno} {str(error)[:90]}"
        )
    if time.monotonic() - started > HANG:
        answer = f"HANG {name}"
    return answer


def batch(name: str, number: int, examples: int, answers: Any) -> None:
    """Some inputs of one reader."""
    warnings.simplefilter("ignore")
    signal.alarm(examples * HANG)
    with tempfile.TemporaryDirectory() as folder:

        @seed(number)
        @settings(
            max_examples=examples,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(changes)
        def run(made: list[Change]) -> None:
            answers.append(read(name, made, Path(folder)))

        run()


def main(seconds: float, first: int) -> int:
    """Fuzz for so long; how many inputs went wrong."""
    started, number, total, wrong = time.monotonic(), first, 0, set[str]()
    with multiprocessing.Manager() as manager:
        while time.monotonic() - started < seconds:
            for name in READERS:
                number += 1
                answers = manager.list()
                worker = multiprocessing.get_context("spawn").Process(target=batch, args=(name, number, 100, answers))
                worker.start()
                worker.join()
                total += len(answers)
                wrong |= {answer for answer in answers if answer.startswith(("TRACEBACK", "HANG"))}
                if worker.exitcode != 0:
                    wrong.add(f"CRASH {name}: exit code {worker.exitcode}, seed {number}")
    print(json.dumps({"inputs": total, "seconds": round(time.monotonic() - started), "wrong": sorted(wrong)}, indent=1))  # noqa: T201
    return len(wrong)


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0) > 0)
