"""What changed between two policies, against plain loops over their lists."""

import json
from collections import Counter
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prudent
from prudent.base.errors import PolicyError
from prudent.policies.difference import Difference
from prudent.policies.files import COLUMNS
from prudent.storage.manifest import Days, Manifest, Source, Tally
from tests.command import run
from tests.footers import rewrite_footer
from tests.strategies import count

LENGTH = 3
MADE = {"model": "pbm", "bound": "bayes(delta=0.2)", "length": LENGTH}
CHANGES = [
    "context",
    "item",
    "old_rank",
    "new_rank",
    "old_lower",
    "new_lower",
    "old_impressions",
    "new_impressions",
    "why",
]


class Score(NamedTuple):
    lower: float
    mean: float
    impressions: int


Scores = dict[Any, dict[Any, Score]]  # context -> item -> its score
Lists = dict[Any, dict[Any, int]]  # context -> item -> its rank


def best(scores: Scores, kept: frozenset[Any] | None = None) -> Lists:
    """The lists of the highest bounds, of the contexts that are kept."""
    return {
        context: {
            item: rank
            for rank, item in enumerate(sorted(items, key=lambda item: (-items[item].lower, item))[:LENGTH], start=1)
        }
        for context, items in scores.items()
        if kept is None or context in kept
    }


def manifest(training: Source | None = None, fitted: Any = None, summary: Any = None, **settings: Any) -> Manifest:
    results = {"fitted": fitted or {}, "summary": summary or {}}
    return Manifest("policy", settings, {} if training is None else {"training": training}, results)


NUMBERS = {"upper": None, "stay": None, "positive": 1.0, "negative": 2.0}


def write(folder: Path, name: str, scores: Scores, lists: Lists | None = None, **made: Any) -> Path:
    """A policy, its scores and their manifests."""
    lists = best(scores) if lists is None else lists
    rows = [
        {"context": c, "rank": r, "item": i, **scores[c][i]._asdict(), **NUMBERS}
        for c in sorted(lists)
        for i, r in sorted(lists[c].items(), key=lambda entry: entry[1])
    ]
    every = [{"context": c, "item": i, **s._asdict(), **NUMBERS} for c in scores for i, s in scores[c].items()]
    for rows_, file, columns in (
        (rows, f"{name}.parquet", COLUMNS),
        (every, f"{name}.scores.parquet", [column for column in COLUMNS if column != "rank"]),
    ):
        pq.write_table(pa.Table.from_pylist(rows_).select(columns), folder / file)
        manifest(**{**MADE, **made}).write(folder / file)
    return folder / f"{name}.parquet"


def rows(difference: Difference) -> dict[tuple[Any, Any], tuple[Any, ...]]:
    assert difference.changes().columns == CHANGES
    return {row[:2]: row[2:] for row in difference.changes().fetchall()}


# --- against plain loops ------------------------------------------------------------------------------------------

_scores = st.builds(
    Score, st.sampled_from([0.1, 0.2, 0.25, 0.3, 0.4, 0.5]), st.sampled_from([0.5, 0.6]), st.integers(1, 3)
)
_tables = st.dictionaries(
    st.sampled_from("xyz"), st.dictionaries(st.sampled_from("abcdef"), _scores, min_size=1), min_size=1
)


def explain(
    old: Scores, new: Scores, old_lists: Lists, new_lists: Lists, scored: bool
) -> dict[tuple[str, str], tuple[Any, ...]]:
    """Every changed place and why, context by context and item by item."""
    changed = {}
    for context in {*old_lists, *new_lists}:
        before, after = old_lists.get(context, {}), new_lists.get(context, {})
        for item in {*before, *after}:
            if before.get(item) == after.get(item):
                continue
            was = old.get(context, {}).get(item) if scored or item in before else None
            now = new.get(context, {}).get(item) if scored or item in after else None
            others, others_now = (
                [
                    score.lower
                    for other, score in side.get(context, {}).items()
                    if other != item and (scored or other in listed)
                ]
                for side, listed in ((old, before), (new, after))
            )
            if not before:
                why = "too few lists before" if scored and context in old else "new context"
            elif not after:
                why = "too few lists now" if scored and context in new else "context gone"
            elif was is None:
                why = "new item" if scored or len(before) < LENGTH else "not listed before"
            elif now is None:
                why = "gone" if scored or len(after) < LENGTH else "no longer listed"
            else:
                above = sum(lower > was.lower for lower in others)
                above_then = sum(lower > now.lower for lower in others)
                above_by_others = sum(lower > was.lower for lower in others_now)
                if after.get(item, 99) < before.get(item, 99):
                    own = above_then < above or (now.lower > was.lower and not above_by_others < above)
                else:
                    own = above_then > above or (now.lower < was.lower and not above_by_others > above)
                up = after.get(item, 99) < before.get(item, 99)
                rose, more = now.mean > was.mean, now.impressions > was.impressions
                if now[:2] == was[:2] and above_by_others == above:
                    entered, left = item not in before, item not in after
                    why = "longer lists" if entered else "shorter lists" if left else "other places"
                elif now.lower == was.lower and (now.mean == was.mean or rose != up):
                    why = "only others moved"
                elif now.lower != was.lower and not own:
                    why = "others moved more"
                elif now.impressions == was.impressions:
                    why = "same evidence, other fit"
                elif now.mean == was.mean or rose != up:
                    why = (
                        ("more evidence" if more else "other fit") if up else ("other fit" if more else "less evidence")
                    )
                    why += ", narrower interval" if up else ", wider interval"
                else:
                    why = "more evidence" if more else "less evidence"
                    why += ", higher estimate" if up else ", lower estimate"
            changed[context, item] = (
                *(before.get(item), after.get(item)),
                *(was and was.lower, now and now.lower),
                *(was and was.impressions, now and now.impressions),
                why,
            )
    return changed


@settings(max_examples=15, deadline=None)
@given(old=_tables, new=_tables, kept=st.frozensets(st.sampled_from("xyz"), min_size=1), scored=st.booleans())
def test_every_change_is_that_of_a_plain_loop(
    old: Scores, new: Scores, kept: frozenset[str], scored: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("diff")
    old_lists, new_lists = best(old), best(new, kept) or best(new)
    one, two = write(folder, "old", old), write(folder, "new", new, new_lists)
    scores = (folder / "old.scores.parquet", folder / "new.scores.parquet") if scored else None
    difference = prudent.diff(one, two, scores=scores)
    expected = explain(old, new, old_lists, new_lists, scored)
    assert rows(difference) == expected
    assert difference.why == Counter(change[-1] for change in expected.values())
    changed = {context for context, _ in expected}
    assert difference.contexts == {
        "old": len(old_lists),
        "new": len(new_lists),
        "same": len({*old_lists, *new_lists} - changed),
        "changed": sum(context in old_lists and context in new_lists for context in changed),
        "gone": len(old_lists.keys() - new_lists.keys()),
        "appeared": len(new_lists.keys() - old_lists.keys()),
    }
    was, now = (
        {item for items in known.values() for item in items}
        for known in ((old, new) if scored else (old_lists, new_lists))
    )
    assert difference.items == {"old": len(was), "new": len(now), "gone": len(was - now), "appeared": len(now - was)}
    affected = difference.affected().fetchall()
    assert {context for context, _, _ in affected} == changed
    assert [row[2] for row in affected] == sorted((row[2] for row in affected), reverse=True)


def test_the_same_policy_twice(tmp_path: Path) -> None:
    policy = write(tmp_path, "old", {"x": {"a": Score(0.3, 0.4, 10)}})
    difference = prudent.diff(policy, policy)
    assert (difference.settings, difference.why, rows(difference)) == ((), {}, {})
    assert "0 changed" in repr(difference)


# --- worked by hand -----------------------------------------------------------------------------------------------

OLD: Scores = {
    "shoes": {"a": Score(0.5, 0.6, 100), "b": Score(0.4, 0.6, 50), "c": Score(0.3, 0.35, 80), "d": Score(0.2, 0.6, 5)},
    "boots": {"a": Score(0.2, 0.3, 9), "e": Score(0.1, 0.2, 9)},
    "socks": {"a": Score(0.2, 0.3, 9)},
}


def test_why(tmp_path: Path) -> None:
    """d was shown more often and overtakes all; a new item enters at the end; a and b only make room."""
    shoes = {**OLD["shoes"], "d": Score(0.55, 0.62, 400), "f": Score(0.45, 0.5, 90)}
    new = {"shoes": shoes, "boots": {"e": Score(0.1, 0.2, 9)}, "socks": OLD["socks"]}
    one, two = write(tmp_path, "old", OLD), write(tmp_path, "new", new)
    without = {
        ("shoes", "d"): (None, 1, None, 0.55, None, 400, "not listed before"),
        ("shoes", "a"): (1, 2, 0.5, 0.5, 100, 100, "only others moved"),
        ("shoes", "f"): (None, 3, None, 0.45, None, 90, "not listed before"),
        ("shoes", "b"): (2, None, 0.4, None, 50, None, "no longer listed"),
        ("shoes", "c"): (3, None, 0.3, None, 80, None, "no longer listed"),
        # The list of boots was not full: what is not in it is no candidate.
        ("boots", "a"): (1, None, 0.2, None, 9, None, "gone"),
        ("boots", "e"): (2, 1, 0.1, 0.1, 9, 9, "only others moved"),
    }
    assert rows(prudent.diff(one, two)) == without
    scores = (tmp_path / "old.scores.parquet", tmp_path / "new.scores.parquet")
    assert rows(prudent.diff(one, two, scores=scores)) == without | {
        ("shoes", "d"): (None, 1, 0.2, 0.55, 5, 400, "more evidence, higher estimate"),
        ("shoes", "f"): (None, 3, None, 0.45, None, 90, "new item"),
        ("shoes", "b"): (2, None, 0.4, 0.4, 50, 50, "only others moved"),
        ("shoes", "c"): (3, None, 0.3, 0.3, 80, 80, "only others moved"),
    }


def test_a_method_without_bounds_need_not_list_all_candidates(tmp_path: Path) -> None:
    one, two = (
        write(tmp_path, name, scores) for name, scores in (("old", OLD), ("new", {**OLD, "boots": OLD["socks"]}))
    )
    for file in (one, two):
        Manifest("policy", {"baseline": "ips", "length": LENGTH}).write(file)
    assert rows(prudent.diff(one, two))["boots", "e"][-1] == "no longer listed"


def test_settings_come_with_their_names(tmp_path: Path) -> None:
    days = Days(date(2026, 11, 1), date(2026, 11, 2), 2)
    one = write(tmp_path, "old", OLD, training=Source(("x",), Tally(5), days), summary={"value": 1})
    new = Source(("y",), Tally(5), replace(days, half_life=14.0))
    fitted = {"examination": [1.0, 0.5], "n": 0}
    two = write(tmp_path, "new", OLD, bound="mle", training=new, summary={"value": 2}, fitted=fitted)
    assert prudent.diff(one, two).settings == (
        ("bound", "bayes(delta=0.2)", "mle"),
        ("training.days.half_life", None, 14.0),
    )  # fitted parameters follow from these

    said = run("diff", one, two).text
    assert "settings that differ before now bound bayes(delta=0.2) mle training.days.half_life – 14" in said
    assert "Any of these can explain the changes below." in said


def test_policies_in_memory(tmp_path: Path) -> None:
    lists = [("shoes", ("a", "b"), (1, 0)), ("shoes", ("b", "a"), (0, 1)), ("boots", ("a", "c"), (0, 1))] * 30
    more = [("shoes", ("b", "a"), (1, 0)), ("shoes", ("a", "b"), (0, 1))] * 60
    old, new = (prudent.rank(count(given), "cm", bound="bayes") for given in (lists, lists + more))
    difference = prudent.diff(old, new)
    old.write(tmp_path / "old.parquet")
    new.write(tmp_path / "new.parquet")
    assert rows(difference) == rows(prudent.diff(tmp_path / "old.parquet", tmp_path / "new.parquet"))
    assert difference.why == {"more evidence, higher estimate": 1, "more evidence, lower estimate": 1}
    assert [setting.name for setting in difference.settings] == ["training.lists"]


def test_a_policy_in_several_files(tmp_path: Path) -> None:
    """As Spark writes them: a folder, with the manifest beside it."""
    new = {**OLD, "shoes": {**OLD["shoes"], "d": Score(0.55, 0.62, 400)}}
    whole, two = write(tmp_path, "old", OLD), write(tmp_path, "new", new)
    for name in ("old", "old.scores"):
        parts = tmp_path / f"parts.{name}.parquet"
        parts.mkdir()
        rows_ = pq.read_table(tmp_path / f"{name}.parquet")
        for number in range(2):
            pq.write_table(rows_.slice(3 * number, 3 + 99 * number), parts / f"part-{number}.parquet")
        manifest = (tmp_path / f"{name}.parquet.manifest.json").read_bytes()
        Path(f"{parts}.manifest.json").write_bytes(manifest)
    scores = tmp_path / "new.scores.parquet"
    expected = prudent.diff(whole, two, scores=(tmp_path / "old.scores.parquet", scores))
    actual = prudent.diff(tmp_path / "parts.old.parquet", two, scores=(tmp_path / "parts.old.scores.parquet", scores))
    assert rows(actual) == rows(expected)
    assert (actual.settings, actual.contexts, actual.why) == (expected.settings, expected.contexts, expected.why)


# --- other names for the same -------------------------------------------------------------------------------------


def test_what_looks_renamed(tmp_path: Path) -> None:
    old = {f"c{i}": {f"i{i}{j}": Score(0.5 - j / 10, 0.6, 100 + i) for j in range(3)} for i in range(5)}
    new = {
        # c0 is called zero now, and the last of its three places is another's: two of three are too few to say so.
        "zero": {"i00": old["c0"]["i00"], "i01": old["c0"]["i01"], "z": Score(0.1, 0.2, 1)},
        "one": dict(old["c1"]),
        "c2": {"x20" if item == "i20" else item: score for item, score in old["c2"].items()},  # with all its evidence
        "c3": {"x30" if item == "i30" else item: Score(*score[:2], 5) for item, score in old["c3"].items()},  # without
        "c4": old["c4"],
    }
    difference = prudent.diff(write(tmp_path, "old", old), write(tmp_path, "new", new))
    assert difference.renamed_contexts().fetchall() == [("c1", "one", 3, 3)]
    # One place says nothing, even with the same evidence.
    assert difference.renamed_items().fetchall() == []
    assert difference.renamed == {"contexts": 1, "items": 0}
    said = run("diff", tmp_path / "old.parquet", tmp_path / "new.parquet").text
    assert "Renamed context? c1 may now be one: 3 of 3 places are the same." in said
    assert "Renamed item?" not in said
    said = run("diff", tmp_path / "old.parquet", tmp_path / "new.parquet", "--limit", 0).text
    assert "... and 1 more contexts that may be renamed (--limit)" in said


def test_an_item_in_two_places_needs_the_same_evidence(tmp_path: Path) -> None:
    old = {f"c{i}": {"a": Score(0.5, 0.6, 100), "b": Score(0.4, 0.6, 100)} for i in range(2)}
    same, other = (
        {
            c: {"x" if item == "a" else "y": Score(*score[:2], shown) for item, score in of.items()}
            for c, of in old.items()
        }
        for shown in (95, 7)
    )
    one, two, three = (write(tmp_path, name, of) for name, of in (("old", old), ("new", same), ("other", other)))
    assert prudent.diff(one, two).renamed_items().fetchall() == [("a", "x", 2, 2), ("b", "y", 2, 2)]
    assert prudent.diff(one, three).renamed_items().fetchall() == []


def test_a_lower_estimate_does_not_explain_a_rise(tmp_path: Path) -> None:
    """The mean of c fell, but so much more is known that its lower bound rose above that of b."""
    old = {"q": {"a": Score(0.5, 0.6, 90), "b": Score(0.4, 0.5, 90), "c": Score(0.3, 0.6, 20)}}
    new = {"q": {**old["q"], "c": Score(0.45, 0.55, 900)}}
    one, two = write(tmp_path, "old", old), write(tmp_path, "new", new)
    assert prudent.diff(one, two).why == {"more evidence, narrower interval": 1, "only others moved": 1}
    assert prudent.diff(two, one).why == {"less evidence, wider interval": 1, "only others moved": 1}
    # And where the bounds of both fell, that of b fell more.
    new = {"q": {**old["q"], "b": Score(0.2, 0.3, 900), "c": Score(0.25, 0.4, 900)}}
    assert rows(prudent.diff(one, write(tmp_path, "new", new)))["q", "c"][-1] == "others moved more"


def test_of_equal_bounds_the_mean_decides(tmp_path: Path) -> None:
    """The bounds of both are 0 as before; a falls behind b because the mean of b rose, although its own rose too."""
    old = {"q": {"a": Score(0.0, 0.2, 5), "b": Score(0.0, 0.1, 5)}}
    new = {"q": {"a": Score(0.0, 0.25, 6), "b": Score(0.0, 0.3, 9)}}
    one = write(tmp_path, "old", old, {"q": {"a": 1, "b": 2}})
    two = write(tmp_path, "new", new, {"q": {"b": 1, "a": 2}})
    why = {item: row[-1] for (_, item), row in rows(prudent.diff(one, two)).items()}
    assert why == {"a": "only others moved", "b": "more evidence, higher estimate"}


def test_it_is_a_table_of_reasons_and_a_frame_of_changes(tmp_path: Path) -> None:
    new = {**OLD, "shoes": {**OLD["shoes"], "d": Score(0.55, 0.62, 400)}}
    difference = prudent.diff(write(tmp_path, "old", OLD), write(tmp_path, "new", new))
    lines = repr(difference).splitlines()
    assert lines[0] == "Difference: of 3 lists, 1 changed and 0 are new"
    assert lines[1].split() == ["why", "items", "changed", "their", "place", "items"]
    assert list(difference.to_frame().columns) == CHANGES
    assert len(difference.rows()) == len(difference.to_frame()) == sum(difference.why.values())


def test_an_item_in_many_places_needs_no_evidence(tmp_path: Path) -> None:
    old = {f"c{i}": {"old": Score(0.5, 0.6, 100), f"i{i}": Score(0.4, 0.6, 100)} for i in range(5)}
    new = {c: {"new" if item == "old" else item: Score(*s[:2], 7) for item, s in of.items()} for c, of in old.items()}
    new["c0"]["new"] = Score(0.1, 0.2, 7)  # four of five places are enough
    difference = prudent.diff(write(tmp_path, "old", old), write(tmp_path, "new", new))
    assert difference.renamed_items().fetchall() == [("old", "new", 4, 5)]


def test_two_that_look_alike_are_not_told_apart(tmp_path: Path) -> None:
    same = {"a": Score(0.5, 0.6, 9), "b": Score(0.4, 0.6, 9)}
    difference = prudent.diff(write(tmp_path, "old", {"x": same}), write(tmp_path, "new", {"y": same, "z": same}))
    assert difference.renamed == {"contexts": 0, "items": 0}


# --- the command line ---------------------------------------------------------------------------------------------


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "old", OLD)
    write(tmp_path, "new", {**OLD, "shoes": {**OLD["shoes"], "d": Score(0.55, 0.62, 400)}, "caps": OLD["socks"]})
    return tmp_path


def test_what_is_printed(two: Path) -> None:
    ran = run("diff", "old.parquet", "new.parquet")
    assert ran.code == 0
    assert "Lists: 3 before, 4 now. 2 are the same, 1 changed, 0 are gone, 1 are new." in ran.text
    assert "Items in these lists: 4 before, 4 now. 1 are gone, 1 are new." in ran.text
    assert "– → 1 d – → 0.550 – → 400 not listed before" in ran.text
    assert "1 → 2 a 0.500 → 0.500 100 → 100 only others moved" in ran.text
    assert "--scores OLD NEW explains the others too" in ran.text
    assert ran.text.index("shoes (400 impressions)") < ran.text.index("caps (9 impressions, new)")
    ran = run(
        "diff", "old.parquet", "new.parquet", "--scores", "old.scores.parquet", "new.scores.parquet", "--limit", 1
    )
    assert "– → 1 d 0.200 → 0.550 5 → 400 more evidence, higher estimate" in ran.text
    assert "Items among the candidates: 5 before, 5 now." in ran.text
    assert "caps" not in ran.text
    assert "... and 1 more lists (--limit; -o has them all)" in ran.text
    assert "--scores" not in ran.text


def test_for_machines(two: Path) -> None:
    ran = run("diff", "old.parquet", "new.parquet", "--json", "-o", "changes.parquet", "--limit", 1)
    actual = json.loads(ran.out)
    assert list(actual) == [
        *("prudent", "kind", "schema", "settings", "sources", "results"),
        *("renamed_contexts", "renamed_items", "affected"),
    ]
    (affected,) = actual["affected"]
    assert (affected["context"], affected["change"], affected["impressions"]) == ("shoes", "changed", 400)
    assert affected["changes"][0] == {
        **{"item": "d", "old_rank": None, "new_rank": 1, "old_lower": None, "new_lower": 0.55},
        **{"old_impressions": None, "new_impressions": 400, "why": "not listed before"},
    }
    table = duckdb.read_parquet("changes.parquet")
    assert table.columns == CHANGES
    assert len(table) == sum(actual["results"]["why"].values()) == 5
    assert json.loads(Path("changes.parquet.manifest.json").read_text())["results"] == actual["results"]


def test_names_are_shown_and_not_obeyed(two: Path) -> None:
    hostile = "\x1b[31m[bold]x\n"
    write(two, "evil", {hostile: {hostile: Score(0.5, 0.6, 9), "b": Score(0.4, 0.5, 9)}}, None, **{hostile: hostile})
    write(two, "worse", {f"{hostile}2": {hostile: Score(0.5, 0.6, 9), "b": Score(0.4, 0.5, 9)}})
    ran = run("diff", "evil.parquet", "worse.parquet")
    assert ran.code == 0
    assert "\x1b" not in ran.out
    assert r"Renamed context? \x1b[31m[bold]x\n may now be \x1b[31m[bold]x\n2" in ran.out


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["old.parquet", "no.parquet"], 3, "There is no file no.parquet"),
        (["old.parquet", "old.scores.parquet"], 3, "old.scores.parquet is not a policy"),
        (["old.parquet", "numbers.parquet"], 3, "by text and text, the new one by integers and integers"),
        (["old.parquet", "new.parquet", "--scores", "old.parquet", "new.parquet"], 3, "old.parquet has no scores"),
        (["old.parquet", "new.parquet", "--scores", "no.parquet", "no.parquet"], 3, "There is no file no.parquet"),
        (["old.parquet", "new.parquet", "--scores", "x.txt", "x.txt"], 3, "Cannot read x.txt as scores"),
        (
            ["old.parquet", "new.parquet", "--scores", "numbers.scores.parquet", "x"],
            3,
            "by another type than the policy",
        ),
        (["old.parquet", "new.parquet", "--scores", "other.scores.parquet", "x"], 3, "scores of another policy than"),
        (["old.parquet", "new.parquet", "-o", "old.parquet"], 2, "old.parquet is named twice"),
        (["old.parquet", "list.parquet"], 3, "list.parquet is not a manifest of kind policy"),
    ],
)
def test_what_cannot_be_compared(two: Path, args: list[str], code: int, said: str) -> None:
    write(two, "numbers", {1: {2: Score(0.5, 0.6, 9)}})
    write(two, "other", OLD, bound="mle")
    write(two, "list", OLD)
    rewrite_footer(Path("list.parquet"), prudent_manifest="[]")
    Path("x.txt").write_text("x")
    ran = run("diff", *args)
    assert ran.code == code
    assert said in ran.text


def test_types_of_names(two: Path) -> None:
    write(two, "numbers", {1: {2: Score(0.5, 0.6, 9)}})
    with pytest.raises(PolicyError, match="they have none in common"):
        prudent.diff("old.parquet", "numbers.parquet")
    assert rows(prudent.diff("numbers.parquet", "numbers.parquet")) == {}


# --- lists that start from the incumbent ------------------------------------------------------------------------------


def test_an_item_without_a_click_moves_with_production_alone(tmp_path: Path) -> None:
    """Its bound rose, because it was shown more readily; that is not why it stands higher."""
    old = [("q", ("a", "b", "c"), (1, 0, 0))] * 20
    new = [*old, *([("q", ("c", "a", "b"), (0, 1, 0))] * 60)]
    for name, lists in (("old", old), ("new", new)):
        prudent.rank(count(lists), "cm", to=tmp_path / f"{name}.parquet", scores=tmp_path / f"{name}.scores.parquet")
    difference = prudent.diff(tmp_path / "old.parquet", tmp_path / "new.parquet")
    assert rows(difference)["q", "c"][-1] == "production or other items moved"
