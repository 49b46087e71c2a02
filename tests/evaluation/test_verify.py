"""`verify` and `plan`: bets against a promise, how soon they win, and what a launch that fails looks like."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy.special import ndtri
from scipy.stats import norm

import prudent
from prudent.base.errors import LogError, PolicyError, PrudentWarning, UsageError
from prudent.click_models.simulate import write_log
from prudent.click_models.world import make_world
from prudent.evaluation.anytime_test import BETS, Earned, lists_to_find
from prudent.evaluation.holdout_log import open_holdout
from prudent.evaluation.interleaving import preference, team_draft
from prudent.evaluation.promise import Promise, promise_of
from prudent.evaluation.verify import Kept

# --- bets -------------------------------------------------------------------------------------------------------------


def test_evidence_is_the_mean_wealth_of_all_bets() -> None:
    """A plain loop over lists, for bets λ = 0.99/M, each 1/√2 of the one before."""
    rng = np.random.default_rng(1)
    promised, earned = rng.choice([0.5, 1.2, 2.0], 40), rng.integers(0, 4, 40).astype(float)
    lists = rng.integers(1, 5, 40)
    for ratio in (0.5, 1.0, 1.7):
        below = above = 0.0
        for j in range(BETS):
            less = more = 1.0
            for m, x, n in zip(promised, earned, lists, strict=True):
                for _ in range(n):
                    less *= 1 + 0.99 / 3 * 2 ** (-j / 2) * (ratio * m - x)
                    more *= 1 + 0.99 / (ratio * 2.0) * 2 ** (-j / 2) * (x - ratio * m)
            below, above = below + less / BETS, above + more / BETS
        entries = Earned(promised, earned, lists, 3.0)
        assert entries.below(ratio) == pytest.approx(math.log(below), abs=1e-9)
        assert entries.above(ratio) == pytest.approx(math.log(above), abs=1e-9)
    group = np.repeat([0, 1], 20)
    halves = [Earned(promised[part], earned[part], lists[part], 3.0).below(1.0) for part in (group == 0, group == 1)]
    assert Earned(promised, earned, lists, 3.0).below_by(group, 2) == pytest.approx(halves)


def nightly(rng: np.random.Generator, chance: float, nights: int, lists: int) -> list[Earned]:
    """All lists since the launch after every night; a list is promised 0.3 and clicked with this chance."""
    clicks = np.cumsum(rng.binomial(lists, chance, nights))
    shown = lists * np.arange(1, nights + 1)
    return [
        Earned(np.array([0.3, 0.3]), np.array([0.0, 1.0]), np.array([n - c, c]), 1.0)
        for n, c in zip(shown.tolist(), clicks.tolist(), strict=True)
    ]


def test_a_promise_that_is_kept_rarely_raises_an_alarm_on_any_night() -> None:
    """At the border, with α = 0.1: at most 10 % of launches, and not far fewer than a fixed test would waste.

    200 launches of 60 nights: of 20 expected at most, 29 or more occur with a probability of 3 %.
    """
    rng = np.random.default_rng(2)
    alarms = sum(
        any(one.below(1.0) >= math.log(1 / 0.1) for one in nightly(rng, 0.3, nights=60, lists=40)) for _ in range(200)
    )
    assert 1 <= alarms <= 28


def test_the_interval_covers_on_all_nights_at_once() -> None:
    """Confidence 80 %: of 40 launches at least 32 are expected; 25 or fewer occur with a probability of 1 %."""
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(40):
        intervals = [one.interval(0.2) for one in nightly(rng, 0.24, nights=4, lists=300)]
        covered += all(low <= 0.8 <= high for low, high in intervals)
        assert intervals[-1][1] - intervals[-1][0] < intervals[0][1] - intervals[0][0]
    assert covered > 25


def test_a_shortfall_is_found_in_the_lists_that_were_foretold() -> None:
    """From 0.3 to 0.27 with power 80 %: of 120 launches 96 are expected; 83 or fewer have a probability of 0.3 %."""
    needed = lists_to_find(0.03, math.sqrt(0.27 * 0.73), alpha=0.025, power=0.8)
    rng = np.random.default_rng(4)
    found = sum(nightly(rng, 0.27, 1, math.ceil(needed))[0].below(1.0) >= math.log(1 / 0.025) for _ in range(120))
    assert found > 83
    assert lists_to_find(0.03, 0.4, 0.025, 0.8, uncertainty=0.01) > lists_to_find(0.03, 0.4, 0.025, 0.8)
    assert lists_to_find(0.03, 0.4, 0.025, 0.8, uncertainty=0.04) == math.inf


def test_an_uncertain_promise_has_a_margin() -> None:
    """Two contexts of 30 and 10 lists: deviations of lists in different contexts add up in squares."""
    promise = Promise(np.ones(2, bool), np.array([1.0, 2.0]), np.array([0.1, 0.4]))
    context = np.repeat([0, 1], [30, 10])
    kept = Kept.of(promise, context, np.ones(40), np.ones(40, np.int64), 3.0, 0.95, 0.0)
    assert kept.floor == pytest.approx(1 - ndtri(0.975) * math.hypot(3, 4) / 50)
    tolerant = Kept.of(promise, context, np.ones(40), np.ones(40, np.int64), 3.0, 0.95, 0.1)
    assert tolerant.floor == pytest.approx(0.9 * kept.floor)


# --- after a launch ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def launch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A policy, a holdout of production, and the lists of the policy as they were clicked after the launch."""
    folder = tmp_path_factory.mktemp("launch")
    world = make_world("pbm", contexts=6, items=(5, 8), length=4, seed=3)
    for name, seed in (("train", 3), ("holdout", 4)):
        write_log(world, 6000, folder / f"{name}.parquet", seed=seed)
    policy = prudent.rank(folder / "train.parquet", "pbm", to=folder / "policy.parquet")
    rng = np.random.default_rng(5)
    number = {int(item): row for row, item in enumerate(world.items)}
    rows = []
    for context in rng.choice(6, 4000, p=world.share).tolist():
        items = policy[context]
        theta = world.attraction[[number[int(item)] for item in items]]
        rows.append({"context": context, "items": items, "clicks": world.users.sample(theta[None], rng)[0].tolist()})
    after = pa.Table.from_pylist([{**row, "clicks": [int(click) for click in row["clicks"]]} for row in rows])
    pa.parquet.write_table(after, folder / "after.parquet")
    return folder


def lost(table: pa.Table, share: float, context: int | None = None) -> pa.Table:
    """The same lists, with every click lost with this probability, in one context or in all."""
    rng, rows = np.random.default_rng(6), []
    for row in table.to_pylist():
        there = context in (None, row["context"])
        rows.append({**row, "clicks": [click * int(not there or rng.random() >= share) for click in row["clicks"]]})
    return pa.Table.from_pylist(rows)


def test_a_promise_that_is_kept(launch: Path) -> None:
    found = prudent.verify(launch / "policy.parquet", launch / "after.parquet")
    assert found.verdict == "ok"
    assert found
    assert (found.lists, found.served, found.contexts, found.drifted) == (4000, 1.0, 6, 0)
    assert found.ratio is not None
    assert found.ratio_low is not None
    assert found.ratio_high is not None
    assert found.ratio_low < found.ratio < found.ratio_high
    assert found.ratio == pytest.approx(found.earned / found.promised)
    assert 0.9 < found.floor < 1
    rows = pa.parquet.read_table(launch / "after.parquet").to_pylist()
    assert found.earned == pytest.approx(sum(sum(row["clicks"]) for row in rows) / 4000)


def test_lists_that_earn_less_raise_an_alarm(launch: Path) -> None:
    after = pa.parquet.read_table(launch / "after.parquet")
    found = prudent.verify(launch / "policy.parquet", lost(after, 0.3))
    assert found.verdict == "alert"
    assert not found
    assert "significantly less than" in found.sentence
    assert found.ratio_high is not None
    assert found.ratio_high < found.floor
    assert prudent.verify(launch / "policy.parquet", lost(after, 0.3), tolerance=0.4).verdict == "ok"
    assert prudent.verify(launch / "policy.parquet", lost(after, 0.3), reward="any-click").verdict == "alert"


def test_a_context_that_drifts_is_named(launch: Path) -> None:
    after = pa.parquet.read_table(launch / "after.parquet")
    found = prudent.verify(launch / "policy.parquet", lost(after, 0.6, context=1))
    assert [drift.context for drift in found.drifts] == [1]
    assert found.drifts[0].earned < 0.6 * found.drifts[0].promised
    assert found.drifts[0].lists == sum(row["context"] == 1 for row in after.to_pylist())


def test_lists_of_others_do_not_count(launch: Path) -> None:
    """Half of the lists are upside down: they are not what was promised, and the share that was served says so."""
    rows = pa.parquet.read_table(launch / "after.parquet").to_pylist()
    mixed = [{**row, "items": row["items"][:: 1 if n % 2 else -1]} for n, row in enumerate(rows)]
    found = prudent.verify(launch / "policy.parquet", pa.Table.from_pylist(mixed))
    assert (found.lists, found.served) == (2000, 0.5)
    assert found.drifted == 0
    few = prudent.verify(launch / "policy.parquet", pa.Table.from_pylist(mixed[1:2] + mixed[:3000:2]))
    assert (few.lists, few.contexts, few.drifted) == (1, 1, 0), "contexts without a list of the policy are not tested"
    none = [{**row, "items": row["items"][::-1]} for row in rows]
    unknown = prudent.verify(launch / "policy.parquet", pa.Table.from_pylist(none))
    assert (unknown.verdict, unknown.lists, bool(unknown)) == ("unknown", 0, False)
    assert "no list of this log" in str(unknown)


def test_the_promise_is_that_of_the_policy(launch: Path) -> None:
    """Value and lower bound of each list are those that `rank` found, whose level is a quantile of the posterior."""
    policy = prudent.rank(launch / "train.parquet", "cm")
    log = open_holdout(policy, launch / "after.parquet", None, 0.01)
    promise = promise_of(log, "any-click")
    contexts = policy.contexts().order("context").fetchnumpy()
    assert promise.value == pytest.approx(contexts["value"])
    level = policy.manifest.results["summary"]["level"]
    assert promise.value - norm.ppf(level) * promise.deviation == pytest.approx(contexts["lower"])


@pytest.mark.parametrize("model", ["ccm", "ensemble(model=pbm, replicates=2)"])
def test_parameters_that_are_of_no_position_are_known_for_any_length(launch: Path, model: str) -> None:
    policy = prudent.rank(launch / "train.parquet", model)
    log = open_holdout(policy, launch / "after.parquet", None, 0.01)
    assert log.lists.trained is not None
    assert promise_of(log, "clicks").known.all()


def test_satisfying_clicks_promise_no_clicks(launch: Path) -> None:
    policy = prudent.rank(launch / "train.parquet", "sdbn(satisfaction=[0.4, 0.3])")
    with pytest.raises(PolicyError, match="clicks that satisfy"):
        promise_of(open_holdout(policy, launch / "after.parquet", None, 0.01), "clicks")


def test_a_promise_can_be_named(launch: Path) -> None:
    lists = prudent.Policy.read(launch / "policy.parquet")
    table = pa.table({"context": list(lists), "items": list(lists.values())})
    bare = prudent.Policy.from_table(table, items="items")
    with pytest.raises(PolicyError, match="promised="):
        prudent.verify(bare, launch / "after.parquet")
    earned = prudent.verify(launch / "policy.parquet", launch / "after.parquet").earned
    assert prudent.verify(bare, launch / "after.parquet", promised=earned).verdict == "ok"
    assert prudent.verify(bare, launch / "after.parquet", promised=1.3 * earned).verdict == "alert"


def test_the_training_log_is_no_log_after_the_launch(launch: Path) -> None:
    with pytest.warns(PrudentWarning, match="Give the log after the launch"):
        prudent.verify(launch / "policy.parquet", launch / "train.parquet")


def test_metrics_are_json_or_for_prometheus(launch: Path, tmp_path: Path) -> None:
    found = prudent.verify(launch / "policy.parquet", launch / "after.parquet", to=tmp_path / "metrics.json")
    assert json.loads((tmp_path / "metrics.json").read_text()) == found.to_json()
    prudent.verify(launch / "policy.parquet", launch / "after.parquet", to=tmp_path / "metrics.prom")
    lines = (tmp_path / "metrics.prom").read_text().splitlines()
    values = dict(line.split(" ") for line in lines if not line.startswith("#"))
    assert float(values["prudent_earned"]) == found.earned
    assert values["prudent_alert"] == "0"
    assert {line.split()[2] for line in lines if line.startswith("# TYPE")} == set(values)


# --- before it --------------------------------------------------------------------------------------------------------


def test_an_ab_test_is_that_of_the_textbook(launch: Path) -> None:
    """Two means of equal variance: n = 2 (z₁ + z₂)² σ² / δ² per arm, where all lists change."""
    holdout = launch / "holdout.parquet"
    plan = prudent.plan(launch / "policy.parquet", holdout, lift=0.02, days=7)
    clicks = np.array([sum(row) for row in pa.parquet.read_table(holdout)["clicks"].to_pylist()])
    assert plan.changed == 1
    assert plan.deviation == pytest.approx(clicks.std())
    z = norm.ppf(0.975) + norm.ppf(0.8)
    lists = 2 * 2 * z**2 * clicks.var() / (0.02 * clicks.mean()) ** 2
    assert plan["A/B test"].lists == math.ceil(lists)
    assert plan["A/B test"].days == math.ceil(math.ceil(lists) / (6000 / 7))
    uneven = prudent.plan(launch / "policy.parquet", holdout, lift=0.02, share=0.1)["A/B test"]
    assert uneven.days is None
    assert uneven.lists == pytest.approx(lists / 4 / (0.1 * 0.9), rel=1e-3)


def test_interleaving_prefers_the_better_list(launch: Path) -> None:
    """It needs lists in proportion to (deviation / mean)²; the policy turned round is not preferred at all."""
    policy = prudent.Policy.read(launch / "policy.parquet")
    one = prudent.plan(policy, launch / "holdout.parquet", lift=0.05)["interleaving"]
    held = open_holdout(policy, launch / "holdout.parquet", None, 0.01).lists
    mean, deviation = preference(held, held.known, seed=0)
    z = norm.ppf(0.975) + norm.ppf(0.8)
    assert one.lists == math.ceil((z * deviation / mean) ** 2)
    turned = replace(held, target=held.target[:, ::-1].copy())
    assert preference(turned, held.known, seed=0)[0] < 0 < mean


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lift": -0.1}, "lift is -0.1"),
        ({"drop": 0}, "drop is 0"),
        ({"power": 1}, "power is 1"),
        ({"share": 1.5}, "share is 1.5"),
        ({"days": 0}, "days is 0"),
    ],
)
def test_settings_of_a_plan_are_checked(settings: dict[str, Any], message: str, launch: Path) -> None:
    with pytest.raises(UsageError, match=message):
        prudent.plan(launch / "policy.parquet", launch / "holdout.parquet", **settings)


def test_a_policy_that_changes_nothing_needs_no_test(launch: Path) -> None:
    with pytest.raises(LogError, match="changes no list"):
        prudent.plan(launch / "policy.parquet", launch / "after.parquet", lift=0.01)


def test_team_draft_equals_a_plain_loop() -> None:
    """In turns; after each round a coin decides who starts; a team without an item passes."""
    rng = np.random.default_rng(7)
    for _ in range(300):
        length = int(rng.integers(1, 6))
        lists = []
        for _ in range(2):
            own = rng.permutation(7)[: int(rng.integers(1, length + 1))]
            lists.append([*own.tolist(), *[-1] * (length - len(own))])
        coins = (rng.random(length) < 0.5).tolist()
        chosen: list[int] = []
        teams: list[int] = []
        for k in range(length):
            left = [[item for item in own if item >= 0 and item not in chosen] for own in lists]
            picks = teams.count(1), teams.count(-1)
            first = picks[0] < picks[1] or (picks[0] == picks[1] and coins[k])
            first = bool(left[0]) and (first or not left[1])
            if not left[0] and not left[1]:
                break
            chosen.append(left[0 if first else 1][0])
            teams.append(1 if first else -1)
        items, team = team_draft(np.array(lists[:1]), np.array(lists[1:]), np.array([coins]))
        fill = length - len(chosen)
        assert (items[0].tolist(), team[0].tolist()) == (chosen + [-1] * fill, teams + [0] * fill)
