"""kill -9 under load, again and again: nothing acknowledged may be lost, and order must hold.

    python tests/crash/kills.py --kills 1000

Publishers send numbered events and repeat what was not acknowledged. A webhook and a message box
subscribe to everything. The broker is killed at a random moment and started again, on the same
data and port. At the end the log, the webhook and the box must each hold every acknowledged event,
each publisher's in its order.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from served import Served

PUBLISHERS = 4
BATCH_MAX = 20
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
                for event in json.loads(body):
                    self.take(event["source"], int(event["id"]))
                writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the broker was killed, or this is the end
        finally:
            writer.close()

    def take(self, source: str, number: int) -> None:
        self.received += 1
        last = self.last.get(source, 0)
        if number == last + 1:
            self.last[source] = number
        elif number > last + 1:
            self.problems.append(f"{source}: {number} came before {last + 1}")


class Publisher:
    """Sends 1, 2, 3, ... and goes on only when the broker has acknowledged."""

    def __init__(self, name: str, chance: random.Random) -> None:
        self.name = name
        self.acknowledged = 0
        self._chance = chance

    async def run(self, address: Callable[[], str], stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                await self._session(address(), stop)
            except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                await asyncio.sleep(0.005)

    async def _session(self, address: str, stop: asyncio.Event) -> None:
        host, _, port = address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            while not stop.is_set():
                size = self._chance.randint(1, BATCH_MAX)
                writer.write(self._request(size))
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = int(head.lower().split("content-length: ")[1].split("\r\n")[0])
                body = await reader.readexactly(length)
                if " 202 " in head.split("\r\n")[0]:
                    self.acknowledged += size
                elif " 503 " not in head.split("\r\n")[0]:
                    raise AssertionError(f"{head}{body!r}")
        finally:
            writer.close()

    def _request(self, size: int) -> bytes:
        first = self.acknowledged + 1
        events = [
            {
                "specversion": "1.0",
                "id": str(number),
                "source": self.name,
                "type": "org.tocsin.crash",
                "topic": f"crash/{self.name[1:]}",
                "data": {"number": number, "filling": "x" * 100},
            }
            for number in range(first, first + size)
        ]
        body = json.dumps(events).encode()
        return (
            b"POST /events HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Type: application/cloudevents-batch+json\r\n"
            b"Content-Length: %d\r\n\r\n" % len(body)
        ) + body


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
            publishers = [Publisher(f"/p{n}", chance) for n in range(PUBLISHERS)]
            stop = asyncio.Event()
            tasks = [asyncio.create_task(p.run(lambda: broker.address, stop)) for p in publishers]
            for number in range(1, kills + 1):
                await asyncio.sleep(chance.uniform(0.0, LOAD_S_MAX))
                await asyncio.to_thread(broker.kill)
                await asyncio.to_thread(broker.start)
                if sink.problems or any(task.done() for task in tasks):
                    break
                if number % 10 == 0 or number == kills:
                    acked = sum(p.acknowledged for p in publishers)
                    say(f"{number}/{kills} kills, {acked} acknowledged, {sink.received} delivered")
            stop.set()
            for task in tasks:
                await task
            return await asyncio.to_thread(_verdict, broker, box["id"], publishers, sink, kills)
        finally:
            broker.process.kill()
            broker.process.wait()
            server.close()


def _verdict(
    broker: Served, box: str, publishers: list[Publisher], sink: Sink, kills: int
) -> dict[str, object]:
    acknowledged = {p.name: p.acknowledged for p in publishers}
    problems = list(sink.problems)
    stored = Sink()
    after = 0
    while True:
        _, page = broker.call("GET", f"/events?after={after}&limit=1000")
        for event in page["events"]:
            stored.take(event["source"], int(event["id"]))
        if page["next"] == after:
            break
        after = page["next"]
    boxed = _empty_box(broker, box)
    _wait_for(lambda: all(sink.last.get(n, 0) >= c for n, c in acknowledged.items()))
    for place, seen in (("log", stored), ("box", boxed), ("webhook", sink)):
        problems += [f"{place}: {problem}" for problem in seen.problems]
        for name, count in acknowledged.items():
            if seen.last.get(name, 0) < count:
                problems.append(f"{place}: {name} acknowledged {count}, has {seen.last.get(name)}")
    if stored.received != sum(stored.last.values()):
        problems.append("log: some events are there twice")
    return {
        "kills": kills,
        "acknowledged": sum(acknowledged.values()),
        "in_log": stored.received,
        "delivered": sink.received,
        "delivered_again": sink.received - sum(sink.last.values()),
        "lost": max(0, sum(acknowledged.values()) - sum(stored.last.values())),
        "problems": problems,
    }


def _empty_box(broker: Served, box: str) -> Sink:
    got = Sink()
    ack = ""
    while True:
        _, page = broker.call("GET", f"/boxes/{box}/messages?max=1000&wait=1{ack}")
        if not page["events"]:
            return got
        for event in page["events"]:
            got.take(event["source"], int(event["id"]))
        ack = f"&ack={page['next']}"


def _wait_for(done: Callable[[], bool]) -> None:
    import time

    deadline = time.monotonic() + DRAIN_S
    while not done() and time.monotonic() < deadline:
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
