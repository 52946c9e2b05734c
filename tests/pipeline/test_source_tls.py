"""The source `tocsin` and a broker with TLS."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict

from served import served
from tocsin.errors import CannotReachBroker
from tocsin.errors.spark import BadSourceOption
from tocsin.pipeline.source import TocsinSource
from tocsin.pipeline.source.spark import BatchReader

pytestmark = pytest.mark.skipif(not shutil.which("openssl"), reason="there is no openssl command")


def reader(url: str, **options: str) -> BatchReader:
    source = TocsinSource(CaseInsensitiveDict({"path": url, "retries": "0", **options}))
    return source.reader(source.schema())


def test_a_broker_is_believed_by_the_certificate_of_its_authority(tmp_path: Path) -> None:
    certificate, key = tmp_path / "own.pem", tmp_path / "own.key"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-keyout", str(key), "-out", str(certificate), "-days", "2"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(command, check=True, capture_output=True)

    with served("--tls-cert", str(certificate), "--tls-key", str(key)) as broker:
        with pytest.raises(CannotReachBroker, match=r"not trusted.*option ca_file"):
            reader(broker.url).partitions()
        with pytest.raises(BadSourceOption, match=r"ca_file, /none/such, cannot be read"):
            reader(broker.url, ca_file="/none/such").partitions()

        assert len(reader(broker.url, ca_file=str(certificate)).partitions()) == 1
