"""Write the reference pages, which follow from the code: the API, the registries and the commands.

A new click model, bound, estimator, baseline, export format, reader or command appears on the site by existing. The
pages go to ``reference/generated``, which is not part of the repository; a page is written only when it changes.
"""

import re
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

import typer
from python_page import python_page
from sphinx.application import Sphinx

from prudent.base.spec import Registry, _spell_value
from prudent.bounds import bounds
from prudent.bounds.feature_models import feature_models
from prudent.cli import app as cli
from prudent.click_models import click_models
from prudent.evaluation.estimators import estimators
from prudent.logs.readers import readers
from prudent.policies.baselines import baselines
from prudent.policies.export import formats
from prudent.policies.judgments.formats import judgment_formats

MODELS_INTRO = """\
# Click models

A click model describes how users examine a list and click, and so which impressions are evidence for and against an
item. Write its name for `model`, in Python and on the command line, with settings in parentheses and lists in square
brackets: `dcm(tail=truncate)`, `pbm(examination=[1, 0.7])`. `auto` chooses by held-out likelihood
([how](../../comparing.md#how-auto-chooses)). [What a wrong one costs](../../wrong-models.md) is measured, model by
model.
"""

BOUNDS_INTRO = """\
# Bounds

A bound turns the evidence for an item, clicks n₊ and skips n₋, into the score that the item is ranked by. Write its
name for `bound`, in Python and on the command line: `eb(delta=0.2, pool=context)`. What each one guarantees is in
[How we read the paper](../../reading.md#what-each-bound-guarantees).
"""

FEATURE_MODELS_INTRO = """\
# Feature models

A feature model learns what [features](../../how-to/features.md) say about clicks. Write its
name for `feature_model`, in Python and on the command line: `lightgbm(decreasing=[price])`.
"""

ESTIMATORS_INTRO = """\
# Estimators

An estimator predicts what a policy would earn on the lists of a holdout, for `evaluate`, `gate` and `report`. Write its
name for `estimator`: `dr(clip=10)`. What each one computes and assumes is in
[Estimators](../../estimators.md#which-estimator).
"""

BASELINES_INTRO = """\
# Baselines

Baselines weight whole lists, without a click model and without pessimism. Write the name of one for `baseline`:
`prudent.rank_baseline(log, "ips(clip=50)")`, `prudent rank LOG -o p.parquet --baseline "ips(clip=50)"`. They read the
log itself, since counts do not keep whole lists. How we interpret them is in
[How we read the paper](../../reading.md#baselines).
"""

EXPORTS_INTRO = """\
# Export formats

Write the name of one for `prudent export --format`, with settings in parentheses: `sql(table=lists)`. Each has a
[how-to guide](../../how-to/index.md).
"""

JUDGMENTS_INTRO = """\
# Judgment formats

For `prudent export`, where its input is a file of [judgments](../../how-to/judgments.md).
"""

READERS_INTRO = """\
# Readers

Predefined log formats. Write the name of one for `--format` on the command line; in Python each is a function of
`prudent.readers`. [Bring your own log](../../logs.md) has the general layouts.
"""

CLI_INTRO = """\
# Command line

Every command ends with one of these exit codes.

| code | meaning |
|---|---|
| 0 | done |
| 1 | a gate failed |
| 2 | wrong usage: an unknown name, a value out of range |
| 3 | bad input: a log, counts or policy that cannot be used |
| 4 | the output could not be written; an existing file is unchanged |
| 130 | interrupted from the keyboard |
| 141 | the reader of the output closed the pipe |
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
        "python.md": python_page(),
        "click-models.md": MODELS_INTRO + registry_page(click_models),
        "bounds.md": BOUNDS_INTRO + registry_page(bounds),
        "feature-models.md": FEATURE_MODELS_INTRO + registry_page(feature_models),
        "estimators.md": ESTIMATORS_INTRO + registry_page(estimators),
        "baselines.md": BASELINES_INTRO + registry_page(baselines),
        "exports.md": EXPORTS_INTRO + registry_page(formats),
        "judgments.md": JUDGMENTS_INTRO + registry_page(judgment_formats),
        "readers.md": READERS_INTRO + readers_page(),
        "command-line.md": CLI_INTRO + cli_page(),
    }
    for old in set(folder.glob("*.md")) - {folder / name for name in pages}:
        old.unlink()
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
        sections.append(f"```{{eval-rst}}\n.. autoclass:: {cls.__module__}.{cls.__qualname__}\n   :no-index:\n```\n")
    return "".join(sections)


def setting_default(field: "Field[Any]") -> str:
    """A default as a user would type it."""
    default = field.default if field.default_factory is MISSING else field.default_factory()
    if default is MISSING:
        return "required"
    if default is None or default == ():
        return "estimated from the log"
    return f"`{_spell_value(default)}`"


def readers_page() -> str:
    """One section per predefined format: its reader."""
    sections = []
    for name in readers:
        reader = readers[name]
        where = f"{reader.__module__}.{reader.__qualname__}"
        sections.append(f"\n## `{name}`\n\n```{{eval-rst}}\n.. autofunction:: {where}\n   :no-index:\n```\n")
    return "".join(sections)


def cli_page() -> str:
    """One section per command: its purpose, its usage, its arguments and options."""
    group: Any = typer.main.get_command(cli)
    top = group.make_context("prudent", [], resilient_parsing=True)
    sections = [options_table("Options of `prudent` itself", group, top)]
    for name in group.list_commands(top):
        command = group.get_command(top, name)
        context = command.make_context(name, [], parent=top, resilient_parsing=True)
        usage = " ".join(["prudent", name, *command.collect_usage_pieces(context)])
        sections.append(f"\n## `prudent {name}`\n\n{plain(command.help)}\n\n```text\n{usage}\n```\n\n")
        with command.documented():
            sections.append(options_table("", command, context))
    return "".join(sections)


def options_table(title: str, command: Any, context: Any) -> str:
    """Arguments first, then options, as in the help text."""
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
    return f"{heading}| option | meaning |\n|---|---|\n{''.join(rows)}\n"


def plain(text: str | None) -> str:
    """Help text with the terminal's marks for bold and dim turned into Markdown's."""
    return re.sub(r"\[/?dim\]", "", re.sub(r"\[bold\](.*?)\[/bold\]", r"`\1`", text or "")).strip()


def cell(text: str) -> str:
    """Text inside a table cell."""
    return " ".join(text.split()).replace("|", "\\|")
