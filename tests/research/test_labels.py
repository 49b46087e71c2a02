"""Labels and queries as they stand in the file, and an error with the line where they do not."""

import gzip
import os
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prudent.base.errors import LabelError, LogError, PrudentError, UsageError
from prudent.research import labels
from prudent.research.labels import Labels, read_labels

Pairs = list[tuple[int, int]]  # label and qid of each line


def as_lists(labels: Labels) -> tuple[list[int], list[int], list[int]]:
    return labels.query.tolist(), labels.label.tolist(), labels.names.tolist()


def by_hand(lines: Pairs) -> tuple[list[int], list[int], list[int]]:
    names = list(dict.fromkeys(qid for _, qid in lines))
    documents = sorted(((names.index(qid), label) for label, qid in lines), key=lambda document: document[0])
    return [query for query, _ in documents], [label for _, label in documents], names


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "train.txt"


def test_labels_of_two_queries(file: Path) -> None:
    file.write_text("2 qid:10 1:0.5 2:3\n0 qid:10 1:1 # a comment\n4 qid:9 1:0\n")
    labels = read_labels(file)
    assert as_lists(labels) == ([0, 0, 1], [2, 0, 4], [10, 9])
    assert {array.dtype for array in (labels.query, labels.label, labels.names)} == {np.dtype(np.int64)}


def test_documents_of_a_query_come_together(file: Path) -> None:
    file.write_text("1 qid:7 1:1\n2 qid:3 1:1\n3 qid:7 1:1\n")
    assert as_lists(read_labels(file)) == ([0, 0, 1], [1, 3, 2], [7, 3])


def test_several_files_are_one_set(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1 qid:5 1:1\n")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"2 qid:4 1:1\n"))
    both = ([0, 1], [1, 2], [5, 4])
    assert as_lists(read_labels([tmp_path / "a.txt", tmp_path / "b.txt.gz"])) == both
    assert as_lists(read_labels(str(tmp_path / "*.txt*"))) == both


def test_a_query_in_two_files(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("1 qid:5 1:1\n")
    with pytest.raises(LabelError, match=r"qid:5 is in .*a\.txt and in .*b\.txt"):
        read_labels(tmp_path / "?.txt")
    with pytest.raises(UsageError, match=r"a\.txt is named twice"):
        read_labels([tmp_path / "a.txt", tmp_path / "a.txt"])


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lines=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3) | st.integers(0, 10**18 - 1)), min_size=1),
    features=st.sampled_from(["", " ", " 1:0.5", " 1:0.5 2:1e-3 ", "\t1:1 # qid:3", " 1:" + "9" * 70]),
    end=st.sampled_from(["\n", "\r\n"]),
    last=st.booleans(),
    block=st.sampled_from([64, 100, 1 << 22]),
)
def test_equals_plain_loops(lines: Pairs, features: str, end: str, last: bool, block: int, file: Path) -> None:
    """However lines fall into blocks."""
    text = "".join(f"{label} qid:{qid}{features}{end}" for label, qid in lines)
    file.write_bytes((text if last else text.removesuffix(end)).encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(labels, "_BLOCK", max(block, 128 if len(features) > 60 else 64))
        assert as_lists(read_labels(file)) == by_hand(lines)


GOOD = b"2 qid:1 1:3\n0 qid:1 1:2\n"
ACCEPTED = {
    "a byte order mark": b"\xef\xbb\xbf" + GOOD,
    "blank lines and comments": b"# made by hand\n\n2 qid:1 1:3\n\r\n0 qid:1 1:2\n\n",
    "no features": b"2 qid:1\n0 qid:1",
    "anything in features": b"2 qid:1 \x00\xff\n0 qid:1 ?\n",
}


@pytest.mark.parametrize("content", ACCEPTED.values(), ids=ACCEPTED)
def test_accepted(content: bytes, file: Path) -> None:
    file.write_bytes(content)
    assert as_lists(read_labels(file)) == ([0, 0], [2, 0], [1])


REFUSED = {
    "a label above 4": (b"5 qid:1 1:3", "has the label 5; labels are the integers from 0 to 4"),
    "a label of two digits": (b"12 qid:1 1:3", "has the label 12;"),
    "a negative label": (b"-1 qid:1 1:3", "has the label -1;"),
    "a label with a point": (b"2.0 qid:1 1:3", "has the label 2.0;"),
    "a label that is no number": (b"good qid:1 1:3", "is not 'label qid:N 1:v 2:v ...': 'good qid:1 1:3'"),
    "no label": (b"qid:1 1:3", "is not 'label qid:N"),
    "no qid": (b"2 1:3 2:4", "is not 'label qid:N"),
    "an empty qid": (b"2 qid: 1:3", "is not 'label qid:N"),
    "a qid that is no number": (b"2 qid:a1 1:3", "is not 'label qid:N"),
    "a qid that goes on": (b"2 qid:1x 1:3", "is not 'label qid:N"),
    "a qid with a point": (b"2 qid:1.5 1:3", "is not 'label qid:N"),
    "a negative qid": (b"2 qid:-1 1:3", "is not 'label qid:N"),
    "a qid of 20 digits": (b"2 qid:" + b"9" * 20 + b" 1:3", "is not 'label qid:N"),
    "a space first": (b" 2 qid:1 1:3", "is not 'label qid:N"),
    "a NUL byte": (b"2\x00qid:1 1:3", "is not 'label qid:N"),
    "only a label": (b"2", "is not 'label qid:N"),
    "CSV": (b"2,1,3", "is not 'label qid:N"),
}


@pytest.mark.parametrize(("line", "said"), REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("after", [b"\n" + GOOD, b"\n", b""], ids=["inside", "last", "cut"])
def test_refused(line: bytes, said: str, after: bytes, file: Path) -> None:
    file.write_bytes(GOOD + b"\n" + line + after)
    with pytest.raises(LabelError) as refused:
        read_labels(file)
    assert f"{file}, line 4 {said}" in str(refused.value)


def test_the_line_is_counted_over_blocks(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labels, "_BLOCK", 64)
    file.write_bytes(GOOD * 50 + b"7 qid:1 1:3\n" + GOOD)
    with pytest.raises(LabelError, match="line 101 has the label 7"):
        read_labels(file)


WHOLE = {
    "nothing": ("train.txt", b"", "train.txt is empty"),
    "only comments": ("train.txt", b"# nothing\n\n", "train.txt has no labels"),
    "a cut gzip": ("train.gz", gzip.compress(os.urandom(9000).hex().encode())[:6000], "train.gz"),
    "a damaged gzip": ("train.gz", gzip.compress(GOOD * 50)[:20] + b"\xff" * 40, "train.gz"),
    "a gzip without its name": ("train.txt", gzip.compress(GOOD), "Rename it to end in .gz"),
    "a line without end": ("train.txt", b"\0" * (2 * labels._BLOCK), "line 1 is too long"),
}


@pytest.mark.parametrize(("name", "content", "said"), WHOLE.values(), ids=WHOLE)
def test_whole_files_that_are_refused(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(PrudentError, match=said):
        read_labels(tmp_path / name)


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="There is no file"):
        read_labels(tmp_path / "train.txt")


def test_faster_than_a_disk(file: Path) -> None:
    """100 MB/s and core on lines as long as those of MSLR. Half of it here: the machine may be busy."""
    features = " ".join(f"{number}:{number / 7:.6f}" for number in range(1, 137))
    block = "".join(f"{document % 5} qid:{document // 100} {features}\n" for document in range(20_000)).encode()
    file.write_bytes(block)
    started = time.process_time()
    read_labels(file)
    assert len(block) / (time.process_time() - started) > 50e6


@pytest.mark.data
@pytest.mark.parametrize("part", ["train", "test"])
def test_real_labels(part: str) -> None:
    """By the README of the data; the plain loop reads the same."""
    file = Path(os.environ["PRUDENT_DATA"]) / "mslr" / f"msn1.fold1.{part}.5k.txt.gz"
    labels = read_labels(file)
    assert (len(labels.label), len(labels.names)) == (5_000, 43)
    with gzip.open(file, "rt") as lines:
        words = [line.split()[:2] for line in lines]
    assert as_lists(labels) == by_hand([(int(label), int(qid.removeprefix("qid:"))) for label, qid in words])
