"""Neighbours that discover resources: what is theirs ends with their link."""

from __future__ import annotations

from link_peer import LinkedBroker

from tocsin.wire.link.discovery_messages import Advertise, Bound, Discover, Done

NOW = 1_000_000_000_000
ROW = (Bound("a", "n", 1.0, None),)


def watch(number: int) -> Discover:
    return Discover(
        request_id=f"w{number}",
        host="peer",
        region=ROW,
        model="dynamic continuous",
        issued_ns=NOW,
        shared_until_ns=NOW,
        expires_ns=NOW,
        max_age_ns=0,
    )


def advertise(number: int) -> Advertise:
    return Advertise(
        adv_id=f"v{number}", broker="peer", resource_id=f"r{number}", model="dynamic", rows=(ROW,)
    )


def test_a_link_with_thousands_of_requests_ends_before_the_next_one_begins() -> None:
    broker = LinkedBroker()
    peer = broker.linked()
    peer.say(*(watch(number) for number in range(3_000)))
    peer.say(*(advertise(number) for number in range(1_000)))
    assert len(peer.taken(Done)) == 3_000
    core = broker.discovery.driver.core

    peer.abort()
    broker.runtime.pass_s(0.1)
    again = broker.linked()
    again.say(watch(1), advertise(1))

    assert not core.is_clearing
    tables = core.tables()
    assert tables["advertisements"] == {"rows": 1, "by_last_hop": {"peer": 1}}
    assert [each["id"] for each in tables["continuous"]] == ["w1"]  # type: ignore[attr-defined]
