"""The guard at the way out: which network addresses a sink's name leads to, and which may be used.

Connections are made to an address that was judged here, never to a name, so a name that leads
elsewhere a moment later changes nothing.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from ipaddress import IPv6Address, ip_address

from tocsin.broker.delivery.address import SinkAddress
from tocsin.broker.delivery.trust import (
    Address,
    SinkRules,
    address_is_listed,
    name_is_listed,
    why_refused,
)
from tocsin.errors import SinkRefused

LOOKUP_KEPT_S = 30.0  # short, so that a sink that moves is found again soon
LOOKUPS_KEPT_MAX = 1_000
ADDRESSES_TRIED_MAX = 4

Resolver = Callable[[str, int], Awaitable[list[str]]]
"""From a host and port to the texts of its addresses; raises OSError if there are none."""


def system_resolver(loop: asyncio.AbstractEventLoop) -> Resolver:
    """The resolver of the operating system."""

    async def resolve(host: str, port: int) -> list[str]:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return [str(entry[4][0]) for entry in found]

    return resolve


class Guard:
    """Looks names up, remembers the answers for a short time, and judges every one of them."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, rules: SinkRules, resolve: Resolver
    ) -> None:
        self._loop = loop
        self._rules = rules
        self._resolve = resolve
        self._lookups: dict[str, tuple[float, asyncio.Task[list[str]]]] = {}

    async def addresses(self, sink: SinkAddress) -> list[str]:
        """Addresses that may be connected to, at least one; raises SinkRefused or OSError."""
        fine: list[str] = []
        refused: dict[str, str] = {}
        for text in await self._lookup(sink):
            address = ip_address(text.partition("%")[0])
            why = self._why_refused(sink.host, address)
            if why is None:
                fine.append(str(address))
            else:
                refused[str(address)] = why
        if not fine:
            raise _refusal(sink.host, refused)
        return list(dict.fromkeys(fine))[:ADDRESSES_TRIED_MAX]

    def known(self, host: str) -> list[str]:
        """What a host led to when it was last looked up; empty if that is not known."""
        _, task = self._lookups.get(host, (0.0, None))
        if task is None or not task.done() or task.cancelled() or task.exception() is not None:
            return []
        return task.result()

    def _why_refused(self, host: str, address: Address) -> str | None:
        trusted = self._rules.trusted
        if trusted and (name_is_listed(host, trusted) or address_is_listed(address, trusted)):
            return None
        return why_refused(address, allow_private=self._rules.allow_private)

    async def _lookup(self, sink: SinkAddress) -> list[str]:
        now = self._loop.time()
        expires, task = self._lookups.get(sink.host, (0.0, None))
        if task is None or expires <= now:
            self._make_room(now)
            task = self._loop.create_task(self._ask(sink))
            self._lookups[sink.host] = (now + LOOKUP_KEPT_S, task)
        # Shielded: the one who waits may leave, and others may wait for the same answer.
        return await asyncio.shield(task)

    async def _ask(self, sink: SinkAddress) -> list[str]:
        try:
            return await self._resolve(sink.host, sink.port)
        except BaseException:
            self._lookups.pop(sink.host, None)
            raise

    def _make_room(self, now: float) -> None:
        if len(self._lookups) < LOOKUPS_KEPT_MAX:
            return
        for host, (expires, _) in list(self._lookups.items()):
            if expires <= now:
                del self._lookups[host]
        while len(self._lookups) >= LOOKUPS_KEPT_MAX:
            del self._lookups[next(iter(self._lookups))]  # the oldest

    def close(self) -> None:
        """Stop what is being looked up."""
        for _, task in list(self._lookups.values()):
            task.cancel()
        self._lookups.clear()


def _refusal(host: str, refused: dict[str, str]) -> SinkRefused:
    found = ", ".join(f"{address} ({why})" for address, why in list(refused.items())[:3])
    return SinkRefused(
        f"the sink {host} resolves to {found or 'no address'}, where no event may be sent",
        remedy="The operator can name the host or its network in the list of trusted hosts.",
    )


def family(address: str) -> socket.AddressFamily:
    """The family of a judged address, so that connecting asks no resolver."""
    return socket.AF_INET6 if isinstance(ip_address(address), IPv6Address) else socket.AF_INET
