"""Revocation lists: which certificates an authority has taken back, and until when it says so."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec
from cryptography import x509
from cryptography.x509.oid import ExtensionOID

from tocsin.access.sign_in.certificates import (
    Authorities,
    Authority,
    check_signature_algorithm,
    credential_key,
    readable,
)
from tocsin.errors import BadCredential
from tocsin.event.instant import datetime_ns

_PEM: Final = re.compile(rb"-----BEGIN X509 CRL-----.+?-----END X509 CRL-----", re.DOTALL)
# Another extension that is critical would change what the list means: one of changes alone, or one
# of certificates that somebody else has signed.
_KNOWN: Final = frozenset({ExtensionOID.CRL_NUMBER, ExtensionOID.AUTHORITY_KEY_IDENTIFIER})


class RevocationList(msgspec.Struct, frozen=True):
    """What one authority says, and has signed."""

    key_id: str  # of the authority
    authority: str
    this_update_ns: int
    next_update_ns: int
    keys: frozenset[str]  # of the credentials that are revoked


def read_lists(content: bytes, authorities: Authorities, origin: str) -> list[RevocationList]:
    """The newest list of each authority in a file, whose name is `origin`; PEM, or one in DER.

    Raises BadCredential if any of them cannot be believed.
    """
    blocks: list[bytes] = _PEM.findall(content)
    newest: dict[str, RevocationList] = {}
    with readable(origin):
        if blocks:
            lists = [x509.load_pem_x509_crl(block) for block in blocks]
        else:
            lists = [x509.load_der_x509_crl(content)]
        for each in lists:
            found = _list(each, authorities, origin)
            known = newest.get(found.key_id)
            if known is None or known.this_update_ns < found.this_update_ns:
                newest[found.key_id] = found
    return list(newest.values())


def revoked_by(lists: Iterable[RevocationList]) -> frozenset[str]:
    """The keys of all credentials that are revoked."""
    return frozenset[str]().union(*(each.keys for each in lists))


def without_list(
    authorities: Authorities, lists: Iterable[RevocationList], now_ns: int
) -> dict[str, str]:
    """What is wrong, by the key id of each authority whose list is missing or out of date: which of
    its certificates are revoked is not known, so none of them signs anybody in."""
    known = {each.key_id: each for each in lists}
    found: dict[str, str] = {}
    for authority in authorities.all:
        each = known.get(authority.key_id)
        if each is None:
            found[authority.key_id] = f"there is no revocation list of {authority.name}"
        elif now_ns >= each.next_update_ns:
            found[authority.key_id] = f"the revocation list of {authority.name} is out of date"
        elif now_ns < each.this_update_ns:
            found[authority.key_id] = f"the revocation list of {authority.name} is of the future"
    return found


def _list(
    signed: x509.CertificateRevocationList, authorities: Authorities, origin: str
) -> RevocationList:
    authority = _signer(signed, authorities, origin)
    check_signature_algorithm(signed)
    for extension in signed.extensions:
        if extension.critical and extension.oid not in _KNOWN:
            raise BadCredential(
                f"the list in {origin} is of a kind that is not known: it has the extension "
                f"{extension.oid.dotted_string}",
                remedy="Use a complete list of an authority's own certificates.",
            )
    if signed.next_update_utc is None:
        raise BadCredential(
            f"the list in {origin} does not say until when it is valid",
            remedy="Have it made with a next update.",
        )
    return RevocationList(
        key_id=authority.key_id,
        authority=authority.name,
        this_update_ns=datetime_ns(signed.last_update_utc),
        next_update_ns=datetime_ns(signed.next_update_utc),
        keys=frozenset(credential_key(authority.key_id, each.serial_number) for each in signed),
    )


def _signer(
    signed: x509.CertificateRevocationList, authorities: Authorities, origin: str
) -> Authority:
    for authority in authorities.all:
        certificate = authority.certificate
        if certificate.subject == signed.issuer and _may_sign_lists(certificate):
            key = certificate.public_key()
            if signed.is_signature_valid(key):  # type: ignore[arg-type]  # kinds are checked
                return authority
    raise BadCredential(
        f"the list in {origin} is signed by none of the authorities",
        remedy="Use lists of the authorities in certificates.client_ca.",
    )


def _may_sign_lists(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.KeyUsage).value.crl_sign
    except x509.ExtensionNotFound:
        return True
