"""One log, one default, one answer: six ways from a log to lists choose the same click model and the same lists."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pytest

import prudent
from prudent.click_models.simulate import write_log
from prudent.click_models.world import make_world
from tests.command import run

Answer = tuple[str, list[Any]]


def answer(policy: prudent.Policy) -> Answer:
    return policy.manifest.settings["model"], policy.lists().order("context, rank").fetchall()


@pytest.fixture(scope="module", params=["pbm", "dcm"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log, and the same lists as three days."""
    folder: Path = tmp_path_factory.mktemp(request.param)
    world = make_world(request.param, contexts=12, items=(8, 12), length=5, zipf=0.5, seed=2)
    write_log(world, 6_000, folder / "log.parquet", seed=3)
    whole = prudent.Log(folder / "log.parquet")
    for day in range(3):
        part = folder / f"day{day}.parquet"
        lists = f"from '{folder}/log.parquet' where hash(items, clicks) % 3 = {day}"
        duckdb.execute(f"copy ({lists}) to '{part}' (format parquet)")
        prudent.count(prudent.Log(part), to=folder / "days", day=f"2026-11-1{day}")
    prudent.count(whole, to=folder / "counts.parquet")
    return folder


def by_command(folder: Path, source: str) -> Answer:
    done = run("rank", folder / source, "-o", folder / "policy.parquet")
    assert done.code == 0, done.text
    return answer(prudent.Policy.read(folder / "policy.parquet"))


WAYS: dict[str, Callable[[Path], Answer]] = {
    "prudent rank LOG": lambda folder: by_command(folder, "log.parquet"),
    "prudent rank COUNTS": lambda folder: by_command(folder, "counts.parquet"),
    "prudent rank DAYS": lambda folder: by_command(folder, "days"),
    "rank(log)": lambda folder: answer(prudent.rank(prudent.Log(folder / "log.parquet"))),
    "rank(path)": lambda folder: answer(prudent.rank(folder / "log.parquet")),
    "rank(count(log))": lambda folder: answer(prudent.rank(prudent.count(prudent.Log(folder / "log.parquet")))),
    "rank(Counts.read(days))": lambda folder: answer(prudent.rank(prudent.Counts.read(folder / "days"))),
}


@cache
def expected(folder: Path) -> Answer:
    return answer(prudent.rank(prudent.Counts.read(folder / "counts.parquet")))


@pytest.mark.parametrize("way", list(WAYS))
def test_every_way_gives_the_same_lists(folder: Path, way: str) -> None:
    assert WAYS[way](folder) == expected(folder)


def test_the_choice_is_the_model_that_made_the_clicks(folder: Path) -> None:
    policy = prudent.rank(prudent.Counts.read(folder / "counts.parquet"))
    assert policy.manifest.settings["model"] == folder.name.rstrip("0123456789")
    scores = policy.manifest.results["comparison"]["scores"]
    (chosen,) = [score for score in scores if score["model"] == policy.manifest.settings["model"]]
    assert chosen["behind"] <= 2 * chosen["behind_se"], "ubm, which has more parameters, may be ahead by chance"
