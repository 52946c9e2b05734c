"""TLS of the library: what a listening side shows, and whom a calling side believes."""

from __future__ import annotations

import ssl

from tocsin.errors import BadSetting

VERSION_MIN = ssl.TLSVersion.TLSv1_2


class _Locked(Exception):
    """A key wants a password."""


def _no_password() -> str:
    raise _Locked


def listening_context(certificate: str, key: str) -> ssl.SSLContext | None:
    """How connections are accepted with TLS; None if no certificate is given."""
    if not certificate and not key:
        return None
    if not certificate or not key:
        missing = "tls_key" if certificate else "tls_certificate"
        raise BadSetting(
            f"TLS wants a certificate and its key, and {missing} is not given",
            remedy="Give both, each as the name of a PEM file.",
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = VERSION_MIN
    try:
        # Asked for a password on the terminal, a service would wait for ever.
        context.load_cert_chain(certificate, key, password=_no_password)
    except _Locked:
        raise BadSetting(
            f"the key in {key} is locked with a password",
            remedy="Write it without one: openssl pkey -in LOCKED -out KEY.",
        ) from None
    except OSError as error:  # ssl.SSLError is one
        why = getattr(error, "reason", None) or error.strerror or error
        raise BadSetting(
            f"{certificate} and {key} cannot be used for TLS: {why}",
            remedy="Name the PEM file of a certificate and that of its own key.",
        ) from None
    return context


def calling_context(ca_file: str | None) -> ssl.SSLContext:
    """Whom a connection to a gmas:// address believes: the system's authorities, and the file's."""
    context = ssl.create_default_context()
    context.minimum_version = VERSION_MIN
    if ca_file:
        try:
            context.load_verify_locations(cafile=ca_file)
        except OSError as error:
            why = getattr(error, "reason", None) or error.strerror or error
            raise BadSetting(
                f"ca_file, {ca_file}, cannot be read: {why}",
                remedy="Name a PEM file with the certificates of the authorities.",
            ) from None
    return context
