"""GuardedSignIn: sign-in for clients at an address, which may not fail too often."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tocsin.access.session import Session
from tocsin.access.sign_in.attempts import Attempts, proof_of
from tocsin.access.sign_in.sign_in import Refused, SignedIn, SignIn
from tocsin.errors import NotSignedIn, QuotaReached

QUOTA: Final = "failed_sign_ins"

Failed = Callable[[Session, str, str], None]
"""Called with whoever tried to sign in, with what, and why it was refused."""


class GuardedSignIn:
    """See the module. `caller` is the session of the connection, before anybody signed in."""

    def __init__(
        self,
        make: Callable[[Refused], SignIn],
        attempts: Attempts,
        steady_ns: Callable[[], int],
        failed: Failed,
        waits: Failed,
    ) -> None:
        self.attempts = attempts
        self.failures = 0
        self._sign_in = make(self._refused)
        self._steady_ns = steady_ns
        self._failed = failed
        self._waits = waits
        self._caller: Session | None = None

    def now_ns(self) -> int:
        """The time of day by which credentials end."""
        return self._sign_in.now_ns()

    def by_header(self, value: bytes, caller: Session) -> SignedIn:
        """By an Authorization header: Bearer, or Basic with a token as the password."""
        return self._guarded(caller, value, lambda: self._sign_in.by_header(value))

    def by_token(self, text: str, caller: Session) -> SignedIn:
        shown = text.encode(errors="replace")
        return self._guarded(caller, shown, lambda: self._sign_in.by_token(text))

    def by_password(self, name: str, password: str, caller: Session) -> SignedIn:
        """By a name with one of its tokens as the password."""
        shown = f"{name}\0{password}".encode(errors="replace")
        return self._guarded(caller, shown, lambda: self._sign_in.by_password(name, password))

    def _guarded(self, caller: Session, shown: bytes, sign_in: Callable[[], SignedIn]) -> SignedIn:
        proof, now_ns = proof_of(caller.peer, shown), self._steady_ns()
        try:
            self.attempts.check(proof, now_ns)
        except QuotaReached as error:
            self._waits(caller, QUOTA, error.problem)
            raise
        self._caller = caller
        try:
            found = sign_in()
        except NotSignedIn as error:
            self.failures += 1
            if not error.was_good:
                self.attempts.failed(proof, now_ns)
            raise
        finally:
            self._caller = None
        self.attempts.signed_in(proof)
        return found

    def _refused(self, what: str, why: str) -> None:
        if self._caller is not None:
            self._failed(self._caller, what, why)
