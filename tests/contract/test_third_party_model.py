"""A click model of another package works everywhere the day it is installed: in every command, and in Python."""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from prudent.click_models.selection import names
from tests.command import Ran, run_process
from tests.plugins import toy_model

DISTRIBUTION = """[prudent.click_models]
distracted = toy_model:Distracted
"""

IN_PYTHON = """
import json, sys
import prudent

model = sys.argv[1]
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
print(json.dumps(found))
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
    return {"PYTHONPATH": ":".join([str(site), *sys.path])}


# Ours and another's in the quick tier; the rest of ours, which every other contract test tries too, among the slow.
OTHERS = [pytest.param(name, marks=pytest.mark.slow) for name in names() if name != "dcm"]


@pytest.fixture(scope="module", params=["dcm", "distracted", *OTHERS])
def model(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def folder(model: str, environment: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log that the model itself has simulated, in two parts."""
    folder = tmp_path_factory.mktemp("log")
    settings = ["--contexts", 6, "--items", 6, 8, "--length", 4, "--zipf", 0, "--attraction", 2, 5]
    simulate = ["simulate", "--model", model, "--lists", 4_000, *settings, "-o", "log.parquet"]
    for command in (simulate, ["split", "log.parquet", "-o", "parts"]):
        done = run_process(*command, env=environment, folder=folder)
        assert done.code == 0, done.text
    return folder


def test_every_command_takes_the_model(model: str, folder: Path, environment: Mapping[str, str]) -> None:
    def run(*command: object, codes: tuple[int, ...] = (0,)) -> Ran:
        done = run_process(*command, env=environment, folder=folder)
        assert done.code in codes, done.text
        return done

    train, holdout = "parts/train.parquet", "parts/holdout.parquet"
    ranked = run("rank", train, "--model", model, "-o", "policy.parquet", "--scores", "scores.parquet", "--json")
    assert json.loads(ranked.out)["settings"]["model"].startswith(model)
    run("rank", train, "--model", "cm", "-o", "other.parquet")
    assert json.loads(run("rank", train, "-o", "auto.parquet", "--json").out)["settings"]["model"] in (
        *names(),
        "distracted",
    )
    compared = json.loads(run("compare", train, "--json").out)
    assert {score["model"] for score in compared["scores"]} >= {*names(), "distracted"}
    tuned = run("tune", train, "--model", model, "--bound", "mle", "--repetitions", 2, "--json")
    assert json.loads(tuned.out)["model"].startswith(model)
    estimators = ["-e", f"dm(model={model})", "-e", f"dr(model={model}, clip=10)"]
    evaluated = run("evaluate", "policy.parquet", "--log", holdout, *estimators, "--json")
    assert all(estimate["value"] > 0 for estimate in json.loads(evaluated.out))
    judged = ["policy.parquet", "--log", holdout]
    run("gate", *judged, "-e", f"dm(model={model})", codes=(0, 1))
    run("gate-contexts", *judged, "-e", f"dm(model={model})", "-o", "mixed.parquet", codes=(0, 1))
    run(
        "report",
        *judged,
        "-e",
        f"dm(model={model})",
        "-o",
        "report.html",
        "--scores",
        "scores.parquet",
        "--train",
        train,
    )
    assert model in (folder / "report.html").read_text(encoding="utf-8")
    assert "before" in run("diff", "policy.parquet", "other.parquet").out


def test_so_does_python(model: str, folder: Path, environment: Mapping[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", IN_PYTHON, model],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    actual = json.loads(done.stdout)
    assert "distracted" in actual["compare"]
    assert actual["tune"].startswith(model)
    assert all(value > 0 for value in actual["evaluate"])
