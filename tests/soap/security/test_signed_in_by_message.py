"""A broker where clients have to sign in, and who is at each of its ends by what a message says."""

from __future__ import annotations

import http.client
import re
import socket
import ssl
import time
from collections.abc import Iterator
from collections.abc import Sequence as Listed
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from lxml import etree

import pki
from served import Served, served
from soap.security.signers import new_id
from tocsin.client import UsernameToken, WsntClient, X509Signature
from tocsin.errors import BadCredential, SoapRefused
from tocsin.wire.dime import Decoder, DimeLimits, envelope_message, read_envelope_message
from tocsin.wire.soap.addressing import EndpointReference, anonymous
from tocsin.wire.soap.envelope import http_headers, read_envelope, write_envelope
from tocsin.wire.soap.names import SOAP12, WSA2005, WSN13, WSRM11
from tocsin.wire.wsrm.messages import (
    CreateSequence,
    CreateSequenceResponse,
    Sequence,
    TerminateSequence,
)
from tocsin.wire.wsrm.read import read_content
from tocsin.wire.wsrm.write import write_content, write_sequence
from tocsin.wire.wss import write

PATIENCE_S = 20.0
TRUSTING = ssl._create_unverified_context()  # whose certificate it is, other tests ask
CREATE = b'<b:CreatePullPoint xmlns:b="%b"/>' % WSN13.encode()
CREATED = b"CreatePullPointResponse"


@dataclass(frozen=True)
class Secured:
    """The broker, its authority, and somebody who has a certificate of it."""

    broker: Served
    folder: Path
    alice: pki.Made
    stranger: pki.Made

    @property
    def token(self) -> str:
        return (self.broker.directory / "admin.token").read_text().strip()

    def post(
        self, message: bytes, soap: str = "1.2", headers: Listed[tuple[str, str]] = ()
    ) -> tuple[int, bytes]:
        host, _, port = self.broker.address.rpartition(":")
        way = http.client.HTTPSConnection(host, int(port), timeout=PATIENCE_S, context=TRUSTING)
        try:
            way.request("POST", "/soap", message, dict(headers or http_headers(soap, "")))
            answer = way.getresponse()
            return answer.status, answer.read()
        finally:
            way.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("site")
    authority, other = pki.authority(), pki.authority()
    key = rsa.generate_private_key(65_537, 2_048)
    alice = pki.made(pki.name("alice"), authority, key=key)
    stranger = pki.made(pki.name("alice"), other)
    ca, _ = authority.write(folder, "ca")
    certificate, secret = pki.made(
        pki.name("broker"), authority, usages=pki.BROKER, names=["localhost"]
    ).write(folder, "broker")
    settings = folder / "tocsin.toml"
    settings.write_text(
        f'[auth]\nmode = "required"\n[certificates]\nclient_ca = "{ca}"\n'
        '[[access]]\nprincipal = "alice"\naction = "*"\n'
    )
    flags = ("--config", str(settings), "--tls-cert", certificate, "--tls-key", secret)
    with served(*flags) as broker:
        yield Secured(broker, folder, alice, stranger)


def fault_name(answer: bytes) -> str:
    """Of WS-Security, with our code beside it."""
    assert b'code="T216"' in answer
    found = re.search(rb"f:(\w+)</(?:\w+:)?(?:Value|faultcode)>", answer)
    return "" if found is None else found[1].decode()


def by_token(site: Secured, soap: str = "1.2", password: str = "", body: bytes = CREATE) -> bytes:
    message = write_envelope(soap, body=body)
    content = [write.username_token("admin", password or site.token)]
    return etree.tostring(write.with_security(message, content))


def by_alice(site: Secured, soap: str = "1.2", who: pki.Made | None = None, **said: bytes) -> bytes:
    who = who or site.alice
    message = write_envelope(soap, header=said.get("header", b""), body=said.get("body", CREATE))
    return write.signed(message, who.key, who.certificate, time.time_ns(), new_id)


@pytest.mark.parametrize("soap", ["1.1", "1.2"])
def test_who_the_message_says_it_is_from_may_do_what_he_may(site: Secured, soap: str) -> None:
    status, answer = site.post(write_envelope(soap, body=CREATE), soap)
    assert (status, fault_name(answer)) == (400 if soap == "1.2" else 500, "")

    for message in (by_token(site, soap), by_alice(site, soap)):
        status, answer = site.post(message, soap)
        assert status == 200
        assert CREATED in answer


@pytest.mark.parametrize("soap", ["1.1", "1.2"])
def test_who_is_not_signed_in_by_it_gets_a_fault_of_ws_security(site: Secured, soap: str) -> None:
    wrong = by_token(site, soap, "wrong")
    foreign = by_alice(site, soap, site.stranger)
    again = by_alice(site, soap)
    assert site.post(again, soap)[0] == 200

    for message, name in (
        (wrong, "FailedAuthentication"),
        (foreign, "FailedAuthentication"),
        (again, "InvalidSecurity"),
    ):
        status, answer = site.post(message, soap)
        assert status == (400 if soap == "1.2" else 500)
        assert fault_name(answer) == name
    assert site.token not in site.broker.said()


def test_a_header_does_not_overrule_the_connection(site: Secured) -> None:
    headers = [*http_headers("1.2", ""), ("authorization", f"Bearer {site.token}")]
    status, answer = site.post(by_alice(site), headers=headers)
    assert (status, fault_name(answer)) == (400, "FailedAuthentication")
    assert site.post(by_token(site), headers=headers)[0] == 200


def test_a_header_that_is_not_known_still_has_to_be_understood(site: Secured) -> None:
    block = b'<x:Pay xmlns:x="urn:x" xmlns:s="%b" s:mustUnderstand="true"/>' % SOAP12.encode()
    _, answer = site.post(by_alice(site, header=block))
    assert b"MustUnderstand" in answer


def test_a_sequence_is_for_whoever_began_it(site: Secured) -> None:
    back = EndpointReference(anonymous(WSA2005), WSA2005)
    create = write_content(CreateSequence(WSRM11, back), WSA2005)
    made = read_content(read_envelope(site.post(by_alice(site, body=create))[1]))
    assert isinstance(made, CreateSequenceResponse)

    end = write_content(TerminateSequence(WSRM11, made.identifier), WSA2005)
    place = write_sequence(Sequence(WSRM11, made.identifier, 1), "1.2")
    event = b"<reading>7</reading>"

    def sent(message: bytes) -> bytes:
        return site.post(message)[1]

    admin = [write.username_token("admin", site.token)]
    theirs = write.with_security(write_envelope("1.2", header=place, body=event), admin)
    assert b"UnknownSequence" in sent(etree.tostring(theirs))
    assert b"UnknownSequence" in sent(by_token(site, body=end))
    assert b"SequenceAcknowledgement" in sent(by_alice(site, header=place, body=event))
    assert b"TerminateSequenceResponse" in sent(by_alice(site, body=end))


def test_soap_tcp_has_it_too(site: Secured) -> None:
    for message, expected in (
        (by_token(site), CREATED),
        (by_alice(site), CREATED),
        (by_alice(site, who=site.stranger), b"FailedAuthentication"),
        (write_envelope("1.2", body=CREATE), b'code="T216"'),
    ):
        assert expected in by_soap_tcp(site, message)


def by_soap_tcp(site: Secured, message: bytes) -> bytes:
    host, _, port = site.broker.soap_tcp.rpartition(":")
    decoder = Decoder(DimeLimits(1 << 20, 100))
    with (
        socket.create_connection((host, int(port)), timeout=PATIENCE_S) as plain,
        TRUSTING.wrap_socket(plain) as way,
    ):
        way.sendall(envelope_message("1.2", message))
        while (answer := decoder.next_message()) is None:
            decoder.receive(way.recv(1 << 16))
    return read_envelope_message(answer)[1]


def test_our_own_client_signs_in_by_its_messages(
    site: Secured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOCSIN_CA_FILE", str(site.folder / "ca.pem"))
    certificate, key = site.alice.write(tmp_path, "alice")
    url = site.broker.url.replace("127.0.0.1", "localhost")
    for security in (X509Signature(certificate, key), UsernameToken("admin", site.token)):
        with (
            WsntClient(url, security=security) as client,
            client.subscribe("lead/**", pull=True) as messages,
        ):
            client.publish("<sweep>7</sweep>", topic="lead/ohio")
            assert messages.take(PATIENCE_S) is not None

    with (
        pytest.raises(SoapRefused, match="not valid"),
        WsntClient(url, security=UsernameToken("admin", "wrong")) as client,
    ):
        client.publish("<sweep>7</sweep>", topic="lead/ohio")


def test_our_own_client_sends_no_password_without_tls() -> None:
    token = UsernameToken("admin", "secret")
    assert "secret" not in repr(token)
    with (
        WsntClient("http://broker.example:1", security=token) as client,
        pytest.raises(BadCredential, match="without TLS"),
    ):
        client.publish("<sweep>7</sweep>", topic="lead/ohio")
