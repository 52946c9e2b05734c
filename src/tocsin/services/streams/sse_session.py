"""A session of server-sent events: the heartbeats, and the last words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

import msgspec

from tocsin.broker.runtime import Runtime
from tocsin.services.streams.transport import StreamTransport
from tocsin.wire.sse import HEARTBEAT, sse_event, sse_start

HEARTBEAT_S: Final = 15.0  # proxies cut what is silent for 30 s and more
RETRY_MS: Final = 3_000  # when a browser should come back


class SseSession(ABC):
    """One reader of a stream."""

    takes_over = True
    is_long_lived = True

    def __init__(self, name: str, runtime: Runtime, transport: StreamTransport) -> None:
        self.name = name
        self._runtime = runtime
        self._transport = transport
        self._heartbeat_due_s = 0.0

    # What each kind of session does

    @abstractmethod
    def start(self) -> None:
        """Open what is read, and begin; refuse by raising."""

    @abstractmethod
    def writable(self) -> None:
        """The reader has room again."""

    @abstractmethod
    def lost(self) -> None:
        """The reader has gone: leave what was opened."""

    def _begin(self, after: int | None = None) -> None:
        """Begin; of the log what follows `after` comes, if it is the log that is read."""
        self._transport.begin(sse_start(RETRY_MS, after))
        self._heartbeat_due_s = self._runtime.elapsed_s() + HEARTBEAT_S

    # Called by the connection

    def received(self, data: bytes) -> None:  # noqa: B027
        """Ignored: a reader of a stream sends nothing."""

    def ended_by_client(self) -> None:
        self._close()

    def tick(self) -> float:
        now_s = self._runtime.elapsed_s()
        if now_s >= self._heartbeat_due_s:
            self._transport.write(HEARTBEAT)
            self._heartbeat_due_s = now_s + HEARTBEAT_S
        return self._heartbeat_due_s - now_s

    def stop(self) -> None:
        self.end("the broker is stopping")

    def end(self, reason: str) -> None:
        self._transport.write(sse_event(msgspec.json.encode({"reason": reason}), name=b"bye"))
        self._close()

    def _close(self) -> None:
        self.lost()
        self._transport.close()
