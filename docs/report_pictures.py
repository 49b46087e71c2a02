"""The pictures on the page about the report: `python docs/report_pictures.py`, with chromium and playwright.

The shop and the commands are those of the page.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
COMMANDS = (
    "prudent demo",
    "prudent split prudent-demo/clicks.parquet -o parts --holdout 0.3",
    "prudent rank parts/train.parquet -o policy.parquet --scores scores.parquet",
    "prudent report policy.parquet --log parts/holdout.parquet --scores scores.parquet --train parts/train.parquet "
    "-o report.html",
)


def main() -> None:
    """Make the report, open it, and save two pictures of it."""
    browser = shutil.which("chromium") or sys.exit("There is no chromium: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        for command in COMMANDS:
            program, *arguments = command.split()
            path = Path(sys.executable).with_name(program)
            subprocess.run([path, *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        opened = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = opened.new_page(
            viewport={"width": 1120, "height": 900},
            color_scheme="light",
            reduced_motion="reduce",  # a page that still scrolls is somewhere else when it is measured
        )
        page.goto(Path(folder, "report.html").as_uri())
        bottom = page.locator("#who .wide").first.bounding_box()
        assert bottom is not None
        page.screenshot(
            path=HERE / "_static" / "report.png",
            full_page=True,
            clip={"x": 0, "y": 0, "width": 1120, "height": bottom["y"] + bottom["height"] + 20},
        )
        page.fill("#search", "chef knife")
        page.keyboard.press("Enter")
        page.evaluate("scrollTo({top: 0, behavior: 'instant'})")  # boxes are measured from the top of the window
        top, last = page.locator("#explore").bounding_box(), page.locator("tbody.listed").bounding_box()
        assert top is not None
        assert last is not None
        page.screenshot(
            path=HERE / "_static" / "report-context.png",
            full_page=True,
            clip={"x": 0, "y": top["y"] + 20, "width": 1120, "height": last["y"] + last["height"] - top["y"]},
        )
        opened.close()


if __name__ == "__main__":
    main()
