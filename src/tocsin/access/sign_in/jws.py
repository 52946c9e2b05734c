"""JSON Web Signatures in the compact form (RFC 7515), and the keys that they are checked by.

Read strictly: what two readers could understand differently is refused before a signature is looked
at. The key decides which algorithms there can be, never the header alone, and no key comes from a
header. So `none`, and a public key taken for a shared secret, have no way in.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from joserfc.errors import JoseError
from joserfc.jwa import JWS_ALGORITHMS
from joserfc.jwk import DictKey, ECKey, Key, OKPKey, RSAKey

from tocsin.wire import strict_json

SIZE_MAX: Final = 8 << 10  # characters of a token
KEYS_MAX: Final = 100  # of one issuer
RSA_BITS: Final = range(2048, 8192 + 1)
MEMBER_CHARACTERS_MAX: Final = 1_400  # of one number of a key: 8192 bits
EXPONENT_BITS_MAX: Final = 64  # a longer one makes each check as dear as signing

RSA_ALGORITHMS: Final = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})
EC_ALGORITHMS: Final = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}
EDWARDS_ALGORITHMS: Final = frozenset({"EdDSA", "Ed25519"})  # two names of one algorithm
ALGORITHMS: Final = RSA_ALGORITHMS | frozenset(EC_ALGORITHMS.values()) | EDWARDS_ALGORITHMS

_MODELS: Final[Mapping[str, Any]] = {each.name: each for each in JWS_ALGORITHMS}
_COMPACT: Final = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]*)\.([A-Za-z0-9_-]*)")
_PRIVATE: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
# `crit` names what a reader must understand, and we understand none of it; `b64` is such a thing;
# a `jwk` is a key of the sender's own choice. Others (jku, x5u, x5c, x5t) are never looked at.
_REFUSED_HEADERS: Final = ("crit", "b64", "jwk")


class BadToken(ValueError):
    """Why a token is refused: words for the log and the audit, not for whoever sent it."""


class UnknownKey(BadToken):
    """The token is signed by a key that is not among those that are known."""


class BadKeySet(ValueError):
    """A document cannot be read as a set of keys."""


class Signed(msgspec.Struct, frozen=True):
    """A token as it came. Nothing in it is true before its signature was checked."""

    algorithm: str
    kid: str | None
    typ: str | None
    payload: bytes
    signed: bytes  # what the signature is over
    signature: bytes


class VerificationKey(msgspec.Struct, frozen=True):
    """A public key and what may be checked by it."""

    kid: str | None
    algorithms: frozenset[str]
    key: Any


class KeySet(msgspec.Struct, frozen=True):
    """The public keys of an issuer, and why others that it has are not used."""

    keys: tuple[VerificationKey, ...]
    skipped: tuple[str, ...] = ()

    def check(self, token: Signed) -> None:
        """Raise BadToken if the signature is not one of these keys', and UnknownKey if that key is
        not known here."""
        check_signature(token, self._find(token.kid, token.algorithm))

    def _find(self, kid: str | None, algorithm: str) -> VerificationKey:
        named = [each for each in self.keys if kid is None or each.kid == kid]
        fit = [each for each in named if algorithm in each.algorithms]
        if len(fit) == 1:
            return fit[0]
        if fit:
            raise BadToken(f"{len(fit)} keys fit the kid {shown(kid)} and {algorithm}")
        if named and kid is not None:
            raise BadToken(f"{algorithm} does not fit the key {shown(kid)}")
        raise UnknownKey(f"no key has the kid {shown(kid)}")


def is_compact(text: str) -> bool:
    """True for what may be a token in the compact form: three parts of base64url."""
    return _COMPACT.fullmatch(text) is not None


def parse(text: str, size_max: int = SIZE_MAX) -> Signed:
    """A token in its parts. Raises BadToken for any that is not allowed, whoever signed it."""
    if len(text) > size_max:
        raise BadToken(f"it has {len(text)} characters, and at most {size_max} are read")
    parts = _COMPACT.fullmatch(text)
    if parts is None:
        raise BadToken("it is not three parts of base64url")
    header = json_object(decoded(parts[1], "header"), "header")
    for name in _REFUSED_HEADERS:
        if name in header:
            raise BadToken(f"its header has {name!r}")
    algorithm = header.get("alg")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise BadToken(f"its algorithm is {shown(algorithm)}")
    return Signed(
        algorithm=algorithm,
        kid=_text_or_none(header, "kid"),
        typ=_text_or_none(header, "typ"),
        payload=decoded(parts[2], "payload"),
        signed=text[: parts.end(2)].encode("ascii"),
        signature=decoded(parts[3], "signature"),
    )


def decoded(part: str, what: str) -> bytes:
    """Base64url without padding, in the one way in which these bytes are written."""
    try:
        content = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except binascii.Error:
        raise BadToken(f"its {what} is not base64url") from None
    if base64.urlsafe_b64encode(content).rstrip(b"=") != part.encode("ascii"):
        raise BadToken(f"its {what} is not base64url as it is written")
    return content


def json_object(content: bytes, what: str) -> dict[str, Any]:
    """A JSON object that every reader understands in the same way. Raises BadToken."""
    try:
        strict_json.check(content)
        found = msgspec.json.decode(content)
    except (ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise BadToken(f"its {what} is not JSON that can be read: {error!s:.200}") from None
    if not isinstance(found, dict):
        raise BadToken(f"its {what} is not a JSON object")
    return found


def shown(value: object) -> str:
    """A value of a token in a message: short, and nothing that is nested."""
    if value is None or isinstance(value, str | int | float):
        return repr(value)[:200]
    return f"a {type(value).__name__}"


def _text_or_none(header: Mapping[str, Any], name: str) -> str | None:
    value = header.get(name)
    if value is None or isinstance(value, str):
        return value
    raise BadToken(f"its header has a {name} that is not a text")


def check_signature(token: Signed, key: VerificationKey) -> None:
    """Raise BadToken unless this key has signed it, by an algorithm that it is for."""
    if token.algorithm not in key.algorithms:
        raise BadToken(f"its algorithm {token.algorithm} does not fit the key")
    # joserfc warns at each use of the older of the two names.
    name = "Ed25519" if token.algorithm == "EdDSA" else token.algorithm
    try:
        is_good = _MODELS[name].verify(token.signed, token.signature, key.key)
    except (JoseError, ValueError, TypeError, UnsupportedAlgorithm):
        is_good = False
    if is_good is not True:
        raise BadToken(f"its signature is not by the key {shown(key.kid)}")


# Keys

_UNREADABLE: Final = (
    JoseError,
    ValueError,
    TypeError,
    KeyError,
    OverflowError,
    UnsupportedAlgorithm,
)


def read_key_set(document: bytes) -> KeySet:
    """The keys of a JWK Set that may sign tokens. Raises BadKeySet if it is none, or has none."""
    try:
        found = json_object(document, "key set").get("keys")
    except BadToken as error:
        raise BadKeySet(str(error)) from None
    if not isinstance(found, list):
        raise BadKeySet("it has no list of keys")
    if len(found) > KEYS_MAX:
        raise BadKeySet(f"it has {len(found)} keys, and at most {KEYS_MAX} are read")
    keys: list[VerificationKey] = []
    skipped: list[str] = []
    for number, each in enumerate(found, start=1):
        try:
            keys.append(read_key(each))
        except BadKeySet as error:
            skipped.append(f"key {number}: {error}")
    if not keys:
        raise BadKeySet(f"none of its keys can be used ({'; '.join(skipped[:3]) or 'it is empty'})")
    return KeySet(tuple(keys), tuple(skipped))


def read_key(jwk: object) -> VerificationKey:
    """One key that may sign. Raises BadKeySet."""
    if not isinstance(jwk, dict):
        raise BadKeySet("it is not an object")
    kid, use, operations = jwk.get("kid"), jwk.get("use"), jwk.get("key_ops")
    if kid is not None and not isinstance(kid, str):
        raise BadKeySet("its kid is not a text")
    if use not in (None, "sig") or (operations is not None and "verify" not in _listed(operations)):
        raise BadKeySet("it is not for signatures")
    kind = jwk.get("kty")
    if kind not in ("RSA", "EC", "OKP"):
        raise BadKeySet(f"it is of the kind {shown(kind)}")
    if _PRIVATE & jwk.keys():
        raise BadKeySet("it is published with its private part")
    try:
        key, algorithms = _READERS[kind](jwk)
    except _UNREADABLE as error:
        raise BadKeySet(f"it cannot be read: {error!s:.200}") from None
    own = jwk.get("alg")
    if own is not None and (not isinstance(own, str) or own not in algorithms):
        raise BadKeySet(f"it is for the algorithm {shown(own)}")
    if own is not None and own not in EDWARDS_ALGORITHMS:
        algorithms = frozenset({own})
    return VerificationKey(kid, algorithms, key)


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _members(jwk: Mapping[str, Any], *names: str) -> DictKey:
    """Nothing but what makes the key: what else an issuer says of it is judged here."""
    found: DictKey = {name: jwk[name] for name in ("kty", *names)}
    if any(not isinstance(v, str) or len(v) > MEMBER_CHARACTERS_MAX for v in found.values()):
        raise ValueError("one of its members is not a text, or too long")
    return found


def _read_rsa(jwk: Mapping[str, Any]) -> tuple[Key, frozenset[str]]:
    members = _members(jwk, "n", "e")
    modulus, exponent = (int.from_bytes(decoded(str(members[name]), name)) for name in ("n", "e"))
    if modulus.bit_length() not in RSA_BITS:
        raise ValueError(f"an RSA key of {modulus.bit_length()} bits")
    if exponent.bit_length() > EXPONENT_BITS_MAX:
        raise ValueError("its public exponent is too large")
    if is_roca(modulus):
        raise ValueError("it is of the kind that can be factored (CVE-2017-15361)")
    return RSAKey.import_key(members), RSA_ALGORITHMS


def is_roca(modulus: int) -> bool:
    """True for a modulus whose primes are those of a certain faulty generator: modulo each small
    prime both are powers of 65537, and so is the modulus. Of others one in 2**27 at most is."""
    return all(modulus % prime in powers for prime, powers in _POWERS.items())


def _powers(prime: int) -> frozenset[int]:
    found, power = set(), 1
    while power not in found:
        found.add(power)
        power = power * 65537 % prime
    return frozenset(found)


_POWERS: Final = {
    prime: _powers(prime)
    for prime in range(3, 168, 2)
    if all(prime % each for each in range(3, prime, 2))
}


def _read_ec(jwk: Mapping[str, Any]) -> tuple[Key, frozenset[str]]:
    if jwk.get("crv") not in EC_ALGORITHMS:
        raise ValueError(f"the curve {shown(jwk.get('crv'))}")
    key = ECKey.import_key(_members(jwk, "crv", "x", "y"))
    return key, frozenset({EC_ALGORITHMS[key.curve_name]})


def _read_okp(jwk: Mapping[str, Any]) -> tuple[Key, frozenset[str]]:
    if jwk.get("crv") != "Ed25519":
        raise ValueError(f"the curve {shown(jwk.get('crv'))}")
    return OKPKey.import_key(_members(jwk, "crv", "x")), EDWARDS_ALGORITHMS


_READERS: Final = {"RSA": _read_rsa, "EC": _read_ec, "OKP": _read_okp}
