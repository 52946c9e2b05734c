"""Envelopes that come in MIME: MTOM's packages and SOAP with attachments."""

from __future__ import annotations

import contextlib
from base64 import b64encode
from collections.abc import Iterator
from queue import Queue

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from served import Served, served
from soap.notification_peers import post
from tocsin.cli.convert.conversion import read_message
from tocsin.client import Message, WseClient
from tocsin.errors import BadEvent, TocsinError
from tocsin.wire.soap.envelope import write_envelope
from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.soap.multipart import PARTS_MAX, XOP, envelope_of_package
from tocsin.wire.soap.names import WSN13

PICTURE = bytes(range(256))
MTOM = 'multipart/related; type="application/xop+xml"; start="<root>"; boundary="b-1"'
MTOM += '; start-info="application/soap+xml"'
SWA = 'multipart/related; type="text/xml"; boundary=b-1'
INCLUDE = f'<p xmlns="urn:p"><i:Include xmlns:i="{XOP}" href="cid:picture%40camera"/></p>'
XML = 'Content-Type: text/xml; charset="utf-8"'


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as running:
        yield running


def package(*parts: tuple[str, bytes]) -> bytes:
    pieces = (f"--b-1\r\n{head}\r\n\r\n".encode() + data + b"\r\n" for head, data in parts)
    return b"".join(pieces) + b"--b-1--\r\n"


def root(body: str, content_id: str = "root") -> tuple[str, bytes]:
    kind = 'application/xop+xml; charset=UTF-8; type="application/soap+xml"'
    head = (
        f"Content-Type: {kind}\r\nContent-Transfer-Encoding: binary\r\nContent-ID: <{content_id}>"
    )
    return head, write_envelope("1.2", body=body.encode())


def picture(content_id: str = "picture@camera") -> tuple[str, bytes]:
    return f"Content-Type: image/png\r\nContent-ID: <{content_id}>", PICTURE


def send(broker: Served, content_type: str, body: bytes) -> tuple[int, bytes]:
    headers = [("content-type", content_type), ("soapaction", '"urn:a"')]
    return post(f"{broker.url}/soap/topic/mime", body, headers)


def published(broker: Served) -> bytes:
    ask = f'<w:GetCurrentMessage xmlns:w="{WSN13}"><w:Topic>mime</w:Topic></w:GetCurrentMessage>'
    _, answer = post(
        f"{broker.url}/soap",
        write_envelope("1.2", body=ask.encode()),
        [("content-type", "application/soap+xml")],
    )
    return answer


@pytest.mark.parametrize("content_type", [MTOM, MTOM.replace("multipart", "Multipart")])
def test_what_mtom_moved_out_of_the_envelope_is_put_back(broker: Served, content_type: str) -> None:
    status, answer = send(broker, content_type, package(picture(), root(INCLUDE)))

    assert status == 202, answer
    reported = etree.fromstring(published(broker)).findtext(".//{urn:p}p")
    assert reported == b64encode(PICTURE).decode()


def test_an_envelope_that_is_the_only_part_is_read(broker: Served) -> None:
    text = "<only>gr\u00fc\u00df</only>"
    head = 'Content-Type: text/xml; charset="iso-8859-1"\r\nContent-ID: <x>'
    envelope = write_envelope("1.1", body=text.encode()).partition(b"?>")[2].decode()

    status, answer = send(broker, SWA, package((head, envelope.encode("iso-8859-1"))))

    assert status == 202, answer
    assert text.encode() in published(broker)


def test_attachments_that_would_be_lost_are_refused_in_words(broker: Served) -> None:
    envelope = write_envelope("1.1", body=b'<a href="cid:picture@camera"/>')

    status, answer = send(broker, SWA, package((XML, envelope), picture()))

    assert status == 415
    assert b"attachments" in answer
    assert b"not well-formed" not in answer


@pytest.mark.parametrize(
    ("content_type", "body", "status", "words"),
    [
        ("multipart/mixed; boundary=b-1", package(root("<a/>")), 415, b"multipart/related"),
        ("multipart/related", package(root("<a/>")), 500, b"boundary"),
        (MTOM, b"--b-1\r\n\r\n<a/>", 500, b"ends before"),
        (MTOM, b"nothing", 500, b"ends before"),
        (MTOM, b"--b-1--\r\n", 500, b"no part"),
        (MTOM, package(root(INCLUDE)), 500, b"not a part"),
        (MTOM, package(root(INCLUDE), picture(), picture()), 500, b"Content-ID"),
        (MTOM, package(root(INCLUDE.replace(">", ">x", 1)), picture()), 500, b"alone"),
        (MTOM, package(*[root("<a/>")] * (PARTS_MAX + 1)), 500, b"parts"),
        (
            SWA,
            package((f"{XML}\r\nContent-Transfer-Encoding: base64", b"PGEvPg==")),
            415,
            b"base64",
        ),
    ],
)
def test_a_package_that_cannot_be_read_is_refused_in_words(
    broker: Served, content_type: str, body: bytes, status: int, words: bytes
) -> None:
    answered, answer = send(broker, content_type, body)

    assert words in answer
    assert answered in ((status,) if status == 415 else (400, 500))


def test_including_a_part_over_and_over_meets_the_limit_of_an_envelope() -> None:
    include = INCLUDE.replace("picture%40camera", "big")
    big = ("Content-ID: <big>", b"x" * 100_000)

    with pytest.raises(SoapFault, match="exceed"):
        envelope_of_package(package(root(f"<a>{include * 60}</a>"), big), MTOM, 1_000_000)


def test_our_own_consumer_reads_a_package_too() -> None:
    received: Queue[Message] = Queue()
    with WseClient() as client:
        inbox = client.listen(received.put)
        head = [("content-type", MTOM)]

        status, answer = post(inbox.address, package(root(INCLUDE), picture()), head)

        assert status == 202, answer
        assert b64encode(PICTURE) in received.get(timeout=10).payload


def test_a_captured_package_is_converted() -> None:
    head = f"POST /soap HTTP/1.1\r\nHost: x\r\nContent-Type: {MTOM}\r\n\r\n"

    found = read_message(head.encode() + package(root(INCLUDE), picture()))

    assert b64encode(PICTURE) in (found.events[0].data or b"")
    with pytest.raises(BadEvent, match="attachments"):
        read_message(head.encode() + package(root("<a/>"), picture()))


@given(st.binary(max_size=300), st.sampled_from([MTOM, SWA]))
def test_nothing_that_comes_in_mime_makes_more_than_a_fault(noise: bytes, kind: str) -> None:
    for body in (noise, b"--b-1\r\n" + noise + b"\r\n--b-1--", package(("", noise), root("<a/>"))):
        with contextlib.suppress(SoapFault, TocsinError):
            envelope_of_package(body, kind, 1_000)
