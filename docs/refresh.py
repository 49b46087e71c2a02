"""Run the examples of the pages and of the notebook, from top to bottom in an empty folder, as a reader would.

    python docs/refresh.py [PAGE ...]           write what they print below them
    python docs/refresh.py --check [PAGE ...]   fail where they print something else than the page shows

Without names: all pages with examples. Output with a line of dots in it was shortened by hand: it is checked and never
rewritten. Read the difference before you commit it: a number that changed belongs under *Numbers* in the changelog.
"""

import argparse
import doctest
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from difflib import unified_diff
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOK = ROOT / "docs" / "notebook.ipynb"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECONDS = re.compile(r"\b\d+\.\d\d(?=</td></tr>|$)", re.MULTILINE)  # the last column of a comparison: time it took


class Result(NamedTuple):
    """A page after its examples ran."""

    text: str
    differences: list[str]


def pages() -> list[Path]:
    """Every page that may have examples."""
    return [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("docs/how-to/*.md"))]


def commands(block: str) -> Iterator[tuple[str, str]]:
    """Every command after a `$`, lines joined by a backslash included, with the output shown below it."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        lines = part.splitlines(keepends=True)
        end = next(number for number, line in enumerate(lines, 1) if not line.endswith("\\\n"))
        yield "".join(lines[:end]), "".join(lines[end:])


def run_command(command: str, also: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run it in a plain terminal of 80 columns."""
    environment = os.environ | {"NO_COLOR": "1", "COLUMNS": "80"} | dict(also or {})
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
    return subprocess.run(
        command,
        shell=True,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
    )


def run_page(page: Path, servers: Mapping[str, str] | None = None) -> Result:
    """Run a page in one namespace and one empty folder.

    With `servers`, an environment in which programs find them, also the blocks that need one: those marked `sh`, whose
    output is in the `text` block after them.
    """
    names: dict[str, object] = {}
    differences: list[str] = []
    printed = ""
    text = page.read_text(encoding="utf-8")

    def run_block(fence: re.Match[str]) -> str:
        nonlocal printed
        language, block = fence.groups()
        line = text.count("\n", 0, fence.start(2)) + 1
        if language == "console":
            block = "".join(f"$ {command}{console(command, shown, line)}" for command, shown in commands(block))
        elif language == "python" and ">>>" in block:
            examples = Examples()
            block = examples.run_block(block, names, page.name, line)
            differences.extend(examples.differences)
        elif language == "python":
            exec(compile("\n" * (line - 1) + block, page, "exec"), names)
        elif language == "sh" and servers is not None:
            done = run_command(f"set -e\n{block}", servers)
            printed = done.stdout
            if done.returncode:
                differences.append(f"{page.name}:{line}: {block}\nprinted:\n{printed}")
        elif language == "text" and servers is not None:
            compare(f"{page.name}:{line}", block, printed)
        return f"```{language}\n{block.rstrip()}\n```"

    def console(command: str, shown: str, line: int) -> str:
        done = run_command(command)
        if done.returncode:
            differences.append(f"{page.name}:{line}: $ {command}\nprinted:\n{done.stdout}")
        elif shown.strip():
            compare(f"{page.name}:{line}: $ {command}", shown, done.stdout)
        return fresh(done.stdout, shown)

    def compare(where: str, shown: str, printed: str) -> None:
        if not doctest.OutputChecker().check_output(shown, printed, FLAGS):
            differences.append(f"{where}\nshown:\n{shown}\nprinted:\n{printed}")

    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error")
        os.chdir(folder)
        try:
            return Result(FENCE.sub(run_block, text), differences)
        finally:
            os.chdir(before)


class Examples(doctest.DocTestRunner):
    """Runs the examples of a block, and keeps what each of them prints."""

    def __init__(self) -> None:
        super().__init__(optionflags=FLAGS)
        self.printed: dict[int, str] = {}
        self.differences: list[str] = []

    def report_success(self, out: Any, test: doctest.DocTest, example: doctest.Example, got: str) -> None:
        """Keep the output."""
        self.printed[id(example)] = got

    def report_failure(self, out: Any, test: doctest.DocTest, example: doctest.Example, got: str) -> None:
        """Keep the output, and what it should have been."""
        self.printed[id(example)] = got
        super().report_failure(self.differences.append, test, example, got)

    def report_unexpected_exception(
        self, out: Any, test: doctest.DocTest, example: doctest.Example, exc_info: Any
    ) -> None:
        """Keep the traceback."""
        super().report_unexpected_exception(self.differences.append, test, example, exc_info)

    def run_block(self, block: str, names: dict[str, object], name: str, line: int) -> str:
        """The block with the output of today."""
        parts = doctest.DocTestParser().parse(block, name)
        examples = [part for part in parts if isinstance(part, doctest.Example)]
        test = doctest.DocTest(examples, names, name, name, line - 1, block)
        self.run(test, out=lambda text: None, clear_globs=False)
        names.update(test.globs)  # DocTest copies them
        return "".join(part if isinstance(part, str) else self._typed(part) for part in parts)

    def _typed(self, example: doctest.Example) -> str:
        lines = re.sub("^", "... ", example.source.rstrip("\n"), flags=re.MULTILINE).replace("... ", ">>> ", 1) + "\n"
        if example.exc_msg is not None or id(example) not in self.printed:
            return lines + example.want
        return lines + fresh(self.printed[id(example)], example.want)


def fresh(printed: str, shown: str) -> str:
    """The new output in place of the old, unless that was shortened by hand, or has dots for what varies and holds."""
    if not shown.strip() or re.search(r"^\.\.\.$", shown, re.MULTILINE):
        return shown
    if "..." in shown:
        if doctest.OutputChecker().check_output(shown, printed, FLAGS):
            return shown
        printed = re.sub(r" +\d+\.\d\d$", lambda seconds: "...".rjust(len(seconds[0])), printed, flags=re.MULTILINE)
    return "\n".join(line.rstrip() for line in printed.strip("\n").splitlines()) + "\n"


def run_notebook(file: Path) -> Result:
    """Run every cell of the notebook."""
    import nbformat
    from nbclient import NotebookClient

    os.environ["PYTHONWARNINGS"] = "default"  # what other packages warn of when they start a kernel is not ours
    page = nbformat.read(file, as_version=4)  # type: ignore[no-untyped-call]
    code = [cell for cell in page.cells if cell.cell_type == "code"]
    before = [outputs(cell) for cell in code]
    with tempfile.TemporaryDirectory() as folder:
        where = {"metadata": {"path": folder}}
        NotebookClient(page, timeout=300, kernel_name="python3", resources=where, record_timing=False).execute()
    differences = [
        "\n".join([f"{file.name}: cell {number}:", cell.source, *unified_diff(shown, outputs(cell), lineterm="")])
        for number, (cell, shown) in enumerate(zip(code, before, strict=True), start=1)
        if outputs(cell) != shown
    ]
    return Result(nbformat.writes(page).rstrip("\n") + "\n", differences)  # type: ignore[no-untyped-call]


def outputs(cell: Any) -> list[str]:
    """The lines that a cell shows, after their type; of a picture only that there is one, since fonts differ."""
    shown: list[str] = []
    for output in cell.outputs:
        if output.output_type == "error":
            continue
        data = {"text/plain": output.text} if output.output_type == "stream" else output.data
        for kind, text in sorted(data.items()):
            picture = kind == "image/svg+xml" and "<svg" in text
            lines = ["a picture"] if picture else SECONDS.sub("…", text).replace("<tr>", "\n<tr>").splitlines()
            shown += [f"{kind}: {line}" for line in lines]
    return shown


def run(file: Path) -> Result:
    """Run a page or the notebook."""
    return run_notebook(file) if file.suffix == ".ipynb" else run_page(file)


def main() -> None:
    """Run what is named, as many at a time as there are cores."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--check", action="store_true", help="fail where the output differs; write nothing")
    options.add_argument("page", nargs="*", type=Path, default=[NOTEBOOK, *pages()])
    chosen = options.parse_args()
    files = [file.resolve() for file in chosen.page]
    failed = False
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for file, result in zip(files, pool.map(run, files), strict=True):
            if chosen.check and result.differences:
                failed = True
                print("\n".join(result.differences))  # noqa: T201
            elif not chosen.check and result.text != file.read_text(encoding="utf-8"):
                file.write_text(result.text, encoding="utf-8")
                print(f"{file.relative_to(ROOT)} changed")  # noqa: T201
    if failed:
        sys.exit("The pages above show what is no longer so: `make pages` writes them again.")


if __name__ == "__main__":
    main()
