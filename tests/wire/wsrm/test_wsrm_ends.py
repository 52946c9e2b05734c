"""Both ends of a sequence over a network that loses, doubles and reorders, with power cuts."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import msgspec
import pytest

from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.soap.names import WSRM10, WSRM11
from tocsin.wire.wsrm import destination, source
from tocsin.wire.wsrm.destination import Decision, Inbound
from tocsin.wire.wsrm.messages import Acknowledgement, Sequence
from tocsin.wire.wsrm.source import Outbound

OUTSTANDING_MAX = 8
MESSAGES = 30
STEPS_MAX = 20_000


def inbound(rm: str = WSRM11, **more: object) -> Inbound:
    return Inbound(identifier="urn:s", rm=rm, soap="1.2", expires_ns=10, used_ns=0, **more)  # type: ignore[arg-type]


@dataclass
class Receiver:
    """Keeps its state on a disk that survives it, as the broker does."""

    disk: bytes = field(default_factory=lambda: msgspec.msgpack.encode(inbound()))
    held: dict[int, str] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)  # what was processed, also for ever

    def take(self, came: Sequence, body: str) -> Acknowledgement:
        state = msgspec.msgpack.decode(self.disk, type=Inbound)
        decision = destination.arrive(state, came, "1.2")
        if decision is Decision.HOLD:
            self.held[came.number] = body
            state = destination.received(state, came, 0)
        elif decision is Decision.PROCESS:
            state = self._process(destination.received(state, came, 0), came.number, body)
            while (number := destination.next_held(state)) is not None:
                state = self._process(state, number, self.held.pop(number))
        self.disk = msgspec.msgpack.encode(state)
        return destination.acknowledgement(state)

    def _process(self, state: Inbound, number: int, body: str) -> Inbound:
        self.done.append(body)
        return destination.processed(state, number)


@dataclass
class Sender:
    """Keeps its state on a disk before it sends."""

    disk: bytes = field(
        default_factory=lambda: msgspec.msgpack.encode(Outbound(identifier="urn:s", rm=WSRM11))
    )

    def load(self) -> Outbound:
        """What a restart finds: the acknowledgements since the last new number are forgotten."""
        return msgspec.msgpack.decode(self.disk, type=Outbound)


def run(seed: int) -> list[str]:
    """Send until everything is acknowledged. Returns what was processed."""
    random = Random(seed)
    receiver, sender = Receiver(), Sender()
    state = sender.load()
    to_receiver: list[tuple[Sequence, str]] = []
    to_sender: list[Acknowledgement] = []
    sent = 0
    for _ in range(STEPS_MAX):
        if random.random() < 0.02:
            state = sender.load()  # a power cut at the sending end
        if sent < MESSAGES and source.has_room(state, 0, outstanding_max=OUTSTANDING_MAX):
            sent += 1
            state = source.place(state, (sent, sent))
            sender.disk = msgspec.msgpack.encode(state)
        for number in source.unacknowledged(state):
            if random.random() < 0.3:  # sent for the first time, or again
                copies = random.choice([0, 1, 1, 2])
                to_receiver += [(source.header(state, number), f"body {number}")] * copies
        random.shuffle(to_receiver)
        if to_receiver and random.random() < 0.7:
            to_sender.append(receiver.take(*to_receiver.pop()))
        random.shuffle(to_sender)
        if to_sender and random.random() < 0.7:
            state = source.acknowledge(state, to_sender.pop(), "1.2")
        to_receiver, to_sender = to_receiver[-50:], to_sender[-50:]
        in_order = [f"body {n}" for n in range(1, len(receiver.done) + 1)]
        assert receiver.done == in_order, f"seed {seed}"
        if sent == MESSAGES and not source.unacknowledged(state):
            return receiver.done
    raise AssertionError(f"not everything was acknowledged in {STEPS_MAX} steps, seed {seed}")


@pytest.mark.parametrize(
    "seeds", [range(start, start + 25) for start in range(0, 200, 25)], ids=str
)
def test_each_message_is_processed_once_and_in_order_whatever_the_network_does(
    seeds: range,
) -> None:
    for seed in seeds:
        assert run(seed) == [f"body {n}" for n in range(1, MESSAGES + 1)], f"seed {seed}"


def test_what_comes_early_is_held_and_acknowledged() -> None:
    state = destination.received(inbound(), Sequence(WSRM11, "urn:s", 3), 5)

    assert destination.next_held(state) is None
    assert destination.acknowledgement(state).ranges == ((3, 3),)
    assert destination.held_count(state) == 1
    assert destination.arrive(state, Sequence(WSRM11, "urn:s", 3), "1.1") is Decision.REPEAT
    assert destination.arrive(state, Sequence(WSRM11, "urn:s", 1), "1.1") is Decision.PROCESS


def test_what_finds_no_room_is_not_acknowledged() -> None:
    state = inbound(received=((2, destination.HELD_MAX + 1),))
    late = Sequence(WSRM11, "urn:s", destination.HELD_MAX + 2)

    assert destination.arrive(state, late, "1.1") is Decision.NO_ROOM
    assert destination.arrive(state, Sequence(WSRM11, "urn:s", 1), "1.1") is Decision.PROCESS


def test_a_closed_sequence_processes_what_it_acknowledged_and_takes_no_more() -> None:
    state = destination.closing(inbound(received=((1, 1), (4, 5)), processed_to=1))

    order = []
    while (number := destination.next_held(state)) is not None:
        order.append(number)
        state = destination.processed(state, number)

    assert order == [4, 5]
    assert destination.acknowledgement(state) == Acknowledgement(
        WSRM11, "urn:s", ((1, 1), (4, 5)), final=True
    )
    with pytest.raises(SoapFault, match="closed") as raised:
        destination.arrive(state, Sequence(WSRM11, "urn:s", 2), "1.2")
    assert raised.value.subcode == (WSRM11, "SequenceClosed")


def fault(state: Inbound, came: Sequence) -> tuple[str, str] | None:
    with pytest.raises(SoapFault) as raised:
        destination.arrive(state, came, "1.2")
    return raised.value.subcode


def test_numbers_past_the_end_are_refused() -> None:
    older = destination.received(inbound(WSRM10), Sequence(WSRM10, "urn:s", 2, last=True), 0)

    exceeded = (WSRM10, "LastMessageNumberExceeded")
    assert fault(older, Sequence(WSRM10, "urn:s", 3)) == exceeded
    rollover = (WSRM11, "MessageNumberRollover")
    assert fault(inbound(), Sequence(WSRM11, "urn:s", 2**63)) == rollover
    assert fault(inbound(WSRM10), Sequence(WSRM11, "urn:s", 1)) == (WSRM11, "UnknownSequence")


def test_a_last_message_cannot_come_before_others_of_its_sequence() -> None:
    state = inbound(WSRM10, received=((1, 1), (9, 9)), processed_to=1)

    exceeded = (WSRM10, "LastMessageNumberExceeded")
    assert fault(state, Sequence(WSRM10, "urn:s", 8, last=True)) == exceeded


def test_a_message_keeps_its_number_until_its_sequence_ends() -> None:
    state = source.place(Outbound(identifier="urn:s", rm=WSRM10), (40, 41))

    assert source.number_of(state, (40, 41)) == 1
    assert source.number_of(state, (40, 42)) is None
    assert not source.has_room(state, 0), "the one before is outstanding"
    state = source.acknowledge(state, Acknowledgement(WSRM10, "urn:s", ((1, 1),)), "1.1")
    assert source.is_acknowledged(state, 1)
    assert source.has_room(state, 0)
    assert source.number_of(source.place(state, (42, 42)), (42, 42)) == 2


def test_an_expired_sequence_takes_no_more() -> None:
    assert not source.has_room(Outbound(identifier="urn:s", rm=WSRM10, expires_ns=9), 9)


def test_an_acknowledgement_of_what_was_never_sent_is_refused() -> None:
    state = source.place(Outbound(identifier="urn:s", rm=WSRM11), (1, 1))

    for ranges in (((1, 2),), ((0, 1),)):
        with pytest.raises(SoapFault) as raised:
            source.acknowledge(state, Acknowledgement(WSRM11, "urn:s", ranges), "1.2")
        assert raised.value.subcode == (WSRM11, "InvalidAcknowledgement")


def test_an_acknowledgement_of_another_sequence_changes_nothing() -> None:
    state = source.place(Outbound(identifier="urn:s", rm=WSRM11), (1, 1))

    assert source.acknowledge(state, Acknowledgement(WSRM11, "urn:t", ((1, 1),)), "1.2") is state
    assert source.acknowledge(state, Acknowledgement(WSRM10, "urn:s", ((1, 1),)), "1.2") is state
