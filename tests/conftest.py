"""Which tests run, with which examples, and which of them together."""

import os

# Before NumPy is loaded: several processes with a thread of BLAS per core wait for each other, 358 s in place of 190 s.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import is_hypothesis_test, settings
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from tests.programs import TIERS, find_chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CI = os.environ.get("CI", "").lower() not in ("", "0", "false")

# No deadline: the first example of a test may be the one that imports SciPy's optimisers, which takes a second.
settings.register_profile("any", deadline=None)
settings.register_profile("same", deadline=None, derandomize=True)
settings.load_profile("same" if CI else "any")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="run every tier, not the quick tests alone")


def pytest_configure(config: pytest.Config) -> None:
    for tier in TIERS.values():
        needs = ", ".join(program.name for program in tier.needs)
        config.addinivalue_line("markers", f"{tier.marker}: {tier.about}{needs and f'; needs {needs}'}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """`pytest` alone runs the quick tests; with a path, `-m` or `--all` every tier that is asked for.

    The quick tests try half of the random examples, others in every run; with a path or `--all` all of them are tried.
    """
    tiered = {item for item in items if any(item.get_closest_marker(marker) for marker in TIERS)}
    longest = {item.path for item in tiered}
    items.sort(key=lambda item: item.path not in longest)  # begun first, so that none runs alone at the end
    narrowed = config.args_source is not pytest.Config.ArgsSource.TESTPATHS
    if config.option.all or config.option.markexpr or narrowed:
        return
    config.hook.pytest_deselected(items=list(tiered))
    items[:] = [item for item in items if item not in tiered]
    for test in {item.obj for item in items if isinstance(item, pytest.Function)}:
        if is_hypothesis_test(test):
            every = test._hypothesis_internal_use_settings  # decorators of a test have no public place
            test._hypothesis_internal_use_settings = settings(every, max_examples=max(5, every.max_examples // 2))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose program is missing; in CI nothing may be left out."""
    for marker, tier in TIERS.items():
        if item.get_closest_marker(marker) and (missing := tier.missing):
            reason = f"{marker} tests ({', '.join(one.name for one in missing)}): {tier.how}"
            (pytest.fail if CI and not all(one.optional for one in missing) else pytest.skip)(reason)


@pytest.hookimpl(tryfirst=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Name what was not run and how to get it, after everything else."""
    terminal: pytest.TerminalReporter | None = config.pluginmanager.get_plugin("terminalreporter")
    skipped = terminal.stats.get("skipped", []) if terminal and not hasattr(config, "workerinput") else []
    for reason, number in Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in skipped).items():
        print(f"Not run: {number} {reason if number > 1 else reason.replace(' tests', ' test', 1)}")  # noqa: T201


class ByFile(LoadScopeScheduling):  # type: ignore[misc]
    """The tests of one file go to one process, and so do all tests of Spark: what they share is made once."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "tests/engines" if file.startswith("tests/engines/") else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByFile:
    config.option.loadscopereorder = False  # by the number of tests: the few tests of crashes take longest
    return ByFile(config, log)


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    """Chromium, for the tests of the marker `browser`."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        yield launched
        launched.close()
