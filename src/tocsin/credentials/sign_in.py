"""SignIn: the arguments by which a program says with what it signs in. For annotations alone."""

from __future__ import annotations

from typing import TypedDict


class SignIn(TypedDict, total=False):
    """The arguments by which a program says with what it signs in."""

    token: str | None
    token_file: str | None
    client_certificate: str | None
    client_key: str | None
    insecure_token: bool
