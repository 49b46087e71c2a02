"""Keys of names, sums by key and places of keys are those of plain loops, in the kernel and its twin."""

from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prudent.counts.groupings import OF_CONTEXTS, OF_ITEMS
from prudent.engines import kernel
from prudent.engines.kernel import numpy_keys
from prudent.storage.run import NameColumn

URLS = [
    *("https://www.a.org/x", "//u@b.org", "a.b://c.d", "http://u:p@www.x", "WWW.x.y:8", "www.x", "-.-", "a..b", "a.b."),
    *(
        "é://a.b",
        "//é@a.b",
        "//a.b@c",
        "x://a.b:8@c?",
        "www.www.x",
        "a.b\0",
        "a.b\n",
        "a:b.c",
        "//@a.b",
        "//a@b@c.d",
        "",
    ),
]


@pytest.mark.usefixtures("compiled")
@settings(max_examples=60, deadline=None)
@given(names=st.lists(st.text(max_size=40) | st.text("wW.:/@?#a-+1é \n", max_size=14), max_size=20))
def test_both_make_the_same_keys(names: list[str]) -> None:
    texts = NameColumn.of_names([*URLS, *names])
    np.testing.assert_array_equal(kernel.keys_of(texts), numpy_keys.keys_of(texts))
    for derived in (OF_ITEMS["host"], OF_CONTEXTS["query"]):
        found = derived(texts)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PRUDENT_KERNEL", "numpy")
            np.testing.assert_array_equal(found, derived(texts))


@pytest.mark.usefixtures("compiled")
def test_the_kernel_reads_names_only() -> None:
    """A slice of longer texts, no name at all, and ends that lie."""
    texts = NameColumn.of_names(["a", "bcd", "", "https://shop.com/12345678"])
    np.testing.assert_array_equal(kernel.keys_of(texts.slice(1, 4)), kernel.keys_of(texts)[1:])
    assert len(kernel.keys_of(texts.slice(2, 2))) == 0
    for ends in ([3, 2], [1, 99], [-1, 2]):
        with pytest.raises(ValueError, match="too far"):
            kernel.keys_of(NameColumn(np.zeros(5, np.uint8), np.array(ends)))


def some_keys(random: Random, rows: int) -> np.ndarray:
    pool = [0, 1, 2, -1, -(1 << 63), (1 << 63) - 1, *(random.getrandbits(64) - (1 << 63) for _ in range(50))]
    return np.array(random.choices(pool, k=rows), np.int64)


@pytest.mark.usefixtures("engine")
def test_sums_by_key_are_those_of_a_plain_loop() -> None:
    for seed in range(30):
        random = Random(seed)
        keys = some_keys(random, random.choice([0, 1, 7, 3_000]))
        columns = [np.array(random.choices(range(-5, 1 << 40), k=len(keys)), np.int64) for _ in range(3)]
        distinct, sums = kernel.add_by_key(keys, columns)
        assert distinct.tolist() == sorted(set(keys.tolist()) - {0})
        for column, found in zip(columns, sums, strict=True):
            expected: Counter[int] = Counter()
            for key, value in zip(keys.tolist(), column.tolist(), strict=True):
                expected[key] += value
            assert found.tolist() == [expected[key] for key in distinct.tolist()]


@pytest.mark.usefixtures("engine")
def test_sums_within_groups_are_those_of_a_plain_loop() -> None:
    for seed in range(30):
        random = Random(seed)
        sizes = random.choices([0, 1, 2, 9, 100], k=random.choice([0, 1, 12]))
        starts = np.cumsum([0, *sizes])
        keys = some_keys(random, int(starts[-1]))
        columns = [np.arange(len(keys)) ** power for power in (1, 2)]
        found = kernel.add_within(starts, keys, columns)
        group = np.repeat(np.arange(len(sizes)), sizes).tolist()
        for column, sums in zip(columns, found, strict=True):
            expected: Counter[tuple[int, int]] = Counter()
            for at, value in zip(zip(group, keys.tolist(), strict=True), column.tolist(), strict=True):
                expected[at] += value
            assert sums.tolist() == [expected[at] for at in zip(group, keys.tolist(), strict=True)]


@pytest.mark.usefixtures("engine")
def test_places_are_those_of_a_plain_loop() -> None:
    for seed in range(30):
        random = Random(seed)
        known = np.unique(some_keys(random, random.choice([0, 1, 5, 3_000])))
        wanted = some_keys(random, 200)
        at = {key: place for place, key in enumerate(known.tolist())}
        assert kernel.find(known, wanted).tolist() == [at.get(key, -1) for key in wanted.tolist()]


@pytest.mark.usefixtures("engine")
def test_what_does_not_fit_together_is_refused() -> None:
    keys = np.arange(3)
    with pytest.raises(ValueError, match="fit together"):
        kernel.add_by_key(keys, [keys[:2]])
    for starts in ([0, 2], [1, 3], [0, 4, 3]):
        with pytest.raises(ValueError, match="fit together"):
            kernel.add_within(np.array(starts), keys, [keys])
