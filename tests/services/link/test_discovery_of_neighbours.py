"""Neighbours that discover resources: what is theirs ends with their link."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from link_peer import LinkedBroker, options_with

from tocsin.overlay.discovery.requests import ModelType, Registration
from tocsin.overlay.region import Region
from tocsin.services.link.transport import Receiver, Transport
from tocsin.wire.link.discovery_messages import (
    Advertise,
    Bound,
    Discover,
    Done,
    Results,
    Unadvertise,
)
from tocsin.wire.link.messages import Behind

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


def advertise(number: int, broker: str = "peer") -> Advertise:
    return Advertise(
        adv_id=f"v{number}", broker=broker, resource_id=f"r{number}", model="dynamic", rows=(ROW,)
    )


def rows_of(broker: LinkedBroker) -> object:
    return broker.discovery.tables()["advertisements"]


def dropped(broker: LinkedBroker) -> object:
    counters = broker.discovery.tables()["counters"]
    return counters["dropped"]  # type: ignore[index]


def test_resources_of_a_broker_come_from_the_neighbour_that_it_is_behind() -> None:
    broker = LinkedBroker()
    left, right = broker.linked(broker="left"), broker.linked(broker="right")
    right.say(Behind({"far": "right"}))

    left.say(advertise(1, "far"), advertise(2, "nobody"), advertise(3, "left"))
    right.say(advertise(1, "far"))

    assert rows_of(broker) == {"rows": 2, "by_last_hop": {"left": 1, "right": 1}}
    assert dropped(broker) == {"advertisement of a broker that is not behind the neighbour": 2}
    assert not left.is_over


def test_a_broker_that_has_moved_is_believed_by_its_new_way() -> None:
    broker = LinkedBroker()
    left, right = broker.linked(broker="left"), broker.linked(broker="right")
    left.say(Behind({"far": "left"}), advertise(1, "far"))

    right.say(Behind({"far": "right"}), advertise(1, "far"))
    left.say(Behind({}, ("far",)), Unadvertise("v1", "far", "r1"))

    assert rows_of(broker) == {"rows": 1, "by_last_hop": {"right": 1}}
    assert not dropped(broker)


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


class Connections:
    """Notes where a broker connects to; nobody answers there."""

    def __init__(self) -> None:
        self.addresses: list[str] = []

    async def connect(self, address: str, opened: Callable[[Transport], Receiver]) -> None:
        self.addresses.append(address)


def with_a_resource(*direct_addresses: str) -> tuple[LinkedBroker, Connections]:
    broker = LinkedBroker(options_with(direct_addresses=direct_addresses))
    connections = Connections()
    broker.links._direct._connector = connections
    resource = Registration("r", ModelType.DYNAMIC, Region({("a", "n"): (0.0, 9.0)}), {"a": 5})
    broker.discovery.driver.perform(broker.discovery.driver.core.register(resource, NOW))
    return broker, connections


def asks_directly(reply_to: str) -> Discover:
    return Discover(
        request_id="q",
        host="far",
        region=ROW,
        model="dynamic",
        issued_ns=NOW,
        shared_until_ns=NOW,
        expires_ns=NOW,
        max_age_ns=0,
        direct=True,
        reply_to=reply_to,
    )


@pytest.mark.parametrize("address", ["169.254.169.254:80", "localhost:6379", "", "far.example:22"])
def test_nobody_makes_a_broker_connect_to_an_address_that_its_operator_does_not_name(
    address: str,
) -> None:
    broker, connections = with_a_resource("far.example:8403")
    peer = broker.linked()

    peer.say(asks_directly(address))

    assert not connections.addresses
    [results], [done] = peer.taken(Results), peer.taken(Done)
    assert [each.resource_id for each in results.results] == ["r"]
    assert (done.results, done.incomplete) == (0, "")


def test_results_go_directly_to_an_address_that_the_operator_names() -> None:
    broker, connections = with_a_resource("far.example:8403")
    peer = broker.linked()

    peer.say(asks_directly("far.example:8403"))

    assert connections.addresses == ["far.example:8403"]
    assert not peer.taken(Results)
    assert [done.results for done in peer.taken(Done)] == [1]
