"""The compiled kernel and its twin."""

import os

import pytest

from prudent.engines import kernel


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiled kernel, without which there is nothing to compare."""
    monkeypatch.setenv("PRUDENT_KERNEL", "")
    if not kernel.compiled():
        reason = "kernel tests (compiled kernel): install a C++ compiler, then run python -m prudent.engines.kernel"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)


@pytest.fixture(params=["compiled", "numpy"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """One of the two, in turn."""
    if request.param == "compiled":
        request.getfixturevalue("compiled")
    else:
        monkeypatch.setenv("PRUDENT_KERNEL", "numpy")
    return str(request.param)
