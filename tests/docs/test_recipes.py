"""The recipes do what they say: every command in them runs here, as it is written, on small simulated logs."""

import ast
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import duckdb
import jinja2
import pytest
import yaml  # type: ignore[import-untyped]  # comes with moto
from packaging.requirements import Requirement

from prudent.click_models.simulate import write_log
from prudent.click_models.world import World, make_world
from prudent.policies.policy import Policy
from tests.docs.airflow_stub import MODULES, Dag, Task

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "recipes"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PAGE = (ROOT / "docs/how-to/recipes.md").read_text(encoding="utf-8")
FIRST = date(2026, 11, 1)
LISTS = 4000  # of a day: enough for a policy that passes, which production is far from


@pytest.fixture(scope="module")
def shop() -> World:
    return make_world("pbm", contexts=20, items=(5, 7), length=3, seed=3)


@pytest.fixture(scope="module")
def days(shop: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The logs of three days."""
    folder = tmp_path_factory.mktemp("days")
    for number in range(3):
        write_log(shop, LISTS, log_of(folder, day(number)), seed=number)
    return folder


@pytest.fixture
def folder(days: Path, tmp_path: Path) -> Path:
    shutil.copytree(days / "logs", tmp_path / "logs")
    return tmp_path


def day(number: int) -> str:
    return str(FIRST + timedelta(days=number))


def log_of(folder: Path, name: str) -> Path:
    (folder / "logs" / name).mkdir(parents=True, exist_ok=True)
    return folder / "logs" / name / "lists.parquet"


def no_clicks(log: Path) -> None:
    """The same lists, on a day on which the counting of clicks is broken."""
    with duckdb.connect() as connection:
        connection.execute(f"create table lists as select context, items, [0 for item in items] as clicks from '{log}'")
        connection.execute(f"copy lists to '{log}'")


def shell(command: str, folder: Path, **also: str) -> subprocess.CompletedProcess[str]:
    """A command of a recipe, with `prudent` and `python` of this environment and no network for pip."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path, "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", **also},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize(
    "file", sorted(path for path in RECIPES.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
)
def test_the_page_shows_every_recipe(file: Path) -> None:
    assert f"{{literalinclude}} ../../{file.relative_to(ROOT)}\n" in PAGE
    assert "recipes" in PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]


# nightly.sh and crontab


def night(folder: Path, name: str) -> subprocess.CompletedProcess[str]:
    return shell(f"{RECIPES / 'nightly.sh'} {name}", folder)


def test_nights(folder: Path) -> None:
    """The first day is only counted, the second launches, a broken promise stops the third, and any may run again."""
    first = night(folder, day(0))
    assert (first.returncode, first.stdout.splitlines()[-1]) == (
        0,
        "This is the first day: there is no holdout before the second.",
    ), first.stdout
    second = night(folder, day(1))
    assert (second.returncode, second.stdout.splitlines()[-1]) == (0, f"The lists of {day(1)} are live."), second.stdout
    assert os.readlink(folder / "live") == f"policies/{day(1)}"
    served = (folder / "live/lists.jsonl").read_bytes()
    assert served.count(b"\n") == len(Policy.read(folder / "live/policy.parquet"))

    again = night(folder, day(1))
    assert (again.returncode, again.stdout.splitlines()[-1]) == (
        0,
        f"The lists of {day(1)} are live; {day(1)} was only counted.",
    )
    assert (folder / "live/lists.jsonl").read_bytes() == served

    no_clicks(folder / "logs" / day(2) / "lists.parquet")
    third = night(folder, day(2))
    assert third.returncode == 1
    assert "do not keep their promise" in third.stdout
    assert (folder / "verify.prom").exists()
    assert os.readlink(folder / "live") == f"policies/{day(1)}"
    assert not (folder / "policies" / day(2)).exists()
    assert sorted(path.name for path in (folder / "counts").iterdir()) == [f"day={day(number)}" for number in range(3)]


def test_a_night_whose_gate_does_not_pass_keeps_the_lists(folder: Path) -> None:
    """The holdout repeats the training log, so the gate cannot tell, which is no error; old days are merged."""
    for old in ("2026-06-01", "2026-06-02"):
        done = shell(f"prudent count 'logs/{day(0)}/*.parquet' -o counts --day {old}", folder)
        assert done.returncode == 0, done.stdout
    done = night(folder, day(0))
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "Production keeps its lists."), done.stdout
    assert not (folder / "live").exists()
    counted = sorted(path.name for path in (folder / "counts").iterdir())
    assert counted == ["day=2026-06-01..2026-06-02", f"day={day(0)}"]


def test_a_night_without_a_log_ends_with_the_code_of_the_command(folder: Path) -> None:
    assert night(folder, "2026-12-24").returncode == 3
    assert not (folder / "policies").exists()


@pytest.mark.flock
def test_crontab_runs_a_night_and_mails_what_fails(folder: Path, shop: World) -> None:
    *_, line = lines = [text for text in (RECIPES / "crontab").read_text().splitlines() if not text.startswith("#")]
    assert all(re.fullmatch(r"[A-Z]+=\S+", text) for text in lines[:-1])
    minute, hour, *days_of, command = line.split(maxsplit=5)
    assert (0 <= int(minute) < 60, 0 <= int(hour) < 24, days_of) == (True, True, ["*"] * 3)
    assert "%" not in command  # ends the command in a crontab
    command = command.replace("/srv/ranking", shlex.quote(str(folder)))
    shutil.copy(RECIPES / "nightly.sh", folder)
    mailed = shell(command, folder)  # no log of yesterday
    assert "logs/" in mailed.stdout
    now = datetime.now(UTC).date()
    for name in (now, now - timedelta(days=1)):  # midnight may come
        write_log(shop, 500, log_of(folder, str(name)), seed=5)
    quiet = shell(command, folder)
    assert (quiet.returncode, quiet.stdout) == (0, "")
    assert "This is the first day" in (folder / "night.log").read_text()


# airflow_dag.py


@pytest.fixture
def dag(monkeypatch: pytest.MonkeyPatch) -> Iterator[Dag]:
    file = RECIPES / "airflow_dag.py"
    imported = {
        node.module: {alias.name for alias in node.names}
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("airflow")
    }
    assert imported == {module: set(content) for module, content in MODULES.items()}
    for module, content in MODULES.items():
        parts = module.split(".")
        for end in range(1, len(parts)):
            monkeypatch.setitem(sys.modules, ".".join(parts[:end]), ModuleType(parts[end - 1]))
        stub = ModuleType(module)
        stub.__dict__.update(content)
        monkeypatch.setitem(sys.modules, module, stub)
    Task.made.clear()
    yield runpy.run_path(str(file))["dag"]
    Task.made.clear()


def run_task(dag: Dag, task: Task, folder: Path, name: str) -> str:
    """How a task ends."""
    assert task.cwd == "/srv/ranking"
    done = shell(task.rendered(dag, name), folder)
    return {0: "success", task.skip: "skipped"}.get(done.returncode, "failed")


def run_dag(dag: Dag, folder: Path, name: str) -> dict[str, str]:
    """How each task ends, with the rule that all tasks before it have to succeed."""
    states: dict[str, str] = {}
    waiting = list(Task.made)
    while waiting:
        task = next(one for one in waiting if all(before.name in states for before in one.after))
        waiting.remove(task)
        before = {states[other.name] for other in task.after} - {"success"}
        if before:
            states[task.name] = "skipped" if before == {"skipped"} else "upstream_failed"
        else:
            states[task.name] = run_task(dag, task, folder, name)
    return states


DONE = {"count": "success", "compact": "success"}
KEPT = {"rank": "skipped", "gate": "skipped", "export": "skipped"}
RANKED = {"rank": "success", "gate": "success"}


def test_airflow_dag(dag: Dag, folder: Path) -> None:
    """The same nights as those of nightly.sh."""
    assert (dag.settings["max_active_runs"], dag.settings["catchup"]) == (1, False)
    tasks = {task.name: task for task in Task.made}
    assert run_dag(dag, folder, day(0)) == DONE | KEPT | {"verify": "success"}

    log = folder / "logs" / day(1) / "lists.parquet"
    right = log.read_bytes()
    shutil.copy(folder / "logs" / day(0) / "lists.parquet", log)  # of which the gate cannot tell
    assert [run_task(dag, tasks[name], folder, day(1)) for name in ("rank", "gate")] == ["success", "skipped"]

    log.write_bytes(right)
    assert run_dag(dag, folder, day(1)) == DONE | RANKED | {"verify": "success", "export": "success"}
    assert os.readlink(folder / "live") == f"policies/{day(1)}"
    served = (folder / "live/lists.jsonl").read_bytes()
    assert run_task(dag, tasks["rank"], folder, day(1)) == "skipped"  # launched already

    no_clicks(folder / "logs" / day(2) / "lists.parquet")
    states = run_dag(dag, folder, day(2))
    assert (states["verify"], states["export"]) == ("failed", "upstream_failed")
    assert (folder / "live/lists.jsonl").read_bytes() == served


# dbt


def compiled(model: str, config: dict[str, Any], variables: Mapping[str, str]) -> str:
    """The SQL of a model, as dbt fills it in; its settings go to `config`."""
    template = jinja2.Template((RECIPES / f"dbt/models/{model}.sql").read_text(), undefined=jinja2.StrictUndefined)
    text: str = template.render(
        config=lambda **settings: config.update(settings) or "",
        ref=lambda name: name,
        source=lambda schema, table: f"{schema}.{table}",
        var=lambda name: variables[name],
    )
    return text


def test_dbt_models_make_a_log(shop: World, tmp_path: Path) -> None:
    """From raw events that come twice, late or never: what is counted is the log that they were made from."""
    sources = yaml.safe_load((RECIPES / "dbt/models/sources.yml").read_text())
    (source,) = sources["sources"]
    assert (source["name"], [table["name"] for table in source["tables"]]) == ("events", ["impressions", "clicks"])

    rows = write_log(shop, 2000, tmp_path / "rows.parquet", layout="rows", seed=1)
    connection = duckdb.connect()
    connection.execute(
        f"""
        create schema events;
        -- List 7 lost an event, and list 8 has two items at one place. Every event came twice.
        create table events.impressions as
            select impression as list_id, context as query, item, if(impression = 8 and position = 2, 1, position) as
                position, timestamp '2026-11-15 23:59:59' as shown_at
            from '{rows}', range(2) where not (impression = 7 and position = 2);
        -- The day before and the day after.
        insert into events.impressions
            select list_id + 1000000, query, item, position, shown_at + interval 1 second from events.impressions
            union all
            select list_id + 2000000, query, item, position, shown_at - interval 1 day from events.impressions;
        create table events.clicks as
            select impression as list_id, item from '{rows}', range(2) where click = 1 union all select 3, -1;
        """
    )
    connection.execute(f"copy (from '{rows}' where impression not in (7, 8)) to '{tmp_path}/whole.parquet'")

    day: dict[str, str] = {"day": "2026-11-15"}
    for model in ("shown_items", "click_log"):
        config: dict[str, Any] = {}
        sql = compiled(model, config, day)
        connection.execute(f"create view {model} as {sql}")
    assert (config["materialized"], config["location"]) == ("external", "logs/2026-11-15/click_log.parquet")
    log = log_of(tmp_path, day["day"]).with_name(Path(config["location"]).name)
    connection.execute(f"copy click_log to '{log}' (format {config['format']})")

    for name, options in (("logs/2026-11-15/*.parquet", ""), ("whole.parquet", " --layout rows")):
        done = shell(f"prudent count '{name}' -o {Path(name).parts[0]}.counts.parquet{options}", tmp_path)
        assert (done.returncode, "Counted 1,998 lists" in done.stdout) == (0, True), done.stdout
    counted, expected = (
        duckdb.execute(f"from '{tmp_path}/{name}.counts.parquet' order by all").fetchall()
        for name in ("logs", "whole.parquet")
    )
    assert counted == expected


# Dockerfile


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, with what follows them."""
    lines = [line for line in (RECIPES / "Dockerfile").read_text().splitlines() if line and not line.startswith("#")]
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines)]


def test_dockerfile_has_what_the_package_is_built_from() -> None:
    copied = [shlex.split(rest)[:-1] for name, rest in instructions() if name == "COPY" and "--from" not in rest]
    files = {source for sources in copied for source in sources}
    assert all((ROOT / source).exists() for source in files)
    project = PROJECT["project"]
    (package,) = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    needed = {"pyproject.toml", "hatch_build.py", project["readme"], *project["license-files"], Path(package).parts[0]}
    assert files == needed


def test_dockerfile_installs_extras_that_exist() -> None:
    runs = [rest for name, rest in instructions() if name == "RUN"]
    assert not any(subprocess.run(["bash", "-n", "-c", run], check=False).returncode for run in runs)
    (install,) = [shlex.split(run) for run in runs if "pip install" in run]
    extras = Requirement(f"prudent{install[-1].removeprefix('.')}").extras
    assert extras
    assert extras <= set(PROJECT["project"]["optional-dependencies"])
    (check,) = [shlex.split(run) for run in runs if "kernel" in run]
    compile(check[-1], "Dockerfile", "exec")


def test_dockerfile_runs_the_command_as_a_user() -> None:
    parts = instructions()
    assert {name for name, _ in parts} <= {"FROM", "RUN", "WORKDIR", "COPY", "ENV", "USER", "ENTRYPOINT", "CMD"}
    last = dict(parts[max(at for at, (name, _) in enumerate(parts) if name == "FROM") :])
    assert last["USER"] == "prudent"
    assert last["RUN"].startswith("useradd ")
    assert last["RUN"].endswith(" prudent")
    assert last["COPY"].split() == ["--from=build", "/opt/prudent", "/opt/prudent"]
    minor = int(re.findall(r"^FROM python:3\.(\d+)-slim", (RECIPES / "Dockerfile").read_text(), re.MULTILINE)[-1])
    assert PROJECT["project"]["requires-python"] == ">=3.11"
    assert minor >= 11
    command = [*json.loads(last["ENTRYPOINT"]), *json.loads(last["CMD"])]
    assert command[0] in PROJECT["project"]["scripts"]
    done = shell(shlex.join(command), ROOT)
    assert (done.returncode, "Usage: prudent" in done.stdout) == (0, True)


# github-gate.yml


def run_workflow(folder: Path, log: Path) -> tuple[int, str, str]:
    """The commands of the workflow until one fails: its exit code, its name, what it printed."""
    workflow = yaml.safe_load((RECIPES / "github-gate.yml").read_text(encoding="utf-8"))
    assert workflow[True]["pull_request"]["paths"] == ["rules.json"]  # YAML reads `on` as a boolean
    (job,) = workflow["jobs"].values()
    assert job["defaults"]["run"]["shell"] == "bash"
    assert [key for key in job["env"] if not key.startswith("AWS_")] == ["LOG"]
    steps = [step for step in job["steps"] if "run" in step]
    assert len(steps) == 6
    for step in steps:
        done = shell(step["run"], folder, LOG=str(log), GITHUB_STEP_SUMMARY=str(folder / "summary"))
        if done.returncode:
            break
    return done.returncode, step["name"], done.stdout


def test_workflow_passes_a_good_policy(shop: World, tmp_path: Path) -> None:
    log = write_log(shop, 3 * LISTS, tmp_path / "clicks.parquet", seed=1)
    (tmp_path / "rules.json").write_text("{}")
    code, name, printed = run_workflow(tmp_path, log)
    assert (code, name) == (0, "Export"), printed
    assert (tmp_path / "summary").read_text().startswith("pass ")
    assert (tmp_path / "lists.jsonl").exists()


def test_workflow_fails_a_bad_policy(shop: World, tmp_path: Path) -> None:
    """Rules that exclude the best item of every context."""
    log = write_log(shop, 3 * LISTS, tmp_path / "clicks.parquet", seed=1)
    assert shell(f"prudent rank {log} -o best.parquet --length 1", tmp_path).returncode == 0
    best = [{"item": int(item)} for _, (item,) in Policy.read(tmp_path / "best.parquet").items()]
    (tmp_path / "rules.json").write_text(json.dumps({"exclude": best}))
    code, name, printed = run_workflow(tmp_path, log)
    assert (code, name) == (1, "Gate"), printed
    assert (tmp_path / "summary").read_text().startswith("fail ")
    assert not (tmp_path / "lists.jsonl").exists()
