"""Lists that hold under several click models, against plain loops, and the policies made of them."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

import prudent
from prudent.bounds import bounds
from prudent.click_models import click_models, selection
from prudent.click_models.simulate import write_log
from prudent.click_models.world import clicked, draw, make_world
from prudent.policies.best_lists import best_lists, list_values
from prudent.policies.incumbent import incumbent_lists
from prudent.policies.list_arrays import Lists, as_table
from prudent.policies.list_bound import list_lower_bounds
from prudent.policies.robust_lists import View, robust_lists
from tests.command import run

LENGTH, CONTEXTS = 4, 12


def made(seed: int, models: tuple[str, ...], bound: str) -> tuple[list[View], list[Lists], Lists]:
    """What the models make of one log, their lists, and the incumbent lists."""
    world = make_world("ubm", contexts=CONTEXTS, items=(3, 9), length=LENGTH, zipf=1.5, seed=seed)
    items = np.concatenate([chunk.items for chunk in draw(world, 1_000, seed=seed)])
    lists = clicked(world, items, np.random.default_rng(seed))
    views = []
    for name in models:
        evidence = click_models.parse(name).evidence(lists).ranked
        views.append(View(evidence, bounds.parse(bound).score(evidence)))
    return views, [best_lists(*view, LENGTH) for view in views], incumbent_lists(lists.cells, LENGTH)


def worst_case(views: list[View], lists: Lists, incumbent: Lists, context: int) -> float:
    """The least lower bound on the value of one list, as a multiple of the incumbent's estimate, model by model."""
    gains = []
    for evidence, scores in views:
        lower = list_lower_bounds(evidence, lists, scores, LENGTH, CONTEXTS)[context]
        scale = list_values(evidence, incumbent, scores.mean, LENGTH, CONTEXTS)[context]
        gains.append(lower / scale if scale > 0 else 0.0)
    return float(min(gains))


@pytest.mark.parametrize("bound", ["anchored(delta=0.5)", "eb(delta=0.2)", "mle"])
@pytest.mark.parametrize("seed", range(4))
def test_each_context_gets_the_best_worst_case(seed: int, bound: str) -> None:
    views, own, incumbent = made(seed, ("cm", "dcm", "pbm", "ubm"), bound)
    robust = robust_lists(views, own, incumbent, LENGTH, CONTEXTS)
    for context in range(CONTEXTS):
        found = worst_case(views, robust, incumbent, context)
        every = [worst_case(views, one, incumbent, context) for one in (*own, incumbent)]
        assert found == pytest.approx(max(every), rel=1e-6)
        tables = [as_table(one, CONTEXTS, LENGTH)[context].tolist() for one in (*own, incumbent)]
        assert as_table(robust, CONTEXTS, LENGTH)[context].tolist() in tables


def test_some_lists_are_not_the_first_choice_of_any_single_model() -> None:
    """Over 40 logs: each of three models and the incumbent list decide somewhere."""
    deciding = set()
    for seed in range(40):
        views, own, incumbent = made(seed, ("cm", "pbm", "ubm"), "anchored(delta=0.5)")
        robust = as_table(robust_lists(views, own, incumbent, LENGTH, CONTEXTS), CONTEXTS, LENGTH)
        tables = [as_table(one, CONTEXTS, LENGTH) for one in (*own, incumbent)]
        for context, number in product(range(CONTEXTS), range(len(tables))):
            same = [(robust[context] == table[context]).all() for table in tables]
            if same[number] and sum(same) == 1:
                deciding.add(number)
    assert deciding == {0, 1, 2, 3}


def test_the_lists_of_one_model_are_its_own() -> None:
    """Unless the incumbent list has a higher lower bound, which under its own order it has not."""
    views, own, incumbent = made(0, ("pbm",), "eb(delta=0.2)")
    robust = robust_lists(views, own, incumbent, LENGTH, CONTEXTS)
    for context in range(CONTEXTS):
        assert worst_case(views, robust, incumbent, context) >= worst_case(views, own[0], incumbent, context)


# --- policies ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log that several click models explain."""
    folder = tmp_path_factory.mktemp("robust")
    world = make_world("cm", contexts=30, items=(4, 8), length=3, seed=2)
    write_log(world, 1_500, folder / "log.parquet", seed=4)
    return folder


def test_the_manifest_names_the_models_and_how_many_lists_they_changed(folder: Path) -> None:
    policy = prudent.rank(folder / "log.parquet", "robust", bound="eb(delta=0.2)")
    auto = prudent.rank(folder / "log.parquet", "auto", bound="eb(delta=0.2)")
    results = policy.manifest.results
    assert policy.manifest.settings["asked_model"] == "robust"
    assert policy.manifest.settings["model"] == auto.manifest.settings["model"] == results["plausible"][0]
    assert len(results["plausible"]) > 1
    assert set(results["plausible"]) <= set(selection.names())
    changed = sum(policy[context] != auto[context] for context in auto)
    assert results["summary"]["hedged"] == changed > 0
    assert "hedged" not in auto.manifest.results["summary"]


def test_the_command_says_under_which_models_lists_hold(folder: Path) -> None:
    done = run("rank", folder / "log.parquet", "--model", "robust", "-o", folder / "policy.parquet")
    assert done.code == 0, done.text
    (plausible,) = [prudent.Policy.read(folder / "policy.parquet").manifest.results["plausible"]]
    assert f"robust: {plausible[0]}." in done.out
    assert "The lists hold under" in done.out
    assert all(name in done.out for name in plausible)


def test_explanations_name_whose_numbers_they_show(folder: Path) -> None:
    policy = prudent.rank(folder / "log.parquet", "robust")
    (note,) = [note for note in policy.explain(next(iter(policy))).notes if "worst case" in note]
    assert policy.manifest.settings["model"] in note


def test_where_one_model_is_plausible_it_is_auto(tmp_path: Path) -> None:
    world = make_world("ubm", contexts=10, items=(6, 10), length=5, seed=1)
    log = write_log(world, 20_000, tmp_path / "log.parquet", seed=1)
    robust, auto = (prudent.rank(log, model) for model in ("robust", "auto"))
    assert "plausible" not in robust.manifest.results
    assert {context: robust[context] for context in robust} == {context: auto[context] for context in auto}


def test_only_eligible_items_are_listed(folder: Path, tmp_path: Path) -> None:
    """Also where the incumbent list is chosen: of the items that may be shown."""
    counts = prudent.count(folder / "log.parquet")
    items = prudent.rank(counts, "cm").lists().filter("item % 2 = 0").project("context, item").to_arrow_table()
    policy = prudent.rank(counts, "robust", bound="eb(delta=0.2)", candidates=items)
    assert all(item % 2 == 0 for context in policy for item in policy[context])


def test_rules_hold_in_the_lists_of_every_model(folder: Path) -> None:
    """An item of every other context is pinned to the top, whichever model the list is from."""
    counts = prudent.count(folder / "log.parquet")
    auto = prudent.rank(counts, "auto", bound="eb(delta=0.2)")
    last = {context: auto[context][-1] for context in list(auto)[::2]}
    rules = {"pin": [{"context": context, "item": item, "position": 1} for context, item in last.items()]}
    robust = prudent.rank(counts, "robust", bound="eb(delta=0.2)", rules=rules)
    assert {context: robust[context][0] for context in last} == last
    first = prudent.rank(counts, "auto", bound="eb(delta=0.2)", rules=rules)
    changed = sum(robust[context] != first[context] for context in first)
    assert robust.manifest.results["summary"]["hedged"] == changed > 0
    assert robust.manifest.results["rules"]["pin"]["changed"] > 0


def test_judgments_are_those_of_auto(folder: Path) -> None:
    robust, auto = (prudent.judge(folder / "log.parquet", model) for model in ("robust", "auto"))
    assert robust.relation().fetchall() == auto.relation().fetchall()
