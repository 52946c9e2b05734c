"""Who sent a request: the session that goes along in every call of the port."""

from __future__ import annotations

from starlette.requests import Request

from tocsin.access.session import Session, anonymous


def session_of(request: Request) -> Session:
    client = request.client
    return anonymous("http", "" if client is None else f"{client.host}:{client.port}")
