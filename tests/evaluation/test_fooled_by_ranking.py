"""More ways to fool the gate: by how a policy was ranked, and by logs that change or look at the user. None may."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import prudent
from prudent.base.errors import PrudentError
from tests.evaluation.small import TRAINED_ELSEWHERE
from tests.evaluation.test_fooled import EASY, Asked, coin, lucky, plain, worse

# --- whatever ranks, the training log is no holdout -------------------------------------------------------------------

RANKED: dict[str, Callable[[pa.Table], prudent.Policy]] = {
    "groups": lambda log: prudent.rank(log, model="cm", groups="item,query"),
    "robust": lambda log: prudent.rank(log, model="robust", bound="mle"),
    "ensemble": lambda log: prudent.rank(log, model="ensemble(model=pbm)", bound="mle"),
    "rules": lambda log: prudent.rank(log, model="cm", bound="mle", rules={"exclude": [{"item": "another"}]}),
    "unseen": lambda log: prudent.rank(log, model="cm", bound="mle", candidates=_every(log), unseen=True),
    "another bound": lambda log: prudent.rank(log, model="cm", bound="eb"),
}


def _every(log: pa.Table) -> pa.Table:
    """All items in all contexts, and in a new one."""
    contexts = ["new", *sorted(set(log["context"].to_pylist()))]
    items = ["i0", "i1", "i2"]
    return pa.table({"context": [c for c in contexts for _ in items], "item": items * len(contexts)})


@pytest.mark.filterwarnings("ignore::prudent.PrudentWarning")
@pytest.mark.parametrize("how", RANKED)
def test_the_training_log_is_found(how: str) -> None:
    verdict = prudent.gate(RANKED[how](lucky(0)), lucky(0), **EASY)
    assert not verdict.passed
    assert "learned from" in verdict.why


@pytest.mark.filterwarnings("ignore::prudent.PrudentWarning")
def test_names_and_clicks_of_other_types_are_the_same_lists() -> None:
    """Integers of 64 and of 32 bits, clicks as numbers and as booleans."""
    log = lucky(0)
    contexts, clicks = [int(name[1:]) for name in log["context"].to_pylist()], log["clicks"].to_pylist()
    trained = pa.table({"context": contexts, "items": log["items"], "clicks": clicks})
    other = pa.table(
        {
            "context": pa.array(contexts, pa.int32()),
            "items": log["items"],
            "clicks": [[bool(click) for click in row] for row in clicks],
        }
    )
    assert "learned from" in prudent.gate(prudent.rank(trained, model="cm", bound="mle"), other, **EASY).why


# --- worse lists that a log could make look better --------------------------------------------------------------------

WAYS: dict[str, Callable[[], Asked]] = {}


def way(make: Callable[[], Asked]) -> Callable[[], Asked]:
    WAYS[make.__name__] = make
    return make


def having(items: list[str], **more: list[str]) -> prudent.Policy:
    lists = {**{f"q{i}": items for i in range(5)}, **more}
    table = pa.table({"context": [*lists], "items": [*lists.values()]})
    return replace(prudent.Policy.from_table(table, items="items"), manifest=TRAINED_ELSEWHERE)


def logged(
    shown: Callable[[int, np.random.Generator], list[str]], rate: Callable[[int, str, int], float], lists: int = 4_000
) -> pa.Table:
    """A log of these lists; `rate` is that of a click on an item at a place of a list."""
    rng = np.random.default_rng(7)
    rows = []
    for i in range(lists):
        items = shown(i, rng)
        clicks = [int(rng.random() < rate(i, item, place)) for place, item in enumerate(items)]
        rows.append({"context": f"q{i % 5}", "items": items, "clicks": clicks})
    return pa.Table.from_pylist(rows)


ORDERS = [["a", "b", "c"], ["b", "a", "c"], ["c", "a", "b"], ["b", "c", "a"]]


def mostly(often: int, rng: np.random.Generator) -> list[str]:
    """One of the orders, one of them and that with the same first item more often."""
    weights = np.full(4, 0.1)
    weights[often] += 0.4
    weights[3 if often == 1 else 2] += 0.2
    return ORDERS[rng.choice(4, p=weights)]


@way
def other_forms_of_a_letter() -> Asked:
    """The policy's é is one character, the log's are two: another item."""
    rows = [{**row, "items": [item.replace("a", "e\u0301") for item in row["items"]]} for row in coin()]
    return having(["b", "\u00e9"]), plain(rows), EASY


@way
def a_longer_list() -> Asked:
    """Whose end no log shows."""
    return having(["b", "a", "c", "d"]), plain(coin()), EASY


@way
def a_shorter_list() -> Asked:
    """Compared by its first position."""
    return having(["b"]), plain(coin()), EASY


@way
def any_click() -> Asked:
    """Another reward."""
    return worse(), plain(coin()), {**EASY, "reward": "any-click"}


@way
def a_tiny_context_that_is_lucky() -> Asked:
    """All other lists stay as they are."""
    rng = np.random.default_rng(5)
    rows = [{"context": "big", "items": ["a", "b"], "clicks": [int(rng.random() < 0.4), 0]} for _ in range(3_000)]
    for i in range(12):
        mine = bool(i % 2)
        clicks = [int(rng.random() < (0.9 if mine else 0.3)), 0]
        rows.append({"context": "q0", "items": ["b", "a"] if mine else ["a", "b"], "clicks": clicks})
    return having(["b", "a"], big=["a", "b"]), plain(rows), EASY


@way
def smaller_propensities_of_clicked_lists() -> Asked:
    """By 15 %, of the policy's lists alone."""
    rows = [{**row, "p": [row["p"][0] * (0.85 if row["items"][0] == "b" and row["clicks"][0] else 1), 1.0]}
            for row in coin()]  # fmt: skip
    return worse(), pa.Table.from_pylist(rows), {**EASY, "propensity": "p"}


@way
def squares_of_propensities() -> Asked:
    """One number per list, multiplied once too often."""
    rows = [{**row, "p": row["p"][0] ** 2} for row in coin()]
    return worse(), pa.Table.from_pylist(rows), {**EASY, "propensity": "p"}


@way
def propensities_that_are_hardly_above_zero() -> Asked:
    """Of the policy's lists."""
    rows = [{**row, "p": [1e-300 if row["items"][0] == "b" else row["p"][0], 1.0]} for row in coin()]
    return worse(), pa.Table.from_pylist(rows), {**EASY, "propensity": "p", "max_rejected": 1}


@way
def more_clicks_in_the_second_half() -> Asked:
    """When production had mostly the policy's order, of two."""
    return (
        worse(),
        logged(
            lambda i, rng: ["b", "a"] if rng.random() < (0.8 if i > 2_000 else 0.2) else ["a", "b"],
            lambda i, _, place: (0.5 if i > 2_000 else 0.25) / (1 + place),
        ),
        {},
    )


@way
def more_clicks_in_the_second_half_of_four_orders() -> Asked:
    """The same, where items are seen at several places."""
    log = logged(
        lambda i, rng: mostly(1 if i > 2_000 else 0, rng),
        lambda i, _, place: (0.5 if i > 2_000 else 0.25) / (1 + place),
    )
    return having(["b", "a", "c"]), log, {}


@way
def users_of_three_tastes() -> Asked:
    """Who mostly get the item that they like first."""
    log = logged(
        lambda i, rng: ORDERS[i % 3] if rng.random() < 0.7 else ORDERS[rng.integers(4)],
        lambda i, item, place: (0.6 if "abc".index(item) == i % 3 else 0.05) / (1 + place),
        6_000,
    )
    return having(["b", "a", "c"]), log, {}


@way
def unclicked_lists_of_the_others_logged_twice() -> Asked:
    """By retries."""
    rows = [row for row in coin() for _ in range(2 if row["items"][0] == "a" and not sum(row["clicks"]) else 1)]
    return worse(), plain(rows), EASY


@way
def a_bound_without_clipping() -> Asked:
    """Whose width nobody knows."""
    settings: dict[str, Any] = {**EASY, "propensity": "p", "interval": "bernstein", "estimator": "ips(clip=inf)"}
    return worse(), pa.Table.from_pylist(coin()), settings


@way
def the_first_clicks_of_each_list_alone() -> Asked:
    """A log that keeps one click per list, where the policy's first item is clicked less."""
    rates = {"a": 0.5, "b": 0.35, "c": 0.2}
    log = logged(lambda _, rng: ORDERS[rng.integers(2)], lambda _, item, place: rates[item] / (1 + place))
    rows = []
    for row in log.to_pylist():
        first = row["clicks"].index(1) if 1 in row["clicks"] else 3
        rows.append({**row, "clicks": [int(place == first) for place in range(3)]})
    return having(["b", "a", "c"]), plain(rows), {"acknowledge": "confounding"}


@way
def a_worse_list_under_position_bias() -> Asked:
    """By items at positions."""
    log = logged(
        lambda _, rng: ["a", "b"] if rng.random() < 0.5 else ["b", "a"],
        lambda _, item, place: (0.5 if item == "a" else 0.35) / (1 + place),
    )
    return worse(), log, {"acknowledge": "confounding", "estimator": "ip-ips"}


def test_there_are_fifteen() -> None:
    assert len(WAYS) >= 15
    assert all(one.__doc__ for one in WAYS.values())


@pytest.mark.filterwarnings("ignore::prudent.PrudentWarning")
@pytest.mark.parametrize("make", WAYS.values(), ids=WAYS)
def test_nothing_passes(make: Callable[[], Asked]) -> None:
    try:
        policy, log, settings = make()
        verdict = prudent.gate(policy, log, **settings)
    except PrudentError:
        return
    assert not verdict.passed, verdict.why
