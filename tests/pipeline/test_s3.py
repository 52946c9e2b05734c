"""Archive and tables in an object store by its own protocol: read by Hadoop, written by Arrow."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("moto")

import boto3
from moto.server import ThreadedMotoServer
from pyarrow import fs

from pipeline.damage import pipeline
from pipeline.jars import fetched, needed
from pipeline.sameness import assert_same, rows
from tocsin.synth.archive import synthesize
from tocsin.synth.plan import Plan
from tocsin.tables.schemas import TABLES

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

POM = Path(__file__).parent / "poms" / "s3.xml"
KEYS = {"aws_access_key_id": "k", "aws_secret_access_key": "s", "region_name": "us-east-1"}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        with closing(boto3.client("s3", endpoint_url=f"http://{host}:{port}", **KEYS)) as client:
            client.create_bucket(Bucket="kept")
        yield f"{host}:{port}"
    finally:
        server.stop()


@pytest.fixture(scope="module")
def settings(endpoint: str, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What Spark is told of the store."""
    hadoop = fetched(POM, tmp_path_factory.mktemp("s3"), hadoop_version=_hadoop_version())
    jars = ",".join(str(each) for each in needed(hadoop).glob("*.jar"))
    reported = {
        "spark.jars": jars,
        "spark.hadoop.fs.s3a.endpoint": f"http://{endpoint}",
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.access.key": "k",
        "spark.hadoop.fs.s3a.secret.key": "s",
    }
    return [word for name, value in reported.items() for word in ("--conf", f"{name}={value}")]


def _hadoop_version() -> str:
    import pyspark

    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar")
    return jar.stem.removeprefix("hadoop-client-api-")


def run(*arguments: str, errors: Path) -> dict[str, object]:
    with pipeline("run", *arguments, errors=errors) as command:
        complaints = command.errors()
    assert command.lines, complaints[-3000:]
    return command.lines[-1]


def test_an_archive_in_s3_makes_the_same_tables_and_they_are_published_there(
    endpoint: str, settings: list[str], tmp_path: Path
) -> None:
    archive, errors = tmp_path / "archive", tmp_path / "errors"
    synthesize(Plan(events=1_500, seed=11, files_of=300), archive, lambda done: None)
    there = f"s3://k:s@kept?scheme=http&endpoint_override={endpoint}"
    store, _ = fs.FileSystem.from_uri(there)
    fs.copy_files(str(archive), "kept/archive", destination_filesystem=store)
    (cut, *_) = sorted(archive.glob("date=*/*.parquet"))
    name = f"kept/archive/{cut.relative_to(archive)}"
    os.truncate(cut, cut.stat().st_size - 300)
    with store.open_output_stream(name) as stream:
        stream.write(cut.read_bytes())
    publish = ("--publish", there.replace("@kept?", "@kept/tables?"))
    tables = ("--tables", str(tmp_path / "there"))

    first = run("--archive", "s3://kept/archive", *tables, *settings, *publish, errors=errors)
    second = run("--archive", "s3://kept/archive", *tables, *settings, *publish, errors=errors)
    run("--archive", str(archive), "--tables", str(tmp_path / "here"), errors=errors)

    assert [each["file"] for each in first["bad_files"]] == [f"s3a://{name}"]  # type: ignore[attr-defined]
    assert not second["new"]
    for table in TABLES:
        if table != "quarantine":  # which names the file
            assert_same(rows(tmp_path / "here", table), rows(tmp_path / "there", table), table)
    found = store.get_file_info(fs.FileSelector("kept/tables", recursive=True))
    assert sum(each.base_name == "_manifest.json" for each in found) == 2 + len(TABLES)
    assert first["published"] == {**second["published"], "new": True}  # type: ignore[dict-item]
