"""The file that `tocsin login` keeps: one login for each broker, by scheme, host and port."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from tocsin.credentials.files import Stamp, read_private, stamp_of, write_private
from tocsin.credentials.secret import Secret, read_token
from tocsin.errors import BadCredential

_WHAT: Final = "the file of logins"


class Renewal(NamedTuple):
    """How another token is had when one of an OpenID issuer has expired."""

    token_endpoint: str
    client_id: str
    refresh_token: Secret


class Login(NamedTuple):
    """A token and, if it is an issuer's, until when it holds (seconds of the epoch)."""

    token: Secret
    expires_at_s: float | None = None
    renewal: Renewal | None = None


def read_logins(path: str) -> tuple[dict[str, Login], Stamp | None]:
    """All logins by broker; none if there is no file."""
    if not os.path.exists(path):
        return {}, None
    import tomllib  # here: most commands find no such file

    text, found = read_private(path, _WHAT)
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise _bad_file(path, "is not TOML") from None  # whose words may quote a token
    return {name: _login(path, name, table) for name, table in tables.items()}, stamp_of(found)


def _login(path: str, broker: str, table: Any) -> Login:
    if not isinstance(table, dict) or not isinstance(table.get("token"), str):
        raise _bad_file(path, f"has no token for {broker[:200]}")
    token = read_token(table["token"], f"the login for {broker[:200]} in {path}")
    expires = table.get("expires_at_s")
    expires_at_s = float(expires) if isinstance(expires, int | float) else None
    names = ("token_endpoint", "client_id", "refresh_token")
    endpoint, client, refresh = (table.get(name) for name in names)
    renewal = None
    if isinstance(endpoint, str) and isinstance(client, str) and isinstance(refresh, str):
        renewal = Renewal(endpoint, client, Secret(refresh))
    return Login(token, expires_at_s, renewal)


def store_login(path: str, broker: str, login: Login | None) -> None:
    """Put a login in place of the one for the same broker; None removes it."""
    with locked(path):
        put_login(path, broker, login)


def put_login(path: str, broker: str, login: Login | None) -> None:
    """The same for who has it locked."""
    logins, _ = read_logins(path)
    logins.pop(broker, None)
    if login is not None:
        logins[broker] = login
    write_private(path, "".join(_text_of(name, each) for name, each in logins.items()))


@contextmanager
def locked(path: str) -> Iterator[None]:
    """One process at a time changes the file: a refresh token is good for one use."""
    import fcntl

    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        number = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise BadCredential(
            f"{path} cannot be changed: {error.strerror or error}",
            remedy="Check the rights of its directory.",
        ) from None
    try:
        fcntl.flock(number, fcntl.LOCK_EX)
        yield
    finally:
        os.close(number)


def _text_of(broker: str, login: Login) -> str:
    lines = [f"[{_quoted(broker)}]", f"token = {_quoted(login.token.reveal())}"]
    if login.expires_at_s is not None:
        lines.append(f"expires_at_s = {int(login.expires_at_s)}")
    if login.renewal is not None:
        lines += [
            f"token_endpoint = {_quoted(login.renewal.token_endpoint)}",
            f"client_id = {_quoted(login.renewal.client_id)}",
            f"refresh_token = {_quoted(login.renewal.refresh_token.reveal())}",
        ]
    return "\n".join(lines) + "\n\n"


def _quoted(text: str) -> str:
    """A basic string of TOML; what is stored is printable ASCII."""
    if not (text.isascii() and text.isprintable()):
        raise BadCredential(
            "what the issuer gave has characters that cannot be stored",
            remedy="Ask whoever runs the issuer.",
        )
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _bad_file(path: str, problem: str) -> BadCredential:
    return BadCredential(
        f"{_WHAT} {path} {problem}", remedy="Remove it, and sign in again with `tocsin login`."
    )
