"""Look-up, iteration, and the way to a file and back."""

import json
from collections.abc import Mapping
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import prudent
from prudent.base.errors import LogError, PolicyError, UnknownContextError, UsageError
from prudent.base.text import text_table
from prudent.policies.files import COLUMNS
from prudent.policies.policy import as_policy
from tests.footers import remove_manifest
from tests.reference import LoggedList
from tests.strategies import count
from tests.strategies import table as log_table

LOG: list[LoggedList] = [
    *[("running shoes", ("a", "b", "c", "d", "e"), (1, 0, 0, 0, 0))] * 6,
    *[("007", ("<b>", "07"), (1, 1))] * 2,
    *[("7", ("7.0", "7"), (0, 1))] * 2,
]
NUMBERED: list[LoggedList] = [(7, (1, 2), (0, 1)), (-3, (30, 4), (1, 0))]


@pytest.fixture
def policy() -> prudent.Policy:
    return prudent.rank(count(LOG), "dcm(tail=truncate)", bound="bayes(delta=0.1)")


# --- look-up ------------------------------------------------------------------------------------------------------


def test_looks_up_lists(policy: prudent.Policy) -> None:
    assert policy["running shoes"] == ["a", "b", "c", "d", "e"]
    assert policy["007"] == ["07", "<b>"]  # equal evidence: by name
    assert policy["7"] == ["7", "7.0"]
    assert list(policy) == ["007", "7", "running shoes"]
    assert len(policy) == 3


def test_contexts_are_case_sensitive_and_unlike_any_other(policy: prudent.Policy) -> None:
    assert "7" in policy
    for unknown in ("07", "Running shoes", "running shoes ", "", 7, 7.0, None, ["7"]):
        assert unknown not in policy


def test_an_unknown_context_is_a_key_error_that_helps(policy: prudent.Policy) -> None:
    with pytest.raises(KeyError) as error:
        policy["runing shoes"]
    assert isinstance(error.value, UnknownContextError)
    assert str(error.value) == (
        "No list for 'runing shoes'. Did you mean 'running shoes'? Keep your own ranking there."
    )
    with pytest.raises(UnknownContextError, match=r"No list for 7: contexts are text in this policy, and 7 is not '7'"):
        policy[7]


def test_integers_stay_integers() -> None:
    policy = prudent.rank(count(NUMBERED), "cm", bound="mle")
    assert list(policy) == [-3, 7]
    assert policy[7] == [2, 1]
    assert all(type(item) is int for item in policy[-3])
    assert 7 in policy
    assert "7" not in policy
    assert 8 not in policy
    with pytest.raises(UnknownContextError, match=r"No list for '7': contexts are integers"):
        policy["7"]
    with pytest.raises(UnknownContextError, match=r"No list for 8\. Keep your own"):
        policy[8]


# --- tables -------------------------------------------------------------------------------------------------------


def test_tables_have_the_promised_columns(policy: prudent.Policy) -> None:
    assert tuple(policy.lists().columns) == COLUMNS
    assert COLUMNS[:5] == ("context", "rank", "item", "lower", "mean")
    assert COLUMNS[5:] == ("upper", "stay", "positive", "negative", "impressions")
    assert policy.scores().columns == [name for name in COLUMNS if name != "rank"]
    assert policy.contexts().columns == [
        "context",
        "lists",
        "value",
        "lower",
        "incumbent_value",
        "incumbent_lower",
        "differ",
        "evidence",
    ]


def test_lists_are_sorted_by_context_and_rank(policy: prudent.Policy) -> None:
    rows = policy.lists().fetchall()
    assert [row[:3] for row in rows] == [
        ("007", 1, "07"),
        ("007", 2, "<b>"),
        ("7", 1, "7"),
        ("7", 2, "7.0"),
        *(("running shoes", rank, item) for rank, item in enumerate("abcde", start=1)),
    ]


def test_lists_carry_the_evidence_of_the_scores(policy: prudent.Policy) -> None:
    evidence = {row[:2]: row[2:] for row in policy.scores().fetchall()}
    for context, _, item, *rest in policy.lists().fetchall():
        assert tuple(rest) == evidence[context, item]
    assert evidence["running shoes", "a"][4:] == (6, 0, 6)
    assert evidence["running shoes", "b"][4:] == (0, 0, 6)


def test_repr_shows_a_few_lists(policy: prudent.Policy) -> None:
    assert repr(policy).splitlines() == [
        "Policy for 3 contexts by dcm(tail=truncate), bayes(delta=0.1)",
        "  'running shoes': ['a', 'b', 'c', 'd', ...]",  # shown most
        "  '007': ['07', '<b>']",
        "  '7': ['7', '7.0']",
    ]
    many: list[LoggedList] = [(context, (1,), (1,)) for context in range(7)]
    shown = repr(prudent.rank(count(many), "cm", bound="mle")).splitlines()
    assert (len(shown), shown[5], shown[6]) == (7, "  4: [1]", "  ...")


def test_html_escapes_names(policy: prudent.Policy) -> None:
    html = policy._repr_html_()
    assert ">&lt;b&gt;</td>" in html
    assert "<b>" not in html
    assert html.count("<tr>") == 1 + 9


def test_the_table_begins_with_the_most_shown_and_has_even_digits() -> None:
    often: list[LoggedList] = [*[("z", (12345, 2), (1, 0))] * 1300, ("a", (1, 2), (0, 0))]
    columns, rows = prudent.rank(count(often), "cm", bound="eb").table()
    assert [row[0] for row in rows] == ["z", "z", "a", "a"]
    lines = text_table(columns, rows).splitlines()
    assert "1,300" in lines[1]
    assert "12345" in lines[1]  # a name has no thousands separators
    numbers = [line.split()[3:7] for line in lines[1:]]
    assert {len(number.rpartition(".")[2]) for line in numbers for number in line} == {3}


# --- a mapping ----------------------------------------------------------------------------------------------------


def test_it_is_a_mapping(policy: prudent.Policy) -> None:
    expected = {"007": ["07", "<b>"], "7": ["7", "7.0"], "running shoes": ["a", "b", "c", "d", "e"]}
    assert dict(policy) == dict(policy.items()) == expected
    assert list(policy.values()) == list(expected.values())
    assert list(policy.keys()) == list(expected)
    assert policy == expected
    assert policy != {**expected, "7": ["7.0", "7"]}
    assert policy != list(expected)
    assert ("7", ["7", "7.0"]) in policy.items()


def test_many_look_ups_find_the_same(policy: prudent.Policy) -> None:
    for _ in range(30):
        assert policy["7"] == ["7", "7.0"]
        policy["7"].append("mine")  # a list of the caller
        assert policy.get("8") is None
    assert "lists" in policy._memory


def test_frames_and_arrow(policy: prudent.Policy) -> None:
    frame = policy.to_frame()
    assert tuple(frame.columns) == COLUMNS
    assert frame["item"].tolist() == ["07", "<b>", "7", "7.0", "a", "b", "c", "d", "e"]
    assert pa.table(policy).to_pylist()[0]["context"] == "007"
    assert pl.DataFrame(pa.table(policy)).rows() == policy.rows()
    assert isinstance(policy, Mapping)
    assert len(policy.rows()) == 9


def test_there_and_back(policy: prudent.Policy) -> None:
    """The table of a policy makes an equal one, with its evidence; so does that of a policy without any."""
    bare = prudent.Policy.from_table(pa.table({"context": ["b", "a"], "items": [["x", "y"], ["z"]]}), items="items")
    for one in (policy, bare):
        for table in (one.to_frame(), pl.from_arrow(pa.table(one)), pa.table(one), one.lists()):
            again = prudent.Policy.from_table(table)
            assert again == one
            assert again.rows() == one.rows()


def test_counts_to_explain_with_are_an_object_or_a_path(tmp_path: Path) -> None:
    lists = count([("red", ("a", "b"), (1, 0)), ("red", ("b", "a"), (0, 1))] * 9)
    lists.write(tmp_path / "counts.parquet")
    prudent.rank(lists, "cm").write(tmp_path / "policy.parquet")
    policy = prudent.Policy.read(tmp_path / "policy.parquet")
    assert policy.explain("red", counts=tmp_path / "counts.parquet") == policy.explain("red", counts=lists)
    with pytest.raises(LogError, match="There is no file a"):
        policy.explain("red", counts="a")


# --- lists made elsewhere -----------------------------------------------------------------------------------------


def test_from_a_table_of_lists(tmp_path: Path) -> None:
    table = pa.table({"query": ["b", "a"], "shown": [["x", "y"], ["z"]]})
    policy = prudent.Policy.from_table(table, context="query", items="shown")
    assert dict(policy) == {"a": ["z"], "b": ["x", "y"]}
    pq.write_table(table, tmp_path / "lists.parquet")
    (tmp_path / "lists.jsonl").write_text('{"query": 1, "shown": [3, 2]}\n')
    assert prudent.Policy.from_table(tmp_path / "lists.parquet", context="query", items="shown") == policy
    numbered = prudent.Policy.from_table(tmp_path / "lists.jsonl", context="query", items="shown")
    assert dict(numbered) == {1: [3, 2]}


def test_from_a_table_of_ranks(tmp_path: Path) -> None:
    (tmp_path / "lists.csv").write_text("query,doc,place\nb,y,2\nb,x,1\na,z,1\n")
    policy = prudent.Policy.from_table(tmp_path / "lists.csv", context="query", item="doc", rank="place")
    assert dict(policy) == {"a": ["z"], "b": ["x", "y"]}
    assert "lower" not in str(policy._repr_html_())  # nothing is known of it
    policy.write(tmp_path / "policy.parquet")
    assert prudent.Policy.read(tmp_path / "policy.parquet") == policy
    for spelling in ("jsonl", "csv", "sql", "redis"):
        prudent.export(policy, tmp_path / "out", format=spelling)
    evaluation = prudent.evaluate(policy, prudent.Log(log_table([("b", ("x", "y"), (1, 0))] * 9)), estimator="ips")
    assert evaluation["ips"].value == 1.0


def test_a_table_that_holds_no_lists(tmp_path: Path) -> None:
    table = pa.table({"context": ["a", "a"], "item": ["x", "y"], "rank": [1, 1]})
    with pytest.raises(PolicyError, match="such as that of 'a'"):
        prudent.Policy.from_table(table, item="item", rank="rank")
    with pytest.raises(UsageError, match="or the two columns"):
        prudent.Policy.from_table(table, items="item", rank="rank")
    with pytest.raises(LogError, match="no column 'rank' for the rank"):
        prudent.Policy.from_table(table.drop_columns("rank"))
    with pytest.raises(LogError, match="no column 'lists' for the items"):
        prudent.Policy.from_table(table, items="lists")
    with pytest.raises(UsageError, match="A int is not a policy"):
        as_policy(7)  # type: ignore[arg-type]


# --- files --------------------------------------------------------------------------------------------------------


def test_written_and_read_back(policy: prudent.Policy, tmp_path: Path) -> None:
    policy.write(tmp_path / "policy.parquet", scores=tmp_path / "scores.parquet")
    back = prudent.Policy.read(tmp_path / "policy.parquet")
    assert back.lists().fetchall() == policy.lists().fetchall()
    assert back.manifest == policy.manifest
    assert repr(back) == repr(policy)
    assert back["007"] == ["07", "<b>"]
    kept = pq.read_table(tmp_path / "scores.parquet")
    assert [tuple(row.values()) for row in kept.to_pylist()] == policy.scores().fetchall()
    manifest = json.loads((tmp_path / "scores.parquet.manifest.json").read_text(encoding="utf-8"))
    assert manifest == policy.manifest.to_json()


def test_only_what_was_asked_for_is_written(policy: prudent.Policy, tmp_path: Path) -> None:
    policy.write(tmp_path / "policy.parquet")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["policy.parquet", "policy.parquet.manifest.json"]


def test_types_survive_the_file(tmp_path: Path) -> None:
    prudent.rank(count(NUMBERED), "cm", bound="hoeffding").write(tmp_path / "policy.parquet")
    assert prudent.Policy.read(tmp_path / "policy.parquet")[7] == [2, 1]
    schema = {field.name: str(field.type) for field in pq.read_schema(tmp_path / "policy.parquet")}
    assert schema == {
        "context": "int64",
        "rank": "int32",
        "item": "int64",
        "lower": "double",
        "mean": "double",
        "upper": "double",
        "stay": "double",
        "positive": "double",
        "negative": "double",
        "impressions": "int64",
    }


def test_look_up_by_numpy_integers_and_with_a_fallback() -> None:
    policy = prudent.rank(count([(1, (1, 2), (1, 0)), (8, (2, 1), (0, 1))] * 30), "cm", bound="mle")
    assert policy[np.int64(1)] == policy[1] == [1, 2]
    assert np.int32(8) in policy
    assert policy.get(9, [5]) == [5]
    assert policy.get(1) == [1, 2]
    # Python takes True for 1, which is a context here; a policy does not.
    assert policy.get(True) is None
    with pytest.raises(UnknownContextError):
        policy[True]


def test_a_read_policy_has_no_scores(policy: prudent.Policy, tmp_path: Path) -> None:
    policy.write(tmp_path / "policy.parquet")
    back = prudent.Policy.read(tmp_path / "policy.parquet")
    for table in (back.scores, back.contexts):
        with pytest.raises(PolicyError, match="This policy has no"):
            table()


def test_without_its_manifest_it_still_ranks(policy: prudent.Policy, tmp_path: Path) -> None:
    policy.write(tmp_path / "policy.parquet")
    remove_manifest(tmp_path / "policy.parquet")
    back = prudent.Policy.read(tmp_path / "policy.parquet")
    assert back["7"] == ["7", "7.0"]
    assert repr(back).startswith("Policy for 3 contexts\n")


def test_refuses_what_is_no_policy(policy: prudent.Policy, tmp_path: Path) -> None:
    policy.write(tmp_path / "policy.parquet", scores=tmp_path / "scores.parquet")
    with pytest.raises(PolicyError, match=r"scores\.parquet is not a policy: it has the columns context, item, lower"):
        prudent.Policy.read(tmp_path / "scores.parquet")
    (tmp_path / "text.parquet").write_text("hello", encoding="utf-8")
    with pytest.raises(PolicyError, match=r"Cannot read .*text\.parquet as a policy"):
        prudent.Policy.read(tmp_path / "text.parquet")
    (tmp_path / "log.jsonl").write_text('{"context": "c", "items": ["a"], "clicks": [1]}\n', encoding="utf-8")
    not_parquet = r"log\.jsonl as a policy: it is not a Parquet file\. A policy is what prudent rank writes \(-o\)\.$"
    with pytest.raises(PolicyError, match=not_parquet):
        prudent.Policy.read(tmp_path / "log.jsonl")
    with pytest.raises(LogError, match=r"There is no file .*polcy.parquet\. Did you mean 'policy.parquet'"):
        prudent.Policy.read(tmp_path / "polcy.parquet")
    pq.write_table(pa.table({"x": [1]}), tmp_path / "x.parquet")
    with pytest.raises(PolicyError, match="is not a policy: it has the columns x"):
        prudent.Policy.read(tmp_path / "x.parquet")


@pytest.mark.parametrize(
    "change",
    [
        "-1 as rank",
        "-impressions - 1 as impressions",
        "-0.5 as positive",
        "0 as rank",
        "null as item",
        "null as context",
        "'nan'::double as lower",
    ],
)
def test_rows_that_no_policy_has(change: str, policy: prudent.Policy, tmp_path: Path) -> None:
    policy.write(tmp_path / "policy.parquet")
    rows = f"select * replace ({change}) from '{tmp_path}/policy.parquet'"
    duckdb.execute(f"copy ({rows}) to '{tmp_path}/other.parquet' (format parquet)")
    with pytest.raises(PolicyError, match=r"other\.parquet is not a policy: .* of its rows have no context"):
        prudent.Policy.read(tmp_path / "other.parquet")
