"""Whoever asks is answered: acknowledged events, queries, and requests that come at once."""

from __future__ import annotations

import socket

from frames_peer import (
    PARAMETERS,
    Peer,
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
    unsubscribe,
)

from served import Served

# Acknowledged events


def test_an_event_is_answered_once_it_is_on_disk(broker: Served) -> None:
    name = new_name()
    peer, own = producing(broker, name, nonce=f"run-{name}")
    with peer:
        reply = peer.ask(event(own, content(name), "e1"))

        assert (reply.kind, reply.request, reply.returned) == ("EventReply", "e1", "Success")
        (kept,) = stored(broker, name)
        assert kept["id"] == f"run-{name}/e1"


def test_a_bad_event_is_answered_with_a_failure_and_the_connection_stays(broker: Served) -> None:
    name = new_name()
    peer, own = producing(broker, name, nonce=f"run-{name}")
    with peer:
        peer.send(
            event(own, content(name), "e1"),
            event(own, content(name, time="yesterday"), "e2"),
            event(own, f"<{name}/>", "e3"),
            event(own, content(name), "e4"),
        )
        replies = {(said := peer.hears("EventReply")).request: said for _ in range(4)}

        assert list(replies) == ["e1", "e2", "e3", "e4"]
        assert [said.returned for said in replies.values()] == [
            "Success", "Failure", "Failure", "Success",
        ]  # fmt: skip
        assert "'yesterday' is not a time stamp" in replies["e2"].detail
        assert "has no TimeStamp" in replies["e3"].detail
    assert len(stored(broker, name)) == 2


def test_the_same_number_again_is_answered_and_not_kept_twice(broker: Served) -> None:
    name = new_name()
    for _ in range(2):
        peer, own = producing(broker, name, nonce=f"run-{name}")
        with peer:
            peer.send(*(event(own, content(name), f"e{n}") for n in (1, 2, 2, 3)))
            assert [peer.hears("EventReply").returned for _ in range(4)] == ["Success"] * 4

    assert [kept["id"] for kept in stored(broker, name)] == [f"run-{name}/e{n}" for n in (1, 2, 3)]


def test_an_event_of_an_ended_subscription_is_refused_and_costs_nothing_else(
    broker: Served,
) -> None:
    name = new_name()
    peer, own = producing(broker, name, nonce=f"run-{name}")
    with peer:
        assert peer.ask(unsubscribe(own)).returned == "Success"
        reply = peer.ask(event(own, content(name), "e1"))

        assert (reply.kind, reply.returned) == ("EventReply", "Failure")
        assert reply.detail == f"the subscription {own} has ended"
        assert peer.ask(event_names()).kind == "EventNamesReply"
    assert stored(broker, name) == []


# Queries


def test_a_query_is_answered_with_the_last_event_that_fits(broker: Served) -> None:
    name = new_name()
    publish(broker, name, content(name, 6.0, "a"), content(name, 1.0, "b"), content(name, 2.0, "a"))
    with Peer(broker.frames) as consumer:
        assert consumer.ask(query(name)).value("Load5") == "2.0"
        host = "<HostName>b</HostName>"
        assert consumer.ask(query(name, parameters=host)).value("Load5") == "1.0"
        busy = consumer.ask(query(name, extra=filtered("Load5 >= 5.0")))
        assert busy.value("Load5") == "6.0"
        period = '<Period units="sec">10</Period>'  # means nothing here, says the paper
        assert consumer.ask(query(name, parameters=period)).value("Load5") == "2.0"
        in_parameters = query(name, namespace=PARAMETERS)
        assert consumer.ask(in_parameters).value("Load5") == "2.0"


def test_a_query_for_what_there_is_not_says_what_there_is(broker: Served) -> None:
    name, other = new_name(), new_name()
    publish(broker, name, content(name))
    with Peer(broker.frames) as consumer:
        refused = consumer.ask(query(other))
        assert (refused.kind, refused.returned) == ("QueryReply", "Failure")
        assert f"no event {other} has arrived recently; EventNamesRequest lists:" in refused.detail

        refused = consumer.ask(query(name, extra=filtered("Load5 > 1000")))
        assert refused.detail == f"no event {name} like that has arrived recently"


def test_requests_sent_at_once_are_answered_in_their_order(broker: Served) -> None:
    name = new_name()
    publish(broker, name, content(name))
    with Peer(broker.frames) as consumer:
        consumer.send(
            *(query(name, str(n)) if n % 2 else event_names(str(n)) for n in range(100)),
        )
        assert [consumer.take().request for _ in range(100)] == [str(n) for n in range(100)]


def test_who_has_said_all_is_answered_and_then_hung_up_on(broker: Served) -> None:
    name = new_name()
    with Peer(broker.frames) as peer:
        own = peer.open(subscribe(name, extra=options(role="producer"))).subscription
        peer.send(*(event(own, content(name)) for _ in range(50)), event_names("last"))
        peer.socket.shutdown(socket.SHUT_WR)

        assert peer.take().request == "last"
        assert peer.is_hung_up_on()
    assert len(stored(broker, name)) == 50
