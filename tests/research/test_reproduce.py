"""An experiment by its name: the files it leaves, what it refuses, and that a table is the same to the byte."""

import json
import re
import signal
import subprocess
import time
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from prudent.base.errors import LogError, UsageError
from prudent.research.protocol import Protocol
from prudent.research.reproduce import CATALOGUE, Request, experiments, make_request, reproduce, split_methods
from tests.command import PROCESS, run
from tests.logs.readers.reading import write

FILES = ["csv", "parquet", "png", "repetitions.parquet", "svg"]
QUICK = ("--repetitions", "2", "--deltas", "0.2,1", "--methods", "mle,eb", "--processes", "1")


def content(file: Path) -> object:
    """The bytes; of a Parquet file the rows, for its footer has the manifest, which says how long it took."""
    return pq.read_table(file).to_pydict() if file.suffix == ".parquet" else file.read_bytes()


def ignore(name: str, done: int, total: int) -> None:
    pass


# --- what comes out ----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_tables_are_the_same_to_the_byte_in_one_process_and_in_two(tmp_path: Path) -> None:
    """By the command line, as users would; figures and all."""
    how = ("reproduce", "top-query", "--repetitions", "2", "--deltas", "0.2,1")
    for processes in (1, 2):
        ran = run(*how, "--processes", processes, "--to", tmp_path / str(processes))
        assert ran.code == 0, ran.err
        assert "top-query" in ran.text
    for end in FILES:
        one, two = (tmp_path / folder / f"top-query.{end}" for folder in ("1", "2"))
        assert content(one) == content(two), end


# --- going on --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_an_interrupted_experiment_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupted in the second stage, it does not do the first again; the folder is tidy in the end."""
    request = Request(repetitions=2, deltas=(0.2, 1.0), methods=("eb",))
    list(reproduce("sample-size", tmp_path / "whole", request, ignore))
    computed: list[tuple[str, str, int, int]] = []
    errors = Protocol.errors

    def note(self: Protocol, seed: int, repetition: int) -> object:
        computed.append((self.logging, str(self.model), self.n, repetition))
        return errors(self, seed, repetition)

    monkeypatch.setattr(Protocol, "errors", note)

    def interrupt(name: str, done: int, total: int) -> None:
        if total == 12 and done == 4:
            raise KeyboardInterrupt

    folder = tmp_path / "interrupted"
    with pytest.raises(KeyboardInterrupt):
        list(reproduce("sample-size", folder, request, interrupt))
    (parts,) = folder.iterdir()
    assert re.fullmatch(r"\.sample-size\.[0-9a-f]{8}\.parts", parts.name)
    list(reproduce("sample-size", folder, request, ignore))
    assert len(computed) == len(set(computed)) == 6 + 12
    assert not list(folder.glob(".*"))
    for end in FILES:
        assert content(folder / f"sample-size.{end}") == content(tmp_path / "whole" / f"sample-size.{end}")


@pytest.mark.slow
def test_a_killed_command_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed at any moment, with no chance to tidy up."""
    how = ("reproduce", "top-query", "--repetitions", "40", "--deltas", "0.2", "--methods", "mle", "--processes", "1")
    killed = tmp_path / "killed"
    process = subprocess.Popen([*PROCESS, *how, "--to", str(killed)], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 40
    while not list(killed.glob(".top-query.*.parts/main/*.npy")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait(20)
    parts = list(killed.glob(".top-query.*.parts/main/*.npy"))
    assert 0 < len(parts) < 24
    assert not (killed / "top-query.parquet").exists()
    computed: list[int] = []
    errors = Protocol.errors

    def note(self: Protocol, seed: int, repetition: int) -> object:
        computed.append(repetition)
        return errors(self, seed, repetition)

    monkeypatch.setattr(Protocol, "errors", note)
    assert run(*how, "--to", killed).code == 0
    assert len(computed) == 6 * 40 - 10 * len(parts)
    assert run(*how, "--to", tmp_path / "whole").code == 0
    for end in ("parquet", "csv", "repetitions.parquet"):
        assert content(killed / f"top-query.{end}") == content(tmp_path / "whole" / f"top-query.{end}")
    assert not list(killed.glob(".*"))


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("top-querie",), "no experiment 'top-querie'. Did you mean 'top-queries'?"),
        (("yahoo", "--data", "{log}", "--format", "yandex"), "yahoo runs on labels: {log} is something else"),
        (("top-query", "--data", "{log}", "--format", "letor"), "top-query runs on clicks: {log} is something else"),
        (("logging-quality", "--data", "{log}", "--format", "letor"), "logging-quality runs on nothing"),
        (("all", "--data", "{log}", "--format", "letor"), "Labels are of one data set"),
        (("top-query", "--data", "{log}"), "{log} has no labels. Set its format"),
        (("top-query", "--format", "yandex"), "--format needs --data"),
        (("top-query", "--data", "{log}", "--format", "yandx"), "no format 'yandx'. Did you mean 'yandex'?"),
        (("top-query", "--deltas", "0.1;0.2"), "'0.1;0.2' is not a δ"),
        (("top-query", "--deltas", "0.1,2"), "delta is 2.0; it must be a number above 0"),
        (("top-query", "--deltas", "0.1,,0.2"), "'' is not a δ"),
        (("top-query", "--deltas", "0.22"), "No clip belongs to delta=0.22"),
        (("top-query", "--methods", "mle,ebb"), "no method 'ebb'"),
        (("top-query", "--methods", "eb(pol=all)"), "eb"),
        (("top-query", "--repetitions", "0"), "repetitions"),
        (("top-query", "--seed", "-1"), "seed"),
    ],
)
def test_what_cannot_be_run_says_why(args: tuple[str, ...], message: str, tmp_path: Path) -> None:
    log = write(tmp_path / "log", ["nonsense"])
    ran = run("reproduce", *(arg.format(log=log) for arg in args), "--to", tmp_path / "out", "--processes", "1")
    assert ran.code == 2
    assert message.format(log=log) in ran.text
    assert not list(tmp_path.glob("out/[!.]*"))


def test_an_output_has_to_be_named() -> None:
    ran = run("reproduce", "top-query")
    assert ran.code == 2
    assert "--to DIR" in ran.text


def test_a_log_that_is_none(tmp_path: Path) -> None:
    log = write(tmp_path / "log", ["nonsense"])
    ran = run("reproduce", "top-query", "--data", log, "--format", "yandex-personalized", "-o", tmp_path / "out")
    assert ran.code == 3
    assert str(log.name) in ran.text
    missing = run("reproduce", "top-query", "--data", tmp_path / "no", "--format", "yandex", "-o", tmp_path / "out")
    assert missing.code in (2, 3)
    with pytest.raises(LogError):
        make_request([str(tmp_path / "no")], "yandex", None, 0, None, None, 1)


def test_names_of_experiments() -> None:
    assert experiments("all", Request()) == list(CATALOGUE)
    assert experiments("yahoo", Request()) == ["yahoo"]
    with pytest.raises(UsageError, match="no experiment"):
        experiments("", Request())


def test_methods_with_settings_of_their_own() -> None:
    assert split_methods("mle, eb(pool=context, grid=[1, 2]),pi") == ["mle", "eb(pool=context, grid=[1, 2])", "pi"]
    request = make_request([], None, 5, 1, " 0.1, 0.2", "bayes(alpha=1, beta=8),mle", 2)
    assert request == Request(5, 1, (0.1, 0.2), ("bayes(alpha=1, beta=8)", "mle"), 2)


# --- the command -----------------------------------------------------------------------------------------------------


def test_a_list_of_experiments() -> None:
    ran = run("reproduce", "list")
    assert ran.code == 0
    for name, experiment in CATALOGUE.items():
        assert name in ran.out
        assert experiment.about.split()[0] in ran.out


def test_help() -> None:
    ran = run("reproduce", "--help")
    assert ran.code == 0
    for option in ("--to", "--data", "--format", "--repetitions", "--seed", "--deltas", "--methods", "--processes"):
        assert option in ran.out


@pytest.mark.usefixtures("small")
def test_labels_of_a_file(tmp_path: Path) -> None:
    lines = [f"{(query + i) % 5} qid:{query} 1:0" for query in range(6) for i in range(6)]
    file = write(tmp_path / "labels.txt", lines)
    ran = run("reproduce", "mslr", "--data", file, "--format", "letor", *QUICK, "-o", tmp_path / "out")
    assert ran.code == 0, ran.err
    manifest = json.loads((tmp_path / "out" / "mslr.parquet.manifest.json").read_text())["settings"]
    assert manifest["format"] == "letor"
    assert manifest["data"][0]["bytes"] == file.stat().st_size
    with duckdb.connect() as connection:
        path = str(tmp_path / "out" / "mslr.parquet")
        data = connection.execute("select distinct data from read_parquet(?)", [path]).fetchall()
    assert data == [("MSLR labels, 6 queries",)]


def test_labels_are_told_from_clicks_by_a_look(tmp_path: Path) -> None:
    clicks = write(tmp_path / "clicks", ["1\t0\tQ\t1\t1" + "".join(f"\t{i}" for i in range(10))])
    labels = write(tmp_path / "labels", ["# a comment", "2 qid:1 1:0.5"])
    request = Request(data=(clicks, labels), form="yandex")
    assert (request.click_files, request.label_files) == ([clicks], [labels])
    assert Request(data=(labels,)).label_files == [labels]
