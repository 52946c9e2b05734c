"""`GET /discoveries/{id}/stream`: what a continuous request finds, as server-sent events."""

from __future__ import annotations

from tocsin.access.session import Session
from tocsin.broker.runtime import Runtime
from tocsin.services.discovery.service import ResourceDiscovery
from tocsin.services.discovery.watch import Follower
from tocsin.services.streams.sse_session import SseSession
from tocsin.services.streams.transport import StreamTransport


class DiscoveryStream(SseSession):
    """One reader of a continuous request: all that match now, then what changes."""

    def __init__(
        self,
        discovery: ResourceDiscovery,
        runtime: Runtime,
        session: Session,
        transport: StreamTransport,
        watch_id: str,
    ) -> None:
        super().__init__(f"discovery stream to {session.peer}", runtime, transport)
        self._discovery = discovery
        self._session = session
        self._watch_id = watch_id
        self._follower: Follower | None = None

    def start(self) -> None:
        self._follower = self._discovery.follow(self._session, self._watch_id, self)
        self._begin()
        self._follower.pump()

    def writable(self) -> None:
        if self._follower is not None:
            self._follower.pump()

    def lost(self) -> None:
        if self._follower is not None:
            follower, self._follower = self._follower, None
            self._discovery.leave(self._watch_id, follower)

    # Called by the continuous request

    @property
    def is_full(self) -> bool:
        return self._transport.is_full

    def write(self, data: bytes) -> None:
        self._transport.write(data)
