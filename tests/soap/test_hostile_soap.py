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
from hostile_line import EVERY, Line, Voice, count, subscribe
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
def line(broker: Served) -> Iterator[Line]:
    opened = Line(broker)
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
def test_every_hostile_file_is_refused_and_the_connection_goes_on(line: Line) -> None:
    before = count(line.broker)
    sent = 0
    for name, data in files():
        said = line.post(data)
        sent += 1
        is_envelope = b"Envelope" in data and b"<!DOCTYPE" not in data
        assert said.is_fault or (is_envelope and said.status == 202), (name, said)
        assert said.status in (202, 400, 413, 500), name

    assert sent > 1_000
    assert line.is_usable()
    assert count(line.broker) == before


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le"])
@pytest.mark.parametrize("soap", ["1.1", "1.2"])
def test_an_entity_bomb_is_not_lit(line: Line, encoding: str, soap: str) -> None:
    envelope = f'<s:Envelope xmlns:s="{names.SOAP_NAMESPACES[soap]}"><s:Body>&j;</s:Body>'
    text = BOMB.decode() + envelope + "</s:Envelope>"

    said = line.post(text.encode(encoding), headers=dict(http_headers(soap, "")))

    assert said.is_fault
    assert said.envelope.soap == soap, "as the content type says, the envelope being unread"
    assert line.is_usable()


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
    line: Line, kind: str
) -> None:
    said = line.post(huge(kind), headers=dict(http_headers("1.2", "")))

    assert said.is_fault
    assert said.status in (400, 413)
    assert said.envelope.soap == "1.2"
    assert line.is_usable()


@pytest.mark.parametrize("part", ["depth", "attributes", "namespaces", "header"])
def test_shapes_that_cost_are_refused_below_the_limit_of_bytes_too(line: Line, part: str) -> None:
    many = 50_000
    body = {
        "depth": b"<y>" * many + b"</y>" * many,
        "attributes": b"<x %b/>" % b" ".join(b'a%d=""' % n for n in range(many)),
        "namespaces": b"<x %b/>" % b" ".join(b'xmlns:a%d="urn:%d"' % (n, n) for n in range(many)),
        "header": b"<x/>",
    }[part]
    header = b'<h:h xmlns:h="urn:h"/>' * many if part == "header" else b""

    said = line.post(write_envelope("1.1", header=header, body=body))

    assert said.is_fault
    assert said.envelope.soap == "1.1"
    assert line.is_usable()


def test_a_compressed_bomb_is_not_unpacked(line: Line) -> None:
    packed = gzip.compress(huge("text") * 8)
    headers = {**dict(http_headers("1.2", "")), "content-encoding": "gzip"}

    said = line.post(packed, headers=headers)

    assert said.is_fault
    assert said.status in (400, 413)
    assert line.is_usable()


@pytest.mark.parametrize(
    "namespace", ["http://www.w3.org/2001/12/soap-envelope", "urn:soap:3.0", "", names.WSE04]
)
def test_an_unknown_soap_is_told_which_are_known(line: Line, namespace: str) -> None:
    said = line.post(f'<Envelope xmlns="{namespace}"><Body><x/></Body></Envelope>'.encode())

    assert (said.code, said.envelope.soap) == ("VersionMismatch", "1.1")
    header = said.envelope.header
    assert header is not None
    offered = [e.nsmap["v"] for e in header.iter(f"{{{names.SOAP12}}}SupportedEnvelope")]
    assert offered == [names.SOAP12, names.SOAP11]
    assert line.is_usable()


@EVERY
def test_a_header_that_must_be_understood_is_not_passed_over(
    line: Line, sink: Consumer, voice: Voice
) -> None:
    before = count(line.broker)
    soap = names.SOAP_NAMESPACES[voice.soap]
    header = f'<u:Pay xmlns:u="urn:u" xmlns:s="{soap}" s:mustUnderstand="1"/>'

    said = line.speak(voice, subscribe(voice, sink.url), header=header)

    assert said.code == "MustUnderstand"
    told = said.envelope.header
    assert told is not None
    assert len(list(told.iter(f"{{{names.SOAP12}}}NotUnderstood"))) == (voice.soap == "1.2")
    assert count(line.broker) == before
    assert line.is_usable()


@EVERY
def test_a_long_topic_costs_its_length_and_no_more(line: Line, voice: Voice) -> None:
    """A search for prefixes in it once cost the square."""
    topic = f'<n:Topic xmlns:n="{names.WSN13}" Dialect="urn:x">{"a" * 1_000_000}</n:Topic>'

    said = line.speak(voice, "<x/>", header=topic)

    assert said.is_fault
    assert line.is_usable()
