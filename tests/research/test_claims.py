"""Verdicts are computed, so they are tried on tables whose verdict is known."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from prudent.base.arrays import FloatArray
from prudent.research import checks, claim_checks, comparing, paper
from prudent.research.bench import Bench
from prudent.research.checks import BASELINES, LCBS, Cell
from prudent.research.claims import CLAIMS, Claim
from prudent.research.comparing import MOST_DELTAS, Table, make_table
from prudent.research.data import LabelSet, synthetic_log
from prudent.research.laboratory import Laboratory
from prudent.research.protocol import DELTAS
from prudent.research.reproduce import CATALOGUE, write_outcome
from prudent.research.table import Arm, read_repetitions
from prudent.research.verdicts import Verdict, folders_in, sum_up, try_claim, try_claims
from tests.command import run

REPETITIONS = 50
METHODS = ("mle", *LCBS, "exposure", *BASELINES)


def errors(mean: float, seed: int = 0, spread: float = 0.01) -> FloatArray:
    return np.asarray(mean * (1 + spread * np.random.default_rng(seed).standard_normal(REPETITIONS)))


def table(
    of: Mapping[str, float],
    loggings: Sequence[str] = ("production",),
    models: Sequence[str] = ("cm",),
    deltas: Sequence[float] = DELTAS,
    spread: float = 0.01,
    facts: Mapping[str, Any] | None = None,
    **where: Any,
) -> Table:
    """Methods whose mean errors are given, the same at every δ."""
    arms = {}
    for logging in loggings:
        for model in models:
            for number, (method, mean) in enumerate(of.items()):
                for delta in (None,) if method in ("mle", "pi") else deltas:
                    arm = Arm(where.get("data", "data"), logging, model, method, delta, where.get("n", 1_000))
                    arms[arm] = errors(mean, number, spread)
    return make_table(arms, facts)


def verdict(check: checks.Check, *tables: Table) -> str:
    panels = [panel for one in tables for panel in one.panels]
    return sum_up(check.cells(Table(panels, tables[0].facts)))


BEST = {"mle": 1.0, "bayes": 0.6, "eb": 0.5, "hoeffding": 0.7, "exposure": 0.4, "ips": 3.0, "ip-ips": 2.0, "pi": 2.5}
WORST = {**BEST, "bayes": 1.6, "eb": 1.5, "hoeffding": 1.7}


# --- verdicts --------------------------------------------------------------------------------------------------------


def test_lower_everywhere_holds_and_higher_everywhere_fails() -> None:
    check = checks.lower_than(("mle",), comparing.ALMOST_ANY_DELTA)
    assert verdict(check, table(BEST)) == "holds"
    assert verdict(check, table(WORST)) == "fails"


def test_what_is_the_same_is_not_lower() -> None:
    same = table({**BEST, "bayes": 1.0, "eb": 1.0, "hoeffding": 1.0})
    assert verdict(checks.lower_than(("mle",), comparing.ALMOST_ANY_DELTA), same) == "fails"


def test_logging_that_makes_the_difference_is_named() -> None:
    both = table(BEST), table(WORST, loggings=["uniform"])
    assert verdict(checks.lower_than(("mle",), MOST_DELTAS), *both) == "depends: production holds; uniform fails"


def test_bound_that_makes_the_difference_is_named() -> None:
    mixed = table({**BEST, "hoeffding": 1.7}, loggings=["production", "uniform"], models=["cm", "pbm"])
    assert verdict(checks.lower_than(("mle",), MOST_DELTAS), mixed) == "depends: bayes, eb holds; hoeffding fails"


def test_lower_for_some_of_all_delta_depends_on_delta() -> None:
    few, many = table(BEST, deltas=DELTAS[:10]), table(WORST, deltas=DELTAS[10:])
    panel = comparing.Panel("data", "production", "cm", 1_000, {**few.panels[0].errors, **many.panels[0].errors})
    check = checks.lower_than(("mle",), comparing.ALMOST_ANY_DELTA)
    assert sum_up(check.cells(Table([panel]))) == "depends on δ"
    assert sum_up(checks.lower_than(("mle",), MOST_DELTAS).cells(Table([panel]))) == "holds"


def test_too_few_repetitions_leave_it_unclear() -> None:
    noisy = table({**BEST, "bayes": 0.9, "eb": 0.9, "hoeffding": 0.9}, spread=3.0)
    assert verdict(checks.lower_than(("mle",), comparing.ALMOST_ANY_DELTA), noisy) == "unclear"


def test_one_repetition_tells_nothing() -> None:
    once = make_table({Arm("data", "production", "cm", m, None, 1_000): np.array([e]) for m, e in BEST.items()})
    assert sum_up(checks.lower_than(("mle",), MOST_DELTAS).cells(once)) == "unclear"


def test_many_conditions_are_counted() -> None:
    words = ["holds", "fails", "depends", "unclear"] * 5
    cells = [Cell((f"logging {i % 3}", f"model {i % 7}", f"bound {i}"), w, "") for i, w in enumerate(words)]  # type: ignore[arg-type]
    assert sum_up(cells).startswith("depends: logging 0 holds 2, fails 1, depends 2, unclear 2 of 7; logging 1")


def test_unclear_cells_do_not_make_a_claim_depend_on_anything() -> None:
    assert sum_up([Cell(("cm",), "holds", ""), Cell(("pbm",), "unclear", "")]) == "unclear: cm holds; pbm unclear"


@pytest.mark.parametrize(
    ("lower", "unclear", "share", "word"),
    [
        (14, 0, comparing.ALMOST_ANY_DELTA, "holds"),
        (13, 0, comparing.ALMOST_ANY_DELTA, "depends"),
        (13, 1, comparing.ALMOST_ANY_DELTA, "unclear"),
        (8, 0, comparing.ALMOST_ANY_DELTA, "depends"),
        (7, 0, comparing.ALMOST_ANY_DELTA, "fails"),
        (9, 0, MOST_DELTAS, "holds"),
        (8, 0, MOST_DELTAS, "fails"),
        (8, 1, MOST_DELTAS, "unclear"),
        (0, 16, MOST_DELTAS, "unclear"),
    ],
)
def test_how_many_delta_it_takes(lower: int, unclear: int, share: float, word: str) -> None:
    orders: list[comparing.Order] = ["lower"] * lower + ["unclear"] * unclear + ["higher"] * (16 - lower - unclear)  # type: ignore[assignment]
    assert comparing.judge(orders, share) == word


@pytest.mark.parametrize(("ratio", "word"), [(0.7, "holds"), (0.9, "fails"), (0.8, "unclear")])
def test_a_ratio_is_within_limits_by_two_standard_errors(ratio: float, word: str) -> None:
    assert comparing.between((ratio, 0.02), 500, 0, 0.8) == word


# --- checks of one claim ---------------------------------------------------------------------------------------------


def test_baselines_keep_up_in_pbm_only_if_their_best_is_near_the_best_bound() -> None:
    assert verdict(claim_checks.baselines_keep_up, table(BEST, models=["pbm"])) == "fails"
    assert verdict(claim_checks.baselines_keep_up, table({**BEST, "pi": 0.52}, models=["pbm"])) == "holds"
    assert not claim_checks.baselines_keep_up.cells(table(BEST, models=["cm"]))


def test_gain_of_the_fitted_prior_is_largest_at_one() -> None:
    low, one = table({**BEST, "eb": 0.59}, deltas=[0.5]), table({**BEST, "eb": 0.2}, deltas=[1.0])
    panel = comparing.Panel("data", "production", "cm", 1_000, {**low.panels[0].errors, **one.panels[0].errors})
    assert sum_up(claim_checks.gain_mostly_at_one.cells(Table([panel]))) == "holds"
    assert verdict(claim_checks.gain_mostly_at_one, table(WORST | {"eb": 1.7})) == "fails"


def test_gains_with_more_queries_are_comparable() -> None:
    ten = table(BEST, data="Yandex, 10 most frequent queries")
    assert verdict(claim_checks.comparable, ten, table(BEST, data="Yandex, 20 most frequent queries")) == "holds"
    assert verdict(claim_checks.comparable, ten, table(WORST, data="Yandex, 20 most frequent queries")) == "fails"


def by_size(gains: Mapping[int, float]) -> Table:
    facts = {"delta": {"cm": {"bayes": 0.2}}}
    tables = [
        table({"mle": 1.0, "bayes": 1.0 - gain}, deltas=[0.2], n=n, facts=facts, spread=0.001)
        for n, gain in gains.items()
    ]
    return Table([panel for one in tables for panel in one.panels], facts)


def test_sweet_spot_is_in_between_and_at_100_000() -> None:
    sweet = by_size({50: 0.1, 100_000: 0.5, 500_000: 0.1})
    for check in (claim_checks.sweet_spot, claim_checks.largest_at, claim_checks.beats_mle_later):
        assert verdict(check, sweet) == "holds"
    rising = by_size({50: 0.1, 100_000: 0.3, 500_000: 0.5})
    assert verdict(claim_checks.sweet_spot, rising) == verdict(claim_checks.largest_at, rising) == "fails"
    assert verdict(claim_checks.beats_mle_later, by_size({50: -0.1, 100_000: -0.2})) == "fails"


@pytest.mark.parametrize(
    ("above", "expected"), [([0.1, 0.0], "holds"), ([0.0, 0.1], "fails"), ([0.0, 0.01], "unclear")]
)
def test_a_delta_of_the_past_was_chosen_clearly_or_not(above: list[float], expected: str) -> None:
    past = {"deltas": [0.1, 0.2], "above": above, "se": [0.01, 0.01], "repetitions": 100}
    assert verdict(claim_checks.chosen_delta, Table([], {"past": {"cm": {"bayes": past}}})) == expected


def test_no_gain_is_no_better_than_the_mle() -> None:
    assert verdict(claim_checks.beats_mle_later, by_size({50: 0.0, 100_000: 0.0})) == "fails"


def test_an_error_far_below_a_limit_is_below_it() -> None:
    assert comparing.between((0.02, 0.015), 100, 0, 0.55) == "holds"


def grids(spreads: Mapping[int, float], priors: Mapping[str, int]) -> Table:
    parts = {}
    for m, spread in spreads.items():
        for delta, mean in ((0.1, 1.0), (1.0, 1.0 + spread)):
            parts[Arm("data", "production", "dcm", f"eb, {m} × {m} grid", delta, 1_000)] = errors(mean, m % 20, 0.001)
    return make_table(parts, {"priors": {"production": {"eb, 10 × 10 grid": priors}}})


def test_larger_grids_make_it_robust_until_ten() -> None:
    good = grids({1: 2.0, 2: 1.0, 5: 0.5, 10: 0.2}, {"Beta(1, 8)": 15, "Beta(1, 4)": 5})
    assert verdict(claim_checks.more_robust, good) == verdict(claim_checks.prior_found, good) == "holds"
    uneven = grids({1: 2.0, 2: 1.0, 5: 1.5, 10: 0.2}, {"Beta(2, 4)": 15, "Beta(1, 8)": 5})
    assert verdict(claim_checks.more_robust, uneven) == "depends on the grid"
    assert verdict(claim_checks.prior_found, uneven) == "depends on the log"
    none = grids({1: 0.2, 2: 0.2, 5: 0.2, 10: 2.0}, {"Beta(2, 4)": 20})
    assert verdict(claim_checks.more_robust, none) == verdict(claim_checks.prior_found, none) == "fails"


def test_beyond_ten_means_the_same_priors() -> None:
    def beyond(ten: dict[str, int], twenty: dict[str, int]) -> str:
        priors = {"eb, 10 × 10 grid": ten, "eb, 20 × 20 grid": twenty}
        return verdict(claim_checks.same_beyond_ten, Table([], {"priors": {"production": priors}}))

    assert beyond({"Beta(1, 8)": 12, "Beta(1, 4)": 8}, {"Beta(1, 4)": 8, "Beta(1, 8)": 12}) == "holds"
    assert beyond({"Beta(1, 8)": 12, "Beta(1, 4)": 8}, {"Beta(1, 8)": 20}) == "depends on the log"
    assert beyond({"Beta(512, 512)": 20}, {"Beta(1024, 1024)": 20}) == "fails"


def test_better_logging_errs_less() -> None:
    blind = table(WORST, loggings=["quality 0"])
    assert verdict(claim_checks.better_logging, table(BEST, loggings=["quality 2"]), blind) == "holds"


def test_opposed_logging_does_harm() -> None:
    opposed = table(WORST, loggings=["quality -2"])
    check = checks.higher_than_mle(LCBS, ("quality -2",))
    assert verdict(check, opposed) == "holds"
    assert verdict(check, table(BEST, loggings=["quality -2"])) == "fails"


# --- on files --------------------------------------------------------------------------------------------------------


def test_every_claim_names_known_experiments_and_has_a_check_or_a_reason() -> None:
    assert {name for claim in CLAIMS for name in claim.experiments} <= set(CATALOGUE)
    assert all(bool(claim.check) == bool(claim.experiments) == (not claim.why_not) for claim in CLAIMS)
    assert len({claim.sentence for claim in CLAIMS}) == len(CLAIMS)


def test_without_tables_nothing_is_tried_and_every_claim_says_what_to_run(tmp_path: Path) -> None:
    verdicts = try_claims([tmp_path])
    assert len(verdicts) == len(CLAIMS)
    assert all(one.word == "not tried" for one in verdicts)
    assert verdicts[0].verdict == f"not tried: run prudent reproduce top-queries -o {tmp_path}"


def test_a_table_without_the_methods_is_not_enough() -> None:
    claim = Claim("", "", ("top-queries",), checks.lower_than(("mle",), MOST_DELTAS))
    alone = try_claim(claim, "top-queries", table({"mle": 1.0}))
    assert alone.verdict == "not tried: the table does not have what it takes"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every experiment, on a small log and a few labels, without figures."""
    folder = tmp_path_factory.mktemp("results")
    random = np.random.default_rng(0)
    labels = LabelSet("labels", random.integers(0, 5, 200), np.full(10, 20))
    bench = Bench(Laboratory(), synthetic_log(0), labels, repetitions=2, deltas=(0.2, 1.0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paper, "SIZES", (50, 100_000))
        patch.setattr(paper, "QUALITIES", (-2.0, 0.0, 2.0))
        for name, experiment in CATALOGUE.items():
            if name not in NOT_OF_THE_PAPER:
                write_outcome(replace(experiment.run(bench), chart=None), folder / name, {})
    return folder


NOT_OF_THE_PAPER = set(CATALOGUE) - {name for claim in CLAIMS for name in claim.experiments}


@pytest.mark.slow
def test_every_check_runs_on_real_results(results: Path) -> None:
    verdicts = try_claims([results])
    assert {one.claim for one in verdicts if one.word == "not tried"} == {c.sentence for c in CLAIMS if not c.check}
    assert {one.experiment for one in verdicts if one.measured and one.data} == set(CATALOGUE) - NOT_OF_THE_PAPER


@pytest.mark.slow
def test_repetitions_are_read_as_they_were_written(results: Path) -> None:
    means = {arm: float(of.mean()) for arm, of in read_repetitions(results / "top-query.repetitions.parquet").items()}
    table = duckdb.read_parquet(str(results / "top-query.parquet"))
    rows = table.select("data, logging, model, method, delta, n, error").fetchall()
    assert means == pytest.approx({Arm(*row[:-1]): row[-1] for row in rows})


@pytest.mark.slow
def test_command_prints_and_writes_what_was_tried(results: Path) -> None:
    done = run("reproduce", "claims", "-o", results)
    assert done.code == 0
    assert "not tried" in done.text
    assert max(map(len, done.out.splitlines()[:40])) <= 80
    with (results / "claims.csv").open(newline="", encoding="utf-8") as file:
        rows = [Verdict(**row) for row in csv.DictReader(file)]
    assert rows == try_claims([results])
    columns = duckdb.read_parquet(str(results / "claims.parquet")).columns
    assert columns == ["claim", "where", "data", "experiment", "measured", "verdict"]
    assert all(claim.sentence in (results / "claims.md").read_text(encoding="utf-8") for claim in CLAIMS)


@pytest.mark.slow
def test_folders_inside_are_looked_at(results: Path) -> None:
    assert results in folders_in(results.parent)
    assert try_claims(folders_in(results.parent)) != try_claims([results.parent])


def test_list_names_the_claims() -> None:
    assert "claims" in run("reproduce", "list").text
