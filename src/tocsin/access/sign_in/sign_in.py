"""Sign-in: from what a client shows to who it is. What it may do is for `policy.py` to say."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from tocsin.access.policy.policy import Policy
from tocsin.access.policy.tokens import PREFIX, hash_of, is_over, is_secret, parse_token
from tocsin.access.session import Credential, CredentialKind, Principal, is_reserved
from tocsin.errors import NotSignedIn

HEADER_CHARS_MAX: Final = 16 << 10

SignedIn = tuple[Principal, Credential]


class BearerTokens(Protocol):
    """Bearer tokens of another issuer."""

    kind: CredentialKind

    def looks_like(self, text: str) -> bool: ...

    def sign_in(self, text: str, now_ns: int) -> SignedIn:
        """Raises NotSignedIn, whose __cause__ says exactly why: that is for the audit log."""


Refused = Callable[[str, str], None]
"""Called with what somebody tried to sign in with, and why it was refused: for the audit log."""


class SignIn:
    """Who shows which credential."""

    def __init__(
        self, policy: Policy, others: Sequence[BearerTokens] = (), refused: Refused | None = None
    ) -> None:
        """`others`: bearer tokens of other kinds, each known by its looks."""
        self._policy = policy
        self._others = others
        self._refused = refused

    def now_ns(self) -> int:
        """The time of day by which credentials end."""
        return self._policy.now_ns()

    def by_header(self, value: bytes) -> SignedIn:
        """By an Authorization header: Bearer, or Basic with a token as the password."""
        text = value.decode("latin-1")
        scheme, _, rest = text.partition(" ")
        rest = rest.strip()
        if len(text) <= HEADER_CHARS_MAX and rest:
            if scheme.lower() == "bearer":
                return self.by_token(rest)
            if scheme.lower() == "basic":
                return self._by_basic(rest)
        # What it says is not recorded: who leaves out the scheme sends a secret in its place.
        raise self._no("authorization", "it is neither Bearer nor Basic, or nothing follows that")

    def _by_basic(self, encoded: str) -> SignedIn:
        try:
            user, colon, password = base64.b64decode(encoded, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            raise self._no("basic", "it is not base64 of user:password") from None
        if not colon:
            raise self._no("basic", "it is not base64 of user:password")
        return self.by_password(user, password)

    def by_password(self, name: str, password: str) -> SignedIn:
        """By a name with one of its tokens as the password, for protocols that have just these."""
        found = self.by_token(password)
        if name and found[0].name != name:
            raise self._no("basic", f"the token is of {found[0].name}, and the user is another")
        return found

    def by_token(self, text: str) -> SignedIn:
        if not text.startswith(f"{PREFIX}_"):
            for others in self._others:
                if others.looks_like(text):
                    return self._by_other(others, text)
        parts = parse_token(text)
        if parts is None:
            raise self._no("token", "it has not the form of a token")
        token_id, secret = parts
        token = self._policy.tokens.get(token_id)
        if token is None:
            hash_of(secret)  # as long as for one that is there
            raise self._no(f"token/{token_id}", "no token has this id")
        if not is_secret(token, secret):
            raise self._no(f"token/{token_id}", "the secret is wrong")
        if token.revoked_ns is not None:
            raise self._no(f"token/{token_id}", "it was revoked", was_good=True)
        if is_over(self._policy.tokens, self._policy.revoked, token.key):
            raise self._no(
                f"token/{token_id}",
                f"{token.made_with}, of which it is, was revoked",
                was_good=True,
            )
        if token.expires_ns is not None and token.expires_ns <= self._policy.now_ns():
            raise self._no(f"token/{token_id}", "it has expired", was_good=True)
        assert not is_reserved(token.principal)
        credential = Credential(CredentialKind.TOKEN, token.key, token.expires_ns, token.entity_id)
        return Principal(token.principal, token.groups), credential

    def _by_other(self, others: BearerTokens, text: str) -> SignedIn:
        try:
            return others.sign_in(text, self._policy.now_ns())
        except NotSignedIn as error:
            if self._refused is not None:
                self._refused(others.kind, str(error.__cause__ or error.problem))
            raise

    def _no(self, what: str, why: str, *, was_good: bool = False) -> NotSignedIn:
        if self._refused is not None:
            self._refused(what, why)
        error = NotSignedIn(
            "the credential is not valid",
            remedy="Ask the operator for a token, or make one with `tocsin access token`; "
            "the broker's audit log says what was wrong with this one.",
        )
        error.was_good = was_good
        return error
