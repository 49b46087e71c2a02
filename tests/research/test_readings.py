"""The other readings are counted once more by plain loops over lists; then the experiment runs end to end."""

from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prudent.bounds import bounds
from prudent.click_models import ClickModel, DependentClick, Evidence, click_models
from prudent.counts.lists import Counted
from prudent.policies.baselines import baselines, fold
from prudent.policies.best_lists import best_lists
from prudent.research import readings
from prudent.research.bench import Bench
from prudent.research.data import synthetic_log
from prudent.research.laboratory import Laboratory
from prudent.research.reproduce import CATALOGUE, write_outcome
from tests import reference
from tests.strategies import as_batch, by_name, logs

Lists = list[reference.LoggedList]


def counted(model: ClickModel, lists: Lists) -> reference.Evidence:
    evidence = model.evidence(as_batch(lists))
    np.testing.assert_array_equal(
        evidence.impressions, list(dict(sorted(reference.impressions(lists).items())).values())
    )
    return by_name(lists, evidence.positive, evidence.negative)


@given(logs())
def test_cm_as_printed(lists: Lists) -> None:
    positive, negative = Counter[reference.Pair](), Counter[reference.Pair]()
    for context, items, clicks in lists:
        for k, item in enumerate(items):
            positive[context, item] += clicks[k] == 1
            negative[context, item] += sum(clicks[:k]) == 0
    expected = {pair: (positive[pair], negative[pair]) for pair in reference.impressions(lists)}
    assert counted(readings.CascadeAsPrinted(), lists) == expected


@given(logs())
def test_dcm_as_printed(lists: Lists) -> None:
    positive, negative = Counter[reference.Pair](), Counter[reference.Pair]()
    for context, items, clicks in lists:
        for item, click in zip(items, clicks, strict=True):
            positive[context, item] += click
            negative[context, item] += 1 - click
    expected = {pair: (positive[pair], negative[pair]) for pair in reference.impressions(lists)}
    assert counted(readings.DependentClickAsPrinted(), lists) == expected


@given(logs())
def test_printed_continuation(lists: Lists) -> None:
    last, onward = Counter[int](), Counter[int]()
    for _, _, clicks in lists:
        for k, click in enumerate(clicks):
            last[k] += click and sum(clicks[k:]) == 1
            onward[k] += click and sum(clicks[k:]) > 1
    both = [last[k] + onward[k] for k in range(reference.longest(lists))]
    expected = [onward[k] / n if n else 0.5 for k, n in enumerate(both)]
    assert readings.printed_continuation(as_batch(lists).cells).tolist() == pytest.approx(expected)


@given(logs())
def test_placement_alone_differs_from_our_dcm(lists: Lists) -> None:
    assert counted(readings.PlacedByContinuation(), lists) == counted(DependentClick(), lists)


def test_printed_placement_puts_the_best_item_last() -> None:
    """Two clicks in one list make λ̂₁ positive, and at the end nobody is ever seen to go on."""
    lists: Lists = [("x", ("good", "bad"), (1, 1)), *[("x", ("good", "bad"), (1, 0))] * 5]
    for model, expected in ((DependentClick(), ["good", "bad"]), (readings.PlacedByContinuation(), ["bad", "good"])):
        evidence = model.evidence(as_batch(lists))
        chosen = best_lists(evidence, bounds.parse("mle").score(evidence), 2)
        assert [("bad", "good")[row] for row in chosen.row] == expected


@given(logs(), st.sampled_from([0.2, 0.5, 1.0]))
def test_clipped_hoeffding(lists: Lists, delta: float) -> None:
    evidence = _cascade(as_batch(lists))
    expected = {
        pair: max(0.0, reference.hoeffding(*counts, delta)) for pair, counts in reference.cascade(lists).items()
    }
    for by_chance in (False, True):
        scores = readings.ClippedHoeffding(delta, by_chance).score(evidence)
        actual = {pair: lower for pair, (lower,) in by_name(lists, scores.lower).items()}
        assert actual == pytest.approx(expected)
    assert (np.diff(scores.mean)[np.diff(evidence.context) == 0] < 0).all()  # of equals, the smaller number


@given(logs(), st.sampled_from([0.5, 1.0]))
def test_mle_with_a_guess_for_what_was_never_examined(lists: Lists, guess: float) -> None:
    actual = readings.GuessingMle(guess).lower(_cascade(as_batch(lists)))
    expected = {
        pair: reference.mle(*counts) if sum(counts) else guess for pair, counts in reference.cascade(lists).items()
    }
    assert {pair: lower for pair, (lower,) in by_name(lists, actual).items()} == pytest.approx(expected)


def _cascade(counts: Counted) -> Evidence:
    return click_models.parse("cm").evidence(counts)


@given(logs(), st.sampled_from([1.0, 2.0, 1e6]))
def test_item_position_ips_with_repeats(lists: Lists, clip: float) -> None:
    pairs = sorted(reference.impressions(lists))
    actual: dict[reference.Name, dict[int, reference.Name]] = defaultdict(dict)
    chosen = readings.RepeatingItemPositionIps(clip).lists(fold(as_batch(lists)))
    for row, rank in zip(chosen.row, chosen.rank, strict=True):
        context, item = pairs[row]
        actual[context][int(rank)] = item
    assert actual == repeating(lists, clip)


def repeating(lists: Lists, clip: float) -> dict[reference.Name, dict[int, reference.Name]]:
    """The best item of each position; it stays only at the first of its positions."""
    shown = reference.impressions(lists)
    logged = Counter(context for context, _, _ in lists)
    best: dict[reference.Name, dict[int, reference.Name]] = {}
    for context in logged:
        best[context] = {}
        for position in range(1, reference.longest(lists) + 1):
            there = {
                item: cells[position]
                for (of, item), cells in reference.per_position(lists).items()
                if of == context and position in cells
            }

            def rank(item: reference.Name) -> tuple[float, int, int, reference.Name]:
                n, clicks = there[item]  # noqa: B023
                value = min(clip * clicks / logged[context], clicks / n)  # noqa: B023
                return -value, -n, -shown[context, item], item  # noqa: B023

            if there and (item := min(there, key=rank)) not in best[context].values():
                best[context][position] = item
    return best


def test_nobody_finds_another_reading_by_name() -> None:
    own = {cls for cls in vars(readings).values() if isinstance(cls, type) and cls.__module__ == readings.__name__}
    assert readings.CascadeAsPrinted in own
    for registry in (bounds, click_models, baselines):
        assert not own & {registry[name] for name in registry}


@pytest.mark.slow
@pytest.mark.parametrize("real", [False, True])
def test_every_reading_is_compared_and_noted(real: bool, tmp_path: Path) -> None:
    log = synthetic_log(0) if real else None
    outcome = CATALOGUE["readings"].run(Bench(Laboratory(), log, repetitions=2))
    of_models = [f"{kind}, {reading}" for kind, others in readings.MODELS.items() for reading in others]
    of_methods = [
        f"{method}, {reading}"
        for table in (readings.BOUNDS, readings.READINGS_OF_BASELINES)
        for method, others in table.items()
        for reading in others
    ]
    told = {note.partition(":")[0] for note in outcome.notes}
    assert {*of_models, *of_methods, f"{readings.MISREAD}, counts as printed"} <= told
    assert ("pbm, truth of every item" in told) == real
    assert set(of_models) <= {row.model for row in outcome.rows}
    assert set(of_methods) <= {row.method for row in outcome.rows}
    # The note says what the table says.
    error = {
        (row.model, row.method, row.logging, row.n): row.error
        for row in outcome.rows
        if row.delta in (None, 0.2) and not row.data.endswith("every item")
    }
    (ratio,) = (
        actual["ratio"]
        for actual in outcome.facts["ratios"]
        if (actual["reading"], actual["method"], actual["delta"]) == ("pbm, counts as printed", "eb", 0.2)
        and actual["logging"] == "production"
    )
    place = "eb", "production", 1_000
    assert ratio == pytest.approx(error["pbm, counts as printed", *place] / error["pbm", *place])
    (note,) = (note for note in outcome.notes if note.startswith("pbm, counts as printed:"))
    assert f"{ratio:.2f} ±" in note
    if not real:  # drawing takes longer than all the rest
        write_outcome(outcome, tmp_path / "readings", {})
        assert {"readings.svg", "readings.csv"} <= {file.name for file in tmp_path.iterdir()}
