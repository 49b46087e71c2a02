"""What the documentation shows is what happens: its code runs, and its output is the output."""

import doctest
import inspect
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import prudent
from prudent.bounds import bounds
from prudent.click_models import click_models
from prudent.counts.counts import COLUMNS
from prudent.logs.log import REASONS
from prudent.policies.baselines import baselines

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("docs/how-to/*.md"))]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


class Block(NamedTuple):
    """A fenced block; `python` and `console` ones are run, others (`text`, `sh`, `sql`) only shown."""

    line: int
    language: str
    text: str


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for fence in FENCE.finditer(text):
        yield Block(text.count("\n", 0, fence.start(2)) + 1, fence[1], fence[2])


def commands(block: str) -> Iterator[tuple[str, str]]:
    """Every command after a `$`, lines joined by a backslash included, with the output shown below it."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        lines = part.splitlines(keepends=True)
        end = next(number for number, line in enumerate(lines, 1) if not line.endswith("\\\n"))
        yield "".join(lines[:end]), "".join(lines[end:])


def run_python(page: Path, block: Block, names: dict[str, object]) -> None:
    if ">>>" not in block.text:
        exec(compile("\n" * (block.line - 1) + block.text, page, "exec"), names)
        return
    example = doctest.DocTestParser().get_doctest(block.text, names, page.name, str(page), block.line - 1)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    runner.run(example, out=report.append, clear_globs=False)
    names.update(example.globs)  # get_doctest copies them
    assert not report, "".join(report)


def run_command(command: str) -> subprocess.CompletedProcess[str]:
    """As a reader would in a plain terminal of 80 columns."""
    beside_python = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = os.environ | {"PATH": beside_python, "NO_COLOR": "1", "COLUMNS": "80"}
    return subprocess.run(
        command, shell=True, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def run_console(page: Path, block: Block) -> None:
    for command, shown in commands(block.text):
        done = run_command(command)
        assert done.returncode == 0, f"{page.name}:{block.line}: $ {command}{done.stdout}"
        if shown.strip():
            assert doctest.OutputChecker().check_output(shown, done.stdout, FLAGS), (
                f"{page.name}:{block.line}: $ {command}shown:\n{shown}\nprinted:\n{done.stdout}"
            )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Top to bottom, in one namespace and one empty folder, as a reader would."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks(page):
        if block.language == "python":
            run_python(page, block, names)
        elif block.language == "console":
            run_console(page, block)


@pytest.mark.parametrize("page", [path for path in PAGES if path.parent == ROOT], ids=lambda page: page.name)
def test_links_in_the_repository_resolve(page: Path) -> None:
    """Sphinx checks the links between the pages of the site; these stand outside it."""
    targets = [target for target in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in target]
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not missing


def test_contributing_has_the_order_of_the_modules() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = settings["tool"]["importlinter"]["contracts"]
    (shown,) = (block.text for block in blocks(ROOT / "CONTRIBUTING.md") if "→" in block.text)
    assert [f"prudent.{name.strip()}" for name in reversed(shown.split("→"))] == contract["layers"]


@pytest.mark.parametrize("name", prudent.__all__)
def test_public_name_is_explained(name: str) -> None:
    """It has a docstring, and an example: in that docstring, or on one of the pages."""
    thing = getattr(prudent, name)
    assert inspect.getdoc(thing), f"prudent.{name} has no docstring"
    with_example = any(test.examples for test in doctest.DocTestFinder().find(thing, name))
    on_a_page = any(f"prudent.{name}" in page.read_text(encoding="utf-8") for page in ROOT.glob("docs/**/*.md"))
    assert with_example or on_a_page


@pytest.mark.parametrize("name", [*click_models, *bounds, *baselines])
def test_reading_discusses_every_model_bound_and_method(name: str) -> None:
    assert f"`{name}" in (ROOT / "docs" / "reading.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("reason", REASONS)
def test_page_on_logs_lists_every_reason(reason: str) -> None:
    assert f"| {reason} |" in (ROOT / "docs" / "logs.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("column", COLUMNS)
def test_page_on_files_explains_every_column_of_the_counts(column: str) -> None:
    assert f"| `{column}` |" in (ROOT / "docs" / "files.md").read_text(encoding="utf-8")
