"""Contexts that the log does not have: lists by the fitted prior, in a policy or for a request."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import prudent
from prudent.base.errors import PolicyError, UsageError
from prudent.policies.fitted_prior import FittedPrior
from tests.command import run
from tests.policies.test_groups import BRANDS, ITEMS, PBM, write_log

Names = list[str | int]


@pytest.fixture(scope="module")
def brand() -> np.ndarray:
    return np.random.default_rng(5).integers(0, BRANDS, ITEMS)


@pytest.fixture(scope="module")
def items(brand: np.ndarray) -> Names:
    return [f"https://shop{brand[i]}.com/{i}" for i in range(ITEMS)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, brand: np.ndarray, items: Names) -> Path:
    """A log, brands, and candidates: ten of a context of the log, all items and a new one of two new contexts."""
    folder = tmp_path_factory.mktemp("unseen")
    write_log(folder / "log.parquet", brand)
    table = pa.table({"item": items, "brand": [f"b{one}" for one in brand]})
    pq.write_table(table, folder / "items.parquet")
    new = [*items, f"https://shop{brand[0]}.com/new"]
    context = ["query 1"] * 10 + ["new one"] * len(new) + ["new two"] * len(new)
    offered = pa.table({"context": context, "item": [*items[:10], *new, *new]})
    pq.write_table(offered, folder / "candidates.parquet")
    return folder


@pytest.fixture(scope="module")
def settings(folder: Path) -> dict[str, Any]:
    return {
        "candidates": folder / "candidates.parquet",
        "groups": "item,host",
        "item_groups": folder / "items.parquet",
        "length": 200,
    }


@pytest.fixture(scope="module")
def policy(folder: Path, settings: dict[str, Any]) -> prudent.Policy:
    files: dict[str, Any] = {"to": folder / "policy.parquet", "scores": folder / "scores.parquet"}
    with pytest.warns(prudent.PrudentWarning, match="longer than any in the log"):
        return prudent.rank(folder / "log.parquet", PBM, unseen=True, **files, **settings)


def test_unseen_contexts_are_left_out_unless_asked_for(
    folder: Path, settings: dict[str, Any], policy: prudent.Policy
) -> None:
    with pytest.warns(prudent.PrudentWarning, match="longer than any in the log"):
        without = prudent.rank(folder / "log.parquet", PBM, **settings)
    assert set(policy) - set(without) == {"new one", "new two"}
    assert {context: without[context] for context in without} == {c: policy[c] for c in without}
    found, before = (one.manifest.results["summary"] for one in (policy, without))
    assert found["unseen"] == 2
    assert "unseen" not in before
    for name in ("differ", "unclicked", "value", "incumbent_value"):
        assert found[name] == before[name], "nothing is counted as differing where nothing was shown"


def test_their_evidence_is_the_prior(policy: prudent.Policy) -> None:
    rows = policy.contexts().project("context, lists, differ, evidence").fetchall()
    prior = {context: row for context, *row in rows if row[-1] == "prior"}
    assert prior == {"new one": [0, False, "prior"], "new two": [0, False, "prior"]}
    lists = {context: (n, k) for context, n, k in policy.lists().project("context, impressions, positive").fetchall()}
    assert lists["new one"] == (0, 0.0)
    rows = policy.lists().aggregate("context, max(impressions) as shown").filter("shown = 0").fetchall()
    assert {context for context, _ in rows} == {"new one", "new two"}, "so does the file"


def test_they_are_ordered_by_lower_bound(policy: prudent.Policy) -> None:
    frame = policy.to_frame()
    lower = frame[frame["context"] == "new one"]["lower"].to_numpy()
    assert np.all(np.diff(lower) <= 0)
    assert lower[0] > 1.5 * lower[-1], "groups tell candidates apart"


def test_a_request_gets_the_list_and_the_bounds_of_the_policy(
    folder: Path, policy: prudent.Policy, items: Names, brand: np.ndarray
) -> None:
    """From the policy's file alone; posteriors of pbm are integrals, also without a skip, and round otherwise."""
    new = sorted(map(str, [*items, f"https://shop{brand[0]}.com/new"]))
    brands = {item: f"b{one}" for item, one in zip(items, brand, strict=True)}
    frame = policy.to_frame()
    expected = frame[frame["context"] == "new one"]
    for one in (policy, prudent.Policy.read(folder / "policy.parquet")):
        found = one.rank_new("new one", new, {"brand": [brands.get(item) for item in new]})
        assert found.items == expected["item"].tolist()
        np.testing.assert_allclose(found.lower, expected["lower"].to_numpy(), rtol=1e-12)
        np.testing.assert_allclose(found.mean, expected["mean"].to_numpy(), rtol=1e-12)
    assert policy.rank_new("x", []).items == []


def test_features_and_names_tell_groups(policy: prudent.Policy, items: Names) -> None:
    names = [*items[:3], "a stranger"]
    plain = policy.rank_new("q", names)
    bounds = dict(zip(plain.items, plain.lower.tolist(), strict=True))
    assert len(set(bounds.values())) == 4
    tied = policy.rank_new("q", ["b", "a"])
    assert tied.items == ["b", "a"], "ties keep the order of the candidates"


@pytest.mark.parametrize(
    ("candidates", "features", "message"),
    [
        (["a", "a"], {}, "each is named once"),
        (["a", 7], {}, "one type"),
        (["a"], {"colour": ["red"]}, "no grouping or feature 'colour'. It has: item, host, brand"),
        (["a", "b"], {"brand": ["b1"]}, "one group for each of the 2 candidates"),
        (["a", "b"], {"brand": "b1"}, "one group for each of the 2 candidates"),
    ],
)
def test_requests_that_cannot_be(
    policy: prudent.Policy, candidates: Names, features: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        policy.rank_new("q", candidates, features)


def test_policies_without_a_prior(folder: Path) -> None:
    policy = prudent.rank(folder / "log.parquet", PBM, bound="eb")
    with pytest.raises(PolicyError, match="no fitted prior"):
        policy.rank_new("q", ["a"])
    ungrouped = prudent.rank(folder / "log.parquet", PBM)
    assert ungrouped.rank_new("q", ["b", "a"]).items == ["b", "a"]
    with pytest.raises(UsageError, match="has no groups and no features"):
        ungrouped.rank_new("q", ["b", "a"], {"brand": ["x", "y"]})


def test_the_prior_survives_its_text(policy: prudent.Policy) -> None:
    assert isinstance(policy.prior, FittedPrior)
    text = policy.prior.to_text()
    assert FittedPrior.from_text(text, "p").to_text() == text
    for damaged in ("", "{}", "[]", text[:-1], text.replace('"slope"', '"slop"'), text.replace("anchored", "eb")):
        with pytest.raises(PolicyError, match="fitted prior in p is damaged"):
            FittedPrior.from_text(damaged, "p")


def places(content: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths to everything in JSON; of a list, the first entry."""
    entries = content.items() if isinstance(content, dict) else enumerate(content[:1]) if content else ()
    for key, inner in entries:
        yield (*at, key)
        if isinstance(inner, dict | list):
            yield from places(inner, (*at, key))


HOSTILE = [None, "x", "", True, -1, 0, 1e308, 10**30, 1 << 63, [], [[1]], {}, {"a": 1}, float("nan"), "gone"]


def test_a_damaged_prior_is_named(policy: prudent.Policy) -> None:
    """Each entry in turn: an error, or a list with bounds; of 900 changes, 240 ended in tracebacks, 40 in NaN."""
    assert isinstance(policy.prior, FittedPrior)
    whole = policy.prior.to_text()
    for *outer, key in places(json.loads(whole)):
        for value in HOSTILE:
            content = json.loads(whole)
            place = content
            for step in outer:
                place = place[step]
            if value == "gone":
                del place[key]
            else:
                place[key] = value
            try:
                found = FittedPrior.from_text(json.dumps(content), "policy.parquet").rank("new", ["a", "b"], {})
            except PolicyError:
                continue
            assert np.all((found.lower >= 0) & (found.lower <= found.mean + 1e-9) & (found.mean <= 1)), (outer, key)


def test_a_request_is_quick(policy: prudent.Policy) -> None:
    """1,000 candidates take 3 ms of a core of their own; here with room for a busy one."""
    names = [f"https://shop{i % 40}.com/{i}" for i in range(1_000)]
    took = []
    for _ in range(7):
        start = time.process_time()
        policy.rank_new("a new query", names)
        took.append(time.process_time() - start)
    assert min(took) < 0.02


def test_the_command_says_how_many(folder: Path, tmp_path: Path) -> None:
    command = ("rank", folder / "log.parquet", "--to", tmp_path / "p.parquet", "--model", PBM)
    done = run(*command, "--candidates", folder / "candidates.parquet", "--unseen", "--groups", "item")
    assert "2 lists by the prior alone: the log does not have their contexts." in done.text


def test_a_policy_of_an_item_that_is_always_clicked_can_be_read(tmp_path: Path) -> None:
    """Its prior has nearly all mass at 1, so that the lower quartile is above the mean; it was taken for damaged."""
    shoes = pa.table({"context": ["shoes"] * 3, "items": [["a", "b"]] * 3, "clicks": [[1, 0]] * 3})
    policy = prudent.rank(shoes, "cm", to=tmp_path / "policy.parquet")
    assert isinstance(policy.prior, FittedPrior)
    new = policy.prior.rank("boots", ["a"], {})
    assert new.lower[0] > new.mean[0] > 0.999
    assert dict(prudent.Policy.read(tmp_path / "policy.parquet")) == {"shoes": ["a", "b"]}
