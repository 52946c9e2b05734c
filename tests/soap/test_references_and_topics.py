"""What a consumer's reference may hold, and how topics are named: by prefixes that stand for
something, in headers of any namespace."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lxml import etree

from served import Served, served
from soap.notification_peers import PEERS, Peer, Refused, ask, post
from soap.wse_source import Client, Consumer, consumer, publish
from tocsin.wire.soap.addressing import EndpointReference, write_headers
from tocsin.wire.soap.envelope import http_headers, write_envelope
from tocsin.wire.soap.names import (
    SOAP12,
    TOPICS10_SIMPLE,
    TOPICS13,
    WSA2005,
    WSA200408,
    WSA_NAMESPACES,
    WSN10,
    WSN12,
    WSN13,
    WSRM11,
)
from tocsin.wire.wse.messages import Filter, Subscribe
from tocsin.wire.wsn import messages as say
from tocsin.wire.wsn.messages import Expression

CONCRETE = f"{TOPICS13}/TopicExpression/Concrete"


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as running:
        yield running


@pytest.fixture
def sink() -> Iterator[Consumer]:
    with consumer() as listening:
        yield listening


def last_topic(broker: Served) -> str:
    events = broker.call("GET", "/events?after=0&limit=1000")[1]["events"]
    return str(events[-1].get("topic"))


def bare(broker: Served, header: str, path: str = "/soap") -> int:
    message = write_envelope("1.2", header=header.encode(), body=b'<a xmlns="urn:mine"/>')
    return post(f"{broker.url}{path}", message, http_headers("1.2", ""))[0]


# References


@pytest.mark.parametrize("name", ["To", "Action", "MessageID", "RelatesTo"])
@pytest.mark.parametrize("wsa", WSA_NAMESPACES)
def test_a_reference_that_would_double_an_addressing_header_is_refused(
    broker: Served, sink: Consumer, wsa: str, name: str
) -> None:
    block = f'<a:{name} xmlns:a="{wsa}">urn:other</a:{name}>'.encode()
    to = EndpointReference(sink.url, WSA200408, parameters=(block,))

    eventing = Client(broker, "wse11").ask(Subscribe("wse11", to))

    assert eventing.subcode == "UnusableEPR"
    assert name.encode() in eventing.body
    with pytest.raises(Refused, match=name):
        ask(PEERS[0], say.Subscribe(to), EndpointReference(f"{broker.url}/soap"))


@pytest.mark.parametrize("namespace", [SOAP12, WSRM11])
def test_a_reference_that_would_forge_another_header_of_the_message_is_refused(
    broker: Served, sink: Consumer, namespace: str
) -> None:
    block = f'<a:Sequence xmlns:a="{namespace}">1</a:Sequence>'.encode()
    to = EndpointReference(sink.url, WSA2005, properties=(block,))

    assert Client(broker, "wse11").ask(Subscribe("wse11", to)).subcode == "UnusableEPR"


# Prefixes


@pytest.mark.parametrize("namespace", [WSN13, WSN12, WSN10])
def test_an_undeclared_prefix_of_a_published_topic_is_left_out_and_sent_to_nobody(
    broker: Served, sink: Consumer, namespace: str
) -> None:
    """zeep publishes so, and cannot do otherwise."""
    Client(broker, "wse11").subscribe(sink.url, filter=Filter(Expression("//zeeps")))
    body = (
        f'<n:Notify xmlns:n="{namespace}"><n:NotificationMessage><n:Topic Dialect="{CONCRETE}">'
        "ghost:a/b</n:Topic><n:Message><zeeps/></n:Message></n:NotificationMessage></n:Notify>"
    )
    message = write_envelope("1.2", body=body.encode())

    status, _ = post(f"{broker.url}/soap", message, http_headers("1.2", ""))

    assert status in (200, 202)
    assert last_topic(broker) == "a/b"
    received = sink.next().body
    assert b"a/b" in received
    assert b"ghost" not in received


def test_a_notification_with_a_topic_that_is_none_is_refused_by_name(broker: Served) -> None:
    body = (
        f'<n:Notify xmlns:n="{WSN13}"><n:NotificationMessage><n:Topic Dialect="{CONCRETE}">'
        "a//b</n:Topic><n:Message><x/></n:Message></n:NotificationMessage></n:Notify>"
    )
    message = write_envelope("1.2", body=body.encode())

    status, answer = post(f"{broker.url}/soap", message, http_headers("1.2", ""))

    assert status == 400
    assert etree.fromstring(answer).find(f".//{{{WSN13}}}InvalidTopicExpressionFault") is not None


@pytest.mark.parametrize("peer", PEERS[:4], ids=str)
def test_a_subscription_to_a_topic_with_an_undeclared_prefix_is_refused(
    broker: Served, sink: Consumer, peer: Peer
) -> None:
    wanted = say.Expression("ghost:a/b", CONCRETE)
    asked = say.Subscribe(EndpointReference(sink.url, peer.wsa), topics=(wanted,))

    with pytest.raises(Refused, match="ghost") as refused:
        ask(peer, asked, EndpointReference(f"{broker.url}/soap"))

    assert refused.value.name == "InvalidTopicExpressionFault"


def test_ws_eventing_refuses_an_undeclared_prefix_where_prefixes_count(
    broker: Served, sink: Consumer
) -> None:
    def asked(dialect: str) -> str:
        wanted = Filter(Expression("ghost:a", dialect))
        to = EndpointReference(sink.url, WSA2005)
        return Client(broker, "wse11").ask(Subscribe("wse11", to, filter=wanted)).subcode

    assert asked(CONCRETE) == "CannotProcessFilter"
    assert asked(TOPICS10_SIMPLE) == ""


def test_onvifs_prefix_may_be_used_undeclared_as_its_examples_do(
    broker: Served, sink: Consumer
) -> None:
    wanted = say.Expression("tns1:Device/Trigger", CONCRETE)
    asked = say.Subscribe(EndpointReference(sink.url), topics=(wanted,))

    made = ask(PEERS[0], asked, EndpointReference(f"{broker.url}/soap"))

    assert isinstance(made, say.SubscribeResponse)


def test_the_originals_topics_are_compared_by_name_and_sent_out_bound(
    broker: Served, sink: Consumer
) -> None:
    Client(broker, "wse11").subscribe(sink.url, filter=Filter(Expression("//a[.='ghost']")))
    topic = f'<n:Topic xmlns:n="{WSN10}">ghost:old/way</n:Topic>'
    message = write_envelope("1.2", header=topic.encode(), body=b"<a>ghost</a>")

    status, _ = post(f"{broker.url}/soap", message, http_headers("1.2", ""))

    assert status == 202
    assert last_topic(broker) == "old/way"
    assert b"ghost:" not in sink.next().body


def test_an_extension_of_a_publisher_makes_no_unbound_prefix(
    broker: Served, sink: Consumer
) -> None:
    Client(broker, "wse11").subscribe(sink.url, filter=Filter(Expression("//forged")))

    publish(broker, "<forged/>", topic="a/b", wstopic="ghost:a/b")

    assert b"ghost" not in sink.next().body


# Topics in headers


@pytest.mark.parametrize(
    "header",
    [
        '<t:Topic xmlns:t="urn:lead">h/any</t:Topic>',
        "<Topic>h/any</Topic>",
        '<t:topic xmlns:t="urn:lead">h/any</t:topic>',
        '<t:TopicExpression xmlns:t="urn:lead" xmlns:q="urn:q">q:h/any</t:TopicExpression>',
        '<t:Topic xmlns:t="urn:lead">other</t:Topic>'
        f'<n:Topic xmlns:n="{WSN13}" Dialect="{CONCRETE}">h/any</n:Topic>',
    ],
)
def test_a_topic_in_a_header_of_any_namespace_is_the_topic(broker: Served, header: str) -> None:
    assert bare(broker, header) == 202
    assert last_topic(broker) == "h/any"


@pytest.mark.parametrize(
    "header",
    [
        '<t:Topic xmlns:t="urn:lead"><t:id>7</t:id></t:Topic>',
        '<t:Topic xmlns:t="urn:lead"> </t:Topic>',
        '<t:Topic xmlns:t="urn:lead">a//**</t:Topic>',
    ],
)
def test_a_header_that_is_called_topic_and_is_none_is_passed_over(
    broker: Served, header: str
) -> None:
    assert bare(broker, header) == 202
    assert last_topic(broker) == "wseTopic"
    assert bare(broker, header, "/soap/topic/of/path") == 202
    assert last_topic(broker) == "of/path"


def test_a_topic_that_a_consumer_put_into_its_reference_comes_back_as_the_topic(
    broker: Served,
) -> None:
    header = write_headers(WSA2005, action="urn:a", message_id="urn:reference:1").decode()
    header += (
        f'<t:Topic xmlns:t="urn:lead" xmlns:a="{WSA2005}" a:IsReferenceParameter="true">'
        "from/reference</t:Topic>"
    )

    assert bare(broker, header) == 202
    assert last_topic(broker) == "from/reference"


def test_a_message_without_a_topic_goes_to_wildcards_and_content_filters_alone(
    broker: Served, sink: Consumer
) -> None:
    def wants(path: str, **wish: object) -> None:
        asked = say.Subscribe(EndpointReference(f"{sink.url}/{path}"), **wish)  # type: ignore[arg-type]
        ask(PEERS[0], asked, EndpointReference(f"{broker.url}/soap"))

    full = f"{TOPICS13}/TopicExpression/Full"
    wants("wildcard", topics=(say.Expression("*", full),), contents=(say.Expression("//untold"),))
    wants("content", contents=(say.Expression("//untold"),))
    wants("topic", topics=(say.Expression("jobs/status", CONCRETE),))
    message = write_envelope("1.2", body=b"<untold/>")

    assert post(f"{broker.url}/soap", message, http_headers("1.2", ""))[0] == 202

    assert {sink.next().path, sink.next().path} == {"/wildcard", "/content"}
    assert sink.is_silent()
