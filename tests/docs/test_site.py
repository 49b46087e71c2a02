"""The built site fits the window; `make docs` builds it and runs this."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

pytestmark = pytest.mark.browser
SITE = Path(__file__).parents[2] / "docs" / "_build"


@pytest.mark.parametrize("width", [390, 768, 1100, 1366, 1440])
def test_no_page_overflows_the_window(browser: Browser, width: int) -> None:
    """A phone, a tablet and common laptops. Wide tables and blocks of code scroll by themselves."""
    page = browser.new_page(viewport={"width": width, "height": 900})
    too_wide = {}
    for file in sorted(SITE.rglob("*.html")):
        page.goto(file.as_uri())
        reach, window = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        if reach > window:
            too_wide[str(file.relative_to(SITE))] = reach
    page.close()
    assert not too_wide
