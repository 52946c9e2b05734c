"""kill -9 under load, again and again: nothing acknowledged may be lost, and order must hold.

    python tests/crash/kills.py --kills 1000

Publishers send numbered events through every endpoint that acknowledges, and repeat what was not
acknowledged. A webhook, a message box of the HTTP API and one of SOAP subscribe to everything. The
broker is killed at a random moment and started again, on the same data and ports. At the end the
log, the webhook and the boxes must each hold every acknowledged event, each publisher's in its
order.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from crash.publishers import HTTP, WSA, WSN, FramePublisher, Publisher
from served import Served
from tocsin.wire.msgbox import write as msgbox
from tocsin.wire.msgbox.read import box_id
from tocsin.wire.soap.envelope import read_envelope, write_envelope

MARKER = re.compile(rb"crash:([a-z0-9]+):([0-9]+)")
BOX_SERVICE = "/axis2/services/MsgBoxService"
PUSHED_TOGETHER = 200  # in one POST, so that the webhook keeps up with the publishers
LOAD_S_MAX = 0.12  # between a start and the kill; some hundred commits
DRAIN_S = 60.0


class Sink:
    """A webhook that remembers, per publisher, the last number it saw for the first time."""

    def __init__(self) -> None:
        self.last: dict[str, int] = {}
        self.received = 0
        self.problems: list[str] = []

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                fields = dict(
                    line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line
                )
                body = await reader.readexactly(int(fields.get("content-length", "0")))
                self.take_all(body)
                writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the broker was killed, or this is the end
        finally:
            writer.close()

    def take_all(self, text: bytes) -> int:
        """Find the markers in a message, whatever its format."""
        found = MARKER.findall(text)
        for name, number in found:
            self.take(name.decode(), int(number))
        return len(found)

    def take(self, source: str, number: int) -> None:
        self.received += 1
        last = self.last.get(source, 0)
        if number == last + 1:
            self.last[source] = number
        elif number > last + 1:
            self.problems.append(f"{source}: {number} came before {last + 1}")


class SoapBox:
    """A message box of SOAP that everything is sent into, and what was taken out of it."""

    def __init__(self, broker: Served) -> None:
        self._broker = broker
        self.got = Sink()
        answer = self._call(BOX_SERVICE, msgbox.request(msgbox.CREATE, "new"))
        self._path = f"/soap/boxes/{box_id(read_envelope(answer))}"
        subscribe = (
            f'<n:Subscribe xmlns:n="{WSN}" xmlns:a="{WSA}"><n:ConsumerReference><a:Address>'
            f"{broker.url}{self._path}</a:Address></n:ConsumerReference></n:Subscribe>"
        )
        self._call("/soap", subscribe.encode())

    def take(self) -> int:
        """How many messages an answer brought."""
        token = self._path.rpartition("/")[2]
        answer = self._call(self._path, msgbox.request(msgbox.TAKE, token))
        return self.got.take_all(answer)

    def _call(self, path: str, body: bytes) -> bytes:
        connection = http.client.HTTPConnection(self._broker.address, timeout=30)
        try:
            headers = {"content-type": "application/soap+xml"}
            connection.request("POST", path, write_envelope("1.2", body=body), headers)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        assert answer.status == 200, content
        return content


async def killed_under_load(kills: int, seed: int, say: Callable[[str], None]) -> dict[str, object]:
    """Runs the whole thing. Returns figures; `problems` is empty if nothing is wrong."""
    chance = random.Random(seed)
    sink = Sink()
    server = await asyncio.start_server(sink.handle, "127.0.0.1", 0)
    sink_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    with tempfile.TemporaryDirectory(prefix="tocsin-crash-") as parent:
        broker = await asyncio.to_thread(Served, Path(parent) / "data")
        try:
            asked = {"sink": sink_url, "config": {"batch": PUSHED_TOGETHER}}
            await asyncio.to_thread(broker.call, "POST", "/subscriptions", asked)
            _, box = await asyncio.to_thread(broker.call, "POST", "/boxes", {})
            soap_box = await asyncio.to_thread(SoapBox, broker)
            publishers = [kind(f"p{n}", chance) for n, kind in enumerate(HTTP)]
            frames = FramePublisher("frames", chance)
            stop = asyncio.Event()
            tasks = [asyncio.create_task(p.run(lambda: broker.address, stop)) for p in publishers]
            tasks.append(asyncio.create_task(frames.run(lambda: broker.frames, stop)))
            publishers.append(frames)
            for number in range(1, kills + 1):
                await asyncio.sleep(chance.uniform(0.0, LOAD_S_MAX))
                await asyncio.to_thread(broker.kill)
                await asyncio.to_thread(broker.start)
                if sink.problems or any(task.done() for task in tasks):
                    break
                if number % 10 == 0 or number == kills:
                    await asyncio.to_thread(soap_box.take)
                    acked = sum(p.acknowledged for p in publishers)
                    say(f"{number}/{kills} kills, {acked} acknowledged, {sink.received} delivered")
            stop.set()
            for task in tasks:
                await task
            places = {"webhook": sink, "SOAP box": soap_box.got}
            return await asyncio.to_thread(
                _verdict, broker, box["id"], publishers, soap_box, places, kills
            )
        finally:
            broker.process.kill()
            broker.process.wait()
            server.close()


def _verdict(
    broker: Served,
    box: str,
    publishers: list[Publisher],
    soap_box: SoapBox,
    places: dict[str, Sink],
    kills: int,
) -> dict[str, object]:
    acknowledged = {p.name: p.acknowledged for p in publishers}

    def has_all(place: Sink) -> bool:
        return all(place.last.get(name, 0) >= count for name, count in acknowledged.items())

    stored, ids = _read_log(broker)
    places = {**places, "log": stored, "box": _empty_box(broker, box)}
    sink = places["webhook"]
    _wait_for(lambda: has_all(sink), sink)
    # A box by SOAP is filled one message at a time, and may be far behind after many kills.
    _wait_for(lambda: not soap_box.take() and has_all(soap_box.got), soap_box.got)
    problems: list[str] = []
    for place, seen in places.items():
        problems += [f"{place}: {problem}" for problem in seen.problems]
        for name, count in acknowledged.items():
            if seen.last.get(name, 0) < count:
                problems.append(f"{place}: {name} acknowledged {count}, has {seen.last.get(name)}")
    if len(ids) != len(set(ids)):
        problems.append("log: some events are there twice")
    lost = sum(max(0, count - stored.last.get(name, 0)) for name, count in acknowledged.items())
    return {
        "kills": kills,
        "acknowledged": sum(acknowledged.values()),
        "acknowledged_by": {type(p).__name__ + " " + p.name: p.acknowledged for p in publishers},
        "in_log": stored.received,
        "delivered": sink.received,
        "delivered_again": sink.received - sum(sink.last.values()),
        "lost": lost,
        "problems": problems,
    }


def _read_log(broker: Served) -> tuple[Sink, list[tuple[str, str]]]:
    """What the log has, and the source and id of each event."""
    stored = Sink()
    ids: list[tuple[str, str]] = []
    after = 0
    while True:
        _, page = broker.call("GET", f"/events?after={after}&limit=1000")
        for event in page["events"]:
            stored.take_all(json.dumps(event).encode())
            ids.append((event["source"], event["id"]))
        if page["next"] == after:
            return stored, ids
        after = page["next"]


def _empty_box(broker: Served, box: str) -> Sink:
    got = Sink()
    ack = ""
    while True:
        _, page = broker.call("GET", f"/boxes/{box}/messages?max=1000&wait=1{ack}")
        if not page["events"]:
            return got
        for event in page["events"]:
            got.take_all(json.dumps(event).encode())
        ack = f"&ack={page['next']}"


def _wait_for(done: Callable[[], bool], place: Sink) -> None:
    """Until it is done, or nothing has come for so long."""
    received, deadline = place.received, time.monotonic() + DRAIN_S
    while not done() and time.monotonic() < deadline:
        if place.received != received:
            received, deadline = place.received, time.monotonic() + DRAIN_S
        time.sleep(0.05)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", metavar="FILE", help="write the figures there too")
    arguments = parser.parse_args()

    def say(line: str) -> None:
        print(f"\r{line}", end="", file=sys.stderr, flush=True)

    figures = asyncio.run(killed_under_load(arguments.kills, arguments.seed, say))
    print(file=sys.stderr)
    print(json.dumps(figures, indent=2))
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(figures, indent=2) + "\n")
    return 1 if figures["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
