"""The page about scaling says what the committed results say."""

import runpy
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
SCRIPT = runpy.run_path(str(DOCS / "scaling.py"))
BENCHMARKS = runpy.run_path(str(DOCS / "benchmarks.py"))


def test_page_is_what_the_results_make_of_it() -> None:
    """If this fails: `python docs/scaling.py`."""
    assert (DOCS / "scaling.md").read_text(encoding="utf-8") == SCRIPT["page"](BENCHMARKS["latest"]())


def test_the_arithmetic() -> None:
    """A billion lists at 36 µs each are ten core-hours; 160 cores need 225 s for them."""
    ten = {"rows of counts per list": 5.0, "bytes per list": 100.0}
    day = SCRIPT["_day"](1_000_000_000, ten, 36.0, 36.0, 72.0, 50.0, 25.0, 8.0)
    assert day["log, TB"] == "0.1"
    assert day["cells of counts, as measured"] == "5 billion"
    assert day["counts, TB"] == "0.04"
    assert day["Spark, hours of one core"] == "10"
    assert day["counting there, minutes"] == "3.75"
    assert day["ranking there, minutes"] == "7.5"
    assert day["shuffle, GB per machine"] == "5"
    assert day["shuffle of ranking, GB per machine"] == "2.5"
