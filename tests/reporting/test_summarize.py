"""From results to plain data: what is in it, that it fits JSON, and that it stays small and quick."""

import json
import time
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

import prudent
from prudent.evaluation.evaluate import Evaluation
from prudent.evaluation.intervals import Estimate
from prudent.evaluation.verdict import Verdict
from prudent.reporting import render
from prudent.reporting.contexts import BUDGET, MOST_CONTEXTS, MOST_PLACES
from prudent.storage.manifest import Manifest
from tests.reporting.small import LISTS, MANIFEST, NO, UNKNOWN, ranked, summary
from tests.strategies import count, table


def test_it_fits_json() -> None:
    data = summary()
    assert json.loads(json.dumps(data, allow_nan=False))["title"] == "A title"
    assert summary() == data


def test_the_headline_is_the_estimate_of_the_gate_with_both_its_limits() -> None:
    one_sided = Verdict("pass", "", Estimate("dr", "clicks", 900), 0.0, 0.95)
    assert summary(verdict=one_sided)["headline"]["lift_low"] == 0.01
    assert summary(verdict=NO, evaluation=Evaluation((), MANIFEST))["headline"]["why"] == UNKNOWN.why


def test_contexts_come_with_both_lists_and_every_number() -> None:
    policy = ranked()
    contexts = summary(policy)["contexts"]
    assert (contexts["total"], contexts["lists"], contexts["all_lists"], contexts["dropped"]) == (2, 126, 126, 0)
    shoes, boots = contexts["shown"]
    assert (shoes["name"], shoes["lists"], boots["name"], boots["lists"]) == ("shoes", 121, "boots", 5)
    told = policy.explain("shoes")
    assert len(shoes["rows"]) == len(told.candidates) == 4
    for row, one in zip(shoes["rows"], told.candidates, strict=True):
        item, usual, rank, impressions, clicks, lower, mean, upper, why = row
        assert (item, usual, rank, why) == (one.item, one.incumbent, one.rank, one.why)
        assert (impressions, clicks) == (one.impressions, one.clicks)
        assert (lower, mean, upper) == pytest.approx((one.lower, one.mean, one.upper), rel=1e-5)


def test_settings_show_what_is_empty_and_signs_as_tables_do() -> None:
    manifest = replace(MANIFEST, prudent="1", settings={"a": "", "b": [], "c": -1.5, "d": None, "e": {"f": [-2.0]}})
    settings = dict(summary(evaluation=Evaluation((), manifest))["settings"])
    assert [settings[f"evaluation.{name}"] for name in ("a", "b", "c", "d", "e.f")] == ["–", "–", "−1.5", "–", "−2"]


def test_it_names_what_click_rate_would_have_fallen_for() -> None:
    fallen = summary()["contexts"]["fallen"]
    assert (fallen["missed"], fallen["rare"], fallen["contexts"], fallen["explored"]) == (1, 1, 1, 2)
    (first,) = fallen["first"]
    assert (first["context"], first["item"], first["clicks"], first["impressions"]) == ("shoes", "d", 1, 1)
    assert first["why"].endswith("too little to trust")


def test_without_the_counts_it_came_from_clicks_are_not_known(tmp_path: Path) -> None:
    ranked().write(tmp_path / "policy.parquet")
    data = summary(prudent.Policy.read(tmp_path / "policy.parquet"), counts=count(LISTS[:90]), trained=False)
    assert data["contexts"]["fallen"]["known"] is False
    assert data["health"]["log"] == "holdout"
    assert len(data["contexts"]["notes"]) == 2
    render(data)


def test_click_rates_are_those_of_the_comparison_where_there_is_one() -> None:
    assert summary()["positions"] | {"parameters": None, "more": None} == {
        "observed": [0.41, 0.19],
        "fitted": [0.4, 0.2],
        "model": "pbm",
        "parameters": None,
        "more": None,
    }
    alone = summary(comparison="Too few lists.")
    assert alone["positions"]["fitted"] == []
    assert len(alone["positions"]["observed"]) == 3
    assert alone["comparison"] == {"why": "Too few lists."}
    assert summary(ranked(model="dcm"))["positions"]["parameters"].keys() == {"continuation"}
    assert summary(ranked(model="cm"))["positions"]["parameters"] == {}


@pytest.mark.parametrize(
    ("bound", "said"),
    [
        ("bayes(delta=0.2)", "of about 90% of the items, on average"),
        ("hoeffding(delta=0.2)", "with probability 80% or more"),
        ("mle", "It overestimates about half of the items."),
    ],
)
def test_the_page_promises_no_more(bound: str, said: str) -> None:
    assert said in " ".join(render(summary(ranked(bound=bound))).split())


def test_a_method_without_bounds_is_reported_too() -> None:
    policy = prudent.rank_baseline(prudent.Log(table(LISTS)), "ips", length=2)
    data = summary(policy, counts=count(LISTS))
    assert "no lower bounds" in data["promises"][0]
    assert data["promises"][0] in render(data)


def test_of_long_lists_the_first_places_are_shown() -> None:
    items = tuple(f"i{place:03}" for place in range(80))
    lists = [("q", items, tuple(int(place % 7 == 0) for place in range(80)))] * 5
    data = summary(prudent.rank(count(lists), model="cm", bound="bayes"), comparison="Too few lists.")
    assert (len(data["positions"]["observed"]), data["positions"]["more"]) == (MOST_PLACES, 30)
    assert "30 positions further down are not shown" in render(data)
    (only,) = data["contexts"]["shown"]
    placed = [row for row in only["rows"] if row[1] or row[2]]
    assert all(min(place for place in row[1:3] if place) <= MOST_PLACES for row in placed)
    assert only["more"] > 0


# --- large policies ---------------------------------------------------------------------------------------------------


def large_policy(folder: Path, item: str, candidates: int) -> prudent.Policy:
    """100,000 contexts with five listed items each; names as an SQL expression over context i and item k."""
    interval = "1 / (k + 2) as lower, 1.5 / (k + 2) as mean, 1.8 / (k + 2) as upper, null::double as stay"
    evidence = f"{interval}, 5.0::double as positive, 9.0::double as negative"
    with duckdb.connect() as connection:
        for name, most, rank in (("policy", 5, "(k + 1)::int as rank, "), ("scores", candidates, "")):
            few = "" if name == "policy" else "where i < 1000"
            connection.execute(
                f"copy (select 'context ' || lpad(i::varchar, 6, '0') as context, {rank}{item} as item, {evidence}, "
                f"(1000000 // (i + 1))::bigint as impressions from range(100000) as c(i), range({most}) as s(k) {few} "
                f"order by i, k) to '{folder}/{name}.parquet'"
            )
    Manifest("policy", {"model": "pbm", "bound": "bayes(delta=0.2)", "length": 10}, results={"fitted": {}}).write(
        folder / "policy.parquet"
    )
    return prudent.Policy.read(folder / "policy.parquet", folder / "scores.parquet")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("item", "candidates"),
    [("'item ' || k", 60), ("repeat('<', 99) || k || repeat('&', 99)", 60), ("repeat('長', 300) || k", 60)],
    ids=["plain", "markup", "long"],
)
def test_a_hundred_thousand_contexts_make_a_page_of_less_than_two_megabytes_in_seconds(
    tmp_path: Path, item: str, candidates: int
) -> None:
    """30 seconds are ten times what it takes on two idle cores."""
    policy = large_policy(tmp_path, item, candidates)
    started = time.perf_counter()
    page = render(data := summary(policy, counts=count(LISTS), trained=False))
    assert time.perf_counter() - started < 30
    contexts = data["contexts"]
    assert len(page.encode()) < 2_000_000
    assert contexts["total"] == 100_000
    assert len(contexts["shown"]) + contexts["dropped"] == MOST_CONTEXTS
    assert [entry["name"] for entry in contexts["shown"][:2]] == ["context 000000", "context 000001"]  # the heaviest
    assert (contexts["dropped"] > 0) == ("repeat" in item)
    if contexts["dropped"]:
        assert f"{contexts['dropped']} more exceed the size limit" in page
        assert len(page.encode()) > BUDGET / 2  # the room is used


def test_contexts_of_integers() -> None:
    lists = [(7, (1, 2), (0, 1))] * 20 + [(7, (2, 1), (0, 1))] * 20
    data = summary(prudent.rank(count(lists), model="pbm"))
    assert data["contexts"]["shown"][0]["name"] == "7"


# --- the title, and what a log does not tell --------------------------------------------------------------------------


def test_a_title_turns_nothing_around_and_ends_no_line() -> None:
    data = summary(title="Q3\u202e gnp.exe\x1b[31m\n\u2028next")
    assert data["title"] == "Q3\\u202e gnp.exe\\x1b[31m\\n\\u2028next"
    assert not set("\u202e\x1b\u2028") & set(render(data))


def test_why_there_is_no_comparison_turns_nothing_around_and_is_told_to_its_end() -> None:
    why = "There is no file \u202egnp.exe. " + "Say which. " * 20
    assert summary(comparison=why)["comparison"]["why"] == why.replace("\u202e", "\\u202e")


def test_the_headline_says_in_words_what_decides() -> None:
    assert summary()["headline"]["in_words"] == "doubly robust"
    assert "By the estimator <code>dr</code> (doubly robust)" in render(summary())


def test_a_log_of_other_contexts_does_not_tell_how_many_lists_differ() -> None:
    nothing_shared = replace(MANIFEST, results={"contexts": {"log": 3, "policy": 2, "both": 0}})
    page = render(summary(verdict=NO, evaluation=Evaluation((UNKNOWN,), nothing_shared)))
    assert "none of which is in the holdout" in " ".join(page.split())
    assert "from the incumbent list" not in page
    assert "from the incumbent list" in render(summary())
