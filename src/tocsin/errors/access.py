"""What may go wrong about who asks and what they may do: credentials, rights, rules, quotas."""

from __future__ import annotations

from tocsin.errors.root import TocsinError


class NotAllowed(TocsinError):
    """The caller has no right to do this. Nothing was changed, and nothing was read."""

    code = "T215"
    http_status = 403
    exit_code = 4


class NotSignedIn(NotAllowed):
    """The caller showed no credential where one is needed, or one that is not valid any more.

    A token may be unknown, expired or revoked; a certificate may be of another authority. Which of
    these it is, the broker's audit log says, and not the answer.
    """

    code = "T216"
    http_status = 401
    was_good = False  # the credential was a good one, and has ended: so nobody has guessed


class BadRight(TocsinError):
    """A rule, a token or a right cannot be read. Nothing was changed."""

    code = "T217"


class NoSuchCredential(TocsinError):
    """There is no token or rule with this id. It may have been revoked and forgotten."""

    code = "T218"
    http_status = 404
    exit_code = 5


class QuotaReached(TocsinError):
    """A principal or an address has reached the number or rate that it is granted.

    Nothing was changed. The answer says which quota it is; where it is a rate, when to try again.
    """

    code = "T219"
    http_status = 429

    def __init__(self, problem: str, *, remedy: str, retry_after_s: float | None = None) -> None:
        super().__init__(problem, remedy=remedy)
        self.retry_after_s = retry_after_s


class BadCredential(TocsinError):
    """A key, a certificate, a token or the file that holds it cannot be used.

    The message says which file it is and what is wrong with it. Files with private keys or tokens
    must be readable by their owner alone.
    """

    code = "T220"
    exit_code = 2


class NoAuditLog(TocsinError):
    """The broker keeps no audit log: nobody signs in there, or the settings want none."""

    code = "T221"
    http_status = 404
    exit_code = 5
