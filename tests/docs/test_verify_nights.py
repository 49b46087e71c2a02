"""The study of `verify` runs, on few launches."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def study() -> ModuleType:
    spec = importlib.util.spec_from_file_location("verify_nights", DOCS / "verify_nights.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["verify_nights"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_few_launches(study: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 4 launches that keep their promise, 2 or more false alarms in 60 nights have a probability of 1.4 % at most.

    Of 4 with a drop that is found in time in 80 % of cases, none has a probability of 0.2 %.
    """
    monkeypatch.setattr(study, "TRAINING", 40_000)
    kept = list(study.launches("pbm", 4, 0.0))
    assert sum(one.night is not None for one in kept) <= 1
    assert all(0.97 < one.promised < 1.03 for one in kept)
    dropped = list(study.launches("pbm", 4, 0.05, first=5))
    assert all(one.foretold is not None for one in dropped)
    assert sum(one.night is not None and one.night <= one.foretold for one in dropped) >= 1
