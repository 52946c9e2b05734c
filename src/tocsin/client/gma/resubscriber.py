"""Resubscriber: keeps one subscription with a peer, from one connection to the next.

All that are with one peer share a connector. What becomes of one does not matter to the others: who
is refused asks again later, on the same connection if others have it.

The paper has nothing but the parameters in a request. Our options are attributes, which peers that
do not know them ignore; a filter is an element, and a peer may hang up on it. One that never agreed
to ours, and hangs up or refuses in words that are not ours, is asked once more without the filter,
and with the options all the same: it may be a broker that died just then. One that agreed to a
subscription, and will have no second one on that connection, is asked on another.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from tocsin.client.gma.connector import STEADY_S, Connector
from tocsin.client.gma.outgoing_connection import (
    OutgoingConnection,
    RemoteSubscription,
    SubscriptionOwner,
)
from tocsin.client.gma.peer_errors import cannot_reach, is_ours
from tocsin.client.gma.schedule import pause_s
from tocsin.errors import BrokerRefused, CannotReachBroker, TocsinError

GOODBYE_S_MAX: Final = 2.0  # for the reply to our goodbye
HANG_UPS_MAX: Final = 3  # at our request, on a connection that others share

log = logging.getLogger("tocsin.gma")


class Resubscriber:
    """Of the loop's thread alone."""

    def __init__(
        self,
        connector: Connector,
        subscriber: SubscriptionOwner,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._connector = connector
        self._subscriber = subscriber
        self._chance = chance
        self._loop = asyncio.get_running_loop()
        self._over: str | None = None
        self._remote: RemoteSubscription | None = None
        self._is_first = True
        self._was_agreed = False
        self._was_understood = False  # with its filter, if there is one
        self._hang_ups = 0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Connect, subscribe, and do so again whenever it breaks, until it is over."""
        self._connector.subscribers.add(self)
        self._task = self._loop.create_task(self._run())
        self._task.add_done_callback(self._done)

    async def end(self, why: str) -> None:
        """Take leave of the peer, if it is there, and end."""
        if self._over is not None:
            return
        self._over = why
        assert self._task is not None, "it was started"
        try:
            goodbye = None if self._remote is None else self._remote.unsubscribe()
            if goodbye is not None:
                with suppress(TimeoutError):
                    async with asyncio.timeout(GOODBYE_S_MAX):
                        await goodbye
        finally:
            self._task.cancel()

    def move(self) -> None:
        """Go on with a connection of its own, because the others should not wait for this one."""
        log.debug("a subscription at %s gets a connection of its own", self._connector.address)
        self._connector.subscribers.discard(self)
        self._connector = self._connector.copy()
        self._connector.subscribers.add(self)
        self._is_first = True
        if self._remote is not None:
            self._remote.unsubscribe()

    async def _run(self) -> None:
        attempt = 0
        while self._over is None:
            began_s = self._loop.time()
            try:
                await self._attempt_once()
            except TocsinError as error:
                if not self._subscriber.disconnected(error):
                    self._over = error.problem
                    return
                # A connector that is down has its own pauses.
                is_paced = isinstance(error, CannotReachBroker) and not self._connector.is_open
            else:
                return
            attempt = 0 if self._loop.time() - began_s >= STEADY_S else attempt + 1
            if not is_paced:
                await asyncio.sleep(pause_s(attempt, self._chance()))

    async def _attempt_once(self) -> None:
        """One subscription, until it breaks, which raises; returns if it is over for good."""
        connector = self._connector
        try:
            remote = await self._subscribe()
        except (BrokerRefused, CannotReachBroker):
            if self._connector is connector:
                raise
            remote = await self._subscribe()  # alone now
        self._was_agreed = True
        self._hang_ups = 0
        why = await asyncio.shield(remote.gone)
        if remote.was_ended and not self._subscriber.retries_after_end:
            self._over = why
            return
        raise cannot_reach(self._connector.address, why)

    async def _subscribe(self) -> RemoteSubscription:
        """Where the peer agreed; raises if it did not."""
        is_urgent, self._is_first = self._is_first, False
        outgoing = await self._connector.open(is_urgent=is_urgent)
        remote = await self._agreed(outgoing, is_plain=outgoing.is_plain)
        if remote is None:
            if not outgoing.is_open:
                outgoing = await self._connector.open(is_plain=True, is_urgent=True)
            remote = await self._agreed(outgoing, is_plain=True)
        assert remote is not None, "a request without a filter is the last try"
        return remote

    async def _agreed(
        self, outgoing: OutgoingConnection, *, is_plain: bool
    ) -> RemoteSubscription | None:
        """Where the peer agreed; None if one without the filter may do; raises otherwise."""
        connector = self._connector
        remote = self._remote = outgoing.ask(self._subscriber, is_plain=is_plain)
        try:
            async with asyncio.timeout(connector.timeout_s):
                outcome = await asyncio.shield(remote.replied)
        except TimeoutError:
            remote.unsubscribe()
            if not outgoing.users:
                outgoing.abort("it did not reply")
            why = f"it did not reply to a SubscribeRequest within {connector.timeout_s:g} s"
            raise cannot_reach(connector.address, why) from None
        if outcome is True:
            self._was_understood = self._was_understood or not is_plain
            connector.is_tocsin = connector.is_tocsin or remote.subscription.agreed is not None
            return remote
        if isinstance(outcome, BrokerRefused) and is_ours(outcome):
            raise outcome
        can_ask_plainer = self._subscriber.has_filter and not is_plain
        if can_ask_plainer and not (self._was_understood or connector.is_tocsin):
            return None
        self._record_error(outgoing, is_refusal=isinstance(outcome, BrokerRefused))
        if isinstance(outcome, BrokerRefused):
            raise outcome
        raise cannot_reach(connector.address, remote.gone.result())

    def _record_error(self, outgoing: OutgoingConnection, *, is_refusal: bool) -> None:
        """It may be this one, where others are, that the peer does not bear."""
        if not outgoing.was_agreed:
            return
        self._hang_ups += 1
        # One who agreed before and hangs up may just have been killed.
        if is_refusal or not self._was_agreed or self._hang_ups >= HANG_UPS_MAX:
            self._hang_ups = 0
            self.move()

    def _done(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.error("a subscription at %s failed", self._connector.address, exc_info=error)
        self._connector.subscribers.discard(self)
        self._subscriber.subscription_ended(
            self._over or (f"it failed: {error!r}" if error else "it ended")
        )
