"""Publishing by WS-ReliableMessaging to a running broker: both versions, both SOAPs, power cuts."""

from __future__ import annotations

import http.client
import threading
import time
from random import Random

import pytest
from reliable_publisher import BOTH, KIND, PATIENCE_S, Publisher, published

from schemas import validator
from served import Served, served
from tocsin.wire.wsrm.messages import (
    Acknowledgement,
)
from tocsin.wire.wsrm.ranges import Ranges, union


def wait_for(broker: Served, numbers: list[int]) -> None:
    end = time.monotonic() + PATIENCE_S
    while published(broker) != numbers and time.monotonic() < end:
        time.sleep(0.02)
    assert published(broker) == numbers


@pytest.mark.parametrize(("rm", "soap"), BOTH)
def test_what_comes_twice_or_too_early_is_stored_once_and_in_order(rm: str, soap: str) -> None:
    with served() as broker:
        publisher = Publisher(broker, rm, soap).begin()

        assert publisher.send(1) == publisher.acked((1, 1))
        assert publisher.send(3) == publisher.acked((1, 1), (3, 3))
        assert publisher.send(5) == publisher.acked((1, 1), (3, 3), (5, 5))
        assert publisher.send(3) == publisher.acked((1, 1), (3, 3), (5, 5))
        assert published(broker) == [1]
        assert publisher.send(2) == publisher.acked((1, 3), (5, 5))
        wait_for(broker, [1, 2, 3])
        assert publisher.send(1) == publisher.acked((1, 3), (5, 5))
        assert publisher.send(4) == publisher.acked((1, 5))
        wait_for(broker, [1, 2, 3, 4, 5])
        assert [publisher.send(n) for n in (5, 1, 4)] == [publisher.acked((1, 5))] * 3

        assert published(broker) == [1, 2, 3, 4, 5]
        for answer in publisher.answers:
            validator(KIND[rm], foreign=True)(answer)


@pytest.mark.parametrize(("rm", "soap"), BOTH)
def test_what_was_acknowledged_is_known_after_a_power_cut(rm: str, soap: str) -> None:
    with served() as broker:
        publisher = Publisher(broker, rm, soap).begin()
        assert publisher.send(1) == publisher.acked((1, 1))
        assert publisher.send(3) == publisher.acked((1, 1), (3, 3))
        assert publisher.send(4) == publisher.acked((1, 1), (3, 4))

        broker.kill()
        broker.start()

        assert publisher.send(1) == publisher.acked((1, 1), (3, 4))
        assert publisher.send(4) == publisher.acked((1, 1), (3, 4))
        assert published(broker) == [1]
        assert publisher.send(2) == publisher.acked((1, 4))
        broker.kill()
        broker.start()
        wait_for(broker, [1, 2, 3, 4])
        assert [publisher.send(n) for n in (2, 3, 5)] == [
            publisher.acked((1, 4)),
            publisher.acked((1, 4)),
            publisher.acked((1, 5)),
        ]
        wait_for(broker, [1, 2, 3, 4, 5])


def test_every_message_is_stored_once_and_in_order_through_losses_and_power_cuts(
    empty: Served,
) -> None:
    random, messages, kills = Random(7), 150, 0
    publisher = Publisher(empty).begin()
    acknowledged: Ranges = ()
    lock = threading.Lock()

    def send_some(numbers: list[int]) -> None:
        nonlocal acknowledged
        for number in numbers:
            try:
                # Half of them have no MessageID: what they become is known all the same.
                known = {"message_id": f"urn:m:{number}"} if number % 2 else {}
                answer = publisher.send(number, **known)
            except (OSError, http.client.HTTPException):
                return
            with lock:
                if isinstance(answer, Acknowledgement) and random.random() < 0.7:
                    acknowledged = union(acknowledged, answer.ranges)

    for _ in range(100):
        missing = [
            n for n in range(1, messages + 1) if not any(a <= n <= b for a, b in acknowledged)
        ]
        if not missing:
            break
        random.shuffle(missing)
        senders = [threading.Thread(target=send_some, args=(missing[i::3][:9],)) for i in range(3)]
        for sender in senders:
            sender.start()
        if kills < 6:
            kills += 1
            time.sleep(random.random() * 0.03)
            empty.kill()
        for sender in senders:
            sender.join()
        if empty.process.poll() is not None:
            empty.start()

    wait_for(empty, list(range(1, messages + 1)))
    assert publisher.send(1) == publisher.acked((1, messages))
