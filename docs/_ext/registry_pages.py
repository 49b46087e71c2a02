"""Writes the reference pages that follow from the code: click models, bounds, estimators, other methods, the CLI.

A new model, bound, estimator, method or command appears in the site by existing. The pages go to
``reference/generated``, which is not part of the repository, and only a page that changed is written again.
"""

import re
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

import typer
from sphinx.application import Sphinx

from prudent.base.spec import Registry, _spell_value
from prudent.bounds import bounds
from prudent.cli import app as cli
from prudent.click_models import click_models
from prudent.evaluation.estimators import estimators
from prudent.policies.baselines import baselines

MODELS_INTRO = """\
# Click models

A click model says how clicks come about, and so which impressions count for an item and which against it.
Write its name where a `model` is asked for, in Python and on the command line. Settings go in brackets, lists in
square ones: `dcm(tail=truncate)`, `pbm(examination=[1, 0.7])`.
"""

BOUNDS_INTRO = """\
# Bounds

A bound turns the evidence for an item, positives n₊ and negatives n₋, into the number that the item is ranked by.
Write its name where a `bound` is asked for, in Python and on the command line: `eb(delta=0.2, pool=context)`.
What each one promises is told in [How we read the paper](../../reading.md#what-each-bound-promises).
"""

ESTIMATORS_INTRO = """\
# Estimators

What a policy would earn on held-out lists, for `evaluate`, `gate` and `report`. Write the name of one where an
`estimator` is asked for: `dr(clip=10)`. Which of them to believe is told in
[Evaluating](../../evaluating.md#which-estimator).
"""

METHODS_INTRO = """\
# Methods to compare with

These weigh whole lists, without a click model and without pessimism. Write the name of one where a `method` is asked
for: `prudent.rank_by(log, "ips(clip=50)")`, `prudent rank LOG -o policy.parquet --method "ips(clip=50)"`. They read the
log itself, since counts have forgotten whole lists. How we read them is told in
[How we read the paper](../../reading.md#the-methods-to-compare-with).
"""

CLI_INTRO = """\
# Command line

Every command ends with one of these codes.

| code | meaning |
|---|---|
| 0 | done |
| 1 | a gate said no |
| 2 | wrong usage: an unknown name, a value out of range |
| 3 | bad input: a log, counts or policy that cannot be used |
| 4 | the output could not be written; what was there before is untouched |
| 130 | interrupted from the keyboard |
| 141 | whatever read the output had seen enough |
"""


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx: write the pages before any source is read."""
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-docstring", keep_bars)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def keep_bars(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Docstrings write sizes as |A|, which reStructuredText would take for a substitution."""
    for number, line in enumerate(lines):
        parts = line.split("``")  # every second part is literal
        lines[number] = "``".join(part if odd % 2 else part.replace("|", "\\|") for odd, part in enumerate(parts))


def write_pages(app: Sphinx) -> None:
    """Write the generated pages into the source folder of the site."""
    folder = Path(app.srcdir) / "reference" / "generated"
    folder.mkdir(parents=True, exist_ok=True)
    pages = {
        "click-models.md": MODELS_INTRO + registry_page(click_models),
        "bounds.md": BOUNDS_INTRO + registry_page(bounds),
        "estimators.md": ESTIMATORS_INTRO + registry_page(estimators),
        "methods.md": METHODS_INTRO + registry_page(baselines),
        "command-line.md": CLI_INTRO + cli_page(),
    }
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def registry_page(registry: Registry[Any]) -> str:
    """One section per registered class: its spelling, its settings with their defaults, its docstring."""
    sections = []
    for name in registry:
        cls = registry[name]
        settings = [(field, setting_default(field)) for field in fields(cls)]
        sections.append(f"\n## `{name}`\n\n")
        if settings:
            sections.append("| setting | default |\n|---|---|\n")
            sections.extend(f"| `{field.name}` | {default} |\n" for field, default in settings)
            sections.append("\n")
        else:
            sections.append("No settings.\n\n")
        where = f"{cls.__module__.rpartition('.')[0]}.{cls.__qualname__}"  # the package exports it
        sections.append(f"```{{eval-rst}}\n.. autoclass:: {where}\n   :no-index:\n```\n")
    return "".join(sections)


def setting_default(field: "Field[Any]") -> str:
    """A default as a user would type it."""
    default = field.default if field.default_factory is MISSING else field.default_factory()
    if default is MISSING:
        return "must be given"
    if default is None or default == ():
        return "estimated from the log"
    return f"`{_spell_value(default)}`"


def cli_page() -> str:
    """One section per command: what it does, how it is written, its arguments and options."""
    group: Any = typer.main.get_command(cli)
    top = group.make_context("prudent", [], resilient_parsing=True)
    sections = [options_table("Options of `prudent` itself", group, top)]
    for name in group.list_commands(top):
        command = group.get_command(top, name)
        context = command.make_context(name, [], parent=top, resilient_parsing=True)
        usage = " ".join(["prudent", name, *command.collect_usage_pieces(context)])
        sections.append(f"\n## `prudent {name}`\n\n{plain(command.help)}\n\n```text\n{usage}\n```\n\n")
        sections.append(options_table("", command, context))
    return "".join(sections)


def options_table(title: str, command: Any, context: Any) -> str:
    """Arguments first, then options, as the help text has them."""
    rows = []
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is None:  # hidden
            continue
        spelling, text = record
        rows.append(f"| `{cell(spelling)}` | {cell(plain(text))} |\n")
    if not rows:
        return ""
    heading = f"\n{title}:\n\n" if title else ""
    return f"{heading}| | |\n|---|---|\n{''.join(rows)}\n"


def plain(text: str | None) -> str:
    """Help text with the terminal's marks for bold and dim turned into Markdown's."""
    return re.sub(r"\[/?dim\]", "", re.sub(r"\[bold\](.*?)\[/bold\]", r"`\1`", text or "")).strip()


def cell(text: str) -> str:
    """Text inside a table cell."""
    return " ".join(text.split()).replace("|", "\\|")
