"""Performance events and every other kind: what comes in by one door goes out by any other, with
its name, values, types, units and time."""

from __future__ import annotations

import http.client
import json
import threading
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from queue import Queue
from xml.etree import ElementTree

import pytest
from frames_peer import (
    EVENTS,
    WAIT_S,
    Peer,
    content,
    event_names,
    filtered,
    new_name,
    publish,
    query,
    stored,
    subscribe,
)

from served import Served
from tocsin.client import WseClient, WsntClient

TYPES = "urn:tocsin:type"
OUR_EVENTS = "urn:tocsin:gma:events:1"
TIME = "2000-11-09T21:51:45Z"


def load(name: str, load5: float = 7.5, host: str = "foo.gov") -> str:
    return (
        f'<{name} xmlns="{EVENTS}"><Load5 units="procs" accuracy="+/-0.1">{load5}</Load5>'
        f"<Users>3</Users><Idle>false</Idle><HostName>{host}</HostName>"
        f"<TimeStamp>{TIME}</TimeStamp></{name}>"
    )


@pytest.fixture
def hook() -> Iterator[tuple[str, Queue[tuple[dict[str, str], bytes]]]]:
    """A webhook, and what it was sent."""
    got: Queue[tuple[dict[str, str], bytes]] = Queue()

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            got.put((headers, self.rfile.read(int(headers["content-length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Hook)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/hook", got
    server.shutdown()
    server.server_close()
    thread.join()


# From the frames door to the others


def test_the_log_read_with_a_filter_on_an_element(broker: Served) -> None:
    name = new_name()
    publish(broker, name, load(name, 4.0), load(name, 7.5), load(name, 5))

    def found(text: str) -> list[str]:
        asked = urllib.parse.urlencode({"filter": text, "limit": 1000})
        page = broker.call("GET", f"/events?{asked}")[1]
        return [ElementTree.fromstring(each["data"])[0].text or "" for each in page["events"]]

    assert found(f"Load5 >= 5 and type = '{EVENTS}/{name}'") == ["7.5", "5"]
    assert found(f"topic gma/{name}/**") == ["4.0", "7.5", "5"]
    assert found(f"topic gma/{name}/foo.gov and Idle = false and Users = 3 and Load5 > 6") == [
        "7.5"
    ]
    assert found(f"topic gma/{name}/** and HostName = bar.gov") == []


def test_a_webhook_with_a_content_filter_gets_the_event_as_it_was_sent(
    broker: Served, hook: tuple[str, Queue[tuple[dict[str, str], bytes]]]
) -> None:
    name = new_name()
    sink, got = hook
    filters = [{"filter": "Load5 >= 5"}, {"topic": f"gma/{name}/**"}]
    assert broker.call("POST", "/subscriptions", {"sink": sink, "filters": filters})[0] == 201

    publish(broker, name, load(name, 4.9), load(name, 7.5, "node7"))

    headers, body = got.get(timeout=WAIT_S)
    assert body.decode() == load(name, 7.5, "node7")
    assert headers["content-type"] == "application/xml"
    assert headers["ce-type"] == f"{EVENTS}/{name}"
    assert headers["ce-time"] == TIME
    assert headers["ce-source"] == "gma://node7"
    assert headers["ce-subject"] == "node7"
    assert headers["ce-topic"] == f"gma/{name}/node7"
    assert got.empty()


def test_a_message_box_keeps_performance_events(broker: Served) -> None:
    name = new_name()
    _, box = broker.call("POST", "/boxes", {"filters": [{"topic": f"gma/{name}/*"}]})
    publish(broker, name, load(name))

    fetched = broker.call("GET", f"/boxes/{box['id']}/messages?wait=5")[1]["events"]

    assert [each["data"] for each in fetched] == [load(name)]


def test_server_sent_events_bring_them_as_they_happen(broker: Served) -> None:
    name = new_name()
    connection = http.client.HTTPConnection(broker.address, timeout=WAIT_S)
    asked = urllib.parse.urlencode({"filter": f"topic gma/{name}/** and Load5 >= 5"})
    connection.request("GET", f"/events/stream?{asked}")
    answer = connection.getresponse()

    publish(broker, name, load(name, 1.0), load(name, 6.0))

    while not (line := answer.readline().decode()).startswith("data:"):
        assert line, "the stream ended"
    reported = json.loads(line.removeprefix("data:"))
    assert (reported["type"], reported["time"]) == (f"{EVENTS}/{name}", TIME)
    assert reported["data"] == load(name, 6.0)
    connection.close()


def test_cloud_events_tell_types_units_and_accuracy_beside_the_element(broker: Served) -> None:
    name = new_name()
    publish(broker, name, load(name))

    (kept,) = stored(broker, name)

    assert json.loads(str(kept["tocsinattributes"])) == {
        "Load5": {"value": 7.5, "unit": "procs", "accuracy": "+/-0.1"},
        "Users": 3,
        "Idle": False,
        "HostName": "foo.gov",
    }


@pytest.mark.parametrize("client_of", [WseClient, WsntClient])
def test_a_soap_consumer_gets_the_event_s_own_element(
    broker: Served, client_of: type[WseClient | WsntClient]
) -> None:
    name = new_name()
    with client_of(broker.url) as client:
        subscription = client.subscribe(f"gma/{name}/foo.gov")
        publish(broker, name, load(name))
        message = subscription.take(WAIT_S)

    assert message is not None
    assert message.topic == f"gma/{name}/foo.gov"
    assert message.payload.decode() == load(name)


def test_a_soap_consumer_may_ask_by_what_is_in_the_event(broker: Served) -> None:
    name = new_name()
    with WsntClient(broker.url) as client:
        subscription = client.subscribe(
            xpath=f"/e:{name}[e:Load5 >= 5.0]", namespaces={"e": EVENTS}
        )
        publish(broker, name, load(name, 4.0), load(name, 9.0))
        message = subscription.take(WAIT_S)

        assert message is not None
        assert message.payload.decode() == load(name, 9.0)
        assert subscription.take(0.1) is None


# From the others to the frames door


def test_a_cloud_event_goes_out_under_its_own_name_with_an_element_for_each_value(
    broker: Served,
) -> None:
    kind = f"com.example.{new_name('order')}"
    with Peer(broker.frames) as consumer:
        consumer.open(subscribe(kind, namespace=TYPES))
        data = {
            "total": 7.5,
            "count": 3,
            "paid": True,
            "who": "A & B <c>",
            "weight": {"value": 2.5, "unit": "kg", "accuracy": "+/-0.1"},
            "ship": {"city": "Columbus"},
            "lines": [1, 2],
        }
        broker.publish({"type": kind, "data": data, "time": TIME, "priority": 5})
        got = consumer.hears("Event")

    assert got.content.tag == f"{{{TYPES}}}{kind}"
    assert got.value("TimeStamp") == TIME
    assert [got.value(each) for each in ("total", "count", "paid", "who")] == [
        "7.5", "3", "true", "A & B <c>",
    ]  # fmt: skip
    (weight,) = got.content.findall("{*}weight")
    assert weight.text == "2.5"
    assert (weight.get("units"), weight.get("accuracy")) == ("kg", "+/-0.1")
    assert got.value("ship.city") == "Columbus"
    assert [got.value(each) for each in ("lines.1", "lines.2")] == ["1", "2"]
    assert got.value("priority") == "5"


def test_typed_attributes_go_out_with_units_and_accuracy(broker: Served) -> None:
    kind = new_name("typed")
    reported = {"wait": {"value": 2.5, "unit": "min", "accuracy": "+/-0.1"}, "up": True, "n": 3}
    with Peer(broker.frames) as consumer:
        consumer.open(subscribe(kind, namespace=TYPES, extra=filtered("wait > 2 min and n = 3")))
        broker.publish({"type": kind, "tocsinattributes": "data", "data": reported, "time": TIME})
        got = consumer.hears("Event")

    assert got.data.endswith(
        b'<wait units="min" accuracy="+/-0.1">2.5</wait><up>true</up><n>3</n>'
        + f"<TimeStamp>{TIME}</TimeStamp></{kind}></Event>".encode()
    )


def test_a_cloud_event_whose_type_is_a_uri_has_its_last_part_as_name(broker: Served) -> None:
    name = new_name("Temperature")
    with Peer(broker.frames) as consumer:
        consumer.open(subscribe(name, namespace="urn:lab", extra=filtered("degrees > 20")))
        broker.publish(
            {"type": f"urn:lab/{name}", "data": {"degrees": 19}},
            {"type": f"urn:lab/{name}", "data": {"degrees": 21}},
        )

        assert consumer.hears("Event").value("degrees") == "21"
        assert consumer.ask(query(name, namespace="urn:lab")).value("degrees") == "21"


def test_an_event_without_a_time_has_the_time_at_which_it_was_received(broker: Served) -> None:
    kind = new_name("plain")
    with Peer(broker.frames) as consumer:
        consumer.open(subscribe(kind, namespace=TYPES))
        broker.publish({"type": kind, "data": "just text", "datacontenttype": "text/plain"})
        got = consumer.hears("Event")

    assert (got.value("TimeStamp") or "").startswith("20")
    assert (got.value("DataContentType"), got.value("Data")) == ("text/plain", "just text")


def test_bytes_that_are_no_text_are_told_in_base64(broker: Served) -> None:
    kind = new_name("bytes")
    with Peer(broker.frames) as consumer:
        consumer.open(subscribe(kind, namespace=TYPES))
        broker.publish({"type": kind, "data_base64": "AAH/", "datacontenttype": "image/x"})

        assert consumer.hears("Event").value("DataBase64") == "AAH/"


@pytest.mark.parametrize("client_of", [WseClient, WsntClient])
def test_what_a_soap_publisher_sends_reaches_a_consumer_of_performance_events(
    broker: Served, client_of: type[WseClient | WsntClient]
) -> None:
    name = new_name("sweep")
    payload = f'<s:{name} xmlns:s="urn:sweep" n="1"><s:echo>7 &lt; 8</s:echo></s:{name}>'
    with Peer(broker.frames) as consumer, client_of(broker.url) as client:
        consumer.open(subscribe(name, namespace="urn:sweep"))
        client.publish(payload, topic="radar/7")
        got = consumer.hears("Event")
        names = consumer.ask(event_names()).names

    assert got.content.tag == f"{{urn:sweep}}{name}"
    assert (got.content.get("n"), got.value("echo")) == ("1", "7 < 8")
    assert (got.value("TimeStamp") or "").startswith("20")
    assert (name, "urn:sweep") in names


def test_every_name_that_is_listed_can_be_asked_for_under_it(broker: Served) -> None:
    gma, kind, uri = new_name(), f"com.example.{new_name('o')}", new_name("Thing")
    publish(broker, gma, content(gma))
    broker.publish({"type": kind}, {"type": f"http://example.org/x#{uri}"}, {"type": "odd type!"})
    with Peer(broker.frames) as consumer:
        names = consumer.ask(event_names()).names
        assert {(gma, EVENTS), (kind, TYPES), (uri, "http://example.org/x#")} <= names

        for local, namespace in names - {("ProducerError", OUR_EVENTS)}:  # that may never happen
            reply = consumer.ask(query(local, namespace=namespace))
            assert reply.returned == "Success", (local, namespace, reply.detail)
            assert reply.content.tag == f"{{{namespace}}}{local}"


def test_an_event_goes_from_producer_to_consumer_over_soap_and_back_unchanged(
    broker: Served,
) -> None:
    name = new_name()
    inner = load(name).replace(f' xmlns="{EVENTS}"', f' xmlns="{EVENTS}" note="a&#10;b"')
    with WseClient(broker.url) as client, Peer(broker.frames) as consumer:
        subscription = client.subscribe(f"gma/{name}/foo.gov")
        publish(broker, name, inner)
        message = subscription.take(WAIT_S)
        assert message is not None
        consumer.open(subscribe(name))
        client.publish(message.payload, topic="again")
        got = consumer.hears("Event")

    assert inner.encode() in got.data
