"""Ranking with features: from a log and tables to lists, in a policy and for a request."""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import prudent
from prudent.base.errors import LogError, PolicyError, UsageError
from prudent.policies.fitted_prior import FittedPrior
from prudent.policies.group_terms import feature_sentences
from tests.command import run
from tests.policies.test_groups import PBM
from tests.policies.test_unseen import HOSTILE, places

ITEMS, SHOWN, LENGTH = 300, 8, 5
EXAMINATION = np.array([1, 0.6, 0.5, 0.4, 0.3])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Most contexts are seen once; the price of an item, its kind and a match of the pair tell, dice do not."""
    folder = tmp_path_factory.mktemp("features")
    rng = np.random.default_rng(3)
    price, kind = rng.lognormal(3, 1, ITEMS), rng.integers(0, 6, ITEMS)
    effect = -0.5 * (np.log(price) - 3) + 0.6 * rng.standard_normal(6)[kind]
    rows: dict[str, list[Any]] = {"context": [], "items": [], "clicks": []}
    pairs: dict[str, list[Any]] = {"context": [], "item": [], "match": [], "theta": [], "clicked": []}
    for number in range(700):
        chosen = rng.choice(ITEMS, SHOWN, replace=False)
        match = rng.standard_normal(SHOWN)
        theta = 1 / (1 + np.exp(1.7 - effect[chosen] - 0.6 * match - 0.4 * rng.standard_normal(SHOWN)))
        score, clicked = rng.standard_normal(SHOWN), np.zeros(SHOWN)
        for _ in range(1 if rng.random() < 0.8 else int(min(2 / (1 - rng.random()), 60))):
            order = np.argsort(-score - rng.gumbel(0, 0.5, SHOWN))[:LENGTH]
            clicks = (rng.random(LENGTH) < theta[order] * EXAMINATION).astype(int)
            clicked[order] += clicks
            rows["context"].append(f"query {number}")
            rows["items"].append([f"item {one}" for one in chosen[order]])
            rows["clicks"].append(clicks.tolist())
        pairs["context"] += [f"query {number}"] * SHOWN
        pairs["item"] += [f"item {one}" for one in chosen]
        for name, column in (("match", match), ("theta", theta), ("clicked", clicked)):
            pairs[name] += column.tolist()
    pq.write_table(pa.table(rows), folder / "log.parquet")
    truth = pa.table(pairs)
    pq.write_table(truth.drop_columns(["match", "clicked"]), folder / "truth.parquet")
    pq.write_table(truth.drop_columns(["theta", "clicked"]), folder / "pairs.parquet")
    pq.write_table(truth.drop_columns(["theta", "match"]), folder / "leak.parquet")
    names = [f"item {one}" for one in range(ITEMS)]
    columns = {"item": names, "price": price, "kind": [f"k{one}" for one in kind], "dice": rng.integers(1, 7, ITEMS)}
    pq.write_table(pa.table(columns), folder / "items.parquet")
    noise = {"item": names, "a": rng.standard_normal(ITEMS), "b": [f"b{one}" for one in rng.integers(0, 9, ITEMS)]}
    pq.write_table(pa.table(noise), folder / "noise.parquet")
    new = {"context": ["new"] * ITEMS, "item": names}
    logged = {name: pairs[name] for name in new}
    pq.write_table(pa.table({name: new[name] + logged[name] for name in new}), folder / "candidates.parquet")
    return folder


@pytest.fixture(scope="module")
def tables(folder: Path) -> list[Path]:
    return [folder / "items.parquet", folder / "pairs.parquet"]


@pytest.fixture(scope="module", params=["ridge", "lightgbm(trees=30)"])
def model(request: pytest.FixtureRequest) -> str:
    if request.param != "ridge":
        pytest.importorskip("lightgbm")
    return str(request.param)


@pytest.fixture(scope="module")
def policy(folder: Path, tables: list[Path], model: str) -> prudent.Policy:
    return prudent.rank(folder / "log.parquet", PBM, features=tables, feature_model=model)


def regret(folder: Path, policy: prudent.Policy) -> float:
    """Mean over contexts that were seen once."""
    theta: dict[tuple[str, str], float] = {}
    of_context: dict[str, list[float]] = {}
    for row in pq.read_table(folder / "truth.parquet").to_pylist():
        theta[row["context"], row["item"]] = row["theta"]
        of_context.setdefault(row["context"], []).append(row["theta"])
    seen = pq.read_table(folder / "log.parquet")["context"].to_pylist()
    lost = []
    for context, items in policy.items():
        if seen.count(context) == 1:
            # The log shows five of eight: the others are not to be had.
            own = np.array([theta[str(context), str(item)] for item in items])
            lost.append(float(np.sort(own)[::-1] @ EXAMINATION[: len(own)] - own @ EXAMINATION[: len(own)]))
    return float(np.mean(lost))


def test_features_halve_the_regret_of_contexts_seen_once(folder: Path, policy: prudent.Policy) -> None:
    assert regret(folder, policy) < 0.6 * regret(folder, prudent.rank(folder / "log.parquet", PBM))


def test_they_sharpen_the_prior_and_say_so(folder: Path, policy: prudent.Policy, model: str) -> None:
    alone, fitted = (
        one.manifest.results["fitted"] for one in (prudent.rank(folder / "log.parquet", PBM), policy)
    )  # fmt: skip
    assert fitted["prior"]["strength"] > 1.3 * alone["prior"]["strength"]
    assert fitted["prior"]["by_group"]["features"]["slope"] > 0.7
    shares = fitted["features"]["shares"]
    assert min(shares[name] for name in ("price", "kind", "match")) > 0.08 > shares["dice"]
    first, second = feature_sentences(fitted, model)
    assert first.startswith(model.partition("(")[0])
    assert "of its slope is kept" in first
    assert second.startswith("Of what it says: ")
    settings = policy.manifest.settings
    assert [Path(one).name for one in settings["features"]] == ["items.parquet", "pairs.parquet"]
    assert settings["feature_model"] == model


def test_noise_changes_no_list(folder: Path, model: str) -> None:
    alone = prudent.rank(folder / "log.parquet", PBM)
    noise = prudent.rank(folder / "log.parquet", PBM, features=folder / "noise.parquet", feature_model=model)
    assert noise.manifest.results["fitted"]["features"]["enough"]
    assert noise.lists().fetchall() == alone.lists().fetchall()
    assert feature_sentences(noise.manifest.results["fitted"], model)[0].endswith(
        "a and b say nothing about clicks in other contexts; not used."
    )


def test_one_feature_says_and_more_say() -> None:
    def sentence(*names: str) -> str:
        features = {"enough": True, "leak": False, "shares": dict.fromkeys(names, 0.0)}
        return feature_sentences({"features": features, "prior": {}}, "ridge")[0]

    assert sentence("price").startswith("ridge: price says nothing about")
    assert sentence("price", "kind").startswith("ridge: price and kind say nothing about")


def test_a_feature_made_from_the_log_is_found(folder: Path, tables: list[Path], model: str) -> None:
    with pytest.warns(prudent.PrudentWarning, match="know the clicks"):
        leak = prudent.rank(
            folder / "log.parquet", PBM, features=[*tables, folder / "leak.parquet"], feature_model=model
        )
    assert leak.manifest.results["fitted"]["features"]["leak"]
    assert leak.lists().fetchall() == prudent.rank(folder / "log.parquet", PBM).lists().fetchall()


def test_the_order_of_rows_and_the_number_of_threads_change_no_byte(
    folder: Path, tables: list[Path], tmp_path: Path, model: str
) -> None:
    rng = np.random.default_rng(3)
    named = [folder / "log.parquet", *tables]
    settings: dict[str, Any] = {"groups": "item", "feature_model": model}
    for name, engine in (("a", None), ("b", prudent.DuckDB(threads=1))):
        copies = []
        for file in named:
            rows = pq.read_table(file)
            copies.append(tmp_path / file.name)
            pq.write_table(rows if name == "a" else rows.take(rng.permutation(rows.num_rows)), copies[-1])
        made = prudent.rank(copies[0], PBM, engine=engine, features=copies[1:], **settings)
        made.write(tmp_path / f"{name}.parquet", tmp_path / f"{name}-scores.parquet")
    for kind in ("", "-scores"):
        assert (tmp_path / f"a{kind}.parquet").read_bytes() == (tmp_path / f"b{kind}.parquet").read_bytes()


def test_parts_of_any_size_give_the_same_lists(
    folder: Path, tables: list[Path], policy: prudent.Policy, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prudent.counts.index._MOST_CELLS", 500)
    split = prudent.rank(folder / "log.parquet", PBM, features=tables, feature_model=model)
    assert split.lists().fetchall() == policy.lists().fetchall()


def test_a_request_gets_the_list_of_an_unseen_context(
    folder: Path, tables: list[Path], model: str, tmp_path: Path
) -> None:
    """The model that was fitted to all contexts, from the policy's file alone; without LightGBM."""
    settings: dict[str, Any] = {"candidates": folder / "candidates.parquet", "unseen": True, "groups": "item"}
    ranked = prudent.rank(
        folder / "log.parquet", PBM, features=tables, feature_model=model, to=tmp_path / "p.parquet", **settings
    )
    frame = ranked.to_frame()
    expected = frame[frame["context"] == "new"]
    table = pq.read_table(folder / "items.parquet").sort_by("item").to_pydict()  # in which ties are
    for one in (ranked, prudent.Policy.read(tmp_path / "p.parquet")):
        given = {name: table[name] for name in ("price", "kind", "dice")}
        found = one.rank_new("new", table["item"], given)
        assert found.items[:LENGTH] == expected["item"].tolist()
        np.testing.assert_allclose(found.lower[:LENGTH], expected["lower"].to_numpy(), rtol=1e-12)
    some = ranked.rank_new("new", ["x", "y"], {"price": 3, "kind": "k1", "match": np.array([-1.0, 1.0])})
    assert some.items == ["y", "x"]
    assert ranked.rank_new("new", [], {"price": []}).items == []


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ({"prize": 3}, "no grouping or feature 'prize'. Did you mean 'price'"),
        ({"price": "dear"}, "price is a number: not all of its values are"),
        ({"price": [1.0, 2.0, 3.0]}, "price is a feature: give a value for each of the 2 candidates, or one"),
        ({"price": [1.0, float("inf")]}, "may be missing .None., but not infinite"),
        ({"price": [[1.0], [2.0]]}, "price is a number"),
        ({"price": 10**400}, "price is a number"),
    ],
)
def test_requests_that_cannot_be(policy: prudent.Policy, features: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        policy.rank_new("q", ["a", "b"], features)


def test_odd_values_of_a_request_are_values(policy: prudent.Policy) -> None:
    for kind in (None, "", "a stranger", 7, True, float("nan"), [1], {"x": 1}):
        found = policy.rank_new("q", ["a"], {"kind": [kind], "price": [None], "match": [True]})
        assert np.isfinite(found.lower).all()


def test_numbers_beyond_reason_are_kept_by_the_file(folder: Path, model: str, tmp_path: Path) -> None:
    """A feature that is 1e60 by mistake: the policy can be read again, and a request has what a table has."""
    items = pq.read_table(folder / "items.parquet").select(["item", "price"])
    price = items["price"].to_numpy()
    odd = np.where(price < np.quantile(price, 0.5), price * 1e60, -1e90)  # dear ones are far below
    pq.write_table(items.set_column(1, "price", pa.array(odd)), tmp_path / "odd.parquet")
    settings: dict[str, Any] = {"candidates": folder / "candidates.parquet", "unseen": True}
    file = tmp_path / "p.parquet"
    made = prudent.rank(
        folder / "log.parquet", PBM, features=tmp_path / "odd.parquet", feature_model=model, to=file, **settings
    )
    assert made.manifest.results["fitted"]["prior"]["by_group"]["features"]["slope"] > 0
    frame = made.to_frame()
    best = prudent.Policy.read(file).rank_new("new", items["item"].to_pylist(), {"price": odd})
    np.testing.assert_allclose(best.lower[:LENGTH], frame[frame["context"] == "new"]["lower"].to_numpy(), rtol=1e-12)


def test_a_request_is_quick(policy: prudent.Policy) -> None:
    """1,000 candidates take 1 to 3 ms of a core of their own; here with room for a busy one."""
    rng = np.random.default_rng(1)
    names = [f"item {number}" for number in range(1_000)]
    given = {"price": rng.lognormal(3, 1, 1_000), "kind": [f"k{one}" for one in rng.integers(0, 6, 1_000)]}
    took = []
    for _ in range(7):
        start = time.process_time()
        policy.rank_new("a new query", names, {**given, "match": rng.standard_normal(1_000)})
        took.append(time.process_time() - start)
    assert min(took) < 0.02


def test_a_damaged_prior_is_named(policy: prudent.Policy) -> None:
    """Each entry in turn: an error, or a list with bounds."""
    assert isinstance(policy.prior, FittedPrior)
    whole = policy.prior.to_text()
    for *outer, key in places(json.loads(whole)):
        if "features" not in (*outer, key):
            continue
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
                prior = FittedPrior.from_text(json.dumps(content), "policy.parquet")
                found = prior.rank(
                    "new", ["a", "b"], {} if prior.features is None else dict.fromkeys(prior.features.names)
                )
            except PolicyError:
                continue
            assert np.all((found.lower >= 0) & (found.lower <= found.mean + 1e-9) & (found.mean <= 1)), (outer, key)


def test_the_command_says_what_features_say(folder: Path, tables: list[Path], tmp_path: Path) -> None:
    command = ("rank", folder / "log.parquet", "--to", tmp_path / "p.parquet", "--model", PBM)
    done = run(*command, "--features", tables[0], "--features", tables[1])
    assert done.code == 0
    assert "Features, by clicks in other contexts: ridge: " in done.text
    assert "more lists without a click have another order than production's: by clicks in other contexts." in done.text


def test_lists_are_explained_by_features(folder: Path, policy: prudent.Policy) -> None:
    whys = [why for context in list(policy)[:40] for why in policy.explain(context).to_frame()["why"]]
    assert any("better by its features" in why for why in whys)
    assert not any("groups" in why for why in whys)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bound": "eb"}, r"eb\(delta=0.2\) has no prior that follows features: use bound=anchored"),
        ({"feature_model": "rigde"}, "No feature model is called 'rigde'. Did you mean 'ridge'"),
        ({"features": None, "feature_model": "ridge"}, "learns from features .--features.: name them too"),
        ({"groups": "item", "item_groups": "same"}, "'kind' names a grouping and features"),
    ],
)
def test_what_does_not_fit_together(folder: Path, settings: dict[str, Any], message: str) -> None:
    if settings.get("item_groups") == "same":
        settings = {**settings, "item_groups": pq.read_table(folder / "items.parquet").select(["item", "kind"])}
    given = {"features": folder / "items.parquet", **settings}
    with pytest.raises(UsageError, match=message):
        prudent.rank(folder / "log.parquet", PBM, **given)


def test_monotone_features_are_checked(folder: Path) -> None:
    pytest.importorskip("lightgbm")
    for spelled, message in (("prize", "no feature 'prize'. Did you mean 'price'"), ("kind", "'kind' has levels")):
        with pytest.raises(UsageError, match=message):
            prudent.rank(
                *(folder / "log.parquet", PBM), features=folder / "items.parquet",
                feature_model=f"lightgbm(increasing=[{spelled}])",
            )  # fmt: skip


def test_the_policy_does_not_replace_features(folder: Path) -> None:
    for named in (folder / "items.parquet", [folder / "pairs.parquet", folder / "items.parquet"]):
        with pytest.raises(UsageError, match=r"items\.parquet"):
            prudent.rank(folder / "log.parquet", PBM, features=named, to=folder / "items.parquet")


def test_files_that_are_no_tables(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "f.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(LogError, match=r"f\.parquet"):
        prudent.rank(folder / "log.parquet", PBM, features=tmp_path / "f.parquet")
