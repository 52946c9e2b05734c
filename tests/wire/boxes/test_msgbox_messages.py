"""The original's message box service, word by word, and what a box keeps of a message."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from schemas import CAPTURES, validator
from tocsin.wire.msgbox import read, write
from tocsin.wire.msgbox.content import (
    BoxMessage,
    box_event,
    box_filters,
    box_message,
    box_topic,
    dropped_header,
    token_of,
)
from tocsin.wire.soap.envelope import read_envelope, write_envelope
from tocsin.wire.soap.names import MSGBOX
from tocsin.wire.soap.topics import TopicName

TOKEN = "f936e25b-9395-4d1d-b8d0-a9e2117eea60"


def canonical(xml: bytes) -> bytes:
    return etree.tostring(etree.fromstring(xml), method="c14n", exclusive=True)


def captured_body(name: str) -> bytes:
    envelope = (CAPTURES / name).read_bytes().partition(b"<?xml")[2].partition(b"?>")[2]
    root = etree.fromstring(envelope[: envelope.rindex(b">") + 1])
    return etree.tostring(root[-1][0], method="c14n", exclusive=True)


def test_a_box_is_asked_for_and_given_as_the_original_does() -> None:
    asked = write.request(write.CREATE, "Create message box")
    answer = write.created(TOKEN)

    assert canonical(asked) == captured_body("wsmessenger02_client_06_req.http")
    assert canonical(answer) == captured_body("wsmessenger02_client_06_resp.http")
    assert write.request_action(write.CREATE) == f"{MSGBOX}createMsgBox"


def test_every_answer_is_what_the_schema_says_and_reads_back() -> None:
    judge = validator("msgbox")
    bodies = {
        "created": write.created(TOKEN),
        "stored": write.stored(is_stored=True),
        "taken": write.taken([b"<a/>", b'<b xmlns="urn:x">1</b>']),
        "destroyed": write.destroyed(is_destroyed=False),
    }
    envelopes = {name: write_envelope("1.1", body=body) for name, body in bodies.items()}
    for envelope in envelopes.values():
        judge(envelope)

    assert read.box_id(read_envelope(envelopes["created"])) == TOKEN
    assert read.succeeded(read_envelope(envelopes["stored"]))
    assert not read.succeeded(read_envelope(envelopes["destroyed"]))
    assert read.messages(read_envelope(envelopes["taken"])) == [
        b"<a/>",
        b'<b xmlns="urn:x">1</b>',
    ]


def test_a_box_is_named_in_the_body_or_by_an_echoed_reference_in_either_namespace() -> None:
    in_body = read_envelope(write_envelope("1.1", body=write.request(write.TAKE, TOKEN)))
    in_header = read_envelope(
        write_envelope(
            "1.2",
            header=b'<m:MsgBoxId xmlns:m="%b">%b</m:MsgBoxId>' % (MSGBOX.encode(), TOKEN.encode()),
            body=b'<m:takeMessages xmlns:m="%b"/>' % MSGBOX.encode(),
        )
    )
    for envelope in (in_body, in_header):
        assert envelope.content is not None
        assert read.named_box(envelope) == TOKEN


def test_what_was_dropped_is_told_in_a_header_and_nothing_if_nothing_was() -> None:
    reported = read_envelope(write_envelope("1.1", header=dropped_header(7), body=write.taken([])))

    assert read.dropped(reported) == 7
    assert read.messages(reported) == []
    assert dropped_header(0) == b""


names = st.text(alphabet="abcXYZ", min_size=1, max_size=8)
texts = st.none() | st.text(min_size=1, max_size=30)


@given(
    body=st.binary(max_size=40),
    action=texts,
    message_id=texts,
    sender=texts,
    path=st.none() | st.lists(names, min_size=1, max_size=4),
    namespace=st.none() | st.sampled_from(["urn:a", "http://x/y"]),
)
def test_a_message_is_kept_with_all_that_its_header_said(
    body: bytes,
    action: str | None,
    message_id: str | None,
    sender: str | None,
    path: list[str] | None,
    namespace: str | None,
) -> None:
    topic = None
    if path is not None:
        bindings = () if namespace is None else (("p", namespace),)
        text = "/".join(path)
        topic = TopicName(text if namespace is None else f"p:{text}", bindings)
    message = BoxMessage(body, action, message_id, sender, topic)

    event = box_event(TOKEN, message, "id")

    assert box_message(event) == message
    assert event.topic == box_topic(TOKEN)


def test_a_topic_that_can_be_none_costs_the_topic_and_not_the_message() -> None:
    event = box_event(TOKEN, BoxMessage(b"<a/>", topic=TopicName("a//b*")), "id")

    assert box_message(event) == BoxMessage(b"<a/>")


def test_a_box_is_known_again_by_its_filter_and_others_are_not_taken_for_one() -> None:
    assert token_of(box_filters(TOKEN)) == TOKEN
    for others in ([], {}, [{"topic": "a/b"}], [{"exact": {"type": "x"}}], [{"topic": "box"}]):
        assert token_of(others) is None
