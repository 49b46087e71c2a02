"""The kernel and its twin give the same bytes."""

from random import Random

import pytest

from prudent.engines import kernel

from .counting import TYPES, count, everything, raw
from .logs import Stream, batch, cut, hostile


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("types", TYPES)
def test_both_give_the_same_bytes(types: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(5):
        random = Random(f"{types}{seed}")
        batches = [batch(part, types) for part in cut(random, hostile(random, types, random.choice([20, 150])))]
        options = {
            "choose": random.choice([everything, lambda run, lists: lists % 2 == 1]),
            "budget": random.choice([1, 2000, 1 << 40]),
            "text_files": bool(seed % 2),
        }
        found = []
        for engine in ("", "numpy"):
            monkeypatch.setenv("PRUDENT_KERNEL", engine)
            counted = count(Stream(batches), types, **options)
            runs = [one.run for one in counted]
            merged, places = kernel.merge([*runs, *runs[:1]], range(len(runs) + 1))
            found.append([[raw(one) for one in [*counted, merged]], [place.tolist() for place in places]])
        assert found[0] == found[1]
