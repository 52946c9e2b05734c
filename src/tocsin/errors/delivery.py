"""T5: delivery."""

from __future__ import annotations

from tocsin.errors.root import TocsinError


class PeerFailed(TocsinError):
    """Another service that the broker wrote to could not be reached, or answered nonsense.

    The message says which and why. What was to be told to it was not, or nobody knows whether it
    was; what was asked of the broker itself is not undone by that.
    """

    code = "T501"
    http_status = 502
