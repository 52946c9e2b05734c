"""Deliveries to message boxes of this very broker: handed to the desk, not to the network.

The address of such a box is how the world reaches us: through a proxy, with TLS, from outside a
firewall. We need not go out to come in again, and from where we are might not even get through.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tocsin.broker.delivery.outcome import Answered, Failed, Outcome
from tocsin.broker.delivery.trust import parse_sink
from tocsin.broker.effects import Push
from tocsin.drivers.push.line import Done
from tocsin.drivers.push.soap_letterhead import Renderings, envelope, soap_head
from tocsin.drivers.soap.call import Answer, SoapCall
from tocsin.drivers.soap.paths import place_of
from tocsin.wire.soap.envelope import content_type

if TYPE_CHECKING:
    from tocsin.drivers.node import Node


def is_own_box(address: str, base: str) -> bool:
    """True if the address is that of a box here, as whoever asks knows us."""
    return address.startswith(f"{base}/") and place_of(address[len(base) :]).kind == "boxes"


class OwnBoxes:
    """Puts what a subscription asked for into its box."""

    def __init__(self, node: Node, answer: Answer) -> None:
        self._node = node
        self._answer = answer
        self._renderings = Renderings()
        self._tasks: set[asyncio.Task[None]] = set()

    def send(self, push: Push, done: Done) -> None:
        """Deliver; `done(push.lane, outcome)` is called once, later."""
        task = self._node.loop.create_task(self._send(push, done))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(self, push: Push, done: Done) -> None:
        outcome: Outcome
        try:
            outcome = await self._stored(push)
        except Exception as error:
            # A bug, but a lane that never hears back would stand still for ever.
            self._node.note("error", "a message for a box failed", error=repr(error))
            outcome = Failed(f"sending failed: {error!r}", reachable=True)
        done(push.lane, outcome)

    async def _stored(self, push: Push) -> Outcome:
        head = soap_head(push.subscription)
        _, message = envelope(head, push.events, self._renderings)
        call = SoapCall(
            body=message,
            content_type=content_type(head.terms.soap),
            soap_action="",
            path=parse_sink(push.sink, soap_tcp=True).target,
            query="",
            base="",
            peer="",
        )
        answer = await self._answer(call)
        return Answered(answer.status)

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
