"""The notebook of the docs runs, and what stands below its cells is what it prints."""

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

PAGE = Path(__file__).parents[2] / "docs" / "notebook.ipynb"
SECONDS = re.compile(r"\b\d+\.\d\d(?=</td></tr>|$)", re.MULTILINE)  # the last column of a comparison


def printed(cell: Any) -> list[tuple[str, str]]:
    """What a cell shows, by its type; of pictures only that there is one, since fonts differ."""
    shown = []
    for output in cell.outputs:
        said = {"text/plain": output.text} if output.output_type == "stream" else output.data
        for kind, text in sorted(said.items()):
            shown.append((kind, "a picture" if kind == "image/svg+xml" and "<svg" in text else SECONDS.sub("…", text)))
    return shown


@pytest.mark.filterwarnings("default")  # what other packages warn of when they start a kernel is not ours
def test_the_notebook_runs_and_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONWARNINGS", "default")
    page = nbformat.read(PAGE, as_version=4)  # type: ignore[no-untyped-call]
    expected = [printed(cell) for cell in page.cells if cell.cell_type == "code"]
    where = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(page, timeout=300, kernel_name="python3", resources=where).execute()
    found = [printed(cell) for cell in page.cells if cell.cell_type == "code"]
    assert found == expected
    assert sum(kind == "image/svg+xml" for cell in found for kind, _ in cell) == 2
