"""Logins by an OpenID issuer: the device flow (RFC 8628), and tokens renewed before they expire."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, NoReturn
from urllib.parse import quote, urlencode

from tocsin.client.transport.address import Address, locate
from tocsin.client.transport.http1 import MessageReader, request_bytes
from tocsin.client.transport.refusal import Response
from tocsin.client.transport.runtime import (
    READ_BYTES,
    TIMEOUT_S_MIN,
    cannot_reach,
    connect,
    lost_connection,
)
from tocsin.credentials.lookup import Credentials, is_loopback, stored_path
from tocsin.credentials.secret import Secret, read_token
from tocsin.credentials.stored import (
    Login,
    Renewal,
    locked,
    put_login,
    read_logins,
)
from tocsin.errors import BadCredential, BadRequest, CannotReachBroker, NotSignedIn, TocsinError

CONFIGURATION_PATH: Final = "/.well-known/openid-configuration"
DEVICE_GRANT: Final = "urn:ietf:params:oauth:grant-type:device_code"
EARLY_S: Final = 30.0  # before its end, as in renewal.py
ANSWER_S: Final = 20.0
ANSWER_BYTES_MAX: Final = 1 << 20
INTERVAL_S: Final = 5.0  # RFC 8628, 3.2, where the issuer says none
INTERVAL_S_MAX: Final = 60.0
SLOWER_S: Final = 5.0  # RFC 8628, 3.5
EXPIRES_S_MAX: Final = 1_800.0  # nobody waits longer at a terminal
WORDS_CHARS_MAX: Final = 200


class Prompt(NamedTuple):
    """What a person has to do elsewhere: open the address, and type the code if it is asked for."""

    address: str
    code: str


def device_login(
    issuer: str,
    client_id: str,
    scope: str,
    show: Callable[[Prompt], None],
    *,
    audience: str | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Login:
    """Signed in by a person in a browser, on whatever machine that runs."""
    issuer = issuer.rstrip("/")
    described = _json(issuer, _request("GET", issuer + CONFIGURATION_PATH))
    if described.get("issuer", "").rstrip("/") != issuer:
        raise _no_issuer(issuer, "says that it is another issuer")
    device, tokens = (
        described.get(name) for name in ("device_authorization_endpoint", "token_endpoint")
    )
    if not isinstance(device, str) or not isinstance(tokens, str):
        raise _no_issuer(issuer, "signs nobody in by the device flow (RFC 8628)")
    wish = {"client_id": client_id, "scope": scope}
    if audience:
        wish["audience"] = audience
    asked = _json(issuer, _request("POST", device, wish))
    code, uri = asked.get("device_code"), asked.get("verification_uri")
    if not isinstance(code, str) or not isinstance(uri, str):
        raise _no_issuer(issuer, "gave no code to sign in with")
    show(Prompt(str(asked.get("verification_uri_complete") or uri), str(asked.get("user_code"))))
    form = {"grant_type": DEVICE_GRANT, "device_code": code, "client_id": client_id}
    return _login_of(issuer, _poll(issuer, tokens, form, asked, sleep), tokens, client_id, None)


def _poll(
    issuer: str,
    endpoint: str,
    form: Mapping[str, str],
    asked: Mapping[str, Any],
    sleep: Callable[[float], None],
) -> dict[str, Any]:
    """The issuer's answer, once the person has agreed."""
    pause_s = min(_seconds(asked.get("interval"), INTERVAL_S), INTERVAL_S_MAX)
    left_s = min(_seconds(asked.get("expires_in"), EXPIRES_S_MAX), EXPIRES_S_MAX)
    while left_s > 0:
        sleep(pause_s)
        left_s -= pause_s
        try:
            response = _request("POST", endpoint, form)
        except CannotReachBroker:
            pause_s = min(pause_s * 2, INTERVAL_S_MAX)
            continue
        error = _error_of(response)
        if error is None:
            return _json(issuer, response)
        if error == "slow_down":
            pause_s = min(pause_s + SLOWER_S, INTERVAL_S_MAX)
        elif error != "authorization_pending":
            _refuse(issuer, response)
    raise NotSignedIn(f"nobody signed in at {issuer} in time", remedy="Run `tocsin login` again.")


def renew(credentials: Credentials) -> None:
    """Exchange the access token, unless another process has; NotSignedIn if that is over."""
    path, broker = stored_path(), str(credentials.origin)
    with locked(path):
        login = read_logins(path)[0].get(broker)
        if login is None or login.renewal is None or login.expires_at_s is None:
            return
        left_s = login.expires_at_s - time.time()
        if left_s > EARLY_S:
            return
        endpoint, client_id, refresh_token = login.renewal
        form = {
            "grant_type": "refresh_token",
            "refresh_token": refresh_token.reveal(),
            "client_id": client_id,
        }
        try:
            response = _request("POST", endpoint, form)
        except CannotReachBroker:
            if left_s > 0:
                return  # it holds still: the next request tries again
            raise
        if _error_of(response) is not None:
            _refuse(endpoint, response)
        answer = _json(endpoint, response)
        put_login(path, broker, _login_of(endpoint, answer, endpoint, client_id, login.renewal))


def _login_of(
    issuer: str,
    answer: Mapping[str, Any],
    endpoint: str,
    client_id: str,
    before: Renewal | None,
) -> Login:
    token, refresh = answer.get("access_token"), answer.get("refresh_token")
    if not isinstance(token, str):
        raise _no_issuer(issuer, "gave no access token")
    renewal = before
    if isinstance(refresh, str):
        renewal = Renewal(endpoint, client_id, Secret(refresh))
    lasts_s = answer.get("expires_in")
    expires_at_s = time.time() + _seconds(lasts_s, 0.0) if lasts_s is not None else None
    return Login(read_token(token, f"the answer of {issuer}"), expires_at_s, renewal)


def _request(method: str, url: str, form: Mapping[str, str] | None = None) -> Response:
    address, target = locate(url)
    if not address.tls and not is_loopback(address.host):
        raise BadCredential(
            f"{url[:WORDS_CHARS_MAX]} is not an https URL: without TLS everybody on the way can "
            "read the tokens",
            remedy="Give the issuer's https URL.",
        )
    body = b"" if form is None else urlencode(form, quote_via=quote).encode()
    headers = [("Accept", "application/json")]
    if form is not None:
        headers.append(("Content-Type", "application/x-www-form-urlencoded"))
    try:
        return _exchange(
            address, request_bytes(address, method, target, body=body, headers=headers)
        )
    except CannotReachBroker as error:
        why = error.problem.partition(": ")[2] or error.problem
        raise CannotReachBroker(
            f"cannot reach the issuer at {address}: {why}",
            remedy="Check its address, and the network.",
        ) from None


def _exchange(address: Address, request: bytes) -> Response:
    """One request on a connection of its own: others renew a token before they send anything."""
    reader, body = MessageReader(response=True), b""
    deadline = time.monotonic() + ANSWER_S
    with connect(address) as opened:
        try:
            opened.settimeout(ANSWER_S)
            opened.sendall(request)
            while not reader.complete and len(body) <= ANSWER_BYTES_MAX:
                opened.settimeout(max(deadline - time.monotonic(), TIMEOUT_S_MIN))
                data = opened.recv(READ_BYTES)
                if not data:
                    break
                body += reader.feed(data)
        except OSError as error:
            raise lost_connection(address, error) from None
        except BadRequest as error:
            raise cannot_reach(address, error.problem) from None
    if not (reader.complete or reader.end()):
        raise cannot_reach(address, "its answer is not whole, or too long")
    return Response(reader.status, reader.headers, body)


def _json(issuer: str, response: Response) -> dict[str, Any]:
    value = _members(response)
    if response.status != 200 or value is None:
        _refuse(issuer, response)
    return value


def _members(response: Response) -> dict[str, Any] | None:
    try:
        value = json.loads(response.body)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _error_of(response: Response) -> str | None:
    """The code of an OAuth error (RFC 6749, 5.2); None of a good answer."""
    if response.status == 200:
        return None
    value = _members(response) or {}
    return str(value.get("error") or f"HTTP {response.status}")[:WORDS_CHARS_MAX]


def _refuse(issuer: str, response: Response) -> NoReturn:
    # Its code and description, and nothing else of it: an answer may hold a token.
    value = _members(response) or {}
    words = value.get("error_description")
    described = f" ({str(words)[:WORDS_CHARS_MAX]})" if words else ""
    raise NotSignedIn(
        f"the issuer at {issuer[:WORDS_CHARS_MAX]} answered "
        f"{_error_of(response) or 'nothing that can be read'}{described}",
        remedy="Sign in again with `tocsin login --issuer URL --client-id ID`.",
    )


def _no_issuer(issuer: str, problem: str) -> TocsinError:
    return BadCredential(
        f"{issuer[:WORDS_CHARS_MAX]} {problem}",
        remedy="Check --issuer; whoever runs it knows its URL and the client's id.",
    )


def _seconds(value: object, otherwise: float) -> float:
    if isinstance(value, int | float) and value >= 0:
        return float(value)
    if isinstance(value, str) and value.isdecimal():
        return float(value)
    return otherwise
