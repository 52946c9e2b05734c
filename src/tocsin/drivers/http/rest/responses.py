"""Answers of the REST application: JSON from types, and problems from errors."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tocsin.errors import ShuttingDown, TocsinError
from tocsin.wire.api.problem import MEDIA_TYPE, problem_json, retry_after_s

if TYPE_CHECKING:
    from tocsin.drivers.http.server import HttpServer

_encode = msgspec.json.Encoder().encode

View = TypeVar("View", bound=msgspec.Struct)


def shown(kind: type[View], *sources: object, **own: object) -> View:
    """What the API shows of these: `own` fields, and the rest as the first source that has them."""
    for source in sources:
        names = (field.name for field in msgspec.structs.fields(kind))
        own = {name: getattr(source, name) for name in names if hasattr(source, name)} | own
    return msgspec.convert(own, kind, from_attributes=True)


def answer(
    view: msgspec.Struct, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """The type as JSON. Nothing here is worth a cache's while."""
    headers = {"cache-control": "no-store", **(headers or {})}
    return Response(_encode(view), status, headers, "application/json")


def refusal(error: TocsinError, headers: Mapping[str, str] | None = None) -> Response:
    """The error as a problem."""
    all_headers = dict(headers or {})
    wait_s = retry_after_s(error)
    if wait_s is not None:
        all_headers["retry-after"] = str(wait_s)
    if error.http_status == 401:
        all_headers["www-authenticate"] = 'Bearer realm="tocsin"'
    return Response(problem_json(error), error.http_status, all_headers, MEDIA_TYPE)


async def while_connected(
    request: Request, server: HttpServer, answer: Coroutine[Any, Any, Any]
) -> Any:
    """Wait as long as somebody waits for us, and the broker runs."""
    await request.body()  # so that what is received next is that the client has left
    waiting = asyncio.ensure_future(answer)
    ends = [asyncio.ensure_future(request.receive()), asyncio.ensure_future(server.closing.wait())]
    try:
        await asyncio.wait([waiting, *ends], return_when=asyncio.FIRST_COMPLETED)
        if waiting.done():
            return waiting.result()
        raise ShuttingDown("the request was cancelled", remedy="Ask again.")
    finally:
        for task in (waiting, *ends):
            task.cancel()
