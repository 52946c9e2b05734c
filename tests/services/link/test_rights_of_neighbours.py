"""A neighbour that signs in: what its link carries ends with its rights, and begins with them."""

from __future__ import annotations

import msgspec
from link_peer import LinkedBroker, Peer, event

from tocsin.access.policy.policy import Policy
from tocsin.access.policy.rights import read_rule
from tocsin.access.session import Credential, CredentialKind, Principal, Session, internal
from tocsin.errors import NotAllowed
from tocsin.event.event import Event
from tocsin.event.instant import NS_PER_S
from tocsin.event.subscription import Kind
from tocsin.wire.link import discovery_messages as d
from tocsin.wire.link import messages as m

SERVICE = internal("test")


class Site:
    """A broker with rules, and a neighbour whose certificate ends in an hour."""

    def __init__(self, *rules: dict[str, object]) -> None:
        self.policy = Policy(lambda: self.broker.runtime.now_ns())
        self.broker = LinkedBroker(access=self.policy)
        self.expires_ns = self.broker.runtime.now_ns() + 3_600 * NS_PER_S
        self.sign_in("certificate/1", self.expires_ns)
        self.add("publisher", principal="anonymous", action="publish")
        for number, rule in enumerate(rules):
            self.add(str(number), **rule)

    def add(self, rule_id: str, **written: object) -> None:
        rule = {"principal": "peer", **written}
        self.policy.set_rules([read_rule(rule, rule_id, self.broker.runtime.now_ns())])

    def sign_in(self, key: str, expires_ns: int) -> None:
        credential = Credential(CredentialKind.CERTIFICATE, key, expires_ns)
        session = Session(Principal("peer"), "link", "peer.example:8403", credential)
        self.broker.sessions["peer"] = session

    def publish(self, number: int) -> Event:
        found = event(number)
        self.broker.publish(found)
        return found


LINK: dict[str, object] = {"action": "manage", "resource": "link/*"}
EVENTS: dict[str, object] = {"action": ["publish", "subscribe"]}


def wanted(site: Site) -> list[str]:
    """The names of what the neighbour subscribed to."""
    return sorted(key[1] for key in site.broker.links.router.wanted_by("peer"))


def test_a_filter_is_taken_when_the_right_to_it_is_granted_later() -> None:
    site = Site(LINK)
    peer = linked(site, "topic lab/a", "topic sky/a")
    assert wanted(site) == []
    assert isinstance(site.broker.neighbour().error, NotAllowed)

    site.add("later", action="subscribe", topic="lab/**")
    peer.live_s(2)

    assert wanted(site) == ["0"]
    assert isinstance(site.broker.neighbour().error, NotAllowed), "one is not taken yet"
    site.add("last", **EVENTS)
    peer.live_s(2)
    assert wanted(site) == ["0", "1"]
    assert site.broker.neighbour().error is None
    assert not peer.is_over


def linked(site: Site, *subscriptions: str) -> Peer:
    peer = site.broker.linked(*subscriptions)
    peer.taken(m.Ignored)
    return peer


def test_a_filter_that_was_withdrawn_meanwhile_is_not_taken() -> None:
    site = Site(LINK)
    peer = linked(site, "topic lab/a")

    peer.say(m.Unsubscribe("peer", "0"))
    site.add("later", **EVENTS)
    peer.live_s(2)

    assert wanted(site) == []


def test_a_filter_that_is_refused_again_is_neither_counted_nor_told_again() -> None:
    site = Site(LINK)
    peer = linked(site, "topic lab/a")
    ignored = site.broker.neighbour().counts.ignored

    for number in range(5):
        site.add(f"of another {number}", principal="somebody else", action="read")
        peer.live_s(2)

    assert site.broker.neighbour().counts.ignored == ignored
    assert not peer.taken(m.Ignored)
    assert not peer.is_over


def test_an_announcement_is_taken_when_the_right_to_it_is_granted_later() -> None:
    site = Site(LINK)
    peer = linked(site)
    tables = site.broker.links.router.tables
    assert not [each for each in tables().advertisements if each.origin == "peer"]

    site.add("later", **EVENTS)
    peer.live_s(2)

    assert [each.id for each in tables().advertisements if each.origin == "peer"] == ["all"]


def test_nothing_is_sent_after_the_certificate_has_ended_and_it_is_kept_for_the_next() -> None:
    site = Site(LINK, EVENTS)
    peer = linked(site, "")
    site.policy.now_ns = lambda: site.expires_ns

    site.publish(1)

    assert peer.got() == []
    assert [each.code for each in peer.taken(m.Refuse)] == ["T216"]
    assert peer.is_over
    site.sign_in("certificate/2", site.expires_ns + 3_600 * NS_PER_S)
    assert linked(site, "").got() == ["1"]


def test_nothing_is_sent_to_a_neighbour_that_may_not_be_linked_any_more() -> None:
    site = Site(EVENTS)
    site.add("link", **LINK)
    peer = linked(site, "")
    site.policy.set_rules([], removed=["link"])

    site.publish(1)

    assert peer.got() == []
    assert [each.code for each in peer.taken(m.Refuse)] == ["T215"]
    assert peer.is_over
    site.add("link", **LINK)
    assert linked(site, "").got() == ["1"]


def test_what_waited_for_older_events_is_looked_at_again_before_it_is_sent() -> None:
    site = Site(LINK)
    site.add("lab", action="subscribe", topic="lab/**")
    site.add("sky", action="subscribe", topic="sky/**")
    peer = linked(site, "")
    neighbour = site.broker.neighbour()
    neighbour.hold("older events")
    site.broker.publish(Event("1", "/s", "t", topic="lab/a"), Event("2", "/s", "t", topic="sky/a"))
    assert peer.got() == []

    site.policy.set_rules([], removed=["lab"])
    neighbour.release("older events")
    site.broker.runtime.settle()

    assert peer.got() == ["2"]
    assert not peer.is_over


def test_that_a_neighbour_has_no_right_to_events_is_noted_once() -> None:
    site = Site(LINK, {"action": "publish"})
    peer = linked(site, "")

    peer.live_s(10)
    peer.relay(event(1), through=1)

    notes = [words for _, words in site.broker.runtime.notes if "are not read" in words]
    assert len(notes) == 1
    assert [each.id for each in site.broker.stored()] == ["1"]
    views = site.broker.runtime.port.views(SERVICE)
    assert [each.cursor for each in views if each.subscription.kind is Kind.LINK] == [1]


def test_a_request_of_who_is_signed_in_no_more_is_not_answered_and_the_link_ends() -> None:
    site = Site(LINK, EVENTS, {"action": ["read", "subscribe"], "resource": "resource/*"})
    peer = linked(site)
    connection = site.broker.neighbour().connection
    assert connection is not None
    site.policy.set_revoked(["certificate/1"])
    request = d.Discover(
        request_id="q",
        host="peer",
        region=(),
        model="dynamic",
        issued_ns=1,
        shared_until_ns=2,
        expires_ns=2**62,
        max_age_ns=1,
    )

    # As it is when the certificate ends between its arrival and its turn.
    site.broker.links._performer._receive_of_neighbour(connection, request, 1)
    site.broker.runtime.settle()

    assert not peer.taken(d.Done)
    assert [each.code for each in peer.taken(m.Refuse)] == ["T216"]
    assert peer.is_over


def test_topic_discovery_nodes_count_while_their_neighbour_has_the_right_to_speak_of_them() -> None:
    site = Site(LINK, EVENTS)
    peer = linked(site)
    serving = site.broker.control.core.serving

    def known() -> list[str]:
        return [each.broker for each in serving.brokers()]

    peer.say(m.Serves("peer", 1, ("tdn",)))
    peer.live_s(2)
    assert known() == []
    assert [each.code for each in peer.taken(m.Ignored)] == ["T215"]

    site.add("later", action="manage", resource="tdn/*")
    peer.live_s(2)
    assert known() == ["peer"]

    site.policy.set_rules([], removed=["later"])
    peer.live_s(2)
    assert known() == []
    assert not peer.is_over
    assert not peer.taken(m.Ignored)


def test_control_messages_are_decided_as_they_come() -> None:
    site = Site(LINK, EVENTS)
    peer = linked(site)
    came: list[str] = []
    site.broker.control.serve("tdn", lambda message: came.append(message.id))
    message = m.Control("c1", "Services/Discovery/Topics", "peer", "", 7, 1, "test")

    peer.say(message)
    site.policy.set_rules([], removed=["1"])
    peer.say(msgspec.structs.replace(message, id="c2"))

    assert came == ["c1"]
    assert site.broker.neighbour().counts.ignored == 1
    assert not peer.is_over
