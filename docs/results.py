"""The pages docs/results.md and docs/claims.md: `python docs/results.py RESULTS_DIR`.

RESULTS_DIR has the outputs of `prudent reproduce`, in one folder per data set:

    prudent reproduce NAME -o RESULTS_DIR/yandex --data train.tsv.gz --data test.tsv.gz --format yandex
    prudent reproduce mslr -o RESULTS_DIR/mslr --data train.txt.gz --data test.txt.gz --format letor
    prudent reproduce all -o RESULTS_DIR/synthetic
    prudent reproduce default -o RESULTS_DIR/default
    prudent reproduce long-tail -o RESULTS_DIR/long-tail

Tables and figures are copied to docs/results, with the ratios and verdicts, which need the errors of single repetitions
(these are not copied), and with the commit. Both pages are then written from docs/results alone: without RESULTS_DIR
only that is done, and tests/docs/test_results_pages.py checks that it changes nothing. Every measured number on the
pages comes from these files.
"""

import csv
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from prudent.policies.baselines import clip_for
from prudent.research.bench import METHODS
from prudent.research.checks import BASELINES
from prudent.research.claims import CLAIMS
from prudent.research.comparing import read_table
from prudent.research.data import MIN_IMPRESSIONS
from prudent.research.protocol import DELTAS
from prudent.research.reproduce import CATALOGUE
from prudent.research.table import paired_ratio
from prudent.research.verdicts import Verdict, markdown, try_claims
from prudent.storage.manifest import Manifest

DOCS = Path(__file__).parent
KEPT = DOCS / "results"
SETS = ("yandex", "mslr", "synthetic")
STUDIES = ("default", "long-tail")  # of the default bound: a page of their own making, and a figure
TABLES = {name for claim in CLAIMS for name in claim.experiments}  # with a table of ratios; others have notes
SHOWN = (0.2, 0.5, 1.0)  # δ of which ratios are kept
LEVELS = (("bayes", 0.2), ("eb", 0.2), ("hoeffding", 0.2), ("eb", 0.5), ("exposure", 0.5))  # columns of most tables
SIZES = (100, 1_000, 10_000, 100_000, 500_000)  # rows of the table by sample size
MOST_BYTES = 4_000_000


class Ratio(NamedTuple):
    """The error of a method as a share of the MLE's on the same logs."""

    experiment: str
    data: str
    logging: str
    model: str
    n: int
    mle: float
    method: str
    delta: float | None
    ratio: float
    se: float


# --- from RESULTS_DIR to docs/results --------------------------------------------------------------------------------


def keep(results: Path) -> None:
    """Copy the inputs of the pages, and record the commit whose code made them."""
    commits = commits_kept()
    commits.update(dict.fromkeys((name for name in (*SETS, *STUDIES) if (results / name).is_dir()), checked_out()))
    (KEPT / "commits.json").write_text(json.dumps(commits, indent=1) + "\n", encoding="utf-8")
    for name in SETS:
        if (results / name).is_dir():
            keep_set(results / name, KEPT / name)
    for name in STUDIES:
        if (results / name).is_dir():
            (KEPT / name).mkdir(parents=True, exist_ok=True)
            shutil.copy(results / name / f"{name}.md", KEPT / name)
            figure = (results / name / f"{name}.svg").read_text(encoding="utf-8")
            (KEPT / name / f"{name}.svg").write_text(slim(figure), encoding="utf-8")
    folders = [results / name for name in SETS]
    if any(folder.is_dir() for folder in folders):
        keep_claims(folders)
    size = sum(file.stat().st_size for file in KEPT.rglob("*") if file.is_file())
    print(f"docs/results has {size / 1e6:.1f} MB.")  # noqa: T201
    if size > MOST_BYTES:
        sys.exit("That is too large for the repository.")


def keep_claims(folders: Sequence[Path]) -> None:
    """Check the claims by the tables in these folders."""
    verdicts = try_claims(folders)
    fields = ("claim", "where", "data", "experiment", "measured", "verdict")
    with (KEPT / "claims.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(fields)
        for verdict in verdicts:
            shown_verdict = verdict.verdict.replace(f" -o {folders[0]}", " -o DIR")
            shown = replace(verdict, data=friendly(verdict.data), verdict=shown_verdict)
            rows.writerow([getattr(shown, name) for name in fields])


def commits_kept() -> dict[str, str]:
    """The commit that each set of results comes from."""
    file = KEPT / "commits.json"
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else {}


def checked_out() -> str:
    """The commit that is checked out."""
    git = ["git", "-C", str(DOCS), "describe", "--always", "--dirty"]
    return subprocess.run(git, check=True, capture_output=True, text=True).stdout.strip()


def keep_set(source: Path, target: Path) -> None:
    """Tables, figures and ratios of one set of data; nothing of the data itself, nor where it was read from."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    about, ratios = {}, []
    for name in CATALOGUE:
        if name in STUDIES or not (source / f"{name}.repetitions.parquet").exists():  # these have their own sections
            continue
        with (source / f"{name}.csv").open(newline="", encoding="utf-8") as file:
            table = list(csv.DictReader(file))
        with (target / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            rows = csv.DictWriter(file, table[0], lineterminator="\n")
            rows.writeheader()
            for row in table:
                short = {key: f"{float(row[key]):.6g}" for key in ("error", "se") if row[key]}
                rows.writerow({**row, "data": friendly(row["data"]), **short})
        if (source / f"{name}.svg").exists():
            (target / f"{name}.svg").write_text(slim((source / f"{name}.svg").read_text(encoding="utf-8")), "utf-8")
        manifest = Manifest.read(source / f"{name}.parquet", "experiment")
        assert manifest is not None
        run = {"prudent": manifest.prudent, **manifest.settings, **manifest.results}
        wanted = ("prudent", "seed", "seconds", "processes", "delta", "truth")
        about[name] = {key: run[key] for key in wanted if key in run}
        about[name]["options"] = options_used(run)
        about[name]["data"] = friendly(read_table(source / f"{name}.repetitions.parquet").data)
        about[name]["done"] = sorted({int(row["repetitions"]) for row in table})
        if name in TABLES:
            ratios += list(ratios_of(name, source / f"{name}.repetitions.parquet", run.get("delta", {})))
        else:  # its own notes say it better
            about[name]["notes"] = [friendly(note) for note in run.get("notes", [])]
    (target / "about.json").write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    with (target / "ratios.csv").open("w", newline="", encoding="utf-8") as file:
        rows_ = csv.writer(file, lineterminator="\n")
        rows_.writerow(Ratio._fields)
        rows_.writerows(
            [f"{value:.5g}" if isinstance(value, float) else value for value in one._replace(data=friendly(one.data))]
            for one in ratios
        )


def options_used(run: Mapping[str, Any]) -> str:
    """The options that were not left at their defaults."""
    options = []
    if run["repetitions"]:
        options.append(f"--repetitions {run['repetitions']}")
    if run["seed"]:
        options.append(f"--seed {run['seed']}")
    if run["deltas"] != list(DELTAS):
        options.append(f"--deltas {','.join(f'{delta:g}' for delta in run['deltas'])}")
    if run["methods"] != list(METHODS):
        options.append(f"--methods '{','.join(run['methods'])}'")
    return " ".join(options)


def ratios_of(name: str, file: Path, chosen: Mapping[str, Mapping[str, float]]) -> Iterator[Ratio]:
    """The ratios that tables on the page may show, and the best baseline at its best clip."""
    for panel in read_table(file).panels:
        mle = panel.best("mle")
        head = (name, panel.data, panel.logging, panel.model, panel.n, float(mle.mean()))
        for (method, delta), errors in panel.errors.items():
            wanted = (None, *SHOWN) if not chosen else (chosen[panel.model].get(method),)
            if method != "mle" and delta in wanted:
                yield Ratio(*head, method, delta, *paired_ratio(errors, mle))
        known = [method for method in BASELINES if panel.has(method)]
        if known:
            best = min(known, key=lambda method: float(panel.best(method).mean()))
            yield Ratio(*head, f"best baseline: {best}", None, *paired_ratio(panel.best(best), mle))


def slim(svg: str) -> str:
    """A figure without the labels of single marks, which an image cannot show, and without needless digits."""
    svg = re.sub(r' (aria-[a-z]+|role|class)="[^"]*"', "", svg)
    svg = re.sub(r'<path d=""[^>]*/>', "", svg)
    # Only in places, not in words: the numbers at an axis are those of the figure.
    return re.sub(
        r' (d|transform|x|y|x1|x2|y1|y2|width|height)="[^"]*"',
        lambda place: re.sub(r"(\d\.\d\d)\d+", r"\1", place[0]),
        svg,
    )


def friendly(data: str) -> str:
    """Files of rows are named after what they are rows of."""
    return re.sub(r"^msn1\S+( msn1\S+)*,", "MSLR-WEB10K rows,", data)


# --- from docs/results to pages --------------------------------------------------------------------------------------


def pages() -> dict[str, str]:
    """Both pages, by their names."""
    verdicts = kept_verdicts()
    return {"results.md": results_page(verdicts), "claims.md": claims_page(verdicts)}


def kept_verdicts() -> list[Verdict]:
    with (KEPT / "claims.csv").open(newline="", encoding="utf-8") as file:
        return [Verdict(**row) for row in csv.DictReader(file)]


def claims_page(verdicts: Sequence[Verdict]) -> str:
    return CLAIMS_INTRO + provenance() + "\n" + markdown(verdicts)


def provenance() -> str:
    """The commit that the stored results come from; studies name their own."""
    commits = " and ".join(f"`{commit}`" for commit in sorted({commits_kept()[name] for name in SETS}))
    return f"""\
The numbers are from commit {commits}. Later changes of the code that move a number are listed under *Numbers* in the
changelog.
"""


CLAIMS_INTRO = """\
# The paper's claims

These are the sentences in which the paper states the results of its experiments, in our words. Each is tested on our
own runs, which are shown in [Results](results.md). None of these runs is the paper's: we did not have its full data. A
verdict is about our runs, not about whether the paper was right about its own.

Verdicts are computed by the criteria below the table. A method is *lower* than another if the difference of their
errors on the same logs is more than two standard errors from zero (Student's t where there are few repetitions).
*Production* lists are resampled from a log, or drawn by a simulated ranker that is better than chance. *Uniform* lists
are drawn at random. The paper's Section 8.1 names both. `prudent reproduce claims -o DIR` makes this table from your
own runs.

"""


def results_page(verdicts: Sequence[Verdict]) -> str:
    parts = [INTRO, provenance(), DATA, "## Summary\n", short(verdicts), READING, clips()]
    for name in SETS:
        parts += section(name)
    return "\n".join([*parts, *map(study, STUDIES)]).rstrip("\n") + "\n"


INTRO = """\
# Results

`prudent reproduce` runs the paper's experiments again. This page shows the results. It is written by `docs/results.py`
from the tables in `docs/results`; no measured number on it is typed by hand.
"""

DATA = """\
| data | real? | remarks |
|---|---|---|
| Yandex | yes: queries, lists and clicks | The public sample of the relevance-prediction log has 20 queries. The ten \
most frequent are those of these 20, not of Yandex. The two files are earlier and later days. |
| MSLR-WEB10K | yes: labels; clicks are simulated | 5,000 rows of a training file and 5,000 of a test file. The last \
query of each file may be incomplete. |
| Yandex-like, Yahoo-like, MSLR-like, Istella-like | no | Synthetic data of about the same shape. They show what the \
method does when its assumptions hold. |
"""

ABOUT = {
    "yandex": f"""\
As in the paper, a click model is fitted to the log and then generates the clicks, so that the best lists are known.
Only `cross-validation` uses the clicks of real users. Items with fewer than {MIN_IMPRESSIONS} impressions are left out:
their fitted attraction is mostly noise. [How we read the paper](reading.md) has more on this.
""",
    "mslr": """\
The labels are real. The lists are drawn from them, and the clicks are simulated from them, as in the paper's Section
8.4. Dirichlet weights decide what is shown: one draw per query, or a new one per list. With the second, how often a
document is shown follows its label closely. That makes the task easy, and the result says little.
""",
    "synthetic": """\
All data in this section are synthetic. The experiments have the same names as on real data. The line below each command
describes the data.
""",
}

READING = """\
[The paper's claims](claims.md) has each claim with its measurements.

## How to read the tables

Error is the value of the best list minus the true value of the chosen one, averaged over queries and repetitions: the
regret. The column `mle` has the error of the maximum likelihood estimate. The others have a method's error divided by
it, with one standard error: below 1 is better than the MLE. Both use the same logs, and the standard error is that of
the paired ratio. The best baseline is the best of `ips`, `ip-ips` and `pi`, each at its best clip. In the figures,
methods without a δ are horizontal lines.

Two kinds of logging are shown, because the paper's text allows both and the results differ.

For the baselines, δ stands for a clip M. This is the table of Section 8.3:
"""


def clips() -> str:
    marks = ["∞" if clip_for(delta) == float("inf") else f"{clip_for(delta):g}" for delta in DELTAS]
    half = len(DELTAS) // 2
    deltas = [f"{delta:g}" for delta in DELTAS]
    lines = []
    for part in (slice(0, half), slice(half, None)):
        lines += [row(["δ", *deltas[part]]), row(["---"] * (half + 1)), row(["M", *marks[part]]), ""]
    return "\n".join(lines)


def short(verdicts: Sequence[Verdict]) -> str:
    """Which claims hold everywhere, which fail everywhere, and how many are in between."""
    words: dict[str, set[str]] = {}
    for verdict in verdicts:
        words.setdefault(verdict.claim + (" (This one is ours.)" if verdict.where == "ours" else ""), set()).add(
            verdict.word
        )
    kinds: dict[str, list[str]] = {}
    for claim, verdict_words in words.items():
        known = verdict_words - {"unclear"}
        kind = min(verdict_words) if len(verdict_words) == 1 else "unclear" if len(known) == 1 else "depends"
        kinds.setdefault(kind, []).append(claim)
    lines = []
    for kind, head in (
        ("holds", "Claims that hold in every test"),
        ("fails", "Claims that fail in every test"),
        ("depends", "Claims that depend on the data, the logging, the click model, the bound or δ"),
        ("unclear", "Claims that need more repetitions in some test"),
        ("not tried", "Claims that were not tested"),
    ):
        claims = kinds.get(kind, [])
        if claims:
            lines += [f"{head}, {len(claims)} of {len(words)}:", "", *(f"- {claim}" for claim in claims), ""]
    return "\n".join(lines)


HEADS = {
    "yandex": "Real clicks: the Yandex sample",
    "mslr": "Real labels: MSLR-WEB10K rows",
    "synthetic": "Synthetic data",
}
OPTIONS = {
    "yandex": " --data train.tsv.gz --data test.tsv.gz --format yandex",
    "mslr": " --data train.txt.gz --data test.txt.gz --format letor",
    "synthetic": "",
}


def section(name: str) -> Iterator[str]:
    """One set of data: all its experiments."""
    yield f"## {HEADS[name]}\n"
    if not (KEPT / name / "about.json").exists():
        yield "Not run.\n"
        return
    yield f"From commit `{commits_kept()[name]}`.\n"
    about = json.loads((KEPT / name / "about.json").read_text(encoding="utf-8"))
    ratios = kept_ratios(KEPT / name / "ratios.csv")
    yield ABOUT[name]
    if name == "yandex":
        yield from truths(about.get("top-queries", {}).get("truth", {}))
    for experiment, run in about.items():
        title = CATALOGUE[experiment].about
        yield f"### {experiment}: {title}\n"
        options = f"{OPTIONS[name]} {run['options']}".rstrip()
        yield f"```sh\nprudent reproduce {experiment} -o results/{name}{options}\n```\n"
        yield f"{run['data']}: {how_long(run)}\n"
        own = [one for one in ratios if one.experiment == experiment]
        if own:
            yield from table(experiment, own, run)
        if "notes" in run:
            yield "".join(f"- {note}\n" for note in run["notes"])
        if experiment not in ("sample-size", "prior-grid"):
            yield from (f"{sentence}\n" for sentence in summary(own))
        if (KEPT / name / f"{experiment}.svg").exists():
            yield f"![{experiment}: {title}](results/{name}/{experiment}.svg)\n"


def truths(fitted: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """What was fitted to the ten most frequent queries."""
    if not fitted:
        return
    yield row(["fitted to the ten queries", "parameter", "positions 1 to 4", "value of the best lists"])
    yield row(["---"] * 4)
    for model, truth in fitted.items():
        name = {"pbm": "examination p", "dcm": "continuation λ"}.get(model, "–")
        values = " ".join(f"{value:.2f}" for value in truth["position"]) if name != "–" else "–"
        yield row([f"`{model}`", name, values, f"{truth['best_value']:.3f}"])
    items = next(iter(fitted.values()))["items"]
    yield f"\nThe queries have {min(items)} to {max(items)} items, {sum(items)} in all."
    if "dcm" in fitted and min(fitted["dcm"]["position"][1:]) > 0.9:
        yield (
            "Nearly all users of the fitted `dcm` continue after a click: the log contradicts `dcm`, since its items "
            "are clicked more often right below a click than without one, and λ is at its limit. So the probability "
            "of a satisfied click is small for all lists, errors are small numbers, and the rows of `dcm` tell the "
            "methods hardly apart."
        )
    yield ""


def how_long(run: Mapping[str, Any]) -> str:
    done = " to ".join(dict.fromkeys(f"{times:,}" for times in (run["done"][0], run["done"][-1])))
    text = f"{done} repetitions, seed {run['seed']}"
    if "seconds" in run:
        seconds = run["seconds"]
        took = f"{seconds:.0f} seconds" if seconds < 100 else f"{seconds / 60:.0f} minutes"
        text += f"; {took} in {run['processes']} process{'es' * (run['processes'] > 1)}"
    return text + "."


def kept_ratios(file: Path) -> list[Ratio]:
    with file.open(newline="", encoding="utf-8") as lines:
        return [
            Ratio(name, data, logging, model, int(n), float(mle), method, _or_none(delta), float(ratio), float(se))
            for name, data, logging, model, n, mle, method, delta, ratio, se in list(csv.reader(lines))[1:]
        ]


def _or_none(delta: str) -> float | None:
    return float(delta) if delta else None


def table(experiment: str, ratios: Sequence[Ratio], run: Mapping[str, Any]) -> Iterator[str]:
    """The table of an experiment: a row for each panel of its figure."""
    panels: dict[tuple[str, str, str, int, float], dict[tuple[str, float | None], Ratio]] = {}
    for one in ratios:
        panel = (one.data, one.logging, one.model, one.n, one.mle)
        panels.setdefault(panel, {})[one.method, one.delta] = one
    columns: list[tuple[str, float | None]] = list(LEVELS)
    heads = [f"`{method}` {delta:g}" for method, delta in LEVELS] + ["best baseline"]
    if experiment == "prior-grid":
        columns = [(method, delta) for delta in (0.2, 1.0) for method in dict.fromkeys(one.method for one in ratios)]
        heads = [f"{method.split()[1]}², {delta:g}" for method, delta in columns]
    elif experiment == "sample-size":
        heads = [f"`{method}`" for method in ("bayes", "eb", "hoeffding", "exposure")]
        panels = {panel: by_level for panel, by_level in panels.items() if panel[3] in SIZES}
        chosen = [
            f"{model}: " + ", ".join(f"{delta:g} (`{method}`)" for method, delta in deltas.items())
            for model, deltas in run["delta"].items()
        ]
        yield f"δ chosen on the past: {'; '.join(chosen)}.\n"
    several = len({panel[0] for panel in panels}) > 1 and experiment == "less-frequent"
    yield row([*(["data"] * several), "logging", "model", "n", "`mle`", *heads])
    yield row(["---"] * (several + 4 + len(heads)))
    for (data, logging, model, n, mle), by_level in panels.items():
        if experiment == "sample-size":
            by_method = {method: one for (method, _), one in by_level.items()}
            cells = [share(by_method.get(head.strip("`"))) for head in heads]
        else:
            cells = [share(by_level.get(column)) for column in columns]
            if experiment != "prior-grid":
                best = next((one for one in by_level.values() if one.method.startswith("best baseline")), None)
                cells.append(f"{share(best)} ({best.method.partition(': ')[2]})" if best else "")
        yield row([*([data] * several), logging, model, f"{n:,}", f"{mle:.4f}", *cells])
    yield ""


def summary(ratios: Sequence[Ratio]) -> Iterator[str]:
    """The range of each kind of ratio, by logging, in a sentence."""
    for logging in dict.fromkeys(one.logging for one in ratios):
        parts = []
        for words, methods, delta in (
            ("the paper's bounds at δ = 0.2", ("bayes", "eb", "hoeffding"), 0.2),
            ("`exposure` at δ = 0.5", ("exposure",), 0.5),
            ("the best baseline", tuple(f"best baseline: {name}" for name in BASELINES), None),
        ):
            own = [one for one in ratios if one.logging == logging and one.method in methods and one.delta == delta]
            values = sorted(one.ratio for one in own if one.ratio == one.ratio)
            if values:
                each = dict.fromkeys(f"{value:.2f}" for value in (values[0], values[-1]))
                parts.append(f"{' to '.join(each)} for {words}")
        if parts:
            yield f"Logging {logging}: the error as a share of the MLE's is {', '.join(parts)}."


def share(one: Ratio | None) -> str:
    return "" if one is None else "–" if one.ratio != one.ratio else f"{one.ratio:.2f}\u00a0±\u00a0{one.se:.2f}"


def row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


ABOUT_STUDIES = {
    "default": """\
## Bounds on 57 protocols

A default has to work on logs of every kind. Bounds are compared on many protocols at once, each at its own δ: by the
mean error, and by the worst ratio to the MLE's error. `anchored` keeps production's order except where evidence beats
it; the other bounds sort by lower bound, as Algorithm 1 does.

```sh
prudent reproduce default -o results/default \\
  --data train.tsv.gz --data test.tsv.gz --format yandex \\
  --data msn1.fold1.train.5k.txt.gz --data msn1.fold1.test.5k.txt.gz
```

Errors are × 10⁴. The ratio to the MLE is a geometric mean over protocols, the worst one comes with the upper end of its
95 % interval, and ± is a standard error, paired with `exposure` on the same logs. The floor uses, for each protocol,
the true distribution of θ at every exposure, which no log contains. Without real files 45 protocols remain. The second
table has the errors of the MLE and of `exposure`, and the differences of the other bounds to `exposure`, by data and
logging policy.

Where production is good and contexts have many lists (γ from 0.5 to 2, real Yandex lists), keeping its order costs
`anchored` a little against `exposure`; where impressions follow attraction list by list, and where logging is opposed,
it gains more than that.
""",
    "long-tail": """\
## Bounds where most contexts were seen once

Most contexts of real logs are rare. Here 80 % of 4,000 contexts have one list, of 10 positions; users click by `pbm`
or `dcm`, and the learner believes in one of the two. Production scores have a correlation from 0.3 to 0.8 with logit θ
(informative), of 0 (uninformative), or of −0.3 and −0.8 (opposed).

```sh
prudent reproduce long-tail -o results/long-tail
```

Numbers are the regret of a policy as a share of the regret of the logged lists, averaged over contexts: below 1 the
policy is better than production. *No worse* counts the worlds with at most 1, and ± is a standard error over worlds.
Incumbent lists are production's order without any evidence from clicks.

Sorting by lower bound alone loses to production where production knows something. `anchored` does not; where production
is opposed, it gains about half of what a free order would.
""",
}


def study(name: str) -> str:
    """The section of a study of the default bound: what `prudent reproduce` left, if it was run."""
    page = KEPT / name / f"{name}.md"
    if not page.exists():
        return f"{ABOUT_STUDIES[name]}\nNot run.\n"
    figure = f"![{name}: mean error of every bound](results/{name}/{name}.svg)"
    head = f"{ABOUT_STUDIES[name]}\nFrom commit `{commits_kept()[name]}`.\n\n{figure}\n"
    return f"{head}\n{page.read_text(encoding='utf-8')}"


def main() -> None:
    """Copy the results of a folder, if one is named, and write both pages."""
    if len(sys.argv) > 1:
        keep(Path(sys.argv[1]))
    for name, text in pages().items():
        (DOCS / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
