"""A continuous request for resources: what came, changed and went, also past lost connections.

A stream begins with everything that matches. When it has to be opened again, only the
difference to what was known is reported, so nothing comes twice and nothing is missed.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Final, Literal

import msgspec

from tocsin.client.incoming.reconnecting_stream import ReconnectingStream
from tocsin.client.requests import JSON_HEADERS
from tocsin.client.transport.address import Address
from tocsin.client.transport.refusal import refusal
from tocsin.client.transport.runtime import Runtime
from tocsin.errors import BrokerRefused, CannotReachBroker
from tocsin.wire.api.resource_views import DiscoveryInfo, FoundResource

NO_SUCH_DISCOVERY: Final = "T352"

ChangeKind = Literal["added", "changed", "removed"]
ResourceKey = tuple[str, str]

_read_resource = msgspec.json.Decoder(FoundResource).decode
_read_info = msgspec.json.Decoder(DiscoveryInfo).decode


class ResourceChange(msgspec.Struct, frozen=True):
    """What happened to a resource that matches, or did until now."""

    change: ChangeKind
    resource: FoundResource


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

    async def read(self, deadline: float | None) -> list[ResourceChange]:
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

    def _change(self, kind: str, data: bytes) -> list[ResourceChange]:
        if kind in ("added", "changed"):
            return self._seen(_read_resource(data))
        if kind == "removed":
            gone = json.loads(data)
            return self._gone((gone["id"], gone["broker"]))
        if kind == "current":
            self.is_current = True
            missed, self._unseen = self._unseen, set()
            return [change for key in sorted(missed) for change in self._gone(key)]
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
