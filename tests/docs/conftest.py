"""`make docs` builds the site, and only then can it be looked at."""

from pathlib import Path

SITE = Path(__file__).parents[2] / "docs" / "_build"
collect_ignore = [] if (SITE / "index.html").exists() else ["test_site.py"]
