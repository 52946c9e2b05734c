"""PendingChange: a change that a client waits for."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tocsin.broker.effects import Token
from tocsin.broker.numbering import Applied


class PendingChange(msgspec.Struct, frozen=True):
    """Staged with the next commit, applied when that is on disk."""

    token: Token
    stage: Callable[[], None]  # puts it into `State.unsaved`
    apply: Callable[[Applied, int], object]  # takes what the commit did and the time; the answer
