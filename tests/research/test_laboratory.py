"""Neither the number of processes nor an interruption changes a digit, and nothing is computed twice."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest

from prudent.bounds import bounds
from prudent.click_models import click_models
from prudent.research.laboratory import Laboratory
from prudent.research.protocol import Protocol
from prudent.research.sources import YandexLike


def protocols() -> list[Protocol]:
    learners = {name: bounds.parse(name) for name in ("mle", "eb")}
    return [
        Protocol("data", f"quality {quality:g}", source, click_models.parse("cm"), learners, deltas=(0.2, 1.0), n=20)
        for quality in (0.0, 2.0)
        for source in [YandexLike("cm", quality, contexts=2, items=(4, 8))]
    ]


def numbers(lab: Laboratory, repetitions: int = 7, chunk: int = 3) -> list[list[list[float]]]:
    return [result.errors.tolist() for result in lab.run(protocols(), repetitions, chunk=chunk)]


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Every repetition that is computed, by protocol and number."""
    actual: list[tuple[str, int]] = []
    errors = Protocol.errors

    def note(self: Protocol, seed: int, repetition: int) -> object:
        actual.append((self.logging, repetition))
        return errors(self, seed, repetition)

    monkeypatch.setattr(Protocol, "errors", note)
    return actual


class StopError(Exception):
    pass


def stop_at(repetition: int) -> Callable[[int, int], None]:
    """A progress bar that breaks."""

    def progress(done: int, total: int) -> None:
        if done >= repetition:
            raise StopError

    return progress


# --- what comes out ----------------------------------------------------------------------------------------------


def test_repetitions_come_in_order_whatever_the_size_of_jobs() -> None:
    expected = [[one.errors(0, repetition)[0].tolist() for repetition in range(7)] for one in protocols()]
    for chunk in (1, 3, 7, 50):
        assert numbers(Laboratory(), chunk=chunk) == expected


def test_more_processes_find_the_same(tmp_path: Path) -> None:
    said: list[tuple[int, int]] = []
    before = dict(os.environ)
    lab = Laboratory(processes=2, parts=tmp_path / "parts", progress=lambda *of: said.append(of))
    assert numbers(lab) == numbers(Laboratory())
    assert said[0] == (0, 14)
    assert said[-1] == (14, 14)
    assert [done for done, _ in said] == sorted(done for done, _ in said)
    assert dict(os.environ) == before  # children are told to use one thread; we are not


def test_another_seed_finds_something_else() -> None:
    assert numbers(Laboratory(seed=1)) != numbers(Laboratory())


def test_more_repetitions_begin_with_the_same() -> None:
    assert [of[:4] for of in numbers(Laboratory())] == numbers(Laboratory(), repetitions=4)


# --- going on --------------------------------------------------------------------------------------------------------


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path: Path, computed: list[tuple[str, int]]) -> None:
    expected = numbers(Laboratory())
    computed.clear()
    with pytest.raises(StopError):
        numbers(Laboratory(parts=tmp_path / "parts", progress=stop_at(6)))
    first = list(computed)
    assert 6 <= len(first) < 14
    said: list[tuple[int, int]] = []
    assert numbers(Laboratory(parts=tmp_path / "parts", progress=lambda *of: said.append(of))) == expected
    assert said[0] == (6, 14)
    assert sorted(computed) == sorted({(f"quality {quality}", r) for quality in (0, 2) for r in range(7)})
    computed.clear()
    assert numbers(Laboratory(parts=tmp_path / "parts")) == expected
    assert not computed


def test_without_a_folder_it_starts_again(computed: list[tuple[str, int]]) -> None:
    with pytest.raises(StopError):
        numbers(Laboratory(progress=stop_at(6)))
    computed.clear()
    numbers(Laboratory())
    assert len(computed) == 14


@pytest.mark.parametrize("other", [{"seed": 1}, {"settings": {"methods": ["mle"]}}])
def test_other_settings_start_anew(tmp_path: Path, computed: list[tuple[str, int]], other: dict[str, object]) -> None:
    """And leave nothing of what was there: going back starts anew, too."""
    parts = tmp_path / "parts"
    expected = numbers(Laboratory(parts=parts))
    computed.clear()
    numbers(Laboratory(**{"parts": parts, **other}))  # type: ignore[arg-type]
    assert len(computed) == 14
    computed.clear()
    assert numbers(Laboratory(parts=parts)) == expected
    assert len(computed) == 14


def test_stages_do_not_disturb_each_other(tmp_path: Path, computed: list[tuple[str, int]]) -> None:
    lab = Laboratory(parts=tmp_path / "parts")
    lab.run(protocols(), 3, stage="past")
    lab.run(protocols()[1:], 3, stage="future")
    computed.clear()
    past, future = lab.run(protocols(), 3, stage="past"), lab.run(protocols()[1:], 3, stage="future")
    assert not computed
    np.testing.assert_array_equal(past[1].errors, future[0].errors)


def test_a_half_written_part_is_never_read(
    tmp_path: Path, computed: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that dies while it writes leaves no file under the name of a part."""
    parts, expected = tmp_path / "parts", numbers(Laboratory())
    save = np.save

    def half(file: BinaryIO, errors: np.ndarray, **how: bool) -> None:
        save(file, errors, **how)
        file.truncate(file.tell() // 2)
        raise StopError

    with monkeypatch.context() as broken:
        broken.setattr(np, "save", half)
        with pytest.raises(StopError):
            numbers(Laboratory(parts=parts))
    assert not list((parts / "main").glob("*.npy"))
    # What a kill would leave: hidden, under another name.
    (parts / "main" / ".000-000000-000003.npy.0123abcd.part").write_bytes(b"\x93NUMPY")
    computed.clear()
    assert numbers(Laboratory(parts=parts)) == expected
    assert len(computed) == 14


def test_settings_cut_short_start_anew(tmp_path: Path, computed: list[tuple[str, int]]) -> None:
    """Killed between making the folder and noting what it is for."""
    parts = tmp_path / "parts"
    numbers(Laboratory(parts=parts, settings={"a": 1}))
    noted = parts / "main" / "settings.json"
    assert json.loads(noted.read_text()) == {"a": 1, "seed": 0}
    noted.write_text(noted.read_text()[:5])
    computed.clear()
    numbers(Laboratory(parts=parts, settings={"a": 1}))
    assert len(computed) == 14


def test_parts_are_forgotten_when_told(tmp_path: Path) -> None:
    lab = Laboratory(parts=tmp_path / "parts")
    numbers(lab)
    assert (tmp_path / "parts").exists()
    lab.forget()
    assert not (tmp_path / "parts").exists()
    lab.forget()
    Laboratory().forget()
