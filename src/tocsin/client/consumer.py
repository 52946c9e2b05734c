"""Consumer: the events that pass a filter, one after the other, for as long as you like.

    for event in Consumer("topic lead/**"):
        print(event)

Three ways to get them. `stream` follows the log live, and resumes where it was if the connection
breaks. `box` is durable: the broker keeps events while nobody consumes, and what was taken but not
finished comes again. `push` listens on a port of its own and has the broker send events there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Literal, Self, get_args

from tocsin.client.asking import filter_text
from tocsin.client.incoming.consumed import ConsumedEvent
from tocsin.client.incoming.sources import BoxSource, PushSource, Source, StreamSource
from tocsin.client.transport.address import broker_address
from tocsin.errors import BadSetting

Via = Literal["stream", "box", "push"]


def no_such_way(via: object) -> BadSetting:
    """Events do not come like that."""
    known = ", ".join(get_args(Via))
    return BadSetting(f"via={via!r} is not known", remedy=f"Choose one of {known}.")


class Consumer:
    """Iterate over it, in one thread; `close` it, from any, or use it as a context manager.

    `after` is a place in the log to start from (0: from the oldest kept); None means from now on.
    `box` names a box to go on with; without it a new one is made, and deleted again on close.
    With `timeout_s` the iteration ends when nothing has arrived for so long.
    """

    def __init__(
        self,
        filter: str = "",
        *,
        via: Via = "stream",
        after: int | None = None,
        broker: str | None = None,
        box: str | None = None,
        timeout_s: float | None = None,
        listen: str = "127.0.0.1:0",
        ca_file: str | None = None,
    ) -> None:
        self._timeout_s = timeout_s
        self._closed = False
        text = filter_text(filter)
        address = broker_address(broker, ca_file)
        self._source: Source
        if via == "stream":
            self._source = StreamSource(text, after, address)
        elif via == "box":
            self._source = BoxSource(text, after, address, box)
        elif via == "push":
            self._source = PushSource(text, after, address, listen)
        else:
            raise no_such_way(via)

    @property
    def box(self) -> str | None:
        """The id of the box, to go on with it another time."""
        return self._source.box if isinstance(self._source, BoxSource) else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._end(finished=kind is None)

    def __iter__(self) -> Iterator[ConsumedEvent]:
        return self

    def __next__(self) -> ConsumedEvent:
        deadline = None if self._timeout_s is None else time.monotonic() + self._timeout_s
        while not self._closed:
            event = self._source.next(deadline)
            if event is not None:
                return event
            if deadline is not None and time.monotonic() >= deadline:
                break
        raise StopIteration

    def close(self) -> None:
        """Stop; nothing stays open, and the broker forgets what it kept for this consumer."""
        self._end(finished=True)

    def _end(self, *, finished: bool) -> None:
        if not self._closed:
            self._closed = True
            self._source.close(finished=finished)
