"""A small site for tests of WS-Security: its authority, who has certificates and tokens of it, and
a sign-in that takes messages one by one, at a time that a test sets."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from lxml import etree

from tocsin.access.policy.policy import Policy
from tocsin.access.policy.tokens import Token, hash_of, token_text
from tocsin.access.session import Credential, CredentialKind, Principal, Session, anonymous
from tocsin.access.sign_in.attempts import Attempts
from tocsin.access.sign_in.guarded_sign_in import GuardedSignIn
from tocsin.access.sign_in.sign_in import SignedIn, SignIn
from tocsin.errors import NotSignedIn
from tocsin.services.soap.call import SoapCall
from tocsin.services.soap.message_sign_in import MessageSignIn, MessageSignInOptions
from tocsin.services.soap.signature_check import SiteSignatures
from tocsin.wire.soap.addressing import read_addressing, write_headers
from tocsin.wire.soap.envelope import content_type, read_envelope, write_envelope
from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.soap.names import WSA2005, WSSE
from tocsin.wire.wss import write

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
NOW_NS = int(NOW.timestamp()) * 10**9
S_NS = 10**9
SECRETS = {"alice": "a" * 43, "bob": "b" * 43}
IDS = {"alice": "a" * 24, "bob": "b" * 24}
TOKENS = {name: token_text(IDS[name], SECRETS[name]) for name in SECRETS}
PATH = "/soap"
TO = f"http://broker.example{PATH}"
PUBLISH = "urn:example/publish"
BODY = b'<e:state xmlns:e="urn:example">one</e:state>'


@dataclass(frozen=True)
class Identity:
    """A certificate with its key."""

    certificate: x509.Certificate
    key: Any

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@cache
def new_key(kind: str = "rsa", number: int = 0) -> Any:
    """One of each kind and number: those of RSA take long to make."""
    if kind == "rsa":
        return rsa.generate_private_key(65_537, 2_048)
    return ec.generate_private_key(ec.SECP256R1())


def issued(name: str, kind: str = "rsa", by: Identity | None = None) -> Identity:
    """A certificate by the site's authority, or by another one."""
    authority = by or site()
    return _made(name, new_key(kind, sum(name.encode())), authority)


@cache
def site() -> Identity:
    return _made("site", new_key("ec", 1), None)


@cache
def stranger() -> Identity:
    """An authority with the same name and another key."""
    return _made("site", new_key("ec", 2), None)


def _made(name: str, key: Any, by: Identity | None) -> Identity:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if by is None else by.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - timedelta(days=1))
        .not_valid_after(datetime.now(UTC) + timedelta(days=3_000))
    )
    signer = key if by is None else by.key
    return Identity(builder.sign(signer, hashes.SHA256()), key)


class Certificates:
    """Who the site knows: whoever its authority has signed a certificate for."""

    def signer(self, der: bytes, session: Session) -> SignedIn:
        try:
            certificate = x509.load_der_x509_certificate(der)
            certificate.verify_directly_issued_by(site().certificate)
        except Exception:
            raise NotSignedIn("the certificate is not accepted", remedy="Use another.") from None
        [name] = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        credential = Credential(CredentialKind.CERTIFICATE, f"certificate/{name.value}")
        return Principal(str(name.value)), credential


class Clock:
    """What a sign-in asks of its runtime."""

    def __init__(self, now_ns: int = NOW_NS) -> None:
        self.ns = now_ns
        self.said: list[str] = []  # in the log

    def now_ns(self) -> int:
        return self.ns

    def elapsed_s(self) -> float:
        return self.ns / S_NS

    def note(self, level: str, message: str, **fields: object) -> None:
        self.said.append(str(fields))


def guarded(policy: Policy) -> GuardedSignIn:
    """A sign-in where nobody has to wait."""

    def nothing(session: Session, what: str, why: str) -> None:
        pass

    attempts = Attempts(1_000_000)
    return GuardedSignIn(
        lambda refused: SignIn(policy, refused=refused), attempts, lambda: 0, nothing, nothing
    )


class Site:
    """A sign-in by messages, and what comes in."""

    def __init__(self, started_ns: int = NOW_NS - 3_600 * S_NS, **options: Any) -> None:
        self.clock = Clock(started_ns)
        policy = Policy(self.clock.now_ns)
        for name, secret in SECRETS.items():
            policy.set_token(Token(IDS[name], name, hash_of(secret), created_ns=0))
        asked = MessageSignInOptions(**options)
        signatures = SiteSignatures(Certificates(), asked.signatures, asked.digests)
        runtime: Any = self.clock
        self.sign_in = MessageSignIn(runtime, guarded(policy), signatures, asked)
        self.clock.ns = NOW_NS

    def session(self, message: bytes, **call: Any) -> Session:
        """Who the message is from; raises SoapFault."""
        envelope = read_envelope(message)
        came = replace(_CALL, body=message, content_type=content_type(envelope.soap))
        came = replace(came, **call)
        return self.sign_in.look(envelope, read_addressing(envelope), came).session

    def principal(self, message: bytes, **call: Any) -> str:
        return self.session(message, **call).principal.name

    def fault(self, message: bytes, **call: Any) -> str:
        """By which fault of WS-Security the message is refused."""
        with pytest.raises(SoapFault) as raised:
            self.session(message, **call)
        fault = raised.value
        assert fault.subcode is not None, fault
        namespace, name = fault.subcode
        assert namespace == WSSE
        assert b'code="T216"' in fault.detail
        assert fault.code == "Sender"
        return name


_CALL = SoapCall(
    b"", "", "", PATH, "", "http://broker.example", anonymous("soap", "10.0.0.9:1"), is_private=True
)

_NUMBERS = itertools.count(1)


def new_id() -> str:
    return hashlib.sha256(b"%d" % next(_NUMBERS)).hexdigest()[:16]


def plain(soap: str = "1.2", body: bytes = BODY, header: bytes | None = None) -> bytes:
    """A message that says nothing of its sender."""
    if header is None:
        header = write_headers(WSA2005, action=PUBLISH, message_id=f"urn:uuid:{new_id()}", to=TO)
    return write_envelope(soap, header=header, body=body)


def with_token(name: str, password: str, soap: str = "1.2", *more: bytes) -> bytes:
    content = [*more, write.username_token(name, password)]
    return etree.tostring(write.with_security(plain(soap), content))


def signed(
    who: Identity | None = None,
    message: bytes | None = None,
    *,
    at_ns: int = NOW_NS,
    ids: Callable[[], str] = new_id,
) -> bytes:
    who = who or issued("alice")
    return write.signed(
        plain() if message is None else message, who.key, who.certificate, at_ns, ids
    )


def tree(message: bytes) -> etree._Element:
    return etree.fromstring(message)


def find(root: etree._Element, *names: str) -> etree._Element:
    """An element, by the local names on the way to it."""
    found = root.find("/".join(f"{{*}}{name}" for name in names))
    assert found is not None, names
    return found


def security(children: Sequence[bytes], soap: str = "1.2") -> bytes:
    """A message with this in its Security header."""
    return etree.tostring(write.with_security(plain(soap), children))
