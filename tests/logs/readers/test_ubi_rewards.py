"""What UBI actions are worth: summed over the actions on an item of a list, each once, as a loop does it."""

import json
import shlex
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import prudent
from prudent.base.errors import UsageError
from prudent.logs.readers import read_ubi
from tests.command import run
from tests.logs.readers.test_ubi import event, query, write

WORTH = {"click": 1.0, "cart": 2.5, "it's=a, \"x": 10.0}


def earned(log: prudent.Log) -> list[tuple[str, list[str], list[int], list[float]]]:
    name = str(log.reward).replace('"', '""')
    rows = duckdb.execute(f"select context, items, clicks, \"{name}\"::double[] from '{log.source[0]}' order by all")
    return rows.fetchall()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from([*WORTH, "view"]), st.sampled_from("abcd")),
        min_size=1,
        max_size=20,
    ).filter(lambda events: any(action in WORTH and item != "d" for _, action, item in events))
)
def test_actions_add_up_as_in_a_loop(tmp_path: Path, events: list[tuple[int, str, str]]) -> None:
    lists = {0: "abc", 1: "cab", 2: "b", 3: "ca"}
    if not any(item in lists[number] and action in WORTH for number, action, item in events):
        return
    records = [query(f"q{number}", list(items), f"c{number}") for number, items in lists.items()]
    records += [event(action, f"q{number}", item) for number, action, item in events]
    log = read_ubi(write(tmp_path / "records.ndjson", records), reward=WORTH)
    expected = []
    for number, items in lists.items():
        met = [{action for at, action, one in events if (at, one) == (number, item)} & {*WORTH} for item in items]
        clicks, rewards = [int(bool(one)) for one in met], [sum(WORTH[action] for action in one) for one in met]
        expected.append((f"c{number}", list(items), clicks, rewards))
    assert earned(log) == expected


def test_the_order_of_weights_says_nothing(tmp_path: Path) -> None:
    records = write(tmp_path / "records.ndjson", [query("q", ["a"]), event("click", "q", "a")])
    one, other = (prudent.count(read_ubi(records, reward=text)) for text in ("click=1, cart=3", "cart=3,click=1.0"))
    assert (one + other).tally.lists == 2


def test_the_command_ranks_by_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All items are clicked alike; what is bought comes first."""
    monkeypatch.chdir(tmp_path)
    records: list[Any] = []
    for number in range(400):
        items = ["a", "b", "c"][number % 3 :] + ["a", "b", "c"][: number % 3]
        records.append(query(f"q{number}", items))
        records += [event("click", f"q{number}", item) for item in items if (number + ord(item)) % 4 == 0]
        records += [event("buy", f"q{number}", "c")] if number % 5 == 0 else []
    Path("ubi.ndjson").write_text("".join(json.dumps(record) + "\n" for record in records))
    done = run("rank", "ubi.ndjson", "--format", "ubi", "--reward", "click=1,buy=20", "-o", "policy.parquet")
    assert done.code == 0, done.text
    assert "The reward is buy=20, click=1" in done.text
    assert prudent.Policy.read("policy.parquet")["shoes"][0] == "c"
    assert run("rank", "ubi.ndjson", "--format", "ubi", "--reward", "margin", "-o", "policy.parquet").code == 2
    parts = run("split", "ubi.ndjson", "--format", "ubi", "--reward", "click=1,buy=20", "-o", "parts").out
    following = "prudent rank parts/train.parquet -o policy.parquet --reward 'buy=20, click=1'"
    assert parts.splitlines()[-1] == f"Next: {following}"
    assert run(*shlex.split(following)[1:]).code == 0
    assert prudent.Policy.read("policy.parquet").reward == "buy=20, click=1"


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        ("margin", "reward is 'margin'; in this format it says what actions are worth"),
        ("click=one", "'click=1, cart=3, purchase=10'"),
        ("=1", "reward is '=1'"),
        ("click=nan", "The reward of 'click' is nan"),
        ("click=-1", "at least 0 and at most 100000"),
        ("click=1, click=2", "names the action 'click' twice"),
        ("click=0", "No action is worth anything"),
        ({"click": 1e5, "buy": 1}, "at most 100,000, all actions together"),
        ({7: 1}, "names the action 7"),
        (7, "reward is 7"),
        ("impression=1", "cannot be a click and an impression at once"),
    ],
)
def test_what_is_no_weight(tmp_path: Path, reward: Any, message: str) -> None:
    records = write(tmp_path / "records.ndjson", [query("q", ["a"]), event("click", "q", "a")])
    with pytest.raises(UsageError, match=message):
        read_ubi(records, reward=reward)
