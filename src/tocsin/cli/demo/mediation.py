"""Part: each client publishes in its own specification, and all others receive it in theirs."""

from __future__ import annotations

from itertools import islice

from tocsin.cli.demo.context import WAIT_S_MAX, DemoContext
from tocsin.client import Consumer, Publisher, WseClient, WsntClient
from tocsin.client.soap.client import SoapClient
from tocsin.client.soap.subscription import Subscription
from tocsin.errors import SomeFailed

TOPIC = "demo/jobs"
CLOUD = "CloudEvents"


def run(demo: DemoContext) -> None:
    clients = _clients(demo.url)
    subscriptions = {name: client.subscribe(TOPIC) for name, client in clients.items()}
    behind = clients["WS-Notification 1.3"].subscribe(TOPIC, pull=True)
    demo.print(
        "Five Web-services consumers subscribe, each in its own specification and versions,\n"
        "and one behind a firewall with a message box. Then the broker is killed, and comes back."
    )
    demo.kill()
    demo.start()
    sent = {name: _payload(name) for name in (*clients, CLOUD)}
    for name, client in clients.items():
        client.publish(sent[name], topic=TOPIC)
    with Publisher(demo.url) as publisher:
        publisher.publish(TOPIC, sent[CLOUD], type="job", content_type="application/xml")
    got = {name: _payloads(messages, len(sent)) for name, messages in subscriptions.items()}
    got["pulled from a box"] = _pulled(behind, len(sent))
    got[CLOUD] = _events(demo.url, len(sent))
    for client in clients.values():
        client.close()
    rows: list[list[object]] = [
        [name, *("same bytes" if sent[who] in got[name] else "MISSING" for who in sent)]
        for name in got
    ]
    demo.table(["received by / published by", *(_short(name) for name in sent)], rows)
    demo.results["mediation"] = {name: len(payloads) for name, payloads in got.items()}
    if any("MISSING" in row for row in rows):
        raise SomeFailed("a consumer did not get a message", remedy="Please report this.")
    demo.print("`tocsin convert --to all FILE` shows one message in every form.")


def _clients(url: str) -> dict[str, SoapClient]:
    return {
        "WS-Eventing 2004": WseClient(url),
        "WS-Eventing 2011": WseClient(url, version="2011/03", soap="1.2"),
        "WS-Notification 1.3": WsntClient(url),
        "WS-Notification 1.2": WsntClient(url, version="1.2"),
        "WS-Notification 1.0": WsntClient(url, version="1.0"),
    }


def _payload(name: str) -> bytes:
    return f"<j:job xmlns:j=\"urn:demo\"  by='{name}'><j:state>done</j:state></j:job>".encode()


def _short(name: str) -> str:
    return name.replace("WS-Eventing", "WSE").replace("WS-Notification", "WSN")


def _payloads(messages: Subscription, count: int) -> list[bytes]:
    taken = (messages.take(WAIT_S_MAX) for _ in range(count))
    return [message.payload for message in taken if message is not None]


def _pulled(messages: Subscription, count: int) -> list[bytes]:
    found: list[bytes] = []
    while len(found) < count and (more := messages.pull(wait_s=5.0)):
        found += [message.payload for message in more]
    return found


def _events(url: str, count: int) -> list[bytes]:
    with Consumer(f"topic {TOPIC}", broker=url, after=0) as events:
        return [_bytes(event.data) for event in islice(events, count)]


def _bytes(data: object) -> bytes:
    return data if isinstance(data, bytes) else str(data).encode()
