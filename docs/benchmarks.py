"""The page docs/benchmarks.md and its figures: `python docs/benchmarks.py`.

Both are made from the latest file of each part in benchmarks/results, and from nothing else; every measured number on
the page comes from there, and tests/test_benchmark_pages.py checks that running this changes nothing. With the name of
a folder, the figures are also put there as PNG, to be looked at.
"""

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "benchmarks" / "results"
PICTURES = DOCS / "benchmarks"
PARTS = ("limits", "experiments", "plain", "clax", "spark", "sizes", "pairs", "evaluate")
MODELS = ("cm", "dcm", "pbm")
LOGS = ("long tail", "head")

Results = Mapping[str, Any]


# --- results ---------------------------------------------------------------------------------------------------------


def latest(folder: Path = RESULTS) -> dict[str, Results]:
    """The latest file of each part that was measured."""
    found = {}
    for part in PARTS:
        files = sorted(file for file in folder.glob("*.json") if re.fullmatch(rf"\d{{4}}-\d\d-\d\d-{part}", file.stem))
        if files:
            found[part] = json.loads(files[-1].read_text(encoding="utf-8"))
    return found


def value(results: Results, name: str) -> float:
    return float(results["figures"][name]["value"])


def number(value: float | None) -> str:
    """Three digits, and no more of them than there are."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}" if abs(value) >= 1 else f"{value:.2g}"


def aim(figure: Mapping[str, Any]) -> str:
    limits = figure["aim"] or {}
    return "".join(f"{sign} {limits[key]:g}" for key, sign in (("at_most", "≤"), ("at_least", "≥")) if key in limits)


def reached(figure: Mapping[str, Any]) -> str:
    limits = figure["aim"]
    if not limits:
        return ""
    missed = figure["value"] > limits.get("at_most", float("inf")) or figure["value"] < limits.get("at_least", 0)
    return "**missed**" if missed else "reached"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """The first columns are words, and begin at the left; the others are numbers."""
    lines = [head, ["---" if column < left else "--:" for column in range(len(head))], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def figures_table(results: Results) -> str:
    rows = [
        (name, number(figure["value"]), aim(figure), reached(figure)) for name, figure in results["figures"].items()
    ]
    return table(("figure", "is", "aim", ""), rows)


def took_table(results: Results, names: Mapping[str, str]) -> str:
    rows = [
        (words, *(number(results["took"][work][key]) for key in ("cpu", "wall", "peak")))
        for work, words in names.items()
        if work in results["took"]
    ]
    return table(("work", "CPU s", "wall s", "peak GB"), rows)


# --- the page --------------------------------------------------------------------------------------------------------


def page(parts: Mapping[str, Results]) -> str:
    sections = [INTRO, summary(parts), machines(parts)]
    sections += [SECTIONS[part](parts[part]) for part in PARTS if part in parts]
    return "\n".join([*sections, REPEAT])


INTRO = """\
# Benchmarks

How fast `prudent` is, and next to whom. Every figure is a ratio of CPU times within one run, unless its name says
otherwise: seconds depend on the machine and on who else uses it, ratios less so. Each side runs in a process of its
own, both in turn, on the same log, and the median counts, of as many rounds as the file of results says. All logs are
simulated, because then the truth is known and everybody can make the same log again; no figure here is about real
users.

The page is written by `docs/benchmarks.py` from the files in `benchmarks/results`; no measured number on it was typed
by hand.
"""


def summary(parts: Mapping[str, Results]) -> str:
    """All figures that had an aim, met or not."""
    rows = [
        (f"[{part}](#{ANCHORS[part]})", name, number(figure["value"]), aim(figure), reached(figure))
        for part, results in parts.items()
        for name, figure in results["figures"].items()
        if figure["aim"]
    ]
    missed = sum(row[-1] != "reached" for row in rows)
    return SUMMARY.format(
        figures=len(rows), missed=missed, table=table(("part", "figure", "is", "aim", ""), rows, left=2)
    )


SUMMARY = """\
## In short

{figures} figures had an aim before they were measured, and {missed} of them missed it; they stay on the page, with
their aims. A ratio *theirs / ours* says how many times more CPU they take.

![How many times more CPU others take](benchmarks/ratios.svg)

{table}"""


def machines(parts: Mapping[str, Results]) -> str:
    """What it ran on."""
    rows = []
    for part, results in parts.items():
        machine = results["machine"]
        packages = ", ".join(f"{name} {of}" for name, of in results["versions"].items())
        where = f"{machine['cores']} cores, {machine['memory']:g} GB, Python {machine['python']}"
        rows.append((part, results["date"][:10], where, packages))
    return "## What it ran on\n\n" + table(("part", "date", "machine", "versions"), rows, left=4)


def limits(results: Results) -> str:
    works = {
        "scan": "read the three columns, nothing else",
        "bare": "the bare histogram query",
        "count": "`prudent.count`",
        "rank": "`prudent.rank` with its defaults, from counts to written lists",
        "rank_dcm": "the same with `model=dcm`",
        "read_yandex": "read the same lists from text in the format `yandex`",
        "show_help": "`prudent --help`",
    }
    return LIMITS.format(**results["about"], took=took_table(results, works), table=figures_table(results))


LIMITS = """\
## Against the physical limit

The log has {lists:,} lists of 10 with names of text, in {contexts:,} contexts, and {pairs:,} different context-item
pairs: a long tail. No count can be cheaper than reading the same columns, and none that writes the same histogram much
cheaper than the bare query for it, without checks, reasons and manifest. Counting ran under a memory limit of 1 GB.

![CPU of the steps](benchmarks/limits.svg)

{took}
{table}"""


def experiments(results: Results) -> str:
    return EXPERIMENTS.format(table=figures_table(results))


EXPERIMENTS = """\
## The paper's experiments against plain loops

One repetition of the paper's Fig. 2, 1,000 lists, all methods and all δ, for each click model. The loops go through
lists and items one by one, count once for all methods, and ask SciPy for one quantile at a time. They draw the same
logs and must find the same errors to 1e-9.

{table}"""


def plain(results: Results) -> str:
    about, rows = results["about"], {row["model"]: row for row in results["rows"]}
    works = {"loops": "plain loops, a tenth", "ours": "ours, a tenth", "ours, all lists": "ours, all lists"}
    names = {f"{model}: {work}": f"`{model}`, {words}" for model in MODELS for work, words in works.items()}
    return PLAIN.format(
        rounds=about["rounds of EM"],
        few=rows["cm"]["lists"],
        lists=about["lists"],
        pairs=rows["cm"]["pairs"],
        apart=number(rows["pbm"]["largest difference"]),
        often=about["θ compared from impressions"],
        theta=number(rows["pbm"]["root mean square difference of θ"]),
        took=took_table(results, names),
        table=figures_table(results),
    )


PLAIN = """\
## Against plain Python

`benchmarks/plain_models.py` has click models as one writes them first, in the manner of PyClick: one object per
session, loops over sessions and results, parameters in nested dictionaries. `cm` and `dcm` are counted in one pass,
`dcm` down to the last click as the paper does; `pbm` takes {rounds} rounds of expectation-maximisation. Both sides go
from the file to the parameters.

The loops get the lists of every tenth context ({few:,} of {lists:,} for `cm`): their work per list is the same in a
tenth as in the whole. Ours is measured on that tenth and on all lists, where starting Python and DuckDB weighs less.
*CPU per list* compares the loops on the tenth with ours on all lists.

{took}
{table}
Both sides find the same: for `cm` and `dcm` every count of the {pairs:,} pairs is equal. For `pbm` the examination
probabilities are at most {apart} apart, and θ of pairs with at least {often} impressions {theta} (root mean square):
the loops stop before they have converged, and add an imagined click and an imagined skip to every parameter, as PyClick
does. With the same smoothing and until convergence both agree (`tests/test_benchmarks.py`).

On a long tail the histogram is hardly shorter than the log, and one pass of plain Python is one pass too. What the
loops leave out is not in these seconds: every session is an object in memory, nothing is checked, and their counts can
be neither kept nor added.
"""


def clax(results: Results) -> str:
    rows, versions = results["rows"], results["versions"]
    times, errors = [], []
    for log in LOGS:
        for model in MODELS:
            ours, left = (row_of(rows, model, log, side) for side in ("ours", "CLAX, left"))
            epochs = sum((row["model"], row["log"], row["side"]) == (model, log, "CLAX") for row in rows)
            where = f"{model}, {log}"
            times.append(
                (
                    f"`{model}`, {log}",
                    number(ours["cpu"]),
                    number(ours["fit"]),
                    number(results["took"][f"{where}: CLAX"]["cpu"]),
                    number(results["took"][f"{where}: CLAX, training alone"]["cpu"]),
                    f"{epochs}{', cut' if left['cut'] else ''}",
                    *(number(value(results, f"{where}: {ratio}")) for ratio in CLAX_RATIOS),
                )
            )
            found = [row[key] for key in ("rmse", "rmse_often", "rmse_position") for row in (ours, left)]
            errors.append((f"`{model}`, {log}", *("–" if error is None else f"{error:.4f}" for error in found)))
    heads = (
        ("", "ours", "our fit alone", "CLAX", "training alone", "epochs", *CLAX_RATIOS),
        ("", "θ, ours", "CLAX", "θ often shown, ours", "CLAX", "position, ours", "CLAX"),
    )
    tail, head = (row_of(rows, "pbm", log, "ours") for log in LOGS)
    return CLAX.format(
        clax=versions["clax-models"],
        jax=versions["jax"],
        lists=results["about"]["lists"],
        tail=tail,
        head=head,
        times=table(heads[0], times),
        errors=table(heads[1], errors),
    )


CLAX_RATIOS = ("CLAX / ours", "CLAX, training alone / ours", "CLAX, training alone / our fit alone")
CLAX = """\
## Against CLAX

[CLAX](https://pypi.org/project/clax-models/) {clax} trains click models by gradient descent in JAX {jax}. It can do
much that `prudent` cannot: parameters that are networks over features, more click models, mixtures of them, logs that
stream through memory, accelerators. `prudent` uses that three models with one parameter per pair need no gradients:
`cm` and `dcm` are counted, and `pbm` is a concave likelihood of a histogram. This comparison is about those three, on
a processor without an accelerator.

**The logs** have {lists:,} lists of 10 each, drawn from the model that is then fitted. *Long tail*: 100,000 contexts,
{tail[pairs]:,} pairs that were shown, {tail[often]:,} of them at least 100 times. *Head*: 2,000 contexts,
{head[pairs]:,} pairs, {head[often]:,} of them at least 100 times. Names are numbers on both sides. For CLAX every pair
is numbered already, which is work that it is spared, and it gets a tenth of the lists on top, to know when to stop.

**CLAX's settings** are those of `experiments/1-yandex-baseline` in its repository, where its authors compare these very
models: AdamW with a learning rate of .01, batches of 4,096, at most 100 epochs, and the trainer's own early stopping.
Its README has .003, which took more epochs to the same accuracy in a trial of ours, and its first example .0003, which
was far from done after the ten epochs that it asks for. *CLAX* is the whole process as its examples have it, with its
own reader of Parquet files in PyTorch's loader, without extra workers. *Training alone* is `Trainer.train` on arrays
in memory after everything has been compiled: no start, no reading, no compiling.

**Ours** is the whole process from the Parquet file: start, count, fit, prior. *Our fit alone* begins where the counts
are in memory. θ is the posterior mean under the prior of the default bound, the column `mean` of every policy; `dcm`
has `tail=em`.

CPU seconds, and ratios theirs / ours:

{times}
Root mean square errors against the truth: of θ weighted by impressions, of θ of pairs shown at least 100 times, and of
the position parameters (p, or λ without the last position). Only pₖθ is identified in `pbm`, so p₁ = 1 on both sides.

{errors}
![Error of θ against CPU time](benchmarks/clax.svg)

CLAX's errors are those of the model that its trainer leaves. It means to restore the best epoch, the one before the
last, but with these versions keeps the last; the figure shows all epochs. Our prior knows how often each item was
shown, which says something about θ where production ranks well; CLAX's estimates are held back by stopping early.

Where pairs are shown often, CLAX finds λ of `dcm` better than we do: counts have forgotten whole lists, and means over
the lists of a context stand for them, while CLAX sees every list. And where there are few pairs, its training alone is
about as fast as our whole process: counting a million lists takes what it takes, however little is then to be fitted.
"""


def row_of(rows: Iterable[Mapping[str, Any]], model: str, log: str, side: str) -> Mapping[str, Any]:
    return next(row for row in rows if (row["model"], row["log"], row["side"]) == (model, log, side))


def spark(results: Results) -> str:
    engines = {"duckdb": "DuckDB", "spark": "Spark, local"}
    works = {f"{verb}_by_{key}": f"{verb}, {name}" for verb in ("count", "rank") for key, name in engines.items()}
    took = took_table(results, works)
    return SPARK.format(**results["about"], took=took, table=figures_table(results))


SPARK = """\
## Spark on one machine

The same log of {lists:,} lists, counted and ranked by both engines from a cold start; the counts must be equal, and the
policies to the byte. Spark is for logs that one machine does not hold. On one machine its start, its shuffle and its
rows cost what this table shows.

{took}
{table}"""


def sizes(results: Results) -> str:
    columns = {
        "bytes per list": "bytes per list in",
        "rows of counts per list": "rows of counts per list",
        "bytes per row of counts": "bytes per row out",
        "count: cpu": "count: CPU s",
        "count: peak": "count: GB",
        "rank: cpu": "rank: CPU s",
        "rank: peak": "rank: GB",
    }
    rows = [
        (f"{row['lists']:,}", f"{row['pairs']:,}", *(number(row[key]) for key in columns)) for row in results["rows"]
    ]
    head = ("lists", "pairs", *columns.values())
    return SIZES.format(memory=results["about"]["memory"], rows=table(head, rows), table=figures_table(results))


SIZES = """\
## Time and memory against size

The same 100,000 contexts, logged for longer and longer. Counting ran under a memory limit of {memory}, ranking under
none. At 100,000 lists most contexts have a list or two, positions cannot be compared, and `model=auto` takes `dcm`,
with a warning.

{rows}
![Time and memory against size](benchmarks/sizes.svg)

{table}"""


def pairs(results: Results) -> str:
    about = results["about"]
    took = took_table(results, {"rank": "`prudent rank`"})
    return PAIRS.format(
        **{key: about[key] for key in ("contexts", "pairs", "rows", "memory")},
        megabytes=about["MB of counts"],
        took=took,
        table=figures_table(results),
    )


PAIRS = """\
## A hundred million pairs

Counts of {contexts:,} contexts with {pairs:,} context-item pairs in {rows:,} rows ({megabytes:,} MB), made directly and
in no order, ranked by `prudent rank --memory {memory}` with its defaults.

{took}
{table}"""


def evaluate(results: Results) -> str:
    about = results["about"]
    took = took_table(results, {"split": "`prudent split`, of twice as many lists", "evaluate": "`prudent evaluate`"})
    return EVALUATE.format(
        lists=about["held-out lists"],
        replicates=about["replicates"],
        memory=about["memory of DuckDB"],
        took=took,
        table=figures_table(results),
    )


EVALUATE = """\
## Evaluating a policy

{lists:,} held-out lists of 10, all estimators of the default, {replicates} replicates of the bootstrap; DuckDB may take
{memory}, and arrays come on top of it.

{took}
{table}"""


SECTIONS = {
    "limits": limits,
    "experiments": experiments,
    "plain": plain,
    "clax": clax,
    "spark": spark,
    "sizes": sizes,
    "pairs": pairs,
    "evaluate": evaluate,
}
ANCHORS = {
    "limits": "against-the-physical-limit",
    "experiments": "the-papers-experiments-against-plain-loops",
    "plain": "against-plain-python",
    "clax": "against-clax",
    "spark": "spark-on-one-machine",
    "sizes": "time-and-memory-against-size",
    "pairs": "a-hundred-million-pairs",
    "evaluate": "evaluating-a-policy",
}
REPEAT = """\
## Do it again

```text
make bench                 limits and experiments, about ten minutes
make bench PART=plain      against plain Python, about a quarter of an hour
make bench PART=clax       against CLAX, about an hour; makes an environment of several gigabytes for it
make bench PART=spark      against Spark; needs Java
make bench PART=sizes      up to ten million lists, about half an hour
make bench PART=pairs      a hundred million pairs; needs 10 GB of disk
make bench PART=evaluate   evaluating a policy, two minutes
python docs/benchmarks.py  writes this page
```

`ROUNDS=1` measures once, `SIZE=100k` tries a part on a tenth of the lists, and `BENCH_DIR` says where temporary files
go.
"""


def main() -> None:
    import vl_convert
    from benchmark_figures import pictures
    from results import slim

    from prudent.base.chart import to_svg

    parts = latest()
    (DOCS / "benchmarks.md").write_text(page(parts), encoding="utf-8")
    PICTURES.mkdir(exist_ok=True)
    for name, drawn in pictures(parts).items():
        svg = slim(to_svg(drawn))
        (PICTURES / f"{name}.svg").write_text(svg, encoding="utf-8")
        for folder in sys.argv[1:]:
            (Path(folder) / f"{name}.png").write_bytes(vl_convert.svg_to_png(svg, scale=2))


if __name__ == "__main__":
    main()
