"""A policy's click model, restored from its manifest, values its lists as `prudent.rank` did."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import prudent
from prudent.base.errors import UsageError
from prudent.click_models import click_models
from prudent.click_models.selection import names
from prudent.click_models.simulate import write_log
from prudent.click_models.world import make_world
from prudent.policies.trained_model import model_of, trained_model
from prudent.storage.manifest import Manifest

LENGTH = 4
SET = ["cm", "pbm(examination=[1, 0.7, 0.5, 0.4])", "dbn(perseverance=0.8, satisfaction=0.5)", "ensemble(model=cm)"]


@pytest.fixture(scope="module")
def counts(tmp_path_factory: pytest.TempPathFactory) -> prudent.Counts:
    log = tmp_path_factory.mktemp("log") / "log.parquet"
    # γ and α of users who go on and are satisfied: every model is identified.
    write_log(make_world("dbn", contexts=8, items=(6, 9), length=LENGTH, zipf=0, seed=3), 6_000, log)
    return prudent.count(log)


def check_values(policy: prudent.Policy, counts: prudent.Counts) -> None:
    """Lists are worth what the manifest says, traffic alike, in the words of the model."""
    model = model_of(policy.manifest, LENGTH, "")
    rows = policy.lists().order("context, rank").select("context, rank, mean").fetchall()
    means = np.zeros((len({context for context, *_ in rows}), LENGTH))
    number = {context: at for at, context in enumerate(dict.fromkeys(context for context, *_ in rows))}
    for context, rank, mean in rows:
        means[number[context], rank - 1] = mean
    lists = dict(zip(counts.index.names.values.tolist(), counts.index.lists_of.tolist(), strict=True))
    weights = [lists[context] for context in number]
    assert np.average(model.value(means), weights=weights) == pytest.approx(policy.manifest.results["summary"]["value"])


@pytest.mark.parametrize("model", [*names(), "ensemble(model=dcm, replicates=4)", *SET])
def test_its_lists_are_worth_what_they_were(model: str, counts: prudent.Counts) -> None:
    check_values(prudent.rank(counts, model, bound="eb"), counts)


@pytest.mark.parametrize("model", [*names(), *SET[1:2]])
def test_logs_of_shorter_lists_will_do(model: str, counts: prudent.Counts) -> None:
    """After the launch of lists of 2 no list is longer."""
    policy = prudent.rank(counts, model, bound="mle", length=2)
    assert model_of(policy.manifest, 2, "").value(np.full((1, 2), 0.5)) > 0


def test_what_the_prior_learned_is_no_parameter_of_the_click_model(counts: prudent.Counts, tmp_path: Path) -> None:
    (tmp_path / "prices.csv").write_text("\n".join(["item,price", *(f"{item},{item % 7}" for item in range(99))]))
    policy = prudent.rank(counts, "cm", groups="item", features=tmp_path / "prices.csv")
    assert {"prior", "groups", "features"} <= policy.manifest.results["fitted"].keys()
    check_values(policy, counts)


def test_clicks_do_not_follow_from_how_often_lists_satisfy() -> None:
    """Where items differ in satisfaction, estimates of a policy are of satisfying clicks."""
    model = click_models.parse("dbn(perseverance=0.8, satisfaction=[0.5, 0.3])").typical(LENGTH).of_scores
    assert model.value(np.full((1, LENGTH), 0.2)) == pytest.approx(0.2 * sum((0.8 * 0.8) ** k for k in range(LENGTH)))
    with pytest.raises(UsageError, match="ranked by clicks that satisfy"):
        model.value(np.full((1, LENGTH), 0.2), "clicks")


@pytest.mark.parametrize("fitted", [{"alpha": [0.5, 2.0, "x"]}, {"examination": 3}, {"alpha": [0.5]}, {"gamma": 1.0}])
def test_a_manifest_that_was_made_elsewhere_is_none(fitted: Any) -> None:
    assert trained_model(Manifest("policy", {"model": "ccm"}, results={"fitted": fitted}), LENGTH) is None
