"""One error tree: a stable code, what happened, and what to do about it.

The code is part of the public contract; the words are not. `tocsin explain CODE` prints the class's
docstring, so a docstring here is written for the person who met the error. A bug is an `assert`,
never one of these.

Ranges: T0 settings, T1 events, topics and filters, T2 requests, T3 subscriptions, boxes and dead
letters, T4 the log and its disk, T5 delivery, T6 clients reaching a broker.
"""

from __future__ import annotations

from typing import ClassVar


class TocsinError(Exception):
    """Something a person can act on."""

    code: ClassVar[str] = "T000"
    http_status: ClassVar[int] = 400
    exit_code: ClassVar[int] = 1

    def __init__(self, problem: str, *, remedy: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.problem} [{self.code}]. {self.remedy}"


# T0: settings


class BadSetting(TocsinError):
    """A setting in a file, the environment or a flag is unknown, or has a value that cannot be.

    The message names the key, where it was found and the nearest key that exists. `tocsin config
    show` lists every setting with its value and where that value came from.
    """

    code = "T001"
    exit_code = 2


class NotOpenToTheWorld(TocsinError):
    """The broker was asked to listen beyond this machine without protection.

    Anybody who can reach the address could then publish and subscribe. Listen on 127.0.0.1 and put
    a TLS proxy with authentication in front, or say `--open` to accept it.
    """

    code = "T002"
    exit_code = 2


# T1: events, topics, filters


class BadEvent(TocsinError):
    """An event breaks the CloudEvents rules or a limit of this broker.

    Nothing of the request was kept: not the events before it in a batch either.
    """

    code = "T101"


class BadTopic(TocsinError):
    """A topic is levels separated by single slashes: weather/ohio/radar, without wildcards."""

    code = "T102"


class BadTopicPattern(TocsinError):
    """A pattern is a topic in which a level may be * (exactly one) or ** (any number, or none)."""

    code = "T103"


class BadFilter(TocsinError):
    """A filter could not be read. The message shows the text with a mark under the character."""

    code = "T104"

    def __init__(self, problem: str, *, remedy: str, text: str = "", position: int = 0) -> None:
        super().__init__(problem, remedy=remedy)
        self.text = text
        self.position = position

    def pointed(self) -> str:
        """The text, and a caret under the character that is wrong."""
        line_start = self.text.rfind("\n", 0, self.position) + 1
        line = self.text[line_start:].split("\n", 1)[0]
        return f"{line}\n{' ' * (self.position - line_start)}^"


class BadXml(TocsinError):
    """XML is malformed, over a limit, or has a document type, which is never read."""

    code = "T105"


# T2: requests


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
    """The body's Content-Type (or its encoding) is none that this address reads."""

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
    """What came by a framed connection is not framed as it must be, or is over a limit.

    Where the next message begins can then not be known, so the connection is closed. What was
    answered before it holds.
    """

    code = "T212"


# T3: subscriptions, boxes, dead letters


class BadSubscription(TocsinError):
    """A subscription asks for what cannot be: an unknown field, sink, protocol or time."""

    code = "T301"


class NoSuchSubscription(TocsinError):
    """There is no subscription with this id: it never was, was deleted, or has expired."""

    code = "T302"
    http_status = 404
    exit_code = 5


class NoSuchBox(TocsinError):
    """There is no message box with this id: it never was, was deleted, or has expired."""

    code = "T303"
    http_status = 404
    exit_code = 5


class NoSuchDeadLetter(TocsinError):
    """There is no dead letter with this id: it was redriven, dropped, or never was."""

    code = "T304"
    http_status = 404
    exit_code = 5


class RedriveFailed(TocsinError):
    """The sink refused the event again. The dead letter is kept, with this attempt added to it."""

    code = "T305"
    http_status = 502


class TooManySubscriptions(TocsinError):
    """The limit on subscriptions, boxes or open streams is reached."""

    code = "T306"
    http_status = 429


class SinkRefused(TocsinError):
    """Events may not be pushed to this address: it is private, or a kind that is never a sink."""

    code = "T307"
    http_status = 403
    exit_code = 4


class BadToken(TocsinError):
    """The acknowledgement token is none that this box handed out."""

    code = "T308"


class TooMuchKept(TocsinError):
    """The limit on what services such as registrations and sequences keep in the log is reached.

    Nothing of it was kept. What is kept goes when its owner ends it, or when it expires.
    """

    code = "T309"
    http_status = 429


# T4: the log and its disk


class DataDirectoryInUse(TocsinError):
    """Another broker works in this data directory. Two would spoil each other's log."""

    code = "T401"


class DataDirectoryUnusable(TocsinError):
    """The data directory cannot be made, read or written, or was written by a newer Tocsin."""

    code = "T402"


class DiskFull(TocsinError):
    """The disk has no room. The event was not stored, and nothing that was acknowledged is lost."""

    code = "T403"
    http_status = 507


class DiskFailed(TocsinError):
    """The disk did not confirm a write. The broker stops, because what it then holds is not known.

    No event of that write was acknowledged. Check the disk (dmesg, smartctl), run
    `tocsin doctor --data DIR`, and start the broker again.
    """

    code = "T404"
    http_status = 503


class CorruptLog(TocsinError):
    """A stored record does not fit its checksum, or the database's pages are damaged."""

    code = "T405"
    http_status = 500


# T5: delivery


class PeerFailed(TocsinError):
    """Another service that the broker wrote to could not be reached, or answered nonsense.

    The message says which and why. What was to be told to it was not, or nobody knows whether it
    was; what was asked of the broker itself is not undone by that.
    """

    code = "T501"
    http_status = 502


# T6: clients reaching a broker


class CannotReachBroker(TocsinError):
    """No broker answered there. Start one with `tocsin serve`, or name it with --broker."""

    code = "T601"
    http_status = 502
    exit_code = 3


class BrokerRefused(TocsinError):
    """The broker answered with an error. Its own code and remedy are in the message."""

    code = "T602"

    def __init__(
        self,
        problem: str,
        *,
        remedy: str,
        status: int = 0,
        broker_code: str | None = None,
        pointed: str = "",
    ) -> None:
        super().__init__(problem, remedy=remedy)
        self.status = status
        self.broker_code = broker_code or self.code
        self.pointed = pointed

    def __str__(self) -> str:
        return f"{self.problem} [{self.broker_code}]. {self.remedy}"


class NothingArrived(TocsinError):
    """The time given ran out before enough events arrived."""

    code = "T603"
    exit_code = 6


class SomeFailed(TocsinError):
    """Some of many things done at once failed; each is named above this line."""

    code = "T604"
    exit_code = 7


def catalogue() -> dict[str, type[TocsinError]]:
    """Every error by its code."""
    found: dict[str, type[TocsinError]] = {}
    waiting = list(TocsinError.__subclasses__())
    while waiting:
        error = waiting.pop()
        waiting.extend(error.__subclasses__())
        assert error.code not in found, error
        found[error.code] = error
    return dict(sorted(found.items()))
