"""One experiment by its name: data in; a table, a figure and a manifest out."""

import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from os import PathLike
from pathlib import Path
from time import monotonic
from typing import Any, Literal

from prudent.base.errors import PrudentWarning, UsageError, did_you_mean
from prudent.base.spec import whole_number
from prudent.bounds.base import check_delta
from prudent.logs.formats import find_text_files, first_bytes
from prudent.policies.baselines import baselines, clip_for
from prudent.research import default, figures, long_tail, paper, readings
from prudent.research.bench import METHODS, Bench, Outcome, check_methods
from prudent.research.data import ClickLog, LabelSet, read_click_log, read_label_set
from prudent.research.laboratory import Laboratory
from prudent.research.protocol import DELTAS, parameter_given
from prudent.research.table import write_repetitions, write_rows
from prudent.storage.files import check_target, make_folder, replacing
from prudent.storage.manifest import Manifest

FORMATS = ("yandex", "yandex-personalized", "letor")


@dataclass(frozen=True)
class Experiment:
    """What can be run by name."""

    about: str  # one line, for lists of them
    run: Callable[[Bench], Outcome]
    takes: Literal["clicks", "labels", "both", "nothing"]  # what real data it runs on


CATALOGUE: Mapping[str, Experiment] = {
    "top-queries": Experiment("all methods on the ten most frequent queries (Fig. 2)", paper.top_queries, "clicks"),
    "top-query": Experiment("the same on the most frequent query (App. C)", paper.top_query, "clicks"),
    "less-frequent": Experiment("more, and less frequent, queries (App. C)", paper.less_frequent, "clicks"),
    "sample-size": Experiment("δ of the past applied to the future, by n (Fig. 3)", paper.sample_size, "clicks"),
    "cross-validation": Experiment("real clicks of later days (App. C)", paper.cross_validation, "clicks"),
    "prior-grid": Experiment("empirical Bayes with larger grids (App. C)", paper.prior_grid, "clicks"),
    "misspecified": Experiment("clicks of one model, learned by another (Fig. 4)", paper.misspecified, "clicks"),
    "yahoo": Experiment("clicks made of Yahoo! C14 labels (Fig. 5)", paper.yahoo, "labels"),
    "mslr": Experiment("clicks made of MSLR-WEB labels (Fig. 6)", paper.mslr, "labels"),
    "istella": Experiment("clicks made of Istella labels (Fig. 7)", paper.istella, "labels"),
    "logging-quality": Experiment("where pessimism pays and where it harms (ours)", paper.logging_quality, "nothing"),
    "readings": Experiment("what each of our readings changes (ours)", readings.readings, "clicks"),
    "default": Experiment("all bounds on 57 protocols, 45 without data (ours)", default.default, "both"),
    "long-tail": Experiment("all bounds where most contexts were seen once (ours)", long_tail.long_tail, "nothing"),
}
"""Every experiment that can be asked for, in the order in which `all` runs them."""


@dataclass(frozen=True)
class Request:
    """What to run, on what, and how."""

    repetitions: int | None = None  # without it, as many as each experiment thinks fit
    seed: int = 0
    deltas: tuple[float, ...] = DELTAS
    methods: tuple[str, ...] = METHODS
    processes: int = 1
    data: tuple[Path, ...] = ()
    form: str = ""  # of the data: one of `FORMATS`

    def __post_init__(self) -> None:
        if self.form and not self.data:
            raise UsageError("--format needs --data, as in --data FILE --format yandex.")
        if self.click_files and not self.form:
            raise UsageError(f"{self.click_files[0]} has no labels. Set its format, as in --format yandex.")
        if self.form and self.form not in FORMATS:
            raise UsageError(
                f"There is no format {self.form!r}.{did_you_mean(self.form, FORMATS)} Known: {', '.join(FORMATS)}."
            )
        if not self.methods:
            raise UsageError(f"Name a method. Known: {', '.join(METHODS)}.")
        check_methods(self.methods)
        if any(
            hasattr(baselines.parse(method), "clip") for method in self.methods if method.partition("(")[0] in baselines
        ):
            for delta in self.deltas:
                clip_for(delta)

    @property
    def label_files(self) -> list[Path]:
        """Data files with labels, detected by their content."""
        return [file for file in self.data if self.form == "letor" or _LABELS.match(first_bytes(file, 4096))]

    @property
    def click_files(self) -> list[Path]:
        """Data that holds clicks."""
        labels = self.label_files
        return [file for file in self.data if file not in labels]

    def serves(self, takes: str) -> bool:
        """Whether there is data of a kind that an experiment takes."""
        return bool(self.click_files if takes == "clicks" else self.label_files if takes == "labels" else self.data)


_LABELS = re.compile(rb"\s*(?:#[^\n]*\n\s*)*\d+ qid:")

Watcher = Callable[[str, int, int], None]
"""Called with the name of the experiment, the repetitions done, and their total."""


def experiments(name: str, request: Request) -> list[str]:
    """The experiments that a name stands for; `all` of them, or the one."""
    if name == "all":
        if request.label_files:
            raise UsageError("Labels are of one data set: name its experiment, yahoo, mslr or istella.")
        return list(CATALOGUE)
    if name not in CATALOGUE:
        known = [*CATALOGUE, "all"]
        raise UsageError(f"There is no experiment {name!r}.{did_you_mean(name, known)} Known: {', '.join(known)}.")
    takes = CATALOGUE[name].takes
    if request.data and (takes == "nothing" or not request.serves(takes)):
        raise UsageError(f"{name} runs on {takes}: {request.data[0]} is something else.")
    return [name]


def make_request(
    data: Sequence[str],
    form: str | None,
    repetitions: int | None,
    seed: int,
    deltas: str | None,
    methods: str | None,
    processes: int,
) -> Request:
    """A request from the words of a command line."""
    return Request(
        repetitions,
        whole_number("seed", seed, 0),
        DELTAS if deltas is None else tuple(dict.fromkeys(map(_delta, deltas.split(",")))),
        METHODS if methods is None else tuple(dict.fromkeys(split_methods(methods))),
        processes,
        tuple(find_text_files(data)) if data else (),
        form or "",
    )


def _delta(word: str) -> float:
    try:
        delta = float(word)
    except ValueError:
        raise UsageError(f"{word.strip()!r} is not a δ. Write numbers separated by commas: 0.1,0.2,0.5.") from None
    check_delta(delta)
    return delta


def split_methods(text: str) -> list[str]:
    """Spellings with commas between them; those inside brackets are part of a spelling.

    >>> split_methods("mle, eb(pool=context, grid=[1, 2]),pi")
    ['mle', 'eb(pool=context, grid=[1, 2])', 'pi']
    """
    return [word.strip() for word in re.split(r",(?![^(]*\))", text) if word.strip()]


def reproduce(
    name: str, folder: str | PathLike[str], request: Request, watch: Watcher
) -> Iterator[tuple[str, Outcome]]:
    """Run an experiment, or all, and write what comes out of each to files in a folder; yield each when it is done.

    ``NAME.parquet`` and ``NAME.csv`` hold the table, ``NAME.repetitions.parquet`` the error of every repetition,
    ``NAME.svg`` and ``NAME.png`` the figure. What is done of an interrupted run is kept in the folder, hidden, and
    the same request goes on from there.
    """
    names = experiments(name, request)
    folder = make_folder(folder)
    clicks, labels = _read(request)
    for one in names:
        settings = _settings(one, request)

        def progress(done: int, total: int, one: str = one) -> None:
            watch(one, done, total)

        # Parts of other settings are in other folders: two runs at once do not mix theirs.
        mark = sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:8]
        lab = Laboratory(request.seed, request.processes, folder / f".{one}.{mark}.parts", settings, progress)
        bench = Bench(lab, clicks, labels, request.repetitions, request.deltas, request.methods)
        started = monotonic()
        for end in ("parquet", "csv", "svg", "png"):
            check_target(folder / f"{one}.{end}")  # rather now than after the work
        outcome = CATALOGUE[one].run(bench)
        outcome = replace(outcome, notes=[*outcome.notes, *_given(outcome, request.seed)])
        spent = {"seconds": round(monotonic() - started, 1), "processes": request.processes}  # of the last start
        write_outcome(outcome, folder / one, {**settings, **spent})
        lab.forget()
        yield one, outcome


def _given(outcome: Outcome, seed: int) -> list[str]:
    """Where learners were given a true parameter, counted in the first logs."""
    notes = []
    for result in outcome.results:
        protocol = result.protocol
        logs = min(3, len(result.errors) // protocol.blocks)
        times = parameter_given(protocol, seed, logs)
        if times:
            notes.append(
                f"{protocol.data}, {protocol.logging}, n = {protocol.n:,}: pbm cannot be fitted, and its "
                f"learner gets the true examination of positions, in {times} of {logs} logs."
            )
    return list(dict.fromkeys(notes))


def write_outcome(outcome: Outcome, path: Path, settings: Mapping[str, Any]) -> None:
    """Table, figure and manifest."""
    table = path.with_name(f"{path.name}.parquet")
    done = sorted({row.repetitions for row in outcome.rows})
    repetitions = done[0] if len(done) == 1 else done
    results = {"notes": list(outcome.notes), **outcome.facts}
    manifest = Manifest("experiment", {**settings, "repetitions": repetitions}, results=results)
    write_rows(outcome.rows, table, manifest)
    write_repetitions(outcome.results, path.with_name(f"{path.name}.repetitions.parquet"), manifest)
    if outcome.chart is not None:
        try:
            figures.save(outcome.chart(), path)
        except UsageError as missing:  # the numbers are worth having without their picture
            warnings.warn(f"No figure was drawn. {missing}", PrudentWarning, stacklevel=2)
    if outcome.page:
        with replacing(path.with_name(f"{path.name}.md")) as part:
            part.write_text(outcome.page, encoding="utf-8")
    manifest.write(table)


def _read(request: Request) -> tuple[ClickLog | None, LabelSet | None]:
    return (
        read_click_log(request.click_files, request.form) if request.click_files else None,
        read_label_set(request.label_files) if request.label_files else None,
    )


def _settings(name: str, request: Request) -> dict[str, Any]:
    """What a result depends on; a file is identified by its name, size and time: reading it may take minutes."""
    used = {"clicks": request.click_files, "labels": request.label_files, "both": request.data, "nothing": []}
    files = [
        {"file": str(file), "bytes": file.stat().st_size, "modified": file.stat().st_mtime_ns}
        for file in used[CATALOGUE[name].takes]
    ]
    return {
        "experiment": name,
        "data": files or "synthetic",
        "format": request.form or None,
        "repetitions": request.repetitions,
        "seed": request.seed,
        "deltas": list(request.deltas),
        "methods": list(request.methods),
    }
