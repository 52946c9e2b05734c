"""Standby peers: one at a time, the next when it fails, back to the first when it returns."""

from __future__ import annotations

from tocsin.errors import LinkTwice
from tocsin.event.instant import NS_PER_S
from tocsin.overlay.routing.peers import Dial, PeerGroup, PeerOptions

OPTIONS = PeerOptions(pause_ns_min=NS_PER_S, pause_ns_max=8 * NS_PER_S, return_ns=30 * NS_PER_S)


def group(*peers: str) -> PeerGroup:
    return PeerGroup(peers, OPTIONS)


def failing(peers: PeerGroup, now_ns: int, times: int) -> list[str]:
    """The peers that are tried at this moment, if every one fails."""
    tried = []
    for _ in range(times):
        dial = peers.due(now_ns)
        if dial is None:
            break
        tried.append(dial.peer)
        peers.failed(dial.peer, now_ns, jitter=0)
    return tried


def test_the_first_peer_is_dialled_first_and_only_once_at_a_time() -> None:
    peers = group("a", "b")

    assert peers.due(0) == Dial("a")
    assert peers.due(0) is None
    peers.linked("a", 0)
    assert peers.used == "a"
    assert peers.due(1_000 * NS_PER_S) is None
    assert peers.wake_ns is None


def test_the_next_is_tried_at_once_and_all_again_after_a_pause_that_doubles() -> None:
    peers = group("a", "b", "c")

    assert failing(peers, 0, 10) == ["a", "b", "c"]
    assert peers.wake_ns == NS_PER_S
    assert failing(peers, NS_PER_S - 1, 10) == []
    assert failing(peers, NS_PER_S, 10) == ["a", "b", "c"]
    assert peers.wake_ns == 3 * NS_PER_S


def test_the_pause_has_an_end_and_its_jitter_is_given() -> None:
    peers = group("a")
    now_ns = 0
    for _ in range(40):
        assert failing(peers, now_ns, 1) == ["a"]
        now_ns = peers.wake_ns or 0
    assert peers.due(now_ns) == Dial("a")

    peers.failed("a", now_ns, jitter=0.5)

    assert peers.wake_ns == now_ns + 6 * NS_PER_S


def test_when_the_peer_in_use_fails_the_next_one_is_dialled() -> None:
    peers = group("a", "b")
    peers.due(0)
    peers.linked("a", 0)

    peers.failed("a", 5, jitter=0)

    assert peers.used == ""
    assert peers.due(5) == Dial("b")


def test_while_a_standby_is_used_the_first_is_tried_now_and_then() -> None:
    peers = group("a", "b")
    peers.due(0)
    peers.failed("a", 0, jitter=0)
    peers.due(0)
    peers.linked("b", 0)

    assert peers.due(29 * NS_PER_S) is None
    assert peers.due(30 * NS_PER_S) == Dial("a", replacing="b")
    peers.failed("a", 30 * NS_PER_S, jitter=0, code="T803")
    assert peers.used == "b"
    assert peers.due(59 * NS_PER_S) is None
    assert peers.due(60 * NS_PER_S) == Dial("a", replacing="b")
    peers.linked("a", 60 * NS_PER_S)
    assert peers.used == "a"


def test_a_standby_that_fails_while_the_first_is_tried_leaves_that_attempt_alone() -> None:
    peers = group("a", "b")
    peers.due(0)
    peers.failed("a", 0, jitter=0)
    peers.due(0)
    peers.linked("b", 0)
    peers.due(30 * NS_PER_S)

    peers.failed("b", 31 * NS_PER_S, jitter=0)

    assert peers.due(31 * NS_PER_S) is None
    peers.linked("a", 32 * NS_PER_S)
    assert peers.used == "a"


def test_a_peer_that_connected_by_itself_needs_no_standby() -> None:
    peers = group("a", "b")
    peers.due(0)

    peers.failed("a", 0, jitter=0, code=LinkTwice.code)

    assert peers.due(0) is None
    assert peers.due(NS_PER_S) == Dial("a")
