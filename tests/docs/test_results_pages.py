"""The pages of results say what the committed tables say."""

import csv
import json
import runpy
from pathlib import Path

import pytest

from prudent.research.claims import CLAIMS

DOCS = Path(__file__).parents[2] / "docs"
SCRIPT = runpy.run_path(str(DOCS / "results.py"))


@pytest.mark.parametrize("page", ["results.md", "claims.md"])
def test_page_is_what_the_tables_make_of_it(page: str) -> None:
    """If this fails: `python docs/results.py`."""
    assert (DOCS / page).read_text(encoding="utf-8") == SCRIPT["pages"]()[page]


@pytest.mark.parametrize("folder", sorted(path.parent for path in (DOCS / "results").glob("*/ratios.csv")))
def test_ratios_are_those_of_the_tables(folder: Path) -> None:
    """Standard errors take single repetitions, but the means must agree."""
    tables = {}
    for name in json.loads((folder / "about.json").read_text(encoding="utf-8")):
        with (folder / f"{name}.csv").open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                key = (name, row["data"], row["logging"], row["model"], int(row["n"]))
                tables[*key, row["method"], float(row["delta"]) if row["delta"] else None] = float(row["error"])
    ratios = [one for one in SCRIPT["kept_ratios"](folder / "ratios.csv") if ":" not in one.method]
    assert ratios
    for one in ratios:
        key = (one.experiment, one.data, one.logging, one.model, one.n)
        mle = tables[*key, "mle", None]
        assert one.mle == pytest.approx(mle, rel=1e-3, abs=1e-15)
        if one.ratio == one.ratio:
            assert one.ratio == pytest.approx(tables[*key, one.method, one.delta] / mle, rel=1e-3, abs=1e-9)


def test_every_kept_verdict_is_of_a_claim() -> None:
    """The page finds the criterion of a claim by its sentence."""
    assert {verdict.claim for verdict in SCRIPT["kept_verdicts"]()} <= {claim.sentence for claim in CLAIMS}


def test_nothing_is_kept_but_results() -> None:
    """No errors of single repetitions, no rows of anybody's data, no paths of the machine it was run on."""
    kept = [path for path in (DOCS / "results").rglob("*") if path.is_file()]
    assert {path.suffix for path in kept} <= {".csv", ".svg", ".json", ".md"}
    assert sum(path.stat().st_size for path in kept) <= SCRIPT["MOST_BYTES"]
    for path in kept:
        assert "/data/" not in path.read_text(encoding="utf-8"), path


def test_figures_lose_digits_of_places_and_not_of_words() -> None:
    svg = '<g class="a b"><path aria-label="x: 0.12345" d="M1.23456,2L3.98765,4"/><text x="1.23456">0.0015</text></g>'
    assert SCRIPT["slim"](svg) == '<g><path d="M1.23,2L3.98,4"/><text x="1.23">0.0015</text></g>'
