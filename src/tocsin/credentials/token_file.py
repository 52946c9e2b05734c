"""Where a token comes from: it was given, or is in a file."""

from __future__ import annotations

import os
from functools import cache

from tocsin.credentials.files import Stamp, read_private, stamp_at, stamp_of
from tocsin.credentials.secret import Secret, read_token


class GivenToken:
    """In an argument or a variable; BadCredential if it cannot be a token."""

    __slots__ = ("_token",)

    def __init__(self, text: str, where: str) -> None:
        self._token = read_token(text, where)

    def read(self) -> Secret:
        return self._token


class TokenFile:
    """Read again when it has changed: a token can be exchanged while a program runs."""

    __slots__ = ("_is_pipe", "_stamp", "_token", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self._is_pipe = False  # which has nothing left once it was read
        self._stamp: Stamp | None = None
        self._token: Secret | None = None

    def read(self) -> Secret:
        if self._token is not None and (self._is_pipe or self._stamp == stamp_at(self.path)):
            return self._token
        text, found = read_private(self.path, "the token file")
        self._token = read_token(text, f"the token file {self.path}")
        self._is_pipe = not os.path.isfile(self.path)
        self._stamp = stamp_of(found)
        return self._token


@cache
def token_file_at(path: str) -> TokenFile:
    """One for the whole process: that of `--token-file <(pass show tocsin)` is read once."""
    return TokenFile(path)
