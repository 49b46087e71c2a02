"""Puts fresh output under the examples: `python docs/refresh.py README.md docs/tutorial.md ...`.

Each page is run from top to bottom in an empty folder, as `tests/test_docs.py` does, and what it shows is replaced by
what was printed. Output with a line of dots in it was shortened by hand and stays. Look at the difference before you
commit it: a figure that moved belongs under *Numbers* in the changelog.
"""

import contextlib
import doctest
import io
import os
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.docs.test_docs import FENCE, commands, run_command


def refresh(page: Path) -> None:
    """Run a page and write it again."""
    names: dict[str, object] = {}

    def block(fence: re.Match[str]) -> str:
        language, text = fence.groups()
        if language == "console":
            text = "".join(f"$ {command}{console(command, shown)}" for command, shown in commands(text))
        elif language == "python" and ">>>" not in text:
            exec(text, names)
        elif language == "python":
            text = "".join(python(part, names) for part in doctest.DocTestParser().parse(text))
        return f"```{language}\n{text.strip()}\n```"

    text = page.read_text(encoding="utf-8")
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            text = FENCE.sub(block, text)
        finally:
            os.chdir(before)
    page.write_text(text, encoding="utf-8")


def console(command: str, shown: str) -> str:
    """What a command prints, if the page shows it."""
    done = run_command(command)
    if done.returncode:
        sys.exit(f"$ {command}{done.stdout}")
    return fresh(done.stdout, shown)


def python(part: str | doctest.Example, names: dict[str, object]) -> str:
    """An example with its result; text between examples as it is."""
    if isinstance(part, str):
        return part
    typed = re.sub("^", "... ", part.source.rstrip("\n"), flags=re.MULTILINE).replace("... ", ">>> ", 1) + "\n"
    if part.exc_msg is not None:
        return typed + part.want
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(part.source, "<example>", "single"), names)
    return typed + fresh(printed.getvalue(), part.want)


def fresh(printed: str, shown: str) -> str:
    """The new output in place of the old."""
    if not shown.strip() or re.search(r"^\.\.\.$", shown, re.MULTILINE):
        return shown
    return "\n".join(line.rstrip() for line in printed.strip("\n").splitlines()) + "\n"


if __name__ == "__main__":
    for name in sys.argv[1:]:
        refresh(Path(name).resolve())
