"""PeerCertificates: by what certificates clients and other brokers are known.

OpenSSL has verified a certificate before anybody here sees it. Whose it is, whether its key will do
and whether it is revoked, is decided here, by the files as they are now.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tocsin.access.session import Session
from tocsin.access.sign_in.certificates import Authorities, Identity, Usage, identity_of, verified
from tocsin.access.sign_in.revocation_lists import (
    RevocationList,
    read_lists,
    revoked_by,
    without_list,
)
from tocsin.access.sign_in.sign_in import SignedIn
from tocsin.config import CertificateSettings
from tocsin.errors import BadCredential, BadSetting, NotSignedIn, TocsinError

FILE_BYTES_MAX: Final = 64 << 20  # a list of a million certificates has about 40 MB
KNOWN_MAX: Final = 4_096


class PeerCertificates:
    """The authorities of a site and what they have revoked, as the files say."""

    def __init__(
        self, settings: CertificateSettings, now_ns: Callable[[], int] = time.time_ns
    ) -> None:
        """Raises BadCredential and BadSetting for files that cannot be used."""
        assert settings.client_ca
        self.settings = settings
        self.note_refused: Callable[[Session, str], None] = lambda session, why: None
        self.authorities = Authorities()
        self.revoked: frozenset[str] = frozenset()
        self._now_ns = now_ns
        self._lists: list[RevocationList] = []
        self._known: dict[tuple[bytes, Usage], Identity] = {}
        self._signers: set[bytes] = set()  # certificates that were verified without TLS
        self.load()

    def load(self) -> None:
        """Read the files again. If any of them cannot be used, nothing changes."""
        ca, crl = self.settings.client_ca, self.settings.crl_file
        authorities = Authorities.read(_content("certificates.client_ca", ca), ca)
        lists: list[RevocationList] = []
        if crl:
            lists = read_lists(_content("certificates.crl_file", crl), authorities, crl)
            self._check_newer(lists, crl)
        self.authorities, self._lists = authorities, lists
        self.revoked = revoked_by(lists)
        self._known.clear()
        self._signers.clear()

    def _check_newer(self, lists: list[RevocationList], origin: str) -> None:
        """An older list would give back what has been taken since."""
        before = {each.key_id: each.this_update_ns for each in self._lists}
        for each in lists:
            if each.this_update_ns < before.get(each.key_id, 0):
                raise BadCredential(
                    f"{origin} holds an older list of {each.authority} than before",
                    remedy="Use the newest; to go back to this one, start the broker again.",
                )

    def complaints(self) -> list[str]:
        """What keeps certificates from being accepted that might be good."""
        return list(self._without_list().values())

    def _without_list(self) -> dict[str, str]:
        if not self.settings.crl_file:
            return {}
        return without_list(self.authorities, self._lists, self._now_ns())

    def refused(self, session: Session, why: str) -> None:
        self.note_refused(session, why)

    def is_of_site(self, der: bytes) -> bool:
        return self.authorities.has_signed(der)

    def sign_in(self, der: bytes, *, is_server: bool) -> SignedIn:
        identity = self.identity(der, Usage.SERVER if is_server else Usage.CLIENT)
        return identity.principal, identity.credential

    def signer(self, der: bytes, session: Session) -> SignedIn:
        """Who has signed a message with the key of this certificate, which came in the message: so
        TLS has verified nothing. Raises NotSignedIn."""
        try:
            if der not in self._signers:
                verified(der, self.authorities, self._now_ns())
                if len(self._signers) >= KNOWN_MAX:
                    self._signers.clear()
                self._signers.add(der)
            return self.sign_in(der, is_server=False)
        except TocsinError as error:
            self.refused(session, error.problem)
            raise NotSignedIn(
                "the certificate is not accepted",
                remedy="Use a valid one of the site; the broker's log says what is wrong.",
            ) from None

    def identity(self, der: bytes, usage: Usage) -> Identity:
        """Who this is. Raises BadCredential for who is not to be signed in."""
        now_ns = self._now_ns()
        identity = self._known.get((der, usage))
        if identity is None or not identity.begins_ns <= now_ns < identity.expires_ns:
            identity = identity_of(der, self.authorities, now_ns, usage)
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            self._known[der, usage] = identity
        key = identity.credential.key
        if key in self.revoked:
            raise BadCredential("it is revoked", remedy="Have another one issued.")
        missing = self._without_list().get(key.split("/")[1])
        if missing is not None:
            raise BadCredential(missing, remedy="Renew certificates.crl_file.")
        return identity


def _content(setting: str, path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise BadSetting(
            f"{setting}, {path}, cannot be read: {error.strerror or error}",
            remedy="Name a file that exists and that the broker may read.",
        ) from None
    if len(content) > FILE_BYTES_MAX:
        raise BadSetting(
            f"{setting}, {path}, has more than {FILE_BYTES_MAX} bytes",
            remedy="Have an authority issue its list without what has expired.",
        )
    return content
