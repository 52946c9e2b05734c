"""What stays over a restart and over kill -9: acknowledged events, each once; names; the last
event; and a consumer's place in the log."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator

import pytest
from frames_peer import (
    EVENTS,
    Peer,
    complaints,
    content,
    event,
    event_names,
    filtered,
    new_name,
    options,
    producing,
    publish,
    query,
    stored,
    subscribe,
)

from served import Served, served

KILLS = 10
LOAD_S_MAX = 0.15
SEED = 933


@pytest.fixture(scope="module")
def restarted() -> Iterator[Served]:
    with served("--soap-tcp", "off") as running:
        yield running
        assert complaints(running) == []


def test_the_last_event_and_the_names_are_known_after_a_restart(restarted: Served) -> None:
    broker, name = restarted, new_name()
    publish(broker, name, content(name, 6.0), content(name, 1.0))
    broker.publish({"type": "com.example.order", "data": {"total": 7}})
    assert broker.stop() == 0
    broker.start()

    with Peer(broker.frames) as one, Peer(broker.frames) as other:
        one.send(event_names())
        other.send(event_names())
        expected = {(name, EVENTS), ("com.example.order", "urn:tocsin:type")}
        assert one.hears("EventNamesReply").names >= expected
        assert other.hears("EventNamesReply").names >= expected
        assert one.ask(query(name)).value("Load5") == "1.0"
        assert one.ask(query(name, extra=filtered("Load5 >= 5"))).value("Load5") == "6.0"


def test_numbers_sent_again_after_a_kill_are_answered_and_kept_once(restarted: Served) -> None:
    broker, name = restarted, new_name()
    messages = [(content(name, n), f"e{n}") for n in range(100)]
    peer, own = producing(broker, name, nonce=f"run-{name}")
    with peer:
        peer.send(*(event(own, *each) for each in messages))
        assert peer.hears("EventReply").returned == "Success"  # the others may be on disk or not
    broker.kill()
    broker.start()

    peer, own = producing(broker, name, nonce=f"run-{name}")
    with peer:
        peer.send(*(event(own, *each) for each in messages))
        replies = [peer.hears("EventReply") for _ in messages]

    assert [(said.request, said.returned) for said in replies] == [
        (number, "Success") for _, number in messages
    ]
    assert [kept["id"] for kept in stored(broker, name)] == [
        f"run-{name}/{number}" for _, number in messages
    ]


def test_a_consumer_goes_on_where_it_was_without_loss_or_gap(restarted: Served) -> None:
    broker, name = restarted, new_name()
    begins: list[int] = []

    def following(after: int | None) -> Peer:
        reported = {} if after is None else {"after": str(after)}
        peer = Peer(broker.frames)
        extra = options(role="consumer", context="true", **reported)
        agreed = peer.open(subscribe(name, extra=extra)).options
        assert agreed["context"] == "true"
        begins.append(int(agreed["after"]))
        return peer

    with following(None) as consumer:
        publish(broker, name, *(content(name, n) for n in range(10)))
        received = [consumer.hears("Event") for _ in range(7)]
    publish(broker, name, *(content(name, n) for n in range(10, 20)))
    broker.kill()
    broker.start()
    publish(broker, name, *(content(name, n) for n in range(20, 30)))
    last = received[-1].context
    assert last["source"] == "gma://foo.gov"
    assert last["topic"] == f"gma/{name}/foo.gov"
    with following(int(last["seq"])) as consumer:
        received += [consumer.hears("Event") for _ in range(23)]
        assert consumer.hears_nothing()

    assert [said.value("Load5") for said in received] == [str(n) for n in range(30)]
    assert begins == [int(received[0].context["seq"]) - 1, int(last["seq"])]
    kept = {str(each["id"]) for each in stored(broker, name)}
    assert {said.context["id"] for said in received} == kept


def test_who_lost_its_connection_before_the_first_event_loses_none(restarted: Served) -> None:
    broker, name = restarted, new_name()
    asked = {"role": "consumer", "context": "true"}
    with Peer(broker.frames) as consumer:
        begins = consumer.open(subscribe(name, extra=options(**asked))).options["after"]
    publish(broker, name, content(name))

    with Peer(broker.frames) as consumer:
        consumer.open(subscribe(name, extra=options(**asked, after=begins)))
        assert consumer.hears("Event").value("Load5") == "1.6"


def test_a_place_behind_the_end_of_the_log_is_the_end(restarted: Served) -> None:
    name = new_name()
    with Peer(restarted.frames) as consumer:
        consumer.open(subscribe(name, extra=options(role="consumer", after="999999999")))

        publish(restarted, name, content(name))

        assert consumer.hears("Event").subscription == "12"


# Under load


class Sender:
    """A producer that sends 1, 2, 3, ... and after a lost connection all that was not answered."""

    def __init__(self, broker: Served, name: str, nonce: str) -> None:
        self.broker = broker
        self.name = name
        self.nonce = nonce
        self.answered = 0
        self.stop = threading.Event()
        self.problems: list[str] = []

    def run(self) -> None:
        while not self.stop.is_set():
            try:
                self._session()
            except (OSError, AssertionError):
                time.sleep(0.01)  # the broker is down, or was killed in the midst of a word

    def _session(self) -> None:
        peer, own = producing(self.broker, self.name, nonce=self.nonce)
        with peer:
            while not self.stop.is_set():
                numbers = range(self.answered + 1, self.answered + 21)
                peer.send(
                    *(event(own, content(self.name, n, self.nonce), f"e{n}") for n in numbers)
                )
                for number in numbers:
                    reply = peer.hears("EventReply")
                    if (reply.request, reply.returned) != (f"e{number}", "Success"):
                        self.problems.append(reply.data.decode())
                    self.answered = number


def test_whatever_was_answered_is_there_once_and_in_order_after_many_kills() -> None:
    chance = random.Random(SEED)
    with served("--soap-tcp", "off") as broker:
        name = new_name()
        senders = [Sender(broker, name, f"s{n}") for n in range(3)]
        threads = [threading.Thread(target=sender.run) for sender in senders]
        for thread in threads:
            thread.start()
        for _ in range(KILLS):
            time.sleep(chance.uniform(0.02, LOAD_S_MAX))
            broker.kill()
            broker.start()
        time.sleep(LOAD_S_MAX)
        for sender in senders:
            sender.stop.set()
        for thread in threads:
            thread.join()

        kept = [str(each["id"]) for each in stored(broker, name)]

        for sender in senders:
            assert sender.problems == []
            assert sender.answered > KILLS
            own = [each for each in kept if each.startswith(f"{sender.nonce}/")]
            assert own == [f"{sender.nonce}/e{n}" for n in range(1, len(own) + 1)]
            assert len(own) >= sender.answered
        assert complaints(broker) == []
