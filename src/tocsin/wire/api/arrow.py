"""Events as an Arrow stream over HTTP: the words that both ends use."""

from __future__ import annotations

from typing import Final

MEDIA_TYPE: Final = "application/vnd.apache.arrow.stream"

# The first event that the broker still has; what was before it is gone.
FIRST: Final = "tocsin-first"
# Through which event the answer goes: pass it as `after` to go on. What is missing up to there
# could not be read by the broker either. With a problem T410: where to go on without the file.
NEXT: Final = "tocsin-next"
# The last event there was when the answer began.
HEAD: Final = "tocsin-head"

# `checked=yes`: the answer ends with the file that it begins in, and that was read before, so that
# a damaged one is reported and nothing of it is given.
CHECKED: Final = "checked"
YES_OR_NO: Final = ("yes", "no")


def is_wanted(accept: str) -> bool:
    """True if a client that sends this Accept header takes Arrow."""
    return MEDIA_TYPE in (each.partition(";")[0].strip() for each in accept.lower().split(","))
