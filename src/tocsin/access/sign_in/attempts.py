"""Attempts to sign in: who fails too often from one address has to wait, longer each time.

Only that address has to, and what signed in from there before is let in meanwhile. A credential
that is shown again and again is one guess, until it is really often: a script with a wrong token
does not lock out the others on its machine. What is remembered is bounded.
"""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

from tocsin.access.peers import counted_as, host_of
from tocsin.errors import QuotaReached
from tocsin.event.instant import NS_PER_S

WINDOW_NS: Final = 60 * NS_PER_S
WAIT_NS_MIN: Final = 30 * NS_PER_S
WAIT_NS_MAX: Final = 3_600 * NS_PER_S
FORGET_NS: Final = 2 * WAIT_NS_MAX  # without failures, the next wait is the shortest again
REPEATS: Final = 10  # so many times as many failures may be of credentials that failed before
PEERS_MAX: Final = 10_000
KNOWN_MAX: Final = 10_000


class _Peer:
    """The failures of one address."""

    __slots__ = ("began_ns", "failures", "guesses", "last_ns", "until_ns", "waits")

    def __init__(self, now_ns: int) -> None:
        self.began_ns = now_ns
        self.failures = 0
        self.guesses: set[bytes] = set()  # of those, different ones
        self.waits = 0  # how often it had to wait
        self.until_ns = 0
        self.last_ns = now_ns


class Proof(msgspec.Struct, frozen=True):
    """A credential at an address, without its secret."""

    peer: str
    digest: bytes


def proof_of(peer: str, credential: bytes) -> Proof:
    """`peer` is written host:port."""
    return Proof(counted_as(host_of(peer)), hashlib.sha256(credential).digest()[:16])


class Attempts:
    """See the module. Times are of a clock that does not go back."""

    def __init__(self, failures_max: int) -> None:
        """So many different ones in a minute, from one address."""
        self._failures_max = failures_max
        self._peers: dict[str, _Peer] = {}  # those that failed last at the end
        self._known: dict[Proof, None] = {}  # that signed in, the last at the end
        self.refused_count = 0

    def check(self, proof: Proof, now_ns: int) -> None:
        """Raise QuotaReached if this address has to wait before it tries again."""
        peer = self._peers.get(proof.peer)
        if peer is None or now_ns >= peer.until_ns or proof in self._known:
            return
        self.refused_count += 1
        wait_s = (peer.until_ns - now_ns) / NS_PER_S
        raise QuotaReached(
            f"too many sign-ins from {proof.peer} have failed",
            remedy=f"Nothing was looked at. Wait {wait_s:.0f} s, and use a credential that is "
            "valid.",
            retry_after_s=wait_s,
        )

    def failed(self, proof: Proof, now_ns: int) -> bool:
        """True if the address has to wait from now on."""
        self._known.pop(proof, None)
        peer = self._peers.pop(proof.peer, None)
        if peer is None or now_ns - peer.last_ns >= FORGET_NS:
            peer = _Peer(now_ns)
        if now_ns - peer.began_ns >= WINDOW_NS:
            peer.began_ns, peer.failures = now_ns, 0
            peer.guesses.clear()
        if len(self._peers) >= PEERS_MAX:
            del self._peers[next(iter(self._peers))]
        self._peers[proof.peer] = peer
        peer.last_ns = now_ns
        peer.failures += 1
        peer.guesses.add(proof.digest)
        most = self._failures_max
        if len(peer.guesses) < most and peer.failures < most * REPEATS:
            return False
        peer.until_ns = now_ns + min(WAIT_NS_MAX, WAIT_NS_MIN << min(peer.waits, 16))
        peer.waits += 1
        peer.failures, peer.began_ns = 0, peer.until_ns
        peer.guesses.clear()
        return True

    def signed_in(self, proof: Proof) -> None:
        """The credential was good, so its holder is no guesser."""
        self._known.pop(proof, None)
        if len(self._known) >= KNOWN_MAX:
            del self._known[next(iter(self._known))]
        self._known[proof] = None
