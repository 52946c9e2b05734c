"""Link: keeps one subscription with a peer that we called up, from one connection to the next.

All links with a peer share a line. What becomes of one is no matter of the others: who is refused
asks again later, on the same connection if others have it.

The paper has nothing but the parameters in a request. Our options are attributes, which who does
not know them passes over; a filter is an element, and a peer may hang up on it. One that never
agreed to ours, and hangs up or refuses in words that are not ours, is asked once more without the
filter, and with the options all the same: it may be a broker that died just then. One that agreed
to a subscription, and will have no second one on that connection, is asked on another.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from tocsin.client.gma.call import Call, Member, Place
from tocsin.client.gma.dialing import cannot_reach, is_ours
from tocsin.client.gma.line import STEADY_S, Line
from tocsin.client.gma.schedule import pause_s
from tocsin.errors import BrokerRefused, CannotReachBroker, TocsinError

GOODBYE_S_MAX: Final = 2.0  # for the reply to our goodbye
HANG_UPS_MAX: Final = 3  # at our request, on a connection that others share

log = logging.getLogger("tocsin.gma")


class Link:
    """Of the loop's thread alone."""

    def __init__(
        self, line: Line, member: Member, chance: Callable[[], float] = random.random
    ) -> None:
        self._line = line
        self._member = member
        self._chance = chance
        self._loop = asyncio.get_running_loop()
        self._over: str | None = None
        self._place: Place | None = None
        self._is_first = True
        self._was_agreed = False
        self._was_understood = False  # with its filter, if there is one
        self._hang_ups = 0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Connect, subscribe, and do so again whenever it breaks, until it is over."""
        self._line.links.add(self)
        self._task = self._loop.create_task(self._run())
        self._task.add_done_callback(self._done)

    async def end(self, why: str) -> None:
        """Take leave of the peer, if it is there, and end."""
        if self._over is not None:
            return
        self._over = why
        assert self._task is not None, "it was started"
        try:
            goodbye = None if self._place is None else self._place.leave()
            if goodbye is not None:
                with suppress(TimeoutError):
                    async with asyncio.timeout(GOODBYE_S_MAX):
                        await goodbye
        finally:
            self._task.cancel()

    def move(self) -> None:
        """Go on with a connection of its own, because the others should not wait for this one."""
        log.debug("a subscription at %s gets a connection of its own", self._line.address)
        self._line.links.discard(self)
        self._line = self._line.another()
        self._line.links.add(self)
        self._is_first = True
        if self._place is not None:
            self._place.leave()

    async def _run(self) -> None:
        attempt = 0
        while self._over is None:
            began_s = self._loop.time()
            try:
                await self._once()
            except TocsinError as error:
                if not self._member.lost(error):
                    self._over = error.problem
                    return
                # A line that is down has its own pauses.
                is_paced = isinstance(error, CannotReachBroker) and not self._line.is_open
            else:
                return
            attempt = 0 if self._loop.time() - began_s >= STEADY_S else attempt + 1
            if not is_paced:
                await asyncio.sleep(pause_s(attempt, self._chance()))

    async def _once(self) -> None:
        """One subscription, until it breaks, which raises; returns if it is over for good."""
        line = self._line
        try:
            place = await self._subscribe()
        except (BrokerRefused, CannotReachBroker):
            if self._line is line:
                raise
            place = await self._subscribe()  # alone now
        self._was_agreed = True
        self._hang_ups = 0
        why = await asyncio.shield(place.gone)
        if place.was_ended and not self._member.comes_back:
            self._over = why
            return
        raise cannot_reach(self._line.address, why)

    async def _subscribe(self) -> Place:
        """Where the peer agreed; raises if it did not."""
        is_urgent, self._is_first = self._is_first, False
        call = await self._line.open(is_urgent=is_urgent)
        place = await self._agreed(call, is_plain=call.is_plain)
        if place is None:
            if not call.connection.is_open:
                call = await self._line.open(is_plain=True, is_urgent=True)
            place = await self._agreed(call, is_plain=True)
        assert place is not None, "there are no plainer words"
        return place

    async def _agreed(self, call: Call, *, is_plain: bool) -> Place | None:
        """Where the peer agreed; None if plainer words are worth a try; raises otherwise."""
        line = self._line
        place = self._place = call.ask(self._member, is_plain=is_plain)
        try:
            async with asyncio.timeout(line.timeout_s):
                outcome = await asyncio.shield(place.replied)
        except TimeoutError:
            place.leave()
            if not call.users:
                call.connection.abort("it did not reply")
            why = f"it did not reply to a SubscribeRequest within {line.timeout_s:g} s"
            raise cannot_reach(line.address, why) from None
        if outcome is True:
            self._was_understood = self._was_understood or not is_plain
            line.knows_us = line.knows_us or place.subscription.agreed is not None
            return place
        if isinstance(outcome, BrokerRefused) and is_ours(outcome):
            raise outcome
        can_ask_plainer = self._member.has_filter and not is_plain
        if can_ask_plainer and not (self._was_understood or line.knows_us):
            return None
        self._blame(call, is_refusal=isinstance(outcome, BrokerRefused))
        if isinstance(outcome, BrokerRefused):
            raise outcome
        raise cannot_reach(line.address, place.gone.result())

    def _blame(self, call: Call, *, is_refusal: bool) -> None:
        """It may be this one, where others are, that the peer does not bear."""
        if not call.was_agreed:
            return
        self._hang_ups += 1
        # One who agreed before and hangs up may just have been killed.
        if is_refusal or not self._was_agreed or self._hang_ups >= HANG_UPS_MAX:
            self._hang_ups = 0
            self.move()

    def _done(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.error("a subscription at %s failed", self._line.address, exc_info=error)
        self._line.links.discard(self)
        self._member.over(self._over or (f"it failed: {error!r}" if error else "all is over"))
