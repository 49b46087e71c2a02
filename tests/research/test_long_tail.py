from dataclasses import replace
from math import log2

import numpy as np
import pytest

from prudent.click_models.world import World, value
from prudent.counts.lists import ListBatch
from prudent.research import long_tail
from prudent.research.long_tail import LENGTH, LongTail, LongTailProtocol, lists_per_context, protocols
from prudent.research.table import Results

WORLD = LongTail("pbm", 0.5, (1.0, 8.0), 0.5, contexts=40)


def small(users: str) -> LongTailProtocol:
    bounds = {name: long_tail.BOUNDS[name] for name in ("mle", "anchored")}
    whole = next(one for one in protocols(bounds) if one.source.kind == users)
    return replace(whole, source=replace(WORLD, kind=users))


def draw(protocol: LongTailProtocol) -> tuple[World, ListBatch]:
    return protocol.source.draw(0, np.random.default_rng(protocol.seed(3, 0)))


@pytest.mark.parametrize("users", ["pbm", "dcm"])
def test_regrets_of_logged_and_incumbent_lists_are_those_of_loops(users: str) -> None:
    """Of logged items alone: the best list, production's order by discounted impressions, and every logged list."""
    protocol = small(users)
    world, shown = draw(protocol)
    # p and 1 − λ of the true users fall with the position, or rise: the best item stands where they are highest.
    fitted = world.users
    weight = fitted.examination if users == "pbm" else 1 - fitted.continuation  # type: ignore[attr-defined]
    places = sorted(range(LENGTH), key=lambda k: (-weight[k], k))
    logged, incumbent = [], []
    for context in range(40):
        lists = [row.tolist() for row in shown.items if shown.context[row[0]] == context]
        items = sorted({item for row in lists for item in row})
        best = [-1] * LENGTH
        for place, item in zip(places, sorted(items, key=lambda item: -world.attraction[item]), strict=False):
            best[place] = item

        def discounted(item: int, lists: list[list[int]] = lists) -> float:
            return sum(1 / log2(2 + row.index(item)) for row in lists if item in row)

        def shows(item: int, lists: list[list[int]] = lists) -> int:
            return sum(item in row for row in lists)

        order = sorted(items, key=lambda item: (-round(discounted(item), 5), -shows(item), item))[:LENGTH]
        values = value(world, np.array([best, order, *lists]))
        logged.append(values[0] - values[2:].mean())
        incumbent.append(values[0] - values[1])
    errors = protocol.errors(3, 0)[0]
    assert errors[:2] == pytest.approx([np.mean(logged), np.mean(incumbent)])
    assert protocol.arms == [("logged", None), ("incumbent", None), ("mle", None), ("anchored", 0.5)]
    assert (errors > 0).all()


def test_four_in_five_contexts_have_one_list() -> None:
    """Of 100,000 contexts: the share within 4 standard errors, and one in m of the others has 2m lists."""
    lists = lists_per_context(100_000, np.random.default_rng(0))
    assert np.mean(lists == 1) == pytest.approx(0.8, abs=4 * np.sqrt(0.16 / 100_000))
    frequent = lists[lists > 1]
    for m in (2, 5, 50):
        assert np.mean(frequent >= 2 * m) == pytest.approx(1 / m, abs=4 / np.sqrt(4 * len(frequent)))
    assert lists.max() == long_tail.MOST_LISTS


@pytest.mark.parametrize("correlation", [0.8, 0.0, -0.3])
def test_production_knows_as_much_as_it_is_said_to(correlation: float) -> None:
    """The correlation of 20,000 scores with logit θ, within 4 standard errors of at most 1/√20,000."""
    world, _ = LongTail("dcm", correlation, (1.0, 8.0), 0.1, contexts=1_000).draw(0, np.random.default_rng(1))
    logit = np.log(world.attraction) - np.log1p(-world.attraction)
    assert np.corrcoef(world.score, logit)[0, 1] == pytest.approx(correlation, abs=4 / np.sqrt(20_000))


def test_every_kind_of_world_draws_its_own_logs() -> None:
    every = protocols()
    assert len(every) == 112
    assert len({(one.seed(0, 0).spawn_key, str(one.model)) for one in every}) == 112
    informative = [one for one in every if one.data.startswith("informative")]
    assert len(informative) * long_tail.REPETITIONS == 192


def test_tables_count_the_worlds_that_are_no_worse_than_logged() -> None:
    """Three worlds of one kind of production: two ratios of 0.5 and 1, and one of 2."""
    bounds = {"exposure": long_tail.BOUNDS["exposure"], "anchored": long_tail.BOUNDS["anchored"]}
    kinds = [next(one for one in protocols(bounds) if one.data.startswith(kind)) for kind in long_tail.CORRELATIONS]
    errors = np.array([[0.2, 0.2, 0.1, 0.4], [0.1, 0.1, 0.1, 0.1], [0.4, 0.4, 0.8, 0.2]])
    results = [Results(kind, errors) for kind in kinds]
    assert long_tail.ratios(results[:1], "exposure") == pytest.approx([0.5, 1, 2])
    facts = long_tail._facts(results, "exposure")["opposed"]
    assert facts == {"worlds": 3, "no_worse": 2, "mean": pytest.approx(3.5 / 3), "worst": pytest.approx(2)}
    lines = long_tail._safety(results).splitlines()
    assert [line.split("|")[1].strip() for line in lines[2:]] == ["incumbent", "exposure", "anchored"]
    assert "| exposure | 2 of 3 | 1.167 ± 0.441 | 2.00 |" in lines[3]
    assert len({line.count("|") for line in lines}) == 1
    assert len({line.count("|") for line in long_tail._by_kind(results).splitlines()}) == 1
