"""CLAX trains a click model; run by `peers_clax`, in the environment that has CLAX.

The folder has part-0.parquet, the log, part-1.parquet, lists for early stopping, and truth.npz. ``arrays`` trains on
arrays in memory, after all has been compiled, and grades the parameters after every epoch; ``documented`` is what
CLAX's own examples do: its reader of Parquet files in PyTorch's loader. ``likelihood`` trains on arrays, and predicts
the lists of part-2.parquet, clicks given those above; there is no truth.npz then.

Settings are those of experiments/1-yandex-baseline in CLAX's repository, where its authors compare these models on a
log of search: AdamW with a learning rate of .01, batches of 4,096 sessions (8,192 for validation), at most 100 epochs,
and the trainer's own early stopping, which ends at the first epoch that does not lower the validation loss by 1e-5.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import optax  # type: ignore[import-not-found]
import pyarrow.parquet as pq
from clax import (  # type: ignore[import-not-found]
    CascadeModel,
    ClickChainModel,
    DependentClickModel,
    DynamicBayesianNetwork,
    PositionBasedModel,
    Trainer,
    UserBrowsingModel,
)
from clax.datasets import YandexDataset  # type: ignore[import-not-found]
from flax import nnx  # type: ignore[import-not-found]
from torch.utils.data import DataLoader  # type: ignore[import-not-found]

from benchmarks.grading import Array, grade

RATE, EPOCHS, BATCH, EVAL_BATCH = 0.01, 100, 4_096, 8_192
MOST_SECONDS = 25 * 60.0  # CPU seconds of training, after which it is cut
POSITIONS = 10


class TooLongError(Exception):
    """Training took too long."""


class Batches:
    """Lists in memory, in batches; calls `before` at the start of every pass."""

    def __init__(self, file: Path, size: int, before: Callable[[], None] = lambda: None, most: int | None = None):
        table = pq.read_table(file)
        self.ids, clicks = (
            table[name].combine_chunks().flatten().to_numpy().reshape(-1, POSITIONS)
            for name in ("query_doc_ids", "clicks")
        )
        self.clicks = clicks.astype(np.float16)  # as CLAX's own reader has it
        self.size, self.before = size, before
        self.starts = list(range(0, len(self.ids), size))
        if most is not None:
            self.starts = self.starts[-most:]
        self.positions = np.tile(np.arange(1, POSITIONS + 1, dtype=np.int16), (size, 1))
        self.mask = np.ones((size, POSITIONS), dtype=np.bool_)

    def __len__(self) -> int:
        return len(self.starts)

    def __iter__(self) -> Iterator[dict[str, Array]]:
        self.before()
        for start in self.starts:
            ids = self.ids[start : start + self.size]
            yield {
                "query_doc_ids": ids,
                "clicks": self.clicks[start : start + self.size],
                "positions": self.positions[: len(ids)],
                "mask": self.mask[: len(ids)],
            }


def make(kind: str, pairs: int) -> Any:
    rngs = nnx.Rngs(42)
    if kind == "sdbn":
        return DynamicBayesianNetwork(query_doc_pairs=pairs, fix_continuation=True, rngs=rngs)
    if kind in ("cm", "dbn", "ccm"):
        model = {"cm": CascadeModel, "dbn": DynamicBayesianNetwork, "ccm": ClickChainModel}[kind]
        return model(query_doc_pairs=pairs, rngs=rngs)
    model = {"pbm": PositionBasedModel, "dcm": DependentClickModel, "ubm": UserBrowsingModel}[kind]
    return model(positions=POSITIONS, query_doc_pairs=pairs, rngs=rngs)


def probabilities(parameter: Any) -> Array:
    """All values of a parameter that is a table of logits; its row 0 is padding."""
    logits = np.asarray(parameter.embeddings.embedding.value, dtype=float)[1:, 0] + float(parameter.baseline.value[0])
    return np.asarray(1 / (1 + np.exp(-logits)))


class Grades:
    """How far the parameters are from the truth, and the CPU time of training without that of grading."""

    def __init__(self, kind: str, folder: Path, ids: Array):
        truth = np.load(folder / "truth.npz")
        self.kind, self.attraction, self.position = kind, truth["attraction"], truth["position"]
        self.shown = np.bincount(ids.ravel() - 1, minlength=len(self.attraction))
        self.grading = 0.0
        self.started = time.process_time()

    @property
    def cpu(self) -> float:
        return time.process_time() - self.started - self.grading

    def of(self, model: Any) -> dict[str, Any]:
        cpu, before = self.cpu, time.process_time()
        parameter = {"cm": None, "dcm": "continuation", "pbm": "examination"}[self.kind]
        position = probabilities(getattr(model, parameter)) if parameter else self.position
        theta = probabilities(model.attraction)
        errors = grade(self.kind, theta, position, self.attraction, self.position, self.shown)
        self.grading += time.process_time() - before
        return {"cpu": cpu, **errors}


def arrays(folder: Path, kind: str) -> dict[str, Any]:
    trainer = Trainer(optax.adamw(RATE), epochs=1)
    pairs = len(np.load(folder / "truth.npz")["attraction"])
    # Two batches are compiled for: full ones and the last.
    trainer.train(
        make(kind, pairs),
        Batches(folder / "part-0.parquet", BATCH, most=2),
        Batches(folder / "part-1.parquet", EVAL_BATCH, most=2),
    )
    model = make(kind, pairs)
    lists = Batches(folder / "part-0.parquet", BATCH)
    grades = Grades(kind, folder, lists.ids)
    epochs: list[dict[str, Any]] = []

    def grade_epoch() -> None:
        epochs.append(grades.of(model))
        if grades.cpu > MOST_SECONDS:
            raise TooLongError

    trainer.epochs = EPOCHS
    held_out = Batches(folder / "part-1.parquet", EVAL_BATCH, before=grade_epoch)
    grades.started, wall, cut, losses = time.process_time(), time.perf_counter(), False, []
    try:
        losses = [float(loss) for loss in trainer.train(model, lists, held_out)["val_loss"]]
    except TooLongError:
        cut = True
    trained = {"cpu": grades.cpu, "wall": time.perf_counter() - wall}
    return {"training": trained, "cut": cut, "epochs": epochs, "losses": losses, "left": grades.of(model)}


def likelihood(folder: Path, kind: str) -> dict[str, Any]:
    lists, held_out, test = (Batches(folder / f"part-{number}.parquet", BATCH) for number in range(3))
    pairs = int(max(part.ids.max() for part in (lists, held_out, test)))
    Trainer(optax.adamw(RATE), epochs=1).train(make(kind, pairs), lists, held_out)  # compiles
    model = make(kind, pairs)
    started = time.process_time()
    table = Trainer(optax.adamw(RATE), epochs=EPOCHS).train(model, lists, held_out)
    fit, total = time.process_time() - started, 0.0
    for batch in test:
        log_p = np.asarray(model.predict_conditional_clicks(batch), dtype=float)
        with np.errstate(divide="ignore"):
            total += float(np.where(batch["clicks"] > 0, log_p, np.log(-np.expm1(log_p))).sum())
    return {"fit": fit, "epochs": len(table), "likelihood": total / len(test.ids)}


def documented(folder: Path, kind: str) -> dict[str, Any]:
    def loader(first: int, last: int, size: int) -> Any:
        dataset = YandexDataset(dataset_dir=folder, session_range=(first, last))
        return DataLoader(dataset, batch_size=size, collate_fn=dataset.collate_fn)

    lists, held_out = (pq.read_metadata(folder / f"part-{number}.parquet").num_rows for number in (0, 1))
    pairs = len(np.load(folder / "truth.npz")["attraction"])
    model = make(kind, pairs)
    trainer = Trainer(optax.adamw(RATE), epochs=EPOCHS)
    table = trainer.train(model, loader(0, lists, BATCH), loader(lists, lists + held_out, EVAL_BATCH))
    return {"epochs": len(table)}


if __name__ == "__main__":
    done = {"arrays": arrays, "documented": documented, "likelihood": likelihood}[sys.argv[3]](
        Path(sys.argv[1]), sys.argv[2]
    )
    done["versions"] = {name: version(name) for name in ("clax-models", "jax", "flax", "optax", "torch")}
    print("\n" + json.dumps(done))
