"""What docs/daily.md says about half-lives and bounds is what docs/half_life.py measures."""

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

DOCS = Path(__file__).parents[2] / "docs"
SCRIPT = runpy.run_path(str(DOCS / "half_life.py"))

# A share of 10,000 pairs has a standard error of at most 0.005, and a fraction of it where it is near 0 or 1.
TOLERANCE = 0.015

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def measured() -> dict[tuple[str, str], tuple[Any, Any]]:
    """What θ does, and the name of a bound -> with all days alike, and with a half-life."""
    return {(theta, bound.partition("(")[0]): (full, decayed) for theta, bound, _, full, decayed in SCRIPT["rows"]()}


def test_the_page_has_the_table(measured: dict[tuple[str, str], tuple[Any, Any]]) -> None:
    """If this fails: `python docs/half_life.py`. Another version of NumPy or SciPy may move the last digit."""
    lines = [
        line.split("|")[1:-1] for line in (DOCS / "daily.md").read_text(encoding="utf-8").splitlines() if "| `" in line
    ]
    table = {(row[0].strip(), row[1].strip(" `").partition("(")[0]): [float(cell) for cell in row[3:]] for row in lines}
    assert table.keys() == measured.keys()
    for key, (full, decayed) in measured.items():
        actual = [number for pair in zip(full, decayed, strict=True) for number in pair]
        assert table[key] == pytest.approx(actual, abs=0.006)


def test_while_nothing_moves_bounds_keep_their_promise_and_a_half_life_makes_them_careful(
    measured: dict[tuple[str, str], tuple[Any, Any]],
) -> None:
    for bound, promised in (("bayes", 0.9), ("exposure", 0.75)):
        full, decayed = measured["constant", bound]
        assert full.covered == pytest.approx(promised, abs=TOLERANCE)
        assert decayed.covered > promised
        assert decayed.gap > 2 * full.gap
        assert decayed.error > 1.8 * full.error
    assert min(one.covered for one in measured["constant", "hoeffding"]) > 0.8


def test_when_it_drifts_only_the_half_life_follows(measured: dict[tuple[str, str], tuple[Any, Any]]) -> None:
    for bound, promised in (("bayes", 0.9), ("exposure", 0.75)):
        full, decayed = measured["drifts", bound]
        assert full.covered < promised - 0.1
        assert decayed.covered == pytest.approx(promised, abs=0.03)  # by luck of this drift: nothing promises it


def test_no_bound_covers_drift(measured: dict[tuple[str, str], tuple[Any, Any]]) -> None:
    full, decayed = measured["drifts fast", "bayes"]
    assert full.covered < decayed.covered < 0.9 - 0.1
    assert decayed.error < full.error


def test_the_variance_of_a_decayed_estimate_is_half_of_what_a_bound_takes_it_for() -> None:
    """Σw²/Σw for wᵢ = rⁱ is 1/(1 + r), which is ½ for a half-life of many days; here 0.51."""
    for half_life in (7.0, 14.0):  # short against the 180 days
        w = SCRIPT["weights"](half_life)
        assert np.sum(w**2) / np.sum(w) == pytest.approx(1 / (1 + 2 ** (-1 / half_life)), abs=0.005)
    # 9,000 squared deviations, each of variance near 2: a standard error of about 0.015.
    assert SCRIPT["spread"](SCRIPT["HALF_LIFE"]) == pytest.approx(0.51, abs=0.04)
    assert SCRIPT["spread"](None) == pytest.approx(1, abs=0.05)
