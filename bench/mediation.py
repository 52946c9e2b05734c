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
import http.client
import multiprocessing
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from urllib.parse import urlsplit

from lxml import etree

import report
from fanout import (
    SINKS,
    Sent,
    cpu_of,
    measure_sender,
    run_sink,
    send_one,
    sink_count,
    wait_for,
)
from fanout import measure_broker as measure_cloudevents
from mediation_figure5 import figure5, print_figure5
from mediation_load import WARM_UP, WSA, broker, notify, subscribe
from tocsin.event.event import Event
from tocsin.event.stored import Stored
from tocsin.event.subscription import Kind, SoapTerms, Subscription
from tocsin.services.soap.publish import event_of
from tocsin.wire.soap.addressing import read_addressing
from tocsin.wire.soap.detect import detect
from tocsin.wire.soap.envelope import check_understood, read_envelope
from tocsin.wire.wsn.read import read_notifications

PUBLISHERS = 32
TARGET_PARSED = 20_000
TARGET_FANOUT = 0.5


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


async def send_ready_made(port: int, each: int) -> None:
    sink = f"http://127.0.0.1:{port}/hook/1"
    terms = SoapTerms(spec="wse04", soap="1.2", wsa=WSA, form="raw")
    subscription = Subscription(id="s1", kind=Kind.PUSH, sink=sink, soap=terms)
    event = Event("urn:1", "/s", "urn:x/state", datacontenttype="application/xml", data=payload(0))
    await send_one(port, each, subscription, Stored(1, 0, event))


def payload(number: int) -> bytes:
    return b'<state xmlns="urn:x"><n>%d</n><note>%b</note></state>' % (number, b"x" * 440)


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
        results["ready-made"].append(measure_sender(send_ready_made, port, each))
        results["cloudevents"].append(measure_cloudevents(port, each))
        results["broker"].append(measure_broker(port, each))
    sink.terminate()
    return results


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


if __name__ == "__main__":
    main()
