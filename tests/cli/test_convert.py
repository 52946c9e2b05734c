"""`tocsin convert`: any message in, any form out; what it says stays the same."""

from __future__ import annotations

import gzip
import io
import json
import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.cli.convert.capture import read_capture
from tocsin.cli.convert.conversion import FORMS, SOAP_FORMS, read_message, write_event
from tocsin.cli.main import run
from tocsin.errors import TocsinError
from tocsin.event.event import Event
from tocsin.event.xml_form import event_xml
from tocsin.wire.cloudevents import binary_headers, structured
from tocsin.wire.soap.addressing import read_addressing
from tocsin.wire.soap.envelope import read_envelope, write_envelope
from tocsin.wire.soap.names import USUAL_WSA, WSMAN, WSN13

# A performance event always says when it was made, so a payload that does not is added to.
EXACT = [form for form in FORMS if form != "gma"]
CAPTURES = Path(__file__).parents[1] / "captures" / "ws"
EVERY_CAPTURE = sorted(CAPTURES.iterdir())
NOTIFICATIONS = {
    "sdc11073_300_provider_delivery_01_EpisodicMetricReport.http": "wseTopic",
    "wsetcp_dime_soap11_01_resp.bin": "wseTopic",
    "wsmessenger02_client_08_req.http": "demoTopic",
    "wsmessenger02_delivery_01_Notify.http": "demoTopic",
    "wsmessenger02_delivery_02_c.http": "demoTopic",
    "wsmessenger02_delivery_03_Notify.http": "demoTopic",
    "zeep43_wsn13_filter_02_Notify.http": "jobs/status",
}
ADDRESSINGS = ("2003/03", "2004/03", "2004/08", "2005/08")


@pytest.mark.parametrize("path", EVERY_CAPTURE, ids=lambda path: path.name)
def test_every_capture_is_converted_or_said_to_be_no_notification(path: Path) -> None:
    if path.name not in NOTIFICATIONS:
        with pytest.raises(TocsinError, match=r"not a notification|no notification"):
            read_message(path.read_bytes())
        return

    [event] = read_message(path.read_bytes()).events

    assert event.topic == NOTIFICATIONS[path.name]
    assert event.data is not None
    assert event.data in read_capture(path.read_bytes()).body


@pytest.mark.parametrize("form", EXACT)
@pytest.mark.parametrize("name", NOTIFICATIONS)
def test_a_captured_notification_keeps_its_payload_topic_and_id_in_every_form(name, form) -> None:
    [event] = read_message((CAPTURES / name).read_bytes()).events

    written = write_event(event, form)
    [back] = read_message(written).events

    assert (back.data, back.topic, back.id) == (event.data, event.topic, event.id)
    if form != "cloudevents":
        assert event.data in written


def test_the_namespaces_of_a_topic_survive() -> None:
    [event] = read_message((CAPTURES / "wsmessenger02_delivery_02_c.http").read_bytes()).events

    for form in EXACT:
        [back] = read_message(write_event(event, form)).events
        assert back.extensions["topicns"] == "http://widgets.com"


levels = st.text("abcxyz09-_.é", min_size=1, max_size=6).filter(lambda level: level != ".")
topics = st.lists(levels, max_size=4).map("/".join)
ids = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1).filter(
    lambda text: not text.startswith("urn:tocsin:event:") and text == text.strip()
)
XML = [
    b"<a/>",
    b'<p:a xmlns:p="urn:p">&lt;\n</p:a>',
    "<a>é</a>".encode(),
    b"<a><![CDATA[<]]><!--x--></a>",
]
payloads = st.one_of(
    st.tuples(st.just("application/xml"), st.sampled_from(XML)),
    st.tuples(st.just("application/json"), st.sampled_from([b'{"load5":7}', b"[1, 2]"])),
    st.tuples(st.just("text/plain"), st.just(b"plain & simple")),
    st.tuples(st.just("application/octet-stream"), st.binary(min_size=1, max_size=8)),
)


@given(
    topic=topics,
    id=ids,
    payload=payloads,
    form=st.sampled_from(EXACT),
    soap=st.sampled_from([None, "1.1", "1.2"]),
    addressing=st.sampled_from([None, *ADDRESSINGS]),
)
def test_there_and_back_keeps_payload_topic_and_id(
    topic, id, payload, form, soap, addressing
) -> None:
    kind, data = payload
    event = Event(id, "/source", "org.example.t", topic=topic, datacontenttype=kind, data=data)

    [back] = read_message(write_event(event, form, soap=soap, addressing=addressing)).events

    # What has no topic is filed under the reserved one (paper 000, section IV.B.4).
    assert (back.topic or "wseTopic") == (topic or "wseTopic")
    assert back.data == data
    assert back.id == id


@pytest.mark.parametrize("addressing", ADDRESSINGS)
@pytest.mark.parametrize("soap", ["1.1", "1.2"])
@pytest.mark.parametrize("form", SOAP_FORMS)
def test_the_versions_asked_for_are_those_written(form, soap, addressing) -> None:
    event = Event("urn:7", "http://x.example/", "urn:t", topic="a/b", data=b"<n/>")

    envelope = read_envelope(write_event(event, form, soap=soap, addressing=addressing))

    assert envelope.soap == soap
    assert addressing in read_addressing(envelope).wsa
    usual = read_envelope(write_event(event, form))
    assert read_addressing(usual).wsa == USUAL_WSA[SOAP_FORMS[form]]


NOTIFY = (
    f'<w:Notify xmlns:w="{WSN13}"><w:NotificationMessage><w:Message><a/></w:Message>'
    "</w:NotificationMessage><w:NotificationMessage><w:Message><b/></w:Message>"
    "</w:NotificationMessage></w:Notify>"
).encode()
EVENTS = (
    f'<m:Events xmlns:m="{WSMAN}"><m:Event Action="urn:1"><a/></m:Event>'
    '<m:Event Action="urn:2"><b/></m:Event></m:Events>'
).encode()


PULLED = NOTIFY.replace(b"Notify>", b"GetMessagesResponse>").replace(
    b"<w:Notify ", b"<w:GetMessagesResponse "
)


@pytest.mark.parametrize("body", [NOTIFY, EVENTS, PULLED])
def test_several_notifications_in_one_message_give_several_outputs(body, tmp_path, capsys) -> None:
    file = tmp_path / "message.xml"
    file.write_bytes(write_envelope("1.2", body=body))

    assert run(["convert", "--to", "cloudevents", str(file)]) == 0

    said = capsys.readouterr()
    events = [json.loads(line) for line in said.out.splitlines()]
    assert [event["data"] for event in events] == ["<a/>", "<b/>"]
    assert len({event["id"] for event in events}) == 2
    assert "2 notifications" in said.err


BATCH = b'<ce:batch xmlns:ce="http://cloudevents.io/xmlformat/V1">%b</ce:batch>'
POST = b"POST /events HTTP/1.1\nContent-Type: application/cloudevents+json\n\n%b"
EVENT = Event("7", "/s", "t", topic="a/b", datacontenttype="application/json", data=b'{"n":1}')


@pytest.mark.parametrize(
    "message",
    [
        structured(EVENT),
        b"\n " + structured(EVENT),
        b"[" + structured(EVENT) + b"]",
        event_xml(EVENT),
        b'<ce:batch xmlns:ce="http://cloudevents.io/xmlformat/V1">'
        + event_xml(EVENT)
        + b"</ce:batch>",
        b"POST /events HTTP/1.1\r\n" + binary_headers(EVENT) + b'\r\n{"n":1}',
        b"POST /events HTTP/1.1\nContent-Type: application/cloudevents+json\n\n"
        + structured(EVENT),
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(structured(EVENT)),
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n   \r\n%x\r\n%b\r\n0\r\n\r\n"
        % (len(structured(EVENT)), structured(EVENT)),
        write_event(EVENT, "wse").decode().replace("utf-8", "utf-16").encode("utf-16"),
    ],
)
def test_cloudevents_are_read_however_they_are_carried(message) -> None:
    [found] = read_message(message).events

    assert msgspec.structs.replace(found, attributes={}) == EVENT


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (b"", "is empty"),
        (b"hello", "the message"),
        (b"<a/>", "'a' is not known"),
        (b"{}", "specversion"),
        (b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", "document type"),
        (write_envelope("1.1"), "there is no notification in it"),
        (write_envelope("1.1", body=b"<a/><b/>"), "one element"),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "cut off"),
        (b"POST / HTTP/1.1\r\nHost: x", "no end"),
        (b"\x0e\x20\0\0\0\x04\0\x29\0\x01\0\0\0\0\0\0", "cut off"),
        (b'<s:Envelope xmlns:s="urn:soap"><s:Body/></s:Envelope>', "neither SOAP 1.1"),
    ],
)
def test_what_is_no_notification_is_refused_in_words(message, words, tmp_path, capsys) -> None:
    file = tmp_path / "message"
    file.write_bytes(message)

    assert run(["convert", "--to", "wse", str(file)]) in (1, 2)

    said = capsys.readouterr()
    assert said.out == ""
    assert words in said.err
    assert re.search(r"\[T\d{3}\]", said.err)


def test_every_form_at_once(tmp_path, capsys) -> None:
    file = tmp_path / "event.json"
    file.write_bytes(structured(EVENT))

    assert run(["convert", "--to", "all", "--pretty", str(file)]) == 0
    shown = capsys.readouterr().out
    assert run(["convert", "--to", "all", "--json", str(file)]) == 0
    reported = [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    assert re.findall(r"^# (.*)$", shown, re.M) == list(FORMS)
    assert [each["form"] for each in reported] == list(FORMS)
    for each in reported:
        [found] = read_message(each["message"].encode()).events
        assert found.id == "7"
        assert found.data == b'{"n":1}' if each["form"] in EXACT else b"<n>1</n>" in found.data


def test_any_element_can_be_taken_for_a_payload(monkeypatch, capsys) -> None:
    class Input:
        buffer = io.BytesIO(b"<?xml version='1.0'?>\n<n:a xmlns:n='urn:n'>1</n:a>\n")

    monkeypatch.setattr("sys.stdin", Input)

    assert run(["convert", "--to", "wsn12", "--from", "payload", "-"]) == 0

    written = capsys.readouterr().out
    assert "<n:a xmlns:n='urn:n'>1</n:a>" in written
    assert ">wseTopic<" in written


LOAD = (
    '<Event xmlns="http://www.gridforum.org/Performance/Protocol" subscriptionID="12">'
    '<UptimeCPULoad xmlns="http://www.gridforum.org/Performance/Events">'
    '<Load5 units="1">7.5</Load5>'
    "<HostName>foo.gov</HostName><TimeStamp>2000-11-09T21:51:45Z</TimeStamp></UptimeCPULoad></Event>"
)


@pytest.mark.parametrize("form", FORMS)
def test_a_performance_event_keeps_its_element_in_every_form(form: str) -> None:
    [event] = read_message(LOAD.encode()).events

    [again] = read_message(write_event(event, form)).events

    assert again.data == event.data == LOAD.partition('"12">')[2].removesuffix("</Event>").encode()
    assert (again.id, again.topic) == (event.id, "gma/UptimeCPULoad/foo.gov")


def test_an_error_in_place_of_an_event_is_reported() -> None:
    message = LOAD.partition("<Uptime")[0] + "<Error>Broken</Error></Event>"
    with pytest.raises(TocsinError, match="Error"):
        read_message(message.encode())
