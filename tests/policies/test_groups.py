"""Ranking with groups: from a log and tables to lists."""

import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import prudent
from prudent.base.errors import UsageError
from prudent.policies.group_terms import group_sentences
from tests.command import run

ITEMS, BRANDS, LENGTH = 120, 12, 5
PBM = "pbm(examination=[1, 0.6, 0.5, 0.4, 0.3])"


def write_log(path: Path, brand: np.ndarray, *, contexts: int = 700, seed: int = 1) -> None:
    """Most contexts are seen once; items differ, and those of a brand alike."""
    rng = np.random.default_rng(seed)
    effect = 0.7 * rng.standard_normal(ITEMS) + 0.7 * rng.standard_normal(BRANDS)[brand]
    context, items, clicks = [], [], []
    for number in range(contexts):
        chosen = rng.choice(ITEMS, 8, replace=False)
        theta = 1 / (1 + np.exp(1.5 - effect[chosen] - 0.4 * rng.standard_normal(8)))
        score = rng.standard_normal(8)
        for _ in range(1 if rng.random() < 0.8 else int(min(2 / (1 - rng.random()), 60))):
            order = np.argsort(-score - rng.gumbel(0, 0.5, 8))[:LENGTH]
            context.append(f"query {number}")
            items.append([f"https://shop{brand[i]}.com/{i}" for i in chosen[order]])
            clicks.append((rng.random(LENGTH) < theta[order] * [1, 0.6, 0.5, 0.4, 0.3]).astype(int).tolist())
    pq.write_table(pa.table({"context": context, "items": items, "clicks": clicks}), path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("groups")
    rng = np.random.default_rng(5)
    brand = rng.integers(0, BRANDS, ITEMS)
    write_log(folder / "log.parquet", brand)
    items = [f"https://shop{brand[i]}.com/{i}" for i in range(ITEMS)]
    columns = {"item": items, "brand": [f"b{one}" for one in brand], "dice": rng.integers(0, 6, ITEMS)}
    pq.write_table(pa.table(columns), folder / "items.parquet")
    return folder


@pytest.fixture(scope="module")
def policies(folder: Path) -> dict[str, prudent.Policy]:
    log = folder / "log.parquet"
    groups: dict[str, Any] = {"groups": "item,host", "item_groups": folder / "items.parquet"}
    return {
        "alone": prudent.rank(log, PBM),
        "groups": prudent.rank(log, PBM, bound="anchored(lead=clicks)", **groups),
        "lead": prudent.rank(log, PBM, **groups),
    }


def clicked_pairs(folder: Path) -> set[tuple[str, str]]:
    rows = duckdb.execute(
        f"select distinct context, item from (select context, unnest(items) as item, unnest(clicks) as click from "
        f"'{folder / 'log.parquet'}') where click = 1"
    ).fetchall()
    return {(context, item) for context, item in rows}


def test_groups_sharpen_the_prior_and_say_so(policies: dict[str, prudent.Policy]) -> None:
    alone, groups = (policies[name].manifest.results["fitted"] for name in ("alone", "groups"))
    assert "groups" not in alone
    assert "by_group" not in alone["prior"]
    assert groups["prior"]["strength"] > 1.3 * alone["prior"]["strength"]
    assert groups["prior"]["by_group"]["item"]["slope"] > 0.4
    assert groups["prior"]["by_group"]["dice"]["slope"] == 0
    assert groups["groups"]["item"]["groups"] == ITEMS
    sentences = group_sentences(groups)
    assert [sentence.partition(":")[0] for sentence in sentences] == ["item", "host", "brand", "dice"]
    assert "of the slope is kept" in sentences[0]
    assert sentences[3].endswith("not used.")
    settings = policies["groups"].manifest.settings
    assert settings["groups"] == ["item", "host"]
    assert settings["item_groups"].endswith("items.parquet")


def test_with_lead_clicks_no_item_rises_on_groups_alone(folder: Path, policies: dict[str, prudent.Policy]) -> None:
    """The guarantees of `anchored` hold with groups: no context without a click moves, no item without one rises."""
    clicked = clicked_pairs(folder)
    of_context = {context for context, _ in clicked}
    incumbent = dict(prudent.rank(folder / "log.parquet", PBM, max_moves=0).items())
    moved = 0
    for context, items in policies["groups"].items():
        before = incumbent[context]
        if context not in of_context:
            assert items == before
        for place, item in enumerate(items):
            if (context, item) not in clicked:
                assert set(before[: before.index(item)]) <= set(items[:place])
        moved += items != before
    assert moved > 50
    assert policies["groups"].manifest.results["summary"]["unclicked"] == 0


def test_items_rise_on_groups_alone(folder: Path, policies: dict[str, prudent.Policy]) -> None:
    of_context = {context for context, _ in clicked_pairs(folder)}
    incumbent = dict(prudent.rank(folder / "log.parquet", PBM, max_moves=0).items())
    moved = [context for context, items in policies["lead"].items() if items != incumbent[context]]
    silent = [context for context in moved if context not in of_context]
    assert len(silent) > 20
    summary = policies["lead"].manifest.results["summary"]
    assert summary["unclicked"] == len(silent)
    assert summary["differ"] == len(moved) - len(silent), "lists without a click are not counted as differing"
    rose = policies["lead"].explain(silent[0]).to_frame()
    assert any("better by its groups in other contexts" in why for why in rose["why"])


def test_the_order_of_lists_and_the_number_of_threads_change_no_byte(folder: Path, tmp_path: Path) -> None:
    rows = pq.read_table(folder / "log.parquet")
    shuffled = rows.take(np.random.default_rng(3).permutation(rows.num_rows))
    settings: dict[str, Any] = {"groups": "item,host,query", "item_groups": folder / "items.parquet"}
    for name, table, engine in (("a", rows, None), ("b", shuffled, prudent.DuckDB(threads=1))):
        pq.write_table(table, tmp_path / "log.parquet")
        made = prudent.rank(tmp_path / "log.parquet", PBM, engine=engine, **settings)
        made.write(tmp_path / f"{name}.parquet", tmp_path / f"{name}-scores.parquet")
    for kind in ("", "-scores"):
        assert (tmp_path / f"a{kind}.parquet").read_bytes() == (tmp_path / f"b{kind}.parquet").read_bytes()


def test_parts_of_any_size_give_the_same_lists(
    folder: Path, policies: dict[str, prudent.Policy], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prudent.counts.index._MOST_CELLS", 500)
    split = prudent.rank(folder / "log.parquet", PBM, groups="item,host", item_groups=folder / "items.parquet")
    assert split.lists().fetchall() == policies["lead"].lists().fetchall()


@pytest.mark.parametrize("at_once", [100, 10**6])
def test_totals_in_files_give_the_same_bytes(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """Parts of some contexts, ranges of keys, a sample of contexts that is no part, and candidates never shown."""
    brand = np.random.default_rng(5).integers(0, BRANDS, ITEMS)
    items = [f"https://shop{brand[i]}.com/{i}" for i in range(ITEMS)]
    contexts = [name for name in ("query 1", "query 2", "new one", "query 650") for _ in items]
    pq.write_table(pa.table({"context": contexts, "item": items * 4}), tmp_path / "candidates.parquet")
    monkeypatch.setattr("prudent.counts.index._MOST_CELLS", 900)
    monkeypatch.setattr("prudent.counts.sampling.MOST_PAIRS", 2_000)
    monkeypatch.setattr("prudent.bounds.learn_effects._AT_ONCE", at_once)
    settings: dict[str, Any] = {"groups": "item,host,query", "item_groups": folder / "items.parquet"}
    for candidates in (None, tmp_path / "candidates.parquet"):
        for name, room in (("memory", 400_000_000), ("files", 40_000)):
            monkeypatch.setattr("prudent.engines.duckdb.engine.DuckDB.room", lambda _, room=room: room)
            made = prudent.rank(folder / "log.parquet", PBM, candidates=candidates, unseen=True, **settings)
            made.write(tmp_path / f"{name}.parquet", tmp_path / f"{name}-scores.parquet")
        for kind in ("", "-scores"):
            assert (tmp_path / f"files{kind}.parquet").read_bytes() == (tmp_path / f"memory{kind}.parquet").read_bytes()


def test_the_command_names_the_groups(folder: Path, tmp_path: Path) -> None:
    done = run(
        *("rank", folder / "log.parquet", "--to", tmp_path / "p.parquet", "--model", PBM),
        *("--groups", "item,query", "--item-groups", folder / "items.parquet"),
    )
    assert done.code == 0
    assert "Groups, by clicks in other contexts:" in done.text
    assert "dice: 6 groups" in done.text
    assert "more lists without a click have another order than production's: by clicks in other contexts." in done.text
    manifest = json.loads((tmp_path / "p.parquet.manifest.json").read_text(encoding="utf-8"))
    assert set(manifest["results"]["fitted"]["groups"]) == {"item", "brand", "dice", "query", "query × item"}


def test_bounds_without_a_prior_of_groups_refuse(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"eb\(delta=0.2\) has no prior that follows groups: use bound=anchored"):
        prudent.rank(folder / "log.parquet", PBM, bound="eb", groups="item")
