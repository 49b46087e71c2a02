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
TABLE = ("tail", "head", "real", "integers", "rows")  # one part for each log of the table
PARTS = (*TABLE, "sizes", "pairs", "clax", "models", "spark", "evaluate", "experiments")
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
    missed = figure["value"] > limits.get("at_most", float("inf")) or figure["value"] < limits.get(
        "at_least", float("-inf")
    )
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
    sections = [INTRO, *gaps(parts), summary(parts), machines(parts)]
    if logs := {part: parts[part] for part in TABLE if part in parts}:
        sections.append(work_by_log(logs))
    sections += [SECTIONS[part](parts[part]) for part in PARTS if part in SECTIONS and part in parts]
    return "\n".join([*sections, REPEAT])


INTRO = """\
# Benchmarks

Every figure is a ratio of CPU times within one run, unless its name says otherwise: seconds depend on the machine and
its load, ratios less so. Each side runs in its own process, alternating, on the same log, and the median over the
rounds in the file of results counts. Logs are simulated, so that the ground truth is known and everybody can make the
same log; only the click models are also fitted to real clicks, where that part was measured.

The page is written by `docs/benchmarks.py` from the files in `benchmarks/results`; no measured number on it is typed by
hand. The commit that each part was measured at is in the [table of machines](#machines-versions-and-commits).
"""


def gaps(parts: Mapping[str, Results]) -> list[str]:
    """What the page cannot say: parts that were measured long ago, or never."""
    old = [part for part, results in parts.items() if results["date"] < KERNEL and part != "experiments"]
    missing = [part for part in PARTS if part not in parts]
    texts = []
    if old:
        texts.append(OLD.format(parts=", ".join(f"[{part}](#{ANCHORS.get(part, WORK_BY_LOG)})" for part in old)))
    if missing:
        texts.append(MISSING.format(parts=", ".join(f"`{part}`" for part in missing)))
    return texts


KERNEL = "2026-11-18T14:18"
"""When a compiled kernel began to count lists; experiments count none."""
OLD = """\
**Measured before the compiled kernel**, when SQL counted lists: {parts}. Our side of these parts is that of their
commits, and so are their targets; counting takes a fraction of that today.
"""
MISSING = """\
**Not measured yet**: {parts}. There are benchmarks for these parts, with targets, and no results.
"""


def summary(parts: Mapping[str, Results]) -> str:
    """All figures with a target, reached or missed."""
    rows = [
        (f"[{part}](#{ANCHORS.get(part, WORK_BY_LOG)})", name, number(figure["value"]), aim(figure), reached(figure))
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
        where += f", load {machine['load']:g}" if "load" in machine else ""
        rows.append((part, results["date"][:10], results["commit"] or "not recorded", where, packages))
    head = ("part", "date", "commit", "machine", "versions")
    return MACHINES + table(head, rows, left=5)


MACHINES = """\
## Machines, versions and commits

Where it was recorded, *load* is the mean number of processes at work in the last 15 minutes, those that were measured
among them. Where it is above the number of cores, others were at work: CPU seconds are then too many, since caches are
shared, and wall seconds say nothing.

"""


def work_by_log(logs: Mapping[str, Results]) -> str:
    """CPU seconds of all work on all logs, and what others take as a multiple of ours."""
    names = list(dict.fromkeys(work for results in logs.values() for work in results["took"]))
    names.sort(key=lambda work: SIDES.index(side_of(work)))
    seconds = [
        (words_of(work), *(number(took_of(results, work, "cpu")) for results in logs.values())) for work in names
    ]
    scans = [
        (words_of(work), *(number(over_scan(results, work)) for results in logs.values()))
        for work in names
        if side_of(work) == "ours"
    ]
    others = dict.fromkeys(name for results in logs.values() for name in results["figures"] if " / ours, " in name)
    ratios = [(name, *(figure_of(results, name) for results in logs.values())) for name in others]
    peaks = [
        (words_of(work), *(number(took_of(results, work, "peak")) for results in logs.values()))
        for work in names
        if work == "scan" or work.endswith((", pbm", ", cm"))
    ]
    about = [
        (
            log,
            f"{results['about']['lists']:,}",
            f"{results['about']['contexts']:,}",
            f"{results['about']['pairs']:,}",
            f"{results['about']['cells']:,}",
            number(results["about"]["MB of log"]),
            number(results["about"]["MB of counts"]),
        )
        for log, results in logs.items()
    ]
    first = next(iter(logs.values()))["about"]
    return WORK_BY_LOG_TEXT.format(
        memory=first["memory"],
        em=first["rounds of EM"],
        logs=table(("log", "lists", "contexts", "pairs", "cells", "MB", "MB of counts"), about),
        seconds=table(("CPU s", *logs), seconds),
        scans=table(("ours / bare scan", *logs), scans),
        ratios=table(("theirs / ours", *logs), ratios),
        peaks=table(("peak GB", *logs), peaks),
    )


SIDES = ("scan", "ours", "sql", "polars", "loops")


def side_of(work: str) -> str:
    side = work.partition(": ")[0]
    return side if side in SIDES else "ours"


def words_of(work: str) -> str:
    """A work as a row is called."""
    side, _, rest = work.rpartition(": ")
    what, _, model = rest.partition(", ")
    if what in ("scan", "count"):
        return {"scan": "bare scan", "count": "`prudent.count`"}[what]
    side = {"": "ours", "sql": "SQL by hand", "polars": "Polars by hand", "loops": "plain loops"}[side]
    like = ", Hoeffding" if what == "policy like others" else ""
    return f"{side}: {'policy' if like else what}, `{model}`{like}"


def took_of(results: Results, work: str, key: str) -> float | None:
    return float(results["took"][work][key]) if work in results["took"] else None


def over_scan(results: Results, work: str) -> float | None:
    cpu = took_of(results, work, "cpu")
    return None if cpu is None else cpu / float(results["took"]["scan"]["cpu"])


def figure_of(results: Results, name: str) -> str:
    return number(value(results, name)) if name in results["figures"] else "–"


WORK_BY_LOG = "from-the-file-to-evidence-and-to-a-policy"
WORK_BY_LOG_TEXT = """\
## From the file to evidence and to a policy

Every cell is a process of its own, from its start to the written result. **Evidence** is clicks and skips of every
context-item pair under a click model, **policy** the ranked lists in a file. Ours ran with a memory limit of {memory}
for DuckDB; `evidence, dcm` is `dcm(tail=truncate)`, which is what plain loops count. The *bare scan* reads the columns
and does nothing else: nothing that reads the log is cheaper.

{logs}
`tail`, `head` and `real` have one row per list and names of text; `integers` and `rows` are `tail` with integer names,
and with one row per shown item. Contexts of `real` follow Zipf's law, and most are seen once, as in logs of search.

![CPU of the steps](benchmarks/table.svg)

{seconds}
{scans}
*By hand* is one query or expression for the evidence of `cm`, and for lists by the click rate minus Hoeffding's width:
no checks, no rejected lists, no memory limit, no model with parameters to fit. Ours makes the same lists, in the row
`policy, cm, Hoeffding`; they are compared list by list. *Plain loops* have one object per session, loops over sessions
and results, and parameters in nested dictionaries (`benchmarks/plain_models.py`), as in PyClick; the package of that
name on PyPI is another one. They get the whole log. `pbm` and `ubm` take {em} iterations of expectation-maximisation; a
few of them were run, and the time of the others, which is the same, was added.

{ratios}
Evidence of `cm` is one group-by. What is not compared here is what by hand does not have: parameters of positions,
priors, bounds that use them, and counts that are kept and added up.

{peaks}"""


def experiments(results: Results) -> str:
    return EXPERIMENTS.format(table=figures_table(results))


EXPERIMENTS = """\
## The paper's experiments against plain loops

One repetition of the paper's Fig. 2, 1,000 lists, all methods and all δ, for each click model. The loops iterate over
lists and items, count once for all methods, and call SciPy for one quantile at a time. They draw the same logs and must
give the same errors to within 1e-9.

{table}"""


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
contexts, {tail[pairs]:,} pairs that were shown, {tail[often]:,} of them at least 100 times. *Head*: few contexts,
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

Where there are few pairs, the ratios of training alone are smallest, because counting a million lists takes the same
time however little is fitted afterwards. There CLAX's p of `pbm` is a little closer to the truth than ours, which is
fitted to the contexts with most lists; errors of both are in the table.
"""


def row_of(rows: Iterable[Mapping[str, Any]], model: str, log: str, side: str) -> Mapping[str, Any]:
    return next(row for row in rows if (row["model"], row["log"], row["side"]) == (model, log, side))


def models(results: Results) -> str:
    about, rows = results["about"], results["rows"]
    sides = list(dict.fromkeys(row["side"] for row in rows))
    by_model = {row["model"]: {} for row in rows}
    for row in rows:
        by_model[row["model"]][row["side"]] = row
    shown = [
        (
            f"`{model}`",
            *(likelihood(sided[side]["likelihood"]) if side in sided else "–" for side in sides),
            *(number(sided[side]["fit"]) if side in sided else "–" for side in sides),
        )
        for model, sided in by_model.items()
    ]
    head = ("", *(f"{side}, likelihood" for side in sides), *(f"{side}, fit s" for side in sides))
    return MODELS_TEXT.format(
        train=about["train"],
        test=about["test"],
        pairs=about["pairs"],
        em=about["rounds of EM"],
        rows=table(head, shown),
        table=figures_table(results),
    )


def likelihood(value: float | None) -> str:
    return "excluded" if value is None else f"{value:.3f}"


MODELS_TEXT = """\
## Click models on real clicks

Log-likelihood per held-out list, and CPU seconds of the fit, on the public sample of Yandex's log: {train:,} lists of
10 for training and {test:,} of another day, {pairs:,} context-item pairs of 20 queries. Ours are all registered models;
θ is the posterior mean under the fitted prior, and the fit begins with the counts in memory. *Plain* are loops in the
style of PyClick, with {em} iterations for models that need them. *CLAX* trains with the settings of its authors, with a
tenth of the training lists for early stopping.

{rows}
{table}"""


def spark(results: Results) -> str:
    lists = results["about"]["lists"]
    works = {
        "start_spark": "start Spark, nothing else",
        "count_by_duckdb": "count, DuckDB",
        "count_to_file": "count to a file, Spark",
        "count_by_spark": "count to a folder, Spark",
        "count_by_duckdb, ten times": f"count {10 * lists:,} lists, DuckDB",
        "count_to_file, ten times": f"count {10 * lists:,} lists to a file, Spark",
        "rank_by_duckdb": "rank, DuckDB",
        "rank_by_spark": "rank, Spark",
    }
    took = took_table(results, works)
    return SPARK.format(**results["about"], took=took, table=figures_table(results))


SPARK = """\
## Spark on one machine

The same log of {lists:,} lists, counted and ranked by both engines from a cold start; the counts must be equal, and the
policies equal byte for byte. Spark is for logs that do not fit on one machine. This table shows its overhead on one:
starting and compiling Java, and moving lists to Python. To one file, tasks count what they read and nothing is
shuffled; to a folder, as on a cluster, all lists of a context go to one task.

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
        "policy: cpu": "file to policy: CPU s",
        "policy: peak": "file to policy: GB",
    }
    columns = {key: words for key, words in columns.items() if key in results["rows"][0]}
    rows = [
        (f"{row['lists']:,}", f"{row['pairs']:,}", *(number(row[key]) for key in columns)) for row in results["rows"]
    ]
    head = ("lists", "pairs", *columns.values())
    return SIZES.format(memory=results["about"]["memory"], rows=table(head, rows), table=figures_table(results))


SIZES = """\
## Time and memory against size

The same 100,000 contexts, with more and more lists; the memory limit of DuckDB is {memory}. `rank` begins with counts
in a file, *file to policy* with the log. At 100,000 lists most contexts have one or two lists.

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
    works = {
        "split": "`prudent split`, of twice as many lists",
        "evaluate": "`prudent evaluate`",
        "report": "`prudent report`, with its gate and the training counts",
    }
    took = took_table(results, works)
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
    "sizes": sizes,
    "pairs": pairs,
    "clax": clax,
    "models": models,
    "spark": spark,
    "evaluate": evaluate,
    "experiments": experiments,
}
ANCHORS = {
    "sizes": "time-and-memory-against-size",
    "pairs": "a-hundred-million-pairs",
    "clax": "against-clax",
    "models": "click-models-on-real-clicks",
    "spark": "spark-on-one-machine",
    "evaluate": "evaluating-a-policy",
    "experiments": "the-papers-experiments-against-plain-loops",
}
REPEAT = """\
## Run the benchmarks

```text
make bench                 tail and experiments, about half an hour
make bench PART=tail       a log of the table: tail, head, real, integers or rows
make bench PART=sizes      up to ten million lists, about half an hour
make bench PART=pairs      a hundred million pairs; needs 10 GB of disk
make bench PART=clax       against CLAX, about an hour; makes an environment of several gigabytes for it
make bench PART=models     click models on the Yandex sample in PRUDENT_DATA, with CLAX; a few minutes
make bench PART=spark      against Spark; needs Java
make bench PART=evaluate   evaluating a policy and reporting on it, a few minutes
python docs/benchmarks.py  writes this page
```

`ROUNDS=1` measures once, `EM=50` runs all iterations of plain loops, `SIZE=100k` runs a part on a tenth of the lists,
and `BENCH_DIR` is the folder for temporary files.
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
