"""TLS: the certificate of the listeners, and which authorities sinks are verified by.

Made once, at the start, so that a file that is missing or does not fit is reported then.
"""

from __future__ import annotations

import ssl
from pathlib import Path

from tocsin.config import HttpSettings
from tocsin.errors import BadSetting

VERSION_MIN = ssl.TLSVersion.TLSv1_2


def listener_context(settings: HttpSettings) -> ssl.SSLContext | None:
    """The TLS context of the listeners; None without TLS. Raises BadSetting."""
    certificate, key = settings.tls_certificate, settings.tls_key
    if not certificate and not key:
        return None
    if not certificate or not key:
        missing = "http.tls_key" if certificate else "http.tls_certificate"
        raise BadSetting(
            f"TLS needs a certificate and its key; {missing} is not set",
            remedy="Give both: --tls-cert FILE --tls-key FILE.",
        )
    _must_hold("http.tls_certificate", certificate, b"-----BEGIN CERTIFICATE-----")
    _must_hold("http.tls_key", key, b"PRIVATE KEY-----")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = VERSION_MIN
    try:
        # Asked for a password on the terminal, a service would wait for ever.
        context.load_cert_chain(certificate, key, password=_no_password)
    except _Locked:
        raise BadSetting(
            f"the key in http.tls_key, {key}, is encrypted with a password",
            remedy="Write it without a password: openssl pkey -in ENCRYPTED -out KEY.",
        ) from None
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            problem = f"the key in {key} does not belong to the certificate in {certificate}"
        else:
            problem = f"{certificate} and {key} cannot be used for TLS: {error.reason or error}"
        raise BadSetting(
            problem,
            remedy="Name the PEM file of a certificate and that of its own key; in a file with a "
            "chain, the broker's own certificate comes first.",
        ) from None
    return context


def sink_context(ca_file: str) -> ssl.SSLContext:
    """What pushes over TLS believe: the system's authorities, and those of the file."""
    return authorities_context("delivery.ca_file", ca_file)


def authorities_context(setting: str, ca_file: str) -> ssl.SSLContext:
    """A client's TLS: it believes the system's authorities, and those of the file."""
    context = ssl.create_default_context()
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
