"""A token with rights of its own is given away: to a job, to another program. It must not reach
what its principal made with other rights."""

from __future__ import annotations

import pytest
from principals import Site, as_, event

from tocsin.access.decision import Action
from tocsin.access.policy.rights import EVERY_RIGHT, Right
from tocsin.access.policy.tokens import Token, hash_of
from tocsin.access.session import Session
from tocsin.errors import NotAllowed
from tocsin.event.subscription import Change, Kind
from tocsin.event.topic import TopicPattern

RULE: dict[str, object] = {"principal": "ann", "action": ["subscribe", "publish"]}
ANN = as_("ann")


def scoped(site: Site, token_id: str, topic: str, *, bounded: bool = True) -> Session:
    """One of ann's tokens, good for events on this topic alone."""
    actions = frozenset({Action.SUBSCRIBE, Action.PUBLISH})
    rights = (Right(actions, TopicPattern(tuple(topic.split("/")))),)
    token = Token(token_id, "ann", hash_of("s"), 0, rights=rights, is_bounded=bounded)
    site.policy.set_token(token)
    return as_("ann", key=token.key)


def test_a_scoped_token_does_not_pull_from_a_box_that_was_made_with_more() -> None:
    site = Site(RULE)
    narrow = scoped(site, "ab", "lead/*")
    box = site.subscribe(ANN, sink=None).subscription.id
    site.publish(event(1, "ops/secret"))

    with pytest.raises(NotAllowed):
        site.runtime.run(site.port.pull(narrow, box, 10, 0, None))
    with pytest.raises(NotAllowed):
        site.port.view_box(narrow, box)
    assert site.port.views(narrow) == []
    assert [each.subscription.id for each in site.port.views(ANN)] == [box]


def test_a_scoped_token_does_not_send_elsewhere_what_was_asked_for_with_more() -> None:
    site = Site(RULE)
    narrow = scoped(site, "ab", "lead/*")
    made = site.subscribe(ANN).subscription.id

    for change in (Change(sink="http://mine"), Change(expires_ns=None)):
        with pytest.raises(NotAllowed):
            site.runtime.run(site.port.change(narrow, made, change))
    with pytest.raises(NotAllowed):
        site.runtime.run(site.port.unsubscribe(narrow, made))
    assert site.port.view(ANN, made).subscription.sink == "http://sink"


def test_a_scoped_token_goes_on_with_what_it_made_and_so_does_the_next_like_it() -> None:
    site = Site(RULE)
    first, next_one = scoped(site, "ab", "lead/*"), scoped(site, "cd", "lead/*")
    other, wider = scoped(site, "ef", "ops/*"), scoped(site, "01", "lead/*", bounded=False)
    box = site.subscribe(first, sink=None).subscription.id
    unbounded = site.subscribe(wider, sink=None).subscription.id
    site.publish(event(1), event(2, "ops/a"))

    for session in (first, next_one, wider, ANN):
        pulled = site.runtime.run(site.port.pull(session, box, 10, 0, None))
        assert [each.event.topic for each in pulled.events] == ["lead/a"]
    with pytest.raises(NotAllowed):
        site.runtime.run(site.port.pull(other, box, 10, 0, None))
    with pytest.raises(NotAllowed):  # which may have what no rule gives to ann
        site.runtime.run(site.port.pull(first, unbounded, 10, 0, None))


def test_a_scoped_token_is_given_nothing_by_the_name_of_its_principal() -> None:
    site = Site(RULE)
    narrow = scoped(site, "ab", "lead/*")
    box = site.subscribe(as_("admin"), sink=None).subscription.id
    owner = ANN.owner.__class__("ann")
    site.runtime.run(site.port.change(as_("admin"), box, Change(owner=owner), Kind.BOX))

    site.runtime.run(site.port.pull(ANN, box, 10, 0, None))
    with pytest.raises(NotAllowed):
        site.runtime.run(site.port.pull(narrow, box, 10, 0, None))


def test_another_of_that_name_does_not_reach_what_an_administrators_token_made() -> None:
    """Such as somebody whom another issuer calls admin."""
    site = Site({"principal": "root", "action": "subscribe", "topic": "lead/*"})
    site.policy.set_token(Token("ab", "root", hash_of("s"), 0, rights=(EVERY_RIGHT,)))
    site.policy.set_token(Token("cd", "root", hash_of("s"), 0, rights=(EVERY_RIGHT,)))
    box = site.subscribe(as_("root", key="token/ab"), sink=None).subscription.id
    site.publish(event(1, "ops/secret"))

    with pytest.raises(NotAllowed):
        site.runtime.run(site.port.pull(as_("root"), box, 10, 0, None))
    for key in ("token/ab", "token/cd"):
        site.runtime.run(site.port.pull(as_("root", key=key), box, 10, 0, None))
