"""Click models by `prudent` against loops over sessions in plain Python, from a log to parameters.

Loops take ten million steps for a million lists, and EM fifty times as many, so they get the lists of every tenth
context. Their work per list is the same in a tenth as in the whole; ours is measured on both.
"""

from typing import Any

from benchmarks.logs import SIZES, contexts, make_log, size
from benchmarks.measuring import Figure, Run, folder, measure, median, report, rounds, say

MODELS = {"cm": "cm", "dcm": "dcm(tail=truncate)", "pbm": "pbm"}  # ours, by what the loops call it
AIMS = {"cm": 30, "dcm": 30, "pbm": 300}
ROUNDS_OF_EM = 50
APART = 0.1  # how far two examination probabilities may be apart: 50 rounds of EM do not converge
OFTEN = 100  # impressions from which on θ of both sides is compared


# --- the work --------------------------------------------------------------------------------------------------------


def loops(log: str, kind: str) -> None:
    """Sessions from the log, then the model."""
    _fitted(log, kind)


def ours(log: str, kind: str) -> None:
    import prudent

    prudent.click_models.parse(MODELS[kind]).evidence(prudent.count(prudent.Log(log)))


def _fitted(log: str, kind: str) -> Any:
    import duckdb

    from benchmarks import plain_models

    rows = duckdb.execute(f"select context, items, clicks from read_parquet('{log}')").fetchall()
    sessions = [plain_models.Session(*row) for row in rows]
    if kind == "pbm":
        model = plain_models.PositionBasedModel()
        model.fit(sessions, ROUNDS_OF_EM)
        return model
    counted = {"cm": plain_models.CascadeModel, "dcm": plain_models.DependentClickModel}[kind]()
    counted.fit(sessions)
    return counted


def agree(log: str, kind: str) -> dict[str, float]:
    """Both sides find the same, or this fails: counts exactly, parameters of EM as near as it gets in its rounds."""
    import numpy as np

    import prudent

    loop = _fitted(log, kind)
    counts = prudent.count(prudent.Log(log))
    evidence = prudent.click_models.parse(MODELS[kind]).evidence(counts)
    pairs = counts.pairs.fetchall()
    hits, trials = (
        np.array([getattr(loop.attraction[context][item], name) for context, item in pairs])
        for name in ("hits", "trials")
    )
    if kind != "pbm":
        np.testing.assert_array_equal(hits, evidence.positive)
        np.testing.assert_array_equal(trials, evidence.examined)
        return {"pairs": len(pairs), "largest difference": 0.0}
    p = np.array([loop.examination[rank].value for rank in sorted(loop.examination)])
    examination = evidence.fitted.parameters["examination"]
    np.testing.assert_allclose(p / p.max(), examination, atol=APART)
    often = evidence.impressions >= OFTEN
    theta = (hits / trials * p.max())[often]
    ours = (evidence.positive / evidence.examined)[often]
    return {
        "pairs": len(pairs),
        "largest difference": float(np.abs(p / p.max() - examination).max()),
        "root mean square difference of θ": float(np.sqrt(np.mean((theta - ours) ** 2))),
    }


def take_tenth(log: str, tenth: str) -> int:
    """All lists of every tenth context: as dense as the whole."""
    import duckdb

    part = f"from read_parquet('{log}') where hash(context) % 10 = 0"
    duckdb.execute(f"copy ({part}) to '{tenth}' (format parquet, compression zstd)")
    return int(duckdb.execute(f"select count(*) from '{tenth}'").fetchall()[0][0])


# --- together --------------------------------------------------------------------------------------------------------


def main() -> None:
    took: dict[str, Run] = {}
    figures: dict[str, Figure] = {}
    rows = []
    lists = SIZES[size()]
    with folder() as target:
        whole, tenth = target / "log.parquet", target / "tenth.parquet"
        for kind in MODELS:
            say(f"Making a log of {lists:,} lists by {kind} ...")
            measure(make_log, whole, lists, contexts(lists), kind)
            _, few = measure(take_tenth, whole, tenth)
            taken: dict[str, list[Run]] = {"loops": [], "ours": [], "ours, all lists": []}
            for number in range(rounds(1 if kind == "pbm" else 3)):
                say(f"{kind}, round {number + 1} ...")
                taken["loops"].append(measure(loops, tenth, kind)[0])
                for _ in range(3 if kind == "pbm" else 1):
                    taken["ours"].append(measure(ours, tenth, kind)[0])
                    taken["ours, all lists"].append(measure(ours, whole, kind)[0])
            say(f"{kind}: comparing the results ...")
            _, agreement = measure(agree, tenth, kind)
            here = {name: median(runs) for name, runs in taken.items()}
            took |= {f"{kind}: {name}": run for name, run in here.items()}
            figures[f"{kind}: plain loops / ours, a tenth of the lists"] = Figure(here["loops"].cpu / here["ours"].cpu)
            figures[f"{kind}: plain loops / ours, CPU per list"] = Figure(
                here["loops"].cpu / few / (here["ours, all lists"].cpu / lists), at_least=AIMS[kind]
            )
            rows.append({"model": kind, "lists": few, **agreement})
    report(
        "plain" if size() == "1m" else f"plain-{size()}",
        about={"lists": lists, "rounds of EM": ROUNDS_OF_EM, "θ compared from impressions": OFTEN},
        took=took,
        figures=figures,
        rows=rows,
    )
