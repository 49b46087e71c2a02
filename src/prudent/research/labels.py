"""Relevance labels of LETOR and SVMLight files, for simulation: MSLR-WEB10K and 30K, Yahoo! C14, Istella."""

import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from prudent.base.arrays import BoolArray, IntArray
from prudent.base.errors import LabelError
from prudent.logs.formats import find_text_files

HIGHEST = 4
"""The highest label; 0 is irrelevant."""

_BLOCK = 1 << 22  # bytes; also the longest line, hundreds of times longer than any in these data sets
_DIGITS = 18  # of a qid; such numbers fit 64 bits
_HEAD = 6 + _DIGITS + 1  # bytes read of a line: label, " qid:", number, and its end
_QID = b" qid:"


def _among(characters: bytes) -> BoolArray:
    return np.isin(np.arange(256), np.frombuffer(characters, dtype=np.uint8))


_SKIPPED = _among(b"\r\n#")  # first byte of blank lines and comments
_SPACE = _among(b" \t\r\n")


@dataclass(frozen=True, eq=False)
class Labels:
    """Documents and their labels, grouped by query, in the order of the files."""

    query: IntArray  # number of the query of each document, ascending
    label: IntArray  # label of each document, from 0 to 4
    names: IntArray  # qid of each query, in the order of first appearance


def read_labels(source: str | PathLike[str] | Sequence[str | PathLike[str]]) -> Labels:
    """Read the labels in lines ``label qid:N 1:v 2:v ... # comment``; features and comments are ignored.

    ``source`` is a file, a glob or several of them, gzipped or not, read as one set in the order given. Blank lines and
    comments are skipped. Documents of one query need not be adjacent; a query in two files is an error, since folds of
    one data set overlap and its documents would count twice.
    """
    read = {file: _read(file) for file in find_text_files(source)}
    seen: dict[int, Path] = {}
    for file, (qids, _) in read.items():
        for qid in np.unique(qids).tolist():
            if seen.setdefault(qid, file) != file:
                raise LabelError(
                    f"The query qid:{qid} is in {seen[qid]} and in {file}: its documents would count twice. Name files "
                    "of one fold only."
                )
    qids, labels = (np.concatenate(parts) for parts in zip(*read.values(), strict=True))
    names, first, query = np.unique(qids, return_index=True, return_inverse=True)
    order = np.argsort(first)
    query = np.argsort(order)[query]  # by first appearance instead of by qid
    together = np.argsort(query, kind="stable")
    return Labels(query[together], labels[together], names[order])


def _read(file: Path) -> tuple[IntArray, IntArray]:
    """The qid and label of each line."""
    blocks = [_parse(block, file, line) for block, line in _blocks(file)]
    qids, labels = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    if not len(qids):
        raise LabelError(f"{file} has no labels: only blank lines and comments.")
    return qids, labels


def _blocks(file: Path) -> Iterator[tuple[bytes, int]]:
    """Blocks of whole lines, each line ended, with the number of the first."""
    line, rest = 1, b""
    try:
        with gzip.open(file) if file.suffix.lower() == ".gz" else file.open("rb") as opened:
            rest = opened.read(3).removeprefix(b"\xef\xbb\xbf")
            while more := opened.read(_BLOCK):
                end = more.rfind(b"\n") + 1
                if not end:
                    rest += more
                    if len(rest) > _BLOCK:
                        raise LabelError(f"{file}, line {line} is too long: this is not a LETOR file.")
                    continue
                block = rest + more[:end]
                yield block, line
                line += block.count(b"\n")
                rest = more[end:]
    except (OSError, EOFError, zlib.error) as error:
        what = getattr(error, "strerror", None) or error
        raise LabelError(f"Cannot read {file}: {what}. Write or copy it again if it is damaged.") from error
    yield rest + b"\n" if rest else b"", line


def _parse(block: bytes, file: Path, line: int) -> tuple[IntArray, IntArray]:
    """The qid and label of each line of a block, of all lines at once, byte by byte."""
    content = np.frombuffer(block + b"\n" * _HEAD, dtype=np.uint8)  # padded: every line has _HEAD bytes
    ends = np.flatnonzero(content[: len(block)] == ord("\n"))
    starts = np.concatenate([[0], ends[:-1] + 1])[: len(ends)]
    lines = np.arange(line, line + len(ends))
    filled = ~_SKIPPED[content[starts]]
    starts, lines = starts[filled], lines[filled]
    label = content[starts] - ord("0")  # wraps around below "0"
    good = label <= HIGHEST
    for place, byte in enumerate(_QID, start=1):
        good &= content[starts + place] == byte
    qid, ended = _number(content, starts + 1 + len(_QID))
    good &= ended
    if not good.all():
        bad = int(np.argmin(good))
        raise _fault(file, int(lines[bad]), block[starts[bad] : block.index(b"\n", starts[bad])])
    return qid, label.astype(np.int64)


def _number(content: NDArray[np.uint8], at: NDArray[np.intp]) -> tuple[IntArray, BoolArray]:
    """The number that begins at each place, and whether it is followed by white space."""
    number = np.zeros(len(at), dtype=np.int64)
    going = np.ones(len(at), dtype=bool)
    ended = np.zeros(len(at), dtype=bool)
    for place in range(_DIGITS + 1):
        byte = content[at + place]
        digit = byte - ord("0")
        ended |= going & (place > 0) & _SPACE[byte]
        going &= digit <= 9
        if not going.any():
            break
        number = np.where(going, number * 10 + digit, number)
    return number, ended


def _fault(file: Path, number: int, line: bytes) -> LabelError:
    where = f"{file}, line {number}"
    label = re.match(rb"([-+.\deE]+) qid:\d{1,%d}(?!\S)" % _DIGITS, line)
    if label:
        known = f"labels are the integers from 0 to {HIGHEST}"
        return LabelError(f"{where} has the label {label[1].decode()}; {known}. Map yours to them.")
    shown = repr(line[:60].decode(errors="replace"))
    return LabelError(f"{where} is not 'label qid:N 1:v 2:v ...': {shown}. Fix or remove it.")
