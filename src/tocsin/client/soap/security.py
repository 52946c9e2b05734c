"""WS-Security of our own messages, for brokers that ask for it: `security=` of a client."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from uuid import uuid4

from tocsin.credentials.lookup import is_loopback
from tocsin.errors import BadCredential

if TYPE_CHECKING:
    from cryptography import x509

    from tocsin.client.transport.address import Address
    from tocsin.wire.wss.write import PrivateKey

# The library for certificates takes a tenth of a second to load: only who uses it waits for it.


class Security(Protocol):
    """What is added to each message for one broker."""

    def secured(self, message: bytes, address: Address) -> bytes:
        """The message with a Security header; another one each time."""


@dataclass(frozen=True)
class UsernameToken:
    """A name with a password, which is sent as it is: over TLS, or to this machine."""

    name: str
    password: str = field(repr=False)

    def secured(self, message: bytes, address: Address) -> bytes:
        from lxml import etree

        from tocsin.wire.wss.write import timestamp, username_token, with_security

        if not address.tls and not is_loopback(address.host):
            raise BadCredential(
                f"the password of {self.name[:64]} would go to {address.authority} without TLS",
                remedy="Use an https address, or sign with X509Signature.",
            )
        content = [timestamp(time.time_ns()), username_token(self.name, self.password)]
        return etree.tostring(with_security(message, content))


@dataclass(frozen=True)
class X509Signature:
    """A signature with the key of a certificate, RSA or ECDSA; both are PEM files."""

    certificate: str
    key: str

    def secured(self, message: bytes, address: Address) -> bytes:
        from tocsin.wire.wss.write import signed

        key, certificate = self._loaded
        return signed(message, key, certificate, time.time_ns(), lambda: str(uuid4()))

    @cached_property
    def _loaded(self) -> tuple[PrivateKey, x509.Certificate]:
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec, rsa
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        try:
            certificate = x509.load_pem_x509_certificate(Path(self.certificate).read_bytes())
            key = load_pem_private_key(Path(self.key).read_bytes(), None)
        except (OSError, ValueError, TypeError) as error:
            raise BadCredential(
                f"{self.certificate} and {self.key} cannot be used: {error}",
                remedy="Name the PEM files of a certificate and of its key, without a password.",
            ) from None
        if not isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey):
            raise BadCredential(
                f"the key in {self.key} is of a kind that XML signatures do not have",
                remedy="Use an RSA or P-256 key.",
            )
        return key, certificate
