"""The report in the unit of a reward: what gate and evaluate find, what the policy was ranked by, and in its words."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from html import unescape
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

import prudent
import prudent.engines.duckdb.count as duckdb_count
from prudent.base.errors import LogError
from prudent.base.text import visible
from prudent.click_models.simulate import write_log
from prudent.click_models.world import make_world
from prudent.evaluation.estimators import parse
from prudent.evaluation.holdout_log import open_holdout
from prudent.reporting import report
from prudent.reporting.changes import winners_and_losers
from prudent.reporting.contexts import finite
from tests.command import run

LOWER, MEAN, UPPER = 5, 6, 7  # of a candidate in the data of a page


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log in which one click in three earns something, in two parts, and policies by margin and by clicks."""
    folder = tmp_path_factory.mktemp("rewards")
    world = make_world("pbm", contexts=8, items=(5, 7), length=3, seed=5)
    earned = "if(clicks[k] = 1 and md5_number_lower(concat(rn, ' ', k)) % 3 = 0, 2.5 + item % 4 * 10, 0)"
    for name, lists, seed in (("train", 4_000, 1), ("holdout", 3_000, 2)):
        write_log(world, lists, folder / "clicks.parquet", seed=seed)
        duckdb.execute(
            f"copy (select context, items, clicks, if(rn % 3 = 0, 'phone', 'desk') as device, "
            f"list_transform(items, lambda item, k: {earned}) as margin "
            f"from (select *, row_number() over () as rn from '{folder}/clicks.parquet')) "
            f"to '{folder}/{name}.parquet'"
        )
    for name, reward in (("margin", "margin"), ("clicks", None)):
        prudent.rank(
            folder / "train.parquet",
            reward=reward,
            to=folder / f"by_{name}.parquet",
            scores=folder / f"{name}s.parquet",
        )
    return folder


def text_of(page: Path) -> str:
    return " ".join(unescape(re.sub("<[^>]*>", "", page.read_text(encoding="utf-8"))).split())


@pytest.fixture(scope="module")
def made(folder: Path) -> tuple[dict[str, Any], Path]:
    """The report of the policy by margin, in margin, with all that it can know."""
    page = folder / "made.html"
    given: dict[str, Any] = {
        "scores": folder / "margins.parquet",
        "train": folder / "train.parquet",
        "segment": "device",
    }
    return report(folder / "by_margin.parquet", folder / "holdout.parquet", reward="margin", to=page, **given), page


@pytest.mark.parametrize(
    ("policy", "reward", "ranked_by"),
    [("by_clicks", "margin", "clicks"), ("by_margin", "clicks", "margin"), ("by_margin", "any-click", "margin")],
)
def test_a_policy_by_another_reward_is_gated_and_named_as_that(
    policy: str, reward: str, ranked_by: str, folder: Path
) -> None:
    made, log, page = folder / f"{policy}.parquet", folder / "holdout.parquet", folder / "other.html"
    data = report(made, log, reward=reward, to=page)
    assert data["estimates"] == [asdict(one) for one in prudent.evaluate(made, log, reward=reward)]
    verdict = prudent.gate(made, log, reward=reward)
    assert (data["verdict"]["verdict"], data["verdict"]["why"]) == (verdict.verdict, verdict.why)
    assert (data["headline"]["sensitivity"] is None) == (reward == "margin")
    assert data["reward"]["ranked_by"] == ranked_by
    assert f". The policy was ranked by {ranked_by}. " in text_of(page)
    assert ('"rewards":true' in page.read_text()) == (policy == "by_margin")  # the unit of its items


def test_it_finds_what_gate_and_evaluate_find(made: tuple[dict[str, Any], Path], folder: Path) -> None:
    data, _ = made
    policy, log = folder / "by_margin.parquet", folder / "holdout.parquet"
    evaluation = prudent.evaluate(policy, log, reward="margin")
    assert data["estimates"] == [asdict(one) for one in evaluation]
    assert {**data["headline"], "in_words": ""} == {**asdict(evaluation["dr(clip=10)"]), "in_words": ""}
    verdict = prudent.gate(policy, log, reward="margin", segment="device")
    assert (data["verdict"]["verdict"], data["verdict"]["why"]) == (verdict.verdict, verdict.why)


def test_it_is_worded_as_a_reward(made: tuple[dict[str, Any], Path]) -> None:
    data, page = made
    assert re.match(r"The new lists are expected to earn [\d.,]+% more reward than today's\.", data["verdict"]["plain"])
    text = text_of(page)
    for right in (
        "they are estimated to earn",
        "more reward than the logged lists",
        "The reward is margin: what clicks were worth.",
        "Bounds are of what an examination earns, by the reward margin.",
        "on what an examination earns holds for about as many items",
        "rewards have no odds",
    ):
        assert right in text
    for wrong in (
        "more clicks",
        "fewer clicks",
        "Clicks per list",
        "103 clicks instead",
        "Only clicks are measured",
        "Γ =",
        "built-in",
    ):
        assert wrong not in text
    assert data["reward"]["ranked_by"] == ""


def test_the_numbers_of_items_are_those_of_the_policy(made: tuple[dict[str, Any], Path], folder: Path) -> None:
    data, _ = made
    policy = prudent.Policy.read(folder / "by_margin.parquet", folder / "margins.parquet")
    scores = policy.scores().project("context, item, lower, mean, upper, impressions").fetchall()
    known = {(visible(context), visible(item)): rest for context, item, *rest in scores}
    rows = [(one["name"], row) for one in data["contexts"]["shown"] for row in one["rows"]]
    assert len(rows) == len(known)
    for context, row in rows:
        *numbers, impressions = known[context, row[0]]
        assert [row[LOWER], row[MEAN], row[UPPER]] == [finite(value) for value in numbers]
        assert row[3] == impressions
    assert max(row[UPPER] for _, row in rows) > 1  # no attraction would be
    clicks = prudent.count(folder / "train.parquet", reward="margin").index.clicks
    assert sum(row[4] for _, row in rows) == clicks


def test_a_reward_of_one_per_click_is_a_click(folder: Path) -> None:
    """Of n per click, n clicks: means, and chances of being worse, as far as the mean of all clicks is certain."""
    policy = prudent.Policy.read(folder / "by_clicks.parquet")
    by_clicks = winners_and_losers(
        open_holdout(policy, folder / "holdout.parquet", None, 1.0), parse("dm(model=pbm)"), "clicks"
    )
    alike = duckdb.sql(
        f"select *, list_transform(clicks, lambda click: 3 * click) as three from '{folder}/holdout.parquet'"
    )
    holdout = open_holdout(policy, alike, None, 1.0, reward="three")
    by_reward = winners_and_losers(holdout, parse("dm(model=pbm)"), "rewards")
    assert len(by_clicks["winners"]) > 3
    for kind in ("winners", "losers", "risks"):
        for one, other in zip(by_clicks[kind], by_reward[kind], strict=True):
            assert (one["context"], one["lists"]) == (other["context"], other["lists"])
            assert (3 * one["before"], 3 * one["after"]) == pytest.approx((other["before"], other["after"]), rel=1e-6)
            assert one["worse"] == pytest.approx(other["worse"], abs=1e-3)
    for kind in ("items_up", "items_down"):
        for one, other in zip(by_clicks[kind], by_reward[kind], strict=True):
            assert (one["item"], 3 * one["after"]) == (other["item"], pytest.approx(other["after"], rel=1e-5))


def test_each_log_is_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    original = duckdb_count.opened  # type: ignore[attr-defined]

    @contextmanager
    def counting(connection: Any, log: prudent.Log) -> Iterator[Any]:
        read.append(str(log.source))
        with original(connection, log) as source:
            yield source

    monkeypatch.setattr(duckdb_count, "opened", counting)
    ways: list[dict[str, Any]] = [{}, {"train": folder / "train.parquet"}]
    for way in ways:
        read.clear()
        report(
            folder / "by_margin.parquet", folder / "holdout.parquet", reward="margin", to=folder / "once.html", **way
        )
        assert read.count(str(folder / "holdout.parquet")) == 1
        assert read.count(str(folder / "train.parquet")) == ("train" in way)


def test_a_segment_has_the_estimate_of_its_lists_alone(made: tuple[dict[str, Any], Path], folder: Path) -> None:
    data, policy = made[0], folder / "by_margin.parquet"
    (segment,) = data["segments"]
    assert [one["value"] for one in segment["values"]] == ["desk", "phone"]
    for one in segment["values"]:
        part = duckdb.sql(
            f"select context, items, clicks, margin from '{folder}/holdout.parquet' where device = '{one['value']}'"
        )
        alone = prudent.evaluate(policy, part, estimator="dr(clip=10)", reward="margin")[0]
        assert one["lift"] is not None
        assert (one["lift"], one["lift_low"], one["lift_high"]) == (alone.lift, alone.lift_low, alone.lift_high)


@pytest.mark.parametrize("name", ["</script><b>it's \"&amp;", "\u202enigram"])
def test_the_name_of_a_reward_is_text(name: str, folder: Path) -> None:
    parts = [pq.read_table(folder / f"{part}.parquet") for part in ("train", "holdout")]
    train, holdout = (table.rename_columns([*table.column_names[:-1], name]) for table in parts)
    page = folder / "hostile.html"
    report(prudent.rank(train, reward=name), holdout, train=train, reward=name, to=page)
    shown = page.read_text(encoding="utf-8")
    assert name not in shown
    assert "<b>it" not in shown
    assert f"The reward is {visible(name)}: what clicks were worth." in " ".join(
        unescape(re.sub("</?bdi>", "", shown)).split()
    )


@pytest.mark.parametrize("policy", ["by_margin", "by_clicks"])
def test_a_missing_column_is_named(policy: str, folder: Path) -> None:
    given: dict[str, Any] = {"train": folder / "train.parquet", "to": folder / "missing.html"}
    with pytest.raises(LogError, match=r"holdout\.parquet has no column 'marign' for the reward.* margin"):
        report(folder / f"{policy}.parquet", folder / "holdout.parquet", reward="marign", **given)
    done = run(
        *("report", folder / f"{policy}.parquet", "--log", folder / "holdout.parquet", "--reward", "anyclick"),
        *("-o", folder / "missing.html"),
    )
    assert (done.code, "There is no reward 'anyclick'" in done.text) == (2, True)
    assert not (folder / "missing.html").exists()


def test_counts_of_another_reward_are_not_those_of_the_policy(folder: Path) -> None:
    for policy, reward in (("by_margin", None), ("by_clicks", "margin")):
        counts = prudent.count(folder / "train.parquet", reward=reward)
        with pytest.raises(LogError, match=r"The policy was ranked by .* was counted by "):
            report(folder / f"{policy}.parquet", folder / "holdout.parquet", train=counts, to=folder / "p.html")


def test_where_nothing_was_earned_the_page_says_so(folder: Path) -> None:
    nothing = duckdb.sql(
        f"select * replace (list_transform(margin, lambda one: 0) as margin) from '{folder}/holdout.parquet'"
    )
    page = folder / "nothing.html"
    data = report(folder / "by_margin.parquet", nothing, reward="margin", to=page)
    assert data["headline"]["lift"] is None
    assert "Not known: No click on an item of the policy has a reward above 0." in text_of(page)


def test_actions_of_user_behavior_insights_are_worth_what_the_user_says(tmp_path: Path) -> None:
    """A purchase counts as a click in the training log too, as it did for the policy; CLI and Python agree."""
    for part, later in (("train", 0), ("holdout", 1)):
        with (tmp_path / f"{part}.ndjson").open("w") as file:
            for n in range(400):
                hits = ["a", "b", "c"][n % 3 :] + ["a", "b", "c"][: n % 3]
                query = {"query_id": f"{part}{n}", "user_query": "shoes", "query_response_hit_ids": hits}
                file.write(json.dumps(query) + "\n")
                for action, item, every in (("click", "a", 3 + later), ("click", "b", 4), ("purchase", "b", 5)):
                    if n % every == 0:
                        attributes = {"object": {"object_id": item}}
                        event = {"query_id": f"{part}{n}", "action_name": action, "event_attributes": attributes}
                        file.write(json.dumps(event) + "\n")
    worth = "click=1, purchase=10"
    ubi: dict[str, Any] = {"format": "ubi"}
    policy = prudent.rank(tmp_path / "train.ndjson", to=tmp_path / "policy.parquet", reward=worth, **ubi)
    given: dict[str, Any] = {"train": tmp_path / "train.ndjson", "reward": "click=1,purchase=10", **ubi}
    data = report(tmp_path / "policy.parquet", tmp_path / "holdout.ndjson", to=tmp_path / "python.html", **given)
    assert data["reward"]["name"] == policy.reward == worth
    assert data["reward"]["ranked_by"] == ""
    (gated,) = prudent.evaluate(policy, tmp_path / "holdout.ndjson", estimator="dr(clip=10)", reward=worth, **ubi)
    assert (data["headline"]["value"], data["headline"]["lift"]) == (gated.value, gated.lift)
    done = run(
        *("report", tmp_path / "policy.parquet", "--log", tmp_path / "holdout.ndjson", "--format", "ubi"),
        *("--train", tmp_path / "train.ndjson", "--reward", worth, "-o", tmp_path / "cli.html"),
    )
    assert done.code == 0, done.text
    assert (tmp_path / "cli.html").read_bytes() == (tmp_path / "python.html").read_bytes()
