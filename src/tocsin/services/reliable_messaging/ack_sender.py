"""Acknowledgements to where AcksTo points: messages of their own, the latest state in each."""

from __future__ import annotations

from typing import Final

from tocsin.broker.runtime import Runtime, Tasks, new_uuid
from tocsin.errors import TocsinError
from tocsin.services.reliable_messaging.sequences import LiveSequence
from tocsin.wire.soap.addressing import write_headers
from tocsin.wire.soap.envelope import http_headers, write_envelope
from tocsin.wire.wsrm import destination
from tocsin.wire.wsrm.messages import action
from tocsin.wire.wsrm.write import write_acknowledgement

# What comes in this time is acknowledged together: a message costs more than a header block.
GATHERING_S: Final = 0.02


class AckSender:
    """At most one message is under way for a sequence; one that fails is not repeated, since the
    sender asks again by sending again."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._tasks = Tasks(runtime)

    def send_soon(self, live: LiveSequence) -> None:
        """Acknowledge soon what is there by then."""
        if live.ack_is_due:
            return
        live.ack_is_due = True
        self._tasks.spawn(self._send(live))

    def close(self) -> None:
        self._tasks.cancel()

    async def _send(self, live: LiveSequence) -> None:
        await self._runtime.sleep(GATHERING_S)
        live.ack_is_due = False  # what comes from now on is not in this message
        address, message, headers = ack_message(live, new_uuid(self._runtime))
        try:
            await self._runtime.post(address, message, headers)
        except TocsinError as error:
            self._runtime.note(
                "warning",
                "an acknowledgement could not be delivered",
                sequence=live.inbound.identifier,
                error=error.problem,
            )


def ack_message(live: LiveSequence, uuid: str) -> tuple[str, bytes, dict[str, str]]:
    """Where an acknowledgement goes, the message, and its HTTP headers."""
    inbound = live.inbound
    assert inbound.acks_to is not None
    saying = action(inbound.rm, "SequenceAcknowledgement")
    header = write_headers(
        inbound.wsa, action=saying, to=inbound.acks_to, message_id=f"urn:uuid:{uuid}"
    )
    header += b"".join(inbound.acks_references)
    header += write_acknowledgement(destination.acknowledgement(inbound))
    message = write_envelope(inbound.soap, header=header)
    return inbound.acks_to, message, dict(http_headers(inbound.soap, saying))
