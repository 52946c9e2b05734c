"""Mistakes put into what is answered to who reads, to see that simulated runs notice."""

from __future__ import annotations

from typing import Any

import pytest

from sim.mutations import Mutate
from tocsin.access.decision import Action
from tocsin.access.policy.policy import Policy
from tocsin.access.session import Session
from tocsin.broker.port import BrokerPort
from tocsin.services import event_pages, topic_list
from tocsin.services.dead_letters.dead_letters import DeadLetters
from tocsin.services.notification.service import NotificationService


def give_whole_pages(patch: pytest.MonkeyPatch) -> None:
    """Leave nothing out of a page of the log."""
    scan = event_pages._scan

    def whole(*arguments: Any) -> Any:
        return scan(*arguments[:-1], None)

    patch.setattr(event_pages, "_scan", whole)
    patch.setattr(BrokerPort, "still_readable", lambda _self, _session, events: list(events))


def give_any_current_message(patch: pytest.MonkeyPatch) -> None:
    """Answer GetCurrentMessage with the last event, whoever may read it."""
    readable = BrokerPort.readable

    def all_of_it(self: BrokerPort, session: Session, *resource: str) -> Any:
        return None if session.endpoint == "soap" else readable(self, session, *resource)

    patch.setattr(BrokerPort, "readable", all_of_it)
    patch.setattr(NotificationService, "_may_read", lambda *_: True)


def answer_by_the_rights_of_before(patch: pytest.MonkeyPatch) -> None:
    """Look at rights when the log is asked, and not again when it has answered."""
    check = BrokerPort._check_still

    def careless(self: BrokerPort, session: Session, action: Action, *about: Any) -> None:
        if action is not Action.READ:
            check(self, session, action, *about)

    patch.setattr(BrokerPort, "still_readable", lambda _self, _session, events: list(events))
    patch.setattr(BrokerPort, "_check_still", careless)


def hand_out_to_whoever_waited(patch: pytest.MonkeyPatch) -> None:
    """Look at the right to a box when somebody begins to wait for it, and not again."""
    patch.setattr(BrokerPort, "_check_still", lambda *_: None)


def let_a_revoked_token_read(patch: pytest.MonkeyPatch) -> None:
    """Let who has read something go on to read it in the same session."""
    decide = Policy.decide
    known: set[tuple[object, ...]] = set()

    def once(
        self: Policy, session: Session, action: Action, resource: str, about: Any = None
    ) -> None:
        asked = (id(self), session, action, resource)
        if asked not in known:
            decide(self, session, action, resource, about)
            if action is Action.READ:
                known.add(asked)

    patch.setattr(Policy, "decide", once)


def list_the_subscriptions_of_others(patch: pytest.MonkeyPatch) -> None:
    """Show everybody every subscription."""
    patch.setattr(BrokerPort, "subscription_ids", lambda self, _: self._broker.subscription_ids())


def list_every_topic(patch: pytest.MonkeyPatch) -> None:
    """Name every topic to who may know of one."""
    page = topic_list._page

    def whole(*arguments: Any) -> Any:
        *others, _, now_ns = arguments
        return page(*others, None, now_ns)

    patch.setattr(topic_list, "_page", whole)


def list_every_dead_letter(patch: pytest.MonkeyPatch) -> None:
    """Show who has a dead letter those of all others."""
    patch.setattr(DeadLetters, "_seen", lambda *_, **__: lambda letter: True)


READ_MUTATIONS: dict[Mutate, str] = {
    give_whole_pages: "got .* is read without a right",
    give_any_current_message: "asks for the last .* read without a right",
    answer_by_the_rights_of_before: "is read without a right|reads .* without a right",
    hand_out_to_whoever_waited: "fetches from a box without a right",
    let_a_revoked_token_read: "may read .* without a right",
    list_the_subscriptions_of_others: "reads subscription/.* without a right",
    list_every_topic: "is told",
    list_every_dead_letter: "reads dead letter .* without a right",
}
"""Each mistake, and what a run may say of it first."""
