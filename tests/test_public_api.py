"""The public functions: what they take, one spelling in Python and on the command line, and an example for each."""

import doctest
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import typer

import prudent
from prudent.base.errors import LogError, UsageError
from prudent.cli.options import app
from prudent.click_models.world import make_world
from tests.strategies import table

FUNCTIONS = [name for name in prudent.__all__ if inspect.isfunction(getattr(prudent, name))]
COMMANDS: dict[str, Any] = dict(vars(typer.main.get_command(app))["commands"])
TERMINAL = {"json", "verbose", "help", "limit", "engine", "master", "conf", "memory", "threads"}
"""Options about what is printed and where it runs: objects in Python."""


def parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(function).parameters)


CLASSES = ("DuckDB", "Log", "Spark")


@pytest.mark.parametrize("name", [*FUNCTIONS, *CLASSES])
def test_at_most_two_arguments_are_positional(name: str) -> None:
    kinds = [parameter.kind for parameter in parameters(getattr(prudent, name)).values()]
    assert kinds.count(inspect.Parameter.POSITIONAL_OR_KEYWORD) <= 2


@pytest.mark.parametrize("command", sorted({name.replace("_", "-") for name in FUNCTIONS} & set(COMMANDS)))
def test_options_are_arguments_of_the_function(command: str) -> None:
    function = getattr(prudent, command.replace("-", "_"))
    takes = set(parameters(function)) | set(parameters(prudent.Log))
    takes |= {"format", "click_action", "impression_action"}  # of `as_log` and of readers
    takes |= {"rank": {"baseline"}, "simulate": set(parameters(make_world))}.get(command, set())
    words = [option for one in COMMANDS[command].params for option in one.opts if option.startswith("--")]
    options = {option.removeprefix("--").replace("-", "_") for option in words}
    assert options - TERMINAL <= takes
    own = {name for name, one in parameters(function).items() if one.kind is inspect.Parameter.KEYWORD_ONLY}
    assert own - {"engine", "progress"} <= options  # objects that a command makes


def test_every_function_but_a_few_has_a_command() -> None:
    assert set(FUNCTIONS) - {name.replace("-", "_") for name in COMMANDS} == {"rank_baseline"}  # rank --baseline


@pytest.mark.parametrize("name", prudent.__all__)
def test_every_public_name_has_an_example(name: str) -> None:
    """In its own docstring, where `help` shows it; the suite runs all of them."""
    thing = getattr(prudent, name)
    examples = doctest.DocTestParser().get_examples(inspect.getdoc(thing) or "")
    assert any(name in example.source for example in examples)


# --- paths, tables and objects, with the names of columns -------------------------------------------------------------

LISTS = [
    *(("q", ("a", "b"), (1, 0)), ("q", ("b", "a"), (0, 1))),
    *(("q", ("a", "b"), (0, 0)), ("q", ("b", "a"), (1, 0))),
] * 40


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log whose context is the column `query`, and a policy."""
    folder = tmp_path_factory.mktemp("api")
    log = table(LISTS)
    names = ["query" if name == "context" else name for name in log.column_names]
    pq.write_table(log.rename_columns(names), folder / "log.parquet")
    prudent.rank(prudent.Log(table(LISTS[:60])), "pbm").write(folder / "policy.parquet")
    return folder


CALLS: dict[str, Callable[..., Any]] = {
    "check": lambda policy, log, **columns: prudent.check(log, **columns).lists,
    "compare": lambda policy, log, **columns: prudent.compare(log, model="pbm", **columns).winner,
    "compare with a test log": lambda policy, log, **columns: prudent.compare(log, log, model="pbm", **columns).winner,
    "count": lambda policy, log, **columns: prudent.count(log, **columns).tally,
    "evaluate": lambda policy, log, **columns: prudent.evaluate(policy, log, estimator="ips", **columns).to_json(),
    "gate": lambda policy, log, **columns: prudent.gate(policy, log, estimator="ips", **columns).to_json(),
    "gate_contexts": lambda policy, log, **columns: prudent.gate_contexts(
        policy, log, estimator="dm(model=pbm)", **columns
    ).rows(),
    "plan": lambda policy, log, **columns: prudent.plan(policy, log, lift=0.1, **columns).to_json(),
    "verify": lambda policy, log, **columns: prudent.verify(policy, log, promised=0.5, **columns).to_json(),
    "explore": lambda policy, log, **columns: prudent.explore(
        prudent.rank(prudent.Log(table(LISTS[:60])), "pbm"), log, goal="positions", lists=4000, **columns
    ).rows(),
    "judge": lambda policy, log, **columns: prudent.judge(log, "pbm", **columns).rows(),
    "rank": lambda policy, log, **columns: dict(prudent.rank(log, "pbm", **columns)),
    "rank_baseline": lambda policy, log, **columns: dict(prudent.rank_baseline(log, "pi", **columns)),
    "tune": lambda policy, log, **columns: prudent.tune(
        log, bound="mle", model="pbm", repetitions=2, **columns
    ).to_json()["settings"],
}


@pytest.mark.filterwarnings("ignore::prudent.PrudentWarning")  # a test log that is the training log
@pytest.mark.parametrize("name", CALLS)
def test_paths_tables_and_objects(name: str, files: Path) -> None:
    call, log, policy = CALLS[name], files / "log.parquet", files / "policy.parquet"
    expected = call(prudent.Policy.read(policy), prudent.Log(log, context="query"))
    for source in (log, str(log), [log], pq.read_table(log)):
        assert call(policy, source, context="query") == expected
    with pytest.raises(LogError, match="no column 'context'"):
        call(policy, log)
    with pytest.raises(UsageError, match="A log has no setting contxt"):
        call(policy, log, contxt="query")


def test_report_and_split_take_paths_and_columns(files: Path, tmp_path: Path) -> None:
    log = files / "log.parquet"
    of_path = prudent.report(files / "policy.parquet", log, to=tmp_path / "a.html", context="query")
    of_log = prudent.report(
        prudent.Policy.read(files / "policy.parquet"), prudent.Log(log, context="query"), to=tmp_path / "b.html"
    )
    assert of_path["verdict"] == of_log["verdict"]
    assert prudent.split(log, tmp_path, context="query").train.lists > 0


def test_counts_are_added_up_by_count(files: Path, tmp_path: Path) -> None:
    once = prudent.count(files / "log.parquet", to=tmp_path / "one.parquet", context="query")
    prudent.count(once, to=tmp_path / "two.parquet")
    twice = prudent.count([tmp_path / "one.parquet", tmp_path / "two.parquet"], to=tmp_path / "sum.parquet")
    assert twice.tally.lists == 2 * once.tally.lists
    assert twice.files == (tmp_path / "sum.parquet",)
    assert prudent.Counts.read(tmp_path / "sum.parquet") == once + once
