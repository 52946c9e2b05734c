"""An OpenID Connect issuer for tests: a real HTTP server with keys that can be changed.

It has the discovery document, the keys, the device authorization of RFC 8628, and a token endpoint
for device codes, refresh tokens and client credentials. What it answers can be replaced, to be an
issuer that is broken or hostile.

    with OpenIdIssuer() as issuer:
        token = issuer.token("alice", groups=["ops"])
        issuer.rotate()
"""

from __future__ import annotations

import base64
import json
import secrets
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from joserfc.jwa import JWS_ALGORITHMS
from joserfc.jwk import ECKey, OKPKey, RSAKey

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
MODELS = {each.name: each for each in JWS_ALGORITHMS}
CURVES = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}


def base64url(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def compact(header: object, payload: object, sign: Callable[[bytes], bytes]) -> str:
    """A token of whatever parts; texts and bytes go in as they are."""
    parts = [
        base64url(each if isinstance(each, bytes) else json.dumps(each).encode())
        for each in (header, payload)
    ]
    signed = ".".join(parts)
    return f"{signed}.{base64url(sign(signed.encode()))}"


@dataclass
class SigningKey:
    """A private key with its name."""

    algorithm: str = "RS256"
    kid: str = field(default_factory=lambda: secrets.token_hex(4))
    key: Any = None

    def __post_init__(self) -> None:
        if self.key is None:
            self.key = new_key(self.algorithm)

    @property
    def public(self) -> dict[str, Any]:
        """As it is published."""
        return self.key.as_dict() | {"kid": self.kid, "use": "sig", "alg": self.algorithm}

    def sign(self, signed: bytes) -> bytes:
        # joserfc warns of the older name.
        name = "Ed25519" if self.algorithm == "EdDSA" else self.algorithm
        return MODELS[name].sign(signed, self.key)

    def token(self, claims: object, **header: object) -> str:
        return compact({"alg": self.algorithm, "kid": self.kid} | header, claims, self.sign)


def new_key(algorithm: str) -> Any:
    if algorithm in CURVES:
        return ECKey.generate_key(CURVES[algorithm], auto_kid=False)
    if algorithm in ("EdDSA", "Ed25519"):
        return OKPKey.generate_key("Ed25519", auto_kid=False)
    return RSAKey.generate_key(2048, auto_kid=False)


@dataclass
class Answer:
    """What the server says instead of what it would."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0  # before the answer
    byte_pause_s: float = 0.0  # between its bytes


@dataclass
class Device:
    """A device that waits for its user."""

    client_id: str
    device_code: str
    user_code: str
    ends_s: float
    scope: str = ""
    user: str | None = None
    claims: dict[str, Any] = field(default_factory=dict)
    denied: bool = False
    asked_s: float = 0.0


class OpenIdIssuer:
    """The server. Everything that it says can be changed while it runs."""

    def __init__(
        self,
        *,
        audience: str = "tocsin",
        algorithm: str = "RS256",
        lifetime_s: float = 300.0,
        interval_s: float = 1.0,
        port: int = 0,
        key: SigningKey | None = None,
        tls: ssl.SSLContext | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        self.audience, self.lifetime_s, self.interval_s = audience, lifetime_s, interval_s
        self.algorithm, self._tls, self._host, self._port = algorithm, tls, host, port
        self.key = key or SigningKey(algorithm)
        self.published = [self.key.public]
        self.answers: dict[str, Answer] = {}  # by path
        self.document: dict[str, Any] = {}  # over what the discovery document says
        self.asked: list[str] = []  # the paths of all requests
        self.devices: dict[str, Device] = {}
        self.refresh_tokens: dict[str, tuple[str, dict[str, Any]]] = {}
        self.clients: dict[str, str] = {}  # secrets of clients that sign in by themselves
        self._lock = threading.Lock()
        self._server: ThreadingHTTPServer | None = None

    # The server

    def start(self) -> Self:
        handler = type("Handler", (_Handler,), {"issuer": self})
        self._server = server = _Server((self._host, self._port), handler)
        self._port = server.server_address[1]
        if self._tls is not None:
            server.socket = self._tls.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """What `iss` says. It stays the same when the server is stopped and started again."""
        host = self._host if self._tls is None else "localhost"
        return f"{'http' if self._tls is None else 'https'}://{host}:{self._port}"

    # Keys and tokens

    def rotate(self, key: SigningKey | None = None, *, keeps_old: bool = False) -> SigningKey:
        """Sign by another key from now on, and publish it."""
        self.key = key or SigningKey(self.algorithm)
        self.published = [*(self.published if keeps_old else []), self.key.public]
        return self.key

    def claims(self, sub: str = "alice", **more: Any) -> dict[str, Any]:
        """Those of an access token; None leaves a claim out."""
        now_s = int(time.time())
        claims = {
            "iss": self.url,
            "sub": sub,
            "aud": self.audience,
            "iat": now_s,
            "exp": now_s + self.lifetime_s,
        }
        return {name: value for name, value in (claims | more).items() if value is not None}

    def token(self, sub: str = "alice", **more: Any) -> str:
        return self.key.token(self.claims(sub, **more), typ="at+jwt")

    # What users do

    def approve(self, user_code: str, user: str = "alice", **claims: Any) -> None:
        """The user signed in at the page of the issuer, and agreed."""
        device = self._device_of(user_code)
        device.claims, device.user = claims, user

    def deny(self, user_code: str) -> None:
        self._device_of(user_code).denied = True

    def expire(self, user_code: str) -> None:
        self._device_of(user_code).ends_s = 0.0

    def _device_of(self, user_code: str) -> Device:
        return next(each for each in self.devices.values() if each.user_code == user_code)

    # Endpoints

    def discovery(self) -> dict[str, Any]:
        url = self.url
        return {
            "issuer": url,
            "jwks_uri": f"{url}/keys",
            "token_endpoint": f"{url}/token",
            "device_authorization_endpoint": f"{url}/device_authorization",
            "authorization_endpoint": f"{url}/authorize",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [self.algorithm],
            "grant_types_supported": [DEVICE_GRANT, "refresh_token", "client_credentials"],
        } | self.document

    def authorize_device(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        if "client_id" not in form:
            return 400, {"error": "invalid_request"}
        device = Device(
            client_id=form["client_id"],
            device_code=secrets.token_urlsafe(24),
            user_code=f"{secrets.token_hex(2)}-{secrets.token_hex(2)}".upper(),
            ends_s=time.monotonic() + 600,
            scope=form.get("scope", ""),
        )
        self.devices[device.device_code] = device
        page = f"{self.url}/device"
        return 200, {
            "device_code": device.device_code,
            "user_code": device.user_code,
            "verification_uri": page,
            "verification_uri_complete": f"{page}?user_code={device.user_code}",
            "expires_in": 600,
            "interval": self.interval_s,
        }

    def give_token(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        match form.get("grant_type"):
            case grant if grant == DEVICE_GRANT:
                return self._for_device(form)
            case "refresh_token":
                with self._lock:
                    found = self.refresh_tokens.pop(form.get("refresh_token", ""), None)
                return (400, {"error": "invalid_grant"}) if found is None else self._tokens(*found)
            case "client_credentials":
                client = form.get("client_id", "")
                if not client or self.clients.get(client) != form.get("client_secret"):
                    return 401, {"error": "invalid_client"}
                status, tokens = self._tokens(client, {})
                tokens.pop("refresh_token")  # RFC 6749 4.4.3
                return status, tokens
            case _:
                return 400, {"error": "unsupported_grant_type"}

    def _for_device(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        device = self.devices.get(form.get("device_code", ""))
        if device is None or device.client_id != form.get("client_id"):
            return 400, {"error": "invalid_grant"}
        now_s = time.monotonic()
        asked_s, device.asked_s = device.asked_s, now_s
        if device.denied:
            return 400, {"error": "access_denied"}
        if now_s >= device.ends_s:
            return 400, {"error": "expired_token"}
        if device.user is None:
            too_soon = now_s - asked_s < self.interval_s * 0.9
            return 400, {"error": "slow_down" if too_soon else "authorization_pending"}
        del self.devices[device.device_code]  # a code is good for once
        return self._tokens(device.user, device.claims)

    def _tokens(self, user: str, claims: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        refresh = secrets.token_urlsafe(24)
        self.refresh_tokens[refresh] = (user, claims)
        return 200, {
            "access_token": self.token(user, **claims),
            "token_type": "Bearer",
            "expires_in": int(self.lifetime_s),
            "refresh_token": refresh,
        }


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Who asked went away, or did not like the certificate: that is what some tests are for."""


class _Handler(BaseHTTPRequestHandler):
    issuer: OpenIdIssuer

    def do_GET(self) -> None:
        issuer, path = self.issuer, self._path()
        if path == "/.well-known/openid-configuration":
            self._give(200, issuer.discovery())
        elif path == "/keys":
            self._give(200, {"keys": issuer.published})
        else:
            self._give(404, {"error": "not_found"})

    def do_POST(self) -> None:
        issuer, path = self.issuer, self._path()
        length = int(self.headers.get("content-length", "0"))
        fields = parse_qs(self.rfile.read(length).decode())
        form = {name: values[0] for name, values in fields.items()}
        if path == "/device_authorization":
            self._give(*issuer.authorize_device(form))
        elif path == "/token":
            self._give(*issuer.give_token(form))
        else:
            self._give(404, {"error": "not_found"})

    def _path(self) -> str:
        path = urlsplit(self.path).path
        self.issuer.asked.append(path)
        return path

    def _give(self, status: int, value: dict[str, Any]) -> None:
        kind = {"content-type": "application/json", "cache-control": "no-store"}
        answer = self.issuer.answers.get(urlsplit(self.path).path)
        if answer is None:
            answer = Answer(status, json.dumps(value).encode(), kind)
        time.sleep(answer.delay_s)
        self.send_response(answer.status)
        for name, text in answer.headers.items():
            self.send_header(name, text)
        if not {"content-length", "transfer-encoding"} & answer.headers.keys():
            self.send_header("content-length", str(len(answer.body)))
        self.end_headers()
        if not answer.byte_pause_s:
            self.wfile.write(answer.body)
            return
        for byte in answer.body:
            self.wfile.write(bytes([byte]))
            time.sleep(answer.byte_pause_s)

    def log_message(self, *_: object) -> None:
        """Tests need no log of it."""
