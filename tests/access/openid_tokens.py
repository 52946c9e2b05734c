"""Issuers with fixed keys, and tokens that they have signed."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import Any

import pytest

from access.issuer import SigningKey, base64url
from tocsin.access.sign_in.issuer import Issuer
from tocsin.access.sign_in.jws import BadToken, KeySet, read_key_set
from tocsin.access.sign_in.openid import OpenId
from tocsin.errors import NotSignedIn

RSA = SigningKey("RS256", kid="first")
OTHER = SigningKey("RS256", kid="first")  # another key by the same name
URL = "https://sso.example.org/realms/lab"
OTHER_URL = "https://login.example.net"


def now_ns() -> int:
    return time.time_ns()


@dataclass
class FixedKeys:
    """The keys of issuers, as a test has them."""

    sets: dict[str, KeySet | None]
    asked: list[str] = field(default_factory=list)

    def of(self, issuer: str) -> KeySet | None:
        return self.sets.get(issuer)

    def wanted(self, issuer: str) -> None:
        self.asked.append(issuer)


def key_set(*keys: SigningKey | dict[str, Any]) -> KeySet:
    jwks = [each.public if isinstance(each, SigningKey) else each for each in keys]
    return read_key_set(json.dumps({"keys": jwks}).encode())


def claims(**more: Any) -> dict[str, Any]:
    now_s = int(time.time())
    found = {"iss": URL, "sub": "alice", "aud": "tocsin", "iat": now_s, "exp": now_s + 300}
    return {name: value for name, value in (found | more).items() if value is not None}


def open_id(*keys: SigningKey | dict[str, Any], **named: Any) -> OpenId:
    issuer = Issuer(**({"issuer": URL, "audience": "tocsin"} | named))
    return OpenId([issuer], FixedKeys({URL: key_set(*(keys or (RSA,)))}))


def why_not(openid: OpenId, token: str, at_ns: int | None = None) -> str:
    """The exact reason for which a token is refused; its holder does not learn it."""
    with pytest.raises(NotSignedIn) as refused:
        openid.sign_in(token, now_ns() if at_ns is None else at_ns)
    cause = refused.value.__cause__
    assert isinstance(cause, BadToken)
    assert str(cause) not in str(refused.value)
    return str(cause)


def number(value: int) -> str:
    return base64url(value.to_bytes((value.bit_length() + 7) // 8))
