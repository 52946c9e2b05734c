"""Whoever waits for an answer, or is called back, gets nothing if its right has ended meanwhile."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

import pytest
from principals import Site, as_, event

from manual_runtime import ManualTask
from tocsin.access.session import internal
from tocsin.broker.state.subscriber import SubscriptionView
from tocsin.errors import NotAllowed, NotSignedIn
from tocsin.event.concept_filter import concepts_filter
from tocsin.event.instant import NS_PER_S
from tocsin.event.subscription import Kind, Subscription
from tocsin.overlay.time_of_day import NO_ZONES
from tocsin.services.blackboard.board import Board
from tocsin.services.discovery.factory import open_discovery
from tocsin.services.discovery.service import ResourceDiscovery
from tocsin.wire.api.resource_request import read_discovery, read_resource

ANN = {"principal": "ann", "action": "*"}
WAIT_NS = 60 * NS_PER_S
# The same principal by two credentials, of which one is taken back.
FIRST, SECOND = as_("ann", key="certificate/x/1"), as_("ann", key="certificate/x/2")


def waiting(site: Site, work: Coroutine[Any, Any, Any]) -> ManualTask:
    """It has asked, and there is nothing yet."""
    task = site.runtime.spawn(work)
    site.runtime.settle()
    assert not task.is_done
    return task


def revoke_second(site: Site) -> None:
    site.policy.set_revoked([SECOND.owner.credential])
    site.runtime.settle()


def box_of_first(site: Site) -> str:
    view: SubscriptionView = site.subscribe(FIRST, sink=None)
    return view.subscription.id


# Boxes


@pytest.mark.parametrize("fetch", ["pull", "take"])
def test_who_waits_at_a_box_with_a_credential_that_is_revoked_gets_nothing_and_nothing_is_lost(
    fetch: str,
) -> None:
    site = Site(ANN)
    box = box_of_first(site)
    port = site.port
    if fetch == "pull":
        task = waiting(site, port.pull(SECOND, box, 10, WAIT_NS, None))
    else:
        task = waiting(site, port.take(SECOND, box, 10, WAIT_NS))

    revoke_second(site)
    site.publish(event(1))

    assert isinstance(task.error, NotSignedIn)
    pulled = site.runtime.run(port.pull(FIRST, box, 10, 0, None))
    assert [each.event.topic for each in pulled.events] == ["lead/a"]


def test_who_waits_at_a_box_and_loses_the_right_is_told_so_and_not_that_nothing_came() -> None:
    site = Site(ANN)
    task = waiting(site, site.port.pull(FIRST, box_of_first(site), 10, WAIT_NS, None))

    site.revoke("ann")
    site.publish(event(1))
    site.runtime.pass_s(61)

    assert isinstance(task.error, NotAllowed)


# The profile of the blackboard


def want(site: Site, board: Board, *concepts: str) -> None:
    """So that the profile is another."""
    asked = Subscription(id="", kind=Kind.BOX)
    site.runtime.run(
        site.port.subscribe(internal("test"), asked, concepts_filter(list(concepts)), None)
    )
    board.interest_changed()
    site.runtime.settle()


def test_who_waits_for_another_profile_and_may_not_read_it_by_then_gets_none() -> None:
    site = Site(ANN)
    board = Board(site.port)
    task = waiting(site, board.profile_after(SECOND, board.profile.version, 60.0))

    revoke_second(site)
    want(site, board, "RunId")

    assert isinstance(task.error, NotSignedIn)


@pytest.mark.parametrize("how", ["revoked", "rule"])
def test_a_publisher_is_sent_no_profile_once_the_right_of_who_registered_it_has_ended(
    how: str,
) -> None:
    site = Site(ANN)
    board = Board(site.port)
    site.runtime.run(board.register(SECOND, "http://publisher"))
    want(site, board, "RunId")
    sent = len(site.runtime.posts)
    assert sent == 1

    if how == "revoked":
        revoke_second(site)
    else:
        site.revoke("ann")
    want(site, board, "Memory")
    site.runtime.pass_s(600)

    assert len(site.runtime.posts) == sent


def test_a_publisher_is_sent_the_profile_again_when_the_right_is_there_again() -> None:
    site = Site(ANN)
    board = Board(site.port)
    site.runtime.run(board.register(FIRST, "http://publisher"))
    site.revoke("ann")
    want(site, board, "RunId")
    assert site.runtime.posts == []

    site.grant(ANN)
    want(site, board, "Memory")

    assert len(site.runtime.posts) == 1


# Resources


class Reader:
    """A stream of what a continuous request finds."""

    def __init__(self) -> None:
        self.is_full = False
        self.data = b""
        self.ended = ""

    def write(self, data: bytes) -> None:
        self.data += data

    def end(self, reason: str) -> None:
        self.ended = reason


def register(site: Site, discovery: ResourceDiscovery, name: str) -> None:
    asked = {"id": name, "model": "static", "advertisement": "system = Linux"}
    site.runtime.run(discovery.resources.register(internal("test"), read_resource(asked)))
    site.runtime.settle()


def discovery_of(site: Site) -> ResourceDiscovery:
    return open_discovery(site.port, "b1", NO_ZONES)


CONTINUOUS = read_discovery({"model": "static continuous", "request": "system = Linux"})


def test_a_stream_of_resources_ends_with_the_credential_that_it_was_opened_with() -> None:
    site = Site(ANN)
    discovery = discovery_of(site)
    watch = discovery.watch(FIRST, CONTINUOUS)
    readers = Reader(), Reader()
    for session, reader in zip((FIRST, SECOND), readers, strict=True):
        discovery.follow(session, watch.id, reader).pump()
    register(site, discovery, "before")
    site.runtime.pass_s(1)

    revoke_second(site)
    register(site, discovery, "after")
    site.runtime.pass_s(1)

    assert all(b"before" in each.data for each in readers)
    assert [b"after" in each.data for each in readers] == [True, False]
    assert [bool(each.ended) for each in readers] == [False, True]


def test_a_stream_that_had_no_room_is_written_nothing_once_its_right_has_ended() -> None:
    site = Site(ANN)
    discovery = discovery_of(site)
    watch = discovery.watch(FIRST, CONTINUOUS)
    reader = Reader()
    follower = discovery.follow(SECOND, watch.id, reader)
    reader.is_full = True
    register(site, discovery, "node7")
    site.runtime.pass_s(1)

    revoke_second(site)
    reader.is_full = False
    follower.pump()

    assert b"node7" not in reader.data
    assert reader.ended


def test_a_resource_that_its_asker_may_not_have_any_more_is_shown_to_no_new_stream() -> None:
    rights = [
        {"principal": "ann", "action": "subscribe", "resource": f"resource/{name}"}
        for name in ("kept", "taken", "own")
    ]
    site = Site(*rights, {"principal": "ann", "action": "subscribe", "topic": "lead/**"})
    discovery = discovery_of(site)
    watch = discovery.watch(FIRST, CONTINUOUS)
    first, second = Reader(), Reader()
    discovery.follow(FIRST, watch.id, first)
    for name in ("kept", "taken"):
        register(site, discovery, name)
    site.runtime.pass_s(1)
    assert b'"taken"' in first.data

    gone = [id for id, rule in site.policy.rules.items() if rule.right.resource == "resource/taken"]
    site.policy.set_rules([], gone)
    discovery.follow(FIRST, watch.id, second).pump()
    site.runtime.pass_s(60)

    assert b'"kept"' in second.data
    assert b'"taken"' not in second.data
    assert b"event: removed" in first.data


def test_who_asks_for_resources_and_may_not_have_them_by_the_answer_gets_none() -> None:
    site = Site(ANN)
    discovery = discovery_of(site)
    register(site, discovery, "node7")
    asked = read_discovery({"request": "system = Linux"})
    task = site.runtime.spawn(discovery.discover(SECOND, asked))
    site.policy.set_revoked([SECOND.owner.credential])

    site.runtime.pass_s(60)

    assert isinstance(task.error, NotSignedIn)
