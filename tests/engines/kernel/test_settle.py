"""What users read below last clicks is the same by the kernel and by NumPy, to the byte."""

import numpy as np
import pytest

from prudent.base.errors import PrudentWarning
from prudent.click_models import tails
from prudent.click_models.tails import settle
from prudent.counts.cells import Cells
from prudent.counts.lists import ListBatch
from prudent.engines import kernel
from prudent.engines.kernel import Users

pytestmark = pytest.mark.usefixtures("compiled")


def cells_of(seed: int, contexts: int, items: int, length: int, lists: int) -> Cells:
    """Of lists of different lengths; some pairs were never shown."""
    random = np.random.default_rng(seed)
    context = np.repeat(np.arange(contexts), items)
    own = random.integers(0, contexts, lists)
    size = random.integers(1, length + 1, lists)
    shown = np.argsort(random.random((lists, items)), axis=1)[:, :length] + own[:, None] * items
    shown[np.arange(length) >= size[:, None]] = -1
    clicks = (random.random((lists, length)) < random.choice([0.05, 0.4])) & (shown >= 0)
    return ListBatch(context, shown, clicks, random.integers(1, 4, lists)).cells


def users(positions: int) -> list[Users]:
    """Everything that whether users go on after a click may depend on."""
    by_position = np.linspace(0.9, 0.1, positions)
    return [
        Users(1e-7, 1.0, "position", by_position),
        Users(1e-4, 0.8, "position", by_position),
        Users(1e-4, 0.9, "attraction", np.array([0.8, 0.3])),
        Users(1e-4, 0.7, "item", np.array([0.7]), 0.6, (1.5, 2.5)),
        Users(1e-4, 1.0, "item", np.array([1.0]), 0.6, (1.5, 2.5)),
    ]


@pytest.mark.parametrize(("items", "length"), [(1, 1), (12, 10), (5, 4), (80, 70)])
def test_both_give_the_same_bytes(items: int, length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where positions no longer have a bit each in a word."""
    for seed in range(2):
        cells = cells_of(seed, contexts=7, items=items, length=length, lists=60)
        for who in users(length):
            assert_same(cells, who, monkeypatch)


def test_also_where_rounds_end_before_contexts_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = cells_of(0, contexts=2, items=4, length=3, lists=9)
    with pytest.warns(PrudentWarning):
        assert_same(cells, Users(0.0, 0.8, "attraction", np.array([1.0, 0.0])), monkeypatch)


def assert_same(cells: Cells, who: Users, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tails, "_PAIRS", 40)  # the twin takes some contexts at a time
    monkeypatch.setenv("PRUDENT_KERNEL", "")
    found = settle(cells, who)
    monkeypatch.setenv("PRUDENT_KERNEL", "numpy")
    expected = settle(cells, who)
    for name in expected._fields:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=f"{name} {who}")


def test_no_context_and_no_cell() -> None:
    none = np.zeros(0, np.uint32)
    nothing = Cells(np.zeros(0, np.int64), none, none, np.zeros(0))
    assert settle(nothing, users(1)[0]).parameters.shape == (0, 1)
    unseen = Cells(np.zeros(2, np.int64), np.zeros(2, np.uint32), np.zeros(0, np.uint32), np.zeros(0))
    assert settle(unseen, users(1)[3]).parameters.shape == (2, 2)


def test_what_does_not_fit_is_refused() -> None:
    """Sizes that go too far or not far enough, and positions without a probability."""
    cells = cells_of(0, contexts=3, items=4, length=3, lists=30)
    pairs, who = np.full(3, 4, np.uint32), users(3)[0]
    size, code, n = cells.size, cells.code, cells.n
    assert kernel.settle(pairs, size, code, n, who) is not None
    for wrong in ((pairs + 1, size, code, n), (pairs[:2], size, code, n), (pairs, size + 1, code, n)):
        with pytest.raises(ValueError, match="do not fit"):
            kernel.settle(*wrong, who)
    for wrong in ((pairs, size, code[:-1], n[:-1]), (pairs, size, code, n[:-1])):
        with pytest.raises(ValueError, match="do not fit"):
            kernel.settle(*wrong, who)
    with pytest.raises(ValueError, match="do not fit"):
        kernel.settle(pairs, size, code, n, users(1)[0])
    with pytest.raises(ValueError, match="do not fit"):
        kernel.settle(pairs, size, code, n, users(3)[2]._replace(clicked=np.ones(1)))
