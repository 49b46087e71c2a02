"""The page docs/benchmarks.md and its figures: `python docs/benchmarks.py`.

Both are made from the latest file of each part in benchmarks/results, and from nothing else; every measured number on
the page comes from there, and tests/docs/test_benchmark_pages.py checks that running this changes nothing. With the
name of a folder, the figures are also written there as PNG.
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
    """The latest file of each measured part."""
    results = {}
    for part in PARTS:
        files = sorted(file for file in folder.glob("*.json") if re.fullmatch(rf"\d{{4}}-\d\d-\d\d-{part}", file.stem))
        if files:
            results[part] = json.loads(files[-1].read_text(encoding="utf-8"))
    return results


def value(results: Results, name: str) -> float:
    return float(results["figures"][name]["value"])


def number(value: float | None) -> str:
    """Three significant digits."""
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
    """The first columns are text, aligned left; the others are numbers."""
    lines = [head, ["---" if column < left else "--:" for column in range(len(head))], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def figures_table(results: Results) -> str:
    rows = [
        (name, number(figure["value"]), aim(figure), reached(figure)) for name, figure in results["figures"].items()
    ]
    return table(("figure", "measured", "target", ""), rows)


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

Every figure is a ratio of CPU times within one run, unless its name says otherwise: seconds depend on the machine and
its load, ratios less so. Each side runs in its own process, alternating, on the same log, and the median over the
rounds in the file of results counts. All logs are simulated, so that the ground truth is known and everybody can make
the same log; no figure here is about real users.

The page is written by `docs/benchmarks.py` from the files in `benchmarks/results`; no measured number on it is typed by
hand. The commit that each part was measured at is in the [table of machines](#machines-versions-and-commits).
"""


def summary(parts: Mapping[str, Results]) -> str:
    """All figures with a target, reached or missed."""
    rows = [
        (f"[{part}](#{ANCHORS[part]})", name, number(figure["value"]), aim(figure), reached(figure))
        for part, results in parts.items()
        for name, figure in results["figures"].items()
        if figure["aim"]
    ]
    missed = sum(row[-1] != "reached" for row in rows)
    return SUMMARY.format(
        figures=len(rows), missed=missed, table=table(("part", "figure", "measured", "target", ""), rows, left=2)
    )


SUMMARY = """\
## Summary

{figures} figures had a target before they were measured, and {missed} of them missed it; they stay on the page, with
their targets. A ratio *theirs / ours* is how many times as much CPU they take.

![CPU of others as a multiple of ours](benchmarks/ratios.svg)

{table}"""


def machines(parts: Mapping[str, Results]) -> str:
    """Machine, versions and commit of each part."""
    rows = []
    for part, results in parts.items():
        machine = results["machine"]
        packages = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
        where = f"{machine['cores']} cores, {machine['memory']:g} GB, Python {machine['python']}"
        rows.append((part, results["date"][:10], results["commit"] or "not recorded", where, packages))
    head = ("part", "date", "commit", "machine", "versions")
    return "## Machines, versions and commits\n\n" + table(head, rows, left=5)


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

The log has {lists:,} lists of 10 with text names, in {contexts:,} contexts, and {pairs:,} distinct context-item pairs:
a long tail. Counting cannot be cheaper than a scan of the same columns, and hardly cheaper than the bare query for the
same histogram, which has no checks, rejection reasons or manifest. Counting ran with a memory limit of 1 GB.

![CPU of the steps](benchmarks/limits.svg)

{took}
{table}"""


def experiments(results: Results) -> str:
    return EXPERIMENTS.format(table=figures_table(results))


EXPERIMENTS = """\
## The paper's experiments against plain loops

One repetition of the paper's Fig. 2, 1,000 lists, all methods and all δ, for each click model. The loops iterate over
lists and items, count once for all methods, and call SciPy for one quantile at a time. They draw the same logs and must
give the same errors to within 1e-9.

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

`benchmarks/plain_models.py` has click models as one writes them first, in the style of PyClick: one object per session,
loops over sessions and results, parameters in nested dictionaries. `cm` and `dcm` are counted in one pass, `dcm` down
to the last click as in the paper; `pbm` takes {rounds} iterations of expectation-maximisation. Both sides go from the
file to the parameters.

The loops get the lists of every tenth context ({few:,} of {lists:,} for `cm`): their work per list does not depend on
the number of lists. Ours is measured on that tenth and on all lists, where the start of Python and DuckDB matters less.
*CPU per list* compares the loops on the tenth with ours on all lists.

{took}
{table}
The results agree: for `cm` and `dcm` every count of the {pairs:,} pairs is equal. For `pbm` the examination
probabilities differ by at most {apart}, and θ of pairs with at least {often} impressions by {theta} (root mean square):
the loops stop before they have converged, and add a pseudo-click and a pseudo-skip to every parameter, as PyClick does.
With the same smoothing and until convergence both agree (`tests/docs/test_benchmarks.py`).

On a long tail the histogram is hardly shorter than the log, and plain Python needs only one pass too. These seconds do
not show what the loops leave out: every session is an object in memory, nothing is validated, and their counts can be
neither stored nor added.
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
            rmse = [row[key] for key in ("rmse", "rmse_often", "rmse_position") for row in (ours, left)]
            errors.append((f"`{model}`, {log}", *("–" if error is None else f"{error:.4f}" for error in rmse)))
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
stream through memory, accelerators. `prudent` uses the fact that three models with one parameter per pair need no
gradients: `cm` and `dcm` are counted, and `pbm` has a concave likelihood of a histogram. This comparison is about those
three, on a CPU.

**The logs** have {lists:,} lists of 10 each, simulated from the model that is then fitted. *Long tail*: 100,000
contexts, {tail[pairs]:,} pairs that were shown, {tail[often]:,} of them at least 100 times. *Head*: 2,000 contexts,
{head[pairs]:,} pairs, {head[often]:,} of them at least 100 times. Names are integers on both sides. For CLAX every pair
is indexed in advance, which saves it work, and it gets a tenth of the lists on top for early stopping.

**CLAX's settings** are those of `experiments/1-yandex-baseline` in its repository, where its authors compare the same
models: AdamW with a learning rate of .01, batches of 4,096, at most 100 epochs, and the trainer's own early stopping.
Its README has .003, which took more epochs to the same accuracy in a trial of ours, and its first example .0003, which
was far from converged after its ten epochs. *CLAX* is the whole process as in its examples, with its own Parquet reader
in PyTorch's loader, without extra workers. *Training alone* is `Trainer.train` on arrays in memory after compilation:
no start, no reading, no compiling.

**Ours** is the whole process from the Parquet file: start, count, fit, prior. *Our fit alone* begins with the counts
in memory. θ is the posterior mean under the prior of the default bound, the column `mean` of every policy; `dcm`
has `tail=em`.

CPU seconds, and ratios theirs / ours:

{times}
Root mean square errors against the ground truth: of θ weighted by impressions, of θ of pairs shown at least 100 times,
and of the position parameters (p, or λ without the last position). Only pₖθ is identified in `pbm`, so p₁ = 1 on both
sides.

{errors}
![Error of θ against CPU time](benchmarks/clax.svg)

CLAX's errors are those of the model that its trainer returns. It is meant to restore the best epoch, the one before the
last, but with these versions keeps the last; the figure shows all epochs. Our prior uses how often each item was
shown, which is informative about θ where production ranks well; CLAX regularises by early stopping.

Where pairs are shown often, CLAX estimates λ of `dcm` better than we do: counts do not keep whole lists and use means
over the lists of a context instead, while CLAX sees every list. And where there are few pairs, its training alone is
about as fast as our whole process, because counting a million lists takes the same time however little is fitted
afterwards.
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
policies equal byte for byte. Spark is for logs that do not fit on one machine. This table shows the overhead of its
start, shuffle and rows on one machine.

{took}
{table}"""


def sizes(results: Results) -> str:
    columns = {
        "bytes per list": "bytes per list in",
        "rows of counts per list": "cells per list",
        "bytes per row of counts": "bytes per cell out",
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

The same 100,000 contexts, with more and more lists. Counting ran with a memory limit of {memory}, ranking without one.
At 100,000 lists most contexts have one or two lists, positions cannot be compared, and `model=auto` uses `dcm`, with a
warning.

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

Counts of {contexts:,} contexts with {pairs:,} context-item pairs in {rows:,} cells ({megabytes:,} MB), generated
directly, ranked by `prudent rank --memory {memory}` with its defaults.

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

A holdout of {lists:,} lists of 10, all default estimators, {replicates} bootstrap replicates; the memory limit of
DuckDB is {memory}, and arrays come on top of it.

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
## Run the benchmarks

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

`ROUNDS=1` measures once, `SIZE=100k` runs a part on a tenth of the lists, and `BENCH_DIR` is the folder for temporary
files.
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
