"""Publishers that retry until acknowledged, and subscribers that count what they received."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Protocol

from tocsin.client import Consumer, Publisher
from tocsin.client.consumer import Via

Reading = dict[str, object]


class Instrument(threading.Thread):
    """Publishes its readings one after the other, each until it is acknowledged.

    A reading is an object, published as JSON, or a document in XML.
    """

    def __init__(
        self, broker: str, name: str, topic: str, readings: Sequence[Reading | bytes]
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._broker = broker
        self.source = f"/lab/{name}"
        self._topic = topic
        self._readings = readings
        self.acknowledged = 0

    def run(self) -> None:
        with Publisher(self._broker, source=self.source, patience_s=30.0) as publisher:
            for number, reading in enumerate(self._readings, start=1):
                publisher.publish(
                    self._topic,
                    reading,
                    id=str(number),
                    type="org.example.reading",
                    content_type="application/xml" if isinstance(reading, bytes) else None,
                )
                self.acknowledged = number


class Received:
    """What one subscriber received: distinct events, repeats, and whether they were in order."""

    def __init__(self, name: str, way: str, wants: str) -> None:
        self.name = name
        self.way = way
        self.wants = wants
        self.first: dict[tuple[str, int], None] = {}
        self.repeats = 0
        self.in_order = True
        self._last: dict[str, int] = {}

    def take(self, source: str, number: int) -> None:
        if (source, number) in self.first:
            self.repeats += 1
            return
        self.first[source, number] = None
        self.in_order &= number > self._last.get(source, 0)
        self._last[source] = number


class Subscriber(Protocol):
    """Receives events until it is stopped."""

    received: Received

    def stop(self) -> None: ...


class ClientSubscriber(threading.Thread):
    """Subscribes with the Python client, in one of its three ways."""

    def __init__(self, broker: str, name: str, way: str, via: Via, wants: str) -> None:
        super().__init__(name=name, daemon=True)
        self.received = Received(name, way, wants)
        self._consumer = Consumer(wants, via=via, broker=broker, after=0)
        self.start()

    def run(self) -> None:
        for event in self._consumer:
            self.received.take(event.source, int(event.id))

    def stop(self) -> None:
        self._consumer.close()
        self.join(5.0)


class CommandSubscriber(threading.Thread):
    """Subscribes with `tocsin sub`, in a process of its own."""

    def __init__(self, broker: str, name: str, way: str, via: str, wants: str) -> None:
        super().__init__(name=name, daemon=True)
        self.received = Received(name, way, wants)
        command = [sys.executable, "-m", "tocsin", "sub", "--broker", broker, "--json"]
        command += ["--after", "0", "--via", via, wants]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.start()

    def run(self) -> None:
        for line in self._lines():
            event = json.loads(line)
            self.received.take(event["source"], int(event["id"]))

    def _lines(self) -> Iterator[bytes]:
        assert self._process.stdout is not None
        yield from self._process.stdout

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()
        self.join(5.0)
        if self._process.stdout is not None:
            self._process.stdout.close()
