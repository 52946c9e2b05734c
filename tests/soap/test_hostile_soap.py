"""Hostile XML and hostile SOAP, sent to a running broker.

Each is refused with a fault, in the caller's own versions where it has any, quickly, on a
connection that goes on; and nothing is subscribed by it.
"""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hostile_connection import EVERY, Dialect, SoapConnection, count, subscribe
from wse_source import Consumer, consumer

from served import ROOT, Served, served
from tocsin.wire.soap import names
from tocsin.wire.soap.envelope import http_headers, write_envelope

HOSTILE = ROOT.parent / "shared" / "data" / "hostile"
KINDS = {".xml", ".svg", ".xsl", ".ent", ".dtd", ".xsd"}
MEGABYTES_10 = 10 << 20
BOMB = (
    b'<!DOCTYPE e [<!ENTITY a "ha">'
    + b"".join(b'<!ENTITY %c "%b">' % (98 + n, b"&%c;" % (97 + n) * 10) for n in range(9))
    + b"]>"
)


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as running:
        yield running


@pytest.fixture
def connection(broker: Served) -> Iterator[SoapConnection]:
    opened = SoapConnection(broker)
    yield opened
    opened.close()


@pytest.fixture
def sink() -> Iterator[Consumer]:
    with consumer() as listening:
        yield listening


def files() -> Iterator[tuple[str, bytes]]:
    """Every hostile XML file, whole; those that are lists of payloads, line by line as well."""
    for path in sorted(HOSTILE.rglob("*")):
        if path.is_file() and (path.suffix in KINDS or "XXE" in str(path)):
            yield str(path.relative_to(HOSTILE)), path.read_bytes()
            if path.suffix == ".txt":
                yield from ((path.name, each) for each in path.read_bytes().splitlines())
    [archive] = (HOSTILE / "w3c-xmlconf").glob("*.tgz")
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.isfile() and Path(member.name).suffix in KINDS:
                file = tar.extractfile(member)
                assert file is not None
                yield member.name, file.read()


@pytest.mark.skipif(not HOSTILE.is_dir(), reason="the hostile files are not in ../shared")
def test_every_hostile_file_is_refused_and_the_connection_goes_on(
    connection: SoapConnection,
) -> None:
    before = count(connection.broker)
    sent = 0
    for name, data in files():
        answer = connection.post(data)
        sent += 1
        is_envelope = b"Envelope" in data and b"<!DOCTYPE" not in data
        assert answer.is_fault or (is_envelope and answer.status == 202), (name, answer)
        assert answer.status in (202, 400, 413, 500), name

    assert sent > 1_000
    assert connection.is_usable()
    assert count(connection.broker) == before


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le"])
@pytest.mark.parametrize("soap", ["1.1", "1.2"])
def test_an_entity_bomb_is_not_lit(connection: SoapConnection, encoding: str, soap: str) -> None:
    envelope = f'<s:Envelope xmlns:s="{names.SOAP_NAMESPACES[soap]}"><s:Body>&j;</s:Body>'
    text = BOMB.decode() + envelope + "</s:Envelope>"

    answer = connection.post(text.encode(encoding), headers=dict(http_headers(soap, "")))

    assert answer.is_fault
    assert answer.envelope.soap == soap, "as the content type says, the envelope being unread"
    assert connection.is_usable()


def huge(kind: str) -> bytes:
    whole = {
        "text": b"<x>%b</x>" % (b"y" * MEGABYTES_10),
        "elements": b"<x>%b</x>" % (b"<y/>" * (MEGABYTES_10 // 4)),
        "depth": b"<y>" * (MEGABYTES_10 // 7) + b"</y>" * (MEGABYTES_10 // 7),
        "attribute": b'<x y="%b"/>' % (b"y" * MEGABYTES_10),
        "attributes": b"<x %b/>" % b" ".join(b'a%d=""' % n for n in range(MEGABYTES_10 // 12)),
        "name": b"<%b/>" % (b"y" * MEGABYTES_10),
        "namespaces": b"<x %b/>"
        % b" ".join(b'xmlns:a%d="urn:%d"' % (n, n) for n in range(MEGABYTES_10 // 28)),
    }[kind]
    return write_envelope("1.2", body=whole)


@pytest.mark.parametrize(
    "kind", ["text", "elements", "depth", "attribute", "attributes", "name", "namespaces"]
)
def test_ten_megabytes_are_refused_quickly_and_the_connection_goes_on(
    connection: SoapConnection, kind: str
) -> None:
    answer = connection.post(huge(kind), headers=dict(http_headers("1.2", "")))

    assert answer.is_fault
    assert answer.status in (400, 413)
    assert answer.envelope.soap == "1.2"
    assert connection.is_usable()


@pytest.mark.parametrize("part", ["depth", "attributes", "namespaces", "header"])
def test_shapes_that_cost_are_refused_below_the_limit_of_bytes_too(
    connection: SoapConnection, part: str
) -> None:
    many = 50_000
    body = {
        "depth": b"<y>" * many + b"</y>" * many,
        "attributes": b"<x %b/>" % b" ".join(b'a%d=""' % n for n in range(many)),
        "namespaces": b"<x %b/>" % b" ".join(b'xmlns:a%d="urn:%d"' % (n, n) for n in range(many)),
        "header": b"<x/>",
    }[part]
    header = b'<h:h xmlns:h="urn:h"/>' * many if part == "header" else b""

    answer = connection.post(write_envelope("1.1", header=header, body=body))

    assert answer.is_fault
    assert answer.envelope.soap == "1.1"
    assert connection.is_usable()


def test_a_compressed_bomb_is_not_unpacked(connection: SoapConnection) -> None:
    packed = gzip.compress(huge("text") * 8)
    headers = {**dict(http_headers("1.2", "")), "content-encoding": "gzip"}

    answer = connection.post(packed, headers=headers)

    assert answer.is_fault
    assert answer.status in (400, 413)
    assert connection.is_usable()


@pytest.mark.parametrize(
    "namespace", ["http://www.w3.org/2001/12/soap-envelope", "urn:soap:3.0", "", names.WSE04]
)
def test_an_unknown_soap_is_told_which_are_known(
    connection: SoapConnection, namespace: str
) -> None:
    answer = connection.post(f'<Envelope xmlns="{namespace}"><Body><x/></Body></Envelope>'.encode())

    assert (answer.code, answer.envelope.soap) == ("VersionMismatch", "1.1")
    header = answer.envelope.header
    assert header is not None
    offered = [e.nsmap["v"] for e in header.iter(f"{{{names.SOAP12}}}SupportedEnvelope")]
    assert offered == [names.SOAP12, names.SOAP11]
    assert connection.is_usable()


@EVERY
def test_a_header_that_must_be_understood_is_not_passed_over(
    connection: SoapConnection, sink: Consumer, dialect: Dialect
) -> None:
    before = count(connection.broker)
    soap = names.SOAP_NAMESPACES[dialect.soap]
    header = f'<u:Pay xmlns:u="urn:u" xmlns:s="{soap}" s:mustUnderstand="1"/>'

    answer = connection.send(dialect, subscribe(dialect, sink.url), header=header)

    assert answer.code == "MustUnderstand"
    reported = answer.envelope.header
    assert reported is not None
    assert len(list(reported.iter(f"{{{names.SOAP12}}}NotUnderstood"))) == (dialect.soap == "1.2")
    assert count(connection.broker) == before
    assert connection.is_usable()


@EVERY
def test_a_long_topic_costs_its_length_and_no_more(
    connection: SoapConnection, dialect: Dialect
) -> None:
    """A search for prefixes in it once cost the square."""
    topic = f'<n:Topic xmlns:n="{names.WSN13}" Dialect="urn:x">{"a" * 1_000_000}</n:Topic>'

    answer = connection.send(dialect, "<x/>", header=topic)

    assert answer.is_fault
    assert connection.is_usable()
