"""A click model of another package works everywhere the day it is installed: in every command, and in Python."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from prudent.click_models.selection import names
from tests.command import Ran
from tests.plugins import toy_model

DISTRIBUTION = """[prudent.click_models]
distracted = toy_model:Distracted
"""

PROCESS = """
import json, sys
import prudent
from tests.command import run

model, commands = json.load(sys.stdin)
answers = [run(*command) for command in commands]

log, holdout = "parts/train.parquet", "parts/holdout.parquet"
counts = prudent.count(prudent.Log(log))
policy = prudent.rank(counts, model=model)
estimators = [f"dm(model={model})", f"dr(model={model}, clip=10)"]
assert policy.explain(next(iter(policy))).candidates
found = {
    "auto": prudent.rank(counts).manifest.settings["model"],
    "compare": [score.model for score in prudent.compare(prudent.Log(log)).scores],
    "tune": prudent.tune(prudent.Log(log), model=model, bound=["mle"], repetitions=2).model,
    "evaluate": [estimate.value for estimate in prudent.evaluate(policy, holdout, estimator=estimators)],
    "gate": prudent.gate(policy, holdout, estimator=f"dm(model={model})").estimate.lift,
    "per context": prudent.gate_contexts(policy, holdout, estimator=f"dm(model={model})").better,
    "diff": dict(prudent.diff(policy, prudent.rank(counts, model="cm")).contexts),
}
prudent.report(policy, holdout, to="python.html", estimator=f"dm(model={model})")
print(json.dumps([answers, found]))
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Where pip would have installed it."""
    site = tmp_path_factory.mktemp("site")
    shutil.copy(toy_model.__file__, site)
    metadata = site / "distracted-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: distracted\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(DISTRIBUTION)
    return {"PYTHONPATH": ":".join([str(site), *sys.path, str(Path(__file__).parents[2])])}


# Another's in the quick tier; ours, which every other contract test tries too, among the slow.
OURS = [pytest.param(name, marks=pytest.mark.slow) for name in names()]


@pytest.fixture(scope="module", params=["distracted", *OURS])
def model(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Answers(NamedTuple):
    commands: dict[str, Ran]
    python: dict[str, Any]
    report: str


@pytest.fixture(scope="module")
def answers(model: str, environment: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """Every command and its function, in a process of its own, on a log that the model itself has simulated."""
    folder = tmp_path_factory.mktemp("log")
    world = ["--contexts", 6, "--items", 6, 8, "--length", 4, "--zipf", 0, "--attraction", 2, 5]
    train, holdout = "parts/train.parquet", "parts/holdout.parquet"
    on_holdout, dm = ["policy.parquet", "--log", holdout], ["-e", f"dm(model={model})"]
    commands: dict[str, list[object]] = {
        "simulate": ["simulate", "--model", model, "--lists", 4_000, *world, "-o", "log.parquet"],
        "split": ["split", "log.parquet", "-o", "parts"],
        "rank": ["rank", train, "--model", model, "-o", "policy.parquet", "--scores", "scores.parquet", "--json"],
        "other": ["rank", train, "--model", "cm", "-o", "other.parquet"],
        "auto": ["rank", train, "-o", "auto.parquet", "--json"],
        "compare": ["compare", train, "--json"],
        "tune": ["tune", train, "--model", model, "--bound", "mle", "--repetitions", 2, "--json"],
        "evaluate": ["evaluate", *on_holdout, *dm, "-e", f"dr(model={model}, clip=10)", "--json"],
        "gate": ["gate", *on_holdout, *dm],
        "gate-contexts": ["gate-contexts", *on_holdout, *dm, "-o", "mixed.parquet"],
        "report": ["report", *on_holdout, *dm, "-o", "report.html", "--scores", "scores.parquet", "--train", train],
        "diff": ["diff", "policy.parquet", "other.parquet"],
        "plan": ["plan", *on_holdout],
        "verify": ["verify", *on_holdout],
        "judge": ["judge", train, "--model", model, "-o", "judgments.parquet"],
        "explore": ["explore", "policy.parquet", "--log", train, "--scores", "scores.parquet", "-o", "shown.parquet"],
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROCESS],
        input=json.dumps([model, list(commands.values())]),
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    ran, python = json.loads(done.stdout)
    by_name = {name: Ran(*answer) for name, answer in zip(commands, ran, strict=True)}
    return Answers(by_name, python, (folder / "report.html").read_text(encoding="utf-8"))


def test_every_command_takes_the_model(model: str, answers: Answers) -> None:
    for name, answer in answers.commands.items():
        assert answer.code in ((0, 1) if name in ("gate", "gate-contexts", "verify") else (0,)), answer.text
    said = {name: json.loads(answers.commands[name].out) for name in ("rank", "auto", "compare", "tune", "evaluate")}
    assert said["rank"]["settings"]["model"].startswith(model)
    assert said["auto"]["settings"]["model"] in (*names(), "distracted")
    assert {score["model"] for score in said["compare"]["scores"]} >= {*names(), "distracted"}
    assert said["tune"]["model"].startswith(model)
    assert all(estimate["value"] > 0 for estimate in said["evaluate"])
    assert model in answers.report
    assert "before" in answers.commands["diff"].out


def test_so_does_python(model: str, answers: Answers) -> None:
    assert "distracted" in answers.python["compare"]
    assert answers.python["tune"].startswith(model)
    assert all(value > 0 for value in answers.python["evaluate"])
