"""The SOAP endpoint: what it answers to methods, paths, and messages it cannot relate to."""

from __future__ import annotations

import http.client
from collections.abc import Iterator

import pytest
from lxml import etree

from served import Served, served
from soap.notification_peers import post
from tocsin.wire.soap.addressing import read_addressing, write_headers
from tocsin.wire.soap.envelope import http_headers, read_envelope, write_envelope
from tocsin.wire.soap.names import WSA2005, WSA_NAMESPACES, WSN13


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as running:
        yield running


@pytest.mark.parametrize("path", ["/soap", "/wsman", "/axis2/services/EventingService"])
def test_who_uses_another_method_is_told_of_post(broker: Served, path: str) -> None:
    host, _, port = broker.address.rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=20)
    connection.request("OPTIONS", path)
    answer = connection.getresponse()
    answer.read()
    connection.close()

    assert answer.status == 405
    assert answer.headers["allow"] == "GET, HEAD, POST"


@pytest.mark.parametrize(
    "path",
    [
        "/soap",
        "/soap/subscriptions/abc",
        "/soap/boxes/abc",
        "/soap/topic/lead/ohio",
        "/wsman",
        "/wsman-anon/identify",
        "/onvif/device_service",
        "/onvif/media_service",
        "/axis2/services/EventingService",
        "/axis2/services/MsgBoxService/clientid/abc",
    ],
)
def test_every_address_that_takes_soap_gives_the_wsdl(broker: Served, path: str) -> None:
    host, _, port = broker.address.rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=20)
    connection.request("GET", f"{path}?wsdl")
    described = connection.getresponse()
    text = described.read()
    connection.request("GET", path)
    bare = connection.getresponse()
    words = bare.read()
    connection.close()

    assert (described.status, described.headers["content-type"][:8]) == (200, "text/xml")
    assert b"wsdl:definitions" in text
    assert bare.status == 404
    assert b"?wsdl" in words


def test_a_path_that_only_begins_like_ours_takes_nothing(broker: Served) -> None:
    message = write_envelope("1.2", body=b"<a/>")

    status, _ = post(f"{broker.url}/wsmanual", message, http_headers("1.2", "urn:a"))

    assert status == 404


@pytest.mark.parametrize("soap", ["1.1", "1.2"])
@pytest.mark.parametrize("wsa", WSA_NAMESPACES)
def test_a_fault_about_addressing_is_told_in_the_callers_own(
    broker: Served, wsa: str, soap: str
) -> None:
    header = write_headers(wsa, action="urn:a", message_id="urn:example:twice")
    twice = header + write_headers(wsa, action="urn:b")
    message = write_envelope(soap, header=twice, body=b"<a/>")

    _, answer = post(f"{broker.url}/soap", message, http_headers(soap, "urn:a"))

    addressing = read_addressing(read_envelope(answer))
    assert (addressing.wsa, addressing.relates_to) == (wsa, "urn:example:twice")
    assert addressing.action == f"{wsa}/fault"


def test_a_pull_point_that_is_asked_for_no_number_says_so_in_its_own_words(broker: Served) -> None:
    header = write_headers(WSA2005, action="", message_id="urn:example:pull")
    ask = f'<w:CreatePullPoint xmlns:w="{WSN13}"/>'
    _, made = post(
        f"{broker.url}/soap",
        write_envelope("1.2", header=header, body=ask.encode()),
        http_headers("1.2", ""),
    )
    address = etree.fromstring(made).findtext(f".//{{{WSA2005}}}Address")
    assert address is not None
    ask = f'<w:GetMessages xmlns:w="{WSN13}"><w:MaximumNumber>all</w:MaximumNumber></w:GetMessages>'

    status, answer = post(
        address,
        write_envelope("1.2", header=header, body=ask.encode()),
        http_headers("1.2", ""),
    )

    assert status == 400
    assert etree.fromstring(answer).find(f".//{{{WSN13}}}UnableToGetMessagesFault") is not None


def test_a_bad_topic_is_mended_in_the_words_of_its_dialect(broker: Served) -> None:
    topic = f'<w:Topic xmlns:w="{WSN13}" Dialect="{DIALECT}">jobs//status</w:Topic>'
    ask = f'<w:GetCurrentMessage xmlns:w="{WSN13}">{topic}</w:GetCurrentMessage>'

    _, answer = post(
        f"{broker.url}/soap", write_envelope("1.2", body=ask.encode()), http_headers("1.2", "")
    )

    assert b"InvalidTopicExpressionFault" in answer
    assert b"**" not in answer


def test_the_encoding_that_http_names_counts(broker: Served) -> None:
    message = write_envelope("1.1", body="<a>gr\u00fc\u00df</a>".encode())
    undeclared = message[message.index(b"?>") + 2 :].decode()

    status, _ = post(
        f"{broker.url}/soap/topic/encoded",
        undeclared.encode("iso-8859-1"),
        [("content-type", "text/xml; charset=ISO-8859-1"), ("soapaction", '""')],
    )
    ask = f'<w:GetCurrentMessage xmlns:w="{WSN13}"><w:Topic>encoded</w:Topic></w:GetCurrentMessage>'
    _, answer = post(
        f"{broker.url}/soap", write_envelope("1.2", body=ask.encode()), http_headers("1.2", "")
    )

    assert status == 202
    assert "<a>gr\u00fc\u00df</a>".encode() in answer


DIALECT = "http://docs.oasis-open.org/wsn/t-1/TopicExpression/Concrete"
