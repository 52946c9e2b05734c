"""The open streams of a node: who follows the log over a connection."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from tocsin.broker import effects as do
from tocsin.broker.port import StreamSink
from tocsin.event.filter import Filter

if TYPE_CHECKING:
    from tocsin.broker.broker import Broker


class NodeStreams(ABC):
    """Streams by their number in the broker."""

    broker: Broker

    def __init__(self) -> None:
        self._streams: dict[int, StreamSink] = {}

    @abstractmethod
    def kick(self) -> None:
        """Something happened: perform what follows from it."""

    def open_stream(
        self,
        sink: StreamSink,
        filter: Filter,
        after: int | None,
        name: str,
        asks: frozenset[str] | None = None,
    ) -> int:
        """Follow the log; events go to `sink.write` from the next turn of the loop on."""
        number = self.broker.open_stream(filter, after, name, asks)
        self._streams[number] = sink
        self.kick()
        return number

    def attach(self, stream: int, sink: StreamSink) -> None:
        """What the broker writes to the stream goes there."""
        self._streams[stream] = sink

    def detach(self, stream: int) -> bool:
        """False if nothing was attached."""
        return self._streams.pop(stream, None) is not None

    def stream_ready(self, stream: int) -> None:
        self.broker.stream_ready(stream)
        self.kick()

    def close_stream(self, stream: int) -> None:
        if self._streams.pop(stream, None) is not None:
            self.broker.close_stream(stream)
            self.kick()

    def _stream_out(self, effect: do.StreamOut) -> None:
        sink = self._streams.get(effect.stream)
        if sink is not None and not sink.write(effect.events):
            self.broker.stream_blocked(effect.stream)

    def _stream_dropped(self, effect: do.StreamDropped) -> None:
        sink = self._streams.get(effect.stream)
        if sink is not None:
            sink.dropped(effect.dropped)
