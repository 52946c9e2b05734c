"""Pushes that are delivered only when the answer says so, whatever its status: PushWithAck."""

from __future__ import annotations

import asyncio
from typing import Final

from tocsin.broker.delivery.answer import excerpt, retry_after_s
from tocsin.broker.delivery.outcome import Answered, Failed, Outcome
from tocsin.broker.delivery.soap_messages import RenderCache, envelope, soap_template
from tocsin.broker.effects import Push
from tocsin.broker.runtime import HttpAnswer
from tocsin.drivers.push.http_client import HttpClient
from tocsin.drivers.push.sender import Done
from tocsin.errors import PeerFailed, TocsinError
from tocsin.wire.soap.addressing import read_addressing
from tocsin.wire.soap.envelope import http_headers, read_envelope
from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.soap.mediation import message_id_of
from tocsin.wire.soap.names import WSMAN_URI

ACK_ACTION: Final = f"{WSMAN_URI}/Ack"


class AckedSender:
    """Sends what must be acknowledged in so many words."""

    def __init__(self, loop: asyncio.AbstractEventLoop, http_client: HttpClient) -> None:
        self._loop = loop
        self._http_client = http_client
        self._renderings = RenderCache()
        self._tasks: set[asyncio.Task[None]] = set()

    def send(self, push: Push, done: Done) -> None:
        """Send; `done(push.lane, outcome)` is called once, later."""
        task = self._loop.create_task(self._send(push, done))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(self, push: Push, done: Done) -> None:
        try:
            head = soap_template(push.subscription)
            _, body = envelope(head, push.events, self._renderings)
            action = self._renderings.of(head, push.events[0]).pieces.action
            headers = {
                "tocsin-subscription": push.subscription.id,
                "tocsin-sequence": str(push.events[0].seq),
                **dict(http_headers(head.terms.soap, action)),
            }
            answer = await self._http_client.post(
                push.sink, body, headers, timeout_s=push.timeout_s
            )
            outcome = judged(answer, message_id_of(push.events[0].event))
        except asyncio.CancelledError:
            raise
        except PeerFailed as error:
            outcome = Failed(error.problem)
        except TocsinError as error:
            outcome = Failed(error.problem, reachable=True)
        done(push.lane, outcome)

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()


def judged(answer: HttpAnswer, message_id: str) -> Outcome:
    """Delivered if the acknowledgement is there, and names no other message."""
    if not 200 <= answer.status < 300:
        asked = answer.headers.get("retry-after")
        wait_s = None if asked is None else retry_after_s(asked, 0.0)
        return Answered(answer.status, wait_s, excerpt(answer.body))
    try:
        said = read_addressing(read_envelope(answer.body))
        if said.action == ACK_ACTION and said.relates_to in (None, message_id):
            return Answered(answer.status)
    except (SoapFault, TocsinError):
        pass
    return Failed("the consumer took it without the acknowledgement it agreed to", reachable=True)
