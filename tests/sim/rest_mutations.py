"""Mistakes put into what REST clients are answered by, to see that simulated runs notice."""

from __future__ import annotations

from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from sim.mutations import HastyPort, Mutate
from tocsin.access.session import Session
from tocsin.broker.effects import Pulled
from tocsin.broker.subscriber import SubscriptionView
from tocsin.errors import TocsinError
from tocsin.event.event import Event
from tocsin.event.subscription import Subscription
from tocsin.services.publishing import publish as publishing
from tocsin.services.subscriptions.subscriptions import PullRequest, Subscriptions
from tocsin.wire.api.subscription_request import SubscriptionChange


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
        self: Subscriptions, session: Session, was: Subscription, asked: SubscriptionChange
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
        self: Subscriptions, session: Session, was: Subscription, asked: SubscriptionChange
    ) -> SubscriptionView:
        return await change(self, session, was, msgspec.structs.replace(asked, config=None))

    patch.setattr(Subscriptions, "_change", forgetful)


REST_MUTATIONS: dict[Mutate, str] = {
    acknowledge_by_post_before_the_commit: "acknowledged and is not in the log",
    release_a_rest_box_at_once: "which its owner has not got",
    ignore_the_token_of_a_pull: "which its owner has acknowledged",
    answer_a_change_before_the_commit: "a client was answered before the commit",
    end_before_the_commit: "its end was answered before the commit",
    forget_the_limits_of_a_change: "a change of its limits was answered with",
}
"""Each mistake, and what a run may say of it first."""
