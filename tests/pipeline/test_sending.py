"""Tables copied out: whole or not at all, once each, and tried again after a failure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import boto3
import pyarrow.parquet as pq
import pytest
from moto.server import ThreadedMotoServer
from pyarrow import fs
from pyspark.sql import SparkSession

from tocsin.errors import BadPipelineOption, ConnectorMissing, PublicationFailed
from tocsin.pipeline.publish.copy import check_target, send
from tocsin.pipeline.publish.edition import Edition
from tocsin.pipeline.publish.files import opened
from tocsin.pipeline.publish.kafka import KEYS
from tocsin.tables.published import Manifest, require
from tocsin.tables.schemas import TABLES

BEGAN = datetime(2026, 11, 16, 12, tzinfo=UTC)
NO_SPARK = cast(SparkSession, None)  # files are copied without it


def edition(tables: Path, number: int) -> Manifest:
    """One more version of the tables, with a row that tells which."""
    made = Edition(tables)
    place = made.table_directory("discoveries")
    place.mkdir()
    row = {"model": "directory", "request": f"edition {number}"}
    table = TABLES["discoveries"].empty_table().from_pylist([row], TABLES["discoveries"])
    pq.write_table(table, place / "part-0.parquet")
    return made.publish(BEGAN + timedelta(hours=number), number, BEGAN, {"events": number}, "")


def published_at(url: str) -> tuple[dict[str, Any], str]:
    """What a reader finds: the manifest, and the row of the edition that it names."""
    files, root = opened(url)
    with files.open_input_stream(f"{root}/_manifest.json") as stream:
        manifest = json.loads(stream.read())
    place = f"{root}/{manifest['directory']}/discoveries"
    table = pq.read_table(place, filesystem=files)
    return manifest, table.column("request")[0].as_py()


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The address of an object store's bucket, as pyarrow takes it."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        keys = {"aws_access_key_id": "k", "aws_secret_access_key": "s", "region_name": "us-east-1"}
        with closing(boto3.client("s3", endpoint_url=f"http://{host}:{port}", **keys)) as client:
            client.create_bucket(Bucket="kept")
        yield f"s3://k:s@kept/tables?scheme=http&endpoint_override={host}:{port}"
    finally:
        server.stop()


@pytest.fixture(params=["directory", "file", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "s3":
        return str(request.getfixturevalue("s3")).replace("/tables", f"/{tmp_path.name}")
    return ("" if request.param == "directory" else "file://") + str(tmp_path / "out")


def test_each_edition_is_copied_once_and_readers_find_the_last(place: str, tmp_path: Path) -> None:
    tables = tmp_path / "tables"

    assert not send(NO_SPARK, tables, place)  # there is none yet
    for number in (1, 2, 3):
        made = edition(tables, number)
        assert send(NO_SPARK, tables, place)
        assert not send(NO_SPARK, tables, place)

        manifest, row = published_at(place)
        assert (manifest["version"], row) == (made.version, f"edition {number}")
        assert manifest["tables"].keys() == TABLES.keys()
    files, root = opened(place)
    kept = [each.base_name for each in files.get_file_info(fs.FileSelector(root))]
    assert sorted(kept) == ["000002-20261116T140000Z", "000003-20261116T150000Z", "_manifest.json"]


def test_what_cannot_be_copied_leaves_both_sides_as_they_were_and_is_tried_again(
    tmp_path: Path,
) -> None:
    tables, out = tmp_path / "tables", tmp_path / "out"
    edition(tables, 1)
    send(NO_SPARK, tables, str(out))
    made = edition(tables, 2)
    in_the_way = out / "000002-20261116T140000Z"
    in_the_way.write_text("mine")

    with pytest.raises(PublicationFailed, match=r"version 2 could not be copied .* tries again"):
        send(NO_SPARK, tables, str(out))

    assert require(tables).manifest == made
    assert published_at(str(out))[1] == "edition 1"
    in_the_way.unlink()
    assert send(NO_SPARK, tables, str(out))
    assert published_at(str(out))[1] == "edition 2"


def break_off(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """From now on, of what is copied only a part arrives."""

    def copied(source: str, target: str, **systems: Any) -> None:
        with systems["destination_filesystem"].open_output_stream(f"{target}/half") as stream:
            stream.write(b"half")
        raise error

    monkeypatch.setattr(fs, "copy_files", copied)


def editions(url: str) -> list[str]:
    """Which there are in that place, by the number that their names begin with."""
    files, root = opened(url)
    names = [each.base_name for each in files.get_file_info(fs.FileSelector(root))]
    return sorted(name.partition("-")[0] for name in names if name != "_manifest.json")


def test_the_edition_that_readers_have_stays_when_one_after_it_was_copied_half(
    place: str, tmp_path: Path
) -> None:
    tables = tmp_path / "tables"
    edition(tables, 1)
    send(NO_SPARK, tables, place)
    before = published_at(place)[0]["directory"]
    edition(tables, 2)
    with pytest.MonkeyPatch.context() as patched:
        break_off(patched, KeyboardInterrupt())  # as if it was killed: nothing is put in order
        with pytest.raises(KeyboardInterrupt):
            send(NO_SPARK, tables, place)
    assert "000002" in editions(place)

    edition(tables, 3)
    send(NO_SPARK, tables, place)

    assert published_at(place)[1] == "edition 3"
    assert editions(place) == [before.partition("-")[0], "000003"]


def test_what_was_copied_half_is_removed_and_the_error_is_told(place: str, tmp_path: Path) -> None:
    tables = tmp_path / "tables"
    edition(tables, 1)
    send(NO_SPARK, tables, place)
    there = editions(place)
    edition(tables, 2)

    with pytest.MonkeyPatch.context() as patched:
        break_off(patched, OSError("it broke off"))
        with pytest.raises(PublicationFailed, match="it broke off"):
            send(NO_SPARK, tables, place)

    assert editions(place) == there


def test_where_the_manifest_cannot_be_read_no_edition_is_removed(tmp_path: Path) -> None:
    tables, out = tmp_path / "tables", tmp_path / "out"
    for number in (1, 2):
        edition(tables, number)
        send(NO_SPARK, tables, str(out))
    (out / "_manifest.json").write_text("{")

    edition(tables, 3)
    send(NO_SPARK, tables, str(out))

    assert editions(str(out)) == ["000001", "000002", "000003"]


def test_an_object_store_that_is_not_there_is_an_error_that_says_so(tmp_path: Path) -> None:
    edition(tmp_path, 1)
    nowhere = "s3://k:s@kept/t?scheme=http&endpoint_override=127.0.0.1:1&region=us-east-1"

    with pytest.raises(PublicationFailed, match="could not be copied to s3://kept/t"):
        send(NO_SPARK, tmp_path, nowhere)


def test_a_place_that_cannot_take_tables_is_refused_before_any_are_made(
    ready: SparkSession,
) -> None:
    check_target(ready, "s3://bucket/tables")
    check_target(ready, "/data/out")
    with pytest.raises(BadPipelineOption, match=r"http://there.*s3"):
        check_target(ready, "http://there/tables")
    with pytest.raises(BadPipelineOption, match="topic"):
        check_target(ready, "kafka://one")
    with pytest.raises(ConnectorMissing):
        check_target(ready, "kafka://one/prefix")


def test_what_goes_to_kafka_is_known_by_columns_that_the_tables_have() -> None:
    assert TABLES.keys() - KEYS.keys() == {"events", "activities", "quarantine"}
    for name, key in KEYS.items():
        assert set(key) <= set(TABLES[name].names)
