"""A policy's training log is recognised by its lists, in any disguise; other logs of the same production are not."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import prudent
from prudent.base.arrays import IntArray
from prudent.evaluation.coincidence import coincidence
from prudent.evaluation.leakage import find_leakage
from prudent.logs.log import as_log
from prudent.storage.manifest import Manifest, Source, Tally
from tests.command import run

LISTS = 1_500


def shown(seed: int, lists: int = LISTS) -> pa.Table:
    """One production: 30 contexts, few of which have most lists, each in a handful of orders."""
    rng = np.random.default_rng(seed)
    context = np.minimum(29, rng.geometric(0.1, lists) - 1)
    first = rng.choice(3, lists, p=(0.7, 0.2, 0.1))
    items = [[f"i{(first[row] + k) % 3}" for k in range(3)] for row in range(lists)]
    clicks = (rng.random((lists, 3)) < (0.3, 0.2, 0.1)).astype(int).tolist()
    return pa.table({"context": [f"q{c}" for c in context], "items": items, "clicks": clicks})


def jsonl(table: pa.Table, path: Path) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    return path


def parquet(table: pa.Table, path: Path) -> Path:
    pq.write_table(table, path)
    return path


DISGUISES: dict[str, Callable[[pa.Table, Path], Path]] = {
    "a copy": lambda log, at: parquet(log, at / "other.parquet"),
    "in another order": lambda log, at: parquet(
        log.take(np.random.default_rng(0).permutation(LISTS)), at / "o.parquet"
    ),
    "as JSON lines": lambda log, at: jsonl(log, at / "other.jsonl"),
    "grown by one list": lambda log, at: parquet(pa.concat_tables([log, shown(9, 1)]), at / "grown.parquet"),
    "grown by a quarter": lambda log, at: parquet(pa.concat_tables([log, shown(9, LISTS // 4)]), at / "grown.parquet"),
    "without a list": lambda log, at: parquet(log[1:], at / "shrunk.parquet"),
    "a quarter of it": lambda log, at: parquet(log[: LISTS // 4], at / "quarter.parquet"),
    "with other columns": lambda log, at: parquet(log.append_column("x", [range(LISTS)]), at / "wide.parquet"),
    "with clicks of another type": lambda log, at: parquet(
        log.set_column(2, "clicks", pa.array(log["clicks"].to_pylist(), pa.list_(pa.int8()))), at / "int8.parquet"
    ),
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a log and the policy that was trained on it."""
    folder = tmp_path_factory.mktemp("trained")
    parquet(shown(0), folder / "log.parquet")
    prudent.rank(folder / "log.parquet", model="pbm", to=folder / "policy.parquet")
    return folder


@pytest.mark.parametrize("disguise", DISGUISES.values(), ids=DISGUISES)
def test_the_training_log_is_recognised(
    disguise: Callable[[pa.Table, Path], Path], trained: Path, tmp_path: Path
) -> None:
    log = disguise(shown(0), tmp_path)
    verdict = prudent.gate(trained / "policy.parquet", log, estimator="ips", min_lift=-0.9)
    assert verdict.verdict == "unknown"
    assert "lists" in verdict.why
    assert verdict.why.endswith("Use a holdout: prudent split.")


def test_in_memory_through_a_hard_link_and_relative_to_another_folder(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(trained)
    policy = prudent.rank("log.parquet", model="pbm")
    monkeypatch.chdir(tmp_path)
    os.link(trained / "log.parquet", tmp_path / "link.parquet")
    for log in ("link.parquet", shown(0)):
        verdict = prudent.gate(policy, log, estimator="ips", min_lift=-0.9)
        assert verdict.why == "These are the lists that the policy learned from. Use a holdout: prudent split."


def test_by_counts_of_days_and_by_a_baseline(tmp_path: Path) -> None:
    log = shown(0)
    for day, part in enumerate((log[:500], log[500:]), start=1):
        prudent.count(part, to=tmp_path / "days", day=f"2026-11-0{day}")
    policies = (
        prudent.rank(prudent.Counts.read(tmp_path / "days"), model="pbm"),
        prudent.rank(prudent.Counts.read(tmp_path / "days", half_life="1d"), model="pbm"),
        prudent.rank_baseline(log, "ips"),
        prudent.rank_baseline(log, "ips", length=1),
    )
    for policy in policies:
        assert "the policy learned from" in prudent.gate(policy, log, estimator="ips").why
        assert "the policy learned from" not in prudent.gate(policy, shown(1), estimator="ips").why


def test_other_lists_of_the_same_production_are_a_holdout(trained: Path) -> None:
    assert "learned from" not in prudent.gate(trained / "policy.parquet", shown(1), estimator="ips").why


def test_without_provenance_the_gate_cannot_tell(trained: Path, tmp_path: Path) -> None:
    log = parquet(shown(1), tmp_path / "log.parquet")
    orphan = tmp_path / "policy.parquet"
    table = pq.read_table(trained / "policy.parquet")
    pq.write_table(table.replace_schema_metadata(None), orphan)
    asked = ("--log", log, "-e", "dm(model=pbm)", "--min-lift", "-0.9")
    refused = run("gate", orphan, *asked)
    assert refused.code == 1
    assert "cannot tell where this policy comes from: it has no manifest" in refused.text
    accepted = run("gate", orphan, *asked, "--acknowledge", "provenance", "--acknowledge", "trust-bias")
    assert accepted.code == 0
    assert "Acknowledged: provenance: cannot tell where this policy comes from" in accepted.text
    Manifest("policy").write(orphan)
    assert "has no digest of the training lists" in run("gate", orphan, *asked).text


def test_a_mixed_policy_may_not_be_judged_by_the_lists_that_mixed_it(trained: Path) -> None:
    policy = prudent.Policy.read(trained / "policy.parquet")
    asked: dict[str, Any] = {"estimator": "dm(model=pbm)", "min_lift": -0.9, "acknowledge": "trust-bias"}
    mixture = prudent.gate_contexts(policy, shown(1), **asked)
    again = prudent.gate(mixture.policy, shown(1), estimator="dm(model=pbm)", min_lift=-0.9)
    assert again.why == "These are the lists that the policy was mixed by. Use a holdout: prudent split."


# --- the statistic ----------------------------------------------------------------------------------------------------


def plain(n: IntArray, m: IntArray) -> float:
    """Lists of the same number of occurrences, one after the other."""
    total = variance = 0.0
    groups: dict[int, list[tuple[int, int]]] = {}
    for one, other in zip(n.tolist(), m.tolist(), strict=True):
        if one + other > 1:
            groups.setdefault(min(20, one + other), []).append((one + other, other))
    for cells in groups.values():
        p = sum(k for _, k in cells) / sum(s for s, _ in cells)
        if not 0 < p < 1:
            continue
        total += 1 + sum((k - p * s) ** 2 / (s * p * (1 - p)) - 1 for s, k in cells)
        variance += sum(2 * (1 - 1 / s) for s, _ in cells)
    return total / variance**0.5 if variance else 0.0


def two(seed: int, lists: int = 400, ratio: float = 1.0, drift: float = 0.0) -> tuple[IntArray, IntArray]:
    """How often lists occur in two logs; with drift, some are more frequent in one of them."""
    rng = np.random.default_rng(seed)
    rate = rng.pareto(1.0, lists)
    return rng.poisson(rate), rng.poisson(ratio * rate * np.exp(drift * rng.normal(size=lists)))


def test_the_statistic_is_a_sum_over_lists() -> None:
    for seed in range(20):
        n, m = two(seed)
        assert coincidence(n, m).errors == pytest.approx(plain(n, m))


@pytest.mark.parametrize(("ratio", "drift"), [(1.0, 0.0), (0.2, 0.0), (4.0, 0.0), (0.5, 0.3)])
def test_logs_of_one_production_are_rarely_taken_for_the_same(ratio: float, drift: float) -> None:
    """At 3 standard errors once in 700 without drift; 2 of 300 are as unlikely as 1 in 15."""
    assert sum(coincidence(*two(seed, ratio=ratio, drift=drift)).shared for seed in range(300)) <= 2


def test_copies_are_found() -> None:
    rng = np.random.default_rng(1)
    for seed in range(50):
        n, m = two(seed)
        assert coincidence(n, n).shared
        assert coincidence(n, rng.binomial(n, 0.3)).shared, "a part of it"
        assert coincidence(n, n + m).shared, "and more"
    often = rng.poisson(1_000, 10)
    assert coincidence(often, often).shared, "ten lists, each of which occurs as often"
    assert not coincidence(often, rng.poisson(1_000, 10)).shared


def test_a_name_that_no_file_can_have_is_no_reason_to_stop() -> None:
    """A manifest is untrusted; one of its names was too long to be looked at."""
    source = Source(("x" * 300 + ".parquet", f"day=2026-11-01/{'x' * 300}.parquet", "a\0b"), Tally(3))
    manifest = Manifest("policy", {}, {"training": source})
    assert find_leakage(manifest, as_log("log.parquet"), 3) == ""
