"""Which topic discovery nodes are believed: being one is a right that a certificate gives."""

from __future__ import annotations

from typing import Final

import msgspec

from tocsin.access.delegation.keys import PublicKey
from tocsin.access.sign_in.certificates import Authorities, Usage, verified
from tocsin.access.sign_in.certificates import Identity as CertifiedIdentity
from tocsin.errors import BadAdvertisement, BadCredential
from tocsin.event.instant import LATEST_NS
from tocsin.topics.identity import certified_key

CHECKED_MAX: Final = 256  # certificates of nodes whose check is remembered


class TrustedTdn(msgspec.Struct, frozen=True):
    """A node whose signature counts, and until when its certificate holds."""

    key: PublicKey
    expires_ns: int


class _Checked(msgspec.Struct, frozen=True):
    at_ns: int
    identity: CertifiedIdentity


class TrustedTdns:
    """Those with a certificate of the site's authorities that is for this use, and those whose ids
    are named: the broker's own, and in open mode those of its neighbours."""

    def __init__(
        self,
        authorities: Authorities,
        pinned: frozenset[str] = frozenset(),
        revoked: frozenset[str] = frozenset(),
    ) -> None:
        self._authorities = authorities
        # Verifying a chain costs three signatures' time, and nodes are few and asked often.
        self._checked: dict[bytes, _Checked] = {}
        self.pinned = pinned
        self._revoked = revoked  # keys of credentials, as revocation lists and operators say

    def check(self, certificate: bytes, now_ns: int) -> TrustedTdn:
        """The node that the certificate (DER) is of. Raises BadAdvertisement if it is none."""
        try:
            key = certified_key(certificate)
            if key.eid in self.pinned:
                return TrustedTdn(key, LATEST_NS)
            found = self._verified(certificate, now_ns)
        except BadCredential as error:
            raise BadAdvertisement(
                f"the topic discovery node that signed is not trusted: {error.problem}",
                remedy="An administrator can name it in topics.trusted_tdns, or have a "
                "certificate issued to it with `tocsin keys issue NAME --kind tdn`.",
            ) from None
        if found.credential.key in self._revoked:
            raise BadAdvertisement(
                f"the certificate of the topic discovery node {key.eid} is revoked",
                remedy="Have the topic advertised again by another node.",
            )
        return TrustedTdn(key, found.expires_ns)

    def _verified(self, certificate: bytes, now_ns: int) -> CertifiedIdentity:
        known = self._checked.get(certificate)
        if known is not None and known.at_ns <= now_ns < known.identity.expires_ns:
            return known.identity
        found = verified(certificate, self._authorities, now_ns, Usage.TDN)
        if len(self._checked) >= CHECKED_MAX:
            self._checked.clear()
        self._checked[certificate] = _Checked(now_ns, found)
        return found
