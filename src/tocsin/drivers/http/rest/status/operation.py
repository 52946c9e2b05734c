"""For those who run a broker: health, metrics, the API's description, what errors mean, a page."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from tocsin.drivers.http.rest.context import RestContext
from tocsin.drivers.http.rest.endpoint import (
    DESCRIPTION,
    Endpoint,
    Open,
    manages,
    reads,
    session_in,
)
from tocsin.drivers.http.rest.events.views import clock_info
from tocsin.drivers.http.rest.responses import answer
from tocsin.drivers.http.rest.status.metrics import metrics_page
from tocsin.drivers.http.rest.status.page import POLICY, status_page
from tocsin.errors import NoSuchPath, catalogue
from tocsin.wire.api.openapi.asyncapi import asynchronous
from tocsin.wire.api.openapi.document import description
from tocsin.wire.api.openapi.page import page as documentation_page
from tocsin.wire.api.views import HealthInfo

if TYPE_CHECKING:
    from tocsin.drivers.http.server import HttpServer


def operation_routes(context: RestContext, server: HttpServer) -> list[Endpoint]:
    async def live(request: Request) -> Response:
        health = context.health()
        info = HealthInfo(health.live, [] if health.live else health.reasons)
        return answer(info, 200 if health.live else 503)

    async def ready(request: Request) -> Response:
        health = context.health()
        return answer(HealthInfo(health.ready, health.reasons), 200 if health.ready else 503)

    async def show_clock(request: Request) -> Response:
        context.clock.look()
        clock = context.port.clock_status(session_in(request))
        return answer(clock_info(clock, context.port.runtime.now_ns()))

    async def accept_clock(request: Request) -> Response:
        clock = await context.clock.accept(session_in(request))
        return answer(clock_info(clock, context.port.runtime.now_ns()))

    async def scrape(request: Request) -> Response:
        accepted = request.headers.get("accept", "")
        body, content_type = metrics_page(context, server, session_in(request), accepted)
        return Response(body, headers={"content-type": content_type})

    async def describe_events(request: Request) -> Response:
        tls = context.settings.http.scheme == "https"
        body = msgspec.json.encode(asynchronous(context.addresses.http, tls=tls))
        return Response(body, media_type="application/json")

    async def explain(request: Request) -> Response:
        code = request.path_params["code"]
        error = catalogue().get(code)
        if error is None:
            raise NoSuchPath(
                f"there is no error {code[:16]!r}", remedy="`tocsin explain` lists them."
            )
        words = inspect.cleandoc(error.__doc__ or "")
        return PlainTextResponse(f"{code} {error.__name__} (HTTP {error.http_status})\n\n{words}\n")

    async def page(request: Request) -> Response:
        headers = {"content-security-policy": POLICY, "cache-control": "no-store"}
        return HTMLResponse(status_page(context, session_in(request)), headers=headers)

    return [
        Endpoint("GET", "/", page, reads("status")),
        Endpoint("GET", "/livez", live, Open("an orchestrator asks, which has no credential")),
        Endpoint("GET", "/readyz", ready, Open("an orchestrator asks, which has no credential")),
        Endpoint("GET", "/clock", show_clock, reads("clock")),
        Endpoint("POST", "/clock/accept", accept_clock, manages("clock")),
        Endpoint("GET", "/metrics", scrape, reads("status")),
        *_description_routes(),
        Endpoint("GET", "/asyncapi.json", describe_events, DESCRIPTION),
        Endpoint("GET", "/errors/{code}", explain, DESCRIPTION),
    ]


def _description_routes() -> list[Endpoint]:
    """The API described, for programs and for people."""
    document = description()
    openapi, documentation = msgspec.json.encode(document), documentation_page(document)

    async def describe(request: Request) -> Response:
        return Response(openapi, media_type="application/json")

    async def show_docs(request: Request) -> Response:
        headers = {"content-security-policy": POLICY, "x-content-type-options": "nosniff"}
        return HTMLResponse(documentation, headers=headers)

    return [
        Endpoint("GET", "/docs", show_docs, DESCRIPTION),
        Endpoint("GET", "/openapi.json", describe, DESCRIPTION),
    ]
