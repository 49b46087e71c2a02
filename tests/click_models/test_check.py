"""What is in a log, against plain loops over its lists."""

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import example, given, settings

import prudent
from prudent.base.errors import LogError
from prudent.click_models.check import FEW_IMPRESSIONS
from prudent.logs.log import NO_CLICKS
from tests import reference
from tests.reference import LoggedList
from tests.strategies import count, logs

MOVING: list[LoggedList] = [*[("q", ("a", "b"), (1, 1))] * 30, *[("q", ("b", "a"), (0, 1))] * 20, ("r", ("a",), (0,))]


def test_few_rare_pairs_are_not_worth_a_sentence() -> None:
    """0% of pairs being noise is no news: the sentence begins where a whole percent is printed."""
    health = prudent.check(count(MOVING))
    assert any(
        "impressions: their click-through rates are mostly noise" in verdict
        for verdict in replace(health, rare_pairs=0.006).verdicts()
    )
    assert not any("mostly noise" in verdict for verdict in replace(health, rare_pairs=0.004).verdicts())


@settings(max_examples=25, deadline=None)
@example(MOVING)
@example([("q", ("a", "b", "c"), (1, 1, 1)), ("q", ("a", "c"), (0, 0))])
@example([*[("q", ("a",), (1,))] * FEW_IMPRESSIONS, *[("r", ("a",), (1,))] * (FEW_IMPRESSIONS - 1)])
@given(lists=logs())
def test_every_number_equals_a_plain_loop(lists: list[LoggedList]) -> None:
    health = prudent.check(count(lists))
    shown = reference.impressions(lists)
    table = reference.per_position(lists)
    contexts = [context for context, _, _ in lists]
    assert health.lists == len(lists)
    assert health.rejected == {}
    assert health.contexts == len(set(contexts))
    assert health.items == len({item for _, items, _ in lists for item in items})
    assert health.pairs == len(shown)
    assert health.positions == reference.longest(lists)
    assert health.clicks == sum(sum(clicks) for _, _, clicks in lists)
    for position in range(1, health.positions + 1):
        at = [clicks[position - 1] for _, _, clicks in lists if len(clicks) >= position]
        assert health.ctr[position - 1] == pytest.approx(sum(at) / len(at))
    assert health.without_click == pytest.approx(sum(not any(clicks) for _, _, clicks in lists) / len(lists))
    assert health.several_clicks == pytest.approx(sum(sum(clicks) > 1 for _, _, clicks in lists) / len(lists))
    assert health.rare_pairs == pytest.approx(sum(n < FEW_IMPRESSIONS for n in shown.values()) / len(shown))
    moving = sum(shown[pair] for pair, cells in table.items() if len(cells) > 1)
    assert health.moving_impressions == pytest.approx(moving / sum(shown.values()))
    assert health.single_list_contexts == sum(contexts.count(context) == 1 for context in set(contexts))
    assert sorted(map(list, health.position_groups)) == reference.position_groups(lists)
    assert health.pbm_identified == (len(reference.position_groups(lists)) == 1)


def test_rejected_lists_are_counted() -> None:
    counts = count([*MOVING, ("q", ("a", "a"), (0, 0))], max_rejected=1)
    assert prudent.check(counts).rejected == {"duplicate item in a list": 1}
    assert prudent.check(counts).lists == 51


def test_verdicts_on_a_log_that_supports_everything() -> None:
    verdicts = prudent.check(count(MOVING)).verdicts()
    assert [verdict.partition(":")[0] for verdict in verdicts] == [
        "pbm (position-based) is identified",
        "dcm (dependent clicks)",
        "33% of context-item pairs have fewer than 10 impressions",
        "1 context has a single list; --min-lists 2 leaves them out.",
    ]
    assert "99% of impressions are of items that change position" in verdicts[0]
    assert "continuation is identified, 58.8% of lists have several clicks" in verdicts[1]


def test_verdicts_on_a_log_where_nothing_moves() -> None:
    verdicts = prudent.check(count([("q", ("a", "b"), (1, 0))] * 30)).verdicts()
    assert len(verdicts) == 2
    assert "pbm (position-based) is not identified: no two positions can be compared" in verdicts[0]
    assert "no list has several clicks" in verdicts[1]


def test_verdict_on_groups_of_positions() -> None:
    health = replace(prudent.check(count(MOVING)), positions=3, position_groups=((1, 2), (3,)))
    assert "positions {1, 2} and {3} cannot be compared" in health.verdicts()[0]


def test_verdict_on_lists_of_one_item() -> None:
    """No item changes its position where there is one position: that is no reason to doubt or to praise a model."""
    verdicts = prudent.check(count([("q", ("a",), (1,)), ("q", ("b",), (0,))] * 30)).verdicts()
    assert verdicts == ["Every list has one item: there is no position bias, and all click models agree."]


def test_verdict_on_a_log_without_clicks() -> None:
    health = prudent.check(count([("q", ("a", "b"), (0, 0))]))
    assert health.verdicts() == [f"The log has no click: {NO_CLICKS}"]
    assert not health.rankable
    assert health.without_click == 1


def test_the_hint_of_count_is_there_before_counting() -> None:
    """A log that `count` would refuse with advice gets the advice of it from `check`, too."""
    log = prudent.Log(pa.table({"context": ["c"], "items": [["a", "b"]], "clicks": [["a"]]}))
    with pytest.raises(LogError) as refused:
        prudent.count(log)
    health = prudent.check(log)
    assert health.hint.startswith(
        " If 'clicks' has what was clicked rather than a 0 or 1 for each item: clicked_items="
    )
    assert str(refused.value).endswith(health.hint)
    assert health.verdicts() == [
        "1 of 1 list was rejected (100%): count and rank stop unless --max-rejected allows it." + health.hint
    ]
    assert not health.rankable


def test_verdicts_on_a_log_that_is_mostly_rejected() -> None:
    health = replace(prudent.check(count(MOVING)), rejected={"context missing": 900}, lists=100)
    assert health.verdicts()[0] == (
        "900 of 1,000 lists were rejected (90.0%): count and rank stop unless --max-rejected allows it."
    )
    assert replace(health, lists=0, clicks=0).verdicts() == [
        "900 of 900 lists were rejected (100%): count and rank stop unless --max-rejected allows it."
    ]
