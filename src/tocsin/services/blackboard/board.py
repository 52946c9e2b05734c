"""Board: the aggregate profile, and the publishers that it is sent to when it changes.

Publishers are on a list that is kept with the log. One that cannot be reached is off the list; it
is asked again, ever more rarely, and is on it again when it answers, with the profile as it is by
then. Nothing is sent to a publisher that it already has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final

import msgspec

from tocsin.access.decision import Action
from tocsin.access.session import Session, as_owner, internal
from tocsin.broker.delivery.address import host_of
from tocsin.broker.port import BrokerPort
from tocsin.broker.runtime import Semaphore, Signal, Task, Timer
from tocsin.errors import NoSuchPublisher, TocsinError, TooManySubscriptions
from tocsin.event.subscription import SOMEBODY, Owner
from tocsin.wire.blackboard.messages import Profile

KEY: Final = "blackboard/publisher/"
PROFILE: Final = "blackboard/profile"
PUBLISHERS_MAX: Final = 10_000
PUBLISHERS_PER_HOST_MAX: Final = 256  # no host is asked whether it wants them
SEND_S: Final = 10.0  # how long a publisher may take to accept a profile
FIRST_DELAY_S: Final = 1.0
DELAY_S_MAX: Final = 300.0
FORGET_AFTER_S: Final = 3 * 86_400.0  # a publisher that was never there in all that time
SENT_AT_ONCE_MAX: Final = 32
LATE_AT_ONCE_MAX: Final = 8  # of those that were away: they may hang, and the others do not wait
WAITERS_MAX: Final = 10_000

_BLACKBOARD: Final = internal("blackboard")
_encode = msgspec.json.Encoder().encode
_HEADERS: Final[Mapping[str, str]] = {"content-type": "application/json"}


class Registered(msgspec.Struct, frozen=True):
    """A publisher as it is kept."""

    id: str
    address: str
    owner: Owner | None = None


class Publisher:
    """A registered publisher, and how it fares."""

    __slots__ = (
        "away_since_s",
        "delay_s",
        "is_sending",
        "registered",
        "retry",
        "sending",
        "sent_version",
    )

    def __init__(self, registered: Registered) -> None:
        self.registered = registered
        self.sent_version = 0  # of the profile that it has taken
        self.is_sending = False
        self.sending: Task | None = None
        self.away_since_s: float | None = None
        self.delay_s = FIRST_DELAY_S
        self.retry: Timer | None = None


class Board:
    """Who is sent the aggregate profile, and who waits for another one."""

    def __init__(self, port: BrokerPort) -> None:
        self._port = port
        self._own = port.own(_BLACKBOARD)
        self._runtime = port.runtime
        self._publishers: dict[str, Publisher] = {}
        self._by_address: dict[str, str] = {}
        self._saving: dict[str, list[Signal]] = {}  # who waits until an address is on disk
        self._waiters: set[Signal] = set()
        self._turns = Semaphore(port.runtime, SENT_AT_ONCE_MAX)
        self._late_turns = Semaphore(port.runtime, LATE_AT_ONCE_MAX)
        self._closed = False
        self.on_profile: list[Callable[[Profile], None]] = []  # of sockets that are open
        for value in self._own.kept(KEY).values():
            self._list(msgspec.json.decode(value, type=Registered))
        self._own.count_registrations(KEY, self._owner_of)
        self._version = self._own.interest.profile_version()  # of the profile last looked at
        for publisher in self._publishers.values():
            self._send(publisher)  # whatever it was sent before the restart

    # The profile

    @property
    def profile(self) -> Profile:
        return self._own.interest.profile()

    def check_read(self, session: Session) -> None:
        """Raise NotAllowed if the session may not read the profile."""
        self._port.check(session, Action.READ, PROFILE)

    def may_read(self, session: Session) -> bool:
        return self._port.may(session, Action.READ, PROFILE)

    def interest_changed(self) -> None:
        """Somebody wants something else; that may or may not make another profile.

        While the broker stops its readers leave, and will be back: a publisher that was notified
        would leave out what they want meanwhile.
        """
        if self._runtime.is_stopping:
            return
        version = self._own.interest.profile_version()
        if version == self._version:
            return
        self._version = version
        for waiter in self._waiters:
            waiter.answer(None)
        self._waiters.clear()
        for listener in list(self.on_profile):  # one that is called may turn out to be gone
            listener(self.profile)
        for publisher in self._publishers.values():
            self._send(publisher)

    async def profile_after(self, session: Session, version: int | None, wait_s: float) -> Profile:
        """The profile once it is another than this version, or after the wait."""
        self.check_read(session)
        if version == self.profile.version and wait_s > 0 and not self._closed:
            if len(self._waiters) >= WAITERS_MAX:
                raise TooManySubscriptions(
                    f"{WAITERS_MAX} publishers are waiting for the profile",
                    remedy="Ask without wait.",
                )
            waiter = self._runtime.signal()
            self._waiters.add(waiter)
            timer = self._runtime.call_later(wait_s, lambda: waiter.answer(None))
            try:
                await waiter
            finally:
                timer.cancel()
                self._waiters.discard(waiter)
            self.check_read(session)  # the right may have ended meanwhile
        return self.profile

    # Publishers

    def publishers(self, session: Session) -> list[Publisher]:
        """All, or those that the caller registered."""
        if self._port.may(session, Action.READ, "blackboard/publisher/*"):
            return list(self._publishers.values())
        self._port.check(session, Action.READ, "blackboard/publisher/own")
        # Not each of its name is its own to a token with rights of its own.
        return [
            each
            for each in self._publishers.values()
            if session.is_owner(owner := each.registered.owner)
            and self._port.may(session, Action.READ, KEY + each.registered.id, owner)
        ]

    async def register(self, session: Session, address: str) -> Registered:
        """Put a publisher on the list, or find it there; the answer has the profile."""
        self._check(session, address, self._by_address.get(address))
        while (saving := self._saving.get(address)) is not None:
            saved = self._runtime.signal()  # of two with one address the second finds the first
            saving.append(saved)
            await saved
        known = self._by_address.get(address)
        self._check(session, address, known)
        if known is None:
            publisher = await self._registered(session, address)
        else:
            publisher = self._publishers[known]
            self._is_there(publisher)
        publisher.sent_version = self.profile.version
        return publisher.registered

    def _check(self, session: Session, named: str, publisher_id: str | None) -> None:
        """Raise NotAllowed alike for one that is not there and for somebody else's."""
        owner = self._owner_of(publisher_id or "")
        self._port.check(session, Action.MANAGE, f"blackboard/publisher/{named}", owner)

    def _owner_of(self, publisher_id: str) -> Owner | None:
        """Who registered it; None if it is not there."""
        found = self._publishers.get(publisher_id)
        return None if found is None else found.registered.owner or SOMEBODY

    async def _registered(self, session: Session, address: str) -> Publisher:
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
        owner = session.owner if session.is_signed_in else None
        registered = Registered(self._runtime.new_id(), address, owner)
        self._saving[address] = []
        try:
            with self._port.registering(session, KEY + registered.id):
                await self._keep(registered.id, _encode(registered))
        finally:
            for waiting in self._saving.pop(address):
                waiting.answer(None)
        return self._list(registered)

    async def unregister(self, session: Session, publisher_id: str) -> None:
        self._check(session, publisher_id, publisher_id)
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
        if publisher.sending is not None:
            publisher.sending.cancel()

    async def _keep(self, publisher_id: str, value: bytes | None) -> None:
        await self._port.keep(_BLACKBOARD, KEY + publisher_id, value)

    async def _forget(self, publisher_id: str) -> None:
        with suppress(TocsinError):  # it is found and asked again after a restart
            await self._keep(publisher_id, None)

    # Sending the profile

    def _send(self, publisher: Publisher) -> None:
        """Send it now, unless that is under way or waited for: it then gets the latest."""
        if not publisher.is_sending and publisher.retry is None and not self._closed:
            publisher.is_sending = True
            publisher.sending = self._runtime.spawn(self._send_profile(publisher))

    async def _send_profile(self, publisher: Publisher) -> None:
        problem = ""
        turns = self._turns if publisher.away_since_s is None else self._late_turns
        try:
            async with turns:
                while (
                    not problem
                    and publisher.sent_version != (profile := self.profile).version
                    and self._may_be_sent(publisher.registered)
                ):
                    problem = await self._posted(publisher.registered.address, profile)
                    if not problem:
                        publisher.sent_version = profile.version
                        self._is_there(publisher)
        finally:
            publisher.is_sending = False
        if problem:
            self._is_away(publisher, problem)

    def _may_be_sent(self, registered: Registered) -> bool:
        """Whether whoever registered it may still go on with it. It stays on the list, so that it
        is sent the next profile when the right is there again."""
        session, owner = as_owner(registered.owner, "blackboard"), registered.owner or SOMEBODY
        resource = f"blackboard/publisher/{registered.id}"
        return self._port.may(session, Action.READ, resource, owner)

    async def _posted(self, address: str, profile: Profile) -> str:
        """Why it was not taken; empty if it was."""
        try:
            answer = await self._runtime.post(address, _encode(profile), _HEADERS, timeout_s=SEND_S)
        except TocsinError as error:
            return error.problem
        return "" if 200 <= answer.status < 300 else f"it answered {answer.status}"

    def _is_there(self, publisher: Publisher) -> None:
        if publisher.retry is not None:
            publisher.retry.cancel()
            publisher.retry = None
        if publisher.away_since_s is not None:
            publisher.away_since_s = None
            self._runtime.note("info", "a publisher is back", address=publisher.registered.address)
        publisher.delay_s = FIRST_DELAY_S

    def _is_away(self, publisher: Publisher, problem: str) -> None:
        runtime, registered = self._runtime, publisher.registered
        if self._closed or registered.id not in self._publishers:
            return
        if publisher.away_since_s is None:
            publisher.away_since_s = runtime.elapsed_s()
            self._runtime.note(
                "warning",
                "a publisher was removed from the list",
                address=registered.address,
                why=problem,
            )
        elif runtime.elapsed_s() - publisher.away_since_s > FORGET_AFTER_S:
            self._runtime.note("warning", "a publisher was removed", address=registered.address)
            self._unlist(registered.id)
            runtime.spawn(self._forget(registered.id))
            return
        publisher.retry = runtime.call_later(publisher.delay_s, partial(self._again, publisher))
        publisher.delay_s = min(publisher.delay_s * 2, DELAY_S_MAX)

    def _again(self, publisher: Publisher) -> None:
        publisher.retry = None
        self._send(publisher)

    def close(self) -> None:
        self._closed = True
        for waiter in self._waiters:
            waiter.answer(None)
        for publisher in self._publishers.values():
            if publisher.retry is not None:
                publisher.retry.cancel()
            if publisher.sending is not None:
                publisher.sending.cancel()
