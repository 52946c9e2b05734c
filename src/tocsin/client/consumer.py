"""Consumer and AsyncConsumer: the events that pass a filter, for as long as you like.

    for event in Consumer("topic lead/**"):
        print(event)

    async with AsyncConsumer("topic lead/**") as events:
        async for event in events:
            print(event)

Three ways to get them. `stream` follows the log live, and resumes where it was if the connection
breaks. `box` is durable: the broker keeps events while nobody consumes, and what was taken but not
finished comes again. `push` listens on a port of its own and has the broker send events there.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Literal, Protocol, Self, Unpack, get_args

from tocsin.client.incoming.consumed_event import ConsumedEvent, from_structured
from tocsin.client.requests import filter_text
from tocsin.client.transport.address import Address, broker_address
from tocsin.client.transport.runtime import BLOCKING, Runtime, run
from tocsin.client.transport.sse import Message
from tocsin.credentials.sign_in import SignIn
from tocsin.errors import BadSetting

Via = Literal["stream", "box", "push"]


class Source(Protocol):
    """One way for events to come."""

    async def start(self) -> None:
        """Ask the broker for them; once is enough."""

    async def read(self, deadline: float | None) -> Sequence[Message | ConsumedEvent]:
        """What came next; nothing if none came by the deadline or for a while."""

    async def close(self, *, finished: bool) -> None:
        """Give everything back; with `finished`, what was handed out counts as done."""


class _Events:
    """What both consumers are made of."""

    def __init__(
        self,
        runtime: Runtime,
        filter: str,
        via: Via,
        after: int | None,
        box: str | None,
        listen: str,
        address: Address,
    ) -> None:
        self.closed = False
        self._ready: deque[ConsumedEvent] = deque()
        text = filter_text(filter)
        self.source: Source
        if via == "stream":
            from tocsin.client.incoming.live import LiveStream

            self.source = LiveStream(runtime, text, after, address)
        elif via == "box":
            from tocsin.client.incoming.box import BoxReader

            self.source = BoxReader(runtime, text, after, address, box)
        elif via == "push":
            from tocsin.client.incoming.push import PushReceiver

            self.source = PushReceiver(runtime, text, after, address, listen)
        else:
            known = ", ".join(get_args(Via))
            raise BadSetting(f"via={via!r} is not known", remedy=f"Choose one of {known}.")

    @property
    def box(self) -> str | None:
        return getattr(self.source, "box", None)

    def pop(self) -> ConsumedEvent | None:
        """The next of those that have come already."""
        return self._ready.popleft() if self._ready and not self.closed else None

    async def next(self, timeout_s: float | None) -> ConsumedEvent | None:
        """The next event; None if none came in time, or it was closed."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while not self._ready:
            if self.closed:
                return None
            for each in await self.source.read(deadline):
                if isinstance(each, Message):
                    self._ready.append(from_structured(each.data, each.seq))
                else:
                    self._ready.append(each)
            if not self._ready and deadline is not None and time.monotonic() >= deadline:
                return None
        return self.pop()

    async def close(self, *, finished: bool) -> None:
        if not self.closed:
            self.closed = True
            await self.source.close(finished=finished and not self._ready)


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
        **sign_in: Unpack[SignIn],
    ) -> None:
        self._timeout_s = timeout_s
        address = broker_address(broker, ca_file, **sign_in)
        self._events = _Events(BLOCKING, filter, via, after, box, listen, address)
        run(self._events.source.start())

    @property
    def box(self) -> str | None:
        """The id of the box, to go on with it another time."""
        return self._events.box

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        run(self._events.close(finished=kind is None))

    def __iter__(self) -> Iterator[ConsumedEvent]:
        return self

    def __next__(self) -> ConsumedEvent:
        event = self._events.pop() or run(self._events.next(self._timeout_s))
        if event is None:
            raise StopIteration
        return event

    def close(self) -> None:
        """Stop; nothing stays open, and the broker forgets what it kept for this consumer."""
        run(self._events.close(finished=True))


class AsyncConsumer:
    """The same for asyncio. Iterate over it, in one task; use it as a context manager, or
    `await close()` it."""

    def __init__(
        self,
        filter: str = "",
        *,
        via: Via = "stream",
        after: int | None = None,
        broker: str | None = None,
        box: str | None = None,
        listen: str = "127.0.0.1:0",
        ca_file: str | None = None,
        **sign_in: Unpack[SignIn],
    ) -> None:
        from tocsin.client.transport.async_runtime import ASYNC

        address = broker_address(broker, ca_file, **sign_in)
        self._events = _Events(ASYNC, filter, via, after, box, listen, address)

    @property
    def box(self) -> str | None:
        """The id of the box, once there is one."""
        return self._events.box

    async def __aenter__(self) -> Self:
        await self._events.source.start()
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        await self._events.close(finished=kind is None)

    def __aiter__(self) -> AsyncIterator[ConsumedEvent]:
        return self

    async def __anext__(self) -> ConsumedEvent:
        await self._events.source.start()
        event = await self._events.next(None)
        if event is None:
            raise StopAsyncIteration
        return event

    async def close(self) -> None:
        """Stop; nothing stays open, and the broker forgets what it kept for this consumer."""
        await self._events.close(finished=True)
