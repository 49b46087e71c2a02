"""The page on the coverage of bounds has the tables of the stored results, and what it says of them holds."""

import importlib.util
import json
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_has_the_tables_of_the_results() -> None:
    spec = importlib.util.spec_from_file_location("bound_coverage", DOCS / "bound_coverage.py")
    assert spec is not None
    assert spec.loader is not None
    study = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(study)
    page = (DOCS / "bound-coverage.md").read_text(encoding="utf-8")
    for worlds in (slice(6), slice(6, 12)):
        assert study.table(worlds) in page


def test_bounds_keep_their_promise_where_the_prior_is_right() -> None:
    results = json.loads((DOCS / "coverage" / "bounds.json").read_text(encoding="utf-8"))
    for rows in results.values():
        for spelling, shares in rows.items():
            promised = 0.25 if "delta=0.5" in spelling else 0.1
            if spelling.startswith(("hoeffding", "clopper", "anytime")):
                assert max(shares["all items"]) <= promised
                continue
            for name in ("all items", "chosen items", "first item"):
                own = shares[name][:6]
                assert abs(sum(own) / 6 - promised) <= 0.03, (spelling, name)
