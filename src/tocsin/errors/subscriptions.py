"""T3: subscriptions, boxes and dead letters. T5: delivery."""

from __future__ import annotations

from tocsin.errors.root import TocsinError


class BadSubscription(TocsinError):
    """A subscription request is invalid: an unknown field, sink, protocol or time."""

    code = "T301"


class NoSuchSubscription(TocsinError):
    """There is no subscription with this id: it never existed, was deleted, or has expired."""

    code = "T302"
    http_status = 404
    exit_code = 5


class NoSuchBox(TocsinError):
    """There is no message box with this id: it never existed, was deleted, or has expired."""

    code = "T303"
    http_status = 404
    exit_code = 5


class NoSuchDeadLetter(TocsinError):
    """There is no dead letter with this id: it was redriven, dropped, or never existed."""

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
    """The acknowledgement token was not issued by this box."""

    code = "T308"


class TooMuchKept(TocsinError):
    """The limit on what one service keeps in the log is reached: resources, or sequences, say.

    Nothing of it was kept, and other services go on. Entries are removed when their owner ends
    them, or when they expire.
    """

    code = "T309"
    http_status = 429


class PeerFailed(TocsinError):
    """Another service that the broker wrote to could not be reached, or sent an invalid answer.

    The message says which and why. The message to it was not delivered, or it is not known
    whether it was. The request to the broker itself is not undone.
    """

    code = "T501"
    http_status = 502
