"""Registrations of publishers at a running broker, and the properties of what it has."""

from __future__ import annotations

import http.client
import itertools
import time
from collections.abc import Iterator
from typing import Any

import pytest
from demanded_publisher import answer_to, asks, exchange
from lxml import etree
from notification_peers import Consumer, Peer, Refused, notify
from zeep import Client, Plugin
from zeep.exceptions import Fault

from schemas import PUBLISHED, validator
from served import Served, served
from tocsin.event.instant import rfc3339
from tocsin.wire.soap.addressing import EndpointReference
from tocsin.wire.soap.names import (
    BR13,
    LIFETIME12,
    NAMESPACE_OF,
    PROPERTIES12,
    PROPERTIES13,
    TOPICS13,
    WSA2005,
    WSA200403,
    WSN12,
    WSN13,
    XPATH10,
)
from tocsin.wire.soap.topics import TopicName, dialect_uri
from tocsin.wire.wsn import messages as say
from tocsin.wire.wsn_brokered import messages as brokered
from tocsin.wire.wstopics.tree import UNNAMED

NEW = Peer("wsn13", "1.2", WSA2005)
OLD = Peer("wsn12", "1.1", WSA200403)
NUMBERS = itertools.count(1)
NS_PER_S = 10**9


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as running:
        yield running


def at(broker: Served, wsa: str = WSA2005) -> EndpointReference:
    return EndpointReference(f"{broker.url}/soap", wsa)


def topic(text: str = "", spec: str = "wsn13") -> say.Expression:
    text = text or f"t:registered{next(NUMBERS)}"
    return say.Expression(text, dialect_uri(spec, is_root=False), (("t", "urn:t"),))


def register(
    broker: Served, asked: brokered.RegisterPublisher, peer: Peer = NEW
) -> brokered.RegisterPublisherResponse:
    answer = answer_to(peer, asked, at(broker, peer.wsa))
    assert isinstance(answer, brokered.RegisterPublisherResponse)
    return answer


def property_of(peer: Peer, to: EndpointReference, namespace: str, name: str) -> etree._Element:
    """The answer to GetResourceProperty."""
    own = PROPERTIES13 if peer.spec == "wsn13" else PROPERTIES12
    body = f'<r:GetResourceProperty xmlns:r="{own}" xmlns:q="{namespace}">q:{name}</r:{{}}>'
    envelope = exchange(peer, "urn:get", body.format("GetResourceProperty").encode(), to)
    assert envelope.content is not None
    assert etree.QName(envelope.content).localname == "GetResourcePropertyResponse"
    return envelope.content


# Registering


@pytest.mark.parametrize("peer", [NEW, OLD], ids=str)
def test_what_is_sent_to_a_registration_is_published(broker: Served, peer: Peer) -> None:
    named = topic(spec=peer.spec)
    answer = register(broker, brokered.RegisterPublisher(topics=(named,)), peer)
    assert (answer.consumer is None) == (peer is OLD)

    with Consumer() as consumer:
        asks(
            NEW,
            say.Subscribe(EndpointReference(consumer.url), topics=(topic(named.text),)),
            at(broker),
        )
        message = say.NotificationMessage(b"<m/>", TopicName(named.text, named.namespaces))
        sent = notify(peer, answer.registration.address, message, message_id=f"urn:{peer.spec}")
        assert sent == 202
        assert consumer.next().notification().payload == b"<m/>"


def test_a_registration_that_is_not_there_takes_nothing(broker: Served) -> None:
    message = say.NotificationMessage(b"<m/>", TopicName("t:x", (("t", "urn:t"),)))

    status = notify(NEW, f"{broker.url}/soap/registrations/none", message, message_id="urn:1")

    assert status == 400
    with pytest.raises(Refused) as refused:
        answer_to(NEW, brokered.DestroyRegistration(), at(broker))
    assert refused.value.name == "ResourceUnknownFault"


def test_a_registration_is_destroyed_by_its_header_alone(broker: Served) -> None:
    registration = register(broker, brokered.RegisterPublisher()).registration
    by_header = EndpointReference(f"{broker.url}/soap", parameters=registration.parameters)

    answer_to(NEW, brokered.DestroyRegistration(), by_header)

    with pytest.raises(Refused):
        answer_to(NEW, brokered.DestroyRegistration(), registration)


def test_in_1_2_a_registration_ends_by_its_lifetime(broker: Served) -> None:
    registration = register(broker, brokered.RegisterPublisher(), OLD).registration
    until_ns = time.time_ns() + 3600 * NS_PER_S

    renewed = asks(OLD, say.Renew(rfc3339(until_ns)), registration)
    assert isinstance(renewed, say.RenewResponse)
    assert isinstance(renewed.termination_ns, int)
    assert abs(renewed.termination_ns - until_ns) < NS_PER_S
    asks(OLD, say.Unsubscribe(), registration)

    with pytest.raises(Refused) as refused:
        asks(OLD, say.Unsubscribe(), registration)
    assert refused.value.name == "ResourceUnknownFault"


def test_a_registration_ends_at_its_time(broker: Served) -> None:
    ends = rfc3339(time.time_ns() + NS_PER_S)
    registration = register(broker, brokered.RegisterPublisher(termination=ends)).registration
    assert len(property_of(NEW, registration, BR13, "Demand")) == 1

    time.sleep(1.1)

    with pytest.raises(Refused) as refused:
        property_of(NEW, registration, BR13, "Demand")
    assert refused.value.name == "ResourceUnknownFault"


def test_registrations_outlive_the_broker() -> None:
    with served() as broker:
        registration = register(broker, brokered.RegisterPublisher(topics=(topic(),))).registration

        broker.kill()
        broker.start()

        assert len(property_of(NEW, registration, BR13, "Topic")) == 1
        answer_to(NEW, brokered.DestroyRegistration(), registration)
        broker.kill()
        broker.start()
        with pytest.raises(Refused):
            answer_to(NEW, brokered.DestroyRegistration(), registration)


HERE = EndpointReference("http://127.0.0.1:9/publisher")


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        (
            brokered.RegisterPublisher(topics=(topic("t:a"),), demand=True),
            "PublisherRegistrationRejectedFault",
        ),
        (brokered.RegisterPublisher(HERE, demand=True), "PublisherRegistrationRejectedFault"),
        (
            brokered.RegisterPublisher(
                EndpointReference("http://169.254.169.254/x"), (topic("t:a"),), demand=True
            ),
            "PublisherRegistrationRejectedFault",
        ),
        (
            brokered.RegisterPublisher(
                EndpointReference("soap.tcp://127.0.0.1:9/x"), (topic("t:a"),), demand=True
            ),
            "PublisherRegistrationRejectedFault",
        ),
        (
            brokered.RegisterPublisher(topics=(topic("t:a//*[1]"),)),
            "InvalidTopicExpressionFault",
        ),
        (
            brokered.RegisterPublisher(topics=(say.Expression("a", "urn:dialect"),)),
            "TopicNotSupportedFault",
        ),
        (
            brokered.RegisterPublisher(termination="2001-01-01T00:00:00Z"),
            "UnacceptableInitialTerminationTimeFault",
        ),
    ],
)
def test_what_cannot_be_registered_is_refused_and_changes_nothing(
    broker: Served, asked: brokered.RegisterPublisher, name: str
) -> None:
    with pytest.raises(Refused) as refused:
        register(broker, asked)

    assert refused.value.name == name


class TopicText(Plugin):
    """zeep cannot write text into a type that may also hold elements: it is put in afterwards."""

    def egress(self, envelope: Any, http_headers: Any, operation: Any, options: Any) -> Any:
        for written in envelope.iter(f"{{{BR13}}}Topic"):
            written.text = "zeeps"
        return envelope, http_headers


def test_a_publisher_is_registered_by_zeep_with_the_published_wsdl(broker: Served) -> None:
    wsdl = PUBLISHED / "wsn13_oasis" / "wsn.wsdl"
    if not wsdl.exists():
        pytest.skip("the WSDL of WS-Notification 1.3 is not in ../shared")
    client = Client(str(wsdl), plugins=[TopicText()])

    def service(name: str, address: str) -> Any:
        [binding] = [each for each in client.wsdl.bindings if each.endswith(f"}}{name}")]
        return client.create_service(binding, address)

    dialect = dialect_uri("wsn13", is_root=True)
    registrar = service("NotificationBrokerSoap", f"{broker.url}/soap")
    answer = registrar.RegisterPublisher(Topic=[{"Dialect": dialect}], Demand=False)
    address = answer["PublisherRegistrationReference"]["Address"]["_value_1"]
    assert address.startswith(f"{broker.url}/soap/registrations/")
    [reported] = property_of(NEW, EndpointReference(address), BR13, "Topic")
    assert reported.text == "zeeps"
    ending = service("PublisherRegistrationManagerSoap", address)
    ending.DestroyRegistration()
    with pytest.raises(Fault):
        ending.DestroyRegistration()


# Properties and topics


def test_the_broker_tells_its_properties_in_both_versions(broker: Served) -> None:
    new = property_of(NEW, at(broker), WSN13, "FixedTopicSet")
    old = property_of(OLD, at(broker, WSA200403), WSN12, "TopicExpressionDialects")

    assert [each.text for each in new] == ["false"]
    assert [str(each.text).rpartition("/")[2] for each in old] == ["Simple", "Concrete", "Full"]
    with pytest.raises(Refused) as refused:
        property_of(NEW, at(broker), WSN13, "Nonsense")
    assert refused.value.name == "InvalidResourcePropertyQNameFault"


@pytest.mark.parametrize("peer", [NEW, OLD], ids=str)
def test_a_subscription_tells_its_own(broker: Served, peer: Peer) -> None:
    namespace = NAMESPACE_OF[peer.spec]
    with Consumer() as consumer:
        wanted = topic(spec=peer.spec)
        ends = rfc3339(time.time_ns() + 60 * NS_PER_S)
        asked = say.Subscribe(
            EndpointReference(consumer.url, peer.wsa), topics=(wanted,), termination=ends
        )
        answer = asks(peer, asked, at(broker, peer.wsa))
        assert isinstance(answer, say.SubscribeResponse)

        consumer_reported = property_of(peer, answer.reference, namespace, "ConsumerReference")
        assert consumer_reported.findtext(f".//{{{peer.wsa}}}Address") == consumer.url
        name = "Filter" if peer is NEW else "TopicExpression"
        reported = property_of(peer, answer.reference, namespace, name)
        assert wanted.text in "".join(reported.itertext())
        if peer is OLD:
            [end] = property_of(peer, answer.reference, LIFETIME12, "TerminationTime")
            assert end.text == ends
        asks(peer, say.Unsubscribe(), answer.reference)
        with pytest.raises(Refused) as refused:
            property_of(peer, answer.reference, namespace, "ConsumerReference")
        assert refused.value.name == "ResourceUnknownFault"


def test_properties_are_queried_by_xpath(broker: Served) -> None:
    body = (
        f'<r:QueryResourceProperties xmlns:r="{PROPERTIES13}"><r:QueryExpression xmlns:n="{WSN13}"'
        f' Dialect="{XPATH10}">count(//n:TopicExpressionDialect) > 2</r:QueryExpression>'
        "</r:QueryResourceProperties>"
    )

    # The schema wants an element in the answer, and a truth is none.
    envelope = exchange(NEW, "urn:query", body.encode(), at(broker), judge=False)

    assert envelope.content is not None
    assert envelope.content.text == "true"


def get(broker: Served, path: str) -> etree._Element:
    host, _, port = broker.address.rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=10)
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    assert answer.status == 200, body
    validator("wsn13")(body)
    return etree.fromstring(body)


def test_topics_are_told_once_they_are_published_or_announced_and_after_a_restart() -> None:
    with served() as broker:
        assert not len(get(broker, "/soap/topics"))
        register(broker, brokered.RegisterPublisher(topics=(topic("t:announced/soon"),)))
        broker.publish({"topic": "plain/one"}, {"topic": "weather/radar", "topicns": "urn:w"})

        broker.kill()
        broker.start()
        broker.publish({"topic": "weather/now", "topicns": "urn:w"})
        until = time.monotonic() + 5
        found = get(broker, "/soap/topics")
        while len(found) < 3 and time.monotonic() < until:
            found = get(broker, "/soap/topics")

        is_topic = f"{{{TOPICS13}}}topic"
        topics = {
            "/".join(etree.QName(level).text for level in [*reversed(list(e.iterancestors())), e])
            for e in found.iter()
            if e.get(is_topic) == "true"
        }
        top = f"{{{TOPICS13}}}TopicSet"
        assert topics == {
            f"{top}/{{urn:t}}announced/soon",
            f"{top}/{{{UNNAMED}}}plain/one",
            f"{top}/{{urn:w}}weather/radar",
            f"{top}/{{urn:w}}weather/now",
        }
        namespace = get(broker, "/soap/topics?namespace=urn:w")
        assert namespace.get("targetNamespace") == "urn:w"
        assert [each.get("name") for each in namespace] == ["weather"]
        status, problem = broker.call("GET", "/soap/topics?namespace=urn:none")
        assert (status, "urn:w" in str(problem)) == (404, True)


def test_asking_for_the_topics_is_a_property_too(broker: Served) -> None:
    broker.publish({"topic": "asked/for", "topicns": "urn:asked"})

    reported = property_of(NEW, at(broker), TOPICS13, "TopicSet")

    assert reported.find(f"{{{TOPICS13}}}TopicSet/{{urn:asked}}asked/for") is not None
