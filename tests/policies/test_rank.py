"""Algorithm 1 from end to end: a log is counted and ranked, and everything in the policy follows from plain loops."""

import random
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import betainc

import prudent
from prudent.base.errors import LogError, PrudentWarning, UsageError
from prudent.click_models.simulate import write_log
from prudent.click_models.world import make_world
from prudent.storage.manifest import Source, Tally
from tests import reference
from tests.reference import Evidence, LoggedList, Name, Pair
from tests.strategies import count, logs, plain_names

LOG: list[LoggedList] = [
    *[("shoes", ("a", "b", "c"), (1, 0, 0))] * 6,
    *[("shoes", ("b", "c", "a"), (0, 1, 0))] * 3,
    *[("boots", ("d", "a"), (0, 1))] * 2,
    ("boots", ("a", "d"), (1, 0)),
    ("socks", ("e",), (0,)),
]
WEIGHT = (0.5, 0.9, 0.2, 0.7, 0.1)  # of each position; in no order, so that the best item is not simply the first


def table(candidates: Sequence[Pair]) -> Any:
    return pa.table({"context": [context for context, _ in candidates], "item": [item for _, item in candidates]})


def scores(policy: prudent.Policy) -> dict[Pair, tuple[float, float, float, float, int]]:
    """Context, item -> lower, mean, positive, negative, impressions."""
    rows = policy.scores().project("context, item, lower, mean, positive, negative, impressions").fetchall()
    assert [row[:2] for row in rows] == sorted({row[:2] for row in rows}), "sorted, and each pair once"
    return {row[:2]: row[2:] for row in rows}


def lists(policy: prudent.Policy) -> dict[Name, dict[int, Name]]:
    """Context -> rank -> item."""
    found: dict[Name, dict[int, Name]] = {}
    for context, rank, item, *_ in policy.lists().fetchall():
        found.setdefault(context, {})[rank] = item
    return found


# --- against plain loops ------------------------------------------------------------------------------------------


def assert_scores(
    bound: str,
    positive: float,
    negative: float,
    chances: Sequence[tuple[float, int]] | None,
    lower: float,
    mean: float,
) -> None:
    """What lower bound and mean should be; `chances` of impressions, where examinations are not certain.

    A posterior with uncertain skips is integrated numerically: to .02 of its standard deviation, at most
    .2, and a density of at most 3 there.
    """
    if bound.startswith("bayes"):
        if chances is None:
            assert betainc(2 + positive, 3 + negative, lower) == pytest.approx(0.15, abs=1e-9)
            assert mean == pytest.approx((2 + positive) / (5 + positive + negative), abs=1e-9)
        else:
            below, centre = reference.thinned(2 + positive, 3, [p for p, click in chances if not click], lower)
            assert below == pytest.approx(0.15, abs=0.012)
            assert mean == pytest.approx(centre, abs=0.004)
        return
    assert mean == pytest.approx(reference.mle(positive, negative), abs=1e-9)
    trials = sum(p for p, _ in chances) ** 2 / len(chances) if chances else None
    expected = mean if bound == "mle" else reference.hoeffding(positive, negative, 0.2, trials)
    assert lower == expected or lower == pytest.approx(expected, abs=1e-9)


def best_list(
    scored: dict[Pair, tuple[float, float, float, float, int]], context: Name, weight: Sequence[float]
) -> dict[int, Name]:
    """The k-th best item, by the tie rule, at the k-th heaviest position."""
    own = {item: row for (c, item), row in scored.items() if c == context}
    best = sorted(own, key=lambda item: (-own[item][0], -own[item][1], -own[item][4], item))[: len(weight)]
    places = sorted(range(1, len(best) + 1), key=lambda rank: (-weight[rank - 1], rank))
    return dict(zip(places, best, strict=True))


@pytest.mark.filterwarnings("ignore:Some lists are longer:prudent.base.errors.PrudentWarning")  # tested below
@settings(max_examples=8, deadline=None)
@given(shown=logs(), length=st.integers(1, 6), data=st.data())
def test_every_number_equals_a_plain_loop(shown: list[LoggedList], length: int, data: st.DataObject) -> None:
    assume(any(any(clicks) for _, _, clicks in shown))
    pairs = sorted(reference.impressions(shown))
    eligible: list[Pair] = pairs
    extra = data.draw(st.none() | st.lists(st.tuples(plain_names, plain_names), min_size=1, max_size=8))
    if extra is not None:  # some logged ones, others that never were, and contexts that were not either
        eligible = sorted({*data.draw(st.lists(st.sampled_from(pairs))), *extra})
    min_lists = data.draw(st.integers(0, 3))
    known, positions = reference.impressions(shown), reference.longest(shown)
    spelled = f"[{', '.join(map(str, WEIGHT))}]"
    stays = [round(1 - weight, 3) for weight in WEIGHT]
    models: dict[str, tuple[Evidence, Sequence[float], bool]] = {
        "cm": (reference.cascade(shown), [1.0] * positions, True),
        "dcm(tail=truncate)": (
            reference.truncated(shown),
            [1 - c for c in reference.truncated_continuation(shown)],
            False,
        ),
        f"dcm(tail=truncate, continuation={stays})": (reference.truncated(shown), WEIGHT, True),
        f"pbm(examination={spelled})": (reference.examined(shown, WEIGHT), WEIGHT, True),
    }
    counts = count(shown)
    for model, (evidence, logged_weight, by_weight) in models.items():
        bound = data.draw(st.sampled_from(["mle", "hoeffding(delta=0.2)", "bayes(delta=0.3, alpha=2, beta=3)"]))
        contexts = sorted({context for context, _ in eligible})
        logged = {context: sum(c == context for c, _, _ in shown) for context in contexts}
        kept = [context for context in contexts if logged[context] >= min_lists]
        candidates = None if extra is None else table(eligible)
        if not kept:
            with pytest.raises(LogError, match="there is nothing to rank"):
                prudent.rank(counts, model, bound=bound, length=length, candidates=candidates, min_lists=min_lists)
            continue
        policy = prudent.rank(counts, model, bound=bound, length=length, candidates=candidates, min_lists=min_lists)
        weight = [*logged_weight[:positions], *[0.0] * length][:length]  # nothing is known of lower positions
        scored = scores(policy)
        assert list(scored) == eligible
        for pair, (lower, average, positive, negative, impressions) in scored.items():
            expected = evidence.get(pair, (0.0, 0.0))
            assert (positive, negative) == pytest.approx(expected, abs=1e-9)
            assert impressions == known[pair]
            uncertain = reference.chances(shown, WEIGHT, pair) if model.startswith("pbm") else None
            assert_scores(bound, *expected, uncertain, lower, average)

        found = lists(policy)
        everything = {
            **scores(prudent.rank(counts, model, bound=bound, length=length)),
            **scored,
        }  # also what is not eligible
        assert sorted(found) == kept
        rows = {row[0]: row[1:] for row in policy.contexts().fetchall()}
        assert list(rows) == kept
        total = {"value": 0.0, "lower": 0.0, "incumbent_value": 0.0, "incumbent_lower": 0.0}
        kind = model.partition("(")[0]
        for context in kept:
            assert found[context] == best_list(scored, context, weight if by_weight else [1.0] * length)
            usual = reference.incumbent_list(shown, context, length)
            values = []
            # λ of the last logged position is not identified: there, nothing is sure to be worth anything.
            sure = weight if by_weight else [w * (k < positions) for k, w in enumerate(weight, start=1)]
            examined = sum(sum(evidence[pair]) > 0 for pair in evidence if pair[0] == context)
            for chosen in (found[context], usual):
                low, mean = (
                    [everything[context, chosen[k]][column] if k in chosen else 0.0 for k in range(1, length + 1)]
                    for column in (0, 1)
                )
                values.append(reference.VALUE[kind](mean, weight))
                if bound.startswith("bayes"):
                    values.append(reference.list_lower_bound(kind, mean, low, sure))
                    continue
                # Hoeffding's inequality for all examined items of the context at once.
                wider = 1.0 if bound == "mle" else (log(max(1, examined) / 0.2) / log(1 / 0.2)) ** 0.5
                low = [max(0.0, m - wider * (m - one)) for m, one in zip(mean, low, strict=True)]
                values.append(reference.VALUE[kind](low, weight if bound == "mle" else sure))
            assert rows[context][0] == logged[context]
            assert rows[context][1:5] == pytest.approx(values, abs=1e-9)
            clicked = any(any(clicks) for c, _, clicks in shown if c == context)
            assert rows[context][5] == (found[context] != usual and clicked)
            for name, value in zip(total, values, strict=True):
                total[name] += value * logged[context] / max(1, sum(logged[c] for c in kept))
        summary = policy.manifest.results["summary"]
        assert {name: summary[name] for name in total} == pytest.approx(total, abs=1e-9)
        assert (summary["contexts"], summary["too_few_lists"]) == (len(kept), len(contexts) - len(kept))
        assert summary["without_candidates"] == len({context for context, _, _ in shown} - set(contexts))
        assert summary["differ"] == sum(row[5] for row in rows.values())


# --- what may be listed -------------------------------------------------------------------------------------------


def test_without_candidates_whatever_the_log_showed() -> None:
    policy = prudent.rank(count(LOG), "cm", bound="mle")
    # cm: shoes a 6/6, c 3/3, b 0/9; a was shown more often than c. boots a 3/3, d 0/2.
    assert {context: policy[context] for context in policy} == {
        "boots": ["a", "d"],
        "shoes": ["a", "c", "b"],
        "socks": ["e"],
    }
    assert policy.manifest.settings["length"] == 3


def test_candidates_restrict_and_extend() -> None:
    eligible: list[Pair] = [("shoes", "c"), ("shoes", "new"), ("shoes", "b"), ("hats", "a"), ("hats", "z")]
    policy = prudent.rank(count(LOG), "cm", bound="bayes", candidates=table([*eligible, eligible[0]]))
    assert list(policy) == ["shoes"], "hats were never logged, and boots are not eligible"
    assert policy["shoes"] == ["c", "new", "b"]  # 3 of 3, nothing known, 0 of 9
    assert sorted(scores(policy)) == sorted(eligible)
    assert scores(policy)["shoes", "new"][2:] == (0, 0, 0)
    assert policy.manifest.results["summary"]["too_few_lists"] == 1
    assert policy.manifest.results["summary"]["without_candidates"] == 2
    assert policy.manifest.settings["candidates"] == "the Table"


def test_contexts_that_were_never_logged_are_ranked_when_no_list_is_asked_of_them() -> None:
    eligible: list[Pair] = [("hats", "b"), ("hats", "a"), ("shoes", "a")]
    for bound in ("mle", "hoeffding", "bayes", "eb", "exposure"):
        policy = prudent.rank(count(LOG), "cm", bound=bound, candidates=table(eligible), min_lists=0)
        assert policy["hats"] == ["a", "b"], "equals go by name"
        assert policy["shoes"] == ["a"]


def test_min_lists_leaves_contexts_to_the_caller() -> None:
    counts = count(LOG)  # shoes 9 lists, boots 3, socks 1
    for least, kept in ((0, 3), (1, 3), (2, 2), (3, 2), (4, 1), (9, 1)):
        policy = prudent.rank(counts, "cm", bound="mle", min_lists=least)
        assert len(policy) == policy.manifest.results["summary"]["contexts"] == kept
        assert policy.manifest.results["summary"]["too_few_lists"] == 3 - kept
        assert len(scores(policy)) == 6, "the evidence of all of them"
    with pytest.raises(LogError, match="No context has a candidate and 10 logged lists"):
        prudent.rank(counts, "cm", bound="mle", min_lists=10)


def test_withdrawing_an_item_does_not_change_the_scores_of_those_that_stay() -> None:
    """Or a short list of candidates, all of them good, would teach the prior that everything new is good."""
    counts = count(LOG)
    for bound in ("eb", "eb(pool=context)", "exposure"):
        everything = scores(prudent.rank(counts, "cm", bound=bound))
        few = scores(prudent.rank(counts, "cm", bound=bound, candidates=table([("shoes", "a"), ("boots", "a")])))
        assert few == {pair: everything[pair] for pair in (("boots", "a"), ("shoes", "a"))}


def test_policies_from_the_same_counts_leave_each_other_alone() -> None:
    counts = count(LOG)
    first = prudent.rank(counts, "cm", bound="mle", length=1)
    second = prudent.rank(counts, "cm", bound="bayes", candidates=table([("boots", "d")]))
    third = prudent.rank(counts, "dcm", bound="mle")
    assert (first["shoes"], second["boots"], third["shoes"]) == (["a"], ["d"], ["a", "c", "b"])
    assert (len(scores(first)), len(scores(second)), len(scores(third))) == (6, 1, 6)


def test_a_policy_outlives_its_counts() -> None:
    policy = prudent.rank(count(LOG), "cm", bound="mle")
    assert policy["shoes"] == ["a", "c", "b"]
    assert len(policy.contexts().fetchall()) == 3


def test_length_above_the_longest_logged_list() -> None:
    eligible: list[Pair] = [("shoes", item) for item in "abcdefgh"]
    with pytest.warns(PrudentWarning, match="ends at position 3"):
        policy = prudent.rank(
            count(LOG), "pbm(examination=[0.5, 1, 0.2])", bound="bayes", length=5, candidates=table(eligible)
        )
    assert len(policy["shoes"]) == 5
    scored = scores(policy)
    chosen = policy["shoes"]
    assert chosen[1] == max("abcdefgh", key=lambda item: scored["shoes", item][0]), "the second position is read most"
    expected = sum(w * scored["shoes", item][1] for w, item in zip((0.5, 1, 0.2), chosen, strict=False))
    assert policy.manifest.results["summary"]["value"] == pytest.approx(expected)


def test_incumbent_list_is_in_the_order_of_production() -> None:
    policy = prudent.rank(count(LOG), "cm", bound="mle")
    rows = {row[0]: row for row in policy.contexts().fetchall()}
    # Shoes showed a b c, which click for sure under mle; the list of a c b is another with the same value.
    assert rows["shoes"] == ("shoes", 9, 1.0, 1.0, 1.0, 1.0, True, "log")
    # Boots showed d a: not the new order either.
    assert rows["boots"] == ("boots", 3, 1.0, 1.0, 1.0, 1.0, True, "log")
    assert rows["socks"] == ("socks", 1, 0.0, 0.0, 0.0, 0.0, False, "log")
    assert policy.manifest.results["summary"] == {
        "contexts": 3,
        "too_few_lists": 0,
        "without_candidates": 0,
        "differ": 2,
        "unclicked": 0,
        "unit": "probability of a click",
        "level": None,  # mle is no bound
        "value": pytest.approx(12 / 13),
        "lower": pytest.approx(12 / 13),
        "incumbent_value": pytest.approx(12 / 13),
        "incumbent_lower": pytest.approx(12 / 13),
    }


# --- refusals -----------------------------------------------------------------------------------------------------


def test_refuses_a_list_without_positions() -> None:
    with pytest.raises(UsageError, match="length is 0; it must be a whole number, at least 1"):
        prudent.rank(count(LOG), length=0)
    with pytest.raises(UsageError, match="length is '3'"):
        prudent.rank(count(LOG), length="3")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="min_lists is -1"):
        prudent.rank(count(LOG), min_lists=-1)


def test_refuses_a_log_without_clicks() -> None:
    with pytest.raises(LogError, match="Not one of the 5 lists has a click"):
        prudent.rank(count([("q", ("a", "b"), (0, 0))] * 5))


def test_refuses_unknown_names() -> None:
    with pytest.raises(UsageError, match=r"No click model is called 'pmb'\. Did you mean 'pbm'"):
        prudent.rank(count(LOG), "pmb")
    with pytest.raises(UsageError, match=r"No bound is called 'bays'\. Did you mean 'bayes'"):
        prudent.rank(count(LOG), "cm", bound="bays")


def test_refuses_candidates_of_another_kind() -> None:
    with pytest.raises(LogError, match=r"The candidates' item is bigint, but the log's is varchar"):
        prudent.rank(count(LOG), "cm", candidates=table([("shoes", 1)]))
    with pytest.raises(LogError, match=r"has no column 'item'.*Did you mean 'items'"):
        prudent.rank(count(LOG), "cm", candidates=pa.table({"context": ["shoes"], "items": ["a"]}))
    nothing = pa.table({"context": pa.array([None], pa.string()), "item": pa.array(["a"], pa.string())})
    with pytest.raises(LogError, match="1 rows of the Table have a context or item that is missing"):
        prudent.rank(count(LOG), "cm", candidates=nothing)


def test_candidates_from_files(tmp_path: Path) -> None:
    """CSV is all text: where the log has integers, its candidates are read as integers."""
    numbered: list[LoggedList] = [(7, (1, 2), (1, 0)), (7, (2, 1), (1, 0)), (8, (3,), (0,))]
    file = tmp_path / "candidates.csv"
    file.write_text("item,context\n1,7\n4,7\n", encoding="utf-8")
    policy = prudent.rank(count(numbered), "cm", bound="mle", candidates=file)
    assert policy[7] == [1, 4]
    pq.write_table(table([(7, 2), (8, 3)]), tmp_path / "candidates.parquet")
    policy = prudent.rank(count(numbered), "cm", bound="mle", candidates=tmp_path / "candidates.parquet")
    assert (policy[7], policy[8]) == ([2], [3])
    assert policy.manifest.settings["candidates"] == str(tmp_path / "candidates.parquet")


# --- settings and provenance --------------------------------------------------------------------------------------


def test_the_default_is_auto_and_anchored() -> None:
    with pytest.warns(PrudentWarning, match="Using dcm instead"):
        policy = prudent.rank(count(LOG))
    assert (policy.manifest.settings["model"], policy.manifest.settings["bound"]) == ("dcm", "anchored(delta=0.5)")


def test_models_and_bounds_by_value() -> None:
    model, bound = prudent.click_models.parse("cm"), prudent.bounds.parse("bayes(delta=0.1)")
    by_value, by_name = (
        prudent.rank(count(LOG), model, bound=bound),
        prudent.rank(count(LOG), "cm", bound="bayes(delta=0.1)"),
    )
    assert by_value.scores().fetchall() == by_name.scores().fetchall()
    assert by_value.manifest == by_name.manifest


def test_the_manifest_has_all_it_takes_to_rank_again() -> None:
    policy = prudent.rank(count(LOG), "dcm(tail=truncate)", bound="eb(delta=0.1)", min_lists=2)
    manifest = policy.manifest
    assert manifest.prudent == prudent.__version__
    model = "dcm(tail=truncate)"
    settings = {"model": model, "asked_model": model, "bound": "eb(delta=0.1)", "min_lists": 2, "length": 3}
    assert manifest.settings == {**settings, "candidates": None, "max_moves": None}
    training = manifest.sources["training"]
    assert training.digest is not None
    assert replace(training, digest=None) == Source(("the Table",), Tally(13))
    assert manifest.results["fitted"]["continuation"] == reference.truncated_continuation(LOG)
    assert "prior" in manifest.results["fitted"]


# --- the same bytes -----------------------------------------------------------------------------------------------


def test_nine_runs_write_the_same_bytes(tmp_path: Path) -> None:
    """With 1, 2 and 4 threads and shuffled lists; row groups of 2,048 lists give each thread some to count."""
    world = make_world("dcm", contexts=30, items=(10, 30), length=6, exploration=2, seed=1)
    log = pq.read_table(write_log(world, 10_000, tmp_path / "log.parquet", seed=1))
    written = set()
    for run in range(9):
        order = np.array(random.Random(run).sample(range(log.num_rows), log.num_rows))
        pq.write_table(log.take(order), tmp_path / "shuffled.parquet", row_group_size=2048)
        engine = prudent.DuckDB(threads=(1, 2, 4)[run % 3])
        counts = prudent.count(prudent.Log(tmp_path / "shuffled.parquet"), engine=engine)
        for model, bound in (("dcm", "exposure"), ("pbm", "eb(pool=context)")):
            policy = prudent.rank(counts, model, bound=bound)
            policy.write(tmp_path / f"{model}-policy.parquet", scores=tmp_path / f"{model}-scores.parquet")
        files = sorted(tmp_path.glob("*-[ps]*[sy].parquet*"))
        assert [file.name for file in files] == [
            f"{model}-{name}.parquet{suffix}"
            for model in ("dcm", "pbm")
            for name in ("policy", "scores")
            for suffix in ("", ".manifest.json")
        ]
        written.add(tuple(sha256(file.read_bytes()).hexdigest() for file in files))
    assert len(written) == 1


def test_candidates_are_taken_as_they_are_or_not_at_all(tmp_path: Path) -> None:
    """A cast would make item 8 of 7.6, and 1 of True."""
    counts = count([(1, (7, 8), (1, 0)), (1, (8, 7), (0, 1))] * 5)
    csv = tmp_path / "candidates.csv"
    csv.write_text("context,item\n1,7\n1,9\n")
    assert prudent.rank(counts, "cm", candidates=csv)[1] == [7, 9]
    for row in ("1,7.6", "1,", "one,7"):
        csv.write_text(f"context,item\n1,7\n{row}\n")
        with pytest.raises(LogError, match=r"1 rows of .*candidates\.csv have a context or item that is missing"):
            prudent.rank(counts, "cm", candidates=csv)
    with pytest.raises(LogError, match="holds double; names are text or integers"):
        prudent.rank(counts, "cm", candidates=pa.table({"context": [1], "item": [7.6]}))
    with pytest.raises(LogError, match="Candidates have the columns context and item"):
        prudent.rank(counts, "cm", candidates=pa.table({"context": [1], "document": [7]}))
    categories = pa.table({"context": pa.array(["q"]).dictionary_encode(), "item": ["a"]})
    assert prudent.rank(count([("q", ("a", "b"), (1, 0))]), "cm", candidates=categories)["q"] == ["a"]


def test_numpy_integers_are_integers(tmp_path: Path) -> None:
    policy = prudent.rank(count(LOG), "cm", bound="mle", length=np.int64(2), min_lists=np.int32(2))  # type: ignore[arg-type]
    policy.write(tmp_path / "policy.parquet")
    assert policy.manifest.settings["length"] == 2


def test_few_candidates_do_not_shorten_what_was_mostly_shown() -> None:
    policy = prudent.rank(
        count([("q", ("a", "b", "c"), (1, 0, 1))] * 3), "cm", bound="mle", candidates=table([("q", "a")])
    )
    assert policy.contexts().fetchall() == [("q", 3, 1.0, 1.0, 1.0, 1.0, True, "log")]


def test_a_huge_length_is_as_long_as_the_candidates() -> None:
    assert prudent.rank(count(LOG), "cm", bound="mle", length=10**12)["shoes"] == ["a", "c", "b"]


def test_tables_outlive_what_they_came_from(tmp_path: Path) -> None:
    lists = prudent.rank(count(LOG), "cm", bound="mle").lists()
    scored = prudent.rank(count(LOG), "cm", bound="mle").scores()
    prudent.rank(count(LOG), "cm", bound="mle").write(tmp_path / "policy.parquet")
    assert lists.fetchall() == prudent.Policy.read(tmp_path / "policy.parquet").lists().fetchall()
    assert len(scored.fetchall()) == 6
