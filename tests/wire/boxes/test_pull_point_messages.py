"""Pull points: their operations, and what becomes of whatever was sent to them."""

from __future__ import annotations

import pytest
from lxml import etree

from schemas import CAPTURES, validator
from tocsin.errors import BadRequest, Busy, NoSuchBox, TooManySubscriptions
from tocsin.event.event import Event
from tocsin.wire.msgbox.content import BoxMessage
from tocsin.wire.pullpoint import operations
from tocsin.wire.pullpoint.notifications import event_message, notification_messages
from tocsin.wire.pullpoint.operations import pull_point_fault
from tocsin.wire.soap.envelope import Envelope, read_envelope, write_envelope
from tocsin.wire.soap.fault import write_fault
from tocsin.wire.soap.names import WSA2003, WSA2005, WSE11, WSMAN, WSN12, WSN13
from tocsin.wire.soap.slices import cut_out
from tocsin.wire.soap.topics import TopicName
from tocsin.wire.wsn.messages import NotificationMessage, Notify
from tocsin.wire.wsn.read import read_notify
from tocsin.wire.wsn.write import write_notify

ADDRESS = "http://127.0.0.1:8400/soap/boxes/abc"
TOPIC = TopicName("p:a/b", (("p", "urn:p"),))


def answered(messages: list[bytes]) -> bytes:
    return write_envelope("1.2", body=operations.messages(messages))


def in_envelope(body: bytes) -> Envelope:
    return read_envelope(write_envelope("1.2", body=body))


def parts(message: bytes) -> tuple[str | None, str | None, bytes]:
    """Topic, producer and payload of a NotificationMessage, which stands alone."""
    body = b'<n:Notify xmlns:n="%b">%b</n:Notify>' % (WSN13.encode(), message)
    notify = read_envelope(write_envelope("1.1", body=body))
    assert notify.content is not None
    (found,) = read_notify(notify).messages
    topic = None if found.topic is None else f"{found.topic.namespace} {found.topic.path}"
    return topic, None if found.producer is None else found.producer.address, found.payload


@pytest.mark.parametrize("wsa", [WSA2003, WSA2005, ""])
def test_a_pull_point_is_given_as_a_reference_that_can_be_subscribed(wsa: str) -> None:
    body = operations.created(operations.box_reference(ADDRESS, "abc"), wsa)
    envelope = write_envelope("1.2", body=body)

    found = operations.read_pull_point(read_envelope(envelope))

    assert found.address == ADDRESS
    assert len(found.properties + found.parameters) == 1
    if wsa != WSA2003:
        validator("wsn13")(envelope)


def test_the_requests_are_what_zeep_makes_of_the_published_wsdl() -> None:
    for name, body, operation in (
        ("06_CreatePullPoint", operations.create_request(), operations.CREATE),
        ("07_GetMessages", operations.get_request(10), operations.GET),
        ("08_DestroyPullPoint", operations.destroy_request(), operations.DESTROY),
    ):
        capture = (CAPTURES / f"zeep43_wsn13_{name}.http").read_bytes()
        head, _, message = capture.partition(b"\r\n\r\n")
        if not message:
            head, _, message = capture.partition(b"\n\n")
        sent = read_envelope(message)
        assert sent.content is not None
        ours = etree.fromstring(body)
        assert [e.tag for e in sent.content.iter()] == [e.tag for e in ours.iter()]
        assert operations.request_action(operation).encode() in head


def test_how_many_are_wanted_is_read_and_what_is_no_number_refused() -> None:
    def asked(text: bytes) -> Envelope:
        return in_envelope(
            b'<w:GetMessages xmlns:w="%b"><w:MaximumNumber>%b</w:MaximumNumber></w:GetMessages>'
            % (WSN13.encode(), text)
        )

    assert operations.read_maximum(asked(b" 10 ")) == 10
    assert operations.read_maximum(in_envelope(operations.get_request(None))) is None
    for wrong in (b"", b"0", b"-1", b"many", b"9" * 30):
        with pytest.raises(BadRequest):
            operations.read_maximum(asked(wrong))


def test_notifications_of_1_3_are_passed_on_as_they_were_sent() -> None:
    capture = (CAPTURES / "zeep43_wsn13_filter_02_Notify.http").read_bytes()
    envelope = read_envelope(capture[capture.index(b"<?xml") :])
    assert envelope.content is not None
    body = cut_out(envelope, [envelope.content])[0]
    inside = body[body.index(b">") + 1 : body.rindex(b"</")].strip()
    content = inside[inside.index(b">") :]  # its start tag now says what the prefixes stand for

    (message,) = notification_messages(BoxMessage(body))

    assert message.endswith(content)
    validator("wsn13")(answered([message]))


@pytest.mark.parametrize("spec", ["wsn12", "wsn10", "wsn13"])
def test_several_notifications_of_any_version_come_out_one_by_one_in_1_3(spec: str) -> None:
    sent = Notify(
        (
            NotificationMessage(b'<x xmlns="urn:x">1</x>', TOPIC),
            NotificationMessage(b'<x xmlns="urn:x">2</x>', TopicName("root")),
        )
    )

    found = notification_messages(BoxMessage(write_notify(sent, spec, WSA2005)))

    assert [parts(message) for message in found] == [
        ("urn:p a/b", None, b'<x xmlns="urn:x">1</x>'),
        (" root", None, b'<x xmlns="urn:x">2</x>'),
    ]
    validator("wsn13")(answered(found))


def test_a_bare_payload_becomes_a_notification_with_the_topic_of_its_header() -> None:
    message = BoxMessage(b"<c><b>1</b></c>", "urn:action", "urn:id", "http://source/", TOPIC)

    (found,) = notification_messages(message)

    assert parts(found) == ("urn:p a/b", "http://source/", b"<c><b>1</b></c>")
    validator("wsn13")(answered([found]))


def test_wrappers_of_other_specifications_are_taken_off() -> None:
    wrapped = b'<e:Notify xmlns:e="%b" actionURI="urn:a"><x/></e:Notify>' % WSE11.encode()
    batch = b'<m:Events xmlns:m="%b"><m:Event><y/></m:Event><m:Event><z/></m:Event></m:Events>'

    (one,) = notification_messages(BoxMessage(wrapped))
    several = notification_messages(BoxMessage(batch % WSMAN.encode()))

    assert parts(one)[2].startswith(b"<x")
    assert [parts(each)[2][:2] for each in several] == [b"<y", b"<z"]


def test_a_notify_that_is_none_is_handed_on_whole() -> None:
    empty = b'<n:Notify xmlns:n="%b"/>' % WSN12.encode()

    (found,) = notification_messages(BoxMessage(empty))

    assert parts(found)[2].startswith(b"<n:Notify")


def test_an_event_of_the_broker_is_told_with_its_topic_and_source() -> None:
    event = Event("1", "http://cam/1", "t", "a/b", datacontenttype="application/xml", data=b"<m/>")

    assert parts(event_message(event)) == (" a/b", "http://cam/1", b"<m/>")


@pytest.mark.parametrize(
    ("error", "operation", "name"),
    [
        (NoSuchBox("no box", remedy="Make one."), operations.GET, "ResourceUnknownFault"),
        (Busy("busy", remedy="Wait."), operations.GET, "UnableToGetMessagesFault"),
        (Busy("busy", remedy="Wait."), operations.DESTROY, "UnableToDestroyPullPointFault"),
        (
            TooManySubscriptions("full", remedy="Destroy some."),
            operations.CREATE,
            "UnableToCreatePullPointFault",
        ),
    ],
)
def test_each_fault_has_its_name_and_its_base_fault(
    error: Exception, operation: str, name: str
) -> None:
    assert isinstance(error, NoSuchBox | Busy | TooManySubscriptions)
    fault = pull_point_fault(error, operation, now_ns=10**18)

    assert name.encode() in fault.detail
    assert b"2001-09-09T01:46:40.000Z" in fault.detail
    for soap in ("1.1", "1.2"):
        validator("wsn13")(write_envelope(soap, body=write_fault(fault, soap)))


def test_an_expression_with_our_prefix_in_it_does_not_lose_its_meaning() -> None:
    taken = TopicName("n:a", (("n", "urn:theirs"),))

    (found,) = notification_messages(BoxMessage(b"<a/>", topic=taken))

    assert parts(found)[0] == "urn:theirs a"
