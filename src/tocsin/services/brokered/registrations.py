"""The registrations of publishers, kept with the log and found again after a restart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from tocsin.access.decision import Action
from tocsin.access.session import Session, internal
from tocsin.broker.port import BrokerPort
from tocsin.errors import TooManySubscriptions
from tocsin.event.subscription import SOMEBODY, Owner
from tocsin.services.soap.context import Topics
from tocsin.wire.wsn_brokered.registration import (
    Registration,
    concrete_topic,
    from_bytes,
    to_bytes,
)

KEY: Final = "registration/"
STATE: Final = internal("brokered")
ANY_TOPIC: Final = "*"
REGISTRATIONS_MAX: Final = 1_000
DEMANDED_MAX: Final = 1_000  # topics of publishers on demand: each is a subscription of ours


class Registrations:
    """Every registration there is, by its id."""

    def __init__(self, port: BrokerPort, topics: Topics) -> None:
        self._port = port
        self._topics = topics
        self._by_id = {
            key.removeprefix(KEY): from_bytes(value)
            for key, value in port.own(STATE).kept(KEY).items()
        }
        self.version = 0  # grows when one comes or goes
        for registration in self:
            self._announce(registration)
        port.own(STATE).count_registrations(KEY, self._owner_of)

    def __iter__(self) -> Iterator[Registration]:
        return iter(list(self._by_id.values()))

    def find(self, registration_id: str | None) -> Registration | None:
        """The registration, unless its time is over."""
        found = self._by_id.get(registration_id or "")
        return None if found is None or found.is_over(self._port.runtime.now_ns()) else found

    def check(self, session: Session, action: Action, registration_id: str | None) -> None:
        """Raise NotAllowed alike for one that is not there and for somebody else's."""
        owner = self._owner_of(registration_id)
        self._port.check(session, action, f"{KEY}{registration_id}", owner)

    def _owner_of(self, registration_id: str | None) -> Owner | None:
        """Who registered it; None if it is not there."""
        found = self.find(registration_id)
        return None if found is None else found.owner or SOMEBODY

    async def add(self, session: Session, registration: Registration) -> None:
        """Keep one more; it is there when it is on disk."""
        self._may_publish(session, registration)
        if session.is_signed_in:
            registration = msgspec.structs.replace(registration, owner=session.owner)
        self._check_room(registration)
        self._by_id[registration.id] = registration  # at once, so that the next one counts it
        try:
            with self._port.registering(session, f"{KEY}{registration.id}"):
                await self._keep(registration.id, to_bytes(registration))
        except BaseException:
            del self._by_id[registration.id]
            raise
        self.version += 1
        self._announce(registration)

    async def extend(
        self, session: Session, registration: Registration, expires_ns: int | None
    ) -> None:
        """Have it end at another time."""
        self.check(session, Action.MANAGE, registration.id)
        changed = msgspec.structs.replace(registration, expires_ns=expires_ns)
        await self._keep(changed.id, to_bytes(changed))
        if changed.id in self._by_id:
            self._by_id[changed.id] = changed

    async def end(self, session: Session, registration: Registration) -> None:
        self.check(session, Action.MANAGE, registration.id)
        await self._keep(registration.id, None)
        if self._by_id.pop(registration.id, None) is not None:
            self.version += 1

    def _check_room(self, registration: Registration) -> None:
        if len(self._by_id) >= REGISTRATIONS_MAX:
            raise TooManySubscriptions(
                f"{REGISTRATIONS_MAX} publishers are registered",
                remedy="Destroy registrations that are not needed, or let them expire.",
            )
        demanded = sum(len(each.topics) for each in self._by_id.values() if each.demand)
        if registration.demand and demanded + len(registration.topics) > DEMANDED_MAX:
            raise TooManySubscriptions(
                f"publishers on demand have {demanded} topics already",
                remedy="Register fewer topics, or publish without demand.",
            )

    def _may_publish(self, session: Session, registration: Registration) -> None:
        """Raise NotAllowed unless the session may publish on every topic of the registration; on
        any, if it names none. An expression for several topics is the resource as it is."""
        if not registration.topics:
            self._port.check(session, Action.PUBLISH, ANY_TOPIC)
        for expression in registration.topics:
            topic = concrete_topic(expression)
            resource = expression.text if topic is None else topic.path
            self._port.check(session, Action.PUBLISH, resource)

    async def _keep(self, registration_id: str, value: bytes | None) -> None:
        await self._port.keep(STATE, f"{KEY}{registration_id}", value)

    def _announce(self, registration: Registration) -> None:
        for topic in map(concrete_topic, registration.topics):
            if topic is not None:
                self._topics.announce(topic)
