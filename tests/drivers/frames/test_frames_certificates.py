"""The frames listener knows its peers by their certificates."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from frames_peer import Peer, content, event, new_name, options, subscribe

from served import Served
from tls_site import Client, Refused, Site

RULES = """
[[access]]
principal = "alice"
action = ["publish", "subscribe", "read"]
topic = "gma/**"
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    made = Site(tmp_path_factory.mktemp("frames"))
    made.config.write_text(RULES)
    made.host = made.issue("host", "localhost", hosts=("127.0.0.1", "localhost"), usages=None)
    return made


@pytest.fixture(scope="module")
def broker(site: Site) -> Iterator[Served]:
    with site.broker("--archive", "127.0.0.1:0") as running:
        yield running
        assert "Traceback" not in running.said()


def test_a_peer_with_a_certificate_publishes_and_subscribes(site: Site, broker: Served) -> None:
    name, alice = new_name(), site.context(site.issue("alice"))
    alice.check_hostname = False
    agreed = options(role="producer", acknowledge=f"run-{name}")
    with Peer(broker.frames, alice) as consumer, Peer(broker.archive, alice) as producer:
        consumer.open(subscribe(name))
        own = producer.open(subscribe(name, extra=agreed)).subscription

        assert producer.ask(event(own, content(name), "e1")).returned == "Success"
        assert consumer.hears("Event")


def test_a_peer_without_one_is_refused(site: Site, broker: Served) -> None:
    nobody = site.context()
    nobody.check_hostname = False
    with Peer(broker.frames, nobody) as peer:
        reply = peer.ask(subscribe(new_name()))

        assert reply.returned == "Failure"


def test_a_peer_with_a_certificate_that_is_refused_is_hung_up_on(
    site: Site, broker: Served
) -> None:
    wrong = site.context(site.issue("wrong", "broker"))
    wrong.check_hostname = False
    with Peer(broker.frames, wrong) as peer, contextlib.suppress(OSError):
        assert peer.is_hung_up_on()
    assert "nobody may be called 'broker'" in broker.said()


def test_who_is_revoked_hears_that_it_is_over_and_no_events(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.config.write_text(RULES)
    name = new_name()
    alice = site.context(site.issue("alice"))
    revoked = site.last
    bob = site.context(site.issue("bob", "alice"))
    alice.check_hostname = bob.check_hostname = False
    agreed = options(role="producer", acknowledge=f"run-{name}")
    with (
        site.broker("--archive", "127.0.0.1:0") as broker,
        Peer(broker.frames, alice) as consumer,
        Peer(broker.frames, bob) as other,
        Peer(broker.archive, bob) as producer,
    ):
        consumer.open(subscribe(name))
        other.open(subscribe(name))
        own = producer.open(subscribe(name, extra=agreed)).subscription
        assert producer.ask(event(own, content(name), "e1")).returned == "Success"
        assert consumer.hears("Event")
        assert other.hears("Event")

        site.revoke(revoked)
        for _ in range(200):
            with contextlib.suppress(Refused), Client(broker, alice) as client:
                if client.call("GET", "/access/whoami")[0] == 401:
                    break
            time.sleep(0.05)

        assert producer.ask(event(own, content(name), "e2")).returned == "Success"
        assert other.hears("Event")
        assert consumer.hears("UnsubscribeRequest")
        assert consumer.hears_nothing()
