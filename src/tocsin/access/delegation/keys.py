"""Keys of entities: the one that signs, the one that its signatures are checked by, and the id
that follows from it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_der_public_key,
)

from tocsin.access.sign_in.certificates import check_key, entity_id, readable
from tocsin.access.sign_in.jws import BadKeySet, VerificationKey, read_key
from tocsin.errors import BadCredential

SPKI_BYTES_MAX: Final = 2_048  # of RSA with 8192 bits: 1,062
KEYS_KEPT: Final = 1_024

AnyPrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey

_CURVES: Final = {"secp256r1": "P-256", "secp384r1": "P-384", "secp521r1": "P-521"}
_HASHES: Final[Mapping[str, hashes.HashAlgorithm]] = {
    "P-256": hashes.SHA256(),
    "P-384": hashes.SHA384(),
    "P-521": hashes.SHA512(),
}
_ALGORITHMS: Final = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}
_REMEDY: Final = "Use RSA with 2048 to 8192 bits, P-256, P-384, P-521 or Ed25519."


class PublicKey(msgspec.Struct, frozen=True):
    """The key of an entity, by which everybody can check what it signed."""

    spki: bytes  # SubjectPublicKeyInfo, DER
    verification: VerificationKey

    @property
    def eid(self) -> str:
        return entity_id(self.spki)

    @property
    def thumbprint(self) -> bytes:
        return hashlib.sha256(self.spki).digest()


class PrivateKey:
    """The key by which an entity signs. What is signed twice has the same signature."""

    def __init__(self, key: object) -> None:
        if not isinstance(key, AnyPrivateKey):
            kind = type(key).__name__.removesuffix("PrivateKey")
            raise BadCredential(f"{kind} keys cannot sign", remedy=_REMEDY)
        check_key(key.public_key(), "the entity")
        self._key = key
        self.public = public_key(key.public_key())

    @property
    def key(self) -> AnyPrivateKey:
        return self._key

    @property
    def algorithm(self) -> str:
        match self._key:
            case rsa.RSAPrivateKey():
                return "RS256"
            case ec.EllipticCurvePrivateKey():
                return _ALGORITHMS[_CURVES[self._key.curve.name]]
            case ed25519.Ed25519PrivateKey():
                return "EdDSA"

    def sign(self, content: bytes) -> bytes:
        """The signature as a JWS has it."""
        match self._key:
            case rsa.RSAPrivateKey():
                return self._key.sign(content, padding.PKCS1v15(), hashes.SHA256())
            case ec.EllipticCurvePrivateKey():
                hash_algorithm = _HASHES[_CURVES[self._key.curve.name]]
                # RFC 6979: a weak source of chance at the time of signing gives no key away.
                how = ec.ECDSA(hash_algorithm, deterministic_signing=True)
                size = (self._key.key_size + 7) // 8
                r, s = decode_dss_signature(self._key.sign(content, how))
                return r.to_bytes(size) + s.to_bytes(size)
            case ed25519.Ed25519PrivateKey():
                return self._key.sign(content)


@lru_cache(maxsize=KEYS_KEPT)
def read_spki(spki: bytes) -> PublicKey:
    """The key of a SubjectPublicKeyInfo. Raises BadCredential."""
    if len(spki) > SPKI_BYTES_MAX:
        raise BadCredential(f"a key has {len(spki)} bytes", remedy=_REMEDY)
    with readable("the key"):
        found = public_key(load_der_public_key(spki))
    if found.spki != spki:
        # One key has one id: no second way to write it may have another.
        raise BadCredential("a key is not written in its one DER form", remedy=_REMEDY)
    return found


def read_jwk(jwk: Mapping[str, Any]) -> PublicKey:
    """The key of a JWK (RFC 7517). Raises BadCredential."""
    try:
        verification = read_key(jwk)
    except BadKeySet as error:
        raise BadCredential(f"a key cannot be used: {error}", remedy=_REMEDY) from None
    return public_key(verification.key.public_key)


def public_key(key: object) -> PublicKey:
    """Raises BadCredential for a key of a kind that is not used here."""
    check_key(key, "the entity")
    assert isinstance(key, rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey)
    spki = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    try:
        return PublicKey(spki, read_key(_jwk(key)))
    except BadKeySet as error:
        raise BadCredential(f"a key cannot be used: {error}", remedy=_REMEDY) from None


def jwk(key: PublicKey) -> dict[str, str]:
    """As it is written in a grant."""
    return _jwk(key.verification.key.public_key)


def _jwk(key: Any) -> dict[str, str]:
    if isinstance(key, rsa.RSAPublicKey):
        numbers = key.public_numbers()
        return {"kty": "RSA", "n": _number(numbers.n), "e": _number(numbers.e)}
    if isinstance(key, ec.EllipticCurvePublicKey):
        size = (key.key_size + 7) // 8
        point = key.public_numbers()
        return {
            "kty": "EC",
            "crv": _CURVES[key.curve.name],
            "x": base64url(point.x.to_bytes(size)),
            "y": base64url(point.y.to_bytes(size)),
        }
    return {"kty": "OKP", "crv": "Ed25519", "x": base64url(key.public_bytes_raw())}


def _number(value: int) -> str:
    return base64url(value.to_bytes((value.bit_length() + 7) // 8))


def base64url(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode("ascii")
