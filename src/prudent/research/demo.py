"""The demo: on the simulated search log of a shop, ranking by click-through rate against ranking by lower bounds.

The ground truth of a simulated log is known, so the value of the lists is exact. `run` computes, `show` prints.

The shop is one of eight settings that were tried, in 18 runs of 30,000 or 60,000 searches: attractions from Beta(1, 8),
as the paper fits to real clicks, and a production ranker that reaches about 86 % of the best possible and explores
little. That choice decides how click-through rate compares with production. Here they are level; where production is
worse and explores more (``quality=1, exploration=1``) click-through rate reaches 85 to 91 % of the best possible and
production 66 to 68 %. Prudent was ahead of both in all 18 runs, and of click-through rate by 5 to 17 points.
"""

import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from shlex import quote
from shutil import which

import numpy as np
from rich.console import Console
from rich.text import Text

from prudent.base.arrays import IntArray
from prudent.click_models.simulate import write_log, write_truth
from prudent.click_models.world import World, best_lists, draw, make_world, production_value, value
from prudent.counts.count import count
from prudent.logs.log import Log
from prudent.policies.policy import Policy
from prudent.policies.rank import rank
from prudent.storage.files import make_folder

LISTS = 60_000
NOUNS = (
    "running shoes, rain jacket, backpack, tent, headphones, desk lamp, office chair, kettle, frying pan, chef knife, "
    "water bottle, watch, camera, keyboard, bike helmet, sunglasses, yoga mat, suitcase, toaster, blender, umbrella, "
    "wallet, sleeping bag, speaker, phone case, coffee grinder, cutting board, wool socks, gloves, alarm clock"
)
ADJECTIVES = "cheap best black red blue small light kids vintage"
BRANDS = (
    "Aldern Bravik Corvo Dunmar Elska Fenwyn Gallo Hartig Ilmar Jorna Kestor Lumo Marlow Norvik Ostara Pellam Quillo "
    "Rondo Solvei Tamar Ulvik Vargo Wexley Yarrow"
)
LINES = (
    "Arc Basic City Dash Echo Flex Glide Halo Ion Jet Kite Loop Mono Nova Orbit Pace Quest Ridge Swift Trail Urban "
    "Vista Wave Zen"
)


@dataclass(frozen=True)
class Pick:
    """The product that a ranking puts first, what the log says of it, and the truth."""

    item: str
    clicks: int
    impressions: int
    attraction: float


@dataclass(frozen=True)
class Stumble:
    """A query whose first product by click-through rate has one impression and one click."""

    query: str
    searches: int
    by_rate: Pick
    by_bound: Pick


@dataclass(frozen=True)
class Outcome:
    """Results of the demo and its files."""

    files: Mapping[str, Path]  # of the log ("clicks"), the counts, the policy and the truth
    searches: int
    clicks: int
    queries: int
    length: int
    values: Mapping[str, float]  # ranking -> clicks per search, in truth
    estimates: Mapping[str, float]  # the same by the ranking's own estimate, where it has one
    rare: int  # queries whose first product by click-through rate was shown fewer than 5 times
    stumbles: tuple[Stumble, ...]  # the most frequent query first


def demo(folder: Path, console: Console, seed: int = 0, lists: int = LISTS) -> Outcome:
    """Simulate, count, rank twice, evaluate, print."""
    with Console(stderr=True).status("Simulating a shop, counting its clicks, ranking its products ..."):
        outcome = run(folder, seed, lists)
    show(outcome, console)
    return outcome


def shop(seed: int = 0) -> World:
    """Open a shop with 300 queries, plain ones searched most, and 20 to 60 products for each."""
    nouns = NOUNS.split(", ")
    queries = nouns + [f"{adjective} {noun}" for adjective, noun in product(ADJECTIVES.split(), nouns)]
    world = make_world(
        "pbm", contexts=len(queries), items=(20, 60), attraction=(1, 8), quality=1.5, exploration=0.3, seed=seed
    )
    names = np.array([f"{brand} {line}" for brand, line in product(BRANDS.split(), LINES.split())], dtype=object)
    random = np.random.default_rng(seed)
    items = [random.choice(names, size, replace=False) for size in np.diff(world.offsets)]
    return replace(world, contexts=np.array(queries, dtype=object), items=np.concatenate(items))


def run(folder: Path, seed: int = 0, lists: int = LISTS) -> Outcome:
    """Write log, truth, counts and policy to a folder and compute the value of the rankings on the same searches."""
    make_folder(folder)
    files = {name: folder / f"{name}.parquet" for name in ("clicks", "counts", "policy", "truth")}
    world = shop(seed)
    write_log(world, lists, files["clicks"], seed=seed)
    write_truth(world, files["truth"])
    counts = count(Log(files["clicks"]), to=files["counts"])
    by_rate, by_bound = rank(counts, bound="mle"), rank(counts)
    by_bound.write(files["policy"])

    drawn = list(draw(world, lists, seed))
    searches = np.bincount(np.concatenate([chunk.context for chunk in drawn]), minlength=len(world.contexts))
    first_by_rate, first_by_bound = _firsts(world, by_rate), _firsts(world, by_bound)
    return Outcome(
        files=files,
        searches=lists,
        clicks=sum(int(chunk.clicks.sum()) for chunk in drawn),
        queries=int((searches > 0).sum()),
        length=world.length,
        values={
            "best possible": float(searches @ value(world, best_lists(world)) / lists),
            "prudent": float(searches @ value(world, _pair_numbers(world, by_bound)) / lists),
            "production": production_value(world, lists, seed),  # of the lists in the log: same seed
            "click-through rate": float(searches @ value(world, _pair_numbers(world, by_rate)) / lists),
        },
        estimates={
            "prudent": by_bound.manifest.results["summary"]["value"],
            "click-through rate": by_rate.manifest.results["summary"]["value"],
        },
        rare=sum(pick.impressions < 5 for pick in first_by_rate.values()),
        # Chosen by the log alone, not by the truth, which may favour click-through rate.
        stumbles=tuple(
            Stumble(query, int(searches[row]), first_by_rate[query], first_by_bound[query])
            for row, query in sorted(enumerate(world.contexts), key=lambda entry: -searches[entry[0]])
            if query in first_by_rate and first_by_rate[query].clicks == first_by_rate[query].impressions == 1
        ),
    )


def _pair_numbers(world: World, policy: Policy) -> IntArray:
    """Find the world's numbers for the products in a policy's lists; −1 where a list is short or missing."""
    rows = {name: row for row, name in enumerate(world.contexts)}
    numbers = _numbers(world)
    lists = np.full((len(rows), world.length), -1)
    for query, place, item in policy.lists().select("context, rank, item").fetchall():
        lists[rows[query], place - 1] = numbers[query, item]
    return lists


def _numbers(world: World) -> dict[tuple[str, str], int]:
    queries = np.repeat(world.contexts, np.diff(world.offsets))
    return {pair: number for number, pair in enumerate(zip(queries, world.items, strict=True))}


def _firsts(world: World, policy: Policy) -> dict[str, Pick]:
    numbers = _numbers(world)
    first = policy.lists().filter("rank = 1").select("context, item, positive, impressions").fetchall()
    return {
        query: Pick(item, int(positive), impressions, float(world.attraction[numbers[query, item]]))
        for query, item, positive, impressions in first
    }


def show(outcome: Outcome, console: Console) -> None:
    """Print an outcome, no line longer than 80 characters unless the folder's name is long."""
    for line in describe(outcome, "#" if console.options.ascii_only else "█"):
        console.print(line, highlight=False, soft_wrap=True)


def describe(outcome: Outcome, mark: str = "█") -> Iterator[Text]:
    """The printed lines, whichever ranking wins; bars are made of `mark`."""
    yield _prose(
        f"The search log of a shop: {outcome.searches:,} searches for {outcome.queries} queries, "
        f"{outcome.length} products shown each time, {outcome.clicks:,} clicks. The log is simulated, so the true "
        "value of every ranking is known:"
    )
    yield Text()
    yield from _grades(outcome, mark)
    yield Text()
    yield _prose(
        "production: the lists in the log. click-through rate: highest estimate first (--bound mle). prudent: "
        "production's order, except where evidence beats it (the default). estimated: by the ranking itself. true: by "
        "the ground truth.",
        "dim",
    )
    yield Text()
    yield _prose(
        f"For {outcome.rare} of the {outcome.queries} queries the highest click-through rate belongs to a product "
        f"shown fewer than 5 times; for {len(outcome.stumbles)} of them to one shown once, and clicked."
        + (" The most searched of these:" if outcome.stumbles else "")
    )
    yield Text()
    if outcome.stumbles:
        yield from _examples(outcome.stumbles[:3])
        yield Text()
        yield _prose("truth: attraction, the probability of a click if the product is examined.", "dim")
        yield Text()
    yield from _next_steps(outcome.files)


def _prose(words: str, style: str = "") -> Text:
    return Text(textwrap.fill(words, 80), style)


def _grades(outcome: Outcome, mark: str) -> Iterator[Text]:
    best, production = outcome.values["best possible"], outcome.values["production"]
    yield Text(f"{'clicks per 100 searches':>60}  of the     against")
    yield Text(f"{'ranking':36}{'estimated':>12}{'true':>12}    best  production")
    for name, earned in sorted(outcome.values.items(), key=lambda entry: -entry[1]):
        bar = mark * round(16 * earned / best)
        estimate = f"{100 * outcome.estimates[name]:.1f}" if name in outcome.estimates else ""
        gain = "" if name == "production" else f"{earned / production - 1:+12.0%}"
        line = f"{name:18}  {bar:16}{estimate:>12}{100 * earned:12.1f}  {earned / best:6.0%}{gain}"
        yield Text(line, "bold green" if name == "prudent" else "")


def _examples(stumbles: Sequence[Stumble]) -> Iterator[Text]:
    yield Text(f"{'query':22}  {'ranking':18}  {'puts first':12}  {'clicked':>14}  truth")
    for stumble in stumbles:
        searches = f"({stumble.searches:,} searches)"
        for query, ranking, pick, style in (
            (stumble.query, "click-through rate", stumble.by_rate, ""),
            (searches, "prudent", stumble.by_bound, "green"),
        ):
            clicked = f"{pick.clicks:,} of {pick.impressions:,}"
            line = f"{query:22}  {ranking:18}  {pick.item:12}  {clicked:>14}  {pick.attraction:5.2f}"
            yield Text(line, style)


def _next_steps(files: Mapping[str, Path]) -> Iterator[Text]:
    contents = {
        "clicks": "the log, one row per search",
        "counts": "its counts, all that ranking needs",
        "policy": "prudent's lists, with the evidence",
        "truth": "the ground truth, unknown for a real log",
    }
    width = max(len(str(path)) for path in files.values())
    yield Text("Files:")
    for name, path in files.items():
        yield Text(f"  {path!s:{width}}  {contents[name]}")
    yield Text()
    # Where it is not on the path, as in a virtual environment that is not active, it is called as it was.
    called = sys.argv[0] if Path(sys.argv[0]).name == "prudent" and not which("prudent") else "prudent"
    prudent = quote(called)
    yield Text("Next:")
    yield Text(f"  {prudent} check {quote(str(files['clicks']))}")
    yield Text(f"  {prudent} rank {quote(str(files['counts']))} -o top5.parquet --length 5")
    yield Text(f"  {prudent} split {quote(str(files['clicks']))} -o parts")
    yield Text(f"  {prudent} check YOUR_LOG --context query --items shown --clicks clicked")
