"""Tables are read between their nodes as a plain loop of Lagrange polynomials reads them."""

import numpy as np
import pytest

from prudent.engines import kernel


def plain(table: np.ndarray, row: float, column: float) -> float:
    def weights(at: float) -> dict[int, float]:
        nodes = range(int(at) - 3, int(at) + 5)
        return {k: float(np.prod([(at - other) / (k - other) for other in nodes if other != k])) for k in nodes}

    return sum(a * b * float(table[k, j]) for k, a in weights(row).items() for j, b in weights(column).items())


def test_values_are_those_of_a_plain_loop(engine: str) -> None:
    rng = np.random.default_rng(1)
    tables = [rng.normal(size=(11, 14)) for _ in range(3)]
    row, column = rng.uniform(3, 7, 40), rng.uniform(3, 10, 40)
    row[:2], column[1:3] = [3, 5], [9, 4]
    for table, values in zip(tables, kernel.read_tables(tables, row, column), strict=True):
        expected = [plain(table, *at) for at in zip(row.tolist(), column.tolist(), strict=True)]
        np.testing.assert_allclose(values, expected, rtol=1e-11, atol=1e-12)
        assert values[1] == table[5, 9], "at a node, the value is that of the node"
    assert [len(values) for values in kernel.read_tables(tables, row[:0], column[:0])] == [0, 0, 0]


@pytest.mark.usefixtures("compiled")
def test_both_read_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    tables = [rng.normal(size=(40, 30)) for _ in range(2)]
    tables[1][20, 10] = np.nan
    row, column = rng.uniform(3, 36, 20_000), rng.uniform(3, 26, 20_000)
    compiled = kernel.read_tables(tables, row, column)
    monkeypatch.setenv("PRUDENT_KERNEL", "numpy")
    for one, other in zip(compiled, kernel.read_tables(tables, row, column), strict=True):
        np.testing.assert_array_equal(one, other)


def test_places_outside_and_tables_of_two_shapes_are_refused(engine: str) -> None:
    table = np.zeros((8, 8))
    for place in (2.9, 4.0, np.nan):
        with pytest.raises(ValueError, match="outside"):
            kernel.read_tables([table], np.array([3.5]), np.array([place]))
    with pytest.raises(ValueError, match="fit together"):
        kernel.read_tables([table, table[1:]], np.array([3.5]), np.array([3.5]))
