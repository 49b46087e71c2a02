"""What sources draw has the distribution that they promise; what they keep of a log is what plain loops keep.

Statistical tests have fixed seeds. Their limits are explained where they stand: each is some four standard errors, so
that code that is right passes with nearly every seed, and a bias of one tenth of a percent or so does not.
"""

from collections import Counter
from dataclasses import replace
from itertools import permutations
from time import process_time
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from prudent.base.errors import LogError
from prudent.click_models.world import clicked, pairs_of
from prudent.counts.lists import ListBatch
from prudent.research import sources
from prudent.research.sources import (
    ATTRACTION,
    EYE_TRACKING,
    FittedTruth,
    HeldOutClicks,
    LabelledQueries,
    LabelsLike,
    Source,
    YandexLike,
    draw_lists,
    fit_truth,
    keep_common,
    keep_frequent,
    pattern_chances,
    renumbered,
    resampled,
)
from tests import reference
from tests.fitted import kind_of, position_parameter
from tests.research import plain
from tests.research.small import assert_drawn_from, lists_of, truth_of, world_of
from tests.strategies import as_batch, logs

KINDS = ["cm", "dcm", "pbm"]
FIVE = [[0.1, 0.6, 0.3, 0.8, 0.45]]
PATTERNS = (np.arange(8)[:, None] >> np.arange(3)) & 1 > 0


def seeded(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


# --- lists -----------------------------------------------------------------------------------------------------------


def test_whole_lists_are_drawn_item_by_item_with_weights() -> None:
    """All 60 lists of three out of five, in each of two contexts: χ² with 59 degrees of freedom each."""
    score = [0.3, -1.0, 1.2, 0.0, 0.5, -0.4, 2.0, 0.1, -2.0, 1.0]
    lists = draw_lists(world_of("cm", FIVE * 2, score), 60_000, seeded())
    for start, drawn in zip((0, 5), np.split(lists, 2), strict=True):
        chances = plain.list_chances({start + i: score[start + i] for i in range(5)}, 3)
        counts = Counter(map(tuple, drawn.tolist()))
        likely = [items for items in chances if chances[items] * 60_000 >= 5]
        assert_drawn_from((counts[items] for items in likely), (60_000 * chances[items] for items in likely))
        assert sum(counts[items] for items in chances) == 60_000


def test_without_scores_all_items_are_shown_equally_often() -> None:
    """K/size of the lists, at each position 1/size; the standard deviation of a count of n is √(n p (1 − p))."""
    n, theta = 20_000, [[0.5] * 4, [0.5] * 9, [0.5] * 6]
    lists = draw_lists(world_of("cm", theta), n, seeded(2))
    for size, drawn in zip((4, 9, 6), np.split(lists, 3), strict=True):
        for column in drawn.T:
            counts = np.bincount(column - drawn.min(), minlength=size)
            assert_drawn_from(counts, [n / size] * size)
        inclusion = np.bincount(drawn.ravel() - drawn.min()) / n
        assert np.abs(inclusion - 3 / size).max() < 4.5 * np.sqrt(3 / size * (1 - 3 / size) / n)


def test_a_context_with_few_items_shows_them_all_and_then_nothing() -> None:
    lists = draw_lists(world_of("cm", [[0.5, 0.2], [0.1] * 7]), 50, seeded())
    assert {tuple(sorted(row)) for row in lists[:50].tolist()} == {(-1, 0, 1)}
    assert (lists[:50, 2] == -1).all()
    assert (lists[50:] >= 2).all()


def test_no_list_repeats_an_item_or_leaves_its_context() -> None:
    world, shown = YandexLike("cm", contexts=7, items=(4, 30)).draw(300, seeded())
    assert len(shown.items) == 7 * 300
    context = np.repeat(np.arange(7), 300)
    np.testing.assert_array_equal(shown.context[shown.items], np.tile(context[:, None], 4))
    assert all(len(set(row)) == 4 for row in shown.items.tolist())
    np.testing.assert_array_equal(pairs_of(world), shown.context)


def test_drawing_in_pieces_is_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few contexts are drawn at a time, lists stay with their contexts."""
    monkeypatch.setattr(sources, "_AT_ONCE", 1)
    lists = draw_lists(world_of("cm", [[0.5] * 3, [0.5] * 8, [0.5] * 5]), 40, seeded())
    edges = np.repeat([[0, 3], [3, 11], [11, 16]], 40, axis=0)
    assert ((lists >= edges[:, :1]) & (lists < edges[:, 1:])).all()


def test_fresh_dirichlet_weights_for_each_list_make_impressions_a_copy_of_them() -> None:
    """Dirichlet(α) weights, averaged over, leave a draw item by item with weights α.

    The share that i leaves to the others is independent of how they split it, which is Dirichlet again, with a mean of
    α_j / (α₀ − α_i).
    """
    alpha = np.array([0.05, 0.8, 0.2, 0.4, 0.1])
    lists = draw_lists(world_of("cm", FIVE), 60_000, seeded(3), alpha)
    chances = plain.list_chances(dict(enumerate(np.log(alpha).tolist())), 3)
    counts = Counter(map(tuple, lists.tolist()))
    assert_drawn_from((counts[items] for items in chances), (60_000 * chances[items] for items in chances))


@pytest.mark.parametrize("shape", [0.05, 0.4, 3.0])
def test_logs_of_gamma_draws(shape: float) -> None:
    """E log G = ψ(a), Var log G = ψ′(a); the mean of n draws is off by √(Var/n), their variance by a few √(1/n).

    log G has a heavy left tail: its fourth moment is at most 9 Var², so that the variance is off by √(8/n) of itself.
    """
    from scipy.special import polygamma, psi

    n = 200_000
    drawn = sources._log_gamma(np.full(n, shape), seeded(4))
    assert np.isfinite(drawn).all()
    spread = float(polygamma(1, shape))
    assert abs(drawn.mean() - psi(shape)) < 4.5 * np.sqrt(spread / n)
    assert abs(drawn.var() / spread - 1) < 4.5 * np.sqrt(8 / n)
    assert abs(np.exp(drawn).mean() - shape) < 4.5 * np.sqrt(shape / n)  # and G itself: mean a, variance a


# --- clicks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_clicks_are_those_of_a_user_who_reads_the_list(kind: str) -> None:
    """All eight patterns on three lists, 30,000 times each, against the tree of what a user may do."""
    world = world_of(kind, FIVE)
    lists = np.array([[0, 1, 2], [3, 4, 1], [2, 0, 3]])
    shown = clicked(world, np.repeat(lists, 30_000, axis=0), seeded(5))
    assert (shown.n == 1).all()
    for items, clicks in zip(lists, np.split(shown.clicks, 3), strict=True):
        chances = plain.click_chances(truth_of(world), world.attraction[items].tolist())
        counts = Counter(map(tuple, clicks.astype(int).tolist()))
        assert_drawn_from((counts[p] for p in chances), (30_000 * chance for chance in chances.values()), kind)


@pytest.mark.parametrize("kind", KINDS)
def test_click_rates_by_position(kind: str) -> None:
    """Of lists drawn from all 60: each position's rate in closed form, examination times attraction."""
    score = [0.3, -1.0, 1.2, 0.0, 0.5]
    world, n = world_of(kind, FIVE, score), 50_000
    shown = clicked(world, draw_lists(world, n, seeded(6)), seeded(7))
    rates, position = np.zeros(3), position_parameter(world.users)
    for items, chance in plain.list_chances(dict(enumerate(score)), 3).items():
        read = 1.0  # the probability that position k is examined
        for k, theta in enumerate(world.attraction[list(items)].tolist()):
            rates[k] += chance * theta * (position[k] if kind == "pbm" else read)
            read *= 1 - theta + theta * position[k]
    assert np.all(np.abs(shown.clicks.mean(axis=0) - rates) < 4.5 * np.sqrt(rates * (1 - rates) / n))


@pytest.mark.parametrize("kind", KINDS)
@given(theta=st.lists(st.floats(0, 1), min_size=3, max_size=3))
def test_chances_of_patterns(kind: str, theta: list[float]) -> None:
    world = world_of(kind, [theta])
    actual = pattern_chances(world, np.array([[0, 1, 2], [2, 0, 1], [1, 0, -1]]), PATTERNS)
    np.testing.assert_allclose(actual.sum(axis=1), 1, rtol=1e-12)
    for row, of in zip(actual, ([0, 1, 2], [2, 0, 1], [1, 0, -1]), strict=True):
        chances = plain.click_chances(truth_of(world), [theta[i] if i >= 0 else 0.0 for i in of])
        expected = [chances.get(tuple(map(int, pattern)), 0.0) for pattern in PATTERNS]
        np.testing.assert_allclose(row, expected, rtol=1e-9, atol=1e-12)


# --- lists of a log, drawn again ---------------------------------------------------------------------------------


def few_lists(times: tuple[int, ...] = (5, 3, 1, 1)) -> ListBatch:
    items = np.array([[0, 1, 2], [5, 6, 7], [2, 3, 4], [6, 5, 7]])
    return ListBatch(np.repeat([0, 1], [5, 3]), items, np.zeros((4, 3), bool), np.array(times))


WORLD = [FIVE[0], [0.7, 0.2, 0.5]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [20_000, 50])
def test_lists_and_clicks_drawn_again(kind: str, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways, list by list for short logs and pattern by pattern for long ones, have the same distribution.

    As frequencies of (list, clicks) over 60,000 draws or more, whose exact chances are a product.
    """
    world, lists, random = world_of(kind, WORLD), few_lists(), seeded(8)
    taken: list[bool] = []
    chances_of = sources.pattern_chances

    def note(*of: Any) -> object:
        taken.append(True)
        return chances_of(*of)

    monkeypatch.setattr(sources, "pattern_chances", note)
    repeats = 60_000 // n
    drawn = [resampled(world, lists, n, random) for _ in range(repeats)]
    assert bool(taken) == (n == 20_000)
    for one in drawn[:20]:
        np.testing.assert_array_equal(np.bincount(one.list_context, one.n), [n, n])
    counts = Counter[tuple[tuple[int, ...], tuple[int, ...]]]()
    for one in drawn:
        for items, clicks, times in zip(one.items.tolist(), one.clicks.astype(int).tolist(), one.n, strict=True):
            counts[tuple(items), tuple(clicks)] += int(times)
    chances = {}
    for items, share in (((0, 1, 2), 5 / 6), ((2, 3, 4), 1 / 6), ((5, 6, 7), 3 / 4), ((6, 5, 7), 1 / 4)):
        theta = world.attraction[list(items)].tolist()
        for clicks, chance in plain.click_chances(truth_of(world), theta).items():
            chances[items, clicks] = share * chance
    likely = {key: chance for key, chance in chances.items() if chance * n * repeats >= 5}
    assert_drawn_from((counts[key] for key in likely), (n * repeats * chance for chance in likely.values()))
    assert sum(counts[key] for key in chances) == sum(counts.values()) == 2 * n * repeats


def test_long_logs_cost_what_short_ones_do() -> None:
    """A thousand times as many lists, and not even ten times the work or the rows."""
    world, lists = world_of("dcm", WORLD), few_lists()
    rows, took = [], []
    for n in (10_000, 10_000_000):
        started = process_time()
        for _ in range(20):
            shown = resampled(world, lists, n, seeded())
        took.append(process_time() - started)
        rows.append(len(shown.n))
        assert shown.n.sum() == 2 * n
    assert max(rows) <= 4 * 8
    assert took[1] < 10 * took[0] + 0.1


def test_a_context_without_lists_is_an_error() -> None:
    world, lists = world_of("cm", [*WORLD, [0.1, 0.2, 0.3]]), few_lists()
    with pytest.raises(LogError, match="no list to draw from"):
        resampled(world, replace(lists, context=pairs_of(world)), 10, seeded())


def test_real_clicks_are_drawn_with_their_lists() -> None:
    """n lists of each context; every drawn row is one of the log's, in proportion to how often it was shown."""
    lists = few_lists((50, 30, 10, 10))
    lists.clicks[[0, 2], [1, 0]] = True
    source = HeldOutClicks(world_of("pbm", WORLD), lists)
    counts = Counter[tuple[float, ...]]()
    random = seeded(9)
    for _ in range(200):
        world, shown = source.draw(100, random)
        np.testing.assert_array_equal(np.bincount(shown.list_context, shown.n), [100, 100])
        for items, clicks, times in zip(shown.items, shown.clicks, shown.n, strict=True):
            counts[(*world.attraction[items].tolist(), *clicks.tolist())] += int(times)
    theta = source.world.attraction
    keys = [(*theta[items].tolist(), *clicks.tolist()) for items, clicks in zip(lists.items, lists.clicks, strict=True)]
    assert_drawn_from((counts[key] for key in keys), [20_000 * share for share in (5 / 6, 3 / 4, 1 / 6, 1 / 4)])
    assert set(counts) == set(keys)


# --- numbers that mean nothing ------------------------------------------------------------------------------------


def test_new_numbers_keep_everything_but_the_order() -> None:
    """Under each number stands what stood under another, in lists as in the truth; −1 stays."""
    theta = [np.linspace(0.9, 0.1, 30).tolist(), np.linspace(0.8, 0.2, 40).tolist()]
    world = world_of("dcm", theta, np.arange(70.0).tolist())
    items = np.array([[0, 1, 2], [35, 69, 30], [4, 29, -1]])
    lists = ListBatch(np.repeat([0, 1], [30, 40]), items, items % 2 == 0, np.array([3, 1, 2]))
    new, shown = renumbered(world, lists, seeded())
    np.testing.assert_array_equal(np.append(new.attraction, -1)[shown.items], np.append(world.attraction, -1)[items])
    np.testing.assert_array_equal(np.append(new.score, -1)[shown.items], np.append(world.score, -1)[items])
    np.testing.assert_array_equal(shown.clicks, lists.clicks)
    np.testing.assert_array_equal(shown.n, lists.n)
    np.testing.assert_array_equal(new.offsets, world.offsets)
    np.testing.assert_array_equal(position_parameter(new.users), position_parameter(world.users))
    for some in (slice(0, 30), slice(30, 70)):
        assert sorted(new.attraction[some]) == sorted(world.attraction[some])
        # A random order of 30 or more correlates with the old one by N(0, 1/30): less than .75 is 4 σ.
        assert abs(np.corrcoef(new.attraction[some], world.attraction[some])[0, 1]) < 0.75


def numbers_and_truth(source: Source) -> float:
    """Correlation of θ with the number within its context, over many contexts and draws."""
    actual = []
    for seed in range(20):
        world, _ = source.draw(5, seeded(seed))
        number = np.concatenate([np.linspace(-1, 1, size) for size in np.diff(world.offsets)])
        actual.append(np.corrcoef(number, world.attraction)[0, 1])
    return float(np.mean(actual))


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_do_not_tell_what_is_good(kind: str) -> None:
    """Files that sort documents by label, and logs that number items by clicks, do not leak into ties.

    20 draws of at least 500 pairs: the mean correlation has a standard error of 1/√10,000.
    """
    label = np.tile(np.repeat([4, 3, 2, 1, 0], 10), 12)
    sorted_queries = LabelledQueries(kind, label, np.full(12, 50), queries=10)
    world = world_of(kind, [np.linspace(0.9, 0.1, 50).tolist()] * 10)
    items = np.arange(0, 500, 50)[:, None] + np.arange(3)
    lists = ListBatch(np.repeat(np.arange(10), 50), items, np.zeros((10, 3), bool), np.ones(10, np.int64))
    for source in (YandexLike(kind, items=(50, 60)), sorted_queries, FittedTruth(world, lists)):
        assert abs(numbers_and_truth(source)) < 4.5 / np.sqrt(10_000), source


# --- sources ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_yandex_like_queries(kind: str) -> None:
    """θ ~ Beta(1, 8), with a mean of 1/9 and a variance of 8/810; λ ~ Beta(1, 64); sizes from 10 to 100."""
    world, shown = YandexLike(kind, contexts=300).draw(2, seeded(10))
    sizes, theta = np.diff(world.offsets), world.attraction
    assert sizes.min() >= 10
    assert sizes.max() <= 100
    assert abs(sizes.mean() - 55) < 4.5 * np.sqrt(690 / 300)
    assert abs(theta.mean() - 1 / 9) < 4.5 * np.sqrt(8 / 810 / theta.size)
    assert shown.items.shape == (600, 4)
    if kind == "dcm":
        users = [YandexLike("dcm", contexts=1).draw(1, seeded(seed))[0].users for seed in range(300)]
        drawn = [position_parameter(one) for one in users]
        assert abs(np.mean(drawn) - 1 / 65) < 4.5 * np.sqrt(64 / 65**2 / 66 / 1_200)
    else:
        expected = {"cm": [0] * 4, "pbm": [1, 0.5, 0.33, 0.25]}[kind]
        np.testing.assert_array_equal(position_parameter(world.users), expected)


@pytest.mark.parametrize("noise", [0.0, 1.4])
def test_without_quality_noise_alone_decides_what_is_shown(noise: float) -> None:
    """Shares of impressions in a context of ten items: all equal without noise, and far apart with it."""
    _, shown = YandexLike("cm", 0.0, contexts=1, items=(10, 10), noise=noise).draw(20_000, seeded(12))
    share = np.bincount(shown.items.ravel(), minlength=10) / 80_000
    if noise:
        assert share.max() > 2 * share.min()
    else:
        np.testing.assert_allclose(share, 0.1, atol=0.005)  # 5 standard errors of √(.4 · .6 / 20,000) / 4


@pytest.mark.parametrize(("quality", "low", "high"), [(2.0, 0.2, 1.0), (0.0, -0.08, 0.08), (-2.0, -1.0, -0.2)])
def test_quality_is_how_much_of_the_truth_the_ranker_shows(quality: float, low: float, high: float) -> None:
    """Correlation of θ with log-impressions, within contexts; at 0 it is 0 but for 1/√(5,500) of noise."""
    world, shown = YandexLike("cm", quality, contexts=100).draw(400, seeded(11))
    often = np.log1p(np.bincount(shown.items.ravel(), minlength=world.attraction.size))
    often -= (np.bincount(shown.context, often) / np.bincount(shown.context))[shown.context]
    assert low < np.corrcoef(world.attraction, often)[0, 1] < high


def test_a_pool_is_resampled() -> None:
    """No more distinct lists than the pool has, however many are drawn."""
    _, shown = YandexLike("pbm", contexts=3, items=(40, 50), quality=0.0, pool=7).draw(5_000, seeded())
    for context in range(3):
        assert len(np.unique(shown.items[shown.list_context == context], axis=0)) <= 7
    assert shown.n.sum() == 15_000


def test_labels_become_attraction_and_positions_are_those_of_the_paper() -> None:
    label, sizes = np.array([0, 1, 2, 3, 4, 4, 0, 0, 0]), np.array([5, 4])
    worlds = {kind: LabelledQueries(kind, label, sizes).draw(3, seeded())[0] for kind in KINDS}
    for world in worlds.values():
        assert sorted(world.attraction[:5]) == ATTRACTION.tolist()
        assert sorted(world.attraction[5:]) == [0.05, 0.05, 0.05, 0.8]
    assert position_parameter(worlds["pbm"].users).tolist() == list(EYE_TRACKING[:4])
    # 1 − 2 exp(½ − k), which is −.21 at the first position
    np.testing.assert_allclose(position_parameter(worlds["dcm"].users), [0, 0.553740, 0.835830, 0.939605], atol=1e-6)


def test_queries_are_sampled_whole() -> None:
    """Each query has labels of its own: those of one are never mixed with those of another."""
    sizes = np.array([4, 6, 5, 7, 8])
    label = np.repeat(np.arange(5), sizes)
    for seed in range(10):
        world, _ = LabelledQueries("cm", label, sizes, queries=3).draw(2, seeded(seed))
        actual = [world.attraction[a:b] for a, b in zip(world.offsets[:-1], world.offsets[1:], strict=True)]
        assert len(actual) == 3
        labels = [int(np.flatnonzero(of[0] == ATTRACTION)[0]) for of in actual]
        assert labels == sorted(set(labels))
        assert all((of == of[0]).all() and len(of) == sizes[number] for of, number in zip(actual, labels, strict=True))


def test_labels_have_the_mix_that_was_asked_for() -> None:
    """A mix per query ~ Dirichlet(20 m): over Q queries of D documents a share varies by m(1 − m)(1/21 + 1/D)/Q."""
    mix, queries = (0.52, 0.32, 0.13, 0.02, 0.01), 3_000
    world, _ = LabelsLike("cm", 24, mix, queries).draw(1, seeded(12))
    sizes = np.diff(world.offsets)
    assert (sizes.min(), sizes.max()) == (12, 36)
    share = np.array([np.mean(world.attraction == theta) for theta in ATTRACTION])
    assert np.all(
        np.abs(share - mix) < 4.5 * np.sqrt(np.array(mix) * (1 - np.array(mix)) * (1 / 21 + 1 / 20) / queries)
    )


@pytest.mark.parametrize("per", ["query", "list"])
def test_dirichlet_weights_per_query_or_per_list(per: str) -> None:
    """Drawn once for a query, a few documents take all impressions; afresh for each list, impressions are a copy of θ.

    Two documents of each label: per list, the two halves of a label are shown equally often, to 4.5 σ of 3,000 lists.
    """
    label = np.repeat(np.arange(5), 2)
    source = LabelledQueries("cm", label, np.array([10]), per=per)  # type: ignore[arg-type]
    world, shown = source.draw(3_000, seeded(13))
    rate = np.bincount(shown.items.ravel(), minlength=10) / 3_000
    apart = max(np.ptp(rate[world.attraction == theta]) for theta in ATTRACTION)
    assert (apart > 0.2) == (per == "query")
    if per == "list":
        first = np.bincount(shown.items[:, 0], minlength=10)
        assert_drawn_from(first, 3_000 * world.attraction / world.attraction.sum())
        assert apart < 4.5 * np.sqrt(2 * 0.25 / 3_000)


@pytest.mark.parametrize("logging", ["production", "uniform"])
def test_the_logging_of_a_fitted_truth(logging: str) -> None:
    source = FittedTruth(world_of("pbm", WORLD), few_lists((500, 3, 1, 1)), logging)  # type: ignore[arg-type]
    world, shown = source.draw(2_000, seeded())
    never = np.flatnonzero(np.isin(world.attraction, [0.8, 0.45]))  # in the one rare list
    share = np.bincount(shown.items.ravel(), np.repeat(shown.n, 3), minlength=8)[never] / 2_000
    assert source.kind == "pbm"
    assert np.all(share < 0.02) if logging == "production" else np.all(np.abs(share - 0.6) < 0.05)


# --- what is kept of a log -------------------------------------------------------------------------------------------


def named(
    lists: list[reference.LoggedList], kept: ListBatch, pairs: list[reference.Pair]
) -> list[reference.LoggedList]:
    """Lists of arrays under the names that their pairs had before."""
    return [
        (pairs[items[0]][0], tuple(pairs[int(item)][1] for item in items), clicks)  # type: ignore[index]
        for _, items, clicks in lists_of(kept)
    ]


def survivors(lists: list[reference.LoggedList], good: set[reference.Pair]) -> list[reference.LoggedList]:
    return [one for one in lists if all((one[0], item) in good for item in one[1])]


@settings(max_examples=50)
@given(logs(), st.data())
def test_lists_made_of_some_pairs(lists: list[reference.LoggedList], data: st.DataObject) -> None:
    shown, pairs = as_batch(lists), sorted(reference.impressions(lists))
    good = set(data.draw(st.lists(st.sampled_from(pairs), min_size=1, unique=True)))
    kept = shown.made_of(np.array([pair in good for pair in pairs]))
    left = [pair for pair in pairs if pair in good]
    assert named(lists, kept, left) == survivors(lists, good)
    contexts = sorted({context for context, _ in left})
    assert kept.context.tolist() == [contexts.index(context) for context, _ in left]


@settings(max_examples=50)
@given(logs(), st.sampled_from([1, 3, 8, 30]))
def test_items_that_were_shown_often(lists: list[reference.LoggedList], least: int) -> None:
    """Dropping a list lowers the impressions of its other items, which may then have too few as well."""
    expected, before = lists, 0
    while len(expected) != before:
        before = len(expected)
        expected = survivors(expected, {pair for pair, n in reference.impressions(expected).items() if n >= least})
    if not expected:
        with pytest.raises(LogError, match=f"{least} impressions or more"):
            keep_frequent(as_batch(lists), least)
        return
    kept = keep_frequent(as_batch(lists), least)
    assert named(lists, kept, sorted(reference.impressions(expected))) == expected


@settings(max_examples=50)
@given(logs(), logs(), st.sampled_from([1, 3, 8]))
def test_items_that_two_parts_share(
    train: list[reference.LoggedList], test: list[reference.LoggedList], least: int
) -> None:
    """By striking off, until nothing changes, items with too few lists of such items in either part."""
    assume(reference.longest(train) == reference.longest(test))
    both = as_batch([*train, *test])
    cut = len(train)
    parts = [
        ListBatch(both.context, both.items[rows], both.clicks[rows], both.n[rows])
        for rows in (slice(cut), slice(cut, None))
    ]
    shown = [reference.impressions(part) for part in (train, test)]
    good = {pair for pair in shown[0] if all(of[pair] >= least for of in shown)}
    while True:
        left = [reference.impressions(survivors(part, good)) for part in (train, test)]
        still = {pair for pair in good if all(of[pair] >= least for of in left)}
        if still == good:
            break
        good = still
    if not good:
        with pytest.raises(LogError, match="in both parts"):
            keep_common(parts[0], parts[1], least)
        return
    actual = keep_common(parts[0], parts[1], least)
    for part, kept in zip((train, test), actual, strict=True):
        assert named(part, kept, sorted(good)) == survivors(part, good)


# --- the fitted truth --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_known_truth_is_found_again(kind: str) -> None:
    """From 200,000 lists of each context: θ within 4.5 standard errors of a rate seen a few thousand times.

    dcm's λ has no last position in a log (it borrows the one above), and counts as many tails as there are clicks.
    """
    theta = [[0.1, 0.6, 0.3, 0.8, 0.45], [0.25, 0.5, 0.7, 0.15]]
    known = world_of(kind, theta, [0.2, 0, 0.5, -0.3, 0, 0.1, 0, -0.2, 0.4])
    lists = clicked(known, draw_lists(known, 200_000, seeded(14)), seeded(15))
    world = fit_truth(lists, kind)
    assert kind_of(world.users) == kind
    actual, position = position_parameter(world.users), position_parameter(known.users)
    scale = position.max() if kind == "pbm" else 1.0  # only pθ is seen: p is scaled to a maximum of 1
    np.testing.assert_allclose(world.attraction, known.attraction * scale, atol=0.012)
    if kind == "dcm":
        np.testing.assert_allclose(actual[:2], position[:2], atol=0.03)
    else:
        np.testing.assert_allclose(actual, position / scale, atol=0.01)
    np.testing.assert_array_equal(np.diff(world.offsets), [5, 4])


def test_an_item_that_nobody_saw_attracts_nobody() -> None:
    lists = few_lists()
    more = ListBatch(np.append(lists.context, 1), lists.items, lists.clicks, lists.n)
    assert fit_truth(more, "cm").attraction[-1] == 0


def test_every_permutation_is_tried_by_the_plain_loops() -> None:
    """The check on the checker: chances of lists, and of clicks, add up to one."""
    assert sum(plain.list_chances(dict(enumerate([0.1, 2.0, -1.0, 0.4])), 3).values()) == pytest.approx(1)
    for kind in KINDS:
        truth = truth_of(world_of(kind, FIVE))
        for theta in permutations(FIVE[0], 3):
            assert sum(plain.click_chances(truth, theta).values()) == pytest.approx(1)
