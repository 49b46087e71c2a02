"""One repetition of the paper's Fig. 2 against plain loops."""

import statistics
import time

from benchmarks.measuring import ONE_THREAD, Figure, Run, measure, median, report, rounds, say

REPETITIONS = 10


def repetitions() -> dict[str, list[float]]:
    """CPU seconds of one repetition of Fig. 2, for each click model: ours, and two of plain loops.

    The plain loops go through lists and items one by one, count once for all methods, fit each prior once for all δ,
    and ask scipy for one quantile at a time: of `scipy.special`, and of `scipy.stats`, which most people would. They
    draw the same logs and find the same errors, or this fails.
    """
    import numpy as np
    from scipy.stats import beta

    from prudent.research.bench import KINDS, Bench
    from prudent.research.laboratory import Laboratory
    from tests.research import plain

    def quantile_by_stats(a: float, b: float, probability: float) -> float:
        return float(beta.ppf(probability, a, b))

    bench = Bench(Laboratory())
    took: dict[str, list[float]] = {}
    for kind in KINDS:
        data, source = bench.queries(kind, "production")
        protocol = bench.sweep(data, "production", source, kind)
        protocol.errors(1, 0)  # loads what is loaded on first use
        started = time.process_time()
        ours = [protocol.errors(0, repetition)[0] for repetition in range(REPETITIONS)]
        took[kind] = [(time.process_time() - started) / REPETITIONS]
        for quantile in (plain.quantile_by_special, quantile_by_stats):
            started = time.process_time()
            truth, lists = plain.draw_yandex_like(kind, 1_000, np.random.default_rng(protocol.seed(0, 0)))
            errors = plain.errors(truth, lists, protocol.deltas, best=plain.best_by_sorting, quantile=quantile)
            took[kind].append(time.process_time() - started)
            np.testing.assert_allclose(errors, ours[0], atol=1e-9)
    return took


def main() -> None:
    runs: list[Run] = []
    seconds: list[dict[str, list[float]]] = []
    for number in range(rounds(5)):
        say(f"Experiments, round {number + 1} ...")
        run, returned = measure(repetitions, env=ONE_THREAD)
        runs.append(run)
        seconds.append(returned)
    report(
        "experiments",
        about={"lists": 1_000, "rounds": rounds(5)},
        took={"repetitions": median(runs)},
        figures=compare(seconds),
    )


def compare(runs: list[dict[str, list[float]]]) -> dict[str, Figure]:
    """How many times longer plain loops take; all three click models together, and each."""
    seconds = {
        kind: [statistics.median(times) for times in zip(*(one[kind] for one in runs), strict=True)] for kind in runs[0]
    }
    ours, special, stats = (sum(column) for column in zip(*seconds.values(), strict=True))
    each = {
        f"plain loops with scipy.{name} / ours, {kind}": Figure(times[number] / times[0])
        for number, name in ((1, "special"), (2, "stats"))
        for kind, times in seconds.items()
    }
    return {
        "plain loops with scipy.stats / ours, Fig. 2": Figure(stats / ours, at_least=50),
        "plain loops with scipy.special / ours, Fig. 2": Figure(special / ours),
        **each,
    }
