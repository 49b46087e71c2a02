"""Every command is one public call: command line and Python write the same bytes."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import duckdb
import pytest

import prudent
from prudent.click_models.simulate import write_log
from prudent.click_models.world import make_world
from tests.command import run

Call = Callable[[], Any]  # writes the files of the command below python/; returns what --json prints


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with its two parts, two days of counts, candidates, two policies and the scores of one."""
    folder = tmp_path_factory.mktemp("same")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_log(make_world("pbm", contexts=6, items=(5, 8), length=4, seed=3), 4000, "log.parquet", seed=3)
        prudent.split("log.parquet", ".")
        bought = "list_transform(clicks, lambda click, k: click * (items[k] % 3))"
        duckdb.execute(f"copy (select *, {bought} as margin from 'train.parquet') to 'margins.parquet'")
        duckdb.execute(f"copy (select *, {bought} as margin from 'holdout.parquet') to 'held_margins.parquet'")
        prudent.rank("margins.parquet", reward="margin").write("earning.parquet")
        for day, part in (("2026-11-01", "train"), ("2026-11-02", "holdout")):
            prudent.count(prudent.Log(f"{part}.parquet"), to="days", day=day)
        items = "select distinct context, unnest(items) as item from 'log.parquet' order by all"
        duckdb.execute(f"copy (from ({items}) where item % 2 = 0) to 'candidates.csv' (header)")
        duckdb.execute("copy (select 1000 as context, item from 'candidates.csv') to 'unseen.csv' (header)")
        brands = "select item, item % 3 as brand from 'candidates.csv' group by item order by item"
        duckdb.execute(f"copy ({brands}) to 'groups.csv' (header)")
        pairs = f"select context, item, (context * item) % 7 as match from ({items})"
        duckdb.execute(f"copy ({pairs}) to 'pairs.csv' (header)")
        counts = prudent.count(prudent.Log("train.parquet"), to="counts.parquet")
        Path("rules.json").write_text(json.dumps({"keep_first": 1, "at_most": {"kind": 2}, "item_groups": "items.csv"}))
        kinds = "select distinct unnest(items) as item, item % 3 as kind from 'log.parquet' order by all"
        duckdb.execute(f"copy ({kinds}) to 'items.csv' (header)")
        Path("names.csv").write_text("item,name,image,link\n0,Zero,https://x.example/0.png,https://x.example/0\n")
        prudent.rank(counts, "cm").write("old.parquet")
        prudent.rank(counts, "pbm").write("policy.parquet", "scores.parquet")
        prudent.judge(counts, to="judgments.parquet")
        prudent.explore("policy.parquet", counts, scores="scores.parquet", to="explored.parquet")
        Path("cli").mkdir()
        Path("python").mkdir()
    return folder


HOLDOUT = "holdout.parquet"


def count() -> Any:
    return prudent.count(
        "train.parquet", engine=prudent.DuckDB(threads=1), to="python/counts.parquet"
    ).manifest.to_json()


FILES: dict[str, Any] = {"to": "python/policy.parquet", "scores": "python/scores.parquet"}


def rank(source: Any, **settings: Any) -> Call:
    return lambda: prudent.rank(source, **FILES, **settings).manifest.to_json()


def diff() -> Any:
    difference = prudent.diff("old.parquet", "policy.parquet", to="python/diff.parquet")
    return {**difference.manifest.to_json(), **difference.sample(5)}


def explore() -> Any:
    known: dict[str, Any] = {"scores": "scores.parquet", "to": "python/lists.parquet"}
    return prudent.explore("policy.parquet", "counts.parquet", budget=0.02, lists=5000, **known).manifest.to_json()


def split() -> Any:
    return asdict(prudent.split(["log.parquet"], "python", holdout=0.3, seed=1))


def gate_contexts() -> Any:
    mixture = prudent.gate_contexts("policy.parquet", HOLDOUT, estimator="dm(model=pbm)", to="python/mixed.parquet")
    return mixture.to_json()


def report() -> Any:
    named: dict[str, Any] = {"names": "names.csv", "remote_images": True}
    prudent.report("policy.parquet", HOLDOUT, to="python/report.html", train="train.parquet", **named)


def report_rewards() -> Any:
    logs: dict[str, Any] = {"log": "held_margins.parquet", "train": "margins.parquet"}
    prudent.report("earning.parquet", to="python/report.html", reward="margin", **logs)


def simulate() -> None:
    prudent.simulate("python/log.jsonl", truth="python/truth.parquet", model="dcm", lists=200, contexts=5, seed=7)


POLICY = ("-o", "{to}/policy.parquet", "--scores", "{to}/scores.parquet")
COMMANDS: Mapping[str, tuple[tuple[str, ...], Call]] = {
    # name -> the command, with {to} for the folder of its files, and the call
    "count": (("count", "train.parquet", "-o", "{to}/counts.parquet", "--threads", "1", "--json"), count),
    "rank a log": (("rank", "train.parquet", *POLICY, "--json"), rank("train.parquet")),
    "rank by rewards": (
        ("rank", "margins.parquet", *POLICY, "--reward", "margin", "--bound", "eb", "--json"),
        rank("margins.parquet", reward="margin", bound="eb"),
    ),
    "count rewards": (
        ("count", "margins.parquet", "-o", "{to}/counts.parquet", "--reward", "margin", "--threads", "1", "--json"),
        lambda: prudent.count(
            "margins.parquet", reward="margin", engine=prudent.DuckDB(threads=1), to="python/counts.parquet"
        ).manifest.to_json(),
    ),
    "rank counts": (
        ("rank", "counts.parquet", *POLICY, "--model", "dcm", "--bound", "eb", "--length", "3", "--json"),
        rank("counts.parquet", model="dcm", bound="eb", length=3),
    ),
    "rank days": (
        ("rank", "days", *POLICY, "--since", "2026-11-01", "--half-life", "7d", "--json"),
        rank("days", since="2026-11-01", half_life="7d"),
    ),
    "rank robust lists": (("rank", "days", *POLICY, "--model", "robust", "--json"), rank("days", model="robust")),
    "rank by an ensemble": (
        ("rank", "days", *POLICY, "--model", "ensemble(model=ubm)", "--json"),
        rank("days", model="ensemble(model=ubm)"),
    ),
    "rank candidates": (
        ("rank", "counts.parquet", *POLICY, "--candidates", "candidates.csv", "--min-lists", "2", "--json"),
        rank("counts.parquet", candidates="candidates.csv", min_lists=2),
    ),
    "rank unseen contexts": (
        ("rank", "counts.parquet", *POLICY, "--candidates", "unseen.csv", "--unseen", "--groups", "item", "--json"),
        rank("counts.parquet", candidates="unseen.csv", unseen=True, groups="item"),
    ),
    "rank with groups": (
        (
            *("rank", "counts.parquet", *POLICY, "--groups", "item", "--item-groups", "groups.csv"),
            *("--bound", "anchored(lead=clicks)", "--json"),
        ),
        rank("counts.parquet", groups="item", item_groups="groups.csv", bound="anchored(lead=clicks)"),
    ),
    "rank with features": (
        (
            *("rank", "counts.parquet", *POLICY, "--features", "groups.csv", "--features", "pairs.csv"),
            *("--feature-model", "ridge", "--json"),
        ),
        rank("counts.parquet", features=["groups.csv", "pairs.csv"], feature_model="ridge"),
    ),
    "rank with rules": (
        ("rank", "counts.parquet", *POLICY, "--rules", "rules.json", "--json"),
        rank("counts.parquet", rules="rules.json"),
    ),
    "rank a baseline": (
        ("rank", "train.parquet", *POLICY, "--baseline", "ips(clip=50)", "--json"),
        lambda: prudent.rank_baseline("train.parquet", "ips(clip=50)", **FILES).manifest.to_json(),
    ),
    "judge": (
        ("judge", "counts.parquet", "-o", "{to}/judgments.parquet", "--thresholds", "0.1,0.2,0.3,0.5", "--json"),
        lambda: prudent.judge(
            "counts.parquet", thresholds=[0.1, 0.2, 0.3, 0.5], to="python/judgments.parquet"
        ).manifest.to_json(),
    ),
    "judge days": (
        ("judge", "days", "-o", "{to}/judgments.parquet", "--half-life", "7d", "--candidates", "candidates.csv"),
        lambda: prudent.judge("days", half_life="7d", candidates="candidates.csv", to="python/judgments.parquet"),
    ),
    "explore": (
        (
            *("explore", "policy.parquet", "--log", "counts.parquet", "--scores", "scores.parquet"),
            *("-o", "{to}/lists.parquet", "--budget", "2%", "--lists", "5000", "--json"),
        ),
        explore,
    ),
    "export an exploration": (
        ("export", "explored.parquet", "--format", "redis(key=lists)", "-o", "{to}/lists.resp", "--json"),
        lambda: prudent.export("explored.parquet", "python/lists.resp", format="redis(key=lists)").to_json(),
    ),
    "export judgments": (
        ("export", "judgments.parquet", "-o", "{to}/judgments.qrels", "--json"),
        lambda: prudent.export("judgments.parquet", "python/judgments.qrels").to_json(),
    ),
    "check": (("check", "train.parquet", "--json"), lambda: prudent.check("train.parquet").to_json()),
    "diff": (("diff", "old.parquet", "policy.parquet", "-o", "{to}/diff.parquet", "--json"), diff),
    "split": (("split", "log.parquet", "-o", "{to}", "--holdout", "0.3", "--seed", "1", "--json"), split),
    "compare": (("compare", "log.parquet", "--json"), lambda: prudent.compare("log.parquet").to_json()),
    "tune": (
        ("tune", "log.parquet", "--repetitions", "2", "--delta", "0.5", "--model", "pbm", "--json"),
        lambda: prudent.tune("log.parquet", repetitions=2, delta=[0.5], model="pbm").to_json(),
    ),
    "evaluate": (
        ("evaluate", "policy.parquet", "--log", "holdout.parquet", "--replicates", "20", "--json"),
        lambda: prudent.evaluate("policy.parquet", HOLDOUT, replicates=20).to_json(),
    ),
    "evaluate by rewards": (
        ("evaluate", "policy.parquet", "--log", "margins.parquet", "--reward", "margin", "-e", "dr", "--json"),
        lambda: prudent.evaluate("policy.parquet", "margins.parquet", reward="margin", estimator="dr").to_json(),
    ),
    "gate": (
        ("gate", "policy.parquet", "--log", "holdout.parquet", "-e", "dm(model=pbm)", "--json"),
        lambda: prudent.gate("policy.parquet", HOLDOUT, estimator="dm(model=pbm)").to_json(),
    ),
    "plan": (
        ("plan", "policy.parquet", "--log", "holdout.parquet", "--lift", "2%", "--days", "7", "--json"),
        lambda: prudent.plan("policy.parquet", HOLDOUT, lift=0.02, days=7).to_json(),
    ),
    "verify": (
        ("verify", "policy.parquet", "--log", HOLDOUT, "--promised", "0.01", "-o", "{to}/metrics.prom", "--json"),
        lambda: prudent.verify("policy.parquet", HOLDOUT, promised=0.01, to="python/metrics.prom").to_json(),
    ),
    "gate per context": (
        (
            *("gate-contexts", "policy.parquet", "--log", "holdout.parquet", "-e", "dm(model=pbm)"),
            *("-o", "{to}/mixed.parquet", "--json"),
        ),
        gate_contexts,
    ),
    "report": (
        (
            *("report", "policy.parquet", "--log", "holdout.parquet", "--train", "train.parquet"),
            *("--names", "names.csv", "--remote-images", "-o", "{to}/report.html"),
        ),
        report,
    ),
    "report by rewards": (
        (
            *("report", "earning.parquet", "--log", "held_margins.parquet", "--train", "margins.parquet"),
            *("--reward", "margin", "-o", "{to}/report.html"),
        ),
        report_rewards,
    ),
    "export": (
        ("export", "policy.parquet", "--format", "sql(table=lists)", "-o", "{to}/lists.sql", "--json"),
        lambda: prudent.export("policy.parquet", "python/lists.sql", format="sql(table=lists)").to_json(),
    ),
    "simulate": (
        (
            *("simulate", "-o", "{to}/log.jsonl", "--truth", "{to}/truth.parquet", "--model", "dcm"),
            *("--lists", "200", "--contexts", "5", "--seed", "7"),
        ),
        simulate,
    ),
}


def files(folder: str) -> dict[str, Any]:
    """The bytes of every file; of counts the rows and the footer, since the order of cells is free."""
    return {path.name: _content(path) for path in sorted(Path(folder).iterdir())}


def _content(path: Path) -> Any:
    if path.name != "counts.parquet":
        return path.read_bytes()
    footer = duckdb.execute(f"select key, value from parquet_kv_metadata('{path}') order by key").fetchall()
    return duckdb.execute(f"from '{path}' order by all").fetchall(), footer


def without_seconds(content: Any) -> Any:
    """Times differ from run to run."""
    if isinstance(content, dict):
        return {key: without_seconds(value) for key, value in content.items() if key != "seconds"}
    return [without_seconds(value) for value in content] if isinstance(content, list) else content


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.filterwarnings("ignore::prudent.PrudentWarning")
def test_the_same_bytes(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    for place in ("cli", "python"):
        for path in Path(place).iterdir():
            path.unlink()
    args, call = COMMANDS[name]
    ran = run(*(arg.format(to="cli") for arg in args))
    assert ran.code in ((0, 1) if name.startswith("gate") else (0,)), ran.err
    result = call()
    assert files("cli") == files("python")
    assert bool(files("cli")) == any("{to}" in arg for arg in args)
    if "--json" in args:
        expected = json.loads(json.dumps(result, default=str).replace("NaN", "null").replace('"python/', '"cli/'))
        assert without_seconds(json.loads(ran.out)) == without_seconds(expected)


PLACES = ("cli-days", "python-days")


def test_compact(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compacting changes a folder: each side has its own copy. The order of counts is free."""
    monkeypatch.chdir(folder)
    for place in PLACES:
        for day, part in (("2026-11-01", "train"), ("2026-11-02", "holdout"), ("2026-11-03", "train")):
            prudent.count(prudent.Log(f"{part}.parquet"), engine=prudent.DuckDB(threads=1), to=place, day=day)
    assert run("compact", "cli-days", "--before", "2026-11-03", "--threads", 1).code == 0
    prudent.compact("python-days", "2026-11-03", engine=prudent.DuckDB(threads=1))
    ours, theirs = (sorted(path.relative_to(place) for path in Path(place).rglob("*.parquet")) for place in PLACES)
    assert ours == theirs
    assert len(ours) == 2
    assert prudent.Counts.read(PLACES[0]) == prudent.Counts.read(PLACES[1])
