"""PendingChange: a change that a client waits for."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tocsin.broker.commit.numbering import Applied
from tocsin.broker.effects import Token


class NextCommit(msgspec.Struct, frozen=True):
    """An answer that is true once the next commit is on disk, too."""

    answer: object


class PendingChange(msgspec.Struct, frozen=True):
    """Staged with the next commit, applied when that is on disk."""

    token: Token
    stage: Callable[[], None]  # puts it into `State.unsaved`
    apply: Callable[[Applied, int], object]
    """Takes what the commit did and the time; returns the answer, or a `NextCommit` with it."""
