"""The source `tocsin` and a broker that wants everybody to sign in."""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import CaseInsensitiveDict

from served import Served, served
from tocsin.client import Publisher
from tocsin.credentials.lookup import VARIABLES
from tocsin.errors import BadCredential, BrokerRefused
from tocsin.errors.spark import BadSourceOption
from tocsin.pipeline.source import TocsinSource
from tocsin.pipeline.source.data_source import BatchReader


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served(env={"TOCSIN_AUTH__MODE": "required"}) as running:
        token_file = str(running.directory / "admin.token")
        with Publisher(running.url, token_file=token_file) as publisher:
            publisher.publish("in/a", {"n": 1})
        yield running


@pytest.fixture
def token_file(broker: Served, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return str(broker.directory / "admin.token")


def reader(url: str, **options: str) -> BatchReader:
    source = TocsinSource(CaseInsensitiveDict({"path": url, "retries": "0", **options}))
    return source.reader(source.schema())


def rows(found: BatchReader) -> int:
    # As Spark sends it to an executor, which reads the file itself.
    text = pickle.dumps(found)
    there: BatchReader = pickle.loads(text)
    return sum(batch.num_rows for part in there.partitions() for batch in there.read(part))


def test_a_file_or_the_environment_signs_it_in(
    broker: Served, token_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BrokerRefused) as refused:
        rows(reader(broker.url))
    assert refused.value.broker_code == "T216"

    assert rows(reader(broker.url, token_file=token_file)) == 1
    monkeypatch.setenv("TOCSIN_TOKEN_FILE", token_file)
    assert rows(reader(broker.url)) == 1
    monkeypatch.setenv("TOCSIN_TOKEN", "tcs_0_none")
    assert rows(reader(broker.url, token_file=token_file)) == 1, "an option comes first"
    monkeypatch.delenv("TOCSIN_TOKEN_FILE")
    monkeypatch.setenv("TOCSIN_TOKEN", Path(token_file).read_text().strip())
    assert rows(reader(broker.url)) == 1


def test_what_is_sent_to_executors_has_no_token(
    broker: Served, token_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = Path(token_file).read_text().strip()
    monkeypatch.setenv("TOCSIN_TOKEN", secret)
    found = reader(broker.url, token_file=token_file)

    found.partitions()

    assert secret.encode() not in pickle.dumps(found)
    assert secret not in repr(vars(found))


def test_a_token_is_no_option(broker: Served) -> None:
    with pytest.raises(BadSourceOption, match="would show the token") as refused:
        reader(broker.url, token="tcs_1_verysecret")
    assert "verysecret" not in str(refused.value)


def test_a_file_that_others_can_read_is_refused_where_it_is_read(
    broker: Served, token_file: str, tmp_path: Path
) -> None:
    copied = tmp_path / "token"
    copied.write_text(Path(token_file).read_text())
    copied.chmod(0o644)

    with pytest.raises(BadCredential, match="can be read or changed by others"):
        reader(broker.url, token_file=str(copied)).partitions()


def test_a_key_alone_signs_nobody_in(broker: Served, token_file: str) -> None:
    with pytest.raises(BadCredential, match="no certificate for it"):
        reader(broker.url, client_key=token_file).partitions()


@pytest.mark.java
def test_plans_do_not_show_it(spark: SparkSession, broker: Served, token_file: str) -> None:
    spark.dataSource.register(TocsinSource)
    events = spark.read.format("tocsin").option("token_file", token_file).load(broker.url)
    shown = io.StringIO()
    with redirect_stdout(shown):
        events.explain("extended")

    assert events.count() == 1
    assert Path(token_file).read_text().strip() not in shown.getvalue()
