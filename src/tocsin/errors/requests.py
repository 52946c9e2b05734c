"""T2: requests."""

from __future__ import annotations

from tocsin.errors.root import TocsinError


class BadRequest(TocsinError):
    """The request is not well-formed. Nothing was changed."""

    code = "T201"


class TooLarge(TocsinError):
    """A request, event, batch or header is over its limit. Send less at a time, or raise it."""

    code = "T202"
    http_status = 413


class TooSlow(TocsinError):
    """The request did not arrive whole within its deadline, and the connection was closed."""

    code = "T203"
    http_status = 408


class NoSuchPath(TocsinError):
    """There is nothing at this address. `GET /openapi.json` lists what there is."""

    code = "T204"
    http_status = 404
    exit_code = 5


class BadMethod(TocsinError):
    """The address exists and does not take this method. The Allow header lists those it takes."""

    code = "T205"
    http_status = 405


class BadMediaType(TocsinError):
    """The body's Content-Type (or its encoding) is not one that this address accepts."""

    code = "T206"
    http_status = 415


class Busy(TocsinError):
    """A limit on how much may wait at once is reached. Try again after what Retry-After says."""

    code = "T207"
    http_status = 503


class ShuttingDown(TocsinError):
    """The broker is stopping. What it acknowledged is on disk; send the rest when it is back."""

    code = "T208"
    http_status = 503


class InternalError(TocsinError):
    """The broker failed in a way it should not. Its log has the trace; please report that."""

    code = "T209"
    http_status = 500


class HeadTooLarge(TocsinError):
    """The head of a request has too many headers, or too long ones. The body may be long."""

    code = "T210"
    http_status = 431


class ForeignOrigin(TocsinError):
    """A web page of another site, or a name that is not this broker's, asked on a browser's behalf.

    Otherwise any page a person visits could publish to a broker on that person's machine. Programs
    that are not browsers are not concerned: they send neither Origin nor Sec-Fetch-Site.
    """

    code = "T211"
    http_status = 403
    exit_code = 4


class BadFrame(TocsinError):
    """A message on a framed connection is malformed, or over a limit.

    It is not known then where the next message begins, so the connection is closed. Replies
    that were sent before stay valid.
    """

    code = "T212"


class BadMessage(TocsinError):
    """A message of the producer/consumer protocol is invalid. Nothing was changed.

    A request that can be recognised gets its reply, with Failure and this as the ReturnDetail;
    anything else closes the connection, because there is no reply that could carry the error.
    """

    code = "T213"

    def __init__(self, problem: str, *, remedy: str, refusal: object = None) -> None:
        super().__init__(problem, remedy=remedy)
        self.refusal = refusal  # the reply that says so, where there is somebody to reply to


class BrokenConversation(TocsinError):
    """A message belongs to nothing known: a reply to no request, an event of no subscription.

    The two sides are out of step, so the connection is closed. Connect and
    subscribe again.
    """

    code = "T214"
