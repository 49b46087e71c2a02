"""The simulator against closed forms and plain loops.

Every statistical test has a fixed seed, so it cannot come out differently twice. Its tolerance is four standard
errors of the frequency in question: wide enough that an honest simulator passes for practically every seed, and, with
a hundred thousand lists, narrow enough that a wrong formula does not.
"""

import json
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from numpy.typing import NDArray

from prudent.base.errors import UsageError, WriteError
from prudent.click_models import click_models
from prudent.click_models.simulate import write_log, write_truth
from prudent.click_models.world import Draw, World, best_lists, best_value, draw, make_world, production_value, value
from prudent.counts.count import count
from prudent.logs.log import Layout, Log
from tests.fitted import kind_of, position_parameter

LISTS = 100_000
KINDS = ["cm", "dcm", "pbm"]


def everything(world: World, lists: int = LISTS, seed: int = 0, chunk: int | None = None) -> Draw:
    columns = zip(*draw(world, lists, seed, chunk), strict=True)
    return Draw(*(np.concatenate(column) for column in columns))


def assert_frequencies(found: NDArray[np.float64], expected: NDArray[np.float64], n: int = LISTS) -> None:
    standard_error = np.sqrt(expected * (1 - expected) / n)
    assert np.all(np.abs(found - expected) <= 4 * standard_error), (found, expected)


# --- clicks -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_click_rate_per_position(kind: str) -> None:
    """With one list for ever, P(Y_k) = θ_k times p_k, or times the chance ∏(1 − (1 − λ_j) θ_j) to get that far."""
    world = make_world(kind, contexts=1, items=(6, 6), attraction=(2, 3), length=6, exploration=0, seed=3)
    shown = everything(world)
    assert (shown.items == shown.items[0]).all()
    attraction = world.attraction[shown.items[0]]
    position = position_parameter(world.users)
    reached = np.append(1, np.cumprod(1 - (1 - position) * attraction)[:-1])
    examined = position if kind == "pbm" else reached
    assert_frequencies(shown.clicks.mean(axis=0), examined * attraction)


def test_cascade_stops_at_the_first_click() -> None:
    assert everything(make_world("cm"), 5000).clicks.sum(axis=1).max() == 1


def test_reading_goes_on_after_a_click_with_the_continuation_of_its_position() -> None:
    """Items that nobody can resist: then the first click is at 1, and a click at k + 1 means going on after k."""
    world = make_world("dcm(continuation=[0.3, 0.9, 0.5])", contexts=1, items=(3, 3), length=3)
    shown = everything(replace(world, attraction=np.ones(3)))
    assert_frequencies(shown.clicks.mean(axis=0), np.array([1, 0.3, 0.3 * 0.9]))


@pytest.mark.parametrize("kind", KINDS)
def test_clicks_equal_those_of_a_plain_loop(kind: str) -> None:
    world = make_world(kind, contexts=20, items=(2, 9), attraction=(2, 3), length=5, seed=1)
    shown = everything(world, 2000)
    uniform = np.random.default_rng(0).random(shown.items.shape)
    expected = [click_one_list(world, items, u) for items, u in zip(shown.items, uniform, strict=True)]
    attraction = np.append(world.attraction, 0.0)[shown.items]
    np.testing.assert_array_equal(world.users.sample(attraction, np.random.default_rng(0)), expected)


def click_one_list(world: World, items: NDArray[np.int64], uniform: NDArray[np.float64]) -> list[int]:
    clicks, position = [0] * world.length, position_parameter(world.users)
    for k, item in enumerate(items):
        if item < 0:
            break
        attraction, parameter = world.attraction[item], position[k]
        if kind_of(world.users) == "pbm":
            clicks[k] = int(uniform[k] < parameter * attraction)
        else:
            clicks[k] = int(uniform[k] < attraction)
            if clicks[k] and uniform[k] >= parameter * attraction:
                break
    return clicks


# --- lists --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zipf", [0, 1, 1.5])
def test_contexts_are_as_frequent_as_zipf_says(zipf: float) -> None:
    world = make_world(contexts=30, items=(2, 3), length=2, zipf=zipf)
    share = 1.0 / np.arange(1, 31) ** zipf
    found = np.bincount(everything(world).context, minlength=30) / LISTS
    assert_frequencies(found, share / share.sum())


@pytest.mark.parametrize("exploration", [0.5, 2])
def test_lists_are_drawn_item_by_item_in_proportion_to_the_softmax_of_the_scores(exploration: float) -> None:
    """Gumbel noise makes the top K a Plackett-Luce draw: ∏ e^s / (sum of e^s over what is left), s = score/scale."""
    world = make_world(contexts=1, items=(4, 4), length=3, exploration=exploration, seed=5)
    drawn = everything(world).items
    strength = np.exp(world.score / exploration)
    orders = np.array(list(permutations(range(4), 3)))
    left = strength.sum() - np.cumsum(strength[orders], axis=1) + strength[orders]
    found = np.array([(drawn == order).all(axis=1).mean() for order in orders])
    assert_frequencies(found, (strength[orders] / left).prod(axis=1))


def test_without_exploration_a_context_has_one_list() -> None:
    world = make_world(contexts=3, items=(5, 5), length=4, exploration=0)
    shown = everything(world, 1000)
    for c in range(3):
        start, end = world.offsets[c : c + 2]
        expected = start + np.argsort(-world.score[start:end])[:4]
        assert (shown.items[shown.context == c] == expected).all()


def test_a_context_with_few_items_shows_them_all() -> None:
    world = make_world("dcm", contexts=10, items=(1, 6), length=4, seed=2)
    shown = everything(world, 1000)
    sizes = np.minimum(np.diff(world.offsets), 4)
    assert len(set(sizes)) == 4
    np.testing.assert_array_equal((shown.items >= 0).sum(axis=1), sizes[shown.context])
    assert not shown.clicks[shown.items < 0].any()
    for context, items in zip(shown.context, shown.items, strict=True):
        kept = items[items >= 0]
        assert len(set(kept)) == len(kept)
        assert (world.offsets[context] <= kept).all()
        assert (kept < world.offsets[context + 1]).all()


def test_quality_is_how_much_the_production_ranker_knows() -> None:
    """Correlation of score and logit θ is q σ / √(q² σ² + 1), σ the spread of logit θ; its error about 1/√pairs."""
    for quality in (-1, 0, 1, 3):
        world = make_world(quality=quality, seed=4)
        logit = np.log(world.attraction / (1 - world.attraction))
        spread = quality * logit.std()
        found = np.corrcoef(world.score, logit)[0, 1]
        assert found == pytest.approx(spread / np.sqrt(spread**2 + 1), abs=4 / np.sqrt(len(logit)))


def test_a_better_ranker_shows_better_lists() -> None:
    worlds = [make_world(quality=quality) for quality in (-1, 0, 1, 3)]
    shown = [production_value(world, 5000) / best_value(world) for world in worlds]
    assert shown == sorted(shown)
    assert shown[-1] < 1


def test_names_of_items_say_nothing_about_them() -> None:
    """|correlation| of two unrelated rows of n numbers stays below 4/√n; names are all different."""
    world = make_world()
    assert len(set(world.items)) == len(world.items)
    assert abs(np.corrcoef(world.items, world.attraction)[0, 1]) < 4 / np.sqrt(len(world.items))


# --- values -------------------------------------------------------------------------------------------------------


def test_value_by_hand() -> None:
    attraction = np.array([0.5, 0.2, 0.1])
    lists = np.array([[0, 1], [2, -1]])
    spelled = {
        "cm": [1 - 0.5 * 0.8, 0.1],
        "dcm(continuation=[0.6, 0.9])": [1 - (1 - 0.4 * 0.5) * (1 - 0.1 * 0.2), 0.4 * 0.1],
        "pbm(examination=[1, 0.5])": [0.5 + 0.5 * 0.2, 0.1],
    }
    for model, expected in spelled.items():
        world = replace(make_world(model, contexts=1, items=(3, 3), length=2), attraction=attraction)
        np.testing.assert_allclose(value(world, lists), expected)


@pytest.mark.parametrize("model", ["cm", "dcm(continuation=[0.9, 0.2, 0.5])", "pbm(examination=[0.3, 1, 0.6])"])
def test_no_list_beats_the_best_one(model: str) -> None:
    world = make_world(model, contexts=12, items=(1, 5), length=3, seed=6)
    best = value(world, best_lists(world))
    for c, (start, end) in enumerate(zip(world.offsets, world.offsets[1:], strict=False)):
        size = int(min(3, end - start))
        baselines = np.array(list(permutations(range(start, end), size)))
        baselines = np.pad(baselines, ((0, 0), (0, 3 - size)), constant_values=-1)
        assert best[c] == pytest.approx(value(world, baselines).max())
    assert best_value(world) == pytest.approx(np.average(best, weights=world.share))


def test_the_value_of_pbm_is_clicks_per_list() -> None:
    """A list has at most 10 clicks, so its number of clicks has a standard deviation of at most 5."""
    world = make_world("pbm")
    shown = everything(world)
    clicks = shown.clicks.sum(axis=1).mean()
    assert clicks == pytest.approx(value(world, shown.items).mean(), abs=4 * 5 / np.sqrt(LISTS))


# --- repeating ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_lists_do_not_depend_on_how_many_are_drawn_at_a_time(chunk: int) -> None:
    world = make_world("dcm", contexts=20)
    for whole, pieces in zip(everything(world, 300), everything(world, 300, chunk=chunk), strict=True):
        np.testing.assert_array_equal(whole, pieces)


def test_a_longer_log_begins_with_the_shorter_one() -> None:
    world = make_world(contexts=20)
    short, long = everything(world, 100), everything(world, 300)
    np.testing.assert_array_equal(short.items, long.items[:100])
    np.testing.assert_array_equal(short.clicks, long.clicks[:100])


def test_seeds_matter() -> None:
    assert (make_world(seed=0).attraction[:20] != make_world(seed=1).attraction[:20]).all()
    world = make_world()
    assert (everything(world, 100, seed=0).items != everything(world, 100, seed=1).items).any()


@pytest.mark.parametrize(
    ("name", "layout"),
    [("a.parquet", "lists"), ("a.parquet", "rows"), ("a.jsonl", "lists"), ("a.jsonl", "rows"), ("a.csv", "rows")],
)
def test_the_same_seed_gives_the_same_bytes(tmp_path: Path, name: str, layout: Layout) -> None:
    (tmp_path / "again").mkdir()
    for folder in (tmp_path, tmp_path / "again"):
        write_log(make_world("cm", contexts=30), 40_000, folder / name, layout=layout, seed=9)
    assert (tmp_path / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    manifest = f"{name}.manifest.json"
    assert (tmp_path / manifest).read_bytes() == (tmp_path / "again" / manifest).read_bytes()


# --- files --------------------------------------------------------------------------------------------------------


def test_a_written_log_is_the_drawn_one_in_its_order(tmp_path: Path) -> None:
    world = make_world("dcm", contexts=10, items=(2, 8), length=4, seed=8)
    shown = everything(world, 500, seed=3)
    path = write_log(world, 500, tmp_path / "log.parquet", seed=3)
    found = duckdb.execute(f"select context, items, clicks from '{path}'").fetchall()
    for row, context, items, clicks in zip(found, *shown, strict=True):
        kept = items >= 0
        assert row == (world.contexts[context], world.items[items[kept]].tolist(), clicks[kept].tolist())


def test_both_layouts_and_all_formats_hold_the_same_log(tmp_path: Path) -> None:
    world = make_world("pbm", contexts=10, items=(2, 8), length=4)
    named = replace(
        world,
        contexts=np.array([f"query {c}" for c in world.contexts], dtype=object),
        items=np.array([f"thing, {i}" for i in world.items], dtype=object),
    )
    layouts: list[Layout] = ["lists", "lists", "rows", "rows", "rows"]
    names = ["lists.parquet", "lists.jsonl", "rows.parquet", "rows.jsonl", "rows.csv"]
    first, *others = (
        count(Log(write_log(named, 500, tmp_path / name, layout=layout), layout=layout), to=tmp_path / f"{name}.counts")
        for name, layout in zip(names, layouts, strict=True)
    )
    assert first.tally.lists == 500
    assert [other == first for other in others] == [True] * 4


def test_truth_holds_every_pair_and_both_manifests_the_true_model(tmp_path: Path) -> None:
    world = make_world("dcm(continuation=[0.5, 0.75])", contexts=5, items=(3, 4), length=2, seed=11)
    truth = write_truth(world, tmp_path / "truth.parquet")
    log = write_log(world, 300, tmp_path / "log.parquet", seed=12)
    rows = duckdb.execute(f"select context, item, attraction from '{truth}'").fetchnumpy()
    np.testing.assert_array_equal(np.bincount(rows["context"]), np.diff(world.offsets))
    np.testing.assert_array_equal(rows["item"], world.items)
    np.testing.assert_array_equal(rows["attraction"], world.attraction)
    manifest: dict[str, Any] = {}
    for path in (truth, log):
        manifest = json.loads(Path(f"{path}.manifest.json").read_text())
        manifest = {**manifest["settings"], **manifest["results"]}
        assert click_models.parse(manifest["model"]) == world.users.pinned
        assert manifest["world"]["seed"] == 11
    assert manifest["draw"] == {"lists": 300, "seed": 12, "layout": "lists"}
    shown = everything(world, 300, seed=12)
    assert manifest["clicks"] == shown.clicks.sum()
    assert manifest["value"]["shown"] == pytest.approx(value(world, shown.items).mean())
    assert manifest["value"]["shown"] == production_value(world, 300, seed=12)
    again = make_world(manifest["model"], **manifest["world"])
    np.testing.assert_array_equal(again.attraction, world.attraction)


# --- mistakes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "ubn"}, "No click model is called 'ubn'"),
        ({"model": "auto"}, "auto chooses a click model for a log"),
        ({"model": "pbm(examination=[1, 0.5])"}, "has 2 positions but the lists have 10. Set length=2"),
        ({"contexts": 0}, "contexts is 0"),
        ({"items": (9, 3)}, "write the fewest, then the most"),
        ({"attraction": (0, 1)}, "above 0"),
        ({"zipf": -1}, "zipf is -1"),
        ({"length": 0}, "length is 0"),
        ({"exploration": -0.1}, "exploration is -0.1"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_impossible_worlds(settings: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message.replace("(", r"\(")):
        make_world(**settings)  # type: ignore[arg-type]


def test_impossible_files(tmp_path: Path) -> None:
    world = make_world(contexts=2)
    with pytest.raises(UsageError, match="a CSV file holds no lists"):
        write_log(world, 5, tmp_path / "log.csv")
    with pytest.raises(UsageError, match=r"Known endings: \.parquet, \.jsonl, \.csv"):
        write_log(world, 5, tmp_path / "log.xlsx")
    with pytest.raises(UsageError, match="Known: lists, rows"):
        write_log(world, 5, tmp_path / "log.parquet", layout="wide")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="lists is 0"):
        write_log(world, 0, tmp_path / "log.parquet")
    with pytest.raises(UsageError, match="chunk is -1"):
        next(draw(world, 5, chunk=-1))
    with pytest.raises(WriteError, match="Cannot write"):
        write_truth(world, tmp_path / "nowhere" / "truth.parquet")
    assert list(tmp_path.iterdir()) == []
