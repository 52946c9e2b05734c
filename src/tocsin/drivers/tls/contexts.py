"""TLS: the certificates that the broker shows, and the authorities that peers are verified by.

Made once, at the start, so that a file that is missing or does not fit is reported then. Files that
change later are loaded into the same contexts (`certificate_reload`).
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tocsin.config import DeliverySettings, HttpSettings, OverlaySettings
from tocsin.drivers.tls.private_files import check_private
from tocsin.drivers.tls.site_context import SiteContext
from tocsin.errors import BadSetting

if TYPE_CHECKING:
    from tocsin.drivers.tls.certificates import PeerCertificates

VERSION_MIN = ssl.TLSVersion.TLSv1_2


@dataclass(frozen=True, slots=True)
class Pair:
    """The settings that name a certificate and its key."""

    certificate: str
    key: str


LISTENER: Final = Pair("http.tls_certificate", "http.tls_key")
DELIVERY: Final = Pair("delivery.client_certificate", "delivery.client_key")
OVERLAY: Final = Pair("overlay.client_certificate", "overlay.client_key")


def listener_context(
    settings: HttpSettings, peers: PeerCertificates | None = None
) -> SiteContext | None:
    """The TLS context of the listeners; None without TLS. Raises BadSetting and BadCredential.

    `peers`: what clients are known by that show a certificate.
    """
    certificate, key = settings.tls_certificate, settings.tls_key
    if not certificate and not key:
        return None
    if not certificate or not key:
        missing = "http.tls_key" if certificate else "http.tls_certificate"
        raise BadSetting(
            f"TLS needs a certificate and its key; {missing} is not set",
            remedy="Give both: --tls-cert FILE --tls-key FILE.",
        )
    context = SiteContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = VERSION_MIN
    load_pair(context, LISTENER, certificate, key)
    if peers is not None:
        trust_peers(context, peers)
        required = peers.settings.client_certificates == "required"
        context.verify_mode = ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL
    return context


def trust_peers(context: SiteContext, peers: PeerCertificates) -> None:
    """Have OpenSSL verify certificates by these authorities. It keeps those that it had: who is
    signed in, is decided by `peers` as it is now."""
    context.peers = peers
    # Each of them is where a chain may end: the root above it need not be known.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(cadata=peers.authorities.pem)


def load_pair(context: ssl.SSLContext, pair: Pair, certificate: str, key: str) -> None:
    """Have a context show this certificate, from now on. Raises BadSetting and BadCredential, and
    then it shows what it showed before."""
    _must_hold(pair.certificate, certificate, b"-----BEGIN CERTIFICATE-----")
    _must_hold(pair.key, key, b"PRIVATE KEY-----")
    check_private(Path(key), f"the key in {pair.key}")
    # Into one that nobody uses first: of two that do not fit, OpenSSL takes the certificate.
    for each in (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), context):
        _load_chain(each, pair, certificate, key)


def _load_chain(context: ssl.SSLContext, pair: Pair, certificate: str, key: str) -> None:
    try:
        # Asked for a password on the terminal, a service would wait for ever.
        context.load_cert_chain(certificate, key, password=_no_password)
    except _Locked:
        raise BadSetting(
            f"the key in {pair.key}, {key}, is encrypted with a password",
            remedy="Write it without a password: openssl pkey -in ENCRYPTED -out KEY.",
        ) from None
    except OSError as error:  # ssl.SSLError is one
        reason = getattr(error, "reason", None)
        if reason == "KEY_VALUES_MISMATCH":
            problem = f"the key in {key} does not belong to the certificate in {certificate}"
        else:
            problem = f"{certificate} and {key} cannot be used for TLS: {reason or error}"
        raise BadSetting(
            problem,
            remedy="Name the PEM file of a certificate and that of its own key; in a file with a "
            "chain, the broker's own certificate comes first.",
        ) from None


def sink_context(delivery: DeliverySettings) -> SiteContext:
    """What pushes over TLS believe, the system's authorities and those of the file; and the
    certificate that the broker shows to sinks which ask for one."""
    context = authorities_context("delivery.ca_file", delivery.ca_file)
    certificate, key = delivery.client_certificate, delivery.client_key
    if both_or_none("delivery", certificate, key):
        load_pair(context, DELIVERY, certificate, key)
    return context


def link_context(
    overlay: OverlaySettings, http: HttpSettings, peers: PeerCertificates | None
) -> SiteContext | None:
    """The TLS of links that this broker opens; None without. It shows the certificate that is named
    for it, or else the broker's own."""
    context = authorities_context("overlay.ca_file", overlay.ca_file)
    certificate, key = link_pair(overlay, http)
    if not overlay.tls:
        return None
    if certificate:
        load_pair(context, OVERLAY, certificate, key)
    if peers is not None:
        # Not as an authority for host names: that is for overlay.ca_file to say.
        context.peers = peers
    return context


def link_pair(overlay: OverlaySettings, http: HttpSettings) -> tuple[str, str]:
    """The files of the certificate for links that this broker opens, and of its key."""
    if both_or_none("overlay", overlay.client_certificate, overlay.client_key):
        return overlay.client_certificate, overlay.client_key
    return http.tls_certificate, http.tls_key


def both_or_none(table: str, certificate: str, key: str) -> bool:
    """True if both are set. Raises BadSetting if one of them is."""
    if bool(certificate) != bool(key):
        missing = "client_key" if certificate else "client_certificate"
        raise BadSetting(
            f"a certificate needs its key; {table}.{missing} is not set",
            remedy=f"Set both, {table}.client_certificate and {table}.client_key, or none.",
        )
    return bool(certificate)


def authorities_context(setting: str, ca_file: str) -> SiteContext:
    """A client's TLS: it believes the system's authorities, and those of the file."""
    context = SiteContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    context.minimum_version = VERSION_MIN
    if ca_file:
        _must_hold(setting, ca_file, b"-----BEGIN CERTIFICATE-----")
        try:
            context.load_verify_locations(cafile=ca_file)
        except ssl.SSLError as error:
            raise BadSetting(
                f"{setting}, {ca_file}, cannot be read: {error.reason or error}",
                remedy="Name a PEM file with the certificates of the authorities.",
            ) from None
    return context


class _Locked(Exception):
    """A key wants a password."""


def _no_password() -> str:
    raise _Locked


def _must_hold(setting: str, path: str, mark: bytes) -> None:
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise BadSetting(
            f"{setting}, {path}, cannot be read: {error.strerror or error}",
            remedy="Name a file that is there and that the broker may read.",
        ) from None
    if mark not in content:
        what = "private key" if b"KEY" in mark else "certificate"
        raise BadSetting(
            f"{setting}, {path}, holds no {what} in the PEM form",
            remedy="A PEM file has lines such as -----BEGIN CERTIFICATE-----. Name such a file.",
        )
