"""An experiment once more, as the program that one would write first.

It goes through lists one by one and through items one by one, and asks scipy for one number at a time. Names are
numbers here: of contexts, and of pairs. What it counts comes from `tests.reference`. Nothing is shared with the
package, so that both may be compared, and timed against each other.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import exp, inf, log, log1p, log2

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import betaincinv, gammaln, psi, zeta

from tests import reference
from tests.reference import LoggedList, Pair

Quantile = Callable[[float, float, float], float]  # α, β, probability


@dataclass(frozen=True)
class Truth:
    """What is true about a log."""

    kind: str
    theta: list[dict[int, float]]  # of each context: pair -> θ
    position: list[float]  # λ of cm and dcm, p of pbm

    @property
    def weight(self) -> list[float]:
        return self.position if self.kind == "pbm" else [1 - continuation for continuation in self.position]

    def value(self, context: int, items: Sequence[int]) -> float:
        return reference.VALUE[self.kind]([self.theta[context][item] for item in items], self.weight[: len(items)])


def best_by_trying(truth: Truth, context: int) -> float:
    """The highest value of all lists there are."""
    return reference.best_value(truth.kind, list(truth.theta[context].values()), truth.weight)


def best_by_sorting(truth: Truth, context: int) -> float:
    """The same where there are too many to try."""
    theta = sorted(truth.theta[context].values(), reverse=True)
    weight = truth.weight[: len(theta)]
    places = sorted(range(len(weight)), key=lambda k: -weight[k])
    placed = dict(zip(places, theta, strict=False))
    return reference.VALUE[truth.kind]([placed[k] for k in range(len(weight))], weight)


# --- drawing ---------------------------------------------------------------------------------------------------------


def draw_yandex_like(
    kind: str, n: int, random: np.random.Generator, contexts: int = 10, items: tuple[int, int] = (10, 100)
) -> tuple[Truth, list[LoggedList]]:
    """Queries like those of Yandex, with a good production ranker, from the same random numbers as the package."""
    sizes = [int(random.integers(items[0], items[1] + 1)) for _ in range(contexts)]
    theta = [min(max(random.beta(1, 8), 1e-12), 1 - 1e-12) for _ in range(sum(sizes))]
    score = [2.0 * log(attraction) + 1.4 * random.standard_normal() for attraction in theta]
    continuation = [random.beta(1, 64) for _ in range(4)]
    position = {"cm": [0.0] * 4, "dcm": continuation, "pbm": [1, 0.5, 0.33, 0.25]}[kind]
    lists: list[tuple[int, list[int]]] = []
    truth, start = Truth(kind, [], position), 0
    for context, size in enumerate(sizes):
        pairs = range(start, start + size)
        truth.theta.append({pair: theta[pair] for pair in pairs})
        gain = np.array([score[pair] for pair in pairs], np.float32)
        for _ in range(n):
            noise = random.standard_exponential(size, dtype=np.float32)
            lists.append((context, (start + np.argsort(np.log(noise, out=noise, where=noise > 0) - gain)[:4]).tolist()))
        start += size
    log_of_clicks: list[LoggedList] = []
    for context, chosen in lists:
        clicks = click(truth, [theta[item] for item in chosen], random.random(4).tolist())
        log_of_clicks.append((context, tuple(chosen), clicks))
    return truth, log_of_clicks


def click(truth: Truth, theta: Sequence[float], uniform: Sequence[float]) -> tuple[int, ...]:
    """A user reads a list."""
    if truth.kind == "pbm":
        return tuple(int(u < p * attraction) for u, p, attraction in zip(uniform, truth.position, theta, strict=True))
    clicks = [0] * len(theta)
    for k, (u, attraction) in enumerate(zip(uniform, theta, strict=True)):
        if u < attraction:
            clicks[k] = 1
            if u >= truth.position[k] * attraction:
                break
    return tuple(clicks)


# --- learning --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Evidence:
    """What a learner counts, and in which order it fills positions."""

    of: list[dict[int, tuple[float, float]]]  # of each context: pair -> n₊, n₋; of all pairs, seen or not
    impressions: Counter[Pair]
    places: list[int]  # from the heaviest position, which gets the best item
    trials: dict[Pair, float]  # that Hoeffding's width counts on


def gather(kind: str, lists: Sequence[LoggedList], truth: Truth) -> Evidence:
    places = list(range(len(truth.position)))
    if kind == "cm":
        actual = reference.cascade(lists)
    elif kind == "dcm":
        actual, _ = reference.tail_em(lists)
    else:
        known = len(reference.position_groups(lists)) > 1  # what the log does not tell, the learner is told
        p = truth.position if known else examination(lists)
        actual = examined(lists, p)
        if known:
            places.sort(key=lambda k: -p[k])
    of = [
        {item: actual.get((context, item), (0.0, 0.0)) for item in items} for context, items in enumerate(truth.theta)
    ]
    impressions = reference.impressions(lists)
    trials = {pair: sum(counts) for pair, counts in actual.items()}
    if kind == "pbm":
        cells = reference.per_position(lists)
        trials = {pair: sum(cells[pair][k][0] * p[k - 1] for k in sorted(cells[pair])) for pair in cells}
    if kind != "cm":  # N impressions, some of which were examined with a probability below 1
        trials = {pair: n**2 / impressions[pair] for pair, n in trials.items()}
    return Evidence(of, impressions, places, trials)


def examination(lists: Sequence[LoggedList], smooth: float = 0.01) -> list[float]:
    """P of the highest likelihood, by Newton's method in log θ and log p; expectation-maximisation takes thousands of
    rounds and, where p turns on its way, stops too early.
    """
    table = reference.per_position(lists, enough=10)
    positions = reference.longest(lists)
    theta, p = dict.fromkeys(table, log(0.2)), [log(0.5)] * positions

    def terms(log_x: float, hits: float, misses: float) -> tuple[float, float, float]:
        x = exp(log_x)
        return hits * log_x + misses * log(1 - x), hits - misses * x / (1 - x), misses * x / (1 - x) ** 2

    def likelihood(theta: Mapping[Pair, float], p: Sequence[float]) -> float:
        total = sum(terms(one, smooth, smooth)[0] for one in (*theta.values(), *p))
        for pair, cells in table.items():
            for k, (n, clicks) in cells.items():
                total += terms(theta[pair] + p[k - 1], clicks, n - clicks)[0]
        return total

    reached = likelihood(theta, p)
    for _ in range(200):
        of_p = [terms(one, smooth, smooth) for one in p]
        slope_p, left = np.array([slope for _, slope, _ in of_p]), np.diag([bend for *_, bend in of_p])
        right, rows = slope_p.copy(), {}
        for pair, cells in table.items():
            _, slope, bend = terms(theta[pair], smooth, smooth)
            shared = np.zeros(positions)
            for k, (n, clicks) in cells.items():
                _, more, curve = terms(theta[pair] + p[k - 1], clicks, n - clicks)
                slope, bend = slope + more, bend + curve
                slope_p[k - 1] += more
                right[k - 1] += more
                left[k - 1, k - 1] += curve
                shared[k - 1] = curve
            left -= np.outer(shared, shared) / bend
            right -= shared * slope / bend
            rows[pair] = (slope, bend, shared)
        move_p = np.linalg.solve(left, right)
        move = {pair: float((slope - shared @ move_p) / bend) for pair, (slope, bend, shared) in rows.items()}
        gain = float(slope_p @ move_p) + sum(rows[pair][0] * step for pair, step in move.items())
        if gain < 1e-18 * abs(reached):
            break
        step = 1.0
        while True:
            new_theta = {pair: theta[pair] + step * move[pair] for pair in table}
            new_p = [one + step * by for one, by in zip(p, move_p.tolist(), strict=True)]
            if max(*new_theta.values(), *new_p) < 0:
                higher = likelihood(new_theta, new_p)
                if higher >= reached - 1e-12 * abs(reached):
                    break
            step /= 2
        theta, p, reached = new_theta, new_p, higher
        if gain < 1e-9:
            break
    return [exp(one - max(p)) for one in p]


def examined(lists: Sequence[LoggedList], p: Sequence[float]) -> reference.Evidence:
    """As `reference.examined`; position by position, so that equals are equal to the last digit."""
    evidence = {}
    for pair, cells in reference.per_position(lists).items():
        trials, clicks = 0.0, 0
        for k in sorted(cells):
            trials += cells[k][0] * p[k - 1]
            clicks += cells[k][1]
        evidence[pair] = (float(clicks), max(0.0, trials - clicks))
    return evidence


def quantile_by_special(alpha: float, beta: float, probability: float) -> float:
    return float(betaincinv(alpha, beta, probability))


def learn_by_bound(
    name: str, evidence: Evidence, deltas: Sequence[float], quantile: Quantile
) -> list[list[dict[int, int]]]:
    """For each δ (once, where it plays no part), for each context: position -> item."""
    if name == "mle":
        return [[best_list(evidence, context, reference_mle) for context in range(len(evidence.of))]]
    if name == "hoeffding":
        return [
            [
                best_list(evidence, context, hoeffding_at(delta, evidence, context))
                for context in range(len(evidence.of))
            ]
            for delta in deltas
        ]
    prior = {"bayes": uniform_prior, "eb": grid_prior, "exposure": exposure_prior}[name](evidence)
    actual = []
    for delta in deltas:
        lists = []
        for context in range(len(evidence.of)):

            def score(item: int, positive: float, negative: float, c: int = context) -> tuple[float, float]:
                alpha, beta = prior[c, item][0] + positive, prior[c, item][1] + negative
                return quantile(alpha, beta, delta / 2), alpha / (alpha + beta)  # noqa: B023 - called in this round

            lists.append(best_list(evidence, context, score))
        actual.append(lists)
    return actual


Score = Callable[[int, float, float], tuple[float, float]]  # item, n₊, n₋ -> lower bound, mean


def reference_mle(item: int, positive: float, negative: float) -> tuple[float, float]:
    return reference.mle(positive, negative), reference.mle(positive, negative)


def hoeffding_at(delta: float, evidence: Evidence, context: int) -> Score:
    def score(item: int, positive: float, negative: float) -> tuple[float, float]:
        trials = evidence.trials.get((context, item), 0.0)
        return reference.hoeffding(positive, negative, delta, trials), reference.mle(positive, negative)

    return score


def best_list(evidence: Evidence, context: int, score: Score) -> dict[int, int]:
    """By lower bound, then mean, then impressions, then number."""
    ranked = []
    for item, (positive, negative) in evidence.of[context].items():
        lower, mean = score(item, positive, negative)
        ranked.append((-lower, -mean, -evidence.impressions[context, item], item))
    ranked.sort()
    size = min(len(ranked), len(evidence.places))
    places = [k for k in evidence.places if k < size]
    return {k: item for k, (*_, item) in zip(places, ranked, strict=False)}


Prior = dict[Pair, tuple[float, float]]


def every_pair(evidence: Evidence) -> list[tuple[int, int, float, float]]:
    return [(c, item, *counts) for c, items in enumerate(evidence.of) for item, counts in items.items()]


def uniform_prior(evidence: Evidence) -> Prior:
    return {(c, item): (1.0, 1.0) for c, item, _, _ in every_pair(evidence)}


def grid_prior(evidence: Evidence) -> Prior:
    grid = [2.0**i for i in range(10)]
    likelihood = {}
    for alpha in grid:
        for beta in grid:
            total = 0.0
            for _, _, positive, negative in every_pair(evidence):
                total += float(gammaln(alpha + positive) - gammaln(alpha) + gammaln(beta + negative) - gammaln(beta))
                total -= float(gammaln(alpha + beta + positive + negative) - gammaln(alpha + beta))
            likelihood[alpha, beta] = total
    most = max(likelihood.values())
    best = next(both for both, value in likelihood.items() if value >= most - 1e-9 * abs(most))
    return {(c, item): best for c, item, _, _ in every_pair(evidence)}


# --- the prior that follows exposure ---------------------------------------------------------------------------------


def exposure_prior(evidence: Evidence) -> Prior:
    x: dict[Pair, float] = {}
    for context, items in enumerate(evidence.of):
        shown = [log1p(evidence.impressions[context, item]) for item in items]
        mean = sum(shown) / len(shown)
        x.update({(context, item): value - mean for item, value in zip(items, shown, strict=True)})
    seen = [row for row in every_pair(evidence) if row[2] + row[3] > 0]
    contexts = len({c for c, *_ in seen})
    dimension = 2 if contexts >= 5 else 1 if contexts >= 3 else 0
    z = [[x[c, item], x[c, item] ** 2 / 4][:dimension] for c, item, _, _ in seen]
    positive, negative = sum(row[2] for row in seen), sum(row[3] for row in seen)
    rate = (positive + 0.5) / (positive + negative + 1)
    start = np.array([log(rate / (1 - rate)), *[0.0] * dimension, 2.0])
    slopes = np.zeros(dimension)
    spread = np.linalg.eigvalsh(np.atleast_2d(np.cov(np.array(z).T, bias=True)))[0] if dimension else 0.0
    if spread > 1e-10 and positive > 0 and negative > 0:
        best = climb(seen, z, [0.0] * len(seen), start)
        wald = support(seen, z, best)
        if wald is not None:
            trust = max(0.0, 1 - 4 * dimension / wald)
            slopes, start = trust * best[1:-1], best if trust else start
    offset = [float(np.sum(slopes * row)) if dimension else 0.0 for row in z]
    intercept, log_strength = climb(seen, [[] for _ in seen], offset, start[[0, -1]]).tolist()
    prior = {}
    for pair, exposure in x.items():
        eta = intercept + sum(b * v for b, v in zip(slopes.tolist(), [exposure, exposure**2 / 4], strict=False))
        mean = logistic(eta)
        prior[pair] = (mean * exp(log_strength), (1 - mean) * exp(log_strength))
    return prior


def logistic(eta: float) -> float:
    return 1 / (1 + exp(-min(max(eta, -30.0), 30.0)))


def rise(a: float, n: float) -> tuple[float, float, float]:
    """Log Γ(a + n)/Γ(a), and its two derivatives by a."""
    if n == 0:
        return 0.0, 0.0, 0.0
    value, first = float(gammaln(a + n) - gammaln(a)), float(psi(a + n) - psi(a))
    return value, first, float(zeta(2, a + n) - zeta(2, a))


Terms = tuple[float, np.ndarray, np.ndarray, np.ndarray]
Rows = Sequence[tuple[int, int, float, float]]
Design = Sequence[Sequence[float]]


def likelihood_at(rows: Rows, z: Design, offset: Sequence[float], at: np.ndarray) -> Terms:
    """Log-likelihood of the beta-binomial, its gradient and Hessian, and the gradients of each context."""
    size = len(at)
    value, gradient, hessian = 0.0, np.zeros(size), np.zeros((size, size))
    by_context: dict[int, np.ndarray] = defaultdict(lambda: np.zeros(size))
    strength, parameters = exp(at[-1]), at.tolist()
    totals = [[0.0] * size for _ in range(size)]
    for (context, _, positive, negative), row, base in zip(rows, z, offset, strict=True):
        mu = logistic(sum((b * v for b, v in zip(parameters[1:-1], row, strict=True)), start=parameters[0] + base))
        a, c = mu * strength, (1 - mu) * strength
        value_a, a1, a2 = rise(a, positive)
        value_c, c1, c2 = rise(c, negative)
        value_s, s1, s2 = rise(strength, positive + negative)
        value += value_a + value_c - value_s
        slope = a * (1 - mu)
        by_eta = slope * (a1 - c1)
        by_log = a * a1 + c * c1 - strength * s1
        eta_eta = slope**2 * (a2 + c2) + (1 - 2 * mu) * by_eta
        eta_log = by_eta + slope * (a * a2 - c * c2)
        log_log = by_log + a**2 * a2 + c**2 * c2 - strength**2 * s2
        design = [1.0, *row]
        by_context[context] += [*(by_eta * v for v in design), by_log]
        for i, v in enumerate(design):
            for j, w in enumerate(design):
                totals[i][j] += eta_eta * v * w
            totals[i][-1] += eta_log * v
            totals[-1][i] += eta_log * v
        totals[-1][-1] += log_log
    hessian += np.array(totals)
    gradient += sum(by_context.values())
    return value, gradient, hessian, np.array([by_context[c] for c in sorted(by_context)])


def climb(rows: Rows, z: Design, offset: Sequence[float], start: np.ndarray) -> np.ndarray:
    """Newton's method, damped until the likelihood rises."""
    high = np.array([15.0] * (len(start) - 1) + [7.0])
    low = np.array([-15.0] * (len(start) - 1) + [-2.0])
    here, damping = np.clip(start, low, high), 1e-6
    value, gradient, hessian, _ = likelihood_at(rows, z, offset, here)
    for _ in range(200):
        free = ~((here <= low) & (gradient < 0) | (here >= high) & (gradient > 0))
        information = -hessian[np.ix_(free, free)]
        damped = information + damping * np.diag(np.abs(np.diag(information)) + 1e-3)
        if free.any() and np.linalg.eigvalsh(damped)[0] <= 0:
            damping = max(10 * damping, 1e-3)
            continue
        step = np.zeros_like(here)
        step[free] = np.linalg.solve(damped, gradient[free])
        if step @ gradient < 1e-8:
            break
        there = np.clip(here + step / max(1.0, np.abs(step).max() / 2), low, high)
        new = likelihood_at(rows, z, offset, there)
        if new[0] > value:
            here, (value, gradient, hessian, _), damping = there, new, max(damping / 100, 1e-9)
        else:
            damping = max(10 * damping, 1e-3)
    return np.asarray(here)


def support(rows: Rows, z: Design, at: np.ndarray) -> float | None:
    """The smaller of the model-based and the clustered Wald statistic."""
    _, _, hessian, by_context = likelihood_at(rows, z, [0.0] * len(rows), at)
    given = not -2.0 < at[-1] < 7.0 or -hessian[-1, -1] < 1e-6
    free, slopes = slice(len(at) - given), slice(1, len(at) - 1)
    information = -hessian[free, free]
    if np.linalg.eigvalsh(information)[0] <= 1e-9:
        return None
    inverse = np.linalg.inv(information)
    clustered = inverse @ (by_context[:, free].T @ by_context[:, free]) @ inverse
    actual = []
    for covariance in (inverse, clustered):
        variance, direction = np.linalg.eigh(covariance[slopes, slopes])
        floor = 1e-15 * variance[-1] + 1e-300
        actual.append(float(np.sum((at[slopes] @ direction) ** 2 / np.maximum(variance, floor))))
    return min(actual)


# --- baselines -------------------------------------------------------------------------------------------------------


def clip_of(delta: float) -> float:
    """As printed in Sec. 8.3."""
    return {0.05: 1.0, 0.1: 5.0, 0.15: 10.0, 0.2: 50.0, 1.0: inf}.get(delta, round(2000 * delta - 400, 6))


def clipped(clicks: int, n: int, total: int, clip: float) -> float:
    """(1/N) · min(M, N/n) · clicks."""
    return min(min(clip, total) * clicks / total, clicks / n)


@dataclass(frozen=True)
class Tallies:
    """Sums over the lists of one context."""

    total: int
    items: list[int]  # all there are
    lists: Counter[tuple[reference.Name, ...]]
    list_clicks: Counter[tuple[reference.Name, ...]]
    placed: Counter[tuple[int, int]]  # item, position from 0
    clicks: Counter[tuple[int, int]]
    shown: Counter[int]


def tally(lists: Sequence[LoggedList], truth: Truth) -> list[Tallies]:
    actual = [Tallies(0, list(items), Counter(), Counter(), Counter(), Counter(), Counter()) for items in truth.theta]
    totals = Counter[int]()
    for context, items, clicks in lists:
        of = actual[int(context)]
        totals[int(context)] += 1
        of.lists[items] += 1
        of.list_clicks[items] += sum(clicks)
        for k, (item, hit) in enumerate(zip(items, clicks, strict=True)):
            of.placed[int(item), k] += 1
            of.clicks[int(item), k] += hit
            of.shown[int(item)] += 1
    return [
        Tallies(totals[c], of.items, of.lists, of.list_clicks, of.placed, of.clicks, of.shown)
        for c, of in enumerate(actual)
    ]


def learn_by_rival(
    name: str, tallies: Sequence[Tallies], deltas: Sequence[float], length: int
) -> list[list[dict[int, int]]]:
    if name == "pi":
        return [[pseudo_inverse(of, length) for of in tallies]]
    learn = {"ips": ips, "ip-ips": item_position_ips}[name]
    return [[learn(of, length, clip_of(delta)) for of in tallies] for delta in deltas]


def ips(of: Tallies, length: int, clip: float) -> dict[int, int]:
    best = min(of.lists, key=lambda a: (-clipped(of.list_clicks[a], of.lists[a], of.total, clip), -of.lists[a], a))
    return {k: int(item) for k, item in enumerate(best)}


def item_position_ips(of: Tallies, length: int, clip: float) -> dict[int, int]:
    value = {place: clipped(of.clicks[place], n, of.total, clip) for place, n in of.placed.items()}
    most_shown = sorted(of.items, key=lambda item: (-of.shown[item], item))
    near = set(most_shown[:length])  # the few at each position that a best list can need
    for k in range(length):
        here = [item for item in of.items if of.placed[item, k]]
        here.sort(key=lambda item: (-value[item, k], -of.placed[item, k], -of.shown[item], item))
        near.update(here[:length])
    items = sorted(near)
    size = min(length, len(items))
    # Of equal sums, the list whose items were shown more often: a little more for each.
    largest = max((value.get((item, k), 0.0) for item in items for k in range(length)), default=0.0)
    little = (largest if largest > 0 else 1.0) * 1e-9 / (2 * length)
    gain = np.zeros((size, len(items)))
    for k in range(size):
        rank = sorted(items, key=lambda item: (-of.placed[item, k], -of.shown[item], item))
        for i, item in enumerate(items):
            prefers = (of.placed[item, k] > 0) + 1 - rank.index(item) / len(items)
            gain[k, i] = value.get((item, k), 0.0) + little * (1 - k / (2 * length)) * prefers
    position, chosen = linear_sum_assignment(gain, maximize=True)
    return {int(k): items[i] for k, i in zip(position, chosen, strict=True)}


def pseudo_inverse(of: Tallies, length: int) -> dict[int, int]:
    number = {place: i for i, place in enumerate(sorted(of.placed))}
    gram, right = np.zeros((len(number), len(number))), np.zeros(len(number))
    for items, n in of.lists.items():
        inside = [number[int(item), k] for k, item in enumerate(items)]
        for i in inside:
            right[i] += of.list_clicks[items]
            for j in inside:
                gram[i, j] += n
    phi = np.linalg.pinv(gram, rcond=1e-12, hermitian=True) @ right
    largest = np.abs(phi).max()
    unit = 2.0 ** (round(log2(largest)) - 33) if largest else 1.0  # what is nearer than that is equal
    estimate = {place: round(float(phi[i]) / unit) for place, i in number.items()}
    chosen: dict[int, int] = {}
    for k in range(length):
        free = [item for item in of.items if item not in chosen.values()]
        if free:
            chosen[k] = min(free, key=lambda a: (-estimate.get((a, k), 0), -of.placed[a, k], -of.shown[a], a))
    return chosen


# --- the whole -------------------------------------------------------------------------------------------------------


BOUNDS = ("mle", "bayes", "eb", "hoeffding", "exposure")
READINGS_OF_BASELINES = ("ips", "ip-ips", "pi")


def errors(
    truth: Truth,
    lists: Sequence[LoggedList],
    deltas: Sequence[float],
    learner: str | None = None,
    best: Callable[[Truth, int], float] = best_by_trying,
    quantile: Quantile = quantile_by_special,
    bounds: Sequence[str] = BOUNDS,
    baselines: Sequence[str] = READINGS_OF_BASELINES,
) -> list[float]:
    """V(A*) − V(Â) of every method at every δ, averaged over contexts."""
    evidence = gather(learner or truth.kind, lists, truth)
    tallies = tally(lists, truth)
    actual = [of for name in bounds for of in learn_by_bound(name, evidence, deltas, quantile)]
    actual += [of for name in baselines for of in learn_by_rival(name, tallies, deltas, len(truth.position))]
    contexts = range(len(truth.theta))
    optimum = sum(best(truth, c) for c in contexts) / len(contexts)
    return [
        optimum - sum(truth.value(c, [of[c][k] for k in sorted(of[c])]) for c in contexts) / len(contexts)
        for of in actual
    ]


def list_chances(score: Mapping[int, float], length: int) -> dict[tuple[int, ...], float]:
    """Of drawing each list item by item without repeats, with weights exp(score): Plackett–Luce."""
    weight = {item: exp(of) for item, of in score.items()}
    chances = {}
    for items in permutations(weight, length):
        chance, left = 1.0, sum(weight.values())
        for item in items:
            chance *= weight[item] / left
            left -= weight[item]
        chances[items] = chance
    return chances


def click_chances(truth: Truth, theta: Sequence[float]) -> dict[tuple[int, ...], float]:
    """Of each pattern of clicks on a list of these attractions, by following a user who reads it."""
    if truth.kind == "pbm":
        chances: dict[tuple[int, ...], float] = {(): 1.0}
        for p, attraction in zip(truth.position, theta, strict=False):
            chances = {
                (*clicks, hit): chance * (p * attraction if hit else 1 - p * attraction)
                for clicks, chance in chances.items()
                for hit in (0, 1)
            }
        return chances
    actual: dict[tuple[int, ...], float] = defaultdict(float)
    reading: dict[tuple[int, ...], float] = {(): 1.0}
    for k, attraction in enumerate(theta):
        goes_on: dict[tuple[int, ...], float] = {}
        for clicks, chance in reading.items():
            goes_on[*clicks, 0] = chance * (1 - attraction)
            goes_on[*clicks, 1] = chance * attraction * truth.position[k]
            stopped = (*clicks, 1, *[0] * (len(theta) - k - 1))
            actual[stopped] += chance * attraction * (1 - truth.position[k])
        reading = goes_on
    for clicks, chance in reading.items():
        actual[clicks] += chance
    return dict(actual)
