"""Held-out log-likelihood of click models on real clicks, and the time of their fits: ours, plain loops, CLAX.

All fit the lists of one day and predict those of another, of the Yandex sample in the folder PRUDENT_DATA. Ours are all
that are registered. Plain loops are in the style of PyClick; the package of that name on PyPI moves a mouse. CLAX
trains with the settings of its authors, with a tenth of the training lists for early stopping.
"""

import os
from pathlib import Path
from time import process_time
from typing import Any

from benchmarks.measuring import Figure, Run, folder, measure, median, report, rounds, run, say
from benchmarks.peers_clax import TRAINING, environment
from benchmarks.table import models

PLAIN = ("dcm", "pbm", "ubm")  # cm excludes lists with two clicks
CLAX = ("dcm", "pbm", "ubm", "dbn", "sdbn", "ccm")
EXPECTED = {"ubm": -3.25, "dbn": -3.31, "ccm": -3.31}  # log-likelihood per list, at least
ROUNDS_OF_EM = 50


def make_lists(data: str, target: str) -> dict[str, int]:
    """Lists of 10 different items, with names for ours, and with numbers of pairs for CLAX."""
    import duckdb

    import prudent

    place = Path(target)
    with duckdb.connect() as connection:
        for part in ("train", "test"):
            log = prudent.readers.read_yandex(Path(data) / "yandex" / f"{part}.tsv.gz")
            files = ", ".join(f"'{file}'" for file in log.source)
            context, items, clicks = (f'"{log.columns[name]}"' for name in ("context", "items", "clicks"))
            connection.execute(
                f"copy (select {context} as context, {items} as items, {clicks} as clicks from read_parquet([{files}]) "
                f"where len({items}) = 10 and len(list_distinct({items})) = 10) to '{place / part}.parquet'"
            )
        connection.execute(f"""
            create table pairs as select *, row_number() over (order by context, item) as pair from (
                select distinct context, unnest(items) as item from read_parquet('{place}/t*.parquet')
            )
        """)
        numbered = """
            select list(pair order by position) as query_doc_ids, any_value(clicks) as clicks from (
                select row, context, clicks, unnest(items) as item, unnest(range(10)) as position
                from (select row_number() over () as row, * from read_parquet('{file}'))
            ) join pairs using (context, item) group by row having {which} order by row
        """
        parts = (("train", "row % 10 > 0"), ("train", "row % 10 = 0"), ("test", "true"))
        for number, (part, which) in enumerate(parts):
            query = numbered.format(file=place / f"{part}.parquet", which=which)
            connection.execute(f"copy ({query}) to '{place}/part-{number}.parquet'")
        counted = {
            part: connection.execute(f"select count(*) from '{place / part}.parquet'").fetchall()[0][0]
            for part in ("train", "test")
        }
        return {**counted, "pairs": connection.execute("select count(*) from pairs").fetchall()[0][0]}


def ours(target: str, model: str) -> dict[str, Any]:
    """CPU seconds of fit and evidence once lists are counted, and the log-likelihood by `prudent.compare`."""
    import prudent

    place = Path(target)
    counts = prudent.count(prudent.Log(place / "train.parquet"))
    parsed = prudent.click_models.parse(model)
    _ = counts.cells, counts.sample() if parsed.whole_lists else None
    started = process_time()
    parsed.evidence(counts)
    fit = process_time() - started
    compared = prudent.compare(place / "train.parquet", place / "test.parquet", model=[model])
    return {"fit": fit, "likelihood": compared[model].log_likelihood}


def plain(target: str, model: str) -> dict[str, Any]:
    """The same of plain loops."""
    import math

    import duckdb

    from benchmarks import plain_models

    train, test = (
        [plain_models.Session(*row) for row in duckdb.execute(f"from '{target}/{part}.parquet'").fetchall()]
        for part in ("train", "test")
    )
    fitted: Any = plain_models.MODELS[model]()
    started = process_time()
    fitted.fit(train, **({"rounds": ROUNDS_OF_EM} if model in ("pbm", "ubm") else {}))
    fit = process_time() - started
    total = sum(
        math.log(chance if click else 1 - chance)
        for session in test
        for chance, click in zip(fitted.clicks_above(session), session.clicks, strict=True)
    )
    return {"fit": fit, "likelihood": total / len(test)}


def main() -> None:
    data = os.environ.get("PRUDENT_DATA")
    if not data or not Path(data, "yandex").is_dir():
        say("models: not measured, since PRUDENT_DATA is not a folder with yandex/train.tsv.gz and yandex/test.tsv.gz.")
        return
    python = environment()
    took: dict[str, list[Run]] = {}
    results: dict[tuple[str, str], list[dict[str, Any]]] = {}
    versions: dict[str, str] = {}
    with folder() as target:
        _, about = measure(make_lists, data, target)
        _, registered = measure(models)
        for number in range(rounds(3)):
            sides = [("ours", model) for model in registered] + [("plain", model) for model in PLAIN]
            for side, model in [*sides, *(("CLAX", model) for model in CLAX)]:
                say(f"Round {number + 1}: {model}, {side}")
                if side == "CLAX":
                    one, found = run([python, *TRAINING, target, model, "likelihood"])
                    versions = found["versions"]
                else:
                    one, found = measure({"ours": ours, "plain": plain}[side], target, model)
                took.setdefault(f"{model}, {side}", []).append(one)
                results.setdefault((model, side), []).append(found)
    rows = [
        {
            "model": model,
            "side": side,
            "likelihood": found[-1]["likelihood"],
            "fit": sorted(one["fit"] for one in found)[len(found) // 2],
        }
        for (model, side), found in results.items()
    ]
    report(
        "models",
        about={**about, "rounds": rounds(3), "rounds of EM": ROUNDS_OF_EM},
        took={name: median(runs) for name, runs in took.items()},
        figures=figures(rows),
        versions=versions,
        rows=rows,
    )


def figures(rows: list[dict[str, Any]]) -> dict[str, Figure]:
    """Our log-likelihood where a value is expected, the times of our fits, and those of others over ours."""
    found: dict[str, Figure] = {}
    mine = {row["model"]: row for row in rows if row["side"] == "ours"}
    limits = {"ubm": 0.2, "dbn": 2.0}
    for model, row in mine.items():
        if row["likelihood"] is not None:
            least = EXPECTED.get(model)
            found[f"{model}: held-out log-likelihood per list"] = Figure(row["likelihood"], at_least=least)
        found[f"{model}: fit, CPU seconds"] = Figure(row["fit"], at_most=limits.get(model))
    for row in rows:
        if row["side"] != "ours" and row["model"] in mine:
            at_least = 10.0 if row["side"] == "CLAX" else None
            fit = mine[row["model"]]["fit"]
            found[f"{row['model']}: {row['side']} / ours, fit"] = Figure(row["fit"] / fit, at_least=at_least)
    return found
