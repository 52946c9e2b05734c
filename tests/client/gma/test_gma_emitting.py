"""Events that happen: who gets which of them, and how many of them in a Period."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from gma_peers import PARAMETERS, PROTOCOL, RawPeer

from tocsin.client.gma import Consumer, Producer
from tocsin.errors import BrokerRefused

DISKS = ("sda", "sdb")


@pytest.fixture
def producer() -> Iterator[Producer]:
    with Producer(host="foo.gov") as running:
        running.offer("Disk", parameters=("Period", "Device"))
        running.offer("Bare")
        yield running


@pytest.fixture
def consumer(producer: Producer) -> Iterator[Consumer]:
    with Consumer(producer.address) as running:
        yield running


def taken(subscription: object, name: str, wait_s: float = 0.3) -> list[object]:
    found = []
    while (event := subscription.take(wait_s)) is not None:  # type: ignore[attr-defined]
        found.append(event[name])
    return found


def test_what_differs_in_a_parameter_has_each_its_own_rate(
    producer: Producer, consumer: Consumer
) -> None:
    each = consumer.subscribe("Disk", period="200ms")
    for number in range(3):
        for disk in DISKS:
            producer.emit("Disk", {"Device": disk, "N": number})
        time.sleep(0.25)

    assert taken(each, "Device") == ["sda", "sdb"] * 3


def test_what_differs_in_something_else_shares_one(producer: Producer, consumer: Consumer) -> None:
    rare = consumer.subscribe("Bare", period="1h")
    for disk in DISKS:
        producer.emit("Bare", {"Device": disk})
        time.sleep(0.002)

    assert taken(rare, "Device") == ["sda"]


def test_a_list_is_one_sample_with_one_time_stamp(producer: Producer, consumer: Consumer) -> None:
    rare = consumer.subscribe("Bare", period="1h")
    every = consumer.subscribe("Bare")
    for _ in range(2):
        producer.emit("Bare", [{"Device": disk} for disk in DISKS])
        time.sleep(0.002)

    found = [every.take(5) for _ in range(4)]
    assert [event["Device"] for event in found if event] == ["sda", "sdb"] * 2
    assert len({event.time for event in found if event}) == 2
    assert taken(rare, "Device") == ["sda", "sdb"]


def test_an_empty_list_says_nothing(producer: Producer, consumer: Consumer) -> None:
    every = consumer.subscribe("Bare")
    producer.emit("Bare", {"N": 1})
    producer.emit("Bare", [])
    producer.emit("Bare", {"N": 2})

    assert taken(every, "N") == [1, 2]
    assert consumer.query("Bare")["N"] == 2


def test_a_little_early_is_on_time(producer: Producer, consumer: Consumer) -> None:
    # As at the broker: who emits at the Period itself is never quite on it.
    regular = consumer.subscribe("Bare", period="200ms")
    for number in range(2):
        producer.emit("Bare", {"N": number})
        time.sleep(0.19)

    assert taken(regular, "N") == [0, 1]


def test_a_parameter_chooses_among_the_events_that_happen(
    producer: Producer, consumer: Consumer
) -> None:
    second = consumer.subscribe("Disk", Device="sdb")
    producer.emit("Disk", [{"Device": disk} for disk in DISKS])

    assert taken(second, "Device") == ["sdb"]
    assert consumer.query("Disk", Device="sdb")["Device"] == "sdb"
    with pytest.raises(BrokerRefused, match="passes"):
        consumer.query("Disk", Device="sdc")


@pytest.mark.parametrize("name", ["Bare", "EncodedEvent"])
@pytest.mark.parametrize("spelled", ["Period", "period"])
def test_a_query_is_for_now_whatever_period_it_says(
    producer: Producer, consumer: Consumer, name: str, spelled: str
) -> None:
    producer.offer("EncodedEvent", lambda parameters: {"N": len(parameters)})
    producer.emit("Bare", {"N": 0})

    assert consumer.query(name, **{spelled: "10s"})["N"] == 0
    peer = RawPeer.call(str(producer.address))
    peer.say(
        f'<QueryRequest xmlns="{PROTOCOL}" requestID="1"><{name} xmlns="{PARAMETERS}">'
        f'<{spelled} units="sec">0</{spelled}></{name}></QueryRequest>'
    )
    assert "<N>0</N>" in peer.hear()
    peer.close()
