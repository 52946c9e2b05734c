"""Apache CXF's WS-Security, from its published artifacts: what its client sends with a name and a
token, and with the signatures of WSS4J."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

from interop.consumers import Consumer, consumer
from interop.cxf_peer import HERE, java_with
from pki import own_files
from served import Served, served
from soap.security.signers import Site, issued

CLIENT_S = 120
SECRET = "secret"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return java_with("security-pom.xml", tmp_path_factory.mktemp("cxf-security"))


@pytest.fixture
def sink() -> Iterator[Consumer]:
    with consumer() as listening:
        yield listening


def say(command: list[str], *arguments: str) -> str:
    """What the client says of its one call."""
    whole = [*command, str(HERE / "CxfSecurity.java"), *arguments]
    done = subprocess.run(whole, capture_output=True, text=True, timeout=CLIENT_S, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip()


def signed_by_cxf(java: list[str], how: str, soap: str, sink: Consumer, folder: Path) -> bytes:
    """A message as it was sent, by the holder of alice's certificate."""
    who = issued("alice", "ec" if "ec" in how else "rsa")
    store = folder / "alice.p12"
    sealed = BestAvailableEncryption(SECRET.encode())
    store.write_bytes(
        pkcs12.serialize_key_and_certificates(b"alice", who.key, who.certificate, None, sealed)
    )
    assert say(java, how, soap, f"{sink.url}/soap", str(store), SECRET) == "sent"
    return sink.next().body


def site_now(**options: bool) -> Site:
    site = Site(**options)
    site.clock.ns = time.time_ns()
    return site


@pytest.mark.parametrize("soap", ["1.1", "1.2"])
def test_a_signature_of_all_parts_is_taken_without_tls_too(
    java: list[str], sink: Consumer, tmp_path: Path, soap: str
) -> None:
    message = signed_by_cxf(java, "sign-all", soap, sink, tmp_path)
    site = site_now()
    assert site.principal(message, is_private=False) == "alice"
    assert site.fault(message) == "InvalidSecurity"


def test_a_signature_of_body_and_timestamp_is_taken_over_tls(
    java: list[str], sink: Consumer, tmp_path: Path
) -> None:
    for how in ("sign-identifier", "sign-ec"):
        message = signed_by_cxf(java, how, "1.2", sink, tmp_path)
        assert site_now().principal(message) == "alice"
        assert site_now().fault(message, is_private=False) == "FailedCheck"


def test_its_default_sha_1_is_taken_where_the_operator_allows_it(
    java: list[str], sink: Consumer, tmp_path: Path
) -> None:
    message = signed_by_cxf(java, "sign-sha1", "1.2", sink, tmp_path)
    assert site_now().fault(message) == "UnsupportedAlgorithm"
    assert site_now(sha1=True).principal(message) == "alice"


def test_a_certificate_that_is_only_named_is_not_at_hand(
    java: list[str], sink: Consumer, tmp_path: Path
) -> None:
    message = signed_by_cxf(java, "sign-serial", "1.2", sink, tmp_path)
    assert site_now().fault(message) == "SecurityTokenUnavailable"


# A name with a token, over TLS


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    certificate, key = own_files(tmp_path_factory.mktemp("tls"), "localhost", "127.0.0.1")
    required = {"TOCSIN_AUTH__MODE": "required", "TEST_CA": certificate}
    with served("--tls-cert", certificate, "--tls-key", key, env=required) as running:
        yield running


@pytest.fixture(scope="module")
def trusting(
    java: list[str], broker: Served, tmp_path_factory: pytest.TempPathFactory
) -> list[str]:
    """A Java that believes the broker's certificate."""
    if shutil.which("keytool") is None:
        pytest.skip("there is no keytool here")
    store = tmp_path_factory.mktemp("trust") / "trust.p12"
    into = ["-keystore", str(store), "-storepass", "changeit", "-storetype", "PKCS12"]
    believe = ["keytool", "-importcert", "-noprompt", "-file", broker.env["TEST_CA"], *into]
    subprocess.run(believe, check=True, capture_output=True)
    trust = f"-Djavax.net.ssl.trustStore={store}"
    return [java[0], trust, "-Djavax.net.ssl.trustStorePassword=changeit", *java[1:]]


@pytest.mark.parametrize("soap", ["1.1", "1.2"])
def test_a_name_with_a_token_signs_in_and_others_get_a_fault(
    broker: Served, trusting: list[str], soap: str
) -> None:
    token = (broker.directory / "admin.token").read_text().strip()

    def call(how: str, name: str, password: str) -> str:
        said = say(trusting, how, soap, f"{broker.url}/soap", name, password)
        return said.partition("}")[2] or said

    assert call("text", "admin", token) == "answered"
    assert call("text", "mallory", token) == "FailedAuthentication"
    assert call("text", "admin", "wrong") == "FailedAuthentication"
    assert call("digest", "admin", token) == "UnsupportedSecurityToken"
