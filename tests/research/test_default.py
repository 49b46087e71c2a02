from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from prudent.counts.lists import ListBatch
from prudent.research import default
from prudent.research.data import LabelSet
from prudent.research.default import KnownPrior, markdown, protocols, summarise, with_floor
from prudent.research.laboratory import Laboratory
from prudent.research.protocol import Protocol
from prudent.research.sources import LabelsLike, YandexLike
from prudent.research.table import Results

YAHOO = LabelsLike("cm", 24, (0.26, 0.36, 0.28, 0.08, 0.02), queries=8, per="list")


def some_lists() -> ListBatch:
    """Two contexts of six items, shown and clicked at random."""
    rng = np.random.default_rng(0)
    items = np.stack([rng.permutation(6)[:4] + 6 * (i % 2) for i in range(400)])
    return ListBatch(np.repeat([0, 1], 6), items, rng.random(items.shape) < 0.3, np.ones(400, np.int64))


def some_labels() -> LabelSet:
    return LabelSet("labels", np.tile([0, 1, 2, 4], 6), np.array([8, 8, 8]))


def small() -> list[Protocol]:
    source = YandexLike("cm", contexts=3, items=(5, 8))
    bounds = {name: default.BOUNDS[name] for name in ("mle", "eb", "exposure")}
    first = Protocol("Yandex-like", "production", source, default.protocols()[0].model, bounds, deltas=(0.5,), n=30)
    return [first, replace(first, data="Yahoo-like", logging="per list", source=YAHOO)]


def test_there_are_57_protocols_and_each_draws_its_own_logs() -> None:
    actual = protocols(some_lists(), some_labels())
    assert Counter((p.data, p.logging) for p in actual).total() == 57
    assert len({p.seed(0, 0).spawn_key for p in actual}) == 57
    assert len({default.name(p) for p in actual}) == 57
    assert all(p.source.kind == p.label for p in actual)
    assert {p.data for p in actual} - {p.data for p in protocols()} == {"Yandex", "Labelled queries"}
    assert len(protocols()) == 45


@pytest.mark.parametrize("number", [-1, -3, -4])
def test_protocols_of_real_data_run(number: int) -> None:
    protocol = replace(protocols(some_lists(), some_labels())[number], n=60)
    errors = protocol.errors(seed=1, repetition=0)
    assert errors.shape == (1, len(protocol.arms))
    assert (errors >= -1e-12).all()


def test_a_summary_is_what_loops_find() -> None:
    rng = np.random.default_rng(0)
    results = [Results(p, rng.uniform(0.1, 1, (5, len(p.arms)))) for p in small()]
    row = next(row for row in summarise(results) if row.method == "eb")
    differences, ratios, errors, variance = [], [], [], 0.0
    for result in results:
        mle, eb, exposure = (result.errors[:, i] for i in range(3))
        errors.append(sum(eb) / 5)
        gaps = [a - b for a, b in zip(eb, exposure, strict=True)]
        differences.append(sum(gaps) / 5)
        variance += sum((gap - sum(gaps) / 5) ** 2 for gap in gaps) / 4 / 5
        ratios.append(sum(eb) / sum(mle))
    assert row.error == pytest.approx(sum(errors) / 2)
    assert row.against_reference == pytest.approx(sum(differences) / 2)
    assert row.se == pytest.approx(variance**0.5 / 2)
    assert row.ratio == pytest.approx((ratios[0] * ratios[1]) ** 0.5)
    assert row.worst == pytest.approx(max(ratios))
    assert row.worst_limit > row.worst
    assert row.worst_protocol == default.name(small()[ratios.index(max(ratios))])


def test_the_reference_differs_from_itself_by_nothing() -> None:
    rows = {row.method: row for row in summarise(Laboratory(seed=1).run(small(), repetitions=3))}
    assert rows["exposure"].against_reference == rows["exposure"].se == 0
    assert rows["mle"].ratio == rows["mle"].worst == pytest.approx(1)


def test_the_floor_knows_that_much_shown_items_are_good() -> None:
    """Lists with weights of their own make impressions a copy of θ."""
    floor = KnownPrior.of(small()[1], repetitions=5)
    mean = floor.chance @ floor.theta
    assert floor.theta == pytest.approx([0.05, 0.1, 0.2, 0.4, 0.8])
    assert floor.chance.sum(axis=1) == pytest.approx(1)
    assert mean[-1] > 2 * mean[0]


def test_the_floor_is_lower_than_what_learns_without_exposure() -> None:
    """Of eight logs; its errors are a tenth of those of eb."""
    result = Laboratory(seed=1).run([with_floor(small()[1], repetitions=10)], repetitions=8)[0]
    assert result.of("floor").mean() < 0.5 * result.of("eb", 0.5).mean()


def test_a_real_truth_has_no_floor() -> None:
    real = next(p for p in protocols(some_lists()) if p.data == "Yandex")
    assert with_floor(real) is real


def test_the_table_has_a_line_for_every_arm() -> None:
    results = Laboratory(seed=1).run([small()[0], with_floor(small()[1], repetitions=2)], repetitions=2)
    lines = markdown(summarise(results)).splitlines()
    assert [line.split("|")[1].strip() for line in lines[2:]] == ["mle", "eb", "exposure", "floor (1 protocols)"]
    assert len({line.count("|") for line in lines}) == 1


def test_every_bound_keeps_its_own_delta() -> None:
    arms = protocols()[0].arms
    assert arms[:4] == [("mle", None), ("hoeffding", 0.2), ("eb", 0.2), ("exposure", 0.5)]
    assert len(arms) == len(default.BOUNDS)


@pytest.mark.parametrize(("repetitions", "quoted"), [(49, False), (50, True)])
def test_a_worst_ratio_needs_repetitions(repetitions: int, quoted: bool) -> None:
    rng = np.random.default_rng(0)
    results = [Results(p, rng.uniform(0.1, 1, (repetitions, len(p.arms)))) for p in small()]
    assert ("too few repetitions" in markdown(summarise(results))) != quoted


def test_groups_are_paired_differences_to_the_reference() -> None:
    """Two protocols of one logging policy, of other click models, are one line: the mean of both."""
    rng = np.random.default_rng(0)
    first = replace(small()[0], deltas=(), label="cm")
    results = [Results(replace(first, label=label), rng.uniform(0.1, 1, (5, 3))) for label in ("cm", "dcm")]
    gaps = [result.errors[:, 1] - result.errors[:, 2] for result in results]
    variance = sum(sum((gap - np.mean(gap)) ** 2) / 4 / 5 for gap in gaps)
    mean = sum(float(np.mean(gap)) for gap in gaps) / 2
    *_, line = default.groups(results).splitlines()
    assert line.endswith(f"| {mean * 1e4:+.1f} ± {variance**0.5 / 2 * 1e4:.1f} |")
    assert line.startswith("| Yandex-like | production | 30 | ")
