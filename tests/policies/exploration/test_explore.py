"""Explorations: their files, their propensities, their limits, and what cannot be explored."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import prudent
from prudent.base.errors import PolicyError, UnknownContextError, UsageError
from prudent.click_models.selection import names
from prudent.click_models.world import value
from tests.policies.exploration.worlds import Served, production, small_world
from tests.policies.export.policies import HOSTILE

WORLD = small_world()


@pytest.fixture(scope="module")
def log() -> pa.Table:
    return production(WORLD, 3000, 1)


@pytest.fixture(scope="module")
def policy(log: pa.Table) -> prudent.Policy:
    return prudent.rank(log, "pbm")


def by_variant(exploration: prudent.Exploration) -> dict[Any, tuple[float, str, list[Any]]]:
    lists: dict[Any, tuple[float, str, list[Any]]] = {}
    for context, variant, probability, purpose, rank, item in exploration.rows():
        _, _, items = lists.setdefault((context, variant), (probability, purpose, []))
        items.append(item)
        assert len(items) == rank
    return lists


def test_lists_with_probabilities(policy: prudent.Policy) -> None:
    """Variant 0 is the policy's list; each other differs by a swap or an item; all are 1 together."""
    made = prudent.explore(policy, budget=0.05)
    lists = by_variant(made)
    total: dict[Any, float] = {}
    for (context, variant), (probability, purpose, items) in lists.items():
        total[context] = total.get(context, 0.0) + probability
        own = policy[context]
        changed = [(a, b) for a, b in zip(own, items, strict=True) if a != b]
        assert (purpose == "policy") == (variant == 0) == (items == own)
        if purpose == "positions":
            assert changed[0] == changed[1][::-1]
            assert len(changed) == 2
        if purpose == "items":
            assert len(changed) == 1
            assert changed[0][1] not in own
    assert list(total) == list(policy)
    assert list(total.values()) == pytest.approx([1.0] * len(total))
    assert all(probability >= 0.2 - 1e-9 for (_, variant), (probability, *_) in lists.items() if variant == 0)
    assert len({(context, tuple(items)) for (context, _), (*_, items) in lists.items()}) == len(lists)
    summary = made.summary["lists"]
    purposes = [purpose for _, purpose, _ in lists.values()]
    assert (summary["positions"], summary["items"]) == (purposes.count("positions"), purposes.count("items"))
    assert summary["positions"] > 0
    assert summary["items"] > 0


def test_both_limits_are_within_the_budget(policy: prudent.Policy) -> None:
    losses = []
    for budget in (0.002, 0.03, 0.2):
        for goal in ("both", "items", "positions"):
            loss = prudent.explore(policy, budget=budget, goal=goal).summary["loss"]
            assert loss["expected"] <= loss["at_most"] <= budget
        losses.append(prudent.explore(policy, budget=budget, goal="items").summary["loss"]["at_most"])
    assert all(low <= high for low, high in pairwise(losses))


def test_files_hold_explorations(policy: prudent.Policy, log: pa.Table, tmp_path: Path) -> None:
    path = tmp_path / "lists.parquet"
    made = prudent.explore(policy, to=path)
    read = prudent.Exploration.read(path)
    assert (read.rows(), read.manifest) == (made.rows(), made.manifest)
    assert repr(read) == made.title
    assert "expected loss" in str(read)
    assert pa.table(made).num_rows == len(made.rows())
    pq.write_table(log, tmp_path / "log.parquet")
    policy.write(tmp_path / "policy.parquet", tmp_path / "scores.parquet")
    again = prudent.explore(tmp_path / "policy.parquet", tmp_path / "log.parquet", scores=tmp_path / "scores.parquet")
    assert again.rows() == made.rows()
    assert again.summary == made.summary


def test_the_same_bytes_in_any_order_of_rows(log: pa.Table, tmp_path: Path) -> None:
    connection = duckdb.connect()
    shuffled = connection.sql("from log order by hash(items::varchar), clicks").to_arrow_table()
    for name, source in (("a", log), ("b", shuffled)):
        prudent.explore(prudent.rank(source, "pbm"), to=tmp_path / f"{name}.parquet")
    assert pq.read_table(tmp_path / "a.parquet").equals(pq.read_table(tmp_path / "b.parquet"))


@pytest.mark.parametrize("model", ["cm", "dcm", "ubm"])
def test_other_click_models_have_nothing_to_learn_of_positions(log: pa.Table, model: str) -> None:
    made = prudent.explore(prudent.rank(log, model))
    assert made.summary["lists"]["positions"] == 0
    assert f"No swaps: {model} has no examination probabilities" in made.notes[0]
    assert prudent.explore(prudent.rank(log, model), goal="items").notes == []


LEARNED = [*names(), "sdbn(satisfaction=[0.4, 0.3])", "ensemble(model=dbn, replicates=2)"]


@pytest.mark.parametrize(("model", "features"), [*((name, False) for name in LEARNED), ("cm", True)])
def test_the_price_is_a_share_of_what_rank_found(log: pa.Table, model: str, features: bool) -> None:
    """Under every click model, whatever its parameters are: of positions, of users, or none beside features."""
    price = pa.table({"item": sorted({item for items in log["items"].to_pylist() for item in items})})
    price = price.append_column("price", pa.array(np.arange(len(price)) / 7))
    policy = prudent.rank(log, model, length=3, features=price if features else None)
    made = prudent.explore(policy, goal="items")
    lists, values = (policy.contexts().order("context").fetchnumpy()[name] for name in ("lists", "value"))
    assert made.summary["loss"]["value"] == pytest.approx(lists @ values / lists.sum())


def test_a_log_of_fixed_lists_gets_the_swaps_that_identify_pbm() -> None:
    """Production shows each context one list for ever: the coming log determines p, by one list."""
    world = small_world(2, exploration=0, contexts=12, zipf=0)
    log = production(world, 6000, 2)
    with pytest.warns(prudent.PrudentWarning, match="pbm is not identified"):
        policy = prudent.rank(log)
    made = prudent.explore(policy, budget=0.02, goal="positions")
    positions = made.summary["positions"]
    assert positions["groups"] == [[1], [2], [3]]
    assert positions["now"] is None
    week = Served.of(made, world).week(world, 6000, np.random.default_rng(0)).drop(["propensity"])
    fitted = prudent.rank(week, "pbm").manifest.results["fitted"]["examination"]
    truth = world.users.predict(np.ones((1, 3)))[0]
    assert np.abs(np.array(fitted) - truth).max() < 4 * max(positions["standard_errors"])
    with pytest.raises(prudent.PrudentError, match="pbm is not identified"):
        prudent.rank(log, "pbm")


def test_an_examination_that_is_set_is_not_learned(log: pa.Table) -> None:
    made = prudent.explore(prudent.rank(log, "pbm(examination=[1, 0.6, 0.5])"))
    assert "No swaps" in made.notes[0]
    assert made.summary["positions"] == {"now": None, "after": None}


def test_the_bound_needs_a_posterior(log: pa.Table) -> None:
    for bound in ("mle", "hoeffding", "clopper-pearson", "bayes(delta=1)"):
        with pytest.raises(PolicyError, match="has no posterior"):
            prudent.explore(prudent.rank(log, "pbm", bound=bound))
    for bound in ("bayes", "eb", "exposure", "hierarchical"):
        assert prudent.explore(prudent.rank(log, "pbm", bound=bound)).summary["loss"]["at_most"] <= 0.01


@pytest.mark.parametrize("budget", [0, -0.01, 2, float("nan"), "1%"])
def test_a_budget_is_a_share(policy: prudent.Policy, budget: Any) -> None:
    with pytest.raises(UsageError, match="budget is"):
        prudent.explore(policy, budget=budget)


def test_what_cannot_be_explored(policy: prudent.Policy, log: pa.Table, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="There is no goal"):
        prudent.explore(policy, goal="fun")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="lists is 0"):
        prudent.explore(policy, lists=0)
    with pytest.raises(UsageError, match="would hold Parquet"):
        prudent.explore(policy, to=tmp_path / "lists.csv")
    with pytest.raises(UsageError, match="confidence is"):
        prudent.explore(policy, confidence=1)
    policy.write(tmp_path / "policy.parquet", tmp_path / "scores.parquet")
    with pytest.raises(UsageError, match="scores of all candidates"):
        prudent.explore(tmp_path / "policy.parquet", log)
    with pytest.raises(UsageError, match="the log or the counts"):
        prudent.explore(tmp_path / "policy.parquet", scores=tmp_path / "scores.parquet")
    with pytest.raises(UsageError, match="named twice"):
        prudent.explore(
            tmp_path / "policy.parquet", log, scores=tmp_path / "scores.parquet", to=tmp_path / "scores.parquet"
        )
    with pytest.raises(PolicyError, match="no estimates"):
        prudent.explore(prudent.Policy.from_table(log.slice(0, 1), items="items"), log)
    elsewhere = log.set_column(0, "context", pa.array([f"q{one}" for one in log["context"].to_pylist()]))
    with pytest.raises(PolicyError, match="not the log that the policy was made from"):
        prudent.explore(policy, elsewhere)
    others = production(small_world(9), 3000, 9)
    others = others.set_column(0, "context", pa.array([one + 1000 for one in others["context"].to_pylist()]))
    with pytest.raises(PolicyError, match="None of the contexts"):
        prudent.explore(policy, others)
    few = pq.read_table(tmp_path / "scores.parquet").slice(0, 3).replace_schema_metadata(None)
    pq.write_table(few, tmp_path / "few.parquet")
    with pytest.raises(PolicyError, match="have no scores"):
        prudent.explore(tmp_path / "policy.parquet", log, scores=tmp_path / "few.parquet")


def test_lists_without_variants() -> None:
    """One item each, or all candidates listed."""
    log = pa.Table.from_pylist([{"context": "q", "items": ["a", "b"], "clicks": [1, 0]}] * 60)
    policy = prudent.rank(log, "cm")
    with pytest.raises(PolicyError, match="every candidate is in the list"):
        prudent.explore(policy, goal="items")
    one = prudent.rank(log, "cm", length=1)
    with pytest.raises(PolicyError, match="one item have no positions"):
        prudent.explore(one, goal="positions")
    assert prudent.explore(one, budget=0.5).summary["lists"]["positions"] == 0
    single = pa.Table.from_pylist([{"context": "q", "items": ["a"], "clicks": [1]}] * 60)
    with pytest.raises(PolicyError, match="lists have one item"):
        prudent.explore(prudent.rank(single, "cm"))


def test_draws_have_the_probabilities(policy: prudent.Policy) -> None:
    made = prudent.explore(policy, budget=0.05)
    context = next(iter(policy))
    lists = {variant: (share, items) for (c, variant), (share, _, items) in by_variant(made).items() if c == context}
    points = (np.arange(400) + 0.5) / 400
    drawn = [made.draw(context, point) for point in points]
    for variant, (share, items) in lists.items():
        mine = [one for one in drawn if one.variant == variant]
        assert len(mine) / 400 == pytest.approx(share, abs=5e-3)
        assert all((one.items, one.probability) == (items, share) for one in mine)
    with pytest.raises(UnknownContextError):
        made.draw("nowhere", 0.5)
    with pytest.raises(UsageError, match="at is"):
        made.draw(context, 2)


def test_what_is_no_file_of_an_exploration(policy: prudent.Policy, tmp_path: Path) -> None:
    path = tmp_path / "lists.parquet"
    policy.write(tmp_path / "policy.parquet")
    with pytest.raises(PolicyError, match="has no exploration: prudent explore writes"):
        prudent.Exploration.read(tmp_path / "policy.parquet")
    prudent.explore(policy, to=path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 3] + b"\1" + whole[len(whole) // 3 + 1 :])
    with pytest.raises(PolicyError):
        prudent.Exploration.read(path)
    path.write_bytes(whole)
    table = pq.read_table(path)
    half = pa.array([0.4] * table.num_rows)
    zero = pa.array([0] * table.num_rows, pa.int32())
    for one in (table.set_column(2, "probability", half), table.slice(0, 2), table.set_column(4, "rank", zero)):
        pq.write_table(one.replace_schema_metadata(None), tmp_path / "other.parquet")
        with pytest.raises(PolicyError):
            prudent.Exploration.read(tmp_path / "other.parquet")


def test_hostile_names() -> None:
    rows = [
        {
            "context": context,
            "items": list(names) if n % 2 else list(names)[::-1],
            "clicks": [int((n + k) % 5 == 0) for k in range(len(names))],
        }
        for context, names in HOSTILE.items()
        for n in range(40)
    ]
    made = prudent.explore(prudent.rank(pa.Table.from_pylist(rows), "cm", length=2), budget=0.1)
    assert {context for context, _ in by_variant(made)} == set(HOSTILE)
    assert made.summary["lists"]["items"] > 0


@pytest.mark.parametrize("which", ["last", "random"])
def test_evaluation_by_the_propensities_is_unbiased(policy: prudent.Policy, which: str) -> None:
    """ips over 30 simulated weeks, of policies whose lists are among the variants.

    Mean and truth differ by less than four standard errors of the mean; snips is biased by one part in the effective
    sample size, far below these.
    """
    served = Served.of(prudent.explore(policy, budget=0.05), WORLD)
    random = np.random.default_rng(4)
    of_context = [np.flatnonzero(served.context == one) for one in range(len(WORLD.contexts))]
    rows = [{"last": one[-1], "random": random.choice(one)}[which] for one in of_context]
    lists = [
        {"context": int(WORLD.contexts[one]), "items": [int(WORLD.items[item]) for item in served.items[row]]}
        for one, row in enumerate(rows)
    ]
    target = prudent.Policy.from_table(pa.Table.from_pylist(lists), items="items")
    truth = float(WORLD.share @ value(WORLD, served.items[rows]))
    found = []
    for _ in range(30):
        week = served.week(WORLD, 1000, random)
        known = prudent.Log(week, propensity="propensity")
        estimates = prudent.evaluate(target, known, estimator=["ips", "snips"], replicates=20).to_json()
        assert [one["why"] for one in estimates] == ["", ""]
        found.append([one["value"] for one in estimates])
    mean, error = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(30)
    assert np.all(np.abs(mean - truth) < 4 * error)
    assert np.all(error < 0.04 * truth)


def test_the_plain_policy_is_as_before(policy: prudent.Policy, log: pa.Table, tmp_path: Path) -> None:
    policy.write(tmp_path / "before.parquet")
    prudent.explore(policy)
    policy.write(tmp_path / "after.parquet")
    assert (tmp_path / "before.parquet").read_bytes() == (tmp_path / "after.parquet").read_bytes()
