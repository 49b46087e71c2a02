"""The rules of the design that no type checker knows: layers, sizes, names, and who may know a concrete click model."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import prudent
from prudent.click_models import click_models

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "prudent"
MODULES = sorted(SOURCE.rglob("*.py"))
PRODUCT = [module for module in MODULES if module.relative_to(SOURCE).parts[0] != "research"]
LAYERS = [  # the last is the lowest
    *("cli", "research", "reporting", "evaluation", "policies", "bounds"),
    *("click_models", "counts", "engines", "logs", "storage", "base"),
]
MOST_LINES = 400
FEWEST_REPEATED = 6  # lines in a row that stand for repeated logic


def short(module: Path) -> str:
    return module.relative_to(SOURCE).as_posix()


def test_layers_are_the_twelve_packages() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = settings["tool"]["importlinter"]["contracts"]
    assert contract["layers"] == [f"prudent.{layer}" for layer in LAYERS]
    assert not {"ignore_imports", "exhaustive_ignores"} & set(contract)
    assert {folder.name for folder in SOURCE.iterdir() if (folder / "__init__.py").exists()} == set(LAYERS)


def test_no_package_imports_one_above_it() -> None:
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
    done = subprocess.run([*command, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("module", MODULES, ids=short)
def test_a_file_is_one_idea(module: Path) -> None:
    assert len(module.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


def lines_of_code(text: str) -> list[tuple[int, str]]:
    """Numbered lines without indentation; declarations, comments, blank lines and lone punctuation do not count."""
    skipped: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            skipped |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        if isinstance(node, ast.FunctionDef):  # commands share options, which have to be written out
            skipped |= set(range(node.lineno, node.body[0].lineno))
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if number not in skipped]
    return [(number, line) for number, line in lines if not line.startswith("#") and re.search(r"\w", line)]


def repeated(texts: Mapping[str, str]) -> list[str]:
    """Places whose lines stand in another place too, to the letter."""
    first: dict[tuple[str, ...], str] = {}
    places = []
    for name, text in texts.items():
        code = lines_of_code(text)
        for start in range(len(code) - FEWEST_REPEATED + 1):
            block = tuple(line for _, line in code[start : start + FEWEST_REPEATED])
            place = f"{name}:{code[start][0]}"
            if first.setdefault(block, place) != place:
                places.append(f"{place} is {first[block]}")
    return places


def test_no_logic_is_written_twice() -> None:
    assert repeated({short(module): module.read_text(encoding="utf-8") for module in MODULES}) == []


def test_a_repeated_block_would_be_noticed() -> None:
    block = "\n".join(f"x{i} = {i}" for i in range(FEWEST_REPEATED))
    assert repeated({"a": block, "b": f"import os\n\n# a comment\n{block}"}) == ["b:4 is a:1"]
    assert repeated({"a": block, "b": block.replace("x3", "y")}) == []


def test_dir_lists_the_public_names() -> None:
    """Completion after `prudent.` offers what is public and nothing else."""
    assert dir(prudent) == sorted(prudent.__all__)


# --- click models: the contract, and nothing else ---------------------------------------------------------------------


def mentions(tree: ast.AST) -> Iterator[str]:
    """Lines that know a concrete click model: its class by name, or a comparison or table with its spelling."""
    names = set(click_models) - {"auto", "robust"}  # which are no models, but rules that choose some
    classes = {click_models[name].__name__ for name in names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute | ast.alias):
            name = {ast.Name: "id", ast.Attribute: "attr", ast.alias: "name"}[type(node)]
            if getattr(node, name) in classes:
                yield f"{node.lineno}: {getattr(node, name)}"
        compared: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            compared = [node.left, *node.comparators]
        elif isinstance(node, ast.Dict):
            compared = [key for key in node.keys if key is not None]
        elif isinstance(node, ast.MatchValue):
            compared = [node.value]
        for side in compared:
            for leaf in ast.walk(side):
                if isinstance(leaf, ast.Constant) and leaf.value in names:
                    yield f"{leaf.lineno}: {leaf.value!r}"


@pytest.mark.parametrize("module", [m for m in PRODUCT if m.relative_to(SOURCE).parts[0] != "click_models"], ids=short)
def test_only_its_package_knows_a_concrete_click_model(module: Path) -> None:
    assert list(mentions(ast.parse(module.read_text(encoding="utf-8")))) == []


@pytest.mark.parametrize(
    "line",
    [
        "isinstance(model, PositionBased)",
        "from prudent.click_models import Cascade",
        "model.name == 'pbm'",
        "name in ('cm', 'dcm')",
        "{'pbm': 1}[name]",
        "match name:\n    case 'dcm': pass",
    ],
)
def test_a_concrete_click_model_would_be_noticed(line: str) -> None:
    assert list(mentions(ast.parse(line)))
