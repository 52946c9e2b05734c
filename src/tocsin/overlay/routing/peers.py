"""Standby peers: which of several named peers to connect to, and when.

One of them is used at a time, the first if possible. If it fails the next is tried at once; when
all have failed, after a pause that doubles. While a standby is used the first is tried now and
then: the router leaves the standby if the first accepts, which it does if no cycle comes of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tocsin.errors import LinkTwice
from tocsin.event.instant import NS_PER_S


@dataclass(frozen=True, slots=True)
class PeerOptions:
    """How long to wait between attempts."""

    pause_ns_min: int = NS_PER_S // 2
    pause_ns_max: int = 30 * NS_PER_S
    return_ns: int = 30 * NS_PER_S  # between attempts to go back to the first peer


@dataclass(frozen=True, slots=True)
class Dial:
    """Connect to this peer. With `replacing`, that one is in use until this one accepts."""

    peer: str
    replacing: str = ""


class PeerGroup:
    """Peers by name, the preferred one first. Whoever runs it connects, and says how that went."""

    def __init__(self, peers: Sequence[str], options: PeerOptions | None = None) -> None:
        assert peers
        self._peers = tuple(peers)
        self._options = options or PeerOptions()
        self._next = 0  # the peer to be tried next
        self._dialling = ""
        self._failures = 0  # in a row
        self._due_ns = 0
        self.used = ""  # the peer that is connected

    def due(self, now_ns: int) -> Dial | None:
        """The connection to open now, if any; nothing more is due until it is known how it went."""
        if self._dialling or now_ns < self._due_ns:
            return None
        if self.used == self._peers[0]:
            return None
        self._dialling = self._peers[0] if self.used else self._peers[self._next]
        return Dial(self._dialling, self.used)

    @property
    def wake_ns(self) -> int | None:
        """When the next connection is due; None while nothing is."""
        return None if self._dialling or self.used == self._peers[0] else self._due_ns

    def linked(self, peer: str, now_ns: int) -> None:
        """The peer has accepted, and is the one in use. The one before it has been left."""
        assert peer == self._dialling
        self._dialling = ""
        self.used = peer
        self._failures = 0
        self._next = 0
        self._due_ns = now_ns + self._options.return_ns

    def failed(self, peer: str, now_ns: int, jitter: float, code: str = "") -> None:
        """The peer could not be reached, or refused with the code of an error; or it was in use,
        and the link has ended. `jitter` is at least 0 and below 1."""
        assert 0 <= jitter < 1
        if peer == self._dialling:
            self._dialling = ""
            if self.used:
                self._due_ns = now_ns + self._options.return_ns
                return
        elif peer == self.used:
            self.used = ""
        else:
            return
        self._failures += 1
        if code != LinkTwice.code:  # then it is connected by its own doing: no other is needed
            self._next = (self._peers.index(peer) + 1) % len(self._peers)
        rounds, place = divmod(self._failures, len(self._peers))
        if place and code != LinkTwice.code:
            self._due_ns = now_ns
            return
        options = self._options
        pause_ns = min(options.pause_ns_min << min(rounds, 20), options.pause_ns_max)
        self._due_ns = now_ns + int(pause_ns * (1 + jitter) / 2)
