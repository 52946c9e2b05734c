"""A continuous request for resources: what came, changed and went, also past lost connections.

A stream begins with everything that matches. When it has to be opened again, only the
difference to what was known is reported, so nothing comes twice and nothing is missed.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Literal

import msgspec

from tocsin.client.incoming.reconnecting_stream import ReconnectingStream
from tocsin.client.requests import JSON_HEADERS
from tocsin.client.transport.address import Address
from tocsin.client.transport.refusal import refusal
from tocsin.client.transport.runtime import Runtime
from tocsin.errors import BrokerRefused, CannotReachBroker
from tocsin.wire.api.resource_views import CurrentResources, DiscoveryInfo, FoundResource

NO_SUCH_DISCOVERY: Final = "T352"

ChangeKind = Literal["added", "changed", "removed"]
ResourceKey = tuple[str, str]

_read_resource = msgspec.json.Decoder(FoundResource).decode
_read_current = msgspec.json.Decoder(CurrentResources).decode
_read_info = msgspec.json.Decoder(DiscoveryInfo).decode


class ResourceChange(msgspec.Struct, frozen=True):
    """What happened to a resource that matches, or did until now."""

    change: ChangeKind
    resource: FoundResource


WatchNews = ResourceChange | CurrentResources
OnCurrent = Callable[[CurrentResources], object]


class ResourceWatcher(ReconnectingStream):
    """One continuous request, on either runtime."""

    def __init__(
        self, runtime: Runtime, request: str, model: str, broker: str | Address | None
    ) -> None:
        super().__init__(runtime, broker)
        self._asked = {"request": request, "model": f"{model} continuous"}
        self._stream = ""  # the address of the stream, once the request was made
        self._known: dict[ResourceKey, FoundResource] = {}
        self._unseen: set[ResourceKey] = set()  # known before, not said again by this stream
        self.is_current = False
        self.why_empty: str | None = None

    async def read(self, deadline: float | None) -> list[WatchNews]:
        """What came next; nothing if none came by the deadline or for a while."""
        if self.closed:
            return []
        try:
            messages = await self._read(deadline)
        except BrokerRefused as error:
            if error.broker_code != NO_SUCH_DISCOVERY:
                raise
            self._stream, self._reader = "", None  # the broker was started again, or forgot it
            return []
        return [change for each in messages for change in self._change(each.kind, each.data)]

    async def close(self) -> None:
        """End the request, and wake whoever reads."""
        if self.closed:
            return
        self._disconnect()
        if self._stream:
            with suppress(CannotReachBroker):  # it ends by itself when nobody follows it
                await self._connection.request("DELETE", self._stream.removesuffix("/stream"))
            self._connection.close()

    async def _target(self) -> str:
        if not self._stream:
            response = await self._connection.request(
                "POST", "/discoveries", body=json.dumps(self._asked).encode(), headers=JSON_HEADERS
            )
            if response.status != 201:
                raise refusal(response.status, response.body)
            info = _read_info(response.body)
            self._stream, self.why_empty = info.stream, info.why_empty
        self._unseen = set(self._known)
        return self._stream

    def _change(self, kind: str, data: bytes) -> list[WatchNews]:
        if kind in ("added", "changed"):
            return [*self._seen(_read_resource(data))]
        if kind == "removed":
            gone = json.loads(data)
            return [*self._gone((gone["id"], gone["broker"]))]
        if kind == "current":
            self.is_current = True
            missed, self._unseen = self._unseen, set()
            gone_too = [change for key in sorted(missed) for change in self._gone(key)]
            return [*gone_too, _read_current(data)]
        return []  # it says goodbye: the stream ends, and is opened again

    def _seen(self, resource: FoundResource) -> list[ResourceChange]:
        key = (resource.id, resource.broker)
        known = self._known.get(key)
        self._known[key] = resource
        self._unseen.discard(key)
        if known is None:
            return [ResourceChange("added", resource)]
        same = (known.attributes, known.address) == (resource.attributes, resource.address)
        return [] if same else [ResourceChange("changed", resource)]

    def _gone(self, key: ResourceKey) -> list[ResourceChange]:
        resource = self._known.pop(key, None)
        return [] if resource is None else [ResourceChange("removed", resource)]


class ResourceChanges:
    """The changes of a watcher, one by one."""

    def __init__(
        self, watcher: ResourceWatcher, timeout_s: float | None, on_current: OnCurrent | None
    ) -> None:
        self.watcher = watcher
        self._timeout_s = timeout_s
        self._on_current = on_current
        self._ready: deque[WatchNews] = deque()

    async def next(self) -> ResourceChange | None:
        """The next one; None if none came in time, or it was closed."""
        deadline = None if self._timeout_s is None else time.monotonic() + self._timeout_s
        while True:
            while self._ready:
                news = self._ready.popleft()
                if isinstance(news, ResourceChange):
                    return news
                if self._on_current is not None:
                    self._on_current(news)
            if self.watcher.closed or self.watcher.why_empty:
                return None
            self._ready.extend(await self.watcher.read(deadline))
            if not self._ready and deadline is not None and time.monotonic() >= deadline:
                return None
