"""Sign-in by WS-Security: a message says itself who sends it, whatever its connection says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Protocol
from urllib.parse import urlsplit

import msgspec
from lxml import etree

from tocsin.access.session import Session
from tocsin.access.sign_in.guarded_sign_in import GuardedSignIn
from tocsin.access.sign_in.sign_in import SignedIn
from tocsin.broker.runtime import Runtime
from tocsin.errors import NotSignedIn
from tocsin.event.instant import NS_PER_S
from tocsin.services.limited_log import LimitedLog
from tocsin.services.soap.call import SoapCall
from tocsin.services.soap.seen_messages import SeenMessages
from tocsin.wire.soap.addressing import Addressing
from tocsin.wire.soap.envelope import Envelope, blocks, split
from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.soap.names import WSSE
from tocsin.wire.wss.faults import security_fault
from tocsin.wire.wss.messages import SecurityHeader, Timestamp, UsernameToken
from tocsin.wire.wss.names import DIGESTS, RSA_SHA1, SECURITY, SHA1, SIGNATURES
from tocsin.wire.wss.read import read_security

Element = etree._Element
_WSSE: Final = WSSE.encode()


@dataclass(frozen=True, slots=True)
class MessageSignInOptions:
    """What the operator sets."""

    sha1: bool = False  # take signatures and digests by SHA-1 too
    age_ns: int = 300 * NS_PER_S  # how old a message may be
    skew_ns: int = 60 * NS_PER_S  # how far clocks may be apart
    seen_max: int = 200_000
    tls_in_front: bool = False  # a proxy speaks TLS: nobody can read what comes

    @property
    def signatures(self) -> frozenset[str]:
        return SIGNATURES | {RSA_SHA1} if self.sha1 else SIGNATURES

    @property
    def digests(self) -> frozenset[str]:
        return DIGESTS | {SHA1} if self.sha1 else DIGESTS


class CertificateCheck(Protocol):
    """Whose a certificate is."""

    def signer(self, der: bytes, session: Session) -> SignedIn:
        """Whoever has its key; `session` is that of whoever sent it. Raises NotSignedIn for one
        that is refused."""


class SignatureCheck(Protocol):
    """Who has signed, and which elements of the message."""

    def signer(
        self, envelope: Envelope, header: SecurityHeader, session: Session, now_ns: int
    ) -> tuple[SignedIn, frozenset[Element]]:
        """Raises NotSignedIn for a certificate that is refused, a SoapFault for a signature."""


class MessageSignIn:
    """Signs in by the Security header of each message that has one."""

    def __init__(
        self,
        runtime: Runtime,
        sign_in: GuardedSignIn,
        signatures: SignatureCheck | None = None,
        options: MessageSignInOptions | None = None,
        refused: Callable[[Session, str, str], None] = lambda session, what, why: None,
    ) -> None:
        """`refused` is called with who sent a message that was refused, what was wrong, and why."""
        self._runtime = runtime
        self._sign_in = sign_in
        self._refused = refused
        self._signatures = signatures
        self._options = options or MessageSignInOptions()
        self._log = LimitedLog(runtime)
        self._seen = SeenMessages(self._options.seen_max)
        # What came to the broker before this one started is not known: so nothing of before is
        # taken. Some clients write no fractions of a second.
        self._since_ns = runtime.now_ns() // NS_PER_S * NS_PER_S

    def look(self, envelope: Envelope, addressing: Addressing, call: SoapCall) -> SoapCall:
        """The call, with the session of whoever the message says; a SoapFault for a Security header
        that signs nobody in, or somebody else than the connection does."""
        if _WSSE not in envelope.raw or call.session.principal.is_internal:
            return call
        try:
            return self._signed_in(envelope, addressing, call)
        except SoapFault as fault:
            self._log.warn(
                "a SOAP message with WS-Security was refused",
                why=fault.reason,
                fault="" if fault.subcode is None else fault.subcode[1],
                peer=call.session.peer,
                path=call.path[:200],
            )
            if not isinstance(fault.__context__, NotSignedIn):  # else it was reported there
                self._refused(call.session, "ws-security", fault.reason)
            raise

    def _signed_in(self, envelope: Envelope, addressing: Addressing, call: SoapCall) -> SoapCall:
        header = read_security(
            envelope, signatures=self._options.signatures, digests=self._options.digests
        )
        if header is None:
            return call
        now_ns = self._runtime.now_ns()
        if header.timestamp is not None:
            self._until_ns(header.timestamp, now_ns)
        found: list[SignedIn] = []
        if header.username is not None:
            found.append(self._by_password(header.username, call, now_ns))
        if header.signature is not None:
            found.append(self._by_signature(envelope, addressing, header, call, now_ns))
        if not found:
            return call
        _check_same(call.session, found)
        principal, credential = found[-1]
        session = msgspec.structs.replace(call.session, principal=principal, credential=credential)
        return replace(call, session=session)

    def _by_password(self, token: UsernameToken, call: SoapCall, now_ns: int) -> SignedIn:
        if not self._is_private(call):
            raise security_fault(
                "InvalidSecurity",
                "a password came without TLS",
                "Use the https address. Have this token revoked: it could be read on the way.",
            )
        until_ns = now_ns + self._options.age_ns
        if token.created_ns is not None:
            until_ns = self._until_ns(Timestamp(token.element, token.created_ns), now_ns)
        try:
            found = self._sign_in.by_password(token.name, token.password, call.session)
        except NotSignedIn:
            raise _not_authenticated() from None
        if token.nonce is not None:
            identity = msgspec.json.encode([token.name, token.nonce, token.created_ns])
            self._check_new(identity, until_ns, now_ns, "the nonce was used before")
        return found

    def _by_signature(
        self,
        envelope: Envelope,
        addressing: Addressing,
        header: SecurityHeader,
        call: SoapCall,
        now_ns: int,
    ) -> SignedIn:
        if self._signatures is None:
            raise security_fault(
                "UnsupportedSecurityToken",
                "this broker knows no authority of certificates",
                "Sign in with a UsernameToken; operators set certificates.client_ca.",
            )
        try:
            found, parts = self._signatures.signer(envelope, header, call.session, now_ns)
        except NotSignedIn:
            raise _not_authenticated() from None
        if envelope.body not in parts:
            raise security_fault("FailedCheck", "the Body is not signed", "Sign it.")
        if header.timestamp is None or header.timestamp.element not in parts:
            raise security_fault(
                "FailedCheck",
                "no Timestamp is signed: the message could be sent again for ever",
                "Add a wsu:Timestamp to the Security header, and sign it.",
            )
        if not self._is_private(call):
            _check_bound(envelope, addressing, header, parts, call)
        assert header.signature is not None
        until_ns = self._until_ns(header.timestamp, now_ns)
        identity = header.signature.certificate + header.signature.signed_info
        self._check_new(identity, until_ns, now_ns, "the message came before")
        return found

    def _is_private(self, call: SoapCall) -> bool:
        return call.is_private or self._options.tls_in_front

    def _until_ns(self, timestamp: Timestamp, now_ns: int) -> int:
        """When the message is too old; a SoapFault if it is already, or comes from the future."""
        age_ns, skew_ns = self._options.age_ns, self._options.skew_ns
        created_ns = timestamp.created_ns
        ends_ns = created_ns + age_ns
        if timestamp.expires_ns is not None:
            ends_ns = min(ends_ns, timestamp.expires_ns)
        ends_ns += skew_ns
        if created_ns > now_ns + skew_ns:
            ahead_s = (created_ns - now_ns) // NS_PER_S
            raise _expired(f"the message was made {ahead_s} s from now")
        if now_ns >= ends_ns:
            raise _expired("the message is too old")
        if created_ns < self._since_ns:
            raise _expired("the message is older than this process of the broker")
        return ends_ns

    def _check_new(self, identity: bytes, until_ns: int, now_ns: int, problem: str) -> None:
        if not self._seen.add(identity, until_ns, now_ns):
            raise security_fault(
                "InvalidSecurity", problem, "Sign each message by itself, at the time it is sent."
            )


def _check_same(session: Session, found: list[SignedIn]) -> None:
    """Who shows two credentials has to be one: else it would be chance by which rights he acts."""
    names = {principal.name for principal, _ in found}
    if session.is_signed_in:
        names.add(session.principal.name)
    if len(names) > 1:
        raise security_fault(
            "FailedAuthentication",
            "the message and its connection, or two parts of its Security header, are of "
            "different principals",
            "Use credentials of one.",
        )


def _check_bound(
    envelope: Envelope,
    addressing: Addressing,
    header: SecurityHeader,
    parts: frozenset[Element],
    call: SoapCall,
) -> None:
    """Without TLS, somebody on the way could give a signed body another meaning, by what is around
    it: so that has to be signed too."""
    for block in blocks(envelope):
        if block.tag != SECURITY and block not in parts:
            raise _unbound(f"the header block {split(block.tag)[1][:80]} is not signed")
    if addressing.to is None or addressing.action is None:
        raise _unbound("there is no wsa:To or no wsa:Action")
    try:
        path = urlsplit(addressing.to).path
    except ValueError:
        path = ""
    if path != call.path or call.query:
        raise _unbound(f"wsa:To does not name where it came, {call.path[:200]!r}")
    assert header.signature is not None
    for reference in header.signature.references:
        loose = _loose_prefixes(reference.target) - set(reference.prefixes)
        if loose:
            named = ", ".join(sorted(loose)[:5])
            raise _unbound(
                f"the declarations of these prefixes are not signed with "
                f"{split(reference.target.tag)[1]}: {named}"
            )


def _loose_prefixes(target: Element) -> set[str]:
    """The prefixes declared around an element that its exclusive canonical form may lack. A text
    in it can mean something else if such a declaration is exchanged."""
    parent = target.getparent()
    around = {} if parent is None else parent.nsmap
    spaces = list(around.values())
    # Of attributes only the namespace is known: that of one prefix alone is then surely this one's.
    used = {etree.QName(name).namespace for name in target.attrib}
    return {
        prefix or "#default"
        for prefix, space in around.items()
        if prefix != target.prefix and not (space in used and spaces.count(space) == 1)
    }


def _unbound(problem: str) -> Exception:
    return security_fault(
        "FailedCheck",
        f"{problem}, and there is no TLS",
        "Use the https address, or sign all header blocks with the prefixes in scope.",
    )


def _expired(problem: str) -> Exception:
    return security_fault(
        "MessageExpired",
        problem,
        "Send it again with the current time, and set both clocks by the network.",
    )


def _not_authenticated() -> Exception:
    return security_fault(
        "FailedAuthentication",
        "the credential is not valid",
        "Ask the operator for another; the broker's audit log says what was wrong with this one.",
    )
