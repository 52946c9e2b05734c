"""The source `tocsin` and a broker with TLS."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict

from pki import own_files
from served import served
from tocsin.errors import CannotReachBroker
from tocsin.errors.spark import BadSourceOption
from tocsin.pipeline.source import TocsinSource
from tocsin.pipeline.source.data_source import BatchReader


def reader(url: str, **options: str) -> BatchReader:
    source = TocsinSource(CaseInsensitiveDict({"path": url, "retries": "0", **options}))
    return source.reader(source.schema())


def test_a_broker_is_believed_by_the_certificate_of_its_authority(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = own_files(tmp_path, "127.0.0.1")
    with served("--tls-cert", certificate, "--tls-key", key) as broker:
        with pytest.raises(CannotReachBroker, match=r"not trusted.*option ca_file"):
            reader(broker.url).partitions()
        with pytest.raises(BadSourceOption, match=r"ca_file, /none/such, cannot be read"):
            reader(broker.url, ca_file="/none/such").partitions()

        assert len(reader(broker.url, ca_file=certificate).partitions()) == 1
        monkeypatch.setenv("TOCSIN_CA_FILE", certificate)
        assert len(reader(broker.url).partitions()) == 1


@pytest.mark.slow
def test_tables_are_made_of_a_broker_with_a_certificate_of_its_own(tmp_path: Path) -> None:
    certificate, key = own_files(tmp_path, "127.0.0.1")
    with served("--tls-cert", certificate, "--tls-key", key) as broker:
        command = [sys.executable, "-m", "tocsin", "pipeline", "run", "--json"]
        command += ["--archive", broker.url, "--tables", str(tmp_path / "tables")]

        refused = subprocess.run(command, capture_output=True, text=True)
        command += ["--ca-file", certificate]
        done = subprocess.run(command, capture_output=True, text=True)

    assert refused.returncode == 3
    assert "--ca-file" in refused.stderr
    assert done.returncode == 0, done.stderr[-2_000:]
