"""TLS from a client's side: which certificates it trusts, and what a failed handshake means.

Imported only where TLS is used: the import alone is a third of what `tocsin pub` may take.
"""

from __future__ import annotations

import os
import socket
import ssl
from typing import TypeGuard

from tocsin.client.transport.address import CA_FILE_VARIABLE, Address
from tocsin.credentials.lookup import (
    CLIENT_CERT_VARIABLE,
    CLIENT_KEY_VARIABLE,
    ClientCertificate,
)
from tocsin.errors import BadCredential, BadSetting, TlsFailed

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


# What a peer says of our certificate, by OpenSSL's names of the alerts.
_REFUSED_ALERTS = {
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "wants a client certificate",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "refused the handshake, perhaps for want of a certificate",
    "TLSV1_ALERT_UNKNOWN_CA": "does not know the authority of our client certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "does not accept our client certificate",
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE": "does not accept our kind of client certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "says that our client certificate has expired",
    "SSLV3_ALERT_CERTIFICATE_REVOKED": "says that our client certificate is revoked",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "does not accept our client certificate",
    "TLSV1_ALERT_ACCESS_DENIED": "does not accept our client certificate",
}


class _Locked(Exception):
    """A key wants a password."""


def _no_password() -> str:
    raise _Locked


def client_context(
    ca_file: str | None = None, shown: ClientCertificate | None = None
) -> ssl.SSLContext:
    """Trusts the system's authorities, and those in the file or in that of TOCSIN_CA_FILE; shows a
    certificate to whom asks for one."""
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
    if shown is not None:
        _show(context, shown)
    return context


def _show(context: ssl.SSLContext, shown: ClientCertificate) -> None:
    key = shown.key or shown.certificate
    try:
        # Asked for a password on the terminal, a job would wait for ever.
        context.load_cert_chain(shown.certificate, shown.key, password=_no_password)
    except _Locked:
        raise BadCredential(
            f"the private key {key} is encrypted with a password",
            remedy="Write it without: openssl pkey -in ENCRYPTED -out KEY, and chmod 600 KEY.",
        ) from None
    except OSError as error:  # ssl.SSLError is one
        why = getattr(error, "reason", None) or error.strerror or "a file is missing"
        raise BadCredential(
            f"{shown.certificate} and {key} cannot be shown as a client certificate: {why}",
            remedy="Name the PEM file of a certificate and that of its own key.",
        ) from None


def handshake_failed(address: Address, error: ssl.SSLError) -> TlsFailed:
    """What a failed handshake with a broker means, and what to do about it."""
    if isinstance(error, ssl.SSLCertVerificationError):
        problem, remedy = untrusted(error, address.host)
    elif error.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"):
        problem, remedy = "it does not use TLS", f"Write {_with_scheme(address, 'http')}."
    elif error.reason in _REFUSED_ALERTS:
        return refused_alert(str(address), error)
    elif isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)):
        problem = "it closed the connection during the TLS handshake"
        remedy = f"If that broker has no certificate, write {_with_scheme(address, 'http')}."
    else:
        problem = f"the TLS handshake failed ({error.reason or error})"
        remedy = "Check that both sides have TLS 1.2 or newer and a cipher in common."
    return TlsFailed(f"cannot connect to {address}: {problem}", remedy=remedy)


def is_refusal(error: BaseException) -> TypeGuard[ssl.SSLError]:
    """True if the peer refuses our certificate. With TLS 1.3 it says so after the handshake."""
    return isinstance(error, ssl.SSLError) and error.reason in _REFUSED_ALERTS


def refused_alert(where: str, error: ssl.SSLError) -> TlsFailed:
    """What a peer says of our certificate, or that there is none."""
    return TlsFailed(
        f"cannot connect to {where}: it {_REFUSED_ALERTS[error.reason]}",
        remedy="Name a certificate that it accepts, and its key: --client-cert and --client-key, "
        f"{CLIENT_CERT_VARIABLE} and {CLIENT_KEY_VARIABLE}, or client_certificate= and "
        "client_key= in Python.",
    )


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
