"""zeep's WS-Security: names with tokens over TLS, and its signatures, made by its own code."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import xmlsec
from lxml import etree
from requests.adapters import HTTPAdapter
from zeep import Client
from zeep.exceptions import Fault
from zeep.transports import Transport
from zeep.wsse.compose import Compose
from zeep.wsse.signature import BinarySignature, MemorySignature
from zeep.wsse.username import UsernameToken
from zeep.wsse.utils import get_security_header

from pki import own_files
from served import Served, served
from soap.security.signers import NOW_NS, Identity, Site, issued, plain, tree
from tocsin.wire.wss.write import timestamp

SHA256 = {
    "signature_method": xmlsec.Transform.RSA_SHA256,
    "digest_method": xmlsec.Transform.SHA256,
}


class Timestamp:
    """zeep signs a Timestamp that is there, and makes none itself."""

    def __init__(self, now_ns: int = NOW_NS) -> None:
        self._now_ns = now_ns

    def apply(self, envelope: Any, headers: Any) -> tuple[Any, Any]:
        get_security_header(envelope).append(tree(timestamp(self._now_ns)))
        return envelope, headers


def by_zeep(message: bytes, *plugins: Any) -> bytes:
    """The message as zeep sends it."""
    envelope, _ = Compose(list(plugins)).apply(tree(message), {})
    return etree.tostring(envelope)


def pem(who: Identity) -> tuple[bytes, bytes]:
    return who.key_pem, who.pem


@pytest.mark.parametrize("soap", ["1.1", "1.2"])
def test_a_signature_by_sha_256_is_taken_once(soap: str) -> None:
    site = Site()
    message = by_zeep(plain(soap), Timestamp(), MemorySignature(*pem(issued("alice")), **SHA256))

    assert site.principal(message) == "alice"
    assert site.fault(message) == "InvalidSecurity"


def test_a_certificate_in_a_token_is_taken_too(tmp_path: Path) -> None:
    key, certificate = (tmp_path / name for name in ("key.pem", "certificate.pem"))
    key.write_bytes(issued("alice").key_pem)
    certificate.write_bytes(issued("alice").pem)
    signature = BinarySignature(str(key), str(certificate), **SHA256)

    assert Site().principal(by_zeep(plain(), Timestamp(), signature)) == "alice"


def test_its_default_sha_1_is_taken_where_the_operator_allows_it() -> None:
    message = by_zeep(plain(), Timestamp(), MemorySignature(*pem(issued("alice"))))
    assert b"xmldsig#rsa-sha1" in message

    assert Site().fault(message) == "UnsupportedAlgorithm"
    assert Site(sha1=True).principal(message) == "alice"


def test_without_a_timestamp_its_signature_could_be_sent_for_ever() -> None:
    message = by_zeep(plain(), MemorySignature(*pem(issued("alice")), **SHA256))
    assert Site().fault(message) == "FailedCheck"


def test_without_tls_its_signature_covers_too_little() -> None:
    message = by_zeep(plain(), Timestamp(), MemorySignature(*pem(issued("alice")), **SHA256))
    assert Site().fault(message, is_private=False) == "FailedCheck"


def test_its_digest_of_a_password_is_refused() -> None:
    message = by_zeep(plain(), UsernameToken("alice", "secret", use_digest=True))
    assert Site().fault(message) == "UnsupportedSecurityToken"


# Over TLS


class TrustsOne(HTTPAdapter):
    """A session that believes one certificate."""

    def __init__(self, ca_file: str) -> None:
        self._context = ssl.create_default_context(cafile=ca_file)
        super().__init__()

    def init_poolmanager(self, *arguments: Any, **named: Any) -> None:
        super().init_poolmanager(*arguments, **named, ssl_context=self._context)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    certificate, key = own_files(tmp_path_factory.mktemp("tls"), "localhost", "127.0.0.1")
    flags = ("--tls-cert", certificate, "--tls-key", key)
    required = {"TOCSIN_AUTH__MODE": "required", "TEST_CA": certificate}
    with served(*flags, env=required) as running:
        yield running


def client_of(broker: Served, name: str, token: str, **how: Any) -> Client:
    session = requests.Session()
    session.mount("https://", TrustsOne(broker.env["TEST_CA"]))
    session.headers["authorization"] = f"Bearer {admin(broker)}"
    wsse = UsernameToken(name, token, **how)
    client = Client(f"{broker.url}/soap?wsdl", wsse=wsse, transport=Transport(session=session))
    del session.headers["authorization"]  # it was for the description alone
    return client


def admin(broker: Served) -> str:
    return (broker.directory / "admin.token").read_text().strip()


def create(client: Client) -> Any:
    return client.bind("wsn13", "CreatePullPoint").CreatePullPoint()


def test_a_name_with_a_token_signs_in_over_tls(broker: Served) -> None:
    made = create(client_of(broker, "admin", admin(broker)))
    assert "/soap/boxes/" in str(made)


@pytest.mark.parametrize(("name", "how"), [("mallory", {}), ("admin", {"use_digest": True})])
def test_who_is_not_signed_in_gets_a_fault_of_ws_security(
    broker: Served, name: str, how: dict[str, bool]
) -> None:
    with pytest.raises(Fault) as raised:
        create(client_of(broker, name, admin(broker), **how))

    fault = raised.value
    expected = "UnsupportedSecurityToken" if how else "FailedAuthentication"
    assert expected in str(fault.code) + str(fault.subcodes)
    assert b'code="T216"' in etree.tostring(fault.detail)


def test_a_wrong_token_is_no_better(broker: Served) -> None:
    with pytest.raises(Fault, match="not valid"):
        create(client_of(broker, "admin", "wrong"))
