"""Connector: the way to a peer that we call up, one connection at a time, for all who want one.

It dials when somebody needs a connection, and however many do, once at a time; after a connection
that broke or never came about there is a pause, which doubles.
"""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from tocsin.client.gma.address import PeerAddress
from tocsin.client.gma.connection import IdSource, PeerConnection
from tocsin.client.gma.outgoing_connection import OutgoingConnection
from tocsin.client.gma.peer_errors import cannot_reach
from tocsin.client.gma.schedule import pause_s
from tocsin.client.transport.tls import untrusted
from tocsin.errors import CannotReachBroker

STEADY_S: Final = 10.0  # a connection that held so long was no failed attempt
SUBSCRIBERS_MAX: Final = 200  # subscriptions on one connection; more get another


class Connector:
    """Of the loop's thread alone."""

    def __init__(
        self,
        address: PeerAddress,
        context: ssl.SSLContext | None,
        roles: str,
        *,
        ids: IdSource,
        timeout_s: float,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.address = address
        self.timeout_s = timeout_s
        self.keep_open = False
        self.is_tocsin = False  # the peer has replied in words that are not in the paper
        self.subscribers: set[object] = set()
        self._context = context
        self._roles = roles
        self._ids = ids
        self._chance = chance
        self._loop = asyncio.get_running_loop()
        self._outgoing: OutgoingConnection | None = None
        self._dialing: asyncio.Task[OutgoingConnection] | None = None
        self._wanted = 0
        self._hurry = asyncio.Event()
        self._attempt = 0
        self._not_before_s = 0.0

    @property
    def is_open(self) -> bool:
        return self._outgoing is not None and self._outgoing.is_open

    def copy(self) -> Connector:
        """One more to the same peer."""
        connector = Connector(
            self.address,
            self._context,
            self._roles,
            ids=self._ids,
            timeout_s=self.timeout_s,
            chance=self._chance,
        )
        connector.is_tocsin = self.is_tocsin
        return connector

    async def open(self, *, is_plain: bool = False, is_urgent: bool = False) -> OutgoingConnection:
        """The connection, after a pause if it has to be made again and that is not urgent;
        CannotReachBroker if there is none."""
        if self._outgoing is not None and self._outgoing.is_open:
            return self._outgoing
        if self._dialing is None or self._dialing.done():
            self._hurry.clear()
            self._dialing = self._loop.create_task(self._dial(is_plain))
        if is_urgent:
            self._hurry.set()
        dialing = self._dialing
        self._wanted += 1
        try:
            return await asyncio.shield(dialing)
        except asyncio.CancelledError:
            if self._wanted == 1:
                self._abandon(dialing)
            raise
        finally:
            self._wanted -= 1

    def close(self) -> None:
        """Hang up, whatever is under way."""
        if self._dialing is not None:
            self._dialing.cancel()
        if self._outgoing is not None:
            self._outgoing.close("this side closes")

    def connection_closed(self, outgoing: OutgoingConnection) -> None:
        if outgoing is self._outgoing:
            self._outgoing = None
            self._fail(self._loop.time() - outgoing.opened_s)

    def _abandon(self, dialing: asyncio.Task[OutgoingConnection]) -> None:
        dialing.cancel()
        self._dialing = None
        if self._outgoing is not None:
            self._outgoing.close_if_idle()

    def _fail(self, lasted_s: float) -> None:
        self._attempt = 0 if lasted_s >= STEADY_S else self._attempt + 1
        self._not_before_s = self._loop.time() + pause_s(self._attempt, self._chance())

    async def _dial(self, is_plain: bool) -> OutgoingConnection:
        left_s = self._not_before_s - self._loop.time()
        if left_s > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._hurry.wait()
        outgoing = OutgoingConnection(self, self._ids.conversation(self._roles), is_plain=is_plain)
        self._outgoing = outgoing
        try:
            await dial(self.address, self._context, lambda: outgoing, self.timeout_s)
        except CannotReachBroker:
            if self._outgoing is outgoing:
                self._outgoing = None
                self._fail(0.0)
            raise
        return outgoing


class Connectors:
    """One side's lines to all whom it calls. Of the loop's thread alone."""

    def __init__(self, roles: str, ids: IdSource, timeout_s: float) -> None:
        self._roles = roles
        self._ids = ids
        self._timeout_s = timeout_s
        self._connectors: list[Connector] = []

    def to(self, address: PeerAddress, context: ssl.SSLContext | None) -> Connector:
        """The connector to a peer; another one if so many share it already."""
        self._connectors = [
            connector
            for connector in self._connectors
            if connector.subscribers or connector.keep_open
        ]
        for connector in self._connectors:
            if connector.address == address and len(connector.subscribers) < SUBSCRIBERS_MAX:
                return connector
        connector = Connector(
            address, context, self._roles, ids=self._ids, timeout_s=self._timeout_s
        )
        self._connectors.append(connector)
        return connector

    def close(self) -> None:
        for connector in self._connectors:
            connector.close()


async def dial(
    address: PeerAddress,
    context: ssl.SSLContext | None,
    make: Callable[[], PeerConnection],
    timeout_s: float,
) -> PeerConnection:
    """A connection to the peer; CannotReachBroker if there is none in time."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(timeout_s):
            _, connection = await loop.create_connection(
                make, address.host, address.port, ssl=context
            )
    except TimeoutError:
        raise cannot_reach(address, f"no answer within {timeout_s:g} s") from None
    except ssl.SSLCertVerificationError as error:
        raise cannot_reach(address, *untrusted(error, address.host)) from None
    except (OSError, UnicodeError) as error:
        raise cannot_reach(address, _reason(error)) from None
    return connection


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return f"the TLS handshake failed ({error.reason or error})"
    return str(error)
