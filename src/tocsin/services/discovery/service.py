"""ResourceDiscovery: what clients of this broker ask, and what other brokers send for them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import msgspec

from tocsin.access.decision import Action
from tocsin.access.quotas.rules import Quota
from tocsin.access.session import Session, internal
from tocsin.broker.port import BrokerPort
from tocsin.broker.runtime import Signal
from tocsin.errors import BadDiscovery, DiscoveryFull, NoSuchDiscovery, TocsinError
from tocsin.event.subscription import SOMEBODY
from tocsin.overlay.discovery.effects import (
    Answered,
    Change,
    Current,
    Finished,
    Notice,
    Resource,
    Summary,
)
from tocsin.overlay.discovery.options import DiscoveryOptions
from tocsin.overlay.discovery.port import Discovery
from tocsin.overlay.discovery.requests import ModelType, parse_request
from tocsin.overlay.time_of_day import Zones
from tocsin.services.discovery.answer import Answer, Hit
from tocsin.services.discovery.core_driver import CoreDriver, ForClient
from tocsin.services.discovery.resources import Resources
from tocsin.services.discovery.top_hits import TopHits, answer_of
from tocsin.services.discovery.watch import STREAMS_MAX, Follower, Reader, Watch
from tocsin.wire.api.resource_request import DiscoveryRequest, OptionsChange

WAITING_MAX: Final = 10_000  # one-time requests under way
WATCHES_MAX: Final = 10_000
ANSWER_MAX: Final = 10_000  # resources in an answer that does not say how many it wants
UNFOLLOWED_S: Final = 300.0  # a continuous request that no stream follows ends after so long
SWEEP_S: Final = 30.0
OPTIONS_KEY: Final = "discovery/options"

_SERVICE: Final = internal("discovery")

MayHave = Callable[[Resource], bool]


@dataclass(slots=True)
class _Waiting:
    """A one-time request under way."""

    signal: Signal
    began_s: float
    is_dynamic: bool
    found: TopHits
    may_have: MayHave | None


class _KeptOptions(msgspec.Struct):
    similarity: bool
    direct: bool
    cache_expiry_ns: int


class ResourceDiscovery:
    """The resources, requests and continuous requests of one broker's clients."""

    def __init__(self, port: BrokerPort, core: Discovery, zones: Zones) -> None:
        self._port = port
        self._runtime = port.runtime
        self._core = core
        self._zones = zones
        self._waiting: dict[str, _Waiting] = {}
        self._watches: dict[str, Watch] = {}
        self._touched: dict[str, None] = {}  # watches that changed, in that order
        self._recover_options()
        self.driver = CoreDriver(port, core, self._for_client)
        self.resources = Resources(port, self.driver, zones)
        self.round_trip_of: Callable[[str], float | None] = _unknown  # set where there are links
        self._runtime.call_later(SWEEP_S, self._sweep)

    # One-time requests

    async def discover(self, session: Session, asked: DiscoveryRequest) -> Answer:
        """Everything that matches; returns when all brokers have answered, or time is up."""
        self._check_some(session, Action.READ)
        may_have = self._may_have(session, Action.READ)
        assert not asked.is_continuous
        if len(self._waiting) >= WAITING_MAX:
            raise DiscoveryFull(
                f"{len(self._waiting)} other requests are under way",
                remedy="Ask again in a second.",
            )
        now_ns = self.driver.now_ns()
        request = parse_request(
            self._runtime.new_id(),
            ModelType(asked.model),
            asked.request,
            max_age_ns=asked.max_age_ns,
            # Of those found first some may be for others.
            first=0 if asked.order_by or may_have is not None else asked.first,
            timeout_ns=asked.timeout_ns,
            zones=self._zones,
        )
        waiting = _Waiting(
            self._runtime.signal(),
            self._runtime.elapsed_s(),
            request.model.is_dynamic,
            TopHits(asked.first or ANSWER_MAX, asked.order_by),
            may_have,
        )
        self._waiting[request.request_id] = waiting
        try:
            self.driver.perform(self._core.discover(request, now_ns))
            summary: Summary = await waiting.signal
        except BaseException:
            self._abandon(request.request_id, waiting)
            raise
        finally:
            del self._waiting[request.request_id]
        self._check_some(session, Action.READ)  # a right may have ended meanwhile
        may_have = self._may_have(session, Action.READ)
        answer = answer_of(waiting.found, summary, asked)
        if may_have is None:
            return answer
        return replace(answer, found=[each for each in answer.found if may_have(each.resource)])

    def _abandon(self, request_id: str, waiting: _Waiting) -> None:
        """Whoever asked has left: nothing more is to be sent for it."""
        if waiting.signal.is_answered():
            return
        with suppress(TocsinError):  # it was refused in the first place
            self.driver.perform(self._core.cancel(request_id, self.driver.now_ns()))

    # Continuous requests

    def watch(self, session: Session, asked: DiscoveryRequest) -> Watch:
        """Begin a continuous request; it ends when nobody follows it for a while."""
        self._check_some(session, Action.SUBSCRIBE)
        assert asked.is_continuous
        if len(self._watches) >= WATCHES_MAX:
            raise DiscoveryFull(
                f"this broker has {len(self._watches)} continuous requests",
                remedy="End some of them: DELETE /discoveries/ID.",
            )
        request = parse_request(
            self._runtime.new_id(),
            ModelType(asked.model),
            asked.request,
            lease_ns=asked.expires_ns,
            zones=self._zones,
        )
        now_ns = self.driver.now_ns()
        watch = Watch(request.request_id, asked, now_ns, self._runtime.elapsed_s(), session)
        is_there = partial(self._watches.__contains__, watch.id)
        self._port.add_to_quota(session, Quota.SUBSCRIPTIONS, is_there)
        self._watches[watch.id] = watch
        try:
            self.driver.perform(self._core.discover(request, now_ns))
        except TocsinError:
            del self._watches[watch.id]
            raise
        return watch

    def watches(self, session: Session) -> list[Watch]:
        if self._port.may(session, Action.READ, "discovery/*"):
            return list(self._watches.values())
        self._port.check(session, Action.READ, "discovery/own")
        own = [each for each in self._watches.values() if session.is_owner(each.owner)]
        # Not each of its name is its own to a token with rights of its own.
        return [each for each in own if self._may_look_at(session, each)]

    def _may_look_at(self, session: Session, watch: Watch) -> bool:
        return self._port.may(session, Action.READ, f"discovery/{watch.id}", watch.owner)

    def get(self, session: Session, watch_id: str) -> Watch:
        self._check(session, Action.READ, watch_id)
        return self._watch(watch_id)

    def follow(self, session: Session, watch_id: str, reader: Reader) -> Follower:
        """The reader is written to from `pump` on."""
        self._check(session, Action.SUBSCRIBE, watch_id)
        watch = self._watch(watch_id)
        if len(watch) >= STREAMS_MAX:
            raise DiscoveryFull(
                f"{len(watch)} streams follow this request already",
                remedy="Make another request.",
            )
        self._withhold(watch)
        follower = Follower(watch, reader, partial(self._may_follow, session, watch))
        self._port.add_to_quota(session, Quota.STREAMS, partial(watch.has, follower))
        watch.follow(follower)
        return follower

    def _may_follow(self, session: Session, watch: Watch) -> bool:
        owner = watch.owner or SOMEBODY
        return self._port.may(session, Action.SUBSCRIBE, f"discovery/{watch.id}", owner)

    def leave(self, watch_id: str, follower: Follower) -> None:
        watch = self._watches.get(watch_id)
        if watch is not None:
            watch.leave(follower, self._runtime.elapsed_s())

    def cancel(self, session: Session, watch_id: str) -> None:
        self._check(session, Action.SUBSCRIBE, watch_id)
        self._watch(watch_id)
        self._end(watch_id, "the request was cancelled")

    def _check(self, session: Session, action: Action, watch_id: str) -> None:
        """Raise NotAllowed alike for one that is not there and for somebody else's."""
        watch = self._watches.get(watch_id)
        owner = None if watch is None else watch.owner or SOMEBODY
        self._port.check(session, action, f"discovery/{watch_id}", owner)

    def _check_some(self, session: Session, action: Action) -> None:
        """Raise NotAllowed for who can have no resource at all."""
        if not self._port.may(session, action, "resource/*"):
            self._port.check(session, action, "resource/own")

    def _may_have(self, session: Session, action: Action) -> MayHave | None:
        """Which of the resources that are found the session may have at this moment; None for all
        of them. Who registered one is known of those that are registered here."""
        permit = self._port.access.session_permit(session, action)
        readable = None if permit is None else permit.readable()
        if readable is None or readable.has_all_on("resource/*", frozenset()):
            return None

        def may_have(found: Resource) -> bool:
            resource = f"resource/{found.id}"
            owner = None if found.hops else self.resources.owner_of(found.id)
            is_own = session.is_owner(owner) and self._port.may(session, action, resource, owner)
            return is_own or readable.has_all_on(resource, frozenset())

        return may_have

    def _watch(self, watch_id: str) -> Watch:
        watch = self._watches.get(watch_id)
        if watch is None:
            raise NoSuchDiscovery(
                f"no discovery {watch_id[:100]!r} runs here",
                remedy="It may have ended; make the request again.",
            )
        return watch

    def _end(self, watch_id: str, reason: str) -> None:
        watch = self._watches.pop(watch_id)
        with suppress(NoSuchDiscovery):  # one that can match nothing, or whose lease ended
            self.driver.perform(self._core.cancel(watch_id, self.driver.now_ns()))
        watch.end(reason)

    def _sweep(self) -> None:
        if self._runtime.is_stopping:
            return
        now_s = self._runtime.elapsed_s()
        for watch in list(self._watches.values()):
            if self._end_without_right(watch):
                continue
            self._withhold(watch)
            watch.pump()
            if not len(watch) and now_s >= watch.idle_since_s + UNFOLLOWED_S:
                self._end(watch.id, "nobody followed it")
        self._runtime.call_later(SWEEP_S, self._sweep)

    # What the core says to clients

    def _for_client(self, effect: ForClient) -> None:
        waiting = self._waiting.get(effect.request_id)
        if waiting is not None:
            self._to_waiting(waiting, effect)
        watch = self._watches.get(effect.request_id)
        if watch is not None:
            self._to_watch(watch, effect)

    def _to_waiting(self, waiting: _Waiting, effect: ForClient) -> None:
        match effect:
            case Answered(_, results):
                passed_s = self._runtime.elapsed_s() - waiting.began_s
                waiting.found.add(
                    Hit(each, self._round_trip_s(each, passed_s if waiting.is_dynamic else None))
                    for each in results
                    if waiting.may_have is None or waiting.may_have(each)
                )
            case Finished(_, summary):
                waiting.signal.answer(summary)

    def _round_trip_s(self, found: Resource, passed_s: float | None) -> float | None:
        """To the broker of what was found: as it took now, else as the links say."""
        if not found.hops:
            return None
        return self.round_trip_of(found.broker) if passed_s is None else passed_s

    def _to_watch(self, watch: Watch, effect: ForClient) -> None:
        match effect:
            case Answered(_, results):
                may_have = self._may_have(watch.session, Action.SUBSCRIBE)
                watch.add(each for each in results if may_have is None or may_have(each))
            case Notice(_, change, resource):
                may_have = self._may_have(watch.session, Action.SUBSCRIBE)
                if change is Change.REMOVED or may_have is None or may_have(resource):
                    watch.notice(change, resource)
                else:
                    watch.notice(Change.REMOVED, resource)
            case Current(_, summary):
                watch.summary = summary
            case Finished(_, summary):
                watch.summary = watch.summary or summary
                if not summary.why_empty:
                    del self._watches[watch.id]
                    watch.end(summary.incomplete or "the request has ended")
        if not self._touched:
            self._runtime.call_later(0.0, self._pump)
        self._touched[watch.id] = None

    def _pump(self) -> None:
        """Changes of one moment go out together."""
        touched, self._touched = self._touched, {}
        for watch_id in touched:
            watch = self._watches.get(watch_id)
            if watch is not None and not self._end_without_right(watch):
                self._withhold(watch)
                watch.pump()

    def _withhold(self, watch: Watch) -> None:
        """What its asker may not have any more is told to nobody, now that rights have changed."""
        permit = self._port.access.session_permit(watch.session, Action.SUBSCRIBE)
        if permit is None or permit.version == watch.rights_version:
            return
        watch.rights_version = permit.version
        if (may_have := self._may_have(watch.session, Action.SUBSCRIBE)) is not None:
            watch.withhold(may_have)

    def _end_without_right(self, watch: Watch) -> bool:
        """End a request whose asker may have no resource any more; True if it was so."""
        if self._port.may(watch.session, Action.SUBSCRIBE, "resource/*") or self._port.may(
            watch.session, Action.SUBSCRIBE, "resource/own"
        ):
            return False
        watch.forget()
        self._end(watch.id, "the right or the credential that it was made with has ended")
        return True

    def tables(self) -> dict[str, object]:
        """A snapshot for people, of plain values."""
        return self._core.tables()

    # Options

    @property
    def options(self) -> DiscoveryOptions:
        return self._core.options

    def set_reply_to(self, address: str) -> None:
        """Other brokers may connect to this broker here."""
        self._core.options = replace(self._core.options, reply_to=address)

    async def change_options(self, session: Session, change: OptionsChange) -> DiscoveryOptions:
        """From the next request on, also after a restart; returns once that is on disk."""
        self._port.check(session, Action.MANAGE, "overlay/options")
        given = {
            name: value
            for name in OptionsChange.__dataclass_fields__
            if (value := getattr(change, name)) is not None
        }
        options = replace(self._core.options, **given)
        if options.direct and not options.reply_to:
            raise BadDiscovery(
                "results cannot come directly: this broker takes no connections from others",
                remedy="Start it with --link HOST:PORT.",
            )
        kept = _KeptOptions(options.similarity, options.direct, options.cache_expiry_ns)
        await self._port.keep(_SERVICE, OPTIONS_KEY, msgspec.json.encode(kept))
        self._core.options = options
        return options

    def _recover_options(self) -> None:
        value = self._port.own(_SERVICE).kept(OPTIONS_KEY).get(OPTIONS_KEY)
        if value is None:
            return
        try:
            kept = msgspec.json.decode(value, type=_KeptOptions)
        except msgspec.DecodeError as error:
            self._runtime.note("warning", "the options of discovery are not read", why=error)
            return
        self._core.options = replace(
            self._core.options,
            similarity=kept.similarity,
            direct=kept.direct,
            cache_expiry_ns=kept.cache_expiry_ns,
        )


def _unknown(broker: str) -> float | None:
    return None
