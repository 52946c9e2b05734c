"""Brokers as processes, linked by TCP: events, failures, cycles, standby peers, brokers that go."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from brokers import (
    Brokers,
    Publishing,
    box,
    brokers,
    id_of,
    overlay,
    until_arrived,
    until_reached,
    until_wanted,
)

from served import Served
from tocsin.client import WseClient
from tocsin.event.instant import rfc3339_ns
from waiting import wait_until

PAYLOAD = '<s:sweep xmlns:s="urn:sweep">7</s:sweep>'


@pytest.fixture
def place() -> Iterator[Brokers]:
    with brokers() as found:
        yield found


def chain(place: Brokers) -> tuple[Served, Served, Served]:
    """Three brokers in a row; the second one connects to nobody."""
    b = place.start("b")
    a, c = place.start("a", b.link), place.start("c", b.link)
    until_reached(a, b, c)
    until_reached(c, a, b)
    return a, b, c


def test_a_consumer_by_ws_eventing_hears_a_publisher_of_cloudevents_two_brokers_away(
    place: Brokers,
) -> None:
    a, b, c = chain(place)

    with WseClient(c.url) as client, client.subscribe("lead/**") as messages:
        [found] = c.call("GET", "/subscriptions")[1]["subscriptions"]
        path = f"/subscriptions/{found['id']}"
        wanted = {id_of(a), id_of(b)}
        wait_until(
            lambda: set(c.call("GET", path)[1].get("reached", ())) == wanted, "it holds at both"
        )
        held = c.call("GET", path)[1]
        moments = [rfc3339_ns(each) for each in (held["created"], *held["reached"].values())]
        assert moments[0] == min(moments)
        [row] = (each for each in overlay(c)["subscriptions"] if each["last_hop"] is None)
        assert row["reached"].keys() == wanted
        a.publish(
            {"topic": "other", "data": 1},
            {"topic": "lead/ohio", "datacontenttype": "application/xml", "data": PAYLOAD},
        )
        message = messages.take(20.0)

        assert message is not None
        assert (message.topic, message.payload.decode()) == ("lead/ohio", PAYLOAD)
        assert messages.take(0.5) is None
    neighbours = overlay(b)["neighbours"]
    assert {each["broker"] for each in neighbours} == {id_of(a), id_of(c)}
    assert sum(each["sent"] for each in neighbours) == 1  # nobody at A wants anything


def test_without_links_a_subscription_says_nothing_of_other_brokers(place: Brokers) -> None:
    alone = place.start("alone")
    _, made = alone.call("POST", "/subscriptions", {"sink": "http://127.0.0.1:9/hook"})

    assert "reached" not in alone.call("GET", f"/subscriptions/{made['id']}")[1]


@pytest.mark.parametrize("killed", ["a", "b", "c"])
def test_nothing_acknowledged_is_lost_when_a_broker_is_killed_while_events_flow(
    place: Brokers, killed: str
) -> None:
    a, b, c = chain(place)
    box_id = box(c, "lead/**")
    until_wanted(a, "lead/**")

    with Publishing(a, "lead/x") as publishing:
        publishing.go_on(50)
        victim = {"a": a, "b": b, "c": c}[killed]
        for _ in range(2):
            victim.kill()
            time.sleep(0.3)
            victim.start()
            publishing.go_on(50)

    got = until_arrived(c, box_id, publishing.acknowledged)
    firsts = list(dict.fromkeys(got))
    wanted = set(publishing.acknowledged)
    assert [each for each in firsts if each in wanted] == publishing.acknowledged


def test_a_link_that_would_close_a_cycle_is_refused_and_overlay_says_why(place: Brokers) -> None:
    a = place.start("a")
    b = place.start("b", a.link)
    until_reached(b, a)
    c = place.start("c", b.link)
    until_reached(c, a, b)

    d = place.start("d", a.link, c.link)
    until_reached(a, b, c, d)

    def second_is_refused() -> bool:
        """Both may have been at first, when they came at once."""
        peers = overlay(d)["peers"]
        errors = [peer["error"] for peer in peers if peer["state"] != "linked" and peer["error"]]
        return len(errors) == 1 and all(
            "T803" in (error["code"], error["problem"][-5:-1]) and "cycle" in error["problem"]
            for error in errors
        )

    wait_until(second_is_refused, "one of the two is refused, and says why")
    until_reached(d, a, b, c)


def test_a_standby_peer_takes_over_for_a_middle_that_was_killed(place: Brokers) -> None:
    b, s = place.start("b"), place.start("s")
    a = place.start("a", f"{b.link},{s.link}")
    c = place.start("c", f"{b.link},{s.link}")
    until_reached(a, b, c)
    box_id = box(c, "lead/**")
    until_wanted(a, "lead/**")

    with Publishing(a, "lead/x") as publishing:
        publishing.go_on(30)
        b.kill()
        wait_until(lambda: set(overlay(a)["brokers"]) == {id_of(s), id_of(c)}, "the tree heals")
        until_wanted(s, "lead/**")
        healed = len(publishing.acknowledged) + 1
        publishing.go_on(30)

    got = until_arrived(c, box_id, publishing.acknowledged[healed:])
    assert overlay(a)["peers"][0]["used"] == s.link

    b.start()  # it has what it acknowledged and could not pass on
    until_arrived(c, box_id, publishing.acknowledged, got)


def test_a_copy_of_a_data_directory_is_refused(place: Brokers) -> None:
    seldom = "20"  # who was silent for longer than 1.5 heartbeats may be gone
    a = place.start("a", TOCSIN_OVERLAY__HEARTBEAT_S=seldom, TOCSIN_OVERLAY__SILENCE_S="60")
    b = place.start("b", a.link)
    until_reached(a, b)
    b.stop()
    shutil.copytree(b.directory, place.directory / "copy")
    b.start()
    until_reached(a, b)

    copy = place.start("copy", a.link)
    wait_until(lambda: overlay(copy)["peers"][0]["error"], "it is refused")

    [peer] = overlay(copy)["peers"]
    assert "and this is another one [T805]" in peer["error"]["problem"]
    assert peer["state"] != "linked"
    assert overlay(a)["neighbours"][0]["state"] == "up"
    assert overlay(b)["peers"][0]["state"] == "linked"


def test_a_copy_that_connects_elsewhere_in_the_overlay_is_told_that_it_is_one(
    place: Brokers,
) -> None:
    a, b, c = chain(place)
    c.stop()
    shutil.copytree(c.directory, place.directory / "copy")
    c.start()
    until_reached(a, b, c)

    copy = place.start("copy", a.link)
    wait_until(lambda: overlay(copy)["peers"][0]["error"], "it is refused")

    [peer] = overlay(copy)["peers"]
    assert peer["error"]["code"] == "T805" or "[T805]" in peer["error"]["problem"]
    assert f"the id {id_of(c)} is reached" in peer["error"]["problem"]
    assert set(overlay(a)["brokers"]) == {id_of(b), id_of(c)}


def test_a_broker_that_is_gone_for_good_is_forgotten_everywhere(place: Brokers) -> None:
    a, b, c = chain(place)
    gone = id_of(c)
    box(c, "lead/**")
    until_wanted(a, "lead/**")
    status, problem = a.call("DELETE", f"/overlay/brokers/{gone}")
    assert (status, problem["code"]) == (409, "T808")

    c.kill()
    until_reached(a, b)
    assert b.call("DELETE", f"/overlay/brokers/{gone}")[0] == 204

    for broker in a, b:
        wait_until(
            lambda broker=broker: not overlay(broker)["subscriptions"], "it wants nothing more"
        )
    assert gone not in [each["broker"] for each in overlay(b)["neighbours"]]
    assert b.call("DELETE", "/overlay/brokers/nobody")[0] == 404


def test_a_link_holds_by_tls_and_a_peer_without_it_is_told_why(place: Brokers, made: Path) -> None:
    files = ("--tls-cert", str(made / "own.pem"), "--tls-key", str(made / "own.key"))
    secure = place.start("secure", flags=files)
    address = secure.link.replace("127.0.0.1", "localhost")

    b = place.start(
        "b", address, TOCSIN_OVERLAY__TLS="true", TOCSIN_OVERLAY__CA_FILE=str(made / "own.pem")
    )
    wait_until(lambda: overlay(b)["peers"][0]["state"] == "linked", b.said())
    c = place.start("c", address, TOCSIN_OVERLAY__TLS="true")
    wait_until(lambda: overlay(c)["peers"][0]["error"], "it is refused")

    assert "its TLS certificate is not trusted" in overlay(c)["peers"][0]["error"]["problem"]
    assert "overlay.ca_file" in overlay(c)["peers"][0]["error"]["remedy"]


def test_a_broker_with_a_full_disk_keeps_its_link_and_gets_the_events_when_there_is_room(
    place: Brokers,
) -> None:
    room = "TOCSIN_LOG__FREE_BYTES_MIN"
    a = place.start("a")
    b = place.start("b", a.link)
    until_reached(a, b)
    box_id = box(b, "lead/**")
    until_wanted(a, "lead/**")
    b.kill()
    b.env[room] = str(1 << 50)
    b.start()
    until_reached(a, b)

    a.publish(*({"id": f"e{number}", "topic": "lead/x", "data": 1} for number in range(5)))
    wait_until(lambda: "T403" in str(overlay(a)["neighbours"][0]["error"]), "it is told why")
    [shown] = overlay(a)["neighbours"]
    [there] = overlay(b)["neighbours"]
    assert (shown["state"], shown["lag"] > 0, there["state"]) == ("up", True, "up")
    assert there["error"]["code"] == "T403"
    assert "events of a neighbour are not stored" in b.said()

    b.kill()
    del b.env[room]
    b.start()
    assert until_arrived(b, box_id, [f"e{number}" for number in range(5)])
    wait_until(lambda: overlay(a)["neighbours"][0]["lag"] == 0, "nothing is owed")
    wait_until(lambda: overlay(a)["neighbours"][0]["error"] is None, "it goes on")


def test_tables_larger_than_what_may_wait_for_a_neighbour_are_exchanged_whole(
    place: Brokers,
) -> None:
    count = 600  # in two pieces, of 4 MB each
    a = place.start("a", TOCSIN_OVERLAY__WAITING_BYTES_MAX=str(4 << 20))
    for number in range(count):
        wide = {"exact": {"subject": f"{number} {'x' * 8_000}"}}
        status, made = a.call("POST", "/boxes", {"filters": [wide]})
        assert status == 201, made

    b = place.start("b", a.link, TOCSIN_OVERLAY__ENTRY_BYTES_PER_NEIGHBOUR_MAX=str(64 << 20))
    until_reached(a, b)
    wait_until(lambda: overlay(b)["subscriptions_total"] == count, "all are there")

    assert overlay(a)["neighbours"][0]["state"] == "up"
    assert "a link is down" not in a.said()
