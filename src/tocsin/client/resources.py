"""Resources and AsyncResources: register machines and services, and find them in the overlay.

    with Resources() as resources:
        resources.register("node7", attributes={"system": "Linux", "disk": 320})
        for each in resources.find("system = Linux and disk > 120").resources:
            print(each.id, each.attributes)

        for change in resources.watch("system = Linux", model="dynamic"):
            print(change.change, change.resource.id)

AsyncResources has the same methods, to be awaited.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Literal, Self, Unpack
from urllib.parse import quote

from tocsin.client.incoming.resource_watch import (
    OnCurrent,
    ResourceChange,
    ResourceChanges,
    ResourceWatcher,
)
from tocsin.client.requests import query
from tocsin.client.transport.address import Address, broker_address
from tocsin.client.transport.connection import HttpConnection
from tocsin.client.transport.runtime import BLOCKING, Runtime, run
from tocsin.credentials.sign_in import SignIn
from tocsin.wire.api.resource_views import (
    CurrentResources,
    DiscoveryResult,
    FoundResource,
    ResourceInfo,
    ResourcesPage,
)

__all__ = [
    "AsyncResources",
    "CurrentResources",
    "FoundResource",
    "ResourceChange",
    "ResourceInfo",
    "Resources",
]

TIMEOUT_S = 60.0  # a broker answers within 30 s, whatever others do
LEASE_S = 600.0
PAGE_MAX = 1_000
PAGES_MAX = 1_000  # past this somebody answers without end

Model = Literal["static", "dynamic"]
Values = Mapping[str, Any]


class _Calls:
    """What both are made of: coroutines that await nothing but their runtime."""

    def __init__(self, runtime: Runtime, address: Address, timeout_s: float) -> None:
        self.runtime = runtime
        self.address = address
        self.http = HttpConnection(runtime, self.address, timeout_s=timeout_s)

    async def register(self, asked: dict[str, object]) -> ResourceInfo:
        return (await self.http.ask("POST", "/resources", asked)).read(ResourceInfo)

    async def update(self, resource_id: str, values: Values, *, whole: bool) -> ResourceInfo:
        method, path = "PUT" if whole else "PATCH", f"{_path(resource_id)}/attributes"
        return (await self.http.ask(method, path, dict(values))).read(ResourceInfo)

    async def withdraw(self, resource_id: str) -> None:
        await self.http.ask("DELETE", _path(resource_id))

    async def get(self, resource_id: str) -> ResourceInfo:
        return (await self.http.ask("GET", _path(resource_id))).read(ResourceInfo)

    async def registered(self, kind: str | None, model: Model | None) -> list[ResourceInfo]:
        found: list[ResourceInfo] = []
        after: str | None = None
        for _ in range(PAGES_MAX):
            wanted = query(kind=kind, model=model, limit=PAGE_MAX, after=after)
            response = await self.http.ask("GET", f"/resources{wanted}")
            page = response.read(ResourcesPage)
            found += page.resources
            after = page.next
            if after is None:
                break
        return found

    async def find(self, asked: dict[str, object]) -> DiscoveryResult:
        return (await self.http.ask("POST", "/discoveries", asked)).read(DiscoveryResult)


def _path(resource_id: str) -> str:
    return f"/resources/{quote(resource_id, safe='')}"


def _registration(
    resource_id: str | None,
    model: Model,
    advertisement: str | None,
    attributes: Values | None,
    kind: str | None,
    address: str | None,
    lease_s: float | None,
) -> dict[str, object]:
    asked: dict[str, object] = {"id": resource_id, "model": model, "lease": lease_s}
    asked |= {"kind": kind, "address": address, "attributes": dict(attributes or {})}
    return asked if advertisement is None else {**asked, "advertisement": advertisement}


def _request(
    request: str,
    model: Model,
    first: int | None,
    order_by: str | None,
    max_age_s: float | None,
    timeout_s: float | None,
) -> dict[str, object]:
    given = {"first": first, "order_by": order_by, "max_age": max_age_s, "timeout": timeout_s}
    asked = {name: value for name, value in given.items() if value is not None}
    return {"request": request, "model": model, **asked}


class Resources:
    """Keeps one connection. Not for several threads at once."""

    def __init__(
        self,
        broker: str | None = None,
        *,
        timeout_s: float = TIMEOUT_S,
        ca_file: str | None = None,
        **sign_in: Unpack[SignIn],
    ) -> None:
        self._calls = _Calls(BLOCKING, broker_address(broker, ca_file, **sign_in), timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; what was registered stays as long as its lease."""
        self._calls.http.close()

    def register(
        self,
        resource_id: str | None = None,
        advertisement: str | None = None,
        *,
        model: Model = "static",
        attributes: Values | None = None,
        kind: str | None = None,
        address: str | None = None,
        lease_s: float | None = LEASE_S,
    ) -> ResourceInfo:
        """Register a resource, or register it again.

        The advertisement says in which ranges its attributes lie; a static resource with attributes
        needs none. Without a lease it stays until it is withdrawn.
        """
        asked = _registration(resource_id, model, advertisement, attributes, kind, address, lease_s)
        return run(self._calls.register(asked))

    def update(self, resource_id: str, values: Values, *, whole: bool = False) -> ResourceInfo:
        """Change some values of a dynamic resource, or with `whole` all of them; the lease is
        renewed, also with no values."""
        return run(self._calls.update(resource_id, values, whole=whole))

    def withdraw(self, resource_id: str) -> None:
        """Nobody finds it any more."""
        run(self._calls.withdraw(resource_id))

    def get(self, resource_id: str) -> ResourceInfo:
        """A resource that is registered at this broker."""
        return run(self._calls.get(resource_id))

    def registered(
        self, *, kind: str | None = None, model: Model | None = None
    ) -> list[ResourceInfo]:
        """What is registered at this broker."""
        return run(self._calls.registered(kind, model))

    def find(
        self,
        request: str = "",
        *,
        model: Model = "static",
        first: int | None = None,
        order_by: str | None = None,
        max_age_s: float | None = None,
        timeout_s: float | None = None,
    ) -> DiscoveryResult:
        """Every resource of the overlay that matches, and how it was found."""
        asked = _request(request, model, first, order_by, max_age_s, timeout_s)
        return run(self._calls.find(asked))

    def watch(
        self,
        request: str = "",
        *,
        model: Model = "static",
        timeout_s: float | None = None,
        on_current: OnCurrent | None = None,
    ) -> ResourceWatch:
        """What matches, and then what comes, changes and goes, over a connection of its own.

        It ends at once if nothing can ever match, and `why_empty` says why. With `timeout_s` the
        iteration ends when nothing has happened for so long. `on_current` is called when all that
        matched at the beginning has been handed out, and again after a lost connection.
        """
        watcher = ResourceWatcher(BLOCKING, request, model, self._calls.address)
        return ResourceWatch(watcher, timeout_s, on_current)


class ResourceWatch:
    """Iterate over it, in one thread; `close` it, or use it as a context manager."""

    def __init__(
        self, watcher: ResourceWatcher, timeout_s: float | None, on_current: OnCurrent | None = None
    ) -> None:
        self._changes = ResourceChanges(watcher, timeout_s, on_current)

    @property
    def is_current(self) -> bool:
        """True once everything that matched at the beginning has come."""
        return self._changes.watcher.is_current

    @property
    def why_empty(self) -> str | None:
        """Why nothing can ever match, if nothing can."""
        return self._changes.watcher.why_empty

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[ResourceChange]:
        return self

    def __next__(self) -> ResourceChange:
        change = run(self._changes.next())
        if change is None:
            raise StopIteration
        return change

    def close(self) -> None:
        """End the request."""
        run(self._changes.watcher.close())


class AsyncResources:
    """The same for asyncio; one task at a time."""

    def __init__(
        self,
        broker: str | None = None,
        *,
        timeout_s: float = TIMEOUT_S,
        ca_file: str | None = None,
        **sign_in: Unpack[SignIn],
    ) -> None:
        from tocsin.client.transport.async_runtime import ASYNC

        self._calls = _Calls(ASYNC, broker_address(broker, ca_file, **sign_in), timeout_s)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; what was registered stays as long as its lease."""
        self._calls.http.close()

    async def register(
        self,
        resource_id: str | None = None,
        advertisement: str | None = None,
        *,
        model: Model = "static",
        attributes: Values | None = None,
        kind: str | None = None,
        address: str | None = None,
        lease_s: float | None = LEASE_S,
    ) -> ResourceInfo:
        """As `Resources.register`."""
        asked = _registration(resource_id, model, advertisement, attributes, kind, address, lease_s)
        return await self._calls.register(asked)

    async def update(
        self, resource_id: str, values: Values, *, whole: bool = False
    ) -> ResourceInfo:
        """As `Resources.update`."""
        return await self._calls.update(resource_id, values, whole=whole)

    async def withdraw(self, resource_id: str) -> None:
        """Nobody finds it any more."""
        await self._calls.withdraw(resource_id)

    async def get(self, resource_id: str) -> ResourceInfo:
        """A resource that is registered at this broker."""
        return await self._calls.get(resource_id)

    async def registered(
        self, *, kind: str | None = None, model: Model | None = None
    ) -> list[ResourceInfo]:
        """What is registered at this broker."""
        return await self._calls.registered(kind, model)

    async def find(
        self,
        request: str = "",
        *,
        model: Model = "static",
        first: int | None = None,
        order_by: str | None = None,
        max_age_s: float | None = None,
        timeout_s: float | None = None,
    ) -> DiscoveryResult:
        """As `Resources.find`."""
        asked = _request(request, model, first, order_by, max_age_s, timeout_s)
        return await self._calls.find(asked)

    def watch(
        self,
        request: str = "",
        *,
        model: Model = "static",
        timeout_s: float | None = None,
        on_current: OnCurrent | None = None,
    ) -> AsyncResourceWatch:
        """As `Resources.watch`, for `async for`."""
        watcher = ResourceWatcher(self._calls.runtime, request, model, self._calls.address)
        return AsyncResourceWatch(watcher, timeout_s, on_current)


class AsyncResourceWatch:
    """Iterate over it, in one task; `await close()` it, or use it as a context manager."""

    def __init__(
        self, watcher: ResourceWatcher, timeout_s: float | None, on_current: OnCurrent | None = None
    ) -> None:
        self._changes = ResourceChanges(watcher, timeout_s, on_current)

    @property
    def is_current(self) -> bool:
        """True once everything that matched at the beginning has come."""
        return self._changes.watcher.is_current

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __aiter__(self) -> AsyncIterator[ResourceChange]:
        return self

    async def __anext__(self) -> ResourceChange:
        change = await self._changes.next()
        if change is None:
            raise StopAsyncIteration
        return change

    async def close(self) -> None:
        """End the request."""
        await self._changes.watcher.close()
