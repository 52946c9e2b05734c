"""TLS from a client's side: which certificates it trusts, and what a failed handshake means.

Imported only where TLS is used: the import alone is a third of what `tocsin pub` may take.
"""

from __future__ import annotations

import os
import socket
import ssl

from tocsin.client.transport.address import CA_FILE_VARIABLE, Address
from tocsin.errors import BadSetting, TlsFailed

VERSION_MIN = ssl.TLSVersion.TLSv1_2
PROBE_TIMEOUT_S = 2.0

# X509_V_ERR_... of OpenSSL
_NOT_YET_VALID, _EXPIRED = 9, 10
_OTHER_HOST = frozenset({62, 63, 64})
_UNKNOWN_AUTHORITY = frozenset({2, 18, 19, 20, 21})
_TRUST = (
    "Name the PEM file of the authority that signed it (or of the certificate itself, if it is "
    f"self-signed): --ca-file FILE, {CA_FILE_VARIABLE}, or ca_file=FILE in Python."
)


def client_context(ca_file: str | None = None) -> ssl.SSLContext:
    """Trusts the system's authorities, and those in the file or in that of TOCSIN_CA_FILE."""
    context = ssl.create_default_context()
    context.minimum_version = VERSION_MIN
    named = ca_file or os.environ.get(CA_FILE_VARIABLE)
    if named:
        try:
            context.load_verify_locations(cafile=named)
        except OSError as error:  # ssl.SSLError is one
            why = getattr(error, "reason", None) or error.strerror or error
            raise BadSetting(
                f"the CA file {named} cannot be read: {why}",
                remedy="Name a PEM file with the certificates of the authorities to trust.",
            ) from None
    return context


def handshake_failed(address: Address, error: ssl.SSLError) -> TlsFailed:
    """What a failed handshake with a broker means, and what to do about it."""
    if isinstance(error, ssl.SSLCertVerificationError):
        problem, remedy = untrusted(error, address.host)
    elif error.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"):
        problem, remedy = "it does not use TLS", f"Write {_with_scheme(address, 'http')}."
    elif isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)):
        problem = "it closed the connection during the TLS handshake"
        remedy = f"If that broker has no certificate, write {_with_scheme(address, 'http')}."
    else:
        problem = f"the TLS handshake failed ({error.reason or error})"
        remedy = "Check that both sides have TLS 1.2 or newer and a cipher in common."
    return TlsFailed(f"cannot connect to {address}: {problem}", remedy=remedy)


def untrusted(error: ssl.SSLCertVerificationError, host: str) -> tuple[str, str]:
    """Why a certificate is not trusted, and what to do about it."""
    code = error.verify_code
    if code in _OTHER_HOST:
        return (
            f"its certificate is not for {host!r}",
            "Use a host name that the certificate has, or give the broker a certificate with this "
            "name (subjectAltName).",
        )
    if code in (_EXPIRED, _NOT_YET_VALID):
        when = "has expired" if code == _EXPIRED else "is not valid yet"
        return (
            f"its certificate {when}",
            "Renew the broker's certificate, and check the clocks of both machines.",
        )
    if code in _UNKNOWN_AUTHORITY:
        return f"its certificate is not trusted ({error.verify_message})", _TRUST
    return f"its certificate cannot be verified ({error.verify_message})", _TRUST


def wants_tls(address: Address) -> TlsFailed | None:
    """The error that a broker addressed by http:// listens with TLS; None if it does not.

    Such a broker closes the connection without a word, so it is asked once more, with a handshake.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # nothing is sent, so nobody has to be trusted
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            socket.create_connection((address.host, address.port), PROBE_TIMEOUT_S) as opened,
            context.wrap_socket(opened),
        ):
            pass
    except OSError:
        return None
    return TlsFailed(
        f"cannot connect to {address}: it uses TLS",
        remedy=f"Write {_with_scheme(address, 'https')}.",
    )


def _with_scheme(address: Address, scheme: str) -> str:
    return f"{scheme}://{address.authority}{address.prefix}"
