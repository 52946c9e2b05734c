"""Acknowledgements to where AcksTo points: letters of their own, the latest state in each."""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING, Final

from tocsin.drivers.soap.sequences import Live
from tocsin.errors import TocsinError
from tocsin.wire.soap.addressing import write_headers
from tocsin.wire.soap.envelope import http_headers, write_envelope
from tocsin.wire.wsrm import destination
from tocsin.wire.wsrm.messages import action
from tocsin.wire.wsrm.write import write_acknowledgement

if TYPE_CHECKING:
    from tocsin.drivers.node import Node

# What comes in this time is acknowledged together: a letter is dearer than a header block.
GATHERING_S: Final = 0.02


class AcksElsewhere:
    """At most one letter is under way for a sequence; one that fails is not repeated, since the
    sender asks again by sending again."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._tasks: set[asyncio.Task[None]] = set()

    def tell(self, live: Live) -> None:
        """Acknowledge soon what is there by then."""
        if live.telling:
            return
        live.telling = True
        task = self._node.loop.create_task(self._tell(live))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _tell(self, live: Live) -> None:
        await asyncio.sleep(GATHERING_S)
        live.telling = False  # what comes from now on is not in this letter
        address, message, headers = letter(live)
        try:
            await self._node.letters.post(address, message, headers)
        except TocsinError as error:
            self._node.note(
                "warning",
                "an acknowledgement could not be delivered",
                sequence=live.inbound.identifier,
                error=error.problem,
            )


def letter(live: Live) -> tuple[str, bytes, dict[str, str]]:
    """Where an acknowledgement goes, the message, and its HTTP headers."""
    inbound = live.inbound
    assert inbound.acks_to is not None
    saying = action(inbound.rm, "SequenceAcknowledgement")
    header = write_headers(
        inbound.wsa, action=saying, to=inbound.acks_to, message_id=f"urn:uuid:{uuid.uuid4()}"
    )
    header += b"".join(inbound.acks_references)
    header += write_acknowledgement(destination.acknowledgement(inbound))
    message = write_envelope(inbound.soap, header=header)
    return inbound.acks_to, message, dict(http_headers(inbound.soap, saying))
