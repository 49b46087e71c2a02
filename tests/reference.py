"""What prudent computes, once more, as plain loops over lists: slow, and short enough to be checked by reading.

A log is a list of `LoggedList`: a context, the items from the top down, and for each of them 0 or 1. Positions count
from 1. Everything is keyed by names; nothing is shared with the package.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import permutations
from math import inf, log, log2, prod, sqrt

Name = str | int
LoggedList = tuple[Name, tuple[Name, ...], tuple[int, ...]]  # context, items, clicks
Pair = tuple[Name, Name]  # context, item
Evidence = dict[Pair, tuple[float, float]]  # n₊, n₋


# --- counts -------------------------------------------------------------------------------------------------------


def histogram(lists: Sequence[LoggedList]) -> Counter[tuple[Name, Name, int, int, bool, bool]]:
    """How often each (context, item, position, prev, click, more) occurs."""
    counts: Counter[tuple[Name, Name, int, int, bool, bool]] = Counter()
    for context, items, clicks in lists:
        prev = 0
        for position, (item, click) in enumerate(zip(items, clicks, strict=True), start=1):
            more = any(clicks[position:])
            counts[context, item, position, prev, bool(click), more] += 1
            if click:
                prev = position
    return counts


def impressions(lists: Sequence[LoggedList]) -> Counter[Pair]:
    return Counter((context, item) for context, items, _ in lists for item in items)


def longest(lists: Sequence[LoggedList]) -> int:
    return max(len(items) for _, items, _ in lists)


def last_click(clicks: Sequence[int]) -> int:
    """Its position; 0 when there is none."""
    return max((position for position, click in enumerate(clicks, start=1) if click), default=0)


# --- the cascade model --------------------------------------------------------------------------------------------


def cascade(lists: Sequence[LoggedList]) -> Evidence:
    """Read from the top, down to and including the first click."""
    positive, negative = Counter[Pair](), Counter[Pair]()
    for context, items, clicks in lists:
        for item, click in zip(items, clicks, strict=True):
            if click:
                positive[context, item] += 1
                break
            negative[context, item] += 1
    return {pair: (positive[pair], negative[pair]) for pair in impressions(lists)}


# --- the dependent-click model ------------------------------------------------------------------------------------


def truncated(lists: Sequence[LoggedList]) -> Evidence:
    """Read down to the last click; everything when there is none."""
    positive, negative = Counter[Pair](), Counter[Pair]()
    for context, items, clicks in lists:
        end = last_click(clicks) or len(items)
        for item, click in zip(items[:end], clicks[:end], strict=True):
            (positive if click else negative)[context, item] += 1
    return {pair: (positive[pair], negative[pair]) for pair in impressions(lists)}


def truncated_continuation(lists: Sequence[LoggedList]) -> list[float]:
    """λ̂ₖ: of the clicks at k, the share that was not the last; ½ without clicks; at the end the one before it."""
    continuation = []
    for position in range(1, longest(lists) + 1):
        clicked = [clicks for _, _, clicks in lists if len(clicks) >= position and clicks[position - 1]]
        went_on = sum(last_click(clicks) > position for clicks in clicked)
        continuation.append(went_on / len(clicked) if clicked else 0.5)
    continuation[-1] = continuation[-2] if len(continuation) > 1 else 0.5
    return continuation


def continuation_ratios(lists: Sequence[LoggedList]) -> tuple[list[float], list[float]]:
    """λ, and (λ̂ₖ − 1) / standard error of each position that has one: Mantel and Haenszel, DerSimonian and Laird."""
    free, below = Counter[tuple[Pair, int]](), Counter[tuple[Pair, int, int]]()  # the last number: clicked or not
    for context, items, clicks in lists:
        for k, (item, click) in enumerate(zip(items, clicks, strict=True)):
            if not any(clicks[:k]):
                free[(context, item), click] += 1
            elif clicks[k - 1]:
                below[(context, item), k, click] += 1
    clicks_at, certain, variance, clustered, observed = [], [], [], [], []
    for k in range(1, longest(lists)):
        rows = []
        for pair in {pair for pair, at, _ in below if at == k}:
            y, c = below[pair, k, 1], free[pair, 1]
            m, n = y + below[pair, k, 0], c + free[pair, 0]
            pooled = ((y + c) * m * n - y * c * (m + n)) / (m + n) ** 2
            own = (y * n**2 + c * m**2) / (m + n) ** 2
            rows.append((pair[0], y * n / (m + n), c * m / (m + n), pooled, own))
        clicks_at.append(sum(row[1] for row in rows))
        certain.append(sum(row[2] for row in rows))
        variance.append(sum(row[3] for row in rows))
        observed.append(sum(row[4] for row in rows))
        ratio = clicks_at[-1] / certain[-1] if certain[-1] else 1
        off: dict[Name, float] = defaultdict(float)
        for context, clicked, would, *_ in rows:
            off[context] += clicked - ratio * would
        clustered.append(sum(e * e for e in off.values()))
    mean = min(1.0, (sum(clicks_at) + 0.5) / (sum(certain) + 1))
    ratios = [(y + mean) / (c + 1) for y, c in zip(clicks_at, certain, strict=True)]
    errors = [
        max(mean * v + 1 / 8, e) / c**2 if c else inf for v, e, c in zip(variance, clustered, certain, strict=True)
    ]
    total = sum(1 / e for e in errors)
    if total:
        mean = sum(r / e for r, e in zip(ratios, errors, strict=True)) / total
        excess = (
            sum((r - mean) ** 2 / e for r, e in zip(ratios, errors, strict=True)) - sum(e < inf for e in errors) + 1
        )
        free_weight = total - sum(1 / e**2 for e in errors) / total
        spread = max(0.0, excess / free_weight) if free_weight > 1e-9 * total else 0.0
        weights = [1 / (e + spread) for e in errors]
        mean = sum(w * r for w, r in zip(weights, ratios, strict=True)) / sum(weights)
        ratios = [
            mean + spread / (spread + e) * (r - mean) if e < inf else mean for r, e in zip(ratios, errors, strict=True)
        ]
    else:
        ratios = [mean for _ in ratios]
    continuation = [max(0.0, min(r, (c + 0.5) / (c + 1))) for r, c in zip(ratios, certain, strict=True)]
    doubts = [
        (y - c) / sqrt(max(v, e)) if max(v, e) else 0.0
        for y, c, v, e in zip(clicks_at, certain, observed, clustered, strict=True)
        if c
    ]
    return [*continuation, continuation[-1] if continuation else 0.5], doubts


def tail_em(
    lists: Sequence[LoggedList], given: Sequence[float] | None = None, rounds: int = 20_000
) -> tuple[Evidence, list[float]]:
    """Evidence and λ when the items below the last click count with the probability that they were read."""
    distinct = Counter(lists)
    continuation = list(given) if given is not None else continuation_ratios(lists)[0]
    sure = truncated(lists)
    shown = impressions(lists)
    # Each distinct list that has a last click with something below it, and how often it was shown.
    tails = [(c, items, end, n) for (c, items, ks), n in distinct.items() if 0 < (end := last_click(ks)) < len(items)]
    sizes = Counter[tuple[Name, int]]()  # lists of one context with one last click
    for context, _, end, n in tails:
        sizes[context, end] += n

    def probability_of_reading(theta: Mapping[Pair, float], continuation: Sequence[float]) -> list[dict[Name, float]]:
        """For each tail, for each of its items: w = λP / (1 − λ + λP)."""
        attracts: dict[tuple[Name, int, int], float] = defaultdict(float)  # Σθ at (context, last click, position)
        for context, items, end, n in tails:
            for position in range(end + 1, len(items) + 1):
                attracts[context, end, position] += n * theta[context, items[position - 1]]
        skipped = {key: 1 - total / sizes[key[:2]] for key, total in attracts.items()}  # the mean of 1 − θ
        below = defaultdict(list)
        for context, end, position in skipped:
            below[context, end].append(position)
        weights = []
        for context, items, end, _ in tails:
            weight = {}
            for position in range(end + 1, len(items) + 1):
                others = prod(skipped[context, end, j] for j in below[context, end] if j != position)
                unclicked = continuation[end - 1] * others * (1 - theta[context, items[position - 1]])
                weight[items[position - 1]] = unclicked / (1 - continuation[end - 1] + unclicked)
            weights.append(weight)
        return weights

    def examined(weights: list[dict[Name, float]]) -> dict[Pair, float]:
        total = {pair: sum(sure[pair]) for pair in shown}
        for (context, _, _, n), weight in zip(tails, weights, strict=True):
            for item, w in weight.items():
                total[context, item] += n * w
        return total

    def attraction(total: Mapping[Pair, float]) -> dict[Pair, float]:
        """Two more examinations of every pair, clicked as often as those of its context."""
        clicks: dict[Name, float] = defaultdict(lambda: 1.0)
        trials: dict[Name, float] = defaultdict(lambda: 2.0)
        for pair in shown:
            clicks[pair[0]] += sure[pair][0]
            trials[pair[0]] += total[pair]
        return {pair: (sure[pair][0] + 2 * clicks[pair[0]] / trials[pair[0]]) / (total[pair] + 2) for pair in shown}

    theta = attraction({pair: sum(sure[pair]) for pair in shown})
    for _ in range(rounds):
        weights = probability_of_reading(theta, continuation)
        total = examined(weights)
        new_theta = attraction(total)
        moved = max(abs(new_theta[pair] - theta[pair]) for pair in shown)
        theta = new_theta
        if moved < 1e-11:
            break
    else:
        raise AssertionError(f"still moves by {moved} after {rounds} rounds")
    total = examined(probability_of_reading(theta, continuation))
    return {pair: (sure[pair][0], total[pair] - sure[pair][0]) for pair in shown}, continuation


# --- the position-based model -------------------------------------------------------------------------------------


def examined(lists: Sequence[LoggedList], examination: Sequence[float]) -> Evidence:
    """n₊ = ΣY, n₋ = max(0, Σp − ΣY)."""
    clicks, trials = Counter[Pair](), dict.fromkeys(impressions(lists), 0.0)
    for context, items, clicked in lists:
        for item, click, p in zip(items, clicked, examination, strict=False):
            clicks[context, item] += click
            trials[context, item] += p
    return {pair: (clicks[pair], max(0.0, trials[pair] - clicks[pair])) for pair in trials}


def weighted(lists: Sequence[LoggedList], examination: Sequence[float]) -> Evidence:
    """n₊ = ΣY/p, n₋ = Σ(1 − Y)/p."""
    evidence = dict.fromkeys(impressions(lists), (0.0, 0.0))
    for context, items, clicked in lists:
        for item, click, p in zip(items, clicked, examination, strict=False):
            positive, negative = evidence[context, item]
            evidence[context, item] = (positive + click / p, negative + (1 - click) / p)
    return evidence


def chances(lists: Sequence[LoggedList], examination: Sequence[float], pair: Pair) -> list[tuple[float, int]]:
    """Of each impression of a pair, the chance that it was examined, and whether it was clicked."""
    return [
        (p, click)
        for context, items, clicked in lists
        for item, click, p in zip(items, clicked, examination, strict=False)
        if (context, item) == pair
    ]


def thinned(a: float, b: float, skips: Sequence[float], at: float, steps: int = 4_000) -> tuple[float, float]:
    """The share of θ^(a−1) (1−θ)^(b−1) ∏ (1 − pθ) below a number, and the mean, by the midpoint rule; a, b ≥ 1."""
    below = total = first = 0.0
    for k in range(steps):
        theta = (k + 0.5) / steps
        weight = theta ** (a - 1) * (1 - theta) ** (b - 1) * prod(1 - p * theta for p in skips)
        total += weight
        first += weight * theta
        below += weight * min(1.0, max(0.0, at * steps - k))
    return below / total, first / total


Table = dict[Pair, dict[int, tuple[int, int]]]  # pair -> position -> impressions, clicks


def per_position(lists: Sequence[LoggedList], enough: int = 0) -> Table:
    """Of the pairs with at least `enough` impressions."""
    shown, clicked = Counter[tuple[Pair, int]](), Counter[tuple[Pair, int]]()
    for context, items, clicks in lists:
        for position, (item, click) in enumerate(zip(items, clicks, strict=True), start=1):
            shown[(context, item), position] += 1
            clicked[(context, item), position] += click
    table: Table = defaultdict(dict)
    for (pair, position), n in shown.items():
        table[pair][position] = (n, clicked[pair, position])
    return {pair: cells for pair, cells in table.items() if sum(n for n, _ in cells.values()) >= enough}


def position_groups(lists: Sequence[LoggedList], link: int = 20) -> list[list[int]]:
    """Positions joined by an item with at least `link` impressions at both, as sorted groups."""
    group_of = {position: {position} for position in range(1, longest(lists) + 1)}
    for cells in per_position(lists).values():
        often = [position for position, (n, _) in cells.items() if n >= link]
        for a in often:
            for b in often:
                union = group_of[a] | group_of[b]
                for position in union:
                    group_of[position] = union
    return sorted({tuple(sorted(group)): sorted(group) for group in group_of.values()}.values())


def examination_em(
    lists: Sequence[LoggedList], smooth: float, enough: int = 10, rounds: int = 200_000, tolerance: float = 1e-9
) -> list[float]:
    """P by expectation-maximisation, with `smooth` pseudo-observations of either kind for every θ and p."""
    return factor_em(per_position(lists, enough), range(1, longest(lists) + 1), smooth, rounds, tolerance)


def factor_em(table: Table, positions: Sequence[int], smooth: float, rounds: int, tolerance: float) -> list[float]:
    """P of positions, or of whatever else the rows of the table are numbered by."""
    theta, p, scaled = dict.fromkeys(table, 0.3), dict.fromkeys(positions, 0.5), [0.0 for _ in positions]
    for _ in range(rounds):
        attracted, read = dict.fromkeys(table, smooth), dict.fromkeys(positions, smooth)
        trials = dict.fromkeys(positions, 2 * smooth)
        for pair, cells in table.items():
            for position, (n, clicks) in cells.items():
                both = 1 - theta[pair] * p[position]  # P(no click)
                # Unclicked: it attracts but was not read, or was read but does not attract.
                attracted[pair] += clicks + (n - clicks) * theta[pair] * (1 - p[position]) / both
                read[position] += clicks + (n - clicks) * p[position] * (1 - theta[pair]) / both
                trials[position] += n
        theta = {pair: attracted[pair] / (2 * smooth + sum(n for n, _ in table[pair].values())) for pair in table}
        p = {position: read[position] / trials[position] for position in positions}
        # Only ratios of p matter, and they settle long before its scale does, which `smooth` alone decides.
        new = [p[position] / max(p.values()) for position in positions]
        moved = max(abs(a - b) for a, b in zip(new, scaled, strict=True))
        scaled = new
        if moved < tolerance:
            return scaled
    raise AssertionError(f"still moves by {moved} after {rounds} rounds")


def examination_als(lists: Sequence[LoggedList], enough: int = 10, rounds: int = 5_000) -> list[float] | None:
    """P by alternating least squares of (pθ − Y)²; all 1 without clicks, and None where it does not settle.

    θ is not kept below 1 here. Where some items say that pₖ is 0 and others, seen only there, are clicked, those fit
    any pₖ > 0 with θ as large as it takes: pₖ creeps towards 0 for ever.
    """
    table, positions = per_position(lists, enough), range(1, longest(lists) + 1)
    if not any(clicks for cells in table.values() for _, clicks in cells.values()):
        return [1.0 for _ in positions]
    p = dict.fromkeys(positions, 1.0)
    for _ in range(rounds):
        theta = {}
        for pair, cells in table.items():
            squares = sum(n * p[position] ** 2 for position, (n, _) in cells.items())
            products = sum(clicks * p[position] for position, (_, clicks) in cells.items())
            theta[pair] = products / squares if squares else 0.0
        new = {}
        for position in positions:
            at = [(theta[pair], *cells[position]) for pair, cells in table.items() if position in cells]
            squares = sum(n * attraction**2 for attraction, n, _ in at)
            products = sum(clicks * attraction for attraction, _, clicks in at)
            new[position] = products / squares if squares else 0.0
        scaled = {position: value / max(new.values()) for position, value in new.items()}
        moved = max(abs(scaled[position] - p[position]) for position in positions)
        p = scaled
        if moved < 1e-12:
            return [p[position] for position in positions]
    return None


# --- the user browsing model ----------------------------------------------------------------------------------------

Rows = Sequence[Sequence[float]]  # γ by position and last click above, which is 0 for none


def browsed(clicks: Sequence[int], rows: Rows) -> list[float]:
    """The probability that each item of a list was examined, by where the last click above is."""
    last, chances = 0, []
    for position, click in enumerate(clicks, start=1):
        chances.append(rows[position - 1][last])
        last = position if click else last
    return chances


def browsing_likelihood(theta: Sequence[float], clicks: Sequence[int], rows: Rows) -> float:
    """P(all these clicks and no others)."""
    chances = browsed(clicks, rows)
    return prod(x * a if click else 1 - x * a for a, click, x in zip(theta, clicks, chances, strict=True))


def expected_clicks(theta: Sequence[float], rows: Rows) -> float:
    """Forward over "where was the last click", as a dictionary of probabilities."""
    last, total = {0: 1.0}, 0.0
    for position, attraction in enumerate(theta, start=1):
        clicked = {j: q * rows[position - 1][j] * attraction for j, q in last.items()}
        last = {j: q - clicked[j] for j, q in last.items()} | {position: sum(clicked.values())}
        total += last[position]
    return total


def browsing_evidence(lists: Sequence[LoggedList], rows: Rows) -> Evidence:
    """n₊ = ΣY, n₋ = max(0, Σγ − ΣY)."""
    clicks, trials = Counter[Pair](), dict.fromkeys(impressions(lists), 0.0)
    for context, items, clicked in lists:
        for item, click, x in zip(items, clicked, browsed(clicked, rows), strict=True):
            clicks[context, item] += click
            trials[context, item] += x
    return {pair: (clicks[pair], max(0.0, trials[pair] - clicks[pair])) for pair in trials}


def browsing_clicks(lists: Sequence[LoggedList]) -> Counter[tuple[int, int]]:
    """Clicks that each (position, last click above) would have at the click rates of its items."""
    shown = impressions(lists)
    clicked = Counter((c, item) for c, items, clicks in lists for item, y in zip(items, clicks, strict=True) if y)
    expected: Counter[tuple[int, int]] = Counter()
    for context, items, clicks in lists:
        for position, item in enumerate(items, start=1):
            state = position, last_click(clicks[: position - 1])
            expected[state] += clicked[context, item] / shown[context, item]  # type: ignore[assignment]
    return expected


def pooled(clicks: Sequence[float], enough: float) -> list[int]:
    """Numbers of neighbours that have enough together; what is left over belongs to the last."""
    filled: list[list[float]] = [[]]
    for n in clicks:
        filled[-1].append(n)
        if sum(filled[-1]) >= enough:
            filled.append([])
    left_over = filled.pop()
    filled[-1] += left_over
    return [number for number, members in enumerate(filled) for _ in members]


def browsing_em(lists: Sequence[LoggedList], groups: Sequence[Sequence[int]], smooth: float) -> list[float]:
    """γ of groups of states by expectation-maximisation; `groups` numbers them by position and last click above."""
    counted: dict[Pair, dict[int, tuple[int, int]]] = defaultdict(dict)
    for context, items, clicks in lists:
        of_list = browsed(clicks, [[float(number) for number in row] for row in groups])
        for item, click, number in zip(items, clicks, of_list, strict=True):
            n, clicked = counted[context, item].get(int(number), (0, 0))
            counted[context, item][int(number)] = (n + 1, clicked + click)
    table = {pair: cells for pair, cells in counted.items() if sum(n for n, _ in cells.values()) >= 10}
    every = sorted({number for row in groups for number in row})
    return factor_em(table, every, smooth, rounds=200_000, tolerance=1e-9)


# --- bounds -------------------------------------------------------------------------------------------------------


def mle(positive: float, negative: float) -> float:
    return positive / (positive + negative) if positive + negative > 0 else 0.0


def hoeffding(positive: float, negative: float, delta: float, trials: float | None = None) -> float:
    """Of n examinations, with the width of n or of other trials."""
    n = positive + negative
    trials = n if trials is None else trials
    return positive / n - sqrt(log(1 / delta) / (2 * trials)) if trials > 0 else -inf


# --- lists --------------------------------------------------------------------------------------------------------


def any_success(attraction: Sequence[float], weight: Sequence[float]) -> float:
    return 1 - prod(1 - w * theta for w, theta in zip(weight, attraction, strict=True))


def expected_successes(attraction: Sequence[float], weight: Sequence[float]) -> float:
    return sum(w * theta for w, theta in zip(weight, attraction, strict=True))


VALUE = {"cm": any_success, "dcm": any_success, "pbm": expected_successes}


def list_lower_bound(kind: str, mean: Sequence[float], lower: Sequence[float], weight: Sequence[float]) -> float:
    """V(m) − √Σ (∂V/∂mₖ (mₖ − Lₖ))², of independent posteriors; V is linear in each m."""
    squares = 0.0
    for k in range(len(mean)):
        clicked, skipped = ([*mean[:k], end, *mean[k + 1 :]] for end in (1.0, 0.0))
        squares += ((VALUE[kind](clicked, weight) - VALUE[kind](skipped, weight)) * (mean[k] - lower[k])) ** 2
    return max(0.0, VALUE[kind](mean, weight) - sqrt(squares))


def best_value(kind: str, scores: Sequence[float], weight: Sequence[float]) -> float:
    """The highest value of all lists, by trying them; one with fewer items than positions fills the first of them."""
    size = min(len(scores), len(weight))
    return max(VALUE[kind](chosen, weight[:size]) for chosen in permutations(scores, size))


def production_order(lists: Sequence[LoggedList], context: Name) -> list[Name]:
    """Items by impressions discounted by log₂(1 + position); then by impressions, then by name."""
    discounted: Counter[Name] = Counter()
    shown: Counter[Name] = Counter()
    for c, items, _ in lists:
        for position, item in enumerate(items, 1):
            if c == context:
                discounted[item] += round(2**20 / log2(1 + position))
                shown[item] += 1
    return sorted(shown, key=lambda item: (-discounted[item], -shown[item], item))


def incumbent_list(lists: Sequence[LoggedList], context: Name, length: int) -> dict[int, Name]:
    """Rank -> item."""
    return dict(enumerate(production_order(lists, context)[:length], 1))


def hazard(lists: Sequence[LoggedList], context: Name, item: Name) -> float:
    """Impressions per opportunity: a list that reaches a position and has not shown the item above it is one."""
    own = [items for c, items, _ in lists if c == context]
    places = [items.index(item) + 1 for items in own if item in items]
    longest = max(map(len, own))
    reach = [sum(len(items) >= k for items in own) for k in range(1, longest + 1)]
    above = [sum(place < k for place in places) for k in range(1, longest + 1)]
    here = [sum(place == k for place in places) for k in range(1, longest + 1)]
    opportunities = sum(1 - a / n for a, n in zip(above, reach, strict=True))
    own_places = sum(h / n for h, n in zip(here, reach, strict=True))
    return longest * len(places) / max(opportunities, own_places) if places else 0.0


def anchored_list(
    order: Sequence[Name],
    lower: Mapping[Name, float],
    stay: Mapping[Name, float],
    leaders: Sequence[Name],
    length: int,
    max_moves: int | None = None,
) -> list[Name]:
    """Production's order, in which a leader rises past what it beats; leaders come sorted, the best first."""
    chosen: list[Name] = []
    for rank in range(1, min(length, len(order)) + 1):
        i = next(item for item in order if item not in chosen)
        free = [
            item
            for item in leaders
            if item not in chosen and (max_moves is None or order.index(item) + 1 - rank <= max_moves)
        ]
        chosen.append(free[0] if free and lower[free[0]] > stay[i] else i)
    return chosen
