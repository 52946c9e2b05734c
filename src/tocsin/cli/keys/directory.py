"""KeyDirectory: the files of a site's authority.

    ca.pem  ca.key      the authority
    crl.pem             what it has revoked
    NAME.pem  NAME.key  the newest certificate of each name
    issued/SERIAL.pem   every certificate that was issued
    revoked/SERIAL      this one is revoked, since the second of 1970 that the file says

The files are the state. What was issued and what is revoked are files of their own, so that no two
commands write the same one, and the list can be made again from them at any time.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from tocsin.access.sign_in.certificates import readable
from tocsin.cli.keys import making
from tocsin.drivers.tls.private_files import (
    DIRECTORY_MODE,
    check_private,
    read_private,
    write_private,
    write_whole,
)
from tocsin.errors import BadCredential, NoSuchCredential

LIST_DAYS: Final = 30
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")
OWN_NAMES: Final = frozenset({"ca", "crl"})


@dataclass(frozen=True, slots=True)
class Issued:
    """One certificate, and since when it is revoked."""

    certificate: x509.Certificate
    revoked: datetime | None

    @property
    def name(self) -> str:
        return common_name(self.certificate)

    @property
    def serial(self) -> str:
        return f"{self.certificate.serial_number:x}"


class KeyDirectory:
    """See the module. Raises BadCredential for what is not as it should be."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ca_file, self._ca_key = path / "ca.pem", path / "ca.key"
        self.crl_file = path / "crl.pem"
        self._issued, self._revoked = path / "issued", path / "revoked"

    # The authority

    def create(self, name: str, kind: str, days: int, now: datetime) -> x509.Certificate:
        """Make the authority. One that exists stays."""
        for each in (self.path, self._issued, self._revoked):
            each.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        with self._locked():
            if self.ca_file.exists() or self._ca_key.exists():
                raise BadCredential(
                    f"{self.path} holds an authority already",
                    remedy="Use it, or name another directory: --dir DIR.",
                )
            key = making.new_key(kind)
            assert isinstance(key, making.SigningKey)
            certificate = making.authority_certificate(name, key, now, days)
            write_private(self._ca_key, making.key_pem(key))
            write_whole(self.ca_file, _pem(certificate))
            self._write_list(certificate, key, now)
        return certificate

    def authority(self) -> x509.Certificate:
        if not self.ca_file.exists():
            raise NoSuchCredential(
                f"{self.path} holds no authority",
                remedy="Make one with `tocsin keys init`, or name its directory: --dir DIR.",
            )
        return _read(self.ca_file)

    def check(self) -> None:
        """That nobody else can read the keys."""
        for path in sorted(self.path.glob("*.key")):
            check_private(path, "the key")

    # Certificates

    def issue(
        self,
        name: str,
        kind: str,
        key_kind: str,
        groups: Sequence[str],
        hosts: Sequence[str],
        days: int,
        now: datetime,
    ) -> x509.Certificate:
        """A new key, and a certificate for it. The former one of the name stays valid."""
        authority = self.authority()
        self.check()
        with self._locked():
            by_key = self._signing_key(authority)
            ends_in = (authority.not_valid_after_utc - now).days
            if ends_in < 1:
                raise BadCredential(
                    f"the authority in {self.path} is valid no more",
                    remedy="Make a new one in another directory, and name both in client_ca.",
                )
            key = making.new_key(key_kind)
            certificate = making.certificate(
                name,
                kind,
                key,
                groups=groups,
                hosts=hosts,
                by=authority,
                by_key=by_key,
                now=now,
                days=min(days, ends_in),  # it would not be valid without its authority
            )
            write_whole(self._issued / f"{certificate.serial_number:x}.pem", _pem(certificate))
            # The key first: a broker that looks in between finds two that do not fit, and waits.
            write_private(self.key_file(name), making.key_pem(key))
            write_whole(self.certificate_file(name), _pem(certificate))
        return certificate

    def certificate_file(self, name: str) -> Path:
        return self.path / f"{name}.pem"

    def key_file(self, name: str) -> Path:
        return self.path / f"{name}.key"

    def current(self, name: str) -> x509.Certificate:
        """The newest of a name."""
        path = self.certificate_file(name)
        if name in OWN_NAMES or not NAME.fullmatch(name) or not path.exists():
            raise _no_such(self.path, name)
        return _read(path)

    def issued(self) -> list[Issued]:
        """All that were issued, the oldest first."""
        self.authority()
        paths = sorted(self._issued.glob("*.pem"), key=lambda path: path.stat().st_mtime_ns)
        found = [Issued(_read(path), self._revoked_since(path.stem)) for path in paths]
        return sorted(found, key=lambda each: each.certificate.not_valid_before_utc)

    # Revocation

    def revoke(self, which: str, now: datetime) -> list[Issued]:
        """One by its serial number, or all of a name that are not revoked. Returns those."""
        authority = self.authority()
        with self._locked():
            key = self._signing_key(authority)
            every = self.issued()
            found = [each for each in every if which.lower() == each.serial or which == each.name]
            if not found:
                raise _no_such(self.path, which)
            new = [each for each in found if each.revoked is None]
            for each in new:
                write_private(self._revoked / each.serial, b"%d\n" % now.timestamp())
            self._write_list(authority, key, now)
        return [Issued(each.certificate, now) for each in new]

    def renew_list(self, now: datetime) -> x509.CertificateRevocationList:
        """The same list, valid from now on."""
        authority = self.authority()
        with self._locked():
            self._write_list(authority, self._signing_key(authority), now)
        return self.revocation_list()

    def revocation_list(self) -> x509.CertificateRevocationList:
        with readable(str(self.crl_file)):
            return x509.load_pem_x509_crl(_content(self.crl_file))

    def _write_list(
        self, authority: x509.Certificate, key: making.SigningKey, now: datetime
    ) -> None:
        revoked = [
            (each.certificate.serial_number, each.revoked)
            for each in self.issued()
            if each.revoked is not None
        ]
        number = self._last_number() + 1
        signed = making.revocation_list(revoked, authority, key, number, now, LIST_DAYS)
        write_whole(self.crl_file, signed.public_bytes(Encoding.PEM))

    def _last_number(self) -> int:
        if not self.crl_file.exists():
            return 0
        number = self.revocation_list().extensions.get_extension_for_class(x509.CRLNumber)
        return number.value.crl_number

    def _revoked_since(self, serial: str) -> datetime | None:
        path = self._revoked / serial
        if not path.exists():
            return None
        try:
            return datetime.fromtimestamp(int(_content(path)), UTC)
        except (ValueError, OverflowError, OSError):
            raise BadCredential(
                f"{path} does not say since when that certificate is revoked",
                remedy="Write the second of 1970 into it, as from: date +%s",
            ) from None

    def _signing_key(self, authority: x509.Certificate) -> making.SigningKey:
        pem = read_private(self._ca_key, "the key of the authority")
        key = making.read_signing_key(pem, str(self._ca_key))
        if key.public_key() != authority.public_key():
            raise BadCredential(
                f"{self._ca_key} is not the key of {self.ca_file}",
                remedy="Put back the one that belongs to it, from a backup.",
            )
        return key

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Two commands at once would write two lists of which one forgets what the other says."""
        number = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.flock(number, fcntl.LOCK_EX)
            yield
        finally:
            os.close(number)


def common_name(certificate: x509.Certificate) -> str:
    names = certificate.subject.get_attributes_for_oid(x509.oid.NameOID.COMMON_NAME)
    return str(names[0].value) if names else ""


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.PEM)


def _read(path: Path) -> x509.Certificate:
    with readable(str(path)):
        return x509.load_pem_x509_certificate(_content(path))


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadCredential(
            f"{path} cannot be read: {error.strerror or error}",
            remedy="Put it back, or name another directory: --dir DIR.",
        ) from None


def _no_such(path: Path, which: str) -> NoSuchCredential:
    return NoSuchCredential(
        f"{path} holds no certificate of {which!r:.80}",
        remedy="`tocsin keys show` lists what was issued.",
    )
