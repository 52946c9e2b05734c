"""Board: the aggregate profile, and the publishers that are told of it when it changes.

Publishers are on a list that is kept with the log. One that cannot be reached is off the list; it
is asked again, ever more rarely, and is on it again when it answers, with the profile as it is by
then. Nothing is sent to a publisher that it has already been told.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

import msgspec

from tocsin.broker.broker import Broker
from tocsin.broker.delivery.trust import host_of
from tocsin.broker.effects import Level, Token
from tocsin.drivers.push.letters import Letters
from tocsin.errors import NoSuchPublisher, TocsinError, TooManySubscriptions
from tocsin.wire.blackboard.messages import Profile

KEY: Final = "blackboard/publisher/"
PUBLISHERS_MAX: Final = 10_000
PUBLISHERS_PER_HOST_MAX: Final = 256  # nobody asks a host whether it wants to be told
TELL_S: Final = 10.0  # how long a publisher may take to hear of a profile
FIRST_DELAY_S: Final = 1.0
DELAY_S_MAX: Final = 300.0
FORGET_AFTER_S: Final = 3 * 86_400.0  # a publisher that was never there in all that time
TOLD_AT_ONCE_MAX: Final = 32
LATE_AT_ONCE_MAX: Final = 8  # of those that were away: they may hang, and the others do not wait
WAITERS_MAX: Final = 10_000

_encode = msgspec.json.Encoder().encode
_HEADERS: Final[Mapping[str, str]] = {"content-type": "application/json"}


class House(Protocol):
    """What the board needs of the node that it is a part of."""

    loop: asyncio.AbstractEventLoop
    broker: Broker
    letters: Letters
    on_interest: list[Callable[[], None]]
    stopping: bool

    def note(self, level: Level, message: str, **fields: object) -> None: ...

    async def ask(self, call: Callable[[Token, int], None]) -> Any: ...


class Registered(msgspec.Struct, frozen=True):
    """A publisher as it is kept."""

    id: str
    address: str


class Publisher:
    """A registered publisher, and how it fares."""

    __slots__ = ("away_since_s", "delay_s", "registered", "retry", "telling", "told")

    def __init__(self, registered: Registered) -> None:
        self.registered = registered
        self.told = 0  # the version of the profile that it has taken
        self.telling: asyncio.Task[None] | None = None
        self.away_since_s: float | None = None
        self.delay_s = FIRST_DELAY_S
        self.retry: asyncio.TimerHandle | None = None


class Board:
    """Who is told of the aggregate profile, and who waits for another one."""

    def __init__(self, node: House) -> None:
        self._node = node
        self._publishers: dict[str, Publisher] = {}
        self._by_address: dict[str, str] = {}
        self._saving: dict[str, asyncio.Future[None]] = {}  # by address, until it is on disk
        self._waiters: set[asyncio.Future[None]] = set()
        self._turns = asyncio.Semaphore(TOLD_AT_ONCE_MAX)
        self._late_turns = asyncio.Semaphore(LATE_AT_ONCE_MAX)
        self._closed = False
        self.on_profile: list[Callable[[Profile], None]] = []  # of sockets that are open
        for value in node.broker.kept(KEY).values():
            self._list(msgspec.json.decode(value, type=Registered))
        self._version = node.broker.interest.profile_version()  # of the profile last looked at
        node.on_interest.append(self._look)
        for publisher in self._publishers.values():
            self._tell(publisher)  # whatever it was told before the restart

    # The profile

    @property
    def profile(self) -> Profile:
        return self._node.broker.interest.profile()

    def _look(self) -> None:
        """Somebody wants something else; that may or may not make another profile.

        While the broker stops its readers leave, and will be back: a publisher that heard of it
        would leave out what they want meanwhile.
        """
        if self._node.stopping:
            return
        version = self._node.broker.interest.profile_version()
        if version == self._version:
            return
        self._version = version
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()
        for listener in list(self.on_profile):  # one that is told may turn out to be gone
            listener(self.profile)
        for publisher in self._publishers.values():
            self._tell(publisher)

    async def profile_after(self, version: int | None, wait_s: float) -> Profile:
        """The profile once it is another than this version, or after the wait."""
        if version == self.profile.version and wait_s > 0 and not self._closed:
            if len(self._waiters) >= WAITERS_MAX:
                raise TooManySubscriptions(
                    f"{WAITERS_MAX} publishers are waiting for the profile",
                    remedy="Ask without wait.",
                )
            waiter: asyncio.Future[None] = self._node.loop.create_future()
            self._waiters.add(waiter)
            try:
                await asyncio.wait_for(waiter, wait_s)
            except TimeoutError:
                pass
            finally:
                self._waiters.discard(waiter)
        return self.profile

    # Publishers

    def publishers(self) -> list[Publisher]:
        return list(self._publishers.values())

    async def register(self, address: str) -> Registered:
        """Put a publisher on the list, or find it there; it is told the profile in the answer."""
        while (saving := self._saving.get(address)) is not None:
            await asyncio.wait([saving])  # of two with one address the second finds the first
        known = self._by_address.get(address)
        if known is None:
            publisher = await self._registered(address)
        else:
            publisher = self._publishers[known]
            self._is_there(publisher)
        publisher.told = self.profile.version
        return publisher.registered

    async def _registered(self, address: str) -> Publisher:
        if len(self._publishers) + len(self._saving) >= PUBLISHERS_MAX:
            raise TooManySubscriptions(
                f"{PUBLISHERS_MAX} publishers are registered",
                remedy="Unregister some, or use GET /blackboard/profile.",
            )
        host = host_of(address)
        if sum(host == host_of(known) for known in self._by_address) >= PUBLISHERS_PER_HOST_MAX:
            raise TooManySubscriptions(
                f"{PUBLISHERS_PER_HOST_MAX} publishers are registered at {host}",
                remedy="Use GET /blackboard/profile, or the socket, from there.",
            )
        registered = Registered(secrets.token_hex(12), address)
        saving = self._saving[address] = self._node.loop.create_future()
        try:
            await self._keep(registered.id, _encode(registered))
        finally:
            del self._saving[address]
            saving.set_result(None)
        return self._list(registered)

    async def unregister(self, publisher_id: str) -> None:
        if publisher_id not in self._publishers:
            raise NoSuchPublisher(
                f"there is no publisher {publisher_id[:64]!r}",
                remedy="GET /blackboard/publishers lists all.",
            )
        await self._keep(publisher_id, None)
        self._unlist(publisher_id)

    def _list(self, registered: Registered) -> Publisher:
        publisher = self._publishers[registered.id] = Publisher(registered)
        self._by_address[registered.address] = registered.id
        return publisher

    def _unlist(self, publisher_id: str) -> None:
        publisher = self._publishers.pop(publisher_id, None)
        if publisher is None:
            return
        address = publisher.registered.address
        if self._by_address.get(address) == publisher_id:
            del self._by_address[address]
        if publisher.retry is not None:
            publisher.retry.cancel()
        if publisher.telling is not None:
            publisher.telling.cancel()

    async def _keep(self, publisher_id: str, value: bytes | None) -> None:
        broker = self._node.broker
        await self._node.ask(
            lambda token, now_ns: broker.keep(KEY + publisher_id, value, token, now_ns)
        )

    # Telling

    def _tell(self, publisher: Publisher) -> None:
        """Tell it now, unless it is being told or waited for: it then hears the latest."""
        if publisher.telling is None and publisher.retry is None and not self._closed:
            publisher.telling = self._node.loop.create_task(self._told(publisher))

    async def _told(self, publisher: Publisher) -> None:
        problem = ""
        turns = self._turns if publisher.away_since_s is None else self._late_turns
        try:
            async with turns:
                while not problem and publisher.told != (profile := self.profile).version:
                    problem = await self._posted(publisher.registered.address, profile)
                    if not problem:
                        publisher.told = profile.version
                        self._is_there(publisher)
        finally:
            publisher.telling = None
        if problem:
            self._is_away(publisher, problem)

    async def _posted(self, address: str, profile: Profile) -> str:
        """Why it was not taken; empty if it was."""
        try:
            answer = await self._node.letters.post(
                address, _encode(profile), _HEADERS, timeout_s=TELL_S
            )
        except TocsinError as error:
            return error.problem
        return "" if 200 <= answer.status < 300 else f"it answered {answer.status}"

    def _is_there(self, publisher: Publisher) -> None:
        if publisher.retry is not None:
            publisher.retry.cancel()
            publisher.retry = None
        if publisher.away_since_s is not None:
            publisher.away_since_s = None
            self._node.note("info", "a publisher is back", address=publisher.registered.address)
        publisher.delay_s = FIRST_DELAY_S

    def _is_away(self, publisher: Publisher, problem: str) -> None:
        loop, registered = self._node.loop, publisher.registered
        if self._closed or registered.id not in self._publishers:
            return
        if publisher.away_since_s is None:
            publisher.away_since_s = loop.time()
            self._node.note(
                "warning",
                "a publisher was removed from the list",
                address=registered.address,
                why=problem,
            )
        elif loop.time() - publisher.away_since_s > FORGET_AFTER_S:
            self._node.note("warning", "a publisher was removed", address=registered.address)
            self._unlist(registered.id)
            loop.create_task(self._keep(registered.id, None))
            return
        publisher.retry = loop.call_later(publisher.delay_s, self._again, publisher)
        publisher.delay_s = min(publisher.delay_s * 2, DELAY_S_MAX)

    def _again(self, publisher: Publisher) -> None:
        publisher.retry = None
        self._tell(publisher)

    def close(self) -> None:
        self._closed = True
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        for publisher in self._publishers.values():
            if publisher.retry is not None:
                publisher.retry.cancel()
            if publisher.telling is not None:
                publisher.telling.cancel()
