"""The pages are complete and their links resolve; `make docs` runs their examples."""

import re
import tomllib
from pathlib import Path

import pytest

from prudent.bounds import bounds
from prudent.click_models import click_models
from prudent.logs.log import REASONS
from prudent.policies.baselines import baselines
from prudent.storage.counts_file import COLUMNS

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", sorted(ROOT.glob("*.md")), ids=lambda page: page.name)
def test_links_in_the_repository_resolve(page: Path) -> None:
    """Sphinx checks the links between the pages of the site; these stand outside it."""
    targets = [target for target in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in target]
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not missing


def test_contributing_has_the_order_of_the_modules() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = settings["tool"]["importlinter"]["contracts"]
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (shown,) = (text for _, text in FENCE.findall(page) if "→" in text)
    assert [f"prudent.{name.strip()}" for name in reversed(shown.split("→"))] == contract["layers"]


@pytest.mark.parametrize("name", [*click_models, *bounds, *baselines])
def test_reading_discusses_every_model_bound_and_method(name: str) -> None:
    assert f"`{name}" in (ROOT / "docs" / "reading.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("reason", REASONS)
def test_page_on_logs_lists_every_reason(reason: str) -> None:
    assert f"| {reason} |" in (ROOT / "docs" / "logs.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("column", COLUMNS)
def test_page_on_files_explains_every_column_of_the_counts(column: str) -> None:
    assert f"| `{column}` |" in (ROOT / "docs" / "files.md").read_text(encoding="utf-8")
