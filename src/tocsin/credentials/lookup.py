"""Where a client's credentials are found: arguments, then the environment, then the stored login.

Whoever names a certificate means to be who it says. So it is shown alone, unless a token comes from
the same place or an earlier one: to the broker a token would count more.

The flags of a command (`--token-file`, `--client-cert`, `--client-key`) are in its environment by
the time that anything looks, so that they hold for each protocol.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from tocsin.errors import BadCredential

if TYPE_CHECKING:
    from tocsin.credentials.secret import Secret
    from tocsin.credentials.stored import Login
    from tocsin.credentials.token_file import GivenToken, TokenFile

# Whatever a token or a file needs is loaded when there is one: `tocsin pub` starts sooner without.

TOKEN_VARIABLE: Final = "TOCSIN_TOKEN"
TOKEN_FILE_VARIABLE: Final = "TOCSIN_TOKEN_FILE"
CLIENT_CERT_VARIABLE: Final = "TOCSIN_CLIENT_CERT"
CLIENT_KEY_VARIABLE: Final = "TOCSIN_CLIENT_KEY"
INSECURE_VARIABLE: Final = "TOCSIN_INSECURE_TOKEN"
FILE_NAME: Final = "credentials.toml"
VARIABLES: Final = (
    TOKEN_VARIABLE,
    TOKEN_FILE_VARIABLE,
    CLIENT_CERT_VARIABLE,
    CLIENT_KEY_VARIABLE,
    INSECURE_VARIABLE,
)


class Origin(NamedTuple):
    """Whom a token belongs to: a path behind it makes no other broker."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host.lower()}:{self.port}"


def stored_path() -> str:
    """$XDG_CONFIG_HOME/tocsin/credentials.toml, or the same under ~/.config."""
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(home, "tocsin", FILE_NAME)


class ClientCertificate(NamedTuple):
    """PEM files; without a key of its own the first holds both."""

    certificate: str
    key: str | None


class Credentials:
    """What this process shows to one broker. Looked up when it is made, read when it is used."""

    __slots__ = ("_insecure", "_logins", "_stamp", "_stored", "_token", "certificate", "origin")

    def __init__(
        self,
        origin: Origin,
        *,
        token: str | None = None,
        token_file: str | None = None,
        client_certificate: str | None = None,
        client_key: str | None = None,
        insecure_token: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        given = os.environ if environment is None else environment
        self.origin = origin
        named = {} if client_certificate else given  # a token beside a certificate of its place
        self._token = _token_source(token, token_file, named)
        self._stored = stored_path()
        self._stamp: tuple[int, int, int] | None = None
        self._logins: dict[str, Login] = {}
        self._insecure = insecure_token or given.get(INSECURE_VARIABLE) == "1"
        self.certificate = client_certificate_of(client_certificate, client_key, given)

    def __repr__(self) -> str:
        return f"<credentials for {self.origin}>"

    def token(self) -> Secret | None:
        """The token to send; None if there is none. BadCredential if it may not be sent there."""
        found = self._found()
        if found is not None:
            self._must_be_secure()
        return found

    def hidden(self) -> Secret | None:
        """The token, sent or not, for who has to leave it out of what is sent besides."""
        try:
            return self._found()
        except BadCredential:
            return None

    def _found(self) -> Secret | None:
        source = self._token
        if source is not None:
            return source.read()
        login = self.login()
        return None if login is None else login.token

    def login(self) -> Login | None:
        """The stored login for this broker, if that is what is used."""
        if self._token is not None or self.certificate is not None:
            return None
        if not os.path.exists(self._stored):
            return None
        from tocsin.credentials.files import stamp_at
        from tocsin.credentials.stored import read_logins

        if stamp_at(self._stored) != self._stamp:
            self._logins, self._stamp = read_logins(self._stored)
        return self._logins.get(str(self.origin))

    def _must_be_secure(self) -> None:
        if self.origin.scheme == "https" or self._insecure or is_loopback(self.origin.host):
            return
        raise BadCredential(
            f"the token is not sent to {self.origin}: without TLS everybody on the way can read it",
            remedy=f"Write https://, or set {INSECURE_VARIABLE}=1 if nobody else is on that "
            "network.",
        )


def _token_source(
    token: str | None, token_file: str | None, environment: Mapping[str, str]
) -> GivenToken | TokenFile | None:
    text, path = token, token_file
    if text is None and not path:
        text = environment.get(TOKEN_VARIABLE) or None
        path = environment.get(TOKEN_FILE_VARIABLE) if text is None else None
    if text is not None:
        from tocsin.credentials.token_file import GivenToken

        return GivenToken(text, TOKEN_VARIABLE if token is None else "the argument token")
    if path:
        from tocsin.credentials.token_file import token_file_at

        return token_file_at(path)
    return None


def client_certificate_of(
    certificate: str | None, key: str | None, environment: Mapping[str, str]
) -> ClientCertificate | None:
    """The certificate to show, of the arguments or of the environment; its key is checked."""
    if not certificate:
        if key:
            raise _key_alone()
        certificate, key = (
            environment.get(CLIENT_CERT_VARIABLE),
            environment.get(CLIENT_KEY_VARIABLE),
        )
    if not certificate:
        if key:
            raise _key_alone()
        return None
    from tocsin.credentials.files import check_private

    check_private(key or certificate, "the private key")
    return ClientCertificate(certificate, key or None)


def _key_alone() -> BadCredential:
    return BadCredential(
        "there is a private key, and no certificate for it",
        remedy=f"Name both: --client-cert and --client-key, {CLIENT_CERT_VARIABLE} and "
        f"{CLIENT_KEY_VARIABLE}, or client_certificate= and client_key= in Python.",
    )


def is_loopback(host: str) -> bool:
    """True if nobody on a network is on the way there."""
    if host in ("localhost", "::1"):
        return True
    parts = host.split(".")
    # Not by its beginning alone: 127.example.org is somewhere else.
    return len(parts) == 4 and parts[0] == "127" and all(part.isdecimal() for part in parts)
