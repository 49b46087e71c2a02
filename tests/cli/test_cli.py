"""The command line: what it prints, where, and with which exit code."""

import errno
import json
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import prudent
from prudent.base.text import plain
from prudent.bounds import DEFAULT_BOUND
from prudent.cli import main
from prudent.cli.options import app
from prudent.cli.rank import _show_rules, _show_summary
from prudent.click_models.simulate import write_log
from prudent.click_models.world import make_world
from prudent.storage.manifest import Manifest, Source, Tally
from tests.command import PROCESS, run, run_process

COMMANDS = sorted(str(command.name) for command in app.registered_commands)
ESCAPE = "\x1b"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a simulated log, its truth and its counts."""
    folder = tmp_path_factory.mktemp("made")
    small = ["--lists", 3000, "--contexts", 8, "--items", 5, 8, "--length", 4]
    assert run("simulate", "-o", folder / "log.parquet", "--truth", folder / "truth.parquet", *small).code == 0
    assert run("count", folder / "log.parquet", "-o", folder / "counts.parquet").code == 0
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh folder to work in, with those files."""
    for path in made.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fetch(query: str) -> list[tuple[object, ...]]:
    with duckdb.connect() as connection:
        return connection.execute(query).fetchall()


def content(file: str) -> list[tuple[object, ...]]:
    """The rows; the footer also names what they were made from."""
    return fetch(f"from read_parquet('{file}')")


# --- help, version, wrong usage -----------------------------------------------------------------------------------


def test_help_has_the_defaults_of_the_function_and_leaves_the_command_alone(folder: Path) -> None:
    assert f"[default: {DEFAULT_BOUND}]" in run("rank", "--help").text
    ran = run("rank", "log.parquet", "-o", "policy.parquet", "--baseline", "pi")  # which does not go with --bound
    assert ran.code == 0, ran.err


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_of_a_command(command: str, option: str) -> None:
    ran = run(command, option)
    assert ran.code == 0
    assert f"Usage: prudent {command}" in ran.text
    assert ran.err == ""


@pytest.mark.parametrize("command", ["evaluate", "gate", "gate-contexts", "plan", "verify", "report"])
def test_help_offers_a_column_of_rewards_where_it_is_known(command: str) -> None:
    text = " ".join(run(command, "--help").text.replace("│", " ").split())
    assert ("or a column of what clicks were worth" in text) == (command in ("evaluate", "gate", "report"))


def test_help_names_every_command() -> None:
    ran = run("--help")
    assert ran.code == 0
    assert [command for command in COMMANDS if command not in ran.out] == []


def test_version() -> None:
    assert run("--version") == (0, f"prudent {prudent.__version__}\n", "")


def test_help_is_quick() -> None:
    """Before NumPy, SciPy or DuckDB are even loaded."""
    script = (
        "import sys; sys.argv = ['prudent', '--help']\n"
        "from prudent.cli import main\n"
        "try: main()\n"
        "finally: print([name for name in ('numpy', 'scipy', 'duckdb', 'pandas') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("called", "threads"), [("main()", "1"), ("os.environ[name] = '2'; main()", "2"), ("prudent.count", "None")]
)
def test_commands_take_one_thread_of_blas_and_callers_of_the_library_their_own(called: str, threads: str) -> None:
    script = (
        "import os, sys; sys.argv = ['prudent', '--version']; name = 'OPENBLAS_NUM_THREADS'\n"
        "import prudent; from prudent.cli import main\n"
        f"try: {called}\n"
        "finally: print(os.environ.get(name))"
    )
    environment = {key: value for key, value in os.environ.items() if key != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.splitlines()[-1] == threads


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "Usage: prudent"),
        (["rnak"], "No such command 'rnak'"),
        (["rank"], "Missing argument"),
        (["rank", "log.parquet"], "Missing option '--to'"),
        (["rank", "log.parquet", "-o", "x.parquet", "--lenght", "3"], "--length"),
        (["rank", "log.parquet", "-o", "x.parquet", "--length", "0"], "length is 0; it must be a whole number"),
        (["rank", "log.parquet", "-o", "x.parquet", "--length", "ten"], "Invalid value for '--length'"),
        (["rank", "log.parquet", "-o", "x.parquet", "--max-rejected", "2"], "max_rejected is 2.0; it is a share"),
        (["rank", "log.parquet", "-o", "x.parquet", "--layout", "wide"], "Invalid value for '--layout'"),
        (["rank", "log.parquet", "-o", "x.parquet", "--model", "pmb"], "Did you mean 'pbm'?"),
        (["rank", "log.parquet", "-o", "x.parquet", "--bound", "bays"], "Did you mean 'bayes'?"),
        (["rank", "log.parquet", "-o", "x.parquet", "--bound", "bayes(detla=0.1)"], "Did you mean 'delta'?"),
        (["rank", "log.parquet", "-o", "x.parquet", "--bound", "bayes(delta=2)"], "delta is 2"),
        (["rank", "log.parquet", "-o", "x.parquet", "--bound", "bayes(delta="], "bayes(delta="),
        (["rank", "log.parquet", "-o", "x.parquet", "--memory", "lots"], "memory is 'lots'; it must be a size"),
        (["rank", "log.parquet", "-o", "x.parquet", "--context", "items"], "is named for two different things"),
        (["rank", "log.parquet", "-o", "log.parquet"], "log.parquet is named twice"),
        (["rank", "l*.parquet", "-o", "log.parquet"], "log.parquet is named twice"),
        (["rank", ".", "-o", "./log.parquet"], "log.parquet is named twice"),
        (["count", "log.parquet", "-o", "../{here}/log.parquet"], "is named twice"),
        (["rank", "log.parquet", "-o", "x.parquet", "--scores", "./x.parquet"], "x.parquet is named twice"),
        (["rank", "log.parquet", "-o", "truth.parquet", "--candidates", "truth.parquet"], "is named twice"),
        (["simulate", "-o", "x.parquet", "--truth", "x.parquet"], "x.parquet is named twice"),
        (["count", "log.parquet", "l*.parquet", "-o", "x.parquet"], "log.parquet is named twice, and would be counted"),
        (["simulate", "-o", "x.txt"], "Known endings: .parquet"),
        (["simulate", "-o", "x.parquet", "--seed", "-1"], "seed is -1; it must be a whole number, at least 0"),
        (["rank", "log.parquet", "-o", "x.parquet", "--threads", "0"], "threads is 0; it must be a whole number"),
    ],
)  # fmt: skip
def test_wrong_usage(folder: Path, args: list[str], said: str) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    ran = run(*(arg.replace("{here}", folder.name) for arg in args))
    assert ran.code == 2
    assert said in re.sub(r" [│ ]*", " ", ran.text)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("command", ["rank", "count", "simulate"])
def test_output_without_a_place(folder: Path, command: str) -> None:
    inputs = [] if command == "simulate" else ["log.parquet"]
    for output, said in (
        ("no/x.parquet", "there is no folder"),
        *([(".", "it is a folder")] if command != "count" else []),  # which --day would make sense of
        ("/dev/null", "regular file"),
    ):
        ran = run(command, *inputs, "-o", output)
        assert ran.code == 4
        assert f"Cannot write {output}" in ran.text
        assert said in ran.text
    assert Path("/dev/null").is_char_device()


def test_one_of_each(folder: Path) -> None:
    ran = run("simulate", "-o", "one.parquet", "--lists", 1, "--contexts", 1, "--model", "cm")
    assert ran.text == "Wrote 1 list of 1 context to one.parquet."
    assert "Counted 1 list into one-counts.parquet." in run("count", "one.parquet", "-o", "one-counts.parquet").text
    lists = [f'{{"context": "{context}", "items": ["a", "b"], "clicks": [1, 0]}}\n' for context in "qqr"]
    (folder / "three.jsonl").write_text("".join(lists))
    ran = run("rank", "three.jsonl", "-o", "policy.parquet", "--model", "cm", "--bound", "mle", "--min-lists", 2)
    assert ran.text.startswith(
        "1 list by cm and mle, from 3 logged lists. Left out: 1 context with fewer than 2 logged lists."
    )


def test_a_list_of_equal_value_is_not_called_worse(folder: Path) -> None:
    """Sums in another order differ in their last digit, which nobody sees."""
    assert run("simulate", "-o", "one.parquet", "--lists", 1, "--contexts", 1).code == 0
    ran = run("rank", "one.parquet", "-o", "policy.parquet", "--model", "dcm")
    assert ran.code == 0
    assert "are worse than" not in ran.text


def test_what_comes_after_ranking(folder: Path) -> None:
    """Judging: by what was held out, where that lies beside the log; else by a log that is still to be named."""
    said = run("rank", "log.parquet", "-o", "policy.parquet").out.splitlines()[-3:]
    assert said[0] == "Next: prudent evaluate policy.parquet --log HOLDOUT"
    assert "or the holdout of prudent split, made before ranking." in " ".join(said)
    assert run("split", "log.parquet", "-o", "parts").code == 0
    ran = run("rank", "parts/train.parquet", "-o", "policy.parquet")
    assert ran.out.splitlines()[-1] == "Next: prudent evaluate policy.parquet --log parts/holdout.parquet"
    assert "Next" not in run("rank", "parts/train.parquet", "-o", "policy.parquet", "--json").out


def test_what_comes_after_ranking_single_impressions(folder: Path) -> None:
    """They cannot be evaluated, so that the holdout has another layout, and other options."""
    table = "context,item,position,click\n" + "q,a,1,1\nq,b,2,0\nq,b,1,0\nq,a,2,1\n" * 20
    (folder / "seen.csv").write_text(table, encoding="utf-8")
    said = run("rank", "seen.csv", "-o", "policy.parquet", "--layout", "impressions").out.splitlines()[-3:]
    assert said[0] == "Next: prudent evaluate policy.parquet --log HOLDOUT"
    assert said[1].startswith("HOLDOUT is a log of whole lists (layout lists or rows)")


def test_what_comes_after_checking(folder: Path) -> None:
    """Ranking, where it is possible, with the same options."""
    ran = run("check", "log.parquet", "--max-positions", 50)
    assert ran.out.splitlines()[-1] == "Next: prudent rank log.parquet -o policy.parquet --max-positions 50"
    (folder / "none.jsonl").write_text('{"context": "q", "items": ["a"], "clicks": [0]}\n', encoding="utf-8")
    ran = run("check", "none.jsonl")
    assert "Check which column has the clicks" in ran.text
    assert "Next" not in ran.out
    (folder / "ids.jsonl").write_text('{"context": "q", "items": ["a"], "clicks": ["a"]}\n', encoding="utf-8")
    ran = run("check", "ids.jsonl")
    assert "clicked_items= (--clicked-items)" in ran.text
    assert "click-through rate" not in ran.out
    assert "Next" not in ran.out


def test_scores_without_a_place(folder: Path) -> None:
    """Found out before the work, and before the policy is written."""
    assert run("rank", "log.parquet", "-o", "x.parquet", "--scores", "no/x.parquet").code == 4
    assert not Path("x.parquet").exists()


# --- the way through ----------------------------------------------------------------------------------------------


def test_rank_from_log_and_from_counts_is_the_same(folder: Path) -> None:
    assert run("rank", "log.parquet", "-o", "a.parquet", "--scores", "as.parquet").code == 0
    assert run("rank", "counts.parquet", "-o", "b.parquet", "--scores", "bs.parquet").code == 0
    assert content("a.parquet") == content("b.parquet")
    assert content("as.parquet") == content("bs.parquet")


def test_columns_and_order_of_the_outputs(folder: Path) -> None:
    ran = run("rank", "log.parquet", "-o", "policy.parquet", "--scores", "scores.parquet", "--length", 3)
    assert ran.code == 0
    assert "The lists are in policy.parquet." in ran.text
    assert "Every candidate's scores are in scores.parquet." in ran.text
    evidence = ["lower", "mean", "upper", "stay", "positive", "negative", "impressions"]
    policy, scores = (fetch(f"describe from '{name}'") for name in ("policy.parquet", "scores.parquet"))
    assert [row[0] for row in policy] == ["context", "rank", "item", *evidence]
    assert [row[0] for row in scores] == ["context", "item", *evidence]
    lists = fetch("select context, rank from 'policy.parquet'")
    assert lists == sorted(lists)
    assert len(lists) == 8 * 3
    for name in ("policy.parquet", "scores.parquet"):
        manifest = json.loads(Path(f"{name}.manifest.json").read_text(encoding="utf-8"))
        assert manifest["settings"]["length"] == 3
        assert manifest["sources"]["training"]["inputs"] == ["log.parquet"]


def test_two_days_add_up(folder: Path) -> None:
    for day in (0, 1):
        fetch(f"copy (select * from (select *, row_number() over () as i from 'log.parquet') where i % 2 = {day}) "
              f"to 'day{day}.parquet'")  # fmt: skip
        assert run("count", f"day{day}.parquet", "-o", f"counts{day}.parquet").code == 0
    assert run("count", "counts0.parquet", "counts1.parquet", "-o", "both.parquet").code == 0
    assert prudent.Counts.read("both.parquet") == prudent.Counts.read("counts.parquet")
    for name, inputs in (
        ("sum", ["counts0.parquet", "counts1.parquet"]),
        ("whole", ["log.parquet"]),
        ("days", ["day*"]),
    ):
        assert run("rank", *inputs, "-o", f"{name}.parquet").code == 0
    assert content("sum.parquet") == content("whole.parquet") == content("days.parquet")


@pytest.mark.parametrize("name", ["log.jsonl", "log.csv"])
def test_the_chain_on_text_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    layout = ["--layout", "rows" if name.endswith("csv") else "lists"]
    assert run("simulate", "-o", name, "--lists", 500, "--contexts", 3, *layout).code == 0
    ran = run("check", name, *layout)
    assert ran.code == 0
    assert "lists 500" in ran.text
    assert "No list was rejected." in ran.text
    assert run("count", name, "-o", "counts.parquet", *layout).text.startswith("Counted 500 lists into counts.parquet.")
    assert run("rank", "counts.parquet", "-o", "policy.parquet").code == 0
    assert len(prudent.Policy.read("policy.parquet")) == 3


def test_candidates_in_every_format(folder: Path) -> None:
    fetch("copy (select context, item from 'truth.parquet' where item::integer % 2 = 0) to 'c.parquet'")
    fetch("copy (from 'c.parquet') to 'c.csv' (header)")
    fetch("copy (from 'c.parquet') to 'c.jsonl' (format json)")
    for name in ("c.parquet", "c.csv", "c.jsonl"):
        assert run("rank", "log.parquet", "-o", f"{name}.out", "--candidates", name).code == 0
    assert content("c.parquet.out") == content("c.csv.out") == content("c.jsonl.out")
    assert fetch("select count(*) from read_parquet('c.csv.out') where item::integer % 2 = 1") == [(0,)]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("context,item\n", "has no candidate"),
        ("context,thing\n0,1\n", "c.csv has no column 'item'"),
        ("", "c.csv is empty"),
    ],
)
def test_bad_candidates(folder: Path, content: str, said: str) -> None:
    Path("c.csv").write_text(content)
    ran = run("rank", "log.parquet", "-o", "x.parquet", "--candidates", "c.csv")
    assert ran.code == 3
    assert said in ran.text
    assert run("rank", "log.parquet", "-o", "x.parquet", "--candidates", "no.csv").code == 3


def test_one_file_under_two_names(folder: Path) -> None:
    Path("link.parquet").symlink_to("counts.parquet")
    for other in ("link.parquet", f"../{folder.name}/counts.parquet"):
        ran = run("rank", "counts.parquet", other, "-o", "x.parquet")
        assert (ran.code, "is named twice" in ran.text) == (2, True)


def test_outputs_are_parquet(folder: Path) -> None:
    ran = run("rank", "log.parquet", "-o", "policy.csv")
    assert (ran.code, "Name it policy.parquet" in ran.text) == (2, True)


def test_reasons_in_a_counts_file_are_not_obeyed(folder: Path) -> None:
    counts = prudent.Counts.read("counts.parquet")
    replace(counts, tally=replace(counts.tally, rejected={"[bold]x\x1b[31m": 3})).write("counts.parquet")
    for command in (["rank", "-o", "x.parquet"], ["check"]):
        ran = run(command[0], "counts.parquet", *command[1:])
        assert ESCAPE not in ran.out
        assert "[bold]x\\x1b[31m" in ran.text


def test_min_lists(folder: Path) -> None:
    sizes = sorted(int(str(n)) for (n,) in fetch("select count(*) from 'log.parquet' group by context"))
    ran = run("rank", "log.parquet", "-o", "x.parquet", "--min-lists", sizes[3])
    assert f"Left out: 3 contexts with fewer than {sizes[3]} logged lists." in ran.text
    assert len(prudent.Policy.read("x.parquet")) == 5


def test_check(folder: Path) -> None:
    for name in ("log.parquet", "counts.parquet"):
        ran = run("check", name)
        assert ran.code == 0
        assert "lists 3,000" in ran.text
        assert "click-through rate" in ran.text
        assert "pbm (position-based) is identified" in ran.text


def test_too_little_memory(folder: Path) -> None:
    ran = run("rank", "counts.parquet", "-o", "x.parquet", "--memory", "1MB")
    assert ran.code == 3
    assert "Raise --memory" in ran.text


# --- for machines -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "key"),
    [
        (["check", "log.parquet"], "verdicts"),
        (["count", "log.parquet", "-o", "x.parquet"], "sources"),
        (["rank", "log.parquet", "-o", "x.parquet"], "results"),
    ],
)
def test_json_and_nothing_else(folder: Path, args: list[str], key: str) -> None:
    ran = run_process(*args, "--json", env={"COLUMNS": "20"})
    assert (ran.code, ran.err) == (0, "")
    assert key in json.loads(ran.out)
    if "-o" in args:
        assert json.loads(ran.out) == json.loads(Path("x.parquet.manifest.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "args",
    [
        ["check", "log.parquet"],
        ["rank", "counts.parquet", "-o", "x.parquet", "--candidates", "truth.parquet", "--scores", "y.parquet"],
        ["simulate", "-o", "x.jsonl", "--lists", "100", "--contexts", "2"],
        ["rank", "truth.parquet", "-o", "x.parquet"],
    ],
)
def test_pipe_gets_no_escape_codes(folder: Path, args: list[str]) -> None:
    """Nor a spinner, nor complaints about what was not let go of; `run_process` looks for those."""
    ran = run_process(*args)
    assert ESCAPE not in ran.out + ran.err
    assert (ran.code == 0) == (ran.err == "")


def test_narrow_pipe_does_not_break_paths(folder: Path) -> None:
    ran = run_process("count", "log.parquet", "-o", "a-rather-long-name-for-counts.parquet", env={"COLUMNS": "20"})
    assert "into a-rather-long-name-for-counts.parquet." in ran.out


def test_other_alphabets(folder: Path) -> None:
    ran = run_process("check", "log.parquet", env={"PYTHONIOENCODING": "ascii"})
    assert ran.code == 0
    assert "\\u2587" in ran.out


def on_terminal(*args: str, **env: str) -> tuple[int, str]:
    """`prudent ARGS` with a terminal for all of its streams."""
    ours, theirs = pty.openpty()
    settings = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", **env}
    settings = {key: value for key, value in settings.items() if key not in ("NO_COLOR", "FORCE_COLOR") or key in env}
    process = subprocess.Popen([*PROCESS, *args], stdin=theirs, stdout=theirs, stderr=theirs, env=settings)
    os.close(theirs)
    said = b""
    while True:
        if not select.select([ours], [], [], 120)[0]:
            process.kill()
            pytest.fail(f"{args} is silent for two minutes, after {said!r}.")
        try:
            piece = os.read(ours, 4096)
        except OSError:  # Linux's way to say that the other end is closed
            break
        if not piece:
            break
        said += piece
    os.close(ours)
    return process.wait(), said.decode()


def test_terminal_gets_colour_and_a_spinner(folder: Path) -> None:
    code, said = on_terminal("rank", "log.parquet", "-o", "x.parquet")
    assert code == 0
    assert "Ranking ..." in said
    assert f"{ESCAPE}[2m" in said


def test_no_color(folder: Path) -> None:
    _, coloured = on_terminal("rank", "nothing.parquet", "-o", "x.parquet")
    assert f"{ESCAPE}[1;31m" in coloured
    _, plain = on_terminal("rank", "nothing.parquet", "-o", "x.parquet", NO_COLOR="1")
    assert not re.search(ESCAPE + r"\[[0-9;]*3[0-9]", plain)


NASTY = ["\x1b[31mred\x1b[0m", "[red]x[/red]", "a\nb", "\x07\x08\x7f", "\u202eevil", ":smile:", "[link=x]", "\x9b31m"]


def test_names_are_shown_and_not_obeyed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [
        {"context": name, "items": [f"1{name}", f"2{name}"], "clicks": [0, 1]} for name in NASTY[:5] for _ in range(30)
    ] + [{"context": name, "items": ["1", "2"], "clicks": [1, 0]} for name in NASTY[5:]]
    Path("nasty.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    args = ["rank", "nasty.jsonl", "-o", "[bold]x.parquet", "--model", "pbm(examination=[1, 0.5])", "--bound", "bayes"]
    ran = run_process(*args, env={"COLUMNS": "200"})
    assert ran.code == 0
    for name in ("\\x1b[31mred\\x1b[0m", "2[red]x[/red]", "2a\\nb", "2\\x07\\x08\\x7f", "2\\u202eevil"):
        assert name in ran.out
    assert "The lists are in [bold]x.parquet." in ran.out
    assert not [c for c in ran.out if not c.isprintable() and c != "\n"]
    code, said = on_terminal(*args, COLUMNS="200")
    assert code == 0
    assert f"{ESCAPE}[31mred" not in said
    assert "\u202e" not in said


def test_messages_are_shown_and_not_obeyed(folder: Path) -> None:
    for name in NASTY:
        for args in (["check", name], ["check", "log.parquet", "--context", name]):
            ran = run(*args)
            assert ran.code == 3
            assert not [c for c in ran.err if not c.isprintable() and c != "\n"]
        if name.isprintable():
            assert name in ran.err


def test_control_characters_are_written_out() -> None:
    assert plain("a\x1b[31m\n\t\x9b\u202e é 😀") == "a\\x1b[31m\\n\\t\\x9b\\u202e é 😀"


# --- cut short ----------------------------------------------------------------------------------------------------


def test_interrupt(tmp_path: Path) -> None:
    """Ctrl-C leaves the old file, no rubbish, and the code that shells expect; DuckDB tells of it in its own way."""
    log, target = tmp_path / "log.parquet", tmp_path / "counts.parquet"
    lists = "select i as context, [i, i + 1, i + 2] as items, [1, 0, 1] as clicks from range(3000000) t(i)"
    fetch(f"copy ({lists}) to '{log}'")
    target.write_text("old")
    process = subprocess.Popen(
        [*PROCESS, "count", str(log), "-o", str(target), "--threads", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 90
    while not list(tmp_path.glob(".counts.parquet.*.part")) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.05)  # well within the counting
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err
    assert target.read_text() == "old"
    assert {path.name for path in tmp_path.iterdir()} == {"log.parquet", "counts.parquet"}


def test_interrupt_between_queries(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("prudent.counts.count.counted_files", interrupted)
    assert run("count", "log.parquet", "-o", "x.parquet").code == 130


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_reader_that_has_seen_enough(folder: Path, options: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*PROCESS, "check", "log.parquet", *options], stdout=writing, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_full_standard_output(folder: Path, options: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*PROCESS, "check", "log.parquet", *options], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 4
    assert done.stderr == "Error: Cannot write to the standard output: No space left on device.\n"


def test_our_own_mistakes_keep_their_traceback_and_ask_for_a_report(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("unforeseen")

    monkeypatch.setattr("prudent.click_models.check.check", broken)
    monkeypatch.setattr("sys.argv", ["prudent", "check", "log.parquet"])
    with pytest.raises(SystemExit) as leaving:
        main()
    assert leaving.value.code == 70
    err = capsys.readouterr().err
    assert "RuntimeError: unforeseen" in err
    assert f"This is a bug in prudent {prudent.__version__}" in err
    assert "Please report it" in err


# --- an odd shell -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "columns"),
    [(["check", "log.parquet"], "0"), (["--help"], "0"), (["rank", "log.parquet", "-o", "x.parquet"], "000")],
)
def test_a_terminal_without_columns(folder: Path, args: list[str], columns: str) -> None:
    ran = run_process(*args, env={"COLUMNS": columns})
    assert (ran.code, ran.err) == (0, "")
    assert max(map(len, ran.out.splitlines())) > 20


def in_shell(command: str, **how: Any) -> subprocess.CompletedProcess[str]:
    script = f'prudent() {{ {shlex.join(PROCESS)} "$@"; }}; {command}'
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, timeout=60, **how)


@pytest.mark.parametrize("args", ["check log.parquet", "check log.parquet --json", "--help", "rank log.parquet -o x"])
def test_a_closed_standard_output(folder: Path, args: str) -> None:
    done = in_shell(f"prudent {args} >&-")
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == "Error: The standard output is closed: send it to a file, or to /dev/null.\n"
    assert not Path("x").exists()


def test_other_streams_may_be_closed(folder: Path) -> None:
    """And no file that is written takes their place."""
    done = in_shell("prudent count log.parquet -o x.parquet --max-rejected 0 <&- 2>&-")
    assert (done.returncode, done.stderr) == (0, "")
    assert prudent.Counts.read("x.parquet") == prudent.Counts.read("counts.parquet")
    assert in_shell("prudent count nowhere.parquet -o y.parquet 2>&-").returncode == 3


@pytest.mark.parametrize("args", ["--help", "rank --help", "check log.parquet --json"])
def test_the_first_line_of_an_output(folder: Path, args: str) -> None:
    done = in_shell(f"prudent {args} | head -c 1; exit ${{PIPESTATUS[0]}}")
    assert done.returncode in (0, 141)  # 0 where all of it went out before `head` had seen enough
    assert done.stderr == ""


def test_help_that_nobody_reads(folder: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([*PROCESS, "--help"], stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_list_of_any_length_is_not_simulated(folder: Path) -> None:
    ran = run("simulate", "-o", "x.parquet", "--length", 100_000_000)
    assert ran.code == 2
    assert "length is 100,000,000; a simulated list has at most 10,000 positions." in ran.text


def test_little_memory_by_the_shell(folder: Path) -> None:
    done = in_shell("ulimit -v 900000; prudent rank log.parquet -o x.parquet")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("Error: The process may allocate 0.9 GB (ulimit -v), and DuckDB needs 2 GB to start.")
    done = in_shell("ulimit -v 3000000; prudent rank log.parquet -o x.parquet")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("error", [MemoryError("Unable to allocate 373. GiB"), OSError(errno.ENOMEM, "no memory")])
def test_memory_that_python_does_not_get(folder: Path, error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def large(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("prudent.click_models.check.check", large)
    ran = run("check", "log.parquet")
    assert ran.code == 3
    assert ran.err.startswith("Error: Out of memory: ")


WITHOUT = ("anytime", "bayes", "clopper-pearson", "hoeffding", "mle")  # no fitted prior
FITTED = {**dict.fromkeys(WITHOUT, ""), "eb": "fitted prior: alpha 2, beta 8"}


@pytest.fixture(scope="module")
def few_contexts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Counts of 400 lists."""
    file = tmp_path_factory.mktemp("few") / "counts.parquet"
    world = make_world("pbm", contexts=8, items=(5, 8), length=4, seed=1)
    prudent.count(write_log(world, 400, file.with_name("log.parquet"), seed=1), to=file)
    return file


@pytest.mark.parametrize("bound", list(prudent.bounds.bounds))
def test_statistics_of_the_fit_are_for_verbose(bound: str, few_contexts: Path, tmp_path: Path) -> None:
    """And no prior is shown at an exposure that no item has, such as 10 times the average."""
    rank = ("rank", few_contexts, "-o", tmp_path / "policy.parquet", "--model", "pbm", "--bound", bound)
    silent, verbose = run(*rank), run(*rank, "--verbose")
    assert silent.code == verbose.code == 0
    for word in ("prior", "wald", "Wald", "strength", "examination", "×"):
        assert word not in silent.out
    assert "fitted examination: 1 " in verbose.out
    assert FITTED.get(bound, "fitted prior: intercept ") in verbose.text
    assert ("fitted prior" in verbose.out) == bool(FITTED.get(bound, True))
    assert "×" not in verbose.out


# --- what rank says of its result -------------------------------------------------------------------------------------


def say_summary(value: float, lists: int, capsys: pytest.CaptureFixture[str], lost: float | None = None) -> str:
    """What is printed for a policy of this value beside an incumbent of 0.5721, from so many lists."""
    scores = [{"model": "pbm", "log_likelihood": -1.0}, {"model": "dcm", "log_likelihood": -1.1}]
    summary = {"contexts": 3, "too_few_lists": 0, "without_candidates": 0, "differ": 1, "unit": "expected clicks"}
    values = {"value": value, "lower": 0.5, "level": 0.9, "incumbent_value": 0.5721, "incumbent_lower": 0.4}
    manifest = Manifest(
        "policy",
        {"model": "pbm", "bound": "mle", "asked_model": "auto", "min_lists": 1},
        {"training": Source(("log",), Tally(lists))},
        {
            "summary": {**summary, **values},
            "comparison": {"scores": scores, "winner": "pbm", "lists": 100, "test_lists": 20},
            **({} if lost is None else {"rules": {"exclude": {"changed": 1, "lost": lost}}}),
        },
    )
    _show_summary(manifest)
    return " ".join(capsys.readouterr().out.split())


def test_a_difference_in_the_last_digit_is_not_called_worse(capsys: pytest.CaptureFixture[str]) -> None:
    assert "worse" not in say_summary(0.5720, 100, capsys)
    assert "worse than the incumbent: this log is no reason to change" in say_summary(0.5620, 100, capsys)


def test_rules_that_change_nothing_may_be_misspelt(capsys: pytest.CaptureFixture[str]) -> None:
    _show_rules(Manifest("policy", {}, {}, {"rules": _costs(exclude=0, pin=1, at_most=0), "summary": {"unit": "x"}}))
    said = " ".join(capsys.readouterr().out.split())
    assert said.endswith("exclude changes no list: if that is not meant, are items named as in the log?")
    _show_rules(Manifest("policy", {}, {}, {"rules": _costs(exclude=1, at_most=0), "summary": {"unit": "x"}}))
    assert "no list" not in capsys.readouterr().out


def _costs(**changed: int) -> dict[str, dict[str, float]]:
    return {kind: {"changed": n, "lost": 0.0} for kind, n in changed.items()}


def test_lists_that_are_worse_by_what_rules_cost(capsys: pytest.CaptureFixture[str]) -> None:
    """Without its rules, a policy may be better than the incumbent: then the log is not to blame."""
    assert "worse than the incumbent: by what the rules cost" in say_summary(0.56, 100, capsys, lost=0.03)
    assert "worse than the incumbent: this log is no reason" in say_summary(0.5, 100, capsys, lost=0.03)


def test_auto_says_where_it_compared_on_a_sample(capsys: pytest.CaptureFixture[str]) -> None:
    assert "per list: pbm" in say_summary(0.6, 100, capsys)
    assert "per list, on a sample of 100 lists: pbm" in say_summary(0.6, 101, capsys)


def test_lists_of_equal_value_are_no_large_changes() -> None:
    """Two items with the same evidence in another order: the list differs, and nothing changes."""
    table = pa.table({"context": ["q"] * 4, "items": [["b", "a"]] * 4, "clicks": [[0, 1], [1, 0]] * 2})
    policy = prudent.rank(table, "pbm(examination=[1, 1])", bound="mle")
    assert policy["q"] == ["a", "b"]
    assert policy.contexts().select("differ").fetchall() == [(True,)]
    assert policy.changes().fetchall() == []
