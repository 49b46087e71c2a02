"""The page of benchmarks says what the committed results say."""

import json
import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
SCRIPT = runpy.run_path(str(DOCS / "benchmarks.py"))
FIGURES = runpy.run_path(str(DOCS / "benchmark_figures.py"))
RESULTS = sorted((DOCS.parent / "benchmarks" / "results").glob("*.json"))


def test_page_is_what_the_results_make_of_it() -> None:
    """If this fails: `python docs/benchmarks.py`."""
    assert (DOCS / "benchmarks.md").read_text(encoding="utf-8") == SCRIPT["page"](SCRIPT["latest"]())


def test_every_figure_of_the_page_exists() -> None:
    page = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    shown = {line.split("(")[1].rstrip(")") for line in page.splitlines() if line.startswith("![")}
    assert shown == {f"benchmarks/{file.name}" for file in (DOCS / "benchmarks").glob("*.svg")}


def test_bars_say_what_the_results_say() -> None:
    """If this fails: `python docs/benchmarks.py`."""
    drawn = (DOCS / "benchmarks" / "ratios.svg").read_text(encoding="utf-8")
    bars = list(FIGURES["ratios"](SCRIPT["latest"]()))
    assert bars
    assert [bar["words"] for bar in bars if f">{bar['words']}</text>" not in drawn] == []


@pytest.mark.parametrize("file", RESULTS, ids=lambda file: file.stem)
def test_results_have_one_form(file: Path) -> None:
    """And say nothing of where they were measured but what the machine is like."""
    text = file.read_text(encoding="utf-8")
    results = json.loads(text)
    assert {"part", "date", "commit", "machine", "versions", "about", "took", "figures"} <= set(results)
    assert file.stem == f"{results['date'][:10]}-{results['part']}"
    assert all(set(run) == {"cpu", "wall", "peak"} for run in results["took"].values())
    for figure in results["figures"].values():
        assert set(figure) == {"value", "aim"}
        assert figure["aim"] is None or set(figure["aim"]) <= {"at_most", "at_least"}
    for private in ("/tmp", "/home", "/work", "/root", "://"):
        assert private not in text


def test_the_latest_of_a_part_counts(tmp_path: Path) -> None:
    """A trial on fewer lists has another name, and is left alone."""
    for name in ("2026-01-02-clax", "2026-01-01-clax", "2026-01-03-clax-100k"):
        (tmp_path / f"{name}.json").write_text(json.dumps({"date": name}), encoding="utf-8")
    assert SCRIPT["latest"](tmp_path) == {"clax": {"date": "2026-01-02-clax"}}


@pytest.mark.parametrize(
    ("value", "limits", "verdict"),
    [
        (1.2, {"at_most": 1.3}, "reached"),
        (1.4, {"at_most": 1.3}, "**missed**"),
        (9.9, {"at_least": 10}, "**missed**"),
        (10, {"at_least": 10}, "reached"),
        (5, None, ""),
    ],
)
def test_an_aim_is_reached_or_missed(value: float, limits: dict[str, float] | None, verdict: str) -> None:
    assert SCRIPT["reached"]({"value": value, "aim": limits}) == verdict
