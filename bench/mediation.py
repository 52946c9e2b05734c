"""What mediation costs: messages read, fan-out from one specification to the other, the paper's
figure 5.

    python bench/mediation.py [--quick] [--json FILE] [--plot FILE] [--only parse fanout figure5]

`parse`: detect, parse and mediate a captured-size WS-Notification message into an event, beside a
bare lxml parse and walk of the same bytes, per second of processor time.
`fanout`: a WS-Notification Notify comes in, WS-Eventing messages go out to 100 consumers; beside
it the same broker's fan-out of CloudEvents, whose bytes are ready when they come in, and a bare
uvloop client that writes the ready-made bytes of such a message over and over.
`figure5`: paper 000's figure 5: a message of 587 bytes, 1 to 200 consumers, the mean time from
publishing to receipt, at a rate low enough that each message has arrived everywhere before the
next is sent; for both specifications, after 10 messages of warm-up.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import multiprocessing
import re
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from urllib.parse import urlsplit

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import uvloop
from lxml import etree

import report
from fanout import (
    SINKS,
    BareClient,
    Sent,
    cpu_of,
    run_broker,
    run_sink,
    sink_count,
    wait_for,
)
from fanout import measure_broker as measure_cloudevents
from tocsin.broker.delivery.address import parse_address
from tocsin.drivers.push.request_template import RequestCache, request, request_template
from tocsin.event.event import Event
from tocsin.event.stored import Stored
from tocsin.event.subscription import Kind, SoapTerms, Subscription
from tocsin.services.soap.publish import event_of
from tocsin.wire.soap import names
from tocsin.wire.soap.addressing import read_addressing
from tocsin.wire.soap.detect import detect
from tocsin.wire.soap.envelope import check_understood, read_envelope
from tocsin.wire.wsn.read import read_notifications

WSA = names.WSA2005
PAPER_BYTES = 587
WARM_UP = 10
PUBLISHERS = 32
TARGET_PARSED = 20_000
TARGET_FANOUT = 0.5
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


# Messages read


def parsed(each: int) -> dict[str, float]:
    message = notify(1, '<state xmlns="urn:x">done</state>')

    def bare() -> None:
        for element in etree.fromstring(message).iter():
            _ = element.tag, element.text

    def whole() -> None:
        envelope = read_envelope(message)
        addressing = read_addressing(envelope)
        check_understood(envelope)
        detect(envelope, addressing)
        for notification in read_notifications(envelope, addressing):
            event_of(notification, "", lambda: "1")

    figures: dict[str, float] = {"bytes": len(message)}
    for name, work in (("bare", bare), ("whole", whole)):
        rates = []
        for _ in range(5):
            start = time.process_time()
            for _ in range(each):
                work()
            rates.append(each / (time.process_time() - start))
        figures[name] = statistics.median(rates)
    figures["of_target"] = figures["whole"] / TARGET_PARSED
    return figures


# Fan-out


async def send_ready_made(port: int, each: int) -> None:
    loop = asyncio.get_running_loop()
    done = asyncio.Event()
    left = SINKS
    sink = f"http://127.0.0.1:{port}/hook/1"
    terms = SoapTerms(spec="wse04", soap="1.2", wsa=WSA, form="raw")
    subscription = Subscription(id="s1", kind=Kind.PUSH, sink=sink, soap=terms)
    event = Event("urn:1", "/s", "urn:x/state", datacontenttype="application/xml", data=payload(0))
    head = request_template(parse_address(sink), subscription)
    message, _ = request(head, [Stored(1, 0, event)], RequestCache(), time.time)

    def finished() -> None:
        nonlocal left
        left -= 1
        if not left:
            done.set()

    for _ in range(SINKS):
        await loop.create_connection(lambda: BareClient(message, each, finished), "127.0.0.1", port)
    await done.wait()


def payload(number: int) -> bytes:
    return b'<state xmlns="urn:x"><n>%d</n><note>%b</note></state>' % (number, b"x" * 440)


def run_ready_made(port: int, each: int, told: Pipe) -> None:
    async def measured() -> Sent:
        await send_ready_made(port, WARM_UP)
        wall_s, cpu_s = time.perf_counter(), time.process_time()
        await send_ready_made(port, each)
        return Sent(SINKS * each, time.perf_counter() - wall_s, time.process_time() - cpu_s)

    told.send(uvloop.run(measured()))


def measure_ready_made(port: int, each: int) -> Sent:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=run_ready_made, args=(port, each, there))
    process.start()
    sent: Sent = here.recv()
    process.join()
    return sent


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


def shares(first: int, count: int) -> list[range]:
    """The numbers of the messages, dealt out to the publishers."""
    return [range(first + place, first + count, PUBLISHERS) for place in range(PUBLISHERS)]


def publish_some(url: str, numbers: range) -> None:
    """Publish over one connection that stays open, the next when the one before is on disk."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.netloc, timeout=60)
    kind = {"content-type": "application/soap+xml; charset=utf-8"}
    for number in numbers:
        connection.request("POST", address.path, notify(number, payload(number).decode()), kind)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 202, answer.status
    connection.close()


def measure_broker(port: int, each: int) -> Sent:
    with broker() as (url, pid):
        for number in range(SINKS):
            subscribe(url, "wse", f"http://127.0.0.1:{port}/hook/{number}")
        before = sink_count(port)

        def publish(first: int, count: int) -> None:
            with ThreadPoolExecutor(PUBLISHERS) as publishers:
                list(publishers.map(publish_some, [url] * PUBLISHERS, shares(first, count)))

        publish(0, WARM_UP)
        wait_for(port, before + SINKS * WARM_UP)
        wall_s, cpu_s = time.perf_counter(), cpu_of(pid)
        publish(WARM_UP, each)
        wait_for(port, before + SINKS * (WARM_UP + each))
        return Sent(SINKS * each, time.perf_counter() - wall_s, cpu_of(pid) - cpu_s)


def fanned_out(rounds: int, each: int) -> dict[str, list[Sent]]:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    sink = context.Process(target=run_sink, args=(there,), daemon=True)
    sink.start()
    port = here.recv()
    results: dict[str, list[Sent]] = {"ready-made": [], "cloudevents": [], "broker": []}
    for number in range(rounds):
        print(f"fan-out, round {number + 1} of {rounds}", file=sys.stderr)
        results["ready-made"].append(measure_ready_made(port, each))
        results["cloudevents"].append(measure_cloudevents(port, each))
        results["broker"].append(measure_broker(port, each))
    sink.terminate()
    return results


# Figure 5


class TimedConsumer(asyncio.Protocol):
    """Says how long ago what it receives was published."""

    delays_ns: list[int] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.waiting = b""

    def data_received(self, data: bytes) -> None:
        data = self.waiting + data
        end = data.find(b"\r\n\r\n") + 4
        if end == 3:
            self.waiting = data
            return
        if data.startswith(b"GET"):
            delays, TimedConsumer.delays_ns = TimedConsumer.delays_ns, []
            body = json.dumps(delays).encode()
            answer = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
            self.transport.write(answer)  # type: ignore[attr-defined]
            return
        length = re.search(rb"content-length: (\d+)", data[:end], re.I)
        assert length is not None
        if len(data) < end + int(length[1]):
            self.waiting = data
            return
        self.waiting = b""
        published = re.search(rb"<t0>(\d+)</t0>", data)
        assert published is not None
        TimedConsumer.delays_ns.append(time.time_ns() - int(published[1]))
        self.transport.write(b"HTTP/1.1 204 No Content\r\n\r\n")  # type: ignore[attr-defined]


def run_consumers(ready: Pipe) -> None:
    async def serve() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(TimedConsumer, "127.0.0.1", 0, backlog=1024)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    uvloop.run(serve())


def timed_message(number: int) -> bytes:
    start = f'<m xmlns="urn:x"><t0>{time.time_ns()}</t0><pad>'
    end = "</pad></m>"
    return notify(number, start + "x" * (PAPER_BYTES - len(start) - len(end)) + end)


def delays(port: int, count: int) -> list[int]:
    found: list[int] = []
    until = time.monotonic() + 60
    while len(found) < count:
        assert time.monotonic() < until, "the deliveries did not arrive"
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=60) as answer:
            found += json.loads(answer.read())
        time.sleep(0.002)
    return found


def figure5(counts: list[int], each: int) -> dict[str, dict[int, float]]:
    """Mean milliseconds from publishing to receipt, by specification and number of consumers."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    consumers = context.Process(target=run_consumers, args=(there,), daemon=True)
    consumers.start()
    port = here.recv()
    means: dict[str, dict[int, float]] = {name: {} for name in SPECIFICATIONS}
    for specification in SPECIFICATIONS:
        for count in counts:
            print(f"figure 5: {specification}, {count} consumers", file=sys.stderr)
            with broker() as (url, _):
                for number in range(count):
                    subscribe(url, specification, f"http://127.0.0.1:{port}/{number}")
                for number in range(WARM_UP):
                    soap(url, timed_message(number))
                    delays(port, count)
                took: list[int] = []
                for number in range(each):
                    soap(url, timed_message(WARM_UP + number))
                    took += delays(port, count)
            means[specification][count] = statistics.mean(took) / 1e6
    consumers.terminate()
    return means


def straightness(points: dict[int, float]) -> float:
    """How much of the growth a straight line explains (R squared)."""
    if len(points) < 3:
        return 1.0
    return statistics.correlation(list(points), list(points.values())) ** 2


def plot(means: dict[str, dict[int, float]], path: Path) -> None:
    figure, axes = plt.subplots(figsize=(6, 4))
    titles = {"wse": "WS-Eventing", "wsn": "WS-Notification"}
    for name, points in means.items():
        axes.plot(list(points), list(points.values()), marker="o", label=titles[name])
    axes.set_xlabel("consumers")
    axes.set_ylabel("mean time from publish to receipt, ms")
    axes.set_title(f"Paper 000, figure 5: a message of {PAPER_BYTES} bytes")
    axes.set_xlim(0)
    axes.set_ylim(0)
    axes.legend()
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--json", type=Path, help="keep the figures in this file")
    parser.add_argument("--plot", type=Path, help="draw figure 5 into this file")
    parser.add_argument("--only", nargs="+", choices=["parse", "fanout", "figure5"])
    arguments = parser.parse_args()
    wanted = arguments.only or ["parse", "fanout", "figure5"]
    figures: dict[str, object] = {}
    if "parse" in wanted:
        figures["parse"] = print_parsed(parsed(1_000 if arguments.quick else 10_000))
    if "fanout" in wanted:
        rounds, each = (1, 100) if arguments.quick else (5, 500)
        figures["fanout"] = print_fanout(fanned_out(rounds, each))
    if "figure5" in wanted:
        counts, each = ([1, 50, 200], 5) if arguments.quick else ([1, 25, 50, 100, 150, 200], 100)
        figures["figure5"] = print_figure5(figure5(counts, each), arguments.plot)
    if arguments.json is not None:
        report.write("mediation", figures, arguments.json)


def print_parsed(found: dict[str, float]) -> dict[str, float]:
    rows = [[name, found[name], found[name] / found["bare"]] for name in ("bare", "whole")]
    report.table(["reading a message", "messages/cpu-s", "x bare lxml"], rows)
    print(f"wanted: {TARGET_PARSED:,} messages a CPU-second")
    return found


def print_fanout(results: dict[str, list[Sent]]) -> dict[str, object]:
    def rate(name: str) -> float:
        return statistics.median(run.per_cpu_second() for run in results[name])

    def ratio(name: str, other: str) -> float:
        pairs = zip(results[name], results[other], strict=True)
        return statistics.median(a.per_cpu_second() / b.per_cpu_second() for a, b in pairs)

    over_bare = ratio("broker", "ready-made")
    over_own = ratio("broker", "cloudevents")
    rows = [
        ["bare uvloop, ready-made bytes", rate("ready-made"), None, 1.0],
        ["the broker, CloudEvents", rate("cloudevents"), 1.0, ratio("cloudevents", "ready-made")],
        ["the broker, Notify in, WSE out", rate("broker"), over_own, over_bare],
    ]
    report.table(["to 100 consumers", "deliveries/cpu-s", "x CloudEvents", "x bare"], rows)
    print(f"wanted: {TARGET_FANOUT} x the same fan-out of ready-made bytes")
    return {
        "runs": {name: [asdict(run) for run in runs] for name, runs in results.items()},
        "broker_over_ready_made": over_own,
        "broker_over_bare": over_bare,
    }


def print_figure5(means: dict[str, dict[int, float]], path: Path | None) -> dict[str, object]:
    rows = [[count, *(means[name][count] for name in SPECIFICATIONS)] for count in means["wse"]]
    report.table(["consumers", "WS-Eventing, ms", "WS-Notification, ms"], rows)
    lines = {name: straightness(points) for name, points in means.items()}
    print("a straight line explains", {name: f"{value:.3f}" for name, value in lines.items()})
    if path is not None:
        plot(means, path)
    return {"means_ms": means, "straightness": lines}


if __name__ == "__main__":
    main()
