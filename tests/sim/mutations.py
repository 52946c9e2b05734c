"""Mistakes put into the shipped code on purpose, to see that simulated runs notice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from tocsin.access.session import Session
from tocsin.broker.broker import Broker
from tocsin.broker.clock import Clock
from tocsin.broker.commit.numbering import Numbering
from tocsin.broker.delivery.follower import Follower
from tocsin.broker.delivery.retry import RetryOptions, retry_at_ns
from tocsin.broker.effects import Accepted
from tocsin.broker.followers.catchup import Catchup
from tocsin.broker.push import lanes as push_lanes
from tocsin.broker.push.lanes import PushLanes
from tocsin.broker.registry import Registry
from tocsin.broker.service_state import ServiceState
from tocsin.broker.state.state import IDLE, State
from tocsin.broker.state.subscriber import Subscriber
from tocsin.event.event import Event
from tocsin.services.blackboard.socket import BoardSocket
from tocsin.services.performance.session import PerformanceSession
from tocsin.services.soap import publish
from tocsin.services.soap.delivery_receipt import DeliveryReceipt
from tocsin.services.soap.publish import PublishService, event_of
from tocsin.services.streams.event_socket import EventSocket
from tocsin.services.streams.websocket import WebSocketSession
from tocsin.store.store import Store
from tocsin.wire.soap.topics import write_topic
from tocsin.wire.wsn import deliver as wsn_deliver

Mutate = Callable[[pytest.MonkeyPatch], None]


def acknowledge_before_the_commit(patch: pytest.MonkeyPatch) -> None:
    """Answer publishers when their events go to the disk, not when they are there."""
    next_commit = Broker._next_commit

    def hasty(self: Broker, now_ns: int) -> None:
        next_commit(self, now_ns)
        if self._committing is not None:
            for token in self._committing.publishers:
                self._state.reply(token, Accepted(1, 1, self.head + 1_000))

    patch.setattr(Broker, "_next_commit", hasty)
    patch.setattr(Broker, "_acknowledge", lambda *_: None)


def move_the_cursor_before_delivery(patch: pytest.MonkeyPatch) -> None:
    """Take what is under way to the sink for delivered when cursors are saved."""

    def cursor(self: Follower, head: int) -> int:
        if len(self.waiting) > self.held:
            return self.waiting[self.held].seq - 1
        return head if self.live else self.scanned_to

    patch.setattr(Follower, "cursor", cursor)


def reorder_on_retry(patch: pytest.MonkeyPatch) -> None:
    """Put an event that was not taken behind the next one."""
    failed = PushLanes._failed

    def shuffling(self: PushLanes, lane: Any, who: Any, *rest: Any) -> None:
        failed(self, lane, who, *rest)
        waiting = who.follower.waiting
        if len(waiting) > 1:
            waiting[0], waiting[1] = waiting[1], waiting[0]

    patch.setattr(PushLanes, "_failed", shuffling)


def do_not_sync(patch: pytest.MonkeyPatch) -> None:
    """Trust the disk to have written what it was given."""
    opened = Store.open.__func__  # type: ignore[attr-defined]

    def careless(cls: type[Store], directory: str, **options: Any) -> Store:
        store: Store = opened(cls, directory, **{**options, "synchronous": "OFF"})
        return store

    patch.setattr(Store, "open", classmethod(careless))


def forget_repeats_at_a_restart(patch: pytest.MonkeyPatch) -> None:
    """Take an event for new that was stored before the restart."""
    restore = Numbering.restore

    def forgetful(self: Numbering, keys: object, received_ns: int) -> None:
        restore(self, [], received_ns)

    patch.setattr(Numbering, "restore", forgetful)


def forget_one_event_too_many(patch: pytest.MonkeyPatch) -> None:
    """Let the duplicates window be one event too short."""
    keep = Numbering.keep

    def short(self: Numbering) -> None:
        self._window -= 1
        keep(self)
        self._window += 1

    patch.setattr(Numbering, "keep", short)


def remember_one_event_too_many(patch: pytest.MonkeyPatch) -> None:
    """Let the duplicates window be one event too long."""
    keep = Numbering.keep

    def long(self: Numbering) -> None:
        self._window += 1
        keep(self)
        self._window -= 1

    patch.setattr(Numbering, "keep", long)


def remember_what_was_not_stored(patch: pytest.MonkeyPatch) -> None:
    """Take an event for a repeat whose commit failed."""
    patch.setattr(Numbering, "undo", lambda self, applied: None)


def skip_an_event_when_catching_up(patch: pytest.MonkeyPatch) -> None:
    """Go on one too far when a window is full in the middle of a page."""
    hand_out = Catchup._hand_out

    def skipping(self: Catchup, events: Any, through: int, open_ones: dict[int, Follower]) -> Any:
        asked = dict(open_ones)
        handed_out = hand_out(self, events, through, open_ones)
        for key in asked.keys() - open_ones.keys():
            asked[key].scanned_to += 1
        return handed_out

    patch.setattr(Catchup, "_hand_out", skipping)


def trust_every_sink(patch: pytest.MonkeyPatch) -> None:
    """Ask no sink whether it wants events."""
    patch.setattr(Registry, "_first_state", lambda self, asked: asked.state)


def save_everybody_as_idle(patch: pytest.MonkeyPatch) -> None:
    """Let the watermark stand for subscribers that still have something waiting."""
    saved = State.cursors_to_save

    def optimistic(self: State, head: int) -> dict[str, int]:
        cursors = saved(self, head)
        return {name: seq if name == "*" else IDLE for name, seq in cursors.items()}

    patch.setattr(State, "cursors_to_save", optimistic)


def keep_in_memory_only(patch: pytest.MonkeyPatch) -> None:
    """Say that a value is kept, and leave it out of the commit."""
    stage = ServiceState._stage

    def lazy(self: ServiceState, values: Mapping[str, bytes | None], **options: bool) -> object:
        refusal = stage(self, values, **options)
        for key in values:
            self._state.unsaved.service_state.pop(key, None)
        return refusal

    patch.setattr(ServiceState, "_stage", lazy)


def believe_every_clock(patch: pytest.MonkeyPatch) -> None:
    """Let leases end and backlogs age by a clock that jumped ahead."""
    change = Clock._change

    def trusting(self: Clock, shift_ns: int, now_ns: int, *, holds: bool) -> None:
        change(self, shift_ns, now_ns, holds=False)

    patch.setattr(Clock, "_change", trusting)


def ignore_retry_after(patch: pytest.MonkeyPatch) -> None:
    """Try again when it suits the broker, whatever the sink asked for."""

    def impatient(
        options: RetryOptions, failures: int, now_ns: int, jitter: float, asked_s: float | None
    ) -> int:
        return retry_at_ns(options, failures, now_ns, jitter)

    patch.setattr(push_lanes, "retry_at_ns", impatient)


def try_once_too_often(patch: pytest.MonkeyPatch) -> None:
    """Begin to count attempts with the second."""
    start_afresh = Subscriber.start_afresh

    def lenient(self: Subscriber) -> None:
        start_afresh(self)
        self.refusals = -1

    patch.setattr(Subscriber, "start_afresh", lenient)


def give_up_one_attempt_early(patch: pytest.MonkeyPatch) -> None:
    """Count the first attempt twice."""
    start_afresh = Subscriber.start_afresh

    def strict(self: Subscriber) -> None:
        start_afresh(self)
        self.refusals = 1

    patch.setattr(Subscriber, "start_afresh", strict)


def say_that_nothing_was_dropped(patch: pytest.MonkeyPatch) -> None:
    """Let go of events without counting them."""
    drop_oldest = Follower._drop_oldest

    def silent(self: Follower) -> None:
        before = self.dropped
        drop_oldest(self)
        self.dropped = before

    patch.setattr(Follower, "_drop_oldest", silent)


def acknowledge_soap_before_the_commit(patch: pytest.MonkeyPatch) -> None:
    """Answer a SOAP publisher when its event was handed to the broker."""

    async def hasty(self: PublishService, *args: Any, **options: Any) -> Accepted:
        async def publish(session: Session, events: list[Event]) -> Accepted:
            port.submit(session, events, _Nobody())
            return Accepted(len(events), 1, 1)

        port = self._port
        patch.setattr(self, "_port", SimpleNamespace(publish=publish))
        try:
            return await _publish(self, *args, **options)
        finally:
            self._port = port

    _publish = PublishService._publish
    patch.setattr(PublishService, "_publish", hasty)


def release_a_soap_box_at_once(patch: pytest.MonkeyPatch) -> None:
    """Take an answer that was made for one that arrived."""
    init = DeliveryReceipt.__init__

    def hopeful(self: DeliveryReceipt, *args: Any, **options: Any) -> None:
        init(self, *args, **options)
        self.arrived()

    patch.setattr(DeliveryReceipt, "__init__", hopeful)


def forget_the_ids_of_notifications(patch: pytest.MonkeyPatch) -> None:
    """Store a notification under a new id, whatever it was at the broker that sent it."""

    def forgetful(*args: Any) -> Event:
        return msgspec.structs.replace(event_of(*args), id=args[-1]())

    patch.setattr(publish, "event_of", forgetful)


def write_wrong_topics_into_notifications(patch: pytest.MonkeyPatch) -> None:
    """Tell consumers of WS-Notification the first level of a topic only."""

    def short(namespace: str, event: Event, spec: str) -> bytes:
        root = event.topic.partition("/")[0]
        return write_topic(namespace, msgspec.structs.replace(event, topic=root), spec)

    patch.setattr(wsn_deliver, "write_topic", short)


class _Nobody:
    """Whoever waits for no answer."""

    def answer(self, result: object) -> None:
        pass


class HastyPort:
    """A port that answers a publisher when its events were handed to the broker."""

    def __init__(self, port: Any) -> None:
        self._port = port

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)

    def submit(self, session: Session, events: list[Event], replier: Any) -> None:
        self._port.submit(session, events, _Nobody())
        replier.answer(Accepted(len(events), 1, 1))


def acknowledge_by_socket_before_the_commit(patch: pytest.MonkeyPatch) -> None:
    """Answer a WebSocket client when its event was handed to the broker."""
    init = EventSocket.__init__

    def hasty(self: EventSocket, port: Any, *rest: Any) -> None:
        init(self, HastyPort(port), *rest)  # type: ignore[arg-type]

    patch.setattr(EventSocket, "__init__", hasty)


def acknowledge_on_the_blackboard_before_the_commit(patch: pytest.MonkeyPatch) -> None:
    """Answer a publisher of the blackboard when its message was handed to the broker."""
    init = BoardSocket.__init__

    def hasty(self: BoardSocket, port: Any, *rest: Any) -> None:
        init(self, HastyPort(port), *rest)  # type: ignore[arg-type]

    patch.setattr(BoardSocket, "__init__", hasty)


def forget_where_a_blackboard_subscriber_was(patch: pytest.MonkeyPatch) -> None:
    """Begin with what comes next, and say that it begins where the subscriber was."""
    subscribe = BoardSocket._subscribe

    def forgetful(self: BoardSocket, concepts: list[str], after: int | None) -> dict[str, int]:
        answer = subscribe(self, concepts, None)
        return answer if after is None else {**answer, "after": after}

    patch.setattr(BoardSocket, "_subscribe", forgetful)


def keep_the_pairs_of_the_former_profile(patch: pytest.MonkeyPatch) -> None:
    """Let a subscriber that exchanges its profile get the pairs of the one before."""
    subscribe = BoardSocket._subscribe

    def stale(self: BoardSocket, concepts: list[str], after: int | None) -> dict[str, int]:
        former = self._profile
        answer = subscribe(self, concepts, after)
        self._profile = former or self._profile
        return answer

    patch.setattr(BoardSocket, "_subscribe", stale)


def leave_a_publisher_without_the_new_profile(patch: pytest.MonkeyPatch) -> None:
    """Send the profile to a publisher that registers, and not when it changes."""
    patch.setattr(BoardSocket, "_send_profile", lambda self, profile: None)


def tell_a_socket_of_one_too_few(patch: pytest.MonkeyPatch) -> None:
    """Miscount what a WebSocket client has lost."""
    dropped = WebSocketSession.dropped
    patch.setattr(WebSocketSession, "dropped", lambda self, count: dropped(self, count - 1))


def acknowledge_performance_events_before_the_commit(patch: pytest.MonkeyPatch) -> None:
    """Reply to a producer when its events were handed to the broker."""

    async def hasty(self: PerformanceSession, events: list[Event], caller: Session) -> None:
        self._port.submit(caller, events, _Nobody())

    patch.setattr(PerformanceSession, "_publish", hasty)


MUTATIONS: dict[Mutate, str] = {
    acknowledge_before_the_commit: "acknowledged and is not in the log",
    move_the_cursor_before_delivery: "its cursor is at|has not got events|was trimmed while it",
    reorder_on_retry: "in one request|before event|has not got events|its cursor is at",
    do_not_sync: "the log (begins|ends) with|does not start again|is not in the log|is lost",
    forget_repeats_at_a_restart: "was stored as",
    forget_one_event_too_many: "was stored as",
    remember_one_event_too_many: "was taken for a repeat",
    remember_what_was_not_stored: "was not applied as it was sent",
    skip_an_event_when_catching_up: (
        "before event|and not event|has not got|its cursor is at|was trimmed"
    ),
    trust_every_sink: "which has not agreed",
    keep_in_memory_only: "was acknowledged otherwise|is not on disk|is not in the log|was broker",
    acknowledge_soap_before_the_commit: "acknowledged and is not in the log",
    acknowledge_by_socket_before_the_commit: "acknowledged and is not in the log .by event socket",
    acknowledge_on_the_blackboard_before_the_commit: "is not in the log .by blackboard socket",
    forget_where_a_blackboard_subscriber_was: "blackboard socket .* (and not|has not got) events",
    keep_the_pairs_of_the_former_profile: "blackboard socket .* got .* of event",
    leave_a_publisher_without_the_new_profile: "blackboard socket .* was told of the profile",
    acknowledge_performance_events_before_the_commit: "is not in the log .by performance",
    tell_a_socket_of_one_too_few: "event socket .* (are missing|were dropped)",
    forget_the_ids_of_notifications: "took .* by SOAP and has not stored it",
    write_wrong_topics_into_notifications: "took .* by SOAP and stored it on",
    release_a_soap_box_at_once: "which its owner has not got",
    ignore_retry_after: "asked for patience",
    try_once_too_often: "is tried again after",
    give_up_one_attempt_early: "was given up after",
    say_that_nothing_was_dropped: "has not got events|says 0 dropped",
    believe_every_clock: (
        "is not acknowledged|is gone|is lost|has not got|before event|its cursor is at"
    ),
    save_everybody_as_idle: "its cursor is at|is not saved|has not got events",
}
"""Each mistake, and what a run may say of it first."""
