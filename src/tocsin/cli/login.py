"""What `tocsin login` does: has a token checked by the broker, and keeps it for this user."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from typing import Any

from tocsin.cli.render import fields, say, show_json
from tocsin.cli.rest import Rest
from tocsin.client.transport.address import Address, broker_address
from tocsin.credentials.lookup import (
    TOKEN_FILE_VARIABLE,
    TOKEN_VARIABLE,
    Credentials,
    stored_path,
)
from tocsin.credentials.secret import TOKEN_CHARS_MAX, Secret, read_token
from tocsin.credentials.stored import Login, read_logins, store_login
from tocsin.credentials.token_file import TokenFile
from tocsin.errors import BadSetting, NoSuchCredential

WHOAMI = "/access/whoami"


def sign_in(arguments: Namespace) -> int:
    """Have the token, or the issuer's, checked by the broker, and keep it."""
    address = broker_address(arguments.broker)
    login = _issuers_login(arguments) if arguments.issuer else Login(_token(arguments, address))
    origin = address.origin
    checked = address._replace(credentials=Credentials(origin, token=login.token.reveal()))
    identity = _identity(checked)
    store_login(stored_path(), str(origin), login)
    if arguments.json:
        show_json({"broker": str(origin), **identity})
    else:
        say(f"signed in at {origin} as {_described(identity)}")
    hiding = [name for name in (TOKEN_VARIABLE, TOKEN_FILE_VARIABLE) if _in_shell(arguments, name)]
    if hiding:
        say(f"{hiding[0]} is set, and comes before this login; unset it to use the login")
    return 0


def show_identity(arguments: Namespace) -> int:
    """Who the broker says one is."""
    address = broker_address(arguments.broker)
    identity = _identity(address)
    shown = {"broker": str(address.origin), **identity, "signed_in_by": _source(address)}
    if arguments.json:
        show_json(shown)
        return 0
    groups = ", ".join(identity.get("groups") or ())
    fields([(name, groups if name == "groups" else value) for name, value in shown.items()])
    return 0


def remove(arguments: Namespace) -> int:
    """Forget the login. The token itself holds on until it is revoked or expires."""
    origin = broker_address(arguments.broker).origin
    path = stored_path()
    if str(origin) not in read_logins(path)[0]:
        raise NoSuchCredential(
            f"there is no login for {origin}", remedy="Name its broker with --broker."
        )
    store_login(path, str(origin), None)
    if arguments.json:
        show_json({"broker": str(origin), "removed": True})
    else:
        say(f"the login for {origin} is forgotten; its token holds until it is revoked or expires")
    return 0


def _identity(address: Address) -> dict[str, Any]:
    with Rest(address) as rest:
        answer: dict[str, Any] = rest.get(WHOAMI)
    return {name: answer.get(name) for name in ("principal", "groups", "expires")}


def _described(identity: dict[str, Any]) -> str:
    groups = ", ".join(identity.get("groups") or ())
    ends = identity.get("expires")
    return (
        f"{identity['principal']}"
        + (f", of {groups}" if groups else "")
        + (f", until {ends}" if ends else "")
    )


def _source(address: Address) -> str:
    """Where the credentials come from, by name."""
    credentials = address.credentials
    assert credentials is not None
    if credentials.token() is None:
        certificate = credentials.certificate
        return "nothing" if certificate is None else certificate.certificate
    if credentials.login() is not None:
        return "tocsin login"
    return os.environ.get(TOKEN_FILE_VARIABLE, "") if _is_file() else TOKEN_VARIABLE


def _is_file() -> bool:
    return not os.environ.get(TOKEN_VARIABLE)


def _in_shell(arguments: Namespace, name: str) -> bool:
    """True if a variable is set by more than the option of this very command."""
    return bool(os.environ.get(name)) and not arguments.token_file


def _token(arguments: Namespace, address: Address) -> Secret:
    if arguments.token_file:
        return TokenFile(arguments.token_file).read()
    if not sys.stdin.isatty():
        return read_token(sys.stdin.readline(TOKEN_CHARS_MAX + 2), "the input")
    from getpass import getpass

    return read_token(getpass(f"Token for {address.origin}: "), "what was typed")


def _issuers_login(arguments: Namespace) -> Login:
    from tocsin.client.transport.openid import Prompt, device_login

    if not arguments.client_id:
        raise BadSetting(
            "--issuer needs --client-id",
            remedy="Give the id that the issuer knows the broker's users by.",
        )

    def show(prompt: Prompt) -> None:
        say(f"Open {prompt.address} on any machine, and sign in with the code {prompt.code}.")

    return device_login(
        arguments.issuer, arguments.client_id, arguments.scope, show, audience=arguments.audience
    )
