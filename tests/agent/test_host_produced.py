"""A probe that fails while a producer runs: words for whoever asked, and the next event comes."""

from __future__ import annotations

import time

import pytest

from tocsin.agent import Monitor, Probe
from tocsin.agent.elements import load_elements
from tocsin.agent.monitor import SHARED_S_MAX
from tocsin.client.gma import Consumer, Producer
from tocsin.client.host_readings import readings as r
from tocsin.errors import TocsinError
from tocsin.wire.gma.names import EventName

LOAD = EventName("UptimeCPULoad")


class Kernel:
    """Its load average can be taken away."""

    is_broken = False

    def load(self) -> r.Load:
        if self.is_broken:
            raise FileNotFoundError(2, "No such file or directory", "/proc/loadavg")
        return r.Load(1.5, 1.6, 1.3)


def test_a_reading_that_fails_is_an_error_and_not_the_end() -> None:
    kernel = Kernel()
    monitor = Monitor("foo.gov", [Probe(LOAD, "load", kernel.load, load_elements)])
    with Producer("127.0.0.1:0", host="foo.gov") as producer:
        producer.offer("UptimeCPULoad", monitor.maker(LOAD))
        with Consumer(producer.address) as consumer:
            subscription = consumer.subscribe("UptimeCPULoad", period=0.1)
            assert subscription.take(5.0) is not None

            kernel.is_broken = True
            deadline = time.monotonic() + 5.0
            while not subscription.errors and time.monotonic() < deadline:
                time.sleep(0.02)
            time.sleep(SHARED_S_MAX)  # who asks once is content with what was read just now
            with pytest.raises(TocsinError, match="UptimeCPULoad cannot be read here"):
                consumer.query("UptimeCPULoad")

            assert "/proc/loadavg" in str(subscription.error)
            kernel.is_broken = False
            while (event := subscription.take(0.0)) is not None:
                pass
            event = subscription.take(5.0)
            assert event is not None
            assert event["Load5"] == 1.6
