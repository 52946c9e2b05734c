"""Advertisements that were verified: what is read often is checked once."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from tocsin.access.delegation import statements
from tocsin.topics.advertisement import Advertisement, SignedAdvertisement, verify
from tocsin.topics.trust import TrustedTdns

KEPT_BYTES_MAX: Final = 16 << 20  # as they travel; most have 4 kB. What is read takes as much again


class VerifiedAdvertisements:
    """The last that were read, by the hash of what was signed. Whether the node is still trusted is
    asked each time."""

    def __init__(self, trusted: TrustedTdns, kept_bytes_max: int = KEPT_BYTES_MAX) -> None:
        self.trusted = trusted  # exchanged when authorities or revocations change
        self._bytes_left = kept_bytes_max
        self._kept: OrderedDict[str, tuple[SignedAdvertisement, Advertisement]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def verify(self, signed: SignedAdvertisement, now_ns: int) -> Advertisement:
        """As `advertisement.verify`."""
        known = self._kept.get(hash := statements.digest(signed.jws))
        # The certificates beside it are not signed, so others may have come with the same text.
        if known is not None and known[0] == signed:
            self.trusted.check(signed.tdn_certificate, now_ns)
            self._kept.move_to_end(hash)
            return known[1]
        found = verify(signed, self.trusted, now_ns)
        if known is not None:
            self._forget(hash)
        self._kept[hash] = (signed, found)
        self._bytes_left -= _size(signed)
        while self._bytes_left < 0:
            self._forget(next(iter(self._kept)))
        return found

    def _forget(self, hash: str) -> None:
        signed, _ = self._kept.pop(hash)
        self._bytes_left += _size(signed)


def _size(signed: SignedAdvertisement) -> int:
    return len(signed.jws) + len(signed.tdn_certificate) + len(signed.creator_certificate)
