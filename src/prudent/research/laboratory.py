"""Repeating protocols: in several processes, with progress, going on where an interrupted run stopped."""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from prudent.base.arrays import FloatArray
from prudent.research.protocol import Protocol
from prudent.research.table import Results
from prudent.storage.files import make_folder, replacing


class Job(NamedTuple):
    """Some repetitions of one protocol."""

    protocol: int
    start: int
    stop: int


def _silent(done: int, total: int) -> None:
    pass


@dataclass(frozen=True)
class Laboratory:
    """Where protocols are repeated. Neither the number of processes nor an interruption changes a single digit."""

    seed: int = 0
    processes: int = 1
    parts: Path | None = None  # folder for what is done so far; None: an interrupted run starts again
    settings: Mapping[str, Any] = field(default_factory=dict)  # what those parts depend on; others are thrown away
    progress: Callable[[int, int], None] = _silent  # called with the repetitions done and their number

    def run(
        self, protocols: Sequence[Protocol], repetitions: int, *, stage: str = "main", chunk: int = 10
    ) -> list[Results]:
        """The errors of all protocols; `chunk` repetitions are one job."""
        jobs = [
            Job(number, start, min(start + chunk, repetitions))
            for number in range(len(protocols))
            for start in range(0, repetitions, chunk)
        ]
        with self._kept(stage) as folder:
            done = {job: np.load(file) for job in jobs if folder and (file := _part(folder, job)).exists()}
            self.progress(_repetitions(done), _repetitions(jobs))
            for job, errors in self._compute(protocols, [job for job in jobs if job not in done]):
                done[job] = errors
                if folder:
                    with replacing(_part(folder, job)) as part, part.open("wb") as whole:
                        np.save(whole, errors, allow_pickle=False)
                self.progress(_repetitions(done), _repetitions(jobs))
        return [
            Results(protocol, np.concatenate([done[job] for job in jobs if job.protocol == number]))
            for number, protocol in enumerate(protocols)
        ]

    @contextmanager
    def _kept(self, stage: str) -> Iterator[Path | None]:
        """The folder of the parts of a stage, emptied where it belongs to a run with other settings."""
        if self.parts is None:
            yield None
            return
        folder = self.parts / stage
        settings = json.dumps({**self.settings, "seed": self.seed}, sort_keys=True, default=str)
        noted = folder / "settings.json"
        if not noted.exists() or noted.read_text(encoding="utf-8") != settings:
            shutil.rmtree(folder, ignore_errors=True)
            make_folder(folder)
            with replacing(noted) as part:
                part.write_text(settings, encoding="utf-8")
        yield folder

    def forget(self) -> None:
        """Remove the parts: the results are safe elsewhere."""
        if self.parts is not None:
            shutil.rmtree(self.parts, ignore_errors=True)

    def _compute(self, protocols: Sequence[Protocol], jobs: Sequence[Job]) -> Iterator[tuple[Job, FloatArray]]:
        if self.processes == 1 or len(jobs) <= 1:
            yield from ((job, _do(protocols, self.seed, job)) for job in jobs)
            return
        with (
            _one_thread_each(),
            ProcessPoolExecutor(
                min(self.processes, len(jobs)), get_context("spawn"), _begin, (protocols, self.seed)
            ) as pool,
        ):
            waiting = {pool.submit(_do_next, job): job for job in jobs}
            try:
                for future in as_completed(waiting):
                    yield waiting[future], future.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def _do(protocols: Sequence[Protocol], seed: int, job: Job) -> FloatArray:
    protocol = protocols[job.protocol]
    return np.concatenate([protocol.errors(seed, repetition) for repetition in range(job.start, job.stop)])


# What a process works on is sent to it once, when it begins, and not with every job.
_work: tuple[Sequence[Protocol], int] = ((), 0)


def _begin(protocols: Sequence[Protocol], seed: int) -> None:
    global _work
    _work = protocols, seed


def _do_next(job: Job) -> FloatArray:
    return _do(*_work, job)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Processes that start now do linear algebra in one thread each: more would fight over the cores."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _part(folder: Path, job: Job) -> Path:
    return folder / f"{job.protocol:03}-{job.start:06}-{job.stop:06}.npy"


def _repetitions(jobs: Sequence[Job] | Mapping[Job, FloatArray]) -> int:
    return sum(job.stop - job.start for job in jobs)
