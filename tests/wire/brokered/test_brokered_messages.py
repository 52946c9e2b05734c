"""WS-BrokeredNotification: messages of both sides in both versions, registrations, faults."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from schemas import validator
from tocsin.errors import SinkRefused
from tocsin.wire.soap.addressing import EndpointReference
from tocsin.wire.soap.envelope import read_envelope, write_envelope
from tocsin.wire.soap.fault import SoapFault, write_fault
from tocsin.wire.soap.names import BR12, BR13, LIFETIME12, WSA2005, WSA200403
from tocsin.wire.soap.topics import TopicName, dialect_uri
from tocsin.wire.wsn.messages import NEVER, Expression
from tocsin.wire.wsn.operations import Operation
from tocsin.wire.wsn_brokered import messages as say
from tocsin.wire.wsn_brokered.faults import FAILED, REJECTED, BrokeredFaults
from tocsin.wire.wsn_brokered.read import TOPICS_MAX, read
from tocsin.wire.wsn_brokered.registration import (
    Registration,
    concrete_topic,
    from_bytes,
    to_bytes,
)
from tocsin.wire.wsn_brokered.write import write

VERSIONS = [("wsn13", WSA2005), ("wsn12", WSA200403)]
TEXT = st.text("abcXYZ09", min_size=1, max_size=8)
URLS = TEXT.map(lambda text: f"http://{text}.example/{text}")
EXPRESSIONS = st.builds(
    lambda name, kind: Expression(
        f"p:{name}", dialect_uri("wsn13", is_root=kind), (("p", "urn:p"),)
    ),
    TEXT,
    st.booleans(),
)


def sent(message: say.Message, spec: str, wsa: str) -> say.Message:
    """The message as its receiver reads it."""
    raw = write_envelope("1.2", body=write(message, spec, wsa))
    if spec == "wsn13":
        validator(spec)(raw)
    envelope = read_envelope(raw)
    assert envelope.content is not None
    return read(envelope)


@pytest.mark.parametrize(("spec", "wsa"), VERSIONS)
@given(
    url=st.none() | URLS,
    topics=st.lists(EXPRESSIONS, max_size=3),
    demand=st.booleans(),
    termination=st.sampled_from([None, "2030-01-01T00:00:00Z"]),
)
def test_a_registration_is_read_as_it_was_written(
    spec: str,
    wsa: str,
    url: str | None,
    topics: list[Expression],
    demand: bool,
    termination: str | None,
) -> None:
    publisher = None if url is None else EndpointReference(url, wsa)
    asked = say.RegisterPublisher(publisher, tuple(topics), demand, termination)

    assert sent(asked, spec, wsa) == asked


@pytest.mark.parametrize(("spec", "wsa"), VERSIONS)
def test_answers_are_read_as_they_were_written(spec: str, wsa: str) -> None:
    registration = EndpointReference("http://b.example/soap/registrations/1", wsa)
    consumer = EndpointReference("http://b.example/soap", wsa) if spec == "wsn13" else None
    answer = say.RegisterPublisherResponse(registration, consumer)

    assert sent(answer, spec, wsa) == answer
    if spec == "wsn13":
        assert sent(say.DestroyRegistration(), spec, wsa) == say.DestroyRegistration()
        ended = say.DestroyRegistrationResponse()
        assert sent(ended, spec, wsa) == ended


def test_an_end_that_is_nil_is_none() -> None:
    asked = say.RegisterPublisher(termination=NEVER)
    body = write_envelope("1.1", body=write(asked, "wsn13", WSA2005))

    envelope = read_envelope(body)

    assert envelope.content is not None
    assert read(envelope) == asked


@pytest.mark.parametrize(
    "inside",
    [
        b"<n:Demand>perhaps</n:Demand>",
        b"<n:Topic>t</n:Topic>" * (TOPICS_MAX + 1),
        b"<n:PublisherReference/>",
    ],
)
def test_what_is_no_registration_is_refused(inside: bytes) -> None:
    body = b'<n:RegisterPublisher xmlns:n="%b">%b</n:RegisterPublisher>' % (BR13.encode(), inside)
    envelope = read_envelope(write_envelope("1.1", body=body))
    assert envelope.content is not None

    with pytest.raises(SoapFault):
        read(envelope)


def test_an_answer_has_the_action_of_the_port_that_was_asked() -> None:
    asked = "http://docs.oasis-open.org/wsn/brw-2/NotificationBroker/RegisterPublisherRequest"

    answered = say.response_action("wsn13", say.REGISTER, asked)

    assert answered == asked.replace("Request", "Response")
    usual = say.response_action("wsn13", say.REGISTER, "urn:of-our-own")
    assert usual == say.response_action("wsn13", say.REGISTER)
    assert usual == say.request_action("wsn13", say.REGISTER).replace("Request", "Response")


REFUSED = SinkRefused("no", remedy="Do not.")


@pytest.mark.parametrize(
    ("spec", "fault", "namespace", "name"),
    [
        ("wsn13", lambda faults: faults.rejected(REFUSED), BR13, REJECTED),
        ("wsn12", lambda faults: faults.rejected(REFUSED), BR12, REJECTED),
        ("wsn13", lambda faults: faults.failed(REFUSED), BR13, FAILED),
        ("wsn13", lambda faults: faults.not_destroyed(REFUSED), BR13, "ResourceNotDestroyedFault"),
        (
            "wsn12",
            lambda faults: faults.not_destroyed(REFUSED),
            LIFETIME12,
            "ResourceNotDestroyedFault",
        ),
        (
            "wsn12",
            lambda faults: faults.unacceptable_time("past", Operation.SUBSCRIBE),
            BR12,
            FAILED,
        ),
        (
            "wsn13",
            lambda faults: faults.unacceptable_time("past", Operation.SUBSCRIBE),
            "http://docs.oasis-open.org/wsn/b-2",
            "UnacceptableInitialTerminationTimeFault",
        ),
    ],
)
@pytest.mark.parametrize("soap", ["1.1", "1.2"])
def test_a_fault_is_told_by_its_own_name(
    spec: str, fault: object, namespace: str, name: str, soap: str
) -> None:
    assert callable(fault)
    reported = fault(BrokeredFaults(spec, 10**18))

    message = write_envelope(soap, body=write_fault(reported, soap))

    if namespace != BR12:
        validator(spec)(message)
    assert f"{{{namespace}}}{name}" in [each.tag for each in etree.fromstring(message).iter()]


def test_a_registration_is_kept_whole() -> None:
    registration = Registration(
        id="1",
        spec="wsn12",
        soap="1.1",
        wsa=WSA200403,
        address="http://b.example/soap/registrations/1",
        publisher=EndpointReference("http://p.example", WSA200403, properties=(b"<k/>",)),
        topics=(Expression("p:a", "d", (("p", "urn:p"),)),),
        demand=True,
        created_ns=5,
        expires_ns=10,
    )

    assert from_bytes(to_bytes(registration)) == registration
    assert [registration.is_over(now_ns) for now_ns in (9, 10)] == [False, True]


@pytest.mark.parametrize(
    ("text", "is_one"),
    [("p:a/b", True), ("a", True), ("p:a//b", False), ("a/*", False), ("a|b", False)],
)
def test_only_an_expression_for_one_topic_announces_it(text: str, is_one: bool) -> None:
    found = concrete_topic(Expression(text, "", (("p", "urn:p"),)))

    assert found == (TopicName(text, (("p", "urn:p"),)) if is_one else None)
