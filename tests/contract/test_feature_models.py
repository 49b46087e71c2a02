"""What every feature model must satisfy; a new one is covered the day it registers."""

import json

import numpy as np
import pytest

from prudent.bounds.feature_models import FeatureModel, FittedFeatureModel, Target, feature_models
from prudent.counts.feature_columns import MISSING, Categorical, Feature, Features, Numeric, take

LEVELS = tuple(f"level {number}" for number in range(30))


@pytest.fixture(params=list(feature_models))
def model(request: pytest.FixtureRequest) -> FeatureModel:
    if request.param == "lightgbm":
        pytest.importorskip("lightgbm")
    return feature_models.parse(request.param)


def drawn(seed: int = 1, rows: int = 6_000) -> tuple[list[Feature], Target, np.ndarray]:
    """Numbers with and without missing ones, a heavy tail, a constant; common and rare levels; noise of both kinds."""
    rng = np.random.default_rng(seed)
    price, rating = rng.lognormal(3, 2, rows), rng.standard_normal(rows)
    level = np.minimum(rng.geometric(0.15, rows) - 1, len(LEVELS) - 1)
    eta = -1 + 0.7 * rating - 0.25 * (np.log(price) - 3) + (0.5 * rng.standard_normal(len(LEVELS)))[level]
    rating = np.where(rng.random(rows) < 0.1, np.nan, rating)
    level = np.where(rng.random(rows) < 0.1, MISSING, level)
    examined = rng.integers(1, 5, rows).astype(float)
    clicks = rng.binomial(examined.astype(int), 1 / (1 + np.exp(-eta))).astype(float)
    features: list[Feature] = [
        Numeric("price", price),
        Numeric("rating", rating),
        Numeric("dice", rng.integers(1, 7, rows).astype(float)),
        Numeric("constant", np.ones(rows)),
        Numeric("nothing", np.full(rows, np.nan)),
        Categorical("level", level, LEVELS),
        Categorical("coin", rng.integers(0, 2, rows), ("heads", "tails")),
    ]
    return features, Target(clicks, examined, np.full(rows, -1.0), rng.integers(0, 5, rows)), eta


@pytest.fixture
def fitted(model: FeatureModel) -> FittedFeatureModel:
    features, target, _ = drawn()
    model.check(features)
    return model.fit(features, target)


def test_it_finds_what_there_is(fitted: FittedFeatureModel) -> None:
    """On other draws of the same world; a tenth of the ratings and levels are missing."""
    features, _, eta = drawn()
    assert np.corrcoef(fitted.predict(features), eta)[0, 1] > 0.75
    shares = fitted.shares
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["rating"] > 0.25
    assert all(shares[name] < 0.06 for name in ("dice", "constant", "nothing", "coin"))


def test_it_survives_json(model: FeatureModel, fitted: FittedFeatureModel) -> None:
    features, _, _ = drawn(seed=2)
    text = json.dumps(fitted.saved, allow_nan=False)
    again = model.restored(json.loads(text))
    np.testing.assert_array_equal(again.predict(features), fitted.predict(features))
    assert json.dumps(again.saved) == text


def test_the_same_pairs_give_the_same_bytes(model: FeatureModel, fitted: FittedFeatureModel) -> None:
    features, target, _ = drawn()
    assert json.dumps(model.fit(features, target).saved) == json.dumps(fitted.saved)


def test_a_pair_does_not_depend_on_the_others(fitted: FittedFeatureModel) -> None:
    features, _, _ = drawn(seed=3, rows=200)
    whole = fitted.predict(features)
    for rows in (np.arange(7), np.array([199, 3, 3]), np.zeros(0, np.int64)):
        np.testing.assert_array_equal(fitted.predict(take(features, rows)), whole[rows])


def test_values_that_it_has_never_seen(fitted: FittedFeatureModel) -> None:
    """Levels of other tables, in another order, numbers of any size, nothing at all."""
    features, _, _ = drawn(seed=3, rows=200)
    turned: Features = [
        Categorical(one.name, np.where(one.codes < 0, one.codes, len(one.levels) - 1 - one.codes), one.levels[::-1])
        if isinstance(one, Categorical)
        else one
        for one in features
    ]
    np.testing.assert_array_equal(fitted.predict(turned), fitted.predict(features))
    for number in (1e100, -1e100, 0.0, 5e-324, np.nan):
        strange: Features = [
            Numeric(one.name, np.array([number]))
            if isinstance(one, Numeric)
            else Categorical(one.name, np.array([1]), ("a stranger",))
            for one in features
        ]
        assert np.isfinite(fitted.predict(strange)).all()


@pytest.mark.parametrize("clicks", ["none", "all"])
def test_without_clicks_or_skips(model: FeatureModel, clicks: str) -> None:
    features, target, _ = drawn(rows=300)
    fitted = model.fit(features, target._replace(clicks=target.examined * (clicks == "all")))
    assert np.isfinite(fitted.predict(features)).all()


@pytest.mark.parametrize(
    "saved", [{}, {"numbers": 1}, {"columns": [], "nodes": [{"column": 0}], "roots": [0]}, {"a": 1}]
)
def test_what_it_did_not_save_is_refused(model: FeatureModel, saved: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"."):
        model.restored(saved)
