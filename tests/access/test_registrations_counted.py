"""What is registered counts for whoever registered it: after a restart too, until its time is over
or it is withdrawn; and what is given to somebody counts for that one."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, Protocol

import pytest
from principals import as_

from manual_runtime import ManualRuntime
from tocsin.access.quotas.quotas import Quotas
from tocsin.access.quotas.rules import Quota, QuotaRule
from tocsin.access.session import Session, anonymous
from tocsin.errors import DiskFull, QuotaReached
from tocsin.event.filter import EVERYTHING
from tocsin.event.instant import NS_PER_S
from tocsin.event.subscription import Change, Kind, Owner, Subscription
from tocsin.overlay.time_of_day import NO_ZONES
from tocsin.services.blackboard.board import Board
from tocsin.services.brokered.registrations import Registrations
from tocsin.services.directory.directory import Directory
from tocsin.services.discovery.factory import open_discovery
from tocsin.wire.api.resource_request import read_discovery, read_resource
from tocsin.wire.directory.registration import read_registration
from tocsin.wire.wsn_brokered.registration import Registration

ANN, BOB = as_("ann"), as_("bob")
LEASE_S = 60


def everybody(**limits: float) -> QuotaRule:
    return QuotaRule({Quota(name): each for name, each in limits.items()}, principal="*")


def runtime(*rules: QuotaRule) -> ManualRuntime:
    return ManualRuntime(quotas=Quotas(rules))


class Registering(Protocol):
    """A service where clients register something by a name."""

    has_leases: bool

    def register(self, session: Session, name: str) -> Awaitable[object]: ...

    def withdraw(self, session: Session, name: str) -> Awaitable[object]: ...


class InResources:
    has_leases = True

    def __init__(self, runtime: ManualRuntime) -> None:
        self._resources = open_discovery(runtime.port, "b1", NO_ZONES).resources

    async def register(self, session: Session, name: str) -> None:
        asked = {
            "id": name,
            "model": "static",
            "advertisement": "[a,=,1]",
            "lease": f"PT{LEASE_S}S",
        }
        await self._resources.register(session, read_resource(asked))

    async def withdraw(self, session: Session, name: str) -> None:
        await self._resources.withdraw(session, name)


class InDirectory:
    has_leases = True

    def __init__(self, runtime: ManualRuntime) -> None:
        self._directory = Directory(runtime.port)

    async def register(self, session: Session, name: str) -> None:
        asked = {
            "kind": "producer",
            "name": name,
            "host": "h",
            "address": "gma://h:9",
            "events": ["Load"],
            "lease": LEASE_S,
        }
        await self._directory.register(session, read_registration(asked), name)

    async def withdraw(self, session: Session, name: str) -> None:
        await self._directory.withdraw(session, name)


class AsPublishers:
    has_leases = False

    def __init__(self, runtime: ManualRuntime) -> None:
        self._board = Board(runtime.port)

    async def register(self, session: Session, name: str) -> None:
        await self._board.register(session, f"http://127.0.0.1/{name}")

    async def withdraw(self, session: Session, name: str) -> None:
        every = {
            each.registered.address: each.registered.id for each in self._board.publishers(ANN)
        }
        await self._board.unregister(session, every[f"http://127.0.0.1/{name}"])


class Announced:
    def announce(self, topic: object) -> None: ...


class AtBrokered:
    has_leases = True

    def __init__(self, runtime: ManualRuntime) -> None:
        self._runtime = runtime
        self._registrations = Registrations(runtime.port, Announced())  # type: ignore[arg-type]

    async def register(self, session: Session, name: str) -> None:
        ends_ns = self._runtime.now_ns() + LEASE_S * NS_PER_S
        registration = Registration(
            id=name, spec="wsn13", soap="1.1", wsa="", address="http://h", expires_ns=ends_ns
        )
        await self._registrations.add(session, registration)

    async def withdraw(self, session: Session, name: str) -> None:
        found = self._registrations.find(name)
        assert found is not None
        await self._registrations.end(session, found)


KINDS: list[type[Any]] = [InResources, InDirectory, AsPublishers, AtBrokered]
each_kind = pytest.mark.parametrize("kind", KINDS)
with_lease = pytest.mark.parametrize("kind", [each for each in KINDS if each.has_leases])


@dataclass
class Site:
    """A service that clients register at, and its broker."""

    runtime: ManualRuntime
    service: Registering

    def register(self, session: Session, name: str) -> bool:
        try:
            self.runtime.run(self.service.register(session, name))
        except QuotaReached:
            return False
        return True

    def withdraw(self, session: Session, name: str) -> None:
        self.runtime.run(self.service.withdraw(session, name))


def site(kind: type[Any], *rules: QuotaRule) -> Site:
    here = runtime(*rules)
    return Site(here, kind(here))


def after_a_crash(kind: type[Any], former: Site, *rules: QuotaRule) -> Site:
    here = former.runtime.restarted(Quotas(rules))
    return Site(here, kind(here))


@each_kind
def test_what_is_registered_counts_after_a_restart(kind: type[Any]) -> None:
    first = site(kind, everybody(registrations=2))
    assert [first.register(ANN, name) for name in "abc"] == [True, True, False]

    second = after_a_crash(kind, first, everybody(registrations=2))

    assert not second.register(ANN, "c")
    assert second.register(BOB, "d")
    second.withdraw(ANN, "a")
    assert second.register(ANN, "c")
    assert not second.register(ANN, "e")


@each_kind
def test_what_is_there_already_is_changed_and_not_one_more(kind: type[Any]) -> None:
    first = site(kind, everybody(registrations=1))
    assert first.register(ANN, "a")

    if kind is not AtBrokered:  # who registers there is given a new id each time
        assert first.register(ANN, "a")
        assert after_a_crash(kind, first, everybody(registrations=1)).register(ANN, "a")


@with_lease
def test_what_has_run_out_counts_no_more_though_it_is_still_on_disk(kind: type[Any]) -> None:
    first = site(kind, everybody(registrations=1))
    assert first.register(ANN, "a")
    second = after_a_crash(kind, first, everybody(registrations=1))
    second.runtime._now_ns += LEASE_S * NS_PER_S  # and no sweep has come

    assert second.runtime.broker.kept("")
    assert second.register(ANN, "b")
    assert not second.register(ANN, "c")


@pytest.mark.parametrize("kind", [InResources, InDirectory])
def test_what_another_registers_again_under_the_same_name_counts_for_him(kind: type[Any]) -> None:
    here = site(kind, everybody(registrations=1))
    assert here.register(ANN, "a")
    here.runtime._now_ns += LEASE_S * NS_PER_S

    assert here.register(BOB, "a")

    assert not here.register(BOB, "b")
    assert here.register(ANN, "c")
    again = after_a_crash(kind, here, everybody(registrations=1))
    assert [again.register(who, "d") for who in (ANN, BOB)] == [False, False]


@each_kind
def test_what_the_disk_did_not_take_does_not_count(kind: type[Any]) -> None:
    here = site(kind, everybody(registrations=1))
    here.runtime.is_disk_full = True
    with pytest.raises(DiskFull):
        here.register(ANN, "a")
    here.runtime.is_disk_full = False

    assert here.register(ANN, "b")
    here.runtime.is_disk_full = True
    with pytest.raises(DiskFull):
        here.withdraw(ANN, "b")
    here.runtime.is_disk_full = False

    assert not here.register(ANN, "c")


@each_kind
def test_quotas_that_come_while_the_broker_runs_count_what_is_registered(kind: type[Any]) -> None:
    first = site(kind)
    assert first.register(ANN, "a")
    here = first.runtime.restarted(Quotas([]))
    second = Site(here, kind(here))
    assert second.register(ANN, "b")

    second.runtime.port.quotas.set_rules([everybody(registrations=2)])  # type: ignore[attr-defined]

    assert not second.register(ANN, "c")
    second.withdraw(ANN, "b")
    assert second.register(ANN, "c")


def test_what_strangers_share_counts_after_a_restart() -> None:
    shared = QuotaRule({Quota.REGISTRATIONS: 1}, principal="anonymous")
    first = site(InResources, shared)
    assert first.register(anonymous("http", "192.0.2.1:1"), "a")

    second = after_a_crash(InResources, first, shared)

    assert not second.register(anonymous("http", "192.0.2.2:1"), "b")


def test_many_at_once_get_no_more_than_there_is_room_for() -> None:
    here = runtime(everybody(registrations=3))
    service = InResources(here)

    results = here.run_all(*(service.register(ANN, f"r{number}") for number in range(10)))

    assert [result is None for result in results].count(True) == 3


# Subscriptions and boxes


def subscribe(here: ManualRuntime, session: Session, kind: Kind) -> str:
    sink = None if kind is Kind.BOX else "http://127.0.0.1/hook"
    asked = Subscription(id="", kind=kind, sink=sink)
    view = here.run(here.port.subscribe(session, asked, EVERYTHING, None))
    return view.subscription.id


@pytest.mark.parametrize("kind", [Kind.PUSH, Kind.BOX])
def test_what_is_given_to_somebody_counts_for_that_one_alone(kind: Kind) -> None:
    here = runtime(everybody(subscriptions=1, boxes=1))
    given = subscribe(here, ANN, kind)
    to_bob = Change(owner=Owner("bob", credential="openid/x"))

    here.run(here.port.change(as_("admin"), given, to_bob, kind))

    with pytest.raises(QuotaReached):
        subscribe(here, BOB, kind)
    subscribe(here, ANN, kind)
    again = here.restarted(Quotas([everybody(subscriptions=1, boxes=1)]))
    for who in (ANN, BOB):
        with pytest.raises(QuotaReached):
            subscribe(again, who, kind)


def test_nothing_is_given_to_who_has_too_much_already() -> None:
    here = runtime(everybody(subscriptions=1))
    mine, _ = subscribe(here, ANN, Kind.PUSH), subscribe(here, BOB, Kind.PUSH)
    to_bob = Change(owner=Owner("bob", credential="openid/x"))

    with pytest.raises(QuotaReached) as caught:
        here.run(here.port.change(as_("admin"), mine, to_bob, Kind.PUSH))

    assert caught.value.problem == "bob has reached its quota of subscriptions, which is 1"
    owner = here.broker.owner_of(mine)
    assert owner is not None
    assert owner.name == "ann"


def test_another_credential_of_its_owner_is_no_more_to_count() -> None:
    here = runtime(everybody(subscriptions=1))
    mine = subscribe(here, ANN, Kind.PUSH)
    same = Change(owner=Owner("ann", credential="openid/y"))

    here.run(here.port.change(as_("admin"), mine, same, Kind.PUSH))

    with pytest.raises(QuotaReached):
        subscribe(here, ANN, Kind.PUSH)


# Continuous requests for resources


class Reader:
    is_full = False

    def write(self, data: bytes) -> None: ...

    def end(self, reason: str) -> None: ...


def test_a_continuous_request_counts_as_a_subscription_and_who_follows_it_as_a_stream() -> None:
    here = runtime(everybody(subscriptions=1, streams=1))
    discovery = open_discovery(here.port, "b1", NO_ZONES)
    asked = read_discovery({"model": "static continuous", "request": "a = 1"})

    watch = discovery.watch(ANN, asked)
    with pytest.raises(QuotaReached):
        discovery.watch(ANN, asked)
    with pytest.raises(QuotaReached):
        subscribe(here, ANN, Kind.PUSH)
    follower = discovery.follow(ANN, watch.id, Reader())
    with pytest.raises(QuotaReached):
        discovery.follow(ANN, watch.id, Reader())

    discovery.leave(watch.id, follower)
    discovery.follow(ANN, watch.id, Reader())
    discovery.cancel(ANN, watch.id)
    watch = discovery.watch(ANN, asked)
    discovery.follow(ANN, watch.id, Reader())
    discovery.follow(BOB, discovery.watch(BOB, asked).id, Reader())
