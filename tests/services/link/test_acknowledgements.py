"""A neighbour acknowledges what it was sent, or its link begins anew; the log waits so long."""

from __future__ import annotations

import gc

import pytest
from link_peer import SESSION, LinkedBroker, event, options_with

from tocsin.broker.options import BrokerOptions
from tocsin.wire.link import messages as m

ACKNOWLEDGE_S = 20.0
OPTIONS = options_with(acknowledge_s=ACKNOWLEDGE_S)


def test_a_neighbour_that_acknowledges_nothing_in_time_is_cut_off_and_named() -> None:
    broker = LinkedBroker(OPTIONS)
    peer = broker.linked("")
    broker.publish(event(1))
    assert peer.got() == ["1"]

    peer.live_s(ACKNOWLEDGE_S - 2)
    assert not peer.is_over
    peer.live_s(4)

    assert peer.is_over
    [refusal] = peer.taken(m.Refuse)
    assert refusal.code == "T810"
    error = broker.neighbour().error
    assert error is not None
    assert error.code == "T810"
    assert "peer has not acknowledged 1 event" in error.problem
    assert "overlay.acknowledge_s" in error.remedy


def test_what_was_not_acknowledged_is_sent_again_on_the_next_link() -> None:
    broker = LinkedBroker(OPTIONS)
    peer = broker.linked("")
    broker.publish(event(1), event(2))
    peer.live_s(ACKNOWLEDGE_S + 2)
    assert peer.is_over

    assert broker.linked("").got() == ["1", "2"]


def test_a_neighbour_that_acknowledges_one_batch_after_the_other_has_time_for_each() -> None:
    broker = LinkedBroker(OPTIONS)
    peer = broker.linked("")
    for number in range(1, 6):
        broker.publish(event(number))

    for number in range(1, 6):
        peer.live_s(ACKNOWLEDGE_S - 5)
        peer.say(m.Acknowledge(number))

    assert not peer.is_over
    assert broker.neighbour().in_flight == 0
    peer.live_s(3 * ACKNOWLEDGE_S)
    assert not peer.is_over, "nothing is on its way"


def test_time_in_which_this_broker_could_not_read_does_not_count() -> None:
    broker = LinkedBroker(OPTIONS)
    peer = broker.linked("")
    broker.publish(event(1))

    broker.runtime._now_ns += int(10 * ACKNOWLEDGE_S * 1e9)  # the machine was asleep
    broker.runtime.pass_s(1.0)

    assert not peer.is_over
    peer.live_s(ACKNOWLEDGE_S + 2)
    assert peer.is_over


def test_events_on_their_way_to_a_neighbour_do_not_hold_the_log_for_longer_than_others() -> None:
    broker = LinkedBroker(
        options_with(acknowledge_s=1e9),
        BrokerOptions(backlog_age_s=60.0, retain_age_s=60.0, retention_check_s=10.0),
    )
    peer = broker.linked("")
    broker.publish(event(1))
    assert peer.got() == ["1"]

    peer.live_s(120)

    assert broker.said("events waited longer than the subscription may hold them")
    [neighbour] = broker.links.info(SESSION, 10).neighbours
    assert neighbour.dropped == 1
    assert neighbour.lag == 0


@pytest.mark.filterwarnings("error")
def test_a_link_that_ends_before_its_events_are_looked_at_leaves_nothing_behind() -> None:
    broker = LinkedBroker()
    peer = broker.linked("")
    neighbour = broker.neighbour()

    neighbour.take(m.Events(1), 100)  # to be stored in the next turn
    neighbour.disconnect()
    gc.collect()
    broker.runtime.settle()

    assert broker.links._backlog.bytes == 0
    assert not peer.taken(m.Acknowledge)
