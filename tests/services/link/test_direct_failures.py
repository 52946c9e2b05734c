"""Results that go straight to whoever asked."""

from __future__ import annotations

from typing import Any, cast

from link_peer import options_with

from manual_runtime import ManualRuntime
from tocsin.errors import PeerFailed
from tocsin.services.link.direct import NOTE_S, DirectResults


class Unreachable:
    """A connector that never gets through."""

    async def connect(self, address: str, opened: object) -> None:
        raise PeerFailed(f"no route to {address}", remedy="Try later.")


def test_connections_that_fail_are_in_the_log_now_and_then_and_not_each_time() -> None:
    runtime = ManualRuntime()
    options = options_with(direct_addresses=("nowhere:1",))
    results = DirectResults(runtime.port, cast(Any, Unreachable()), "A", cast(Any, None), options)

    for number in range(1_000):
        results.send(f"B{number}", "nowhere:1", cast(Any, None))
        runtime.settle()
    at_once = len(runtime.notes)
    runtime.pass_s(NOTE_S + 1)
    results.send("B", "nowhere:1", cast(Any, None))
    runtime.settle()

    assert at_once == 1
    assert len(runtime.notes) == 2
    assert results.dropped == 1_001
