"""Checks made for one claim each; `prudent.research.checks` has those that several claims share."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from math import isnan, nan

import numpy as np

from prudent.base.arrays import FloatArray
from prudent.base.numerics.paired import paired_difference, standard_error, two_sigma
from prudent.research.checks import LCBS, LEVEL, LINEAR, SIMILAR, Cell, Check, number_of_queries
from prudent.research.comparing import MOST_DELTAS, Panel, Table, Word, between, compare, judge, show
from prudent.research.paper import grid_label
from prudent.research.table import paired_ratio


def _baselines_keep_up(table: Table) -> Iterator[Cell]:
    for panel in table.panels:
        methods = [method for method in LINEAR if panel.has(method)]
        bounds = [method for method in LCBS if panel.has(method)]
        if panel.model == "pbm" and methods and bounds:
            ratio = paired_ratio(panel.best(*methods), panel.best(*bounds))
            yield Cell((panel.logging,), between(ratio, len(panel.best(*methods)), 0, SIMILAR), show(ratio))


baselines_keep_up = Check(
    f"Holds if the best linear baseline, at its best clip, has at most {SIMILAR:g} times the error of the best bound "
    "at its best δ, by two standard errors; fails if it has more, by as much. Numbers: that ratio.",
    _baselines_keep_up,
)


def _gain_mostly_at_one(table: Table) -> Iterator[Cell]:
    for panel in table.panels:
        if not panel.has("eb", "bayes") or 1.0 not in panel.deltas("eb"):
            continue
        gains = {delta: panel.at("bayes", delta) - panel.at("eb", delta) for delta in panel.deltas("eb")}
        best = max(gains, key=lambda delta: float(gains[delta].mean()))
        order = compare(panel.at("eb", 1.0), panel.at("bayes", 1.0))
        behind, error = paired_difference(gains[best], gains[1.0])
        word: Word = "unclear" if order == "unclear" else "fails"
        if order == "lower":
            word = "holds" if best == 1.0 or behind <= two_sigma(len(gains[best])) * error else "fails"
        ratio = paired_ratio(panel.at("eb", 1.0), panel.at("bayes", 1.0))
        yield Cell((panel.logging, panel.model), word, f"{show(ratio)}, largest at δ = {best:g}")


gain_mostly_at_one = Check(
    "Holds if at δ = 1 the error of eb is lower than that of bayes, and no other δ has a larger gain by two standard "
    "errors; fails otherwise. Numbers: eb's error as a share of bayes' at δ = 1, and the δ with the largest gain.",
    _gain_mostly_at_one,
)


def _comparable(table: Table) -> Iterator[Cell]:
    for logging in dict.fromkeys(panel.logging for panel in table.panels):
        panels = [panel for panel in table.panels if panel.logging == logging]
        for panel in panels[1:]:
            for method in LCBS:
                if panels[0].has(method, "mle") and panel.has(method, "mle"):
                    few, many = (_over_all_delta(one, method) for one in (panels[0], panel))
                    change = many[0] - few[0], float(np.hypot(many[1], few[1]))
                    word = between(change, len(panel.best("mle")), -np.inf, 0.15)
                    measured = f"{few[0]:.2f} → {show(many)}"
                    yield Cell((logging, number_of_queries(panel), method), word, measured)


def _over_all_delta(panel: Panel, method: str) -> tuple[float, float]:
    errors = np.mean([panel.at(method, delta) for delta in panel.deltas(method)], axis=0)
    return paired_ratio(errors, panel.best("mle"))


comparable = Check(
    "Holds if the error as a share of the MLE's, averaged over δ, is at most 0.15 above that with the ten most "
    "frequent queries, by two standard errors; fails if it is further above, by as much. Numbers: that share with "
    "ten, and with more.",
    _comparable,
)


def _chosen_delta(table: Table) -> Iterator[Cell]:
    for model, by_method in table.facts.get("past", {}).items():
        if LEVEL in by_method.get("bayes", {}).get("deltas", []):
            past = by_method["bayes"]
            above, se = (past[name][past["deltas"].index(LEVEL)] for name in ("above", "se"))
            best = past["deltas"][past["above"].index(0)]
            word: Word = (
                "holds" if best == LEVEL else "fails" if above > two_sigma(past["repetitions"]) * se else "unclear"
            )
            yield Cell((model,), word, f"δ = {best:g}")


chosen_delta = Check(
    f"Holds if {LEVEL:g} is the δ at which bayes had the lowest mean error on the past; fails if its error is above "
    "the lowest by two paired standard errors. Numbers: the δ of the lowest.",
    _chosen_delta,
)


def _gains(table: Table) -> Iterator[tuple[str, dict[int, FloatArray]]]:
    """Of each model and n: how far the error of bayes, at the δ of the past, is below the MLE's."""
    for model, pairs in _mle_and_bayes(table):
        yield model, {n: mle - bayes for n, (mle, bayes) in pairs.items()}


def _mle_and_bayes(table: Table) -> Iterator[tuple[str, dict[int, tuple[FloatArray, FloatArray]]]]:
    """The errors behind these, of the MLE and of bayes."""
    for model, chosen in table.facts.get("delta", {}).items():
        panels = [panel for panel in table.panels if panel.model == model and panel.has("mle", "bayes")]
        if "bayes" in chosen and panels:
            yield model, {panel.n: (panel.at("mle", None), panel.at("bayes", chosen["bayes"])) for panel in panels}


def _beats_mle_later(table: Table) -> Iterator[Cell]:
    for model, pairs in _mle_and_bayes(table):
        orders = [compare(bayes, mle) for mle, bayes in pairs.values()]
        yield Cell((model,), judge(orders, MOST_DELTAS), f"{orders.count('lower')}/{len(orders)}", "n")


beats_mle_later = Check(
    "Holds if bayes, at the δ chosen on the past, has a lower error than the MLE on later data for more than half "
    "of the sample sizes n; fails if it has the same or a higher one for half or more. Numbers: for how many n it "
    "is lower.",
    _beats_mle_later,
)


def _peak(gains: Mapping[int, FloatArray]) -> int:
    return max(gains, key=lambda n: float(gains[n].mean()))


def _beyond(more: FloatArray, less: FloatArray) -> float:
    """How far one mean is above another, of other logs, in standard errors of the difference; above 2 it is clear."""
    spread = float(np.hypot(standard_error(more), standard_error(less))) * two_sigma(min(len(more), len(less))) / 2
    distance = float(more.mean() - less.mean())
    return distance / spread if spread > 0 else nan if isnan(spread) else np.inf * distance if distance else 0.0


def _largest_at(table: Table) -> Iterator[Cell]:
    for model, gains in _gains(table):
        peak, claimed = _peak(gains), 100_000
        if claimed in gains:
            others = [gain for n, gain in gains.items() if n != claimed]
            ahead = min((_beyond(gains[claimed], gain) for gain in others), default=0.0)
            behind = _beyond(gains[peak], gains[claimed])
            word: Word = "holds" if ahead > 2 else "fails" if behind > 2 else "unclear"
            yield Cell((model,), word, _gain(peak, gains) + f", {_gain(claimed, gains)}")


def _gain(n: int, gains: Mapping[int, FloatArray]) -> str:
    return f"{gains[n].mean():.4f}±{standard_error(gains[n]):.4f} at n = {n:,}"


largest_at = Check(
    "Holds if the gain of bayes over the MLE is larger at n = 100,000 than at any other n, by two standard errors; "
    "fails if it is larger elsewhere by as much. Numbers: MLE's error minus that of bayes, where it is largest, and at "
    "100,000.",
    _largest_at,
)


def _sweet_spot(table: Table) -> Iterator[Cell]:
    for model, gains in _gains(table):
        peak, ends = _peak(gains), (min(gains), max(gains))
        # Against the ends, or against what is between where one of them is the peak.
        others = [n for n in gains if (n in ends) != (peak in ends)]
        word: Word = "unclear"
        if others and all(_beyond(gains[peak], gains[n]) > 2 for n in others):
            word = "fails" if peak in ends else "holds"
        if not gains[peak].mean() > 0:
            word = "fails"
        yield Cell((model,), word, ", ".join(_gain(n, gains) for n in (ends[0], peak, ends[1])))


sweet_spot = Check(
    "Holds if the gain of bayes over the MLE is largest between the smallest and the largest n, and larger than "
    "at both by two standard errors; fails if it is larger at one of them than anywhere between, by as much, or "
    "nowhere above zero. Numbers: MLE's error minus that of bayes at the smallest n, where it is largest, and at the "
    "largest n.",
    _sweet_spot,
)


def _spread(panel: Panel, method: str) -> FloatArray:
    """The error at the worst δ minus that at the best, repetition by repetition."""
    by_delta = sorted(panel.deltas(method), key=lambda delta: float(panel.at(method, delta).mean()))
    return panel.at(method, by_delta[-1]) - panel.at(method, by_delta[0])


def _more_robust(table: Table) -> Iterator[Cell]:
    for panel in table.panels:
        grids = [m for m in (1, 2, 5, 10) if panel.has(grid_label(m))]
        if grids[:1] != [1] or grids[-1] != 10:
            continue
        spreads = [_spread(panel, grid_label(m)) for m in grids]
        whole = compare(spreads[-1], spreads[0])
        rises = any(compare(b, a) == "higher" for a, b in pairwise(spreads))
        word: Word = "unclear" if whole == "unclear" else "fails"
        if whole == "lower":
            word = "depends" if rises else "holds"
        measured = " → ".join(f"{spread.mean():.4f}±{standard_error(spread):.4f}" for spread in spreads)
        yield Cell((panel.logging,), word, measured, "the grid")


more_robust = Check(
    "Spread is the error at the worst δ minus that at the best. Holds if it is lower with the 10 × 10 grid than with "
    "1 × 1, and no step between them makes it higher; depends on the grid if a step does; fails if it is not lower. "
    "Numbers: the spread with grids of 1, 2, 5 and 10 values.",
    _more_robust,
)


def _same_beyond_ten(table: Table) -> Iterator[Cell]:
    for logging, priors in table.facts.get("priors", {}).items():
        ten, twenty = priors.get(grid_label(10), {}), priors.get(grid_label(20), {})
        logs = sum(ten.values())
        if logs and twenty:
            same = sum(min(times, twenty.get(prior, 0)) for prior, times in ten.items())
            word: Word = "holds" if same == logs else "fails" if 2 * same < logs else "depends"
            yield Cell((logging,), word, f"{same} of {logs}", "the log")


same_beyond_ten = Check(
    "Holds if grids of 10 and of 20 values find the same priors in all the logs that were looked at; fails if in fewer "
    "than half. Numbers: in how many.",
    _same_beyond_ten,
)


def _prior_found(table: Table) -> Iterator[Cell]:
    for logging, by_grid in table.facts.get("priors", {}).items():
        priors: dict[str, int] = by_grid.get(grid_label(10), {})
        logs, hits = sum(priors.values()), priors.get("Beta(1, 8)", 0)
        if logs:
            word: Word = "holds" if 2 * hits > logs else "fails" if 10 * hits < logs else "depends"
            mostly, times = next(iter(priors.items()))
            yield Cell((logging,), word, f"{hits} of {logs}, mostly {mostly} ({times})", "the log")


prior_found = Check(
    "Holds if the 10 × 10 grid leads to Beta(1, 8) in more than half of the logs; fails if in fewer than a tenth. The "
    "synthetic attractions are drawn from Beta(1, 8), so with uniform lists it only shows that the search works. "
    "Numbers: in how many logs, and what was found most often.",
    _prior_found,
)


def _better_logging(table: Table) -> Iterator[Cell]:
    panels = {(panel.logging, panel.model): panel for panel in table.panels if panel.has(*LCBS)}
    for logging, model in panels:
        if logging == "quality 2" and ("quality 0", model) in panels:
            for method in LCBS:
                good, blind = (panels[name, model] for name in ("quality 2", "quality 0"))
                errors = [panel.at(method, panel.near(method, LEVEL)) for panel in (good, blind)]
                beyond = _beyond(errors[1], errors[0])
                word: Word = "holds" if beyond > 2 else "fails" if beyond < -2 else "unclear"
                measured = " against ".join(f"{e.mean():.4f}±{standard_error(e):.4f}" for e in errors)
                yield Cell((model, method), word, measured)


better_logging = Check(
    f"Holds if the error at δ = {LEVEL:g} is lower with a good production ranker (quality 2) than with one that "
    "ignores attraction (quality 0), by two standard errors; fails if it is higher. Numbers: both errors.",
    _better_logging,
)
