"""OpenID Connect: access tokens of configured issuers sign their holders in.

A token is verified by the keys of its issuer that are known at the moment; nothing here waits. What
it says of its holder becomes a principal: a name and groups, both with the issuer's prefix.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

import msgspec

from tocsin.access.session import Credential, CredentialKind, Principal, is_reserved
from tocsin.access.sign_in import jws
from tocsin.access.sign_in.issuer import Issuer
from tocsin.access.sign_in.jws import BadToken, KeySet, UnknownKey, shown
from tocsin.errors import NotSignedIn
from tocsin.event.instant import NS_PER_S

LEEWAY_S: Final = 30  # by which an issuer's clock may be ahead of ours; never added to an end
CHARACTERS_MAX: Final = 255  # of a name, a group and a subject
VERIFIED_MAX: Final = 10_000  # tokens that need not be verified again
TIME_S_MAX: Final = 253_402_300_799  # the end of the year 9999
# A logout token or a proof is signed by the same keys as an access token.
TYPES: Final = frozenset({"jwt", "at+jwt", "application/at+jwt"})


class Keys(Protocol):
    """The keys of issuers, as they are known at the moment."""

    def of(self, issuer: str) -> KeySet | None:
        """None if they could not be read yet. The same object for as long as they are the same."""

    def wanted(self, issuer: str) -> None:
        """A token names a key that is not known: ask for them again, soon, and do not wait."""


class Verified(msgspec.Struct, frozen=True):
    """A token that was verified, and the keys by which it was."""

    principal: Principal
    credential: Credential
    expires_ns: int
    issuer: str
    keys: KeySet


class OpenId:
    """Signs in by tokens of the issuers that an operator has named."""

    kind = CredentialKind.OPENID

    def __init__(self, issuers: Iterable[Issuer], keys: Keys) -> None:
        self._issuers = {each.issuer: each for each in issuers}
        self._keys = keys
        self._verified: dict[bytes, Verified] = {}  # by the hash of the token, oldest first

    @staticmethod
    def looks_like(text: str) -> bool:
        """True if the text is for `sign_in`: three parts of base64url, with dots between."""
        return jws.is_compact(text)

    def sign_in(self, text: str, now_ns: int) -> tuple[Principal, Credential]:
        """Who the holder of this token is. Raises NotSignedIn, whose __cause__ (a BadToken) says
        exactly why: that is for the audit, and not for the answer."""
        try:
            found = self._known(text, now_ns) or self._verify(text, now_ns)
        except UnknownKey as error:
            raise NotSignedIn(
                "the OpenID Connect token is signed by a key that is not known here",
                remedy="Try again in half a minute: the issuer is asked for its keys. If it stays "
                "so, sign in again at the issuer.",
            ) from error
        except BadToken as error:
            raise NotSignedIn(
                "the OpenID Connect token is not valid here",
                remedy="Sign in again at the issuer, and ask for an access token for this broker; "
                "its operator finds in the audit log what was wrong with this one.",
            ) from error
        return found.principal, found.credential

    def _known(self, text: str, now_ns: int) -> Verified | None:
        """What was found before, for as long as it holds."""
        if len(text) > jws.SIZE_MAX or not text.isascii():
            return None
        found = self._verified.get(token_hash := _hash(text))
        if found is None:
            return None
        if now_ns < found.expires_ns and self._keys.of(found.issuer) is found.keys:
            return found
        del self._verified[token_hash]
        return None

    def _verify(self, text: str, now_ns: int) -> Verified:
        token = jws.parse(text)
        if token.typ is not None and token.typ.lower() not in TYPES:
            raise BadToken(f"its type is {shown(token.typ)}")
        claims = jws.json_object(token.payload, "payload")
        url = claims.get("iss")
        issuer = self._issuers.get(url) if isinstance(url, str) else None
        if issuer is None:
            raise BadToken(f"its issuer is {shown(url)}")
        keys = self._check_signature(token, issuer)
        expires_ns = _check_claims(claims, issuer, now_ns)
        principal = _principal(claims, issuer)
        key = credential_key(issuer.issuer, _subject(claims))
        credential = Credential(CredentialKind.OPENID, key, expires_ns)
        found = Verified(principal, credential, expires_ns, issuer.issuer, keys)
        while len(self._verified) >= VERIFIED_MAX:
            del self._verified[next(iter(self._verified))]
        self._verified[_hash(text)] = found
        return found

    def _check_signature(self, token: jws.Signed, issuer: Issuer) -> KeySet:
        keys = self._keys.of(issuer.issuer)
        try:
            if keys is None:
                raise UnknownKey(f"the keys of {shown(issuer.issuer)} could not be read yet")
            keys.check(token)
        except UnknownKey:
            self._keys.wanted(issuer.issuer)
            raise
        return keys


def credential_key(issuer: str, subject: str) -> str:
    """What is revoked: the same for all tokens that one issuer gives to one subject."""
    return f"{CredentialKind.OPENID}/{hashlib.sha256(issuer.encode()).hexdigest()[:16]}/{subject}"


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("ascii")).digest()


def _check_claims(claims: Mapping[str, Any], issuer: Issuer, now_ns: int) -> int:
    """What the token says of itself; its end."""
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    if issuer.audience not in audiences:
        raise BadToken(f"it is for {shown(audience)}, and not for {issuer.audience!r}")
    if "events" in claims:
        raise BadToken("it is an event about its subject, and not an access token")
    expires_ns = _time_ns(claims, "exp")
    if expires_ns is None:
        raise BadToken("it has no end (exp)")
    if expires_ns <= now_ns:
        raise BadToken("it has expired")
    for name in ("nbf", "iat"):
        begins_ns = _time_ns(claims, name)
        if begins_ns is not None and begins_ns > now_ns + LEEWAY_S * NS_PER_S:
            raise BadToken(f"it is not valid yet ({name})")
    return expires_ns


def _time_ns(claims: Mapping[str, Any], name: str) -> int | None:
    value = claims.get(name)
    if value is None and name not in claims:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadToken(f"its {name} is not a time: {shown(value)}")
    if not 0 <= value <= TIME_S_MAX:
        raise BadToken(f"its {name} is out of range: {shown(value)}")
    return int(value * NS_PER_S)


def _principal(claims: Mapping[str, Any], issuer: Issuer) -> Principal:
    name = issuer.prefix + _name(claims, issuer.name_claim)
    if is_reserved(name):
        raise BadToken(f"its name {name!r} is not one that a credential may have")
    found = _claim(claims, issuer.groups_claim)
    groups = [] if found is None else found if isinstance(found, list) else [found]
    for each in groups:
        _check_text(each, "group")
    return Principal(name, frozenset(issuer.prefix + each for each in groups))


def _name(claims: Mapping[str, Any], claim: str) -> str:
    if claim == "sub":
        return _subject(claims)
    if claim == "email" and claims.get("email_verified") is not True:
        raise BadToken("its email is not verified by the issuer")
    return _check_text(_claim(claims, claim), claim)


def _subject(claims: Mapping[str, Any]) -> str:
    return _check_text(claims.get("sub"), "sub")


def _claim(claims: Mapping[str, Any], name: str) -> Any:
    """A claim by its name, which may have dots, or by its way through claims, as in
    realm_access.roles; None if there is none."""
    if name in claims:
        return claims[name]
    found: Any = claims
    for part in name.split("."):
        if not isinstance(found, dict):
            return None
        found = found.get(part)
    return found


def _check_text(value: object, what: str) -> str:
    """A text that can be compared and shown: neither blanks around it nor what does not print."""
    if not isinstance(value, str):
        raise BadToken(f"its {what} is not a text: {shown(value)}")
    if not 0 < len(value) <= CHARACTERS_MAX:
        raise BadToken(f"its {what} has {len(value)} characters")
    if not value.isprintable() or value != value.strip():
        raise BadToken(f"its {what} does not print as it is: {shown(value)}")
    return value
