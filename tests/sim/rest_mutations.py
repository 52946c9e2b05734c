"""Mistakes put into what REST clients are answered by, to see that simulated runs notice."""

from __future__ import annotations

from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from sim.mutations import HastyPort, Mutate
from tocsin.access.session import Session
from tocsin.broker.broker import Broker
from tocsin.broker.effects import Pulled
from tocsin.broker.port import BrokerPort
from tocsin.broker.state.subscriber import SubscriptionView
from tocsin.errors import TocsinError
from tocsin.event.event import Event
from tocsin.event.stored import Stored
from tocsin.event.subscription import Change, Subscription
from tocsin.services.publishing import publish as publishing
from tocsin.services.streams.event_stream import EventStream
from tocsin.services.subscriptions.subscriptions import PullRequest, Subscriptions
from tocsin.sim import services as simulated_services
from tocsin.wire.cloudevents.write import structured_of
from tocsin.wire.sse import sse_event


def acknowledge_by_post_before_the_commit(patch: pytest.MonkeyPatch) -> None:
    """Answer a POST of events when they were handed to the broker."""

    def hasty(port: Any, session: Session, events: list[Event], replier: Any) -> None:
        HastyPort(port).submit(session, events, replier)

    patch.setattr(publishing, "submit", hasty)


def release_a_rest_box_at_once(patch: pytest.MonkeyPatch) -> None:
    """Take events that are handed out for events that have arrived."""
    pull = Subscriptions.pull

    async def hopeful(
        self: Subscriptions, session: Session, box_id: str, asked: PullRequest
    ) -> Pulled:
        pulled = await pull(self, session, box_id, asked)
        await pull(self, session, box_id, PullRequest(1, 0, pulled.next))
        return pulled

    patch.setattr(Subscriptions, "pull", hopeful)


def ignore_the_token_of_a_pull(patch: pytest.MonkeyPatch) -> None:
    """Hand out again what the owner of a box acknowledges."""
    pull = Subscriptions.pull

    async def deaf(
        self: Subscriptions, session: Session, box_id: str, asked: PullRequest
    ) -> Pulled:
        return await pull(self, session, box_id, msgspec.structs.replace(asked, ack=None))

    patch.setattr(Subscriptions, "pull", deaf)


def answer_a_change_before_the_commit(patch: pytest.MonkeyPatch) -> None:
    """Say that a subscription is changed when the broker was asked to."""
    change = Subscriptions._change

    async def hasty(
        self: Subscriptions, session: Session, was: Subscription, asked: Change
    ) -> SubscriptionView:
        runtime = self._port.runtime
        runtime.spawn(_quietly(change(self, session, was, asked)))
        return self._port.view(session, was.id)

    patch.setattr(Subscriptions, "_change", hasty)


async def _quietly(work: Coroutine[Any, Any, object]) -> None:
    with suppress(TocsinError):
        await work


def end_before_the_commit(patch: pytest.MonkeyPatch) -> None:
    """Say that a subscription is deleted when the broker was asked to delete it."""

    async def hasty(self: Subscriptions, session: Session, subscription_id: str) -> None:
        self.find(session, subscription_id)
        runtime = self._port.runtime
        runtime.spawn(_quietly(self._port.unsubscribe(session, subscription_id)))

    patch.setattr(Subscriptions, "delete", hasty)


def forget_the_limits_of_a_change(patch: pytest.MonkeyPatch) -> None:
    """Leave the limits of a subscription as they were, whatever a PATCH asks."""
    change = Subscriptions._change

    async def forgetful(
        self: Subscriptions, session: Session, was: Subscription, asked: Change
    ) -> SubscriptionView:
        return await change(self, session, was, msgspec.structs.replace(asked, config=None))

    patch.setattr(Subscriptions, "_change", forgetful)


def begin_a_stream_with_what_comes_next(patch: pytest.MonkeyPatch) -> None:
    """Say that a stream goes on where its reader was, and begin with what comes next."""
    open_stream = BrokerPort.open_stream

    def forgetful(self: BrokerPort, session: Session, sink: Any, *rest: Any) -> int:
        if isinstance(sink, EventStream):
            filter, _, *names = rest
            rest = (filter, None, *names)
        return open_stream(self, session, sink, *rest)

    patch.setattr(BrokerPort, "open_stream", forgetful)


def number_sent_events_one_too_low(patch: pytest.MonkeyPatch) -> None:
    """Let a reader of a stream come back one event before where it was."""

    def low(stored: Stored) -> bytes:
        return sse_event(structured_of(stored), id=stored.seq - 1)

    patch.setattr(simulated_services, "server_sent_event", low)


def name_no_damage(patch: pytest.MonkeyPatch) -> None:
    """Pass over damaged events in silence."""
    patch.setattr(Broker, "report_corrupt", lambda self, sequences: None)


REST_MUTATIONS: dict[Mutate, str] = {
    acknowledge_by_post_before_the_commit: "acknowledged and is not in the log",
    release_a_rest_box_at_once: "which its owner has not got",
    ignore_the_token_of_a_pull: "which its owner has acknowledged",
    answer_a_change_before_the_commit: "a client was answered before the commit",
    end_before_the_commit: "its end was answered before the commit",
    begin_a_stream_with_what_comes_next: "event stream .* not (got )?events?",
    number_sent_events_one_too_low: "event stream .* got an event .* that the log has not",
    name_no_damage: "are damaged and not counted",
    forget_the_limits_of_a_change: "a change of its limits was answered with",
}
"""Each mistake, and what a run may say of it first."""
