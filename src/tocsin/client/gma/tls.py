"""TLS of the library's listening side. What a calling side trusts is in `transport/tls`."""

from __future__ import annotations

import ssl

from tocsin.client.transport.tls import VERSION_MIN
from tocsin.errors import BadSetting


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
            f"TLS needs a certificate and its key; {missing} is missing",
            remedy="Give both, each as the name of a PEM file.",
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = VERSION_MIN
    try:
        # Asked for a password on the terminal, a service would wait for ever.
        context.load_cert_chain(certificate, key, password=_no_password)
    except _Locked:
        raise BadSetting(
            f"the key in {key} is encrypted with a password",
            remedy="Write it without a password: openssl pkey -in ENCRYPTED -out KEY.",
        ) from None
    except OSError as error:  # ssl.SSLError is one
        why = getattr(error, "reason", None) or error.strerror or error
        raise BadSetting(
            f"{certificate} and {key} cannot be used for TLS: {why}",
            remedy="Name the PEM file of a certificate and that of its own key.",
        ) from None
    return context
