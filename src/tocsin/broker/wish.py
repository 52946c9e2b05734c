"""Wish: a change that a client waits for."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tocsin.broker.effects import Token


class Wish(msgspec.Struct, frozen=True):
    """Noted with the next commit, done when it is on disk."""

    token: Token
    note: Callable[[int], None]  # takes the head as it will be then
    do: Callable[[int], object]  # takes the time, gives the answer
