"""Simulated click logs with known ground truth: lists that are drawn from a `World`, and its attraction, in files."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.base.errors import UsageError
from prudent.click_models.world import Draw, World, best_value, draw, make_world, pairs_of, value
from prudent.engines.duckdb.engine import DuckDB
from prudent.logs.log import Layout
from prudent.storage.files import check_output, forget_manifest, replacing
from prudent.storage.manifest import Manifest
from prudent.storage.parquet import write_parquet
from prudent.storage.quoting import text

LISTS = 100_000
"""The number of lists of a simulated log where none is named."""


def simulate(
    to: str | os.PathLike[str],
    *,
    truth: str | os.PathLike[str] | None = None,
    lists: int = LISTS,
    layout: Layout = "lists",
    seed: int = 0,
    **world: Any,
) -> World:
    """Simulate a click log with a known ground truth; `world` are arguments of `make_world`.

    ``to`` is a Parquet, JSON Lines or (layout ``rows``) CSV file, ``truth`` a Parquet file for the true attraction of
    every item. The same arguments write the same bytes.

    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "log.jsonl"
    >>> len(simulate(file, lists=100, contexts=3).contexts), len(file.read_text().splitlines())
    (3, 100)
    """
    check_output(to, [], parquet=False)
    if truth is not None:
        check_output(truth, [to])
    made = make_world(**world, seed=seed)
    write_log(made, lists, to, layout=layout, seed=seed)
    if truth is not None:
        write_truth(made, truth)
    return made


def write_log(
    world: World, lists: int, path: str | os.PathLike[str], *, layout: Layout = "lists", seed: int = 0
) -> Path:
    """Write drawn lists to a Parquet, JSON Lines or (layout ``rows``) CSV file, and a manifest beside it.

    The manifest says how to get the same bytes again, which click model is the true one, and the mean value of the
    lists in the log beside that of the best ones.
    """
    path = Path(path)
    form = _form(path, layout)
    clicks, worth = 0, 0.0
    # A file is written in one go, so the chunks wait in a table; beyond this limit, on disk. One thread, because
    # where Parquet's row groups end depends on whether there are more, and drawing takes most of the time anyway.
    engine = DuckDB(memory="1GB", threads=1)
    with replacing(path) as part, engine.connect(spill=path.parent) as con:
        for number, drawn in enumerate(draw(world, lists, seed)):
            con.register("chunk", _columns(world, drawn))
            con.execute("insert into drawn from chunk" if number else "create temp table drawn as from chunk")
            con.unregister("chunk")
            clicks += int(drawn.clicks.sum())
            worth += float(value(world, drawn.items).sum())
        manifest = _manifest(
            world,
            draw={"lists": lists, "seed": seed, "layout": layout},
            results={"clicks": clicks, "value": {"shown": worth / lists, "best": best_value(world)}},
        )
        rows = _layout_sql(layout, world.length)
        if path.suffix == ".parquet":
            write_parquet(con, rows, part, footer=manifest.footer)
        else:
            con.execute(f"copy ({rows}) to {text(part)} ({form})")
            forget_manifest(path)
    manifest.write(path)
    return path


def write_truth(world: World, path: str | os.PathLike[str]) -> Path:
    """Write what a log never tells: a Parquet file of context, item and attraction, and a manifest beside it."""
    path = Path(path)
    context = pairs_of(world)
    with replacing(path) as part, DuckDB().connect() as con:
        con.register("truth", {"context": world.contexts[context], "item": world.items, "attraction": world.attraction})
        write_parquet(con, "from truth", part, footer=_manifest(world).footer)
    _manifest(world).write(path)
    return path


def _columns(world: World, drawn: Draw) -> dict[str, NDArray[Any]]:
    """Spread a chunk over flat columns, one per position: DuckDB reads no matrices."""
    names = world.items[drawn.items]
    return (
        {"context": world.contexts[drawn.context], "size": (drawn.items >= 0).sum(axis=1)}
        | {f"item{k}": np.ascontiguousarray(names[:, k]) for k in range(world.length)}
        | {f"click{k}": np.ascontiguousarray(drawn.clicks[:, k]) for k in range(world.length)}
    )


def _layout_sql(layout: Layout, length: int) -> str:
    """Ask for the log, from the flat columns."""
    items, clicks = (f"[{', '.join(f'{name}{k}' for k in range(length))}][:size]" for name in ("item", "click"))
    if layout == "lists":
        return f"select context, {items} as items, {clicks} as clicks from drawn"
    return f"""
        select rowid + 1 as impression, context, unnest({items}) as item,
               unnest(range(1, size + 1))::integer as position, unnest({clicks}) as click
        from drawn"""


def _form(path: Path, layout: Layout) -> str:
    """How DuckDB is to write a file of this name."""
    forms = {
        ".parquet": "format parquet, compression zstd",
        ".jsonl": "format json",
        ".csv": "format csv, header",
    }
    if layout not in ("lists", "rows"):
        raise UsageError(f"There is no layout {layout!r}. Known: lists, rows.")
    if path.suffix not in forms:
        raise UsageError(f"Cannot tell the format of {path} from its name. Known endings: {', '.join(forms)}.")
    if layout == "lists" and path.suffix == ".csv":
        raise UsageError(
            f"{path}: a CSV file holds no lists. Use the layout rows, or a name ending in .parquet or .jsonl."
        )
    return forms[path.suffix]


def _manifest(
    world: World, draw: Mapping[str, object] | None = None, results: Mapping[str, object] | None = None
) -> Manifest:
    settings = {"model": str(world.users.pinned), "world": dict(world.settings), **({"draw": draw} if draw else {})}
    return Manifest("simulation", settings, results=results or {})
