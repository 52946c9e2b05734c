"""What the log and `tocsin overlay` say of links that do not come about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from link_peer import OPTIONS, SESSION, LinkedBroker, Peer

from manual_runtime import ManualRuntime
from tocsin.access.session import anonymous
from tocsin.errors import PeerFailed
from tocsin.services.link.log_lines import CHANGES_MAX, CHANGES_S
from tocsin.services.link.transport import Receiver, Transport
from tocsin.services.link.views import LinkProblem
from tocsin.services.repeated_log import REASONS_MAX
from tocsin.wire.link import messages as m
from tocsin.wire.link.codec import encode

REFUSED = "a link was refused"
UP, DOWN = "a link is up", "a link is down"
NO_LINK = "no link to a peer"


def lines(runtime: ManualRuntime, words: str) -> int:
    return sum(1 for _, message in runtime.notes if message == words)


def refuse(at: LinkedBroker, host: str = "far.example", times: int = 1) -> None:
    """Somebody at this host connects and says what no broker says, so many times."""
    for _ in range(times):
        stranger = Peer(at, "stranger", "its-log")
        stranger.peer = f"{host}:{40_000 + at.links.refused.count}"
        stranger.receiver.received(b"GET / HTTP/1.1\r\n\r\n")
        at.runtime.settle()


def test_of_a_peer_that_is_refused_again_and_again_there_are_few_lines() -> None:
    broker = LinkedBroker()

    refuse(broker, times=1_000)

    assert broker.links.refused.count == 1_000
    assert lines(broker.runtime, REFUSED) == 10, "the first, second, fourth, ... 512th time"


def test_by_other_names_and_from_other_ports_a_peer_has_as_few_lines() -> None:
    broker = LinkedBroker()

    for number in range(2_000):
        stranger = Peer(broker, f"b{number}", "its-log")
        stranger.peer = f"far.example:{10_000 + number}"
        stranger.say(m.Hello(m.PROTOCOL_VERSION + 1, stranger.broker, "log", 1, "test"))

    assert broker.links.refused.count == 2_000
    assert lines(broker.runtime, REFUSED) < REASONS_MAX + 20


def test_a_link_that_comes_up_and_goes_down_all_the_time_has_a_few_lines_and_the_last() -> None:
    broker = LinkedBroker()

    for _ in range(50):
        broker.linked(broker="B").abort()
        broker.runtime.pass_s(0.1)
    neighbour = broker.linked(broker="B")

    changes = [message for _, message in broker.runtime.notes if message in (UP, DOWN)]
    assert changes == [UP, DOWN] * (CHANGES_MAX // 2)
    neighbour.live_s(CHANGES_S + 2)
    changes = [message for _, message in broker.runtime.notes if message in (UP, DOWN)]
    assert changes == [*[UP, DOWN] * (CHANGES_MAX // 2), UP]


class Answering:
    """Connects to `one`, where these bytes come; nobody can be reached elsewhere."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer

    async def connect(self, address: str, opened: Callable[[Transport], Receiver]) -> None:
        if not address.startswith("one"):
            raise PeerFailed(f"nobody is at {address}", remedy="Start it.")
        at = Silent()
        at.receiver = opened(at)
        at.receiver.received(self.answer)


class Silent(Peer):
    """A Transport whose other end takes everything."""

    def __init__(self) -> None:
        self.peer, self.waiting, self.is_over = "one:8403", 0, False
        self.session = anonymous("link", self.peer)

    def write(self, data: bytes) -> None: ...

    def abort(self) -> None:
        if not self.is_over:
            self.is_over = True
            self.receiver.ended("it is over")


def dialling(answer: bytes, peer: str = "one:8403") -> LinkedBroker:
    """A broker that has tried its peer for a minute."""
    broker = LinkedBroker(replace(OPTIONS, peers=(peer,)), connector=Answering(answer))
    broker.runtime.pass_s(60)
    return broker


def problem(broker: LinkedBroker) -> LinkProblem:
    (peer,) = broker.links.info(SESSION, 0).peers
    assert peer.error is not None
    return peer.error


def test_each_standby_that_cannot_be_reached_is_one_line_however_often_they_are_tried() -> None:
    broker = dialling(b"HTTP/1.1 400 Bad Request\r\n\r\n", "one:8403,two:8403")

    assert lines(broker.runtime, NO_LINK) == 2


def test_of_each_standby_the_last_error_is_shown() -> None:
    broker = dialling(b"HTTP/1.1 400 Bad Request\r\n\r\n", "one:8403,two:8403")
    (peer,) = broker.links.info(SESSION, 0).peers

    shown = {each.address: each.error.problem for each in peer.problems}

    assert list(shown) == ["one:8403", "two:8403"]
    assert "is not where a broker takes links" in shown["one:8403"]
    assert shown["two:8403"] == "nobody is at two:8403"


def test_a_peer_that_is_no_link_listener_is_said_to_be_none() -> None:
    shown = problem(dialling(b"HTTP/1.1 400 Bad Request\r\n\r\n"))

    assert shown.code == "T501"
    assert "one:8403 is not where a broker takes links: HTTP came" in shown.problem
    assert "--link" in shown.remedy


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        ("T802", "Update the older"),
        ("T803", "Remove one --peer"),
        ("T804", "names this broker itself"),
        ("T805", "an empty one"),
        ("T811", "`tocsin overlay forget ID` there"),
        ("T999", "Its log has more"),
    ],
)
def test_whoever_is_refused_is_told_what_to_do(code: str, remedy: str) -> None:
    shown = problem(dialling(encode(m.Refuse(code, "because"))))

    assert shown.code == "T809"
    assert f"because [{code}]" in shown.problem
    assert remedy in shown.remedy


@pytest.mark.parametrize("is_welcome_read", [False, True])
def test_why_a_link_ended_is_shown_although_it_was_not_up_yet(is_welcome_read: bool) -> None:
    broker = LinkedBroker()
    peer = broker.peer()
    for message in (peer.hello, m.Welcome()):
        peer.receiver.received(encode(message))
    if is_welcome_read:
        broker.runtime.settle()

    peer.receiver.ended("the other side closed the connection")
    broker.runtime.settle()

    [neighbour] = broker.links.info(SESSION, 10).neighbours
    assert neighbour.state == "down"
    assert neighbour.error is not None
    assert neighbour.error.problem == "the other side closed the connection"
