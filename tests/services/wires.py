"""Streams and WebSockets as their sessions see them: a wire that a test reads."""

from __future__ import annotations

from manual_runtime import ManualRuntime
from tocsin.access.session import anonymous
from tocsin.event.event import Event
from tocsin.event.stored import Append, StateChange
from tocsin.services.streams.event_stream import EventStream
from tocsin.services.streams.frame_cache import FrameCache
from tocsin.wire.api.stream_request import read_stream_request
from tocsin.wire.cloudevents.write import server_sent_event

CLIENT = anonymous("websocket", "192.0.2.1:1")


class Wire:
    """An transport that keeps what is written, and is full when a test says so."""

    def __init__(self) -> None:
        self.written = b""
        self.is_full = False
        self.is_closed = self.is_aborted = self.is_paused = False
        self.has_room = True
        self.refused = 0

    def begin(self, first: bytes) -> None:
        self.written += first

    def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_aborted = True

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def hold(self, size: int) -> bool:
        return self.has_room

    def count_refused(self) -> None:
        self.refused += 1

    def taken(self) -> bytes:
        written, self.written = self.written, b""
        return written


def event(number: int) -> Event:
    return Event(id=str(number), source="/test", type="test", topic="a/b")


def publish(runtime: ManualRuntime, *numbers: int) -> None:
    runtime.run(runtime.port.publish(CLIENT, [event(number) for number in numbers]))


# Server-sent events


def stream(runtime: ManualRuntime, wire: Wire, query: bytes = b"") -> EventStream:
    asked = read_stream_request(query, None)
    opened = EventStream(runtime.port, CLIENT, wire, asked, FrameCache(server_sent_event))
    opened.start()
    return opened


def trimmed(through: int, last: int) -> ManualRuntime:
    """A broker whose log holds no more than the events after `through`."""
    runtime = ManualRuntime()
    publish(runtime, *range(1, last + 1))
    runtime.store.commit(Append([], 0), StateChange(trim_to=through))
    return runtime.restarted()
