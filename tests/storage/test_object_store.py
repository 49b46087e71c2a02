"""Logs, counts and policies on an object store without Spark, against a server of S3 on this machine."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest

import prudent
from prudent.base.errors import LogError, UsageError, WriteError
from prudent.storage.manifest import Manifest
from tests.command import run

boto3, moto, deltalake = (pytest.importorskip(name) for name in ("boto3", "moto.server", "deltalake"))


@pytest.fixture(scope="module")
def store() -> Iterator[Any]:
    """A client of an empty bucket, to which the environment leads."""
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }.items():
            patch.setenv(name, value)
        client = boto3.client("s3")
        client.create_bucket(Bucket="shop")
        yield client
    server.stop()


@pytest.fixture
def log(store: Any, tmp_path: Path) -> Path:
    """A log on this machine, of which two halves are in the bucket."""
    whole = tmp_path / "log.parquet"
    prudent.simulate(whole, model="cm", lists=400, contexts=4, items=(4, 6), length=3, seed=1)
    parts = prudent.split(str(whole), tmp_path, holdout=0.5)
    for name, part in (("a", parts.train), ("b", parts.holdout)):
        store.upload_file(str(part.path), "shop", f"logs/{name}.parquet")
    return whole


@pytest.mark.parametrize("name", ["s3://shop/logs", "s3://shop/logs/*.parquet", "s3a://shop/logs/[ab].parquet"])
def test_logs_are_read(name: str, log: Path) -> None:
    assert prudent.count(name) == prudent.count(str(log))
    assert prudent.count(name).manifest.sources["log"].inputs == (name,)


def test_the_way_from_a_log_to_a_policy(store: Any, log: Path, tmp_path: Path) -> None:
    """Every step reads and writes the bucket, and writes what it would write on this machine, but for names of logs."""
    assert run("count", "s3://shop/logs", "-o", "s3://shop/out/counts.parquet").code == 0
    ran = run("rank", "s3://shop/out/counts.parquet", "-o", "s3://shop/out/policy.parquet", "--model", "cm")
    assert ran.code == 0, ran.text
    here = prudent.rank(str(log), "cm")
    there = prudent.Policy.read("s3://shop/out/policy.parquet")
    assert there.rows() == here.rows()
    assert there.manifest.settings == here.manifest.settings
    prudent.export("s3://shop/out/policy.parquet", "s3://shop/out/lists.jsonl")
    prudent.export(here, tmp_path / "lists.jsonl")
    body = store.get_object(Bucket="shop", Key="out/lists.jsonl")["Body"].read()
    assert body == (tmp_path / "lists.jsonl").read_bytes()
    beside = store.get_object(Bucket="shop", Key="out/policy.parquet.manifest.json")["Body"].read().decode()
    assert Manifest.from_text(beside, "beside") == there.manifest
    assert prudent.check("s3://shop/out/counts.parquet").lists == 400


def test_an_object_that_changes_is_copied_again(store: Any, log: Path, tmp_path: Path) -> None:
    store.upload_file(str(log), "shop", "one.parquet")
    assert prudent.count("s3://shop/one.parquet").tally.lists == 400
    other = tmp_path / "other.parquet"
    prudent.simulate(other, model="cm", lists=70, contexts=4, items=(4, 6), length=3, seed=2)
    store.upload_file(str(other), "shop", "one.parquet")
    assert prudent.count("s3://shop/one.parquet").tally.lists == 70


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (["a//b.parquet"], r"Cannot read s3://shop/odd/a//b\.parquet: Empty path component"),
        (["_delta_log/"], r"Cannot read s3://shop/odd as a table of Delta Lake: its _delta_log has no file"),
        (["_delta_log/0.json", "_delta_log/../../../../x.json"], r"x\.json has '\.\.' in its name"),
    ],
)
def test_odd_names_of_objects_are_named(store: Any, keys: list[str], message: str) -> None:
    """Whoever names the objects of a bucket chooses neither a traceback nor where on this machine copies are."""
    for key in keys:
        store.put_object(Bucket="shop", Key=f"odd/{key}", Body=b"{}")
    with pytest.raises(LogError, match=message):
        prudent.count("s3://shop/odd")
    for key in keys:
        store.delete_object(Bucket="shop", Key=f"odd/{key}")


def test_a_failure_leaves_what_was_there(store: Any, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put_object(Bucket="shop", Key="keep.parquet", Body=b"old")

    def fail(*_: Any, **__: Any) -> None:
        raise OSError("no space")

    monkeypatch.setattr("pyarrow.fs.copy_files", fail)
    with pytest.raises(WriteError, match=r"Cannot write s3://shop/keep\.parquet"):
        prudent.count(str(log), to="s3://shop/keep.parquet")
    assert store.get_object(Bucket="shop", Key="keep.parquet")["Body"].read() == b"old"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("check", "s3://shop/none.parquet"), 3, "There is no file s3://shop/none.parquet"),
        (("check", "s3://no-such-bucket/x.parquet"), 3, "no-such-bucket"),
        (("count", "LOG", "-o", "s3://no-such-bucket/x.parquet"), 4, "there is no bucket no-such-bucket"),
        (("count", "LOG", "-o", "s3://shop/days", "--day", "2026-11-01"), 2, "days need one that can be locked"),
        (("count", "s3://shop/logs/a.parquet", "-o", "s3://shop/logs/a.parquet"), 2, "named twice"),
        (("split", "LOG", "-o", "s3://shop/parts"), 2, "not a folder on this machine"),
        (("count", "LOG", "-o", "file:/tmp/x.parquet"), 2, "is on this machine: name it /tmp/x.parquet"),
    ],
)
def test_what_goes_wrong_is_named(arguments: tuple[str, ...], code: int, message: str, log: Path) -> None:
    ran = run(*(str(log) if word == "LOG" else word for word in arguments))
    assert ran.code == code
    assert message in ran.text


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(("count", "s3://far/log.parquet", "-o", "counts.parquet"), 3), (("count", "{log}", "-o", "s3://far/counts"), 4)],
)
def test_a_store_that_is_not_reached_is_no_wrong_usage(
    arguments: tuple[str, ...], code: int, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def from_uri(uri: str) -> None:
        raise OSError(f"When resolving region for {uri}: could not resolve hostname")

    monkeypatch.setattr("pyarrow.fs.FileSystem", SimpleNamespace(from_uri=from_uri))
    monkeypatch.chdir(tmp_path)
    ran = run(*(argument.format(log=log) for argument in arguments))
    assert ran.code == code
    assert "Cannot reach s3://far/" in " ".join(ran.text.split())
    assert "Spark" not in ran.text


@pytest.mark.parametrize(
    "uri", ["s3://AKEY:s3cr3t@shop/logs", "s3a://AKEY:s3/cr3t@shop/logs", "gs://:s3cr3t@shop/logs"]
)
def test_a_uri_with_a_secret_is_refused_and_not_shown(uri: str, log: Path, tmp_path: Path) -> None:
    """Names of logs are in manifests, reports and messages."""
    for arguments in (("count", uri, "-o", str(tmp_path / "counts.parquet")), ("count", str(log), "-o", f"{uri}/c")):
        ran = run(*arguments)
        assert ran.code == 2, ran.text
        assert "credentials come from the environment" in " ".join(ran.text.split())
        assert "cr3t" not in ran.text


def test_a_table_of_delta_lake_has_the_rows_of_its_last_version(store: Any, log: Path, tmp_path: Path) -> None:
    """Its folder also has the files of former versions, which would be counted twice."""
    rows = pq.read_table(log)
    table = tmp_path / "table"
    for version in (rows, rows.slice(0, 90)):
        deltalake.write_deltalake(str(table), version, mode="overwrite")
    assert len(list(table.glob("*.parquet"))) == 2
    assert prudent.count(str(table)).tally.lists == 90
    for file in table.rglob("*"):
        if file.is_file():
            store.upload_file(str(file), "shop", f"lake/{file.relative_to(table)}")
    assert prudent.count("s3://shop/lake") == prudent.count(str(table))
    by_context = tmp_path / "by_context"
    deltalake.write_deltalake(str(by_context), rows, partition_by=["context"])
    with pytest.raises(LogError, match="Delta Lake by context"):
        prudent.count(str(by_context))


def test_a_table_of_iceberg_is_refused(store: Any, log: Path, tmp_path: Path) -> None:
    (tmp_path / "ice/metadata").mkdir(parents=True)
    (tmp_path / "ice/metadata/v1.metadata.json").write_text("{}")
    with pytest.raises(LogError, match="Iceberg"):
        prudent.count(str(tmp_path / "ice"))
    store.put_object(Bucket="shop", Key="ice/metadata/v1.metadata.json", Body=b"{}")
    with pytest.raises(LogError, match="Iceberg"):
        prudent.count("s3://shop/ice")


def test_without_pyarrow_the_extra_is_named(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prudent.storage.object_store.find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"pip install 'prudent\[cloud\]'"):
        prudent.count("s3://shop/logs")
