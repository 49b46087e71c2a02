"""The study of explorations runs, on few weeks and nights."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def study() -> ModuleType:
    spec = importlib.util.spec_from_file_location("explore_weeks", DOCS / "explore_weeks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["explore_weeks"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_few_weeks(study: ModuleType) -> None:
    """Of 12 weeks with four errors each, which are correlated: 40 % is 2.8 standard errors of 24 independent ones.

    Of 12 losses, at most one is above a limit that holds for more than 95 % of them.
    """
    weeks = [study.week(seed, exploration=0.3) for seed in range(12)]
    predicted = study.mean_square([one.predicted for one in weeks])
    assert study.mean_square([one.error for one in weeks]) == pytest.approx(predicted, rel=0.4)
    assert sum(one.loss > one.at_most for one in weeks) <= 1
    assert np.mean([one.expected for one in weeks]) <= 0.01


@pytest.mark.slow
def test_few_nights(study: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every way to explore loses the same, in a world where `explore` loses anything in so few nights."""
    monkeypatch.setattr(study, "NIGHTS", 3)
    found = study.nights(1)
    assert list(found) == ["explore", *study.RIVALS]
    assert all(0 <= regret < 0.3 for regret, _ in found.values())
    ours = found["explore"][1]
    assert ours > 0
    assert found["epsilon-greedy"][1] == pytest.approx(ours, rel=0.05)
    assert found["Thompson sampling"][1] == pytest.approx(ours, rel=0.05)
