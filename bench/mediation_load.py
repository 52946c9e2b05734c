"""A broker that is sent SOAP: its process, subscriptions, and the messages published."""

from __future__ import annotations

import multiprocessing
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from fanout import run_broker
from tocsin.wire.soap import names

WSA = names.WSA2005
WARM_UP = 10
SPECIFICATIONS = ("wse", "wsn")


def notify(number: int, payload: str) -> bytes:
    return (
        f'<s:Envelope xmlns:s="{names.SOAP12}" xmlns:a="{WSA}" xmlns:n="{names.WSN13}"><s:Header>'
        f"<a:Action>{names.WSN13_ACTIONS}/NotificationConsumer/Notify</a:Action>"
        f"<a:MessageID>urn:uuid:{number:032x}</a:MessageID></s:Header><s:Body><n:Notify>"
        '<n:NotificationMessage><n:Topic xmlns:t="urn:demo:topics" '
        f'Dialect="{names.TOPICS13}/TopicExpression/Concrete">t:jobs/status</n:Topic>'
        f"<n:ProducerReference><a:Address>http://127.0.0.1:1/p</a:Address></n:ProducerReference>"
        f"<n:Message>{payload}</n:Message></n:NotificationMessage></n:Notify></s:Body></s:Envelope>"
    ).encode()


@contextmanager
def broker() -> Iterator[tuple[str, int]]:
    """A broker in a process of its own: its address and process id."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as directory:
        here, there = context.Pipe()
        process = context.Process(target=run_broker, args=(directory, there))
        process.start()
        there.close()
        try:
            assert process.pid is not None
            yield f"http://{here.recv()['http']}/soap", process.pid
        finally:
            process.terminate()
            process.join()


def soap(url: str, message: bytes) -> bytes:
    asked = urllib.request.Request(
        url, message, {"content-type": "application/soap+xml; charset=utf-8"}, method="POST"
    )
    with urllib.request.urlopen(asked, timeout=60) as answer:
        body: bytes = answer.read()
        return body


def subscribe(url: str, specification: str, sink: str) -> None:
    if specification == "wse":
        inside = (
            f'<w:Subscribe xmlns:w="{names.WSE04}"><w:Delivery><w:NotifyTo><a:Address>{sink}'
            "</a:Address></w:NotifyTo></w:Delivery></w:Subscribe>"
        )
        action = f"{names.WSE04}/Subscribe"
    else:
        inside = (
            f'<w:Subscribe xmlns:w="{names.WSN13}"><w:ConsumerReference><a:Address>{sink}'
            "</a:Address></w:ConsumerReference></w:Subscribe>"
        )
        action = f"{names.WSN13_ACTIONS}/NotificationProducer/SubscribeRequest"
    message = (
        f'<s:Envelope xmlns:s="{names.SOAP12}" xmlns:a="{WSA}"><s:Header><a:Action>{action}'
        f"</a:Action></s:Header><s:Body>{inside}</s:Body></s:Envelope>"
    )
    assert b"SubscribeResponse" in soap(url, message.encode())
