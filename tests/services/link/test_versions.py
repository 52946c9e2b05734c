"""A broker that speaks another version of the link protocol is told so, whatever else it says."""

from __future__ import annotations

import msgspec
import pytest
from link_peer import LinkedBroker

from tocsin.wire.framing import framed
from tocsin.wire.link import messages as m

LATER = m.PROTOCOL_VERSION + 1
OF_A_LATER_VERSION: dict[str, list[object]] = {
    "the same fields": ["hello", LATER, "peer", "log", 1, "tocsin/9.9"],
    "more fields": [
        "hello",
        LATER,
        "peer",
        "log",
        1,
        "tocsin/9.9",
        "i",
        {},
        "",
        "-",
        {"x": [1]},
        7,
    ],
    "fewer fields": ["hello", LATER],
    "other fields": ["hello", LATER, {"broker": "peer"}, ["log"]],
    "results of discovery": ["direct", LATER, "peer", {"to": 1}],
}


@pytest.mark.parametrize("hello", OF_A_LATER_VERSION.values(), ids=OF_A_LATER_VERSION)
def test_another_version_is_refused_as_that_and_not_for_its_format(hello: list[object]) -> None:
    broker = LinkedBroker()
    peer = broker.peer()

    peer.receiver.received(framed(msgspec.msgpack.encode(hello)))
    broker.runtime.pass_s(1)

    [refusal] = peer.taken(m.Refuse)
    assert refusal.code == "T802"
    assert f"version {LATER} of the link protocol" in refusal.reason
    assert f"version {m.PROTOCOL_VERSION}" in refusal.reason
    assert peer.is_over


def test_a_version_that_is_no_number_is_an_invalid_message() -> None:
    broker = LinkedBroker()
    peer = broker.peer()

    peer.receiver.received(framed(msgspec.msgpack.encode(["hello", "two", "peer"])))

    assert [each.code for each in peer.taken(m.Refuse)] == ["T801"]


def test_another_version_comes_before_the_id_of_the_broker() -> None:
    broker = LinkedBroker()
    peer = broker.peer(broker=broker.ids.broker)

    peer.say(msgspec.structs.replace(peer.hello, protocol=LATER))

    assert [each.code for each in peer.taken(m.Refuse)] == ["T802"]
