"""The open streams of a node: who follows the log over a connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tocsin.broker import effects as do
from tocsin.broker.port import StreamSink

if TYPE_CHECKING:
    from tocsin.broker.broker import Broker


class NodeStreams:
    """Streams by their number in the broker."""

    broker: Broker

    def __init__(self) -> None:
        self._streams: dict[int, StreamSink] = {}

    def attach(self, stream: int, sink: StreamSink) -> None:
        """What the broker writes to the stream goes there."""
        self._streams[stream] = sink

    def detach(self, stream: int) -> bool:
        """False if nothing was attached."""
        return self._streams.pop(stream, None) is not None

    def _stream_out(self, effect: do.StreamOut) -> None:
        sink = self._streams.get(effect.stream)
        if sink is not None and not sink.write(effect.events):
            self.broker.stream_blocked(effect.stream)

    def _stream_dropped(self, effect: do.StreamDropped) -> None:
        sink = self._streams.get(effect.stream)
        if sink is not None:
            sink.dropped(effect.dropped)
