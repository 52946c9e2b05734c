"""T5: delivery."""

from __future__ import annotations

from tocsin.errors.root import TocsinError


class PeerFailed(TocsinError):
    """Another service that the broker wrote to could not be reached, or sent an invalid answer.

    The message says which and why. The message to it was not delivered, or it is not known
    whether it was. The request to the broker itself is not undone.
    """

    code = "T501"
    http_status = 502
