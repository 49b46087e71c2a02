"""What changes in the traffic, who wins and loses, segments and days: against plain loops and the truth."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import prudent
from prudent.base.errors import LogError
from prudent.click_models.rewards import observed
from prudent.click_models.simulate import write_log
from prudent.click_models.world import make_world, value
from prudent.engines.duckdb.engine import DuckDB
from prudent.evaluation.estimators import parse
from prudent.evaluation.holdout_log import HoldoutLog, open_holdout
from prudent.policies.policy import Policy
from prudent.reporting import report
from prudent.reporting.changes import expected_loss, traffic, winners_and_losers
from prudent.reporting.period import read_period
from tests.reference import LoggedList
from tests.strategies import table

LISTS: list[LoggedList] = [
    *[("shoes", ("a", "b", "c"), (1, 0, 0))] * 5,
    *[("shoes", ("b", "a", "d"), (0, 1, 0))] * 3,
    *[("shoes", ("a",), (0,))] * 2,
    *[("boots", ("x", "y", "z", "v"), (0, 1, 0, 0))] * 4,
    *[("hats", ("h", "g"), (0, 1))] * 6,
]
POLICY: dict[Any, list[str]] = {"shoes": ["a", "b", "d"], "boots": ["y", "x", "z", "v"], "caps": ["q"]}


def policy_of(lists: dict[Any, list[str]]) -> Policy:
    rows = [{"context": context, "items": items} for context, items in lists.items()]
    return Policy.from_table(pa.Table.from_pylist(rows), items="items")


def opened(policy: Policy, log: Any) -> HoldoutLog:
    return open_holdout(policy, log, None, 1.0)


def test_shares_of_traffic_are_those_of_a_loop_over_lists() -> None:
    found: Counter[str] = Counter()
    for context, items, _ in LISTS:
        chosen = POLICY.get(context)
        if chosen is None:
            continue
        chosen = chosen[: max(len(other) for name, other, _ in LISTS if name == context)]
        found["any"] += list(items[: len(chosen)]) != chosen
        found["first"] += items[0] != chosen[0]
        found["first_three"] += not set(chosen[:3]) <= set(items[:3])
    shares = traffic(opened(policy_of(POLICY), prudent.Log(table(LISTS))).lists)
    assert shares == {name: pytest.approx(found[name] / len(LISTS)) for name in ("any", "first", "first_three")}


def test_the_expected_loss_is_that_of_draws() -> None:
    """A mean of 1e6 draws is off by .001 at most, in 3 standard errors."""
    rng = np.random.default_rng(0)
    for gain, doubt in ((0.3, 0.5), (-0.2, 0.4), (0.0, 1.0), (2.0, 0.0), (-2.0, 0.0)):
        drawn = np.maximum(0, -rng.normal(gain, doubt, 1_000_000)).mean()
        assert expected_loss(np.array([gain]), np.array([doubt]))[0] == pytest.approx(drawn, abs=0.003)


@pytest.fixture(scope="module")
def world_log(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path, Path]:
    world = make_world("pbm", contexts=150, items=(8, 12), length=5, quality=1.0, exploration=1.0, seed=3)
    folder = tmp_path_factory.mktemp("world")
    for name, lists, seed in (("train", 15_000, 1), ("holdout", 30_000, 2)):
        write_log(world, lists, folder / "clicks.parquet", seed=seed)
        bought = "clicks[k] = 1 and md5_number_lower(concat(rn, ' ', k)) % 4 = 0"
        duckdb.execute(
            f"copy (select context, items, clicks, "
            f"list_transform(items, lambda item, k: if({bought}, 1 + item % 5, 0)) as margin "
            f"from (select *, row_number() over () as rn from '{folder}/clicks.parquet')) to '{folder}/{name}.parquet'"
        )
    return world, folder / "train.parquet", folder / "holdout.parquet"


@pytest.mark.slow
@pytest.mark.parametrize("reward", ["clicks", "margin"])
def test_items_and_contexts_gain_the_same_and_chances_are_calibrated(
    reward: str, world_log: tuple[Any, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the contexts named, about as many are truly worse as their chances say: 150 contexts, 4 standard errors.

    One click in four is a purchase, of 1 to 5.
    """
    monkeypatch.setattr("prudent.reporting.changes.MOST_NAMED", 10_000)
    world, train, log = world_log
    unit, named = observed(reward)
    holdout = opened(prudent.rank(prudent.Log(train, **named), model="pbm"), prudent.Log(log, **named))
    changes = winners_and_losers(holdout, parse("dr(clip=10)"), unit)
    assert changes["why"] == ""
    gains = [(one["after"] - one["before"]) * one["lists"] for kind in ("winners", "losers") for one in changes[kind]]
    items = [one["after"] - one["before"] for kind in ("items_up", "items_down") for one in changes[kind]]
    assert sum(items) == pytest.approx(sum(gains), rel=1e-4)
    assert all(gain > 0 for gain in gains[: len(changes["winners"])])
    assert gains[: len(changes["winners"])] == sorted(gains[: len(changes["winners"])], reverse=True)

    shown: dict[Any, Counter[str]] = {name: Counter() for name in world.contexts.tolist()}
    rows = duckdb.execute(f"select context, items, count(*) as n from '{log}' group by all").fetchall()
    for context, listed, n in rows:
        for place, item in enumerate(listed):
            shown[context][item] += n / np.log2(2 + place)
    pairs: dict[tuple[Any, Any], int] = {}
    for row, context in enumerate(world.contexts.tolist()):
        for pair in range(world.offsets[row], world.offsets[row + 1]):
            pairs[context, world.items[pair]] = pair

    worth = 1 + world.items % 5 if named else np.ones(len(world.items))
    earning = replace(world, attraction=world.attraction * worth / 5)  # which is linear in it

    def truth(context: Any, items: list[Any]) -> float:
        return float(value(earning, np.array([[pairs[context, item] for item in items]]))[0])

    chances, worse = [], []
    for kind in ("winners", "losers"):
        for one in changes[kind]:
            context = one["context"]
            usual = sorted(shown[context], key=lambda item: (-shown[context][item], item))[: world.length]
            chances.append(one["worse"])
            worse.append(truth(context, list(holdout.policy[context])) < truth(context, usual))
    assert len(chances) > 50
    spread = np.sqrt(np.sum([p * (1 - p) for p in chances]))
    assert abs(sum(worse) - sum(chances)) < 4 * spread + 1


def test_where_no_context_has_all_items_nobody_wins() -> None:
    holdout = opened(policy_of({"shoes": ["new", "a"]}), prudent.Log(table(LISTS)))
    assert (
        "no context"
        in winners_and_losers(holdout, parse("dm(model=pbm(examination=[1, .6, .4, .3]))"), "clicks")["why"]
    )


# --- segments ---------------------------------------------------------------------------------------------------------


def test_a_segment_has_the_estimate_of_its_lists_alone(world_log: tuple[Any, Path, Path], tmp_path: Path) -> None:
    _, train, log = world_log
    policy = prudent.rank(prudent.count(prudent.Log(train)), model="pbm")
    duckdb.sql(
        f"copy (select *, case when hash(rn) % 10 < 7 then 'phone' when hash(rn) % 10 < 9 then 'it''s' end as device "
        f"from (select *, row_number() over () as rn from '{log}' limit 3000)) to '{tmp_path}/log.parquet'"
    )
    data = report(policy, tmp_path / "log.parquet", segment="device", to=tmp_path / "report.html")
    (segment,) = data["segments"]
    assert (segment["name"], segment["more"]) == ("device", 0)
    assert [one["value"] for one in segment["values"]] == ["phone", "it's", "(none)"]
    assert sum(one["share"] for one in segment["values"]) == pytest.approx(1)
    for one, where in zip(segment["values"], ("device = 'phone'", "device = 'it''s'", "device is null"), strict=True):
        part = duckdb.sql(f"select context, items, clicks from '{tmp_path}/log.parquet' where {where}")
        alone = prudent.evaluate(policy, part, estimator="dr(clip=10)")[0]
        assert (one["lift"], one["lift_low"], one["lift_high"]) == (alone.lift, alone.lift_low, alone.lift_high)
    page = (tmp_path / "report.html").read_text()
    assert "By <bdi>device</bdi>" in page


# --- days -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("times", "days"),
    [
        ("timestamp '2026-01-05 23:00' + interval (i) hour", ("2026-01-05", "2026-01-06")),
        ("date '2026-01-05' + i::int", ("2026-01-05", "2026-01-07")),
        ("timestamptz '2026-01-05 23:00:00+00' + interval (i) hour", ("2026-01-05", "2026-01-06")),
        ("('2026-01-0' || (5 + i))", ("2026-01-05", "2026-01-07")),
        ("1767654000 + i * 86400", ("2026-01-05", "2026-01-07")),
        ("(1767654000 + i * 86400) * 1000", ("2026-01-05", "2026-01-07")),
        ("((1767654000 + i * 86400) * 1000000)", ("2026-01-05", "2026-01-07")),
        ("(1767654000 + i * 86400)::varchar", ("2026-01-05", "2026-01-07")),
    ],
)
@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_days_are_read_from_times_as_people_write_them(
    times: str, days: tuple[str, str], form: str, tmp_path: Path
) -> None:
    file = tmp_path / f"log.{form}"
    rows = f"select 'shoes' as context, ['a'] as items, [0] as clicks, {times} as time from range(3) t(i)"
    duckdb.sql(f"set timezone = 'UTC'; copy ({rows}) to '{file}' (format {'json' if form == 'jsonl' else form})")
    assert read_period(prudent.Log(file), "time", DuckDB()) == days


@pytest.mark.parametrize(
    ("time", "message"),
    [("nothing", "no column 'nothing'"), ("words", "2 rows of .* have no time in 'words'"), ("items", "is no time")],
)
def test_a_column_without_times_is_an_error(time: str, message: str) -> None:
    rows = [{"context": "shoes", "items": ["a"], "clicks": [0], "words": word} for word in ("soon", "2026-01-01", None)]
    with pytest.raises(LogError, match=message):
        read_period(prudent.Log(pa.Table.from_pylist(rows)), time, DuckDB())


def test_the_page_has_the_days_of_both_logs_and_of_counted_days(tmp_path: Path) -> None:
    for name, day in (("train", 3), ("holdout", 9)):
        rows = [
            {"context": c, "items": list(i), "clicks": list(k), "at": f"2026-01-{day + n % 2:02d}"}
            for n, (c, i, k) in enumerate(LISTS)
        ]
        duckdb.register(name, pa.Table.from_pylist(rows))
        duckdb.sql(f"copy {name} to '{tmp_path}/{name}.parquet'")
    policy = prudent.rank(prudent.count(prudent.Log(tmp_path / "train.parquet")), model="cm")
    data = report(
        policy, tmp_path / "holdout.parquet", train=tmp_path / "train.parquet", time="at", to=tmp_path / "report.html"
    )
    assert data["periods"] == [
        ("holdout", "2026-01-09 to 2026-01-10"),
        ("training log", "2026-01-03 to 2026-01-04"),
    ]
    assert "2026-01-09 to 2026-01-10" in (tmp_path / "report.html").read_text()
