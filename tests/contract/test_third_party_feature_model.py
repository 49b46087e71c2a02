"""A feature model of another package ranks, and its policies rank requests, the day it is installed."""

import os
import subprocess
import sys
from pathlib import Path

PLUGIN = """
from dataclasses import dataclass
import numpy as np
from prudent.counts.feature_columns import size_of

@dataclass(frozen=True)
class Line:
    name: str
    slope: float

    @property
    def shares(self):
        return {self.name: 1.0}

    @property
    def saved(self):
        return {"name": self.name, "slope": self.slope}

    def predict(self, features):
        (one,) = [feature for feature in features if feature.name == self.name]
        return self.slope * np.nan_to_num(one.values)

@dataclass(frozen=True)
class Cubic:
    power: float = 1.0

    def check(self, features):
        pass

    def fit(self, features, target):
        one = features[0]
        x = np.nan_to_num(one.values) - np.nanmean(one.values)
        residual = target.clicks / target.examined - 1 / (1 + np.exp(-target.offset))
        return Line(one.name, float(5 * np.sum(x * residual) / np.sum(x * x)))

    def restored(self, saved):
        if not isinstance(saved, dict) or saved.keys() != {"name", "slope"}:
            raise ValueError("other entries")
        return Line(str(saved["name"]), float(saved["slope"]))
"""
PROCESS = """
import numpy as np, pyarrow as pa, prudent
rng = np.random.default_rng(1)
price = rng.standard_normal(60)
rows = []
for number in range(600):
    items = rng.choice(60, 5, replace=False)
    clicks = (rng.random(5) < 1 / (1 + np.exp(1 - price[items]))).astype(int)
    rows.append({"context": f"q{number}", "items": [f"i{i}" for i in items], "clicks": clicks.tolist()})
table = pa.table({"item": [f"i{i}" for i in range(60)], "price": price})
pbm = "pbm(examination=[1, 1, 1, 1, 1])"
made = prudent.rank(pa.Table.from_pylist(rows), pbm, features=table, feature_model="cubic(power=2)", to="p.parquet")
assert made.manifest.settings["feature_model"] == "cubic(power=2)"
assert made.manifest.results["fitted"]["prior"]["by_group"]["features"]["slope"] > 0.2
found = prudent.Policy.read("p.parquet").rank_new("new", ["a", "b", "c"], {"price": [0.0, 2.0, 1.0]})
assert found.items == ["b", "c", "a"]
"""
WITHOUT = """
import prudent
from prudent.base.errors import PolicyError
policy = prudent.Policy.read("p.parquet")
assert len(policy) == 600
prudent.export(policy, "lists.jsonl")
policy.write("copy.parquet")
try:
    policy.rank_new("new", ["a", "b", "c"], {"price": [0.0, 2.0, 1.0]})
except PolicyError as error:
    assert "No feature model is called 'cubic'. Install" in str(error)
else:
    raise AssertionError
"""
COPIED = """
import prudent
assert prudent.Policy.read("copy.parquet").rank_new("new", ["a", "b"], {"price": [0.0, 2.0]}).items == ["b", "a"]
"""


def test_it_ranks_and_where_it_is_not_installed_its_lists_can_be_read(tmp_path: Path) -> None:
    site = tmp_path / "site"
    metadata = site / "cubic-1.0.dist-info"
    metadata.mkdir(parents=True)
    (site / "cubic_model.py").write_text(PLUGIN)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: cubic\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[prudent.feature_models]\ncubic = cubic_model:Cubic\n")
    for code, places in ((PROCESS, [str(site)]), (WITHOUT, []), (COPIED, [str(site)])):
        path = os.pathsep.join([*places, *sys.path])
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code],
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=120,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
