"""How the tests run where a failure must mean a change, with the same examples every time; and which run together."""

import os

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

# No deadline: the first example of a test may be the one that imports SciPy's optimisers, which takes a second.
settings.register_profile("any", deadline=None)
settings.register_profile("same", deadline=None, derandomize=True)
settings.load_profile("same" if os.environ.get("CI") else "any")


class ByFile(LoadScopeScheduling):  # type: ignore[misc]
    """The tests of one file go to one process, and so do all tests of Spark: what they share is made once."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "tests/engines" if file.startswith("tests/engines/") else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByFile:
    return ByFile(config, log)
