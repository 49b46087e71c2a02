"""A repetition gives the same numbers as plain loops over lists and items, method by method and δ by δ."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prudent.base.errors import UsageError
from prudent.bounds import Bound, Mle, bounds
from prudent.click_models import Cascade, PositionBased, click_models
from prudent.click_models.world import World, clicked
from prudent.counts.lists import ListBatch
from prudent.policies import sweep as sweeping
from prudent.policies.baselines import baselines, clip_for, fold
from prudent.policies.best_lists import best_lists
from prudent.policies.sweep import sweep
from prudent.research import sources
from prudent.research.protocol import DELTAS, Protocol, gather, parameter_given
from prudent.research.sources import LabelsLike, Source, YandexLike, draw_lists, uniform
from tests.fitted import position_parameter
from tests.research import plain
from tests.research.small import lists_of, truth_of, world_of

KINDS = ["cm", "dcm", "pbm"]
SPELLINGS = ("mle", "bayes", "eb", "hoeffding", "exposure", "eb(pool=context)", "bayes(alpha=0.5,beta=3)")


def looped(learner: str) -> tuple[str, ...]:
    """The bounds that plain loops know: not posteriors under pbm, whose twin is in tests/base/test_thinned.py."""
    return ("mle", "hoeffding") if learner == "pbm" else plain.BOUNDS


def protocol(source: Source, learner: str | None = None, **settings: object) -> Protocol:
    """All the methods that plain loops know."""
    how: dict[str, object] = {
        "bounds": {name: bounds.parse(name) for name in looped(learner or source.kind)},
        "baselines": {name: baselines.parse(name) for name in plain.READINGS_OF_BASELINES},
        **settings,
    }
    return Protocol("data", "logging", source, click_models.parse(learner or source.kind), **how)  # type: ignore[arg-type]


# --- against plain loops ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("contexts", "n", "quality"), [(6, 120, 2.0), (4, 40, 0.0), (2, 80, -2.0)])
def test_errors_are_those_of_plain_loops(kind: str, contexts: int, n: int, quality: float) -> None:
    """Every arm to 1e-9; the best list by trying all. With 2, 4 and 6 contexts `exposure` fits 0, 1 and 2 slopes."""
    source = YandexLike(kind, quality, contexts, items=(3, 8))
    one = protocol(source, n=n, deltas=(0.05, 0.2, 0.5, 1.0))
    for repetition in range(2):
        world, shown = source.draw(n, np.random.default_rng(one.seed(3, repetition)))
        expected = plain.errors(truth_of(world), lists_of(shown), one.deltas, bounds=looped(kind))
        np.testing.assert_allclose(one.errors(3, repetition), [expected], atol=1e-9)


@pytest.mark.parametrize(("truth", "learner"), [("pbm", "dcm"), ("dcm", "pbm"), ("dcm", "cm")])
def test_a_learner_who_believes_in_another_model(truth: str, learner: str) -> None:
    source = YandexLike(truth, contexts=5, items=(4, 8))
    one = protocol(source, learner, n=200, deltas=(0.1, 0.75))
    world, shown = source.draw(200, np.random.default_rng(one.seed(0, 0)))
    expected = plain.errors(truth_of(world), lists_of(shown), one.deltas, learner, bounds=looped(learner))
    np.testing.assert_allclose(one.errors(0, 0), [expected], atol=1e-9)


def test_resampled_logs_and_many_unseen_documents() -> None:
    """Lists that share a row, and queries of which most documents were never shown."""
    for source, n in ((YandexLike("cm", contexts=3, items=(5, 8), pool=4), 5_000), (LabelsLike("dcm", 9, MIX, 5), 3)):
        one = protocol(source, n=n, deltas=(0.2, 1.0))
        world, shown = source.draw(n, np.random.default_rng(one.seed(1, 0)))
        assert shown.n.max() > 1 or np.bincount(shown.items.ravel(), minlength=len(shown.context)).min() == 0
        expected = plain.errors(truth_of(world), lists_of(shown), one.deltas)
        np.testing.assert_allclose(one.errors(1, 0), [expected], atol=1e-9)


MIX = (0.26, 0.36, 0.28, 0.08, 0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_the_log_of_plain_loops_is_the_same_list_by_list(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The benchmark times both, so both draw: from the same random numbers, the same lists and clicks."""
    monkeypatch.setattr(sources, "_AT_ONCE", 1)  # contexts one by one, as they are drawn in long logs
    world, shown = YandexLike(kind).draw(50, np.random.default_rng(5))
    truth, lists = plain.draw_yandex_like(kind, 50, np.random.default_rng(5))
    assert lists == lists_of(shown)
    assert truth.theta == truth_of(world).theta
    assert truth.position == position_parameter(world.users).tolist()
    for context in range(3):
        small = plain.Truth(kind, [dict(list(truth.theta[context].items())[:6])], truth.position)
        assert plain.best_by_sorting(small, 0) == pytest.approx(plain.best_by_trying(small, 0), abs=1e-12)


# --- what an error is --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_no_list_is_better_than_the_best(kind: str) -> None:
    for seed in range(3):
        assert protocol(YandexLike(kind, contexts=4, items=(3, 30)), n=30).errors(seed, 0).min() > -1e-12


@dataclass(frozen=True)
class Known(Source):
    """Two queries of which everything is known by hand."""

    kind: str = "cm"
    seen: list[int] = field(default_factory=list)
    real: ClassVar[str] = "Nothing."

    def draw(self, n: int, random: np.random.Generator) -> tuple[World, ListBatch]:
        self.seen.append(int(random.integers(2**40)))
        world = world_of("cm", [[0.5, 0.2, 0.1, 0.4], [0.3, 0.3, 0.3]])
        items = np.array([[0, 1, 2], [4, 5, 6]])
        return world, ListBatch(np.repeat([0, 1], [4, 3]), items, np.zeros((2, 3), bool), np.array([n, n]))


def test_an_error_by_hand() -> None:
    """Without clicks nobody knows better than to show what was shown: .5 .2 .1 instead of .5 .4 .2."""
    lost = (1 - 0.5 * 0.6 * 0.8) - (1 - 0.5 * 0.8 * 0.9)
    one = protocol(Known(), bounds={"mle": bounds.parse("mle")}, baselines={})
    np.testing.assert_allclose(one.errors(0, 0), [[lost / 2]], atol=1e-12)
    np.testing.assert_allclose(replace(one, blocks=2).errors(0, 0), [[lost], [0.0]], atol=1e-12)


@pytest.mark.parametrize("blocks", [2, 3, 7])
def test_blocks_share_out_the_contexts(blocks: int) -> None:
    one = protocol(YandexLike("cm", contexts=7, items=(4, 9)), n=50, deltas=(0.2,))
    each = replace(one, blocks=7).errors(0, 0)
    expected = np.array([of.mean(axis=0) for of in np.array_split(each, blocks)])
    np.testing.assert_allclose(replace(one, blocks=blocks).errors(0, 0), expected, atol=1e-12)
    np.testing.assert_allclose(one.errors(0, 0), [each.mean(axis=0)], atol=1e-12)


# --- who sees which log ------------------------------------------------------------------------------------------


def test_all_learners_see_the_same_logs() -> None:
    """Neither the methods nor the model that is believed in change the random numbers; all else does."""
    source = Known()
    mle = {"mle": bounds.parse("mle")}
    one = protocol(source, bounds=mle, baselines={})
    others = [protocol(source), protocol(source, "dcm", bounds=mle), replace(one, deltas=(0.3,), label="other")]
    for same in (one, *others):
        same.errors(7, 2)
    assert len(set(source.seen)) == 1
    for other in (replace(one, data="x"), replace(one, logging="x"), replace(one, n=7)):
        other.errors(7, 2)
    one.errors(7, 3)
    one.errors(8, 2)
    replace(one, source=Known("pbm", source.seen), n=9).errors(7, 2)
    assert len(set(source.seen)) == len(source.seen) - 3


def test_fewer_methods_have_the_same_errors() -> None:
    source = YandexLike("dcm", contexts=4, items=(4, 20))
    every = protocol(source, n=60)
    errors = dict(zip(every.arms, every.errors(0, 0)[0], strict=True))
    few = protocol(
        source, n=60, deltas=(0.5, 0.2), bounds={"mine": bounds.parse("eb")}, baselines={"pi": baselines["pi"]()}
    )
    assert few.arms == [("mine", 0.5), ("mine", 0.2), ("pi", None)]
    expected = [errors["eb", 0.5], errors["eb", 0.2], errors["pi", None]]
    np.testing.assert_allclose(few.errors(0, 0), [expected], atol=1e-12)


def test_arms_are_methods_by_delta() -> None:
    """δ plays no part for mle and pi, and is a clip for ips and ip-ips."""
    arms = protocol(Known(), deltas=(0.1, 0.2)).arms
    assert [label for label, delta in arms if delta is None] == ["mle", "pi"]
    assert [label for label, delta in arms if delta == 0.1] == ["bayes", "eb", "hoeffding", "exposure", "ips", "ip-ips"]
    assert len(arms) == 2 + 6 * 2
    assert protocol(Known(), deltas=(0.1, 0.2)).errors(0, 0).shape == (1, 14)


def test_every_delta_of_the_paper_has_a_clip() -> None:
    assert len(DELTAS) == 16
    assert [clip_for(delta) for delta in DELTAS] == [plain.clip_of(delta) for delta in DELTAS]
    with pytest.raises(UsageError, match=r"No clip belongs to delta=0\.22"):
        protocol(Known(), deltas=(0.22,)).errors(0, 0)


# --- sweeping δ --------------------------------------------------------------------------------------------------


def logs_of(draw: Callable[[st.SearchStrategy[int]], int], kind: str) -> tuple[World, ListBatch]:
    """A short log of few contexts, with many unseen items and many that are equal."""
    seed, contexts, n = draw(st.integers(0, 10_000)), draw(st.integers(1, 6)), draw(st.sampled_from([1, 2, 8, 40]))
    random = np.random.default_rng(seed)
    theta = [random.beta(1, 3, random.integers(1, 40)).tolist() for _ in range(contexts)]
    score = [value for of in theta for value in (2 * random.standard_normal(len(of))).tolist()]
    world = world_of(kind, theta, score)
    return world, clicked(world, draw_lists(world, n, random), random)


@settings(max_examples=40, deadline=None)
@given(st.data(), st.sampled_from(KINDS), st.sampled_from(SPELLINGS))
def test_a_sweep_is_each_bound_alone(data: st.DataObject, kind: str, spelling: str) -> None:
    """What `_may_be_chosen` leaves out, and that δs are found in one go, changes no list, ties included."""
    world, shown = logs_of(data.draw, kind)
    evidence = gather(click_models.parse(kind), world, shown)
    bound = bounds.parse(spelling)
    deltas: tuple[float | None, ...] = (0.05, 0.5, 1.0, None) if hasattr(bound, "delta") else (None,)
    for delta, actual in zip(deltas, sweep(bound, evidence, deltas, 3), strict=True):
        alone: Bound = bound if delta is None else replace(bound, delta=delta)  # type: ignore[type-var]
        expected = best_lists(evidence, alone.score(evidence), 3)
        for column, right in zip(actual, expected, strict=True):
            np.testing.assert_array_equal(column, right)


@settings(max_examples=40, deadline=None)
@given(st.data(), st.integers(1, 4))
def test_only_what_others_always_beat_is_left_out(data: st.DataObject, length: int) -> None:
    """By a plain loop: a pair stays if fewer than K others of its context have no smaller α and no larger β."""
    world, shown = logs_of(data.draw, "cm")
    evidence = gather(click_models.parse("cm"), world, shown)
    alpha, beta = evidence.positive + 1, evidence.negative + 1
    kept = sweeping._may_be_chosen(evidence, alpha, beta, length)
    for i in range(len(alpha)):
        better = 0
        for j in np.flatnonzero(evidence.context == evidence.context[i]):
            equal = alpha[j] == alpha[i] and beta[j] == beta[i]
            before = (-evidence.impressions[j], j) < (-evidence.impressions[i], i)
            better += int(alpha[j] >= alpha[i] and beta[j] <= beta[i] and (before or not equal))
        assert kept[i] == (better < length)


def test_leaving_out_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many queries do not fit into one table of comparisons."""
    source = LabelsLike("cm", 30, MIX, 40)
    one = protocol(source, n=20, deltas=(0.2,), baselines={})
    whole = one.errors(0, 0)
    monkeypatch.setattr(sweeping, "_AT_ONCE", 3_000)
    np.testing.assert_array_equal(one.errors(0, 0), whole)


@pytest.mark.parametrize("spelling", ["ips", "ip-ips"])
def test_a_clip_beyond_the_number_of_lists_does_nothing(spelling: str) -> None:
    """Which is why one list serves all of them; shown here without that shortcut."""
    source = YandexLike("pbm", contexts=5, items=(5, 12))
    one = protocol(source, n=100, bounds={}, baselines={spelling: baselines.parse(spelling)})
    world, shown = source.draw(100, np.random.default_rng(one.seed(0, 0)))
    totals = fold(shown)
    actual = list(one._learn(world, shown))
    for delta, lists in zip(DELTAS, actual, strict=True):
        alone = baselines.parse(f"{spelling}(clip={clip_for(delta)})").lists(totals)
        np.testing.assert_array_equal(lists.row, alone.row)


def test_a_log_that_does_not_link_its_positions_is_told_their_examination() -> None:
    """Every item stands where it always stands: pbm is not identified, and the learner is told p."""
    source = Known()
    _, shown = source.draw(100, np.random.default_rng(0))
    world = world_of("pbm", [[0.5, 0.2, 0.1, 0.4], [0.3, 0.3, 0.3]])
    evidence = gather(click_models.parse("pbm"), world, shown)
    np.testing.assert_array_equal(position_parameter(evidence.fitted), position_parameter(world.users))
    np.testing.assert_allclose(evidence.negative, [90, 50, 70, 0, 90, 50, 70])


# --- pbm where a log cannot tell examination -------------------------------------------------------------------------


def test_a_learner_by_position_is_told_what_its_log_cannot_tell() -> None:
    """One context and uniform lists link no positions at n = 30: p is told, or nothing is where there is none."""
    weighted = PositionBased(counts="weighted")
    by_position = Protocol("data", "uniform", uniform(YandexLike("pbm", contexts=1)), weighted, {"mle": Mle()}, n=30)
    assert parameter_given(by_position, 0, 3) == 3
    world, shown = by_position.source.draw(30, np.random.default_rng(0))
    evidence = gather(by_position.model, world, shown)
    np.testing.assert_array_equal(position_parameter(evidence.fitted), position_parameter(world.users))
    assert str(evidence.fitted.model).startswith("pbm(counts=weighted")
    world, shown = uniform(YandexLike("dcm", contexts=1)).draw(30, np.random.default_rng(0))
    assumed = gather(PositionBased(), world, shown).fitted
    np.testing.assert_array_equal(position_parameter(assumed), np.ones(4))
    assert parameter_given(replace(by_position, model=Cascade()), 0, 3) == 0
    linked = replace(by_position, source=YandexLike("pbm", 2.0), n=1_000)
    assert parameter_given(linked, 0, 2) == 0
