"""Results that go straight to another broker wait for it in bounded memory."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from manual_runtime import ManualRuntime
from tocsin.services.link import direct
from tocsin.services.link.direct import DirectResults
from tocsin.services.link.transport import Receiver, Transport
from tocsin.wire.link.discovery_messages import Done

ADDRESS = "far.example:8403"
MESSAGE = Done(request_id="q", brokers=tuple(f"broker-{number:05}" for number in range(5_000)))


class Slow:
    """A connector to a broker that reads nothing."""

    def __init__(self) -> None:
        self.waiting = 0
        self.peer = ADDRESS

    async def connect(self, address: str, opened: Callable[[Transport], Receiver]) -> None:
        opened(cast(Any, self))

    def write(self, data: bytes) -> None:
        self.waiting += len(data)

    def close(self) -> None:
        pass


def test_no_more_bytes_wait_for_a_broker_that_reads_nothing_than_may_wait() -> None:
    runtime, slow = ManualRuntime(), Slow()
    port = SimpleNamespace(runtime=runtime)
    results = DirectResults(
        cast(Any, port), cast(Any, slow), "here", cast(Any, None), frozenset({ADDRESS})
    )

    for _ in range(500):
        results.send("far", ADDRESS, MESSAGE)
        runtime.settle()

    assert 1 << 20 < slow.waiting <= direct.WAITING_BYTES_MAX
    assert results.dropped > 0
    assert any("results are not delivered" in message for _, message in runtime.notes)
