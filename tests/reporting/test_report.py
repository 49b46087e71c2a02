"""`prudent.report` and `prudent report`: files in, one page out, and mistakes told in a line."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from html import unescape
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import prudent
import prudent.engines.duckdb.count as duckdb_count
from prudent.base.errors import UsageError, WriteError
from prudent.click_models.simulate import write_log
from prudent.evaluation.evaluate import evaluate
from prudent.evaluation.gate import gate
from prudent.reporting import report
from prudent.research.demo import shop
from tests.command import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shop's log in two parts, and what `prudent rank` makes of the first."""
    made = tmp_path_factory.mktemp("report")
    world = shop(seed=0)
    for name, lists, seed in (("train", 1200, 1), ("held_out", 800, 2)):
        write_log(world, lists, made / f"{name}.parquet", seed=seed)
    counts = prudent.count(prudent.Log(made / "train.parquet"), to=made / "counts.parquet")
    prudent.rank(counts).write(made / "policy.parquet", made / "scores.parquet")
    return made


def page_of(folder: Path, *options: object) -> str:
    done = run(
        "report", folder / "policy.parquet", "--log", folder / "held_out.parquet", "-o", folder / "page.html", *options
    )
    assert done.code == 0, done.text
    return (folder / "page.html").read_text(encoding="utf-8")


def test_the_command_writes_what_the_function_writes(folder: Path) -> None:
    by_command = page_of(
        folder, "--scores", folder / "scores.parquet", "--train", folder / "train.parquet", "--title", "T"
    )
    train = prudent.Log(folder / "train.parquet")
    policy = prudent.Policy.read(folder / "policy.parquet", folder / "scores.parquet")
    report(policy, prudent.Log(folder / "held_out.parquet"), to=folder / "other.html", train=train, title="T")
    assert by_command == (folder / "other.html").read_text(encoding="utf-8")


def test_its_estimates_are_those_of_evaluate_and_its_verdict_that_of_gate(folder: Path) -> None:
    policy, log = prudent.Policy.read(folder / "policy.parquet"), prudent.Log(folder / "held_out.parquet")
    data = report(policy, log, to=folder / "page.html", confidence=0.9, seed=3)
    assert data["estimates"] == [asdict(one) for one in evaluate(policy, log, confidence=0.9, seed=3)]
    verdict = gate(policy, log, confidence=0.9, seed=3)
    word = {"pass": "The gate passes", "fail": "The gate fails", "unknown": "The gate cannot tell"}[verdict.verdict]
    shown = {"verdict": verdict.verdict, "word": word, "why": verdict.why, "min_lift": 0.0}
    assert data["verdict"].pop("plain").startswith("The new lists are expected to get")
    assert data["verdict"] == {**shown, "acknowledged": [], "segments": []}


def test_what_was_ranked_here_and_now_needs_no_files(folder: Path) -> None:
    policy = prudent.rank(prudent.Counts.read(folder / "counts.parquet"))
    data = prudent.report(policy, prudent.Log(folder / "held_out.parquet"), to=folder / "fresh.html")
    assert data["contexts"]["notes"] == []
    assert data["contexts"]["fallen"]["known"]


def test_counts_will_do_for_training(folder: Path) -> None:
    page = page_of(folder, "--scores", folder / "scores.parquet", "--train", folder / "counts.parquet")
    assert "too little to trust" in page
    assert "describe the training log" in page


def test_without_training_it_says_what_it_does_not_know(folder: Path) -> None:
    page = page_of(folder)
    assert "Only listed items have scores" in page
    assert "describe the holdout" in page


@pytest.mark.parametrize(
    "options",
    [{"personalised": True}, {"acknowledge": ["click-model"], "estimator": "dm(model=cm)"}, {"min_support": 1.0}],
    ids=["personalised", "acknowledge", "min_support"],
)
def test_its_gate_takes_what_the_gate_takes(options: dict[str, Any], folder: Path) -> None:
    policy, log = folder / "policy.parquet", folder / "held_out.parquet"
    verdict = gate(policy, log, **options)
    assert verdict.why != gate(policy, log, estimator=options.get("estimator", "dr(clip=10)")).why
    assert bool(verdict.acknowledged) == ("acknowledge" in options)
    data = report(policy, log, to=folder / "python.html", **options)["verdict"]
    assert (data["verdict"], data["why"], data["acknowledged"]) == (
        *(verdict.verdict, verdict.why),
        list(verdict.acknowledged),
    )
    words: dict[str, list[object]] = {
        "personalised": ["--personalised"],
        "acknowledge": ["--acknowledge", "click-model"],
    }
    words |= {"min_support": ["--min-support", 1.0], "estimator": ["-e", options.get("estimator")]}
    page = unescape(page_of(folder, *(word for name in options for word in words[name])))
    assert page == unescape((folder / "python.html").read_text(encoding="utf-8"))
    assert all(f"Acknowledged: {one}" in page for one in verdict.acknowledged)


def test_any_click_is_another_reward(folder: Path) -> None:
    assert "Lists with a click" in page_of(folder, "--reward", "any-click")


def test_the_gate_asks_the_estimator_that_it_is_told(folder: Path) -> None:
    asked = ("report", folder / "policy.parquet", "--log", folder / "held_out.parquet", "-o", folder / "page.html")
    said = json.loads(run(*asked, "--json", "--estimator", "dm(model=dcm)").out)
    assert said["headline"]["estimator"] == "dm(model=dcm)"
    assert [one["estimator"] for one in said["estimates"]].count("dm(model=dcm)") == 1
    assert said["verdict"]["why"].startswith("dm(model=dcm) (click model alone): ")
    # Both limits at the same confidence, and not those of the gate, which are on one side.
    assert {key: value for key, value in said["headline"].items() if key != "in_words"} in said["estimates"]


def test_it_says_in_the_terminal_what_the_gate_said(folder: Path) -> None:
    done = run("report", folder / "policy.parquet", "--log", folder / "held_out.parquet", "-o", folder / "page.html")
    assert done.out.startswith("The gate ")
    assert f"The report is in {folder / 'page.html'}" in done.out
    asked = ("report", folder / "policy.parquet", "--log", folder / "held_out.parquet", "-o", folder / "page.html")
    said = json.loads(run(*asked, "--json").out)
    assert set(said) == {"output", "explorable", "title", "verdict", "headline", "change", "estimates"}
    assert said["change"]["contexts"] == len(prudent.Policy.read(folder / "policy.parquet"))


def test_a_gate_that_asks_for_too_much_says_no_and_the_report_is_written(folder: Path) -> None:
    known = "dm(model=pbm(examination=[1, 0.64, 0.44, 0.36, 0.36, 0.31, 0.25, 0.24, 0.24, 0.23]))"
    assert "The gate fails" in page_of(folder, "--min-lift", "5", "--estimator", known)


def test_a_comparison_that_fails_does_not_stop_the_report(folder: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"copy (select * from '{folder}/held_out.parquet' limit 1) to '{folder}/one.parquet'")
    data = report(
        prudent.Policy.read(folder / "policy.parquet"), prudent.Log(folder / "one.parquet"), to=folder / "one.html"
    )
    why = data["comparison"]["why"]
    assert why == "There is no list to score models on: the log is too short, or the holdout too small."
    assert why in " ".join(unescape((folder / "one.html").read_text(encoding="utf-8")).split())


def test_an_estimator_that_is_none_is_told(folder: Path) -> None:
    policy, log = prudent.Policy.read(folder / "policy.parquet"), prudent.Log(folder / "held_out.parquet")
    with pytest.raises(UsageError, match="3 is not an estimator"):
        report(policy, log, to=folder / "page.html", estimator=3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--log", "counts.parquet"], 3, "counts, which do not keep whole lists"),
        (["--log", "held_out.parquet", "--estimator", "dx"], 2, "No estimator is called 'dx'"),
        (["--log", "nothing.parquet"], 3, "There is no file"),
        (["--log", "held_out.parquet", "--confidence", "2"], 2, "confidence is 2"),
        (["--log", "held_out.parquet", "--scores", "policy.parquet"], 3, "has no scores"),
        (["--log", "held_out.parquet", "--train", "train.parquet", "--since", "3d"], 2, "applies to counts by day"),
        (["--log", "held_out.parquet", "-o", "missing/page.html"], 4, "no folder"),
        (["--log", "held_out.parquet", "-o", "policy.parquet"], 2, "named twice"),
    ],
)
def test_mistakes_are_told_in_a_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], code: int, said: str
) -> None:
    monkeypatch.chdir(folder)
    done = run("report", "policy.parquet", *(["-o", "page.html"] if "-o" not in options else []), *options)
    assert done.code == code, done.text
    assert said in done.text


def test_a_log_of_other_contexts_is_told_as_that(folder: Path) -> None:
    with duckdb.connect() as connection:
        elsewhere = f"select * replace ('other ' || context as context) from '{folder}/held_out.parquet'"
        connection.execute(f"copy ({elsewhere}) to '{folder}/elsewhere.parquet'")
    done = run("report", folder / "policy.parquet", "--log", folder / "elsewhere.parquet", "-o", folder / "page.html")
    assert done.code == 0
    assert "No context of the policy is in the holdout" in done.out
    assert "lists differ" not in done.out
    assert "none of which is in the holdout" in " ".join((folder / "page.html").read_text().split())


def test_what_it_is_made_from_is_not_overwritten(folder: Path) -> None:
    policy = prudent.Policy.read(folder / "policy.parquet", folder / "scores.parquet")
    for file in ("policy.parquet", "scores.parquet", "held_out.parquet"):
        before = (folder / file).read_bytes()
        with pytest.raises(UsageError, match="is named twice"):
            report(policy, prudent.Log(folder / "held_out.parquet"), to=folder / file)
        assert (folder / file).read_bytes() == before


def test_a_title_is_shown_as_it_is_written(folder: Path) -> None:
    page = page_of(folder, "--title", "Shop\u202e <b>bold</b>")
    assert "<title>Shop\\u202e &lt;b&gt;bold&lt;/b&gt;</title>" in page
    assert "\u202e" not in page


def test_what_is_no_policy_or_no_log_is_told(folder: Path) -> None:
    policy, log = prudent.Policy.read(folder / "policy.parquet"), prudent.Log(folder / "held_out.parquet")
    with pytest.raises(UsageError, match="is not a policy"):
        report(log, log, to=folder / "x.html")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="counts do not keep whole lists"):
        report(policy, prudent.Counts.read(folder / "counts.parquet"), to=folder / "x.html")
    with pytest.raises(WriteError):
        report(policy, log, to=folder)


def test_each_log_is_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """evaluate, count, check and compare each read it again."""
    read: list[str] = []
    original = duckdb_count.opened  # type: ignore[attr-defined]

    @contextmanager
    def counting(connection: Any, log: prudent.Log) -> Iterator[Any]:
        read.append(Path(str(log.source)).name)
        with original(connection, log) as source:
            yield source

    monkeypatch.setattr(duckdb_count, "opened", counting)
    for train in (None, folder / "train.parquet"):
        read.clear()
        report(folder / "policy.parquet", folder / "held_out.parquet", train=train, to=folder / "once.html")
        assert read.count("held_out.parquet") == 1
        assert read.count("train.parquet") == (train is not None)


def test_the_report_counts_what_was_rejected(folder: Path) -> None:
    """The temporary file has accepted lists alone; the numbers of the page are those of the log."""
    table = pq.read_table(folder / "held_out.parquet").to_pylist()
    table[0]["clicks"] = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    pq.write_table(pa.Table.from_pylist(table), folder / "one_bad.parquet")
    data = report(folder / "policy.parquet", folder / "one_bad.parquet", to=folder / "bad.html")
    source = data["evaluated"]["sources"]["holdout"]
    assert sum(source["rejected"].values()) == 1
    assert source["lists"] == len(table) - 1
    assert source["inputs"] == [str(folder / "one_bad.parquet")]
    assert [n for _, n in data["health"]["rejected"]] == [1]
