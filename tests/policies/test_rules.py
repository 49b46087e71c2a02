"""Business rules: lists against brute force over all that the rules allow, their costs, and rules that contradict."""

import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import prudent
from prudent.base.errors import LogError, RulesError
from prudent.bounds import Scores
from prudent.bounds.base import Anchor
from prudent.click_models import Cascade, PositionBased
from prudent.click_models.evidence import Evidence
from prudent.policies.best_lists import best_lists, list_values
from prudent.policies.robust_lists import View
from prudent.policies.rules.apply import Ruled, apply_rules, in_shown_order, robust_ruled
from prudent.policies.rules.match import Marks
from prudent.policies.rules.rules import KINDS, Rules, read_rules
from tests import reference
from tests.bounds.small import evidence

CONTEXTS = 12  # of every combination of rules and way of ranking
COMBINATIONS = [kinds for size in range(1, len(KINDS) + 1) for kinds in combinations(KINDS, size)]


@dataclass
class Case:
    """Contexts with random evidence, and the rules that hold in all of them."""

    rules: Rules
    marks: Marks
    evidence: Evidence
    scores: Scores
    eligible: np.ndarray
    leads: np.ndarray
    stay: np.ndarray
    length: int
    max_moves: int | None
    weights: list[float]

    def rows(self, context: int) -> list[int]:
        return np.flatnonzero((self.evidence.context == context) & self.eligible).tolist()

    @property
    def contexts(self) -> int:
        return int(self.evidence.context[-1]) + 1

    def ruled(self) -> tuple[Ruled, Any]:
        best = best_lists(self.evidence, self.scores, self.length, self.eligible, self.max_moves)
        kept = np.bincount(self.evidence.context[self.eligible], minlength=self.contexts) > 0
        size = self.length, self.max_moves
        arrays = self.evidence, self.scores, best, self.eligible, kept
        return apply_rules(self.rules, self.marks, *arrays, *size), best


def make_case(kinds: Sequence[str], anchored: bool, seed: int) -> Case:
    rng = np.random.default_rng([seed, anchored, *(KINDS.index(kind) for kind in kinds)])
    sizes = rng.integers(1, 7, CONTEXTS)
    pairs = int(sizes.sum())
    context = np.repeat(np.arange(CONTEXTS), sizes)
    length = int(rng.integers(1, 5))
    columns = 1 if "new" in kinds else int(rng.integers(1, 3))
    position = np.zeros(pairs, np.int64)
    excluded = (rng.random(pairs) < 0.25) & ("exclude" in kinds)
    buried = (rng.random(pairs) < 0.3) & ("bury" in kinds)
    keep = int(rng.integers(1, length + 1)) if "keep_first" in kinds else 0
    if "pin" in kinds:
        for c in range(CONTEXTS):
            rows = np.flatnonzero((context == c) & ~excluded)
            places = np.arange(keep + 1, length + 1)
            n = min(len(rows), len(places), int(rng.integers(0, 3)))
            position[rng.permutation(rows)[:n]] = rng.permutation(places)[:n]
    rules = Rules(
        exclude=((1,),) if "exclude" in kinds else (),  # type: ignore[arg-type]
        pin=((1,),) if "pin" in kinds else (),  # type: ignore[arg-type]
        bury=((1,),) if "bury" in kinds else (),  # type: ignore[arg-type]
        keep_first=keep,
        at_most={f"g{i}": int(rng.integers(1, 3)) for i in range(columns)} if "at_most" in kinds else {},
        new_share=float(rng.choice([0.2, 0.5, 1.0])) if "new" in kinds else 0.0,
        new_below=int(rng.integers(1, 4)),
    )
    groups = {name: rng.integers(-1, 3, pairs) for name in rules.at_most}
    shown = rng.choice([0.0, 1.0, 2.0, 5.0], pairs)
    lower = rng.choice([0.0, 0.1, 0.2, 0.3, 0.4, 0.5], pairs) if rng.random() < 0.5 else rng.random(pairs)
    stay = np.maximum(lower, rng.choice([0.05, 0.15, 0.25, 0.35], pairs))
    leads = rng.random(pairs) < 0.6
    weights = [1.0] * length if rng.random() < 0.5 else rng.permutation(np.linspace(1, 0.2, length)).tolist()
    model = PositionBased(examination=tuple(weights)) if len(set(weights)) > 1 else Cascade()
    some = replace(evidence(np.zeros(pairs), np.zeros(pairs), context, shown), fitted=model.typical(length))
    anchor = Anchor(lambda rows: stay[rows], leads) if anchored else None
    moves = int(rng.integers(0, 3)) if anchored and rng.random() < 0.3 else None
    scores = Scores(lower, lower + 0.1 * rng.random(pairs), anchor=anchor)
    eligible = rng.random(pairs) < 0.9
    marks = Marks(excluded, buried & ~excluded & (position == 0), position, groups)
    return Case(rules, marks, some, scores, eligible, leads, stay, length, moves, weights)


# --- brute force ------------------------------------------------------------------------------------------------------


def fixed_items(case: Case, rows: list[int]) -> dict[int, int]:
    """Pair -> its position: pins, and the incumbent's first items where they are kept."""
    position = case.marks.position
    fixed = {row: int(position[row]) for row in rows if position[row]}
    shown = case.evidence.impressions
    order = sorted((row for row in rows if shown[row] and row not in fixed), key=lambda row: (-shown[row], row))
    return fixed | {row: place for place, row in enumerate(order[: case.rules.keep_first], 1)}


def allowed_sets(case: Case, rows: list[int], fixed: dict[int, int]) -> list[frozenset[int]]:
    """Every set of further items that groups allow and the positions have room for."""
    free = [row for row in rows if row not in fixed]
    limits = [(case.marks.groups[name], most) for name, most in case.rules.at_most.items()]

    def fits(chosen: tuple[int, ...]) -> bool:
        for group, most in limits:
            for row in chosen:
                if group[row] >= 0 and sum(group[other] == group[row] for other in (*chosen, *fixed)) > most:
                    return False
        return True

    most = case.length - len(fixed)
    sets = [frozenset(s) for size in range(most + 1) for s in combinations(free, size) if fits(s)]
    if not case.rules.new_share:
        return sets
    new = {row for row in rows if case.evidence.impressions[row] < case.rules.new_below}
    longest = max(len(s) for s in sets)
    wanted = int(np.ceil(case.rules.new_share * (len(fixed) + longest) - 1e-9)) - len(new & {*fixed})
    needed = min(wanted, max(len(s & new) for s in sets))
    return [s for s in sets if len(s) == longest and len(s & new) >= needed]


def by_rank(case: Case, rows: list[int], fixed: dict[int, int]) -> list[int]:
    """The free items: at each rank the next one with which some allowed set can still be completed."""
    sets = allowed_sets(case, rows, fixed)
    shown, lower, mean = case.evidence.impressions, case.scores.lower, case.scores.mean
    buried = case.marks.buried
    production = sorted(rows, key=lambda row: (-shown[row], row))
    earliest = {row: rank - (case.length + 9 if case.max_moves is None else case.max_moves)
                for rank, row in enumerate(production, 1)}  # fmt: skip
    by_bound = sorted(rows, key=lambda row: (buried[row], -lower[row], -mean[row], -shown[row], row))
    incumbent = sorted(production, key=lambda row: buried[row])
    places = [place for place in range(1, case.length + 1) if place not in fixed.values()]
    chosen: list[int] = []
    while True:
        able = {row for row in rows if row not in chosen and row not in fixed}
        able = {row for row in able if any({*chosen, row} <= s for s in sets)}
        if not able:
            return chosen
        if case.scores.anchor is None:
            chosen.append(next(row for row in by_bound if row in able))
            continue
        i = next(row for row in incumbent if row in able)
        place = places[len(chosen)]
        leaders = [row for row in by_bound if row in able and case.leads[row] and earliest[row] <= place]
        j = leaders[0] if leaders else i
        passes = lower[j] > case.stay[i] and (buried[i] or not buried[j])
        chosen.append(j if passes else i)


def expected_list(case: Case, context: int) -> list[int]:
    rows = [row for row in case.rows(context) if not case.marks.excluded[row]]
    fixed = fixed_items(case, rows)
    free = by_rank(case, rows, fixed)
    size = len(free) + len(fixed)
    placed = [-1] * size
    for behind, row in enumerate(sorted(fixed, key=fixed.__getitem__, reverse=True)):
        placed[min(fixed[row], size - behind) - 1] = row
    heaviest = sorted(range(size), key=lambda place: -case.weights[place])
    for row, place in zip(free, [place for place in heaviest if placed[place] < 0], strict=True):
        placed[place] = row
    return placed


@pytest.mark.parametrize("anchored", [False, True], ids=["sorted", "anchored"])
def test_lists_are_those_of_brute_force(anchored: bool) -> None:
    """Every combination of rules: 63 × 12 contexts of up to 6 items and 4 positions, per way of ranking."""
    cases, changed = 0, 0
    for kinds in COMBINATIONS:
        case = make_case(kinds, anchored, seed=0)
        ruled, _ = case.ruled()
        for context in range(case.contexts):
            found = ruled.lists.row[ruled.lists.context == context].tolist()
            assert found == expected_list(case, context), (kinds, context)
            cases += 1
        changed += int(ruled.changed.sum())
    assert cases == 63 * CONTEXTS
    assert changed > cases / 4, "the rules had something to do"


@pytest.mark.parametrize("seed", range(20))
def test_no_allowed_list_has_a_higher_pessimistic_value(seed: int) -> None:
    """Sorted by lower bound, with groups of one column or a share of new items: every allowed list is tried."""
    kinds = [kind for kind in KINDS if kind != "bury"]
    kinds.remove(("at_most", "new")[seed % 2])
    case = make_case(kinds, anchored=False, seed=100 + seed)
    case.rules = Rules(**{**vars(case.rules), "at_most": dict([*case.rules.at_most.items()][:1])})
    ruled, _ = case.ruled()
    values = list_values(case.evidence, ruled.lists, case.scores.lower, case.length, case.contexts)
    name = "cm" if len(set(case.weights)) == 1 else "pbm"
    for context in range(case.contexts):
        rows = [row for row in case.rows(context) if not case.marks.excluded[row]]
        fixed = fixed_items(case, rows)
        sets = allowed_sets(case, rows, fixed)
        size = len(fixed) + max(len(s) for s in sets)
        if any(place > size for place in fixed.values()):
            continue
        best = 0.0
        for chosen in (s for s in sets if len(s) == size - len(fixed)):
            for order in permutations(sorted(chosen)):
                free = iter(order)
                at = {place: row for row, place in fixed.items()}
                listed = [at[place] if place in at else next(free) for place in range(1, size + 1)]
                lower = [float(case.scores.lower[row]) for row in listed]
                best = max(best, reference.VALUE[name](lower, case.weights[:size]))
        assert values[context] == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("anchored", [False, True], ids=["sorted", "anchored"])
def test_costs_of_the_kinds_add_up(anchored: bool) -> None:
    changed = dict.fromkeys(KINDS, 0)
    for seed in range(10):
        case = make_case(KINDS, anchored, seed)
        ruled, best = case.ruled()
        size = case.length, case.contexts
        before = list_values(case.evidence, best, case.scores.mean, *size)
        after = list_values(case.evidence, ruled.lists, case.scores.mean, *size)
        lost = sum(ruled.per_context[f"lost_{kind}"] for kind in case.rules.kinds)
        assert lost == pytest.approx(before - after, abs=1e-12)
        for kind in case.rules.kinds:
            changed[kind] += int(ruled.per_context[f"ruled_{kind}"].sum())
    assert min(changed.values()) > 0


@pytest.mark.parametrize("anchored", [False, True], ids=["sorted", "anchored"])
def test_under_several_models_the_best_worst_case_of_the_lists_that_rules_allow(anchored: bool) -> None:
    """Every combination of rules: the lists of two models and the incumbent list, each as brute force finds it."""
    deciding = set()
    for kinds in COMBINATIONS:
        one = make_case(kinds, anchored, seed=0)
        rng = np.random.default_rng(len(kinds))
        other = replace(one.scores, lower=rng.random(one.stay.size), mean=rng.random(one.stay.size))
        shown = in_shown_order(View(one.evidence, one.scores))
        cases = [
            one,
            replace(one, scores=other),
            replace(one, scores=shown.scores, stay=one.scores.lower, leads=np.zeros_like(one.leads)),
        ]
        views = [View(case.evidence, case.scores) for case in cases[:2]]
        candidates = [case.ruled()[0] for case in cases]
        incumbent = cases[2].ruled()[1]
        robust = robust_ruled(views, candidates, incumbent, one.length)
        size = one.length, one.contexts
        gains = np.array(
            [
                [list_values(view.evidence, ruled.lists, view.scores.lower, *size) for ruled in candidates]
                / list_values(view.evidence, incumbent, view.scores.mean, *size).clip(1e-300)
                for view in views
            ]
        ).min(axis=0)
        for context in range(one.contexts):
            found = robust.lists.row[robust.lists.context == context].tolist()
            expected = [expected_list(case, context) for case in cases]
            assert found in expected, (kinds, context)
            number = expected.index(found)
            assert gains[number, context] == pytest.approx(gains[:, context].max(), rel=1e-6)
            assert robust.changed[context] == candidates[number].changed[context]
            deciding |= {number} if expected.count(found) == 1 else set()
    assert deciding == {0, 1, 2}


# --- from Python ------------------------------------------------------------------------------------------------------

LISTS = [
    *[{"context": "shoes", "items": ["i1", "i2", "i3", "i4"], "clicks": [0, 1, 0, 0]}] * 90,
    *[{"context": "boots", "items": ["i1", "i5", "i3", "i4"], "clicks": [1, 1, 0, 0]}] * 90,
]
LOG = pa.Table.from_pylist(LISTS)
BRANDS = pa.table({"item": ["i1", "i2", "i3", "i4", "i5"], "brand": ["a", "a", "b", None, "b"]})


@pytest.mark.parametrize(
    ("rules", "shoes", "boots"),
    [
        ({}, ["i2", "i1", "i3", "i4"], ["i1", "i5", "i3", "i4"]),
        ({"pin": [{"item": "i4", "position": 1}]}, ["i4", "i2", "i1", "i3"], ["i4", "i1", "i5", "i3"]),
        ({"exclude": [{"item": "i2", "context": "shoes"}]}, ["i1", "i3", "i4"], ["i1", "i5", "i3", "i4"]),
        ({"at_most": {"brand": 1}, "item_groups": BRANDS}, ["i2", "i3", "i4"], ["i1", "i5", "i4"]),
        ({"bury": [{"item": "i1"}]}, ["i2", "i3", "i4", "i1"], ["i5", "i3", "i4", "i1"]),
        ({"keep_first": 1}, ["i1", "i2", "i3", "i4"], ["i1", "i5", "i3", "i4"]),
    ],
)
def test_rank_obeys_rules_and_names_them(rules: dict[str, Any], shoes: list[str], boots: list[str]) -> None:
    policy = prudent.rank(LOG, "cm", rules=rules)
    assert dict(policy) == {"shoes": shoes, "boots": boots}
    costs = policy.manifest.results["rules"]
    assert list(costs) == [kind for kind in KINDS if kind in rules]
    assert all(cost["changed"] > 0 for cost in costs.values())


def test_new_items_come_from_the_candidates() -> None:
    """At least half of a list of 4: two items that were never shown, and in boots there is only one."""
    candidates = pa.table(
        {"context": ["shoes"] * 6 + ["boots"] * 5, "item": [f"i{n}" for n in (1, 2, 3, 4, 8, 9, 1, 3, 4, 5, 8)]}
    )
    policy = prudent.rank(LOG, "cm", candidates=candidates, length=4, rules={"new": {"share": 0.5}})
    assert dict(policy) == {"boots": ["i1", "i5", "i3", "i8"], "shoes": ["i2", "i1", "i8", "i9"]}
    assert policy.manifest.results["rules"]["new"]["lacking"] == 1


def test_explain_names_the_rule() -> None:
    rules = {
        "pin": [{"item": "i4", "position": 2, "context": "shoes"}],
        "exclude": [{"item": "i3"}],
        "keep_first": 1,
        "at_most": {"brand": 2},
        "item_groups": BRANDS,
    }
    explanation = prudent.rank(LOG, "cm", rules=rules).explain("shoes")
    why = {one.item: one.why.partition(";")[0] for one in explanation.candidates}
    assert why["i1"] == "stays by rule, which keeps the incumbent's first item"
    assert why["i4"] == "by rule, pinned to 2"
    assert why["i3"] == "by rule, excluded"
    assert "rule" not in why["i2"]
    assert "By rule, a list has at most 2 items of one brand." in explanation.notes


def test_a_policy_with_rules_can_be_diffed_and_evaluated(tmp_path: Path) -> None:
    prudent.simulate(tmp_path / "log.parquet", lists=4000, contexts=8, seed=1)
    prudent.split(tmp_path / "log.parquet", tmp_path)
    train = tmp_path / "train.parquet"
    free = prudent.rank(train, to=tmp_path / "free.parquet")
    prudent.rank(train, rules={"keep_first": 3}, to=tmp_path / "ruled.parquet")
    ruled = prudent.Policy.read(tmp_path / "ruled.parquet")
    assert "rules.keep_first" in {setting.name for setting in prudent.diff(free, ruled).settings}
    assert prudent.evaluate(ruled, tmp_path / "holdout.parquet", estimator="dm")["dm"].known


def test_a_context_whose_candidates_are_all_excluded_has_no_list() -> None:
    everything = [{"item": f"i{n}", "context": "shoes"} for n in range(1, 5)]
    policy = prudent.rank(LOG, "cm", rules={"exclude": everything})
    assert list(policy) == ["boots"]
    summary = policy.manifest.results["summary"]
    assert (summary["contexts"], summary["without_candidates"]) == (1, 1)
    with pytest.raises(RulesError, match="exclude every candidate"):
        prudent.rank(LOG, "cm", rules={"exclude": [{"item": f"i{n}"} for n in range(1, 6)]})


def test_groups_are_read_beside_the_rules(tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("item,brand\ni1,a\ni2,a\ni3,b\ni4,\ni5,b\n")
    (tmp_path / "rules.json").write_text(json.dumps({"at_most": {"brand": 1}, "item_groups": "items.csv"}))
    table = prudent.rank(LOG, "cm", rules={"at_most": {"brand": 1}, "item_groups": BRANDS})
    assert prudent.rank(LOG, "cm", rules=tmp_path / "rules.json") == table


def test_integers_are_names_of_integers() -> None:
    log = pa.table({"context": [7] * 50, "items": [[1, 2, 3]] * 50, "clicks": [[0, 1, 0]] * 50})
    assert prudent.rank(log, "cm", rules={"pin": [{"item": 3, "position": 1, "context": 7}]})[7] == [3, 2, 1]
    with pytest.raises(RulesError, match="the log's items are integers"):
        prudent.rank(log, "cm", rules={"exclude": [{"item": "3"}]})


PIN, TWO = {"item": "a", "position": 1}, {"item": "b", "position": 2}


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"pin": [PIN, {**PIN, "position": 2}]}, "'a' is pinned to 1 and to 2"),
        ({"pin": [PIN, {**PIN, "position": 2, "context": "x"}]}, "pinned to 1 and, in 'x', to 2"),
        ({"pin": [PIN, {"item": "b", "position": 1}]}, "2 items are pinned to position 1"),
        ({"pin": [PIN, {"item": "b", "position": 1, "context": "x"}]}, "2 items are pinned to position 1 in 'x'"),
        ({"pin": [PIN], "exclude": [{"item": "a", "context": "x"}]}, "'a' is named by exclude and by pin"),
        ({"pin": [{**PIN, "context": "x"}], "exclude": [{"item": "a"}]}, "'a' in 'x' is named by exclude and by pin"),
        ({"pin": [PIN], "bury": [{"item": "a"}]}, "'a' is named by bury and by pin"),
        ({"exclude": [{"item": "a"}], "bury": [{"item": "a"}]}, "named by exclude and by bury"),
        ({"pin": [PIN], "keep_first": 2}, "keep_first keeps 2 positions, and an item is pinned to 1"),
        ({"at_most": {"brand": 1}}, "at_most needs item_groups"),
        (
            {"at_most": {"a": 1, "b": 1}, "new": {"share": 0.1}, "item_groups": "x.csv"},
            "at_most of one column, not of 2",
        ),
        ({"at_most": {"brand": 0}, "item_groups": "x.csv"}, "at least 1"),
        ({"new": {"share": 2}}, "from 0 to 1"),
        ({"keep_first": True}, "whole number"),
        ({"pins": []}, "no rule 'pins'. Did you mean 'pin'?"),
        ({"pin": ["a"]}, "Write "),
        ({"exclude": [{"item": None}]}, "is no rule to exclude"),
        ({"bury": "a"}, "must be a list"),
        ([], "an object is needed"),
        ({"exclude": 0}, "exclude is 0; it must be a list"),
        ({"at_most": []}, r"at_most is \[\]"),
        ({"new": False}, "new is False"),
        ({"new": {"share": 10**400}}, "it must be a number from 0 to 1"),
        ({"pin": [{**PIN, "position": 10**30}]}, "at least 1 and at most 2,147,483,647"),
        ({"exclude": [{"item": "x" * 10**6, "why": 1}]}, "^.{0,400}$"),
        ({"at_most": {"brand": 1}, "item_groups": ""}, "item_groups is empty"),
        ({"at_most": {"brand": 1}, "item_groups": ["*.csv"]}, "it must be the path of a table"),
    ],
)
def test_contradictions_are_named(rules: Any, message: str, tmp_path: Path) -> None:
    file = tmp_path / "rules.json"
    file.write_text(json.dumps(rules))
    with pytest.raises(RulesError, match=message.replace("?", r"\?").replace("(", r"\(")):
        read_rules(file)


def test_groups_are_a_file_and_no_pattern(tmp_path: Path) -> None:
    """``/**/*.csv`` in a stranger's rules walked the disk."""
    (tmp_path / "groups.csv").write_text("item,brand\ni1,x\n")
    with pytest.raises(RulesError, match=r"there is no file .*\*\*/\*.csv"):
        prudent.rank(LOG, "cm", rules={"at_most": {"brand": 1}, "item_groups": f"{tmp_path}/**/*.csv"})


def test_half_a_character_is_no_name() -> None:
    with pytest.raises(RulesError, match="half a character"):
        read_rules({"exclude": [{"item": "\ud83d"}]})


def test_many_pins_are_checked_in_one_pass() -> None:
    """Of 20,000 contexts with a pin each, every context looked at every pin."""
    pins = [{"item": f"z{i}", "context": f"c{i}", "position": 1} for i in range(20_000)]
    rules = {"pin": pins, "at_most": {"brand": 1}, "item_groups": BRANDS}
    started = time.process_time()
    prudent.rank(LOG, "cm", rules=rules)
    assert time.process_time() - started < 5  # it took a minute


def test_pins_of_one_group_are_a_contradiction() -> None:
    pins = [{"item": "i1", "position": 1}, {"item": "i2", "position": 2, "context": "shoes"}]
    with pytest.raises(RulesError, match="2 items of one brand are pinned in 'shoes', and a list has at most 1"):
        prudent.rank(LOG, "cm", rules={"pin": pins, "at_most": {"brand": 1}, "item_groups": BRANDS})


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"pin": [{"item": "i1", "position": 5}]}, "pinned to position 5, but lists have 4 items"),
        ({"keep_first": 5}, "keep_first is 5, but lists have 4 items"),
        (
            {"at_most": {"brand": 1}, "item_groups": pa.table({"item": ["a", "a"], "brand": ["x", "y"]})},
            "one row per item",
        ),
    ],
)
def test_rules_that_do_not_fit_the_log_are_named(rules: dict[str, Any], message: str) -> None:
    with pytest.raises(RulesError, match=message):
        prudent.rank(LOG, "cm", rules=rules)


def test_a_table_of_groups_needs_its_columns() -> None:
    with pytest.raises(LogError, match="no column 'brand'"):
        prudent.rank(LOG, "cm", rules={"at_most": {"brand": 1}, "item_groups": pa.table({"item": ["i1"]})})


@pytest.mark.parametrize(
    "content", ["{", "\xff", "[" * 100_000, '{"pin": [], "pin": []}', r'{"exclude": [{"item": "\ud83d"}]}', "[NaN]"]
)
def test_a_file_that_is_no_json_is_named(content: str, tmp_path: Path) -> None:
    (tmp_path / "rules.json").write_text(content, encoding="latin-1")
    with pytest.raises(RulesError, match="is not JSON"):
        read_rules(tmp_path / "rules.json")
    with pytest.raises(RulesError, match="Cannot read the rules"):
        read_rules(tmp_path / "nowhere.json")


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    """A named pipe never ends, and `/dev/zero` filled the memory."""
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "large.json").write_bytes(b" " * ((16 << 20) + 1))
    for file, what in ((tmp_path / "pipe.json", "not a regular file"), (Path("/dev/zero"), "not a regular file")):
        with pytest.raises(RulesError, match=what):
            read_rules(file)
    with pytest.raises(RulesError, match="16,777,217 bytes, and may have 16,777,216"):
        read_rules(tmp_path / "large.json")
