"""`/login`: a person signs in with a token in a browser, which then sends it as a cookie.

The cookie is for this broker alone: no script can read it (HttpOnly) and no other site can have it
sent (SameSite=Strict, and `guard.py`).
"""

from __future__ import annotations

from html import escape
from typing import Final
from urllib.parse import parse_qs, quote, urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from tocsin.access.sign_in.guarded_sign_in import GuardedSignIn
from tocsin.drivers.http.rest.endpoint import Endpoint, Open, session_in
from tocsin.drivers.http.session import COOKIE
from tocsin.errors import NotAllowed, NotSignedIn
from tocsin.event.instant import NS_PER_S
from tocsin.wire.api.query import Query

BODY_BYTES_MAX: Final = 16 << 10
_OPEN: Final = Open("who signs in has not signed in yet")
_STYLE: Final = (
    ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:28rem;"
    "margin:4rem auto;padding:0 1rem}input{width:100%;box-sizing:border-box;padding:.5rem;"
    "font:14px ui-monospace,monospace}button{margin-top:1rem;padding:.5rem 1.25rem;font:inherit}"
    "p.wrong{border-left:.25rem solid #c33;padding-left:.75rem}"
)
POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'"
)
_HEADERS: Final = {"content-security-policy": POLICY, "cache-control": "no-store"}


def sign_in_routes(sign_in: GuardedSignIn | None, *, is_secure: bool) -> list[Endpoint]:
    """`is_secure`: the listener speaks TLS, and the cookie is sent over nothing else."""

    async def show(request: Request) -> Response:
        query = Query.parse(request.scope["query_string"], ("next",))
        return HTMLResponse(_page(_own_path(query.text("next"))), headers=_HEADERS)

    async def enter(request: Request) -> Response:
        fields = parse_qs((await request.body())[:BODY_BYTES_MAX].decode(errors="replace"))
        target = _own_path(fields.get("next", [""])[0])
        token = fields.get("token", [""])[0].strip()
        if sign_in is None:
            return RedirectResponse(target, 303, _HEADERS)
        try:
            _, credential = sign_in.by_token(token, session_in(request))
        except NotSignedIn as error:
            return HTMLResponse(_page(target, error), error.http_status, _HEADERS)
        answer = RedirectResponse(target, 303, _HEADERS)
        ends_ns = credential.expires_ns
        age_s = None if ends_ns is None else max(1, (ends_ns - sign_in.now_ns()) // NS_PER_S)
        answer.set_cookie(
            COOKIE, token, max_age=age_s, httponly=True, samesite="strict", secure=is_secure
        )
        return answer

    async def leave(request: Request) -> Response:
        answer = RedirectResponse("/login", 303, _HEADERS)
        answer.delete_cookie(COOKIE, httponly=True, samesite="strict", secure=is_secure)
        return answer

    return [
        Endpoint("GET", "/login", show, _OPEN),
        Endpoint("POST", "/login", enter, _OPEN),
        Endpoint("POST", "/logout", leave, Open("it makes the browser forget")),
    ]


def sign_in_first(request: Request, error: NotAllowed) -> Response | None:
    """For a person in a browser: to the page where one signs in, and back."""
    accepts = request.headers.get("accept", "")
    if isinstance(error, NotSignedIn) and request.method == "GET" and "text/html" in accepts:
        path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"/login?next={quote(path, safe='')}", 303, _HEADERS)
    return None


def _own_path(wanted: str | None) -> str:
    """A path of this broker, whatever somebody wrote into the link."""
    text = wanted or "/"
    parts = urlsplit(text)
    is_own = text.startswith("/") and not text.startswith(("//", "/\\"))
    return text if is_own and not (parts.scheme or parts.netloc) and text.isprintable() else "/"


def _page(target: str, error: NotSignedIn | None = None) -> str:
    wrong = ""
    if error is not None:
        wrong = f'<p class="wrong" role="alert">{escape(error.problem.capitalize())}.</p>'
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Sign in to Tocsin</title><style>{_STYLE}</style></head><body>"
        f'<h1>Sign in</h1>{wrong}<form method="post" action="/login">'
        '<p><label for="token">Token</label>'
        '<input id="token" name="token" type="password" autocomplete="current-password" '
        "required autofocus></p>"
        f'<input type="hidden" name="next" value="{escape(target)}">'
        "<button>Sign in</button></form>"
        "<p>The operator of this broker gives tokens, or <code>tocsin access token</code> makes "
        "one.</p></body></html>"
    )
