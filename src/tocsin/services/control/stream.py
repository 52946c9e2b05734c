"""`GET /topics/messages/stream`: what is sent to an entity, as server-sent events."""

from __future__ import annotations

import msgspec

from tocsin.access.session import Session
from tocsin.broker.runtime import Runtime
from tocsin.services.control.bus import ControlBus
from tocsin.services.control.mailbox import Mailbox
from tocsin.services.streams.sse_session import SseSession
from tocsin.services.streams.transport import StreamTransport
from tocsin.wire.sse import sse_event


class ControlStream(SseSession):
    """One reader. It begins by `open`: what is sent to the entity from then on comes."""

    def __init__(
        self,
        bus: ControlBus,
        runtime: Runtime,
        session: Session,
        transport: StreamTransport,
        *,
        has_requests: bool,
    ) -> None:
        super().__init__(f"control messages to {session.peer}", runtime, transport)
        self._bus = bus
        self._session = session
        self._has_requests = has_requests
        self._mailbox: Mailbox | None = None

    def start(self) -> None:
        mailbox = self._bus.entities.open(self._session, self, has_requests=self._has_requests)
        self._mailbox = mailbox
        self._begin()
        opened = {"entity": mailbox.entity, "broker": self._bus.core.broker}
        self._transport.write(sse_event(msgspec.json.encode(opened), name=b"open"))

    def writable(self) -> None:
        if self._mailbox is not None:
            self._mailbox.pump()

    def lost(self) -> None:
        if self._mailbox is not None:
            mailbox, self._mailbox = self._mailbox, None
            self._bus.entities.close(mailbox)

    # Called by the mailbox

    @property
    def is_full(self) -> bool:
        return self._transport.is_full

    def write(self, data: bytes) -> None:
        self._transport.write(data)
