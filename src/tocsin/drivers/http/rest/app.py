"""Which path and method leads where, and how every error becomes a problem."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tocsin.drivers.http.asgi import Application
from tocsin.drivers.http.rest.access.audit import audit_routes
from tocsin.drivers.http.rest.access.entities import entity_routes
from tocsin.drivers.http.rest.access.permissions import access_routes
from tocsin.drivers.http.rest.access.sign_in import sign_in_first, sign_in_routes
from tocsin.drivers.http.rest.blackboard import blackboard_routes
from tocsin.drivers.http.rest.context import RestContext
from tocsin.drivers.http.rest.control import control_routes
from tocsin.drivers.http.rest.directory import directory_routes
from tocsin.drivers.http.rest.endpoint import Endpoint, routes_of
from tocsin.drivers.http.rest.events.deadletters import dead_letter_routes
from tocsin.drivers.http.rest.events.events import event_routes
from tocsin.drivers.http.rest.events.ingest import ingest_routes
from tocsin.drivers.http.rest.events.performance import performance_routes
from tocsin.drivers.http.rest.events.subscriptions import box_routes, subscription_routes
from tocsin.drivers.http.rest.overlay import overlay_routes
from tocsin.drivers.http.rest.resources import resource_routes
from tocsin.drivers.http.rest.responses import refusal
from tocsin.drivers.http.rest.runs.routes import run_routes
from tocsin.drivers.http.rest.soap_documents import soap_document_routes
from tocsin.drivers.http.rest.status.operation import operation_routes
from tocsin.drivers.http.rest.status.routes import status_routes
from tocsin.errors import BadMethod, BadRequest, NoSuchPath, NotAllowed, TocsinError
from tocsin.services.soap.paths import is_soap_path

if TYPE_CHECKING:
    from tocsin.drivers.http.server import HttpServer

_PATH_CHARS = 100


def endpoints(context: RestContext, server: HttpServer) -> list[Endpoint]:
    """Everything that is not on the way of an event."""
    port, subscriptions = context.port, context.subscriptions
    return [
        *event_routes(port, context.archiver, server, context.authorities),
        *blackboard_routes(port, context.board, subscriptions, server),
        *run_routes(context.monitor),
        *ingest_routes(port, server.event_limits),
        *subscription_routes(subscriptions, context.addresses, context.links),
        *box_routes(server, subscriptions, context.links),
        *dead_letter_routes(port),
        *directory_routes(context.directory),
        *resource_routes(context.discovery, server),
        *control_routes(context.control),
        *overlay_routes(context.links),
        *access_routes(port, context.access.service),
        *audit_routes(port, context.access),
        *entity_routes(context.entities),
        *sign_in_routes(
            context.access.sign_in, is_secure=bool(context.settings.http.tls_certificate)
        ),
        *performance_routes(context.performance),
        *soap_document_routes(port, context.topics, context.addresses),
        *operation_routes(context, server),
        *status_routes(context, server),
    ]


def application(context: RestContext, server: HttpServer) -> Application:
    """Answers at every endpoint."""
    routes = routes_of(endpoints(context, server), context.port)
    app = Starlette(
        routes=routes,
        exception_handlers={
            TocsinError: _refused,  # type: ignore[dict-item]  # typed for any Exception
            HTTPException: _unrouted(routes),  # type: ignore[dict-item]
        },
    )
    app.router.redirect_slashes = False
    return app


async def _refused(request: Request, error: TocsinError) -> Response:
    if isinstance(error, NotAllowed) and (page := sign_in_first(request, error)) is not None:
        return page
    return refusal(error)


def _unrouted(routes: list[Route]) -> object:
    """What to say where the router found no way."""

    async def handle(request: Request, error: HTTPException) -> Response:
        path: str = request.scope["path"]
        if error.status_code == 405:
            allowed = sorted(set(_methods_at(routes, path)))
            return refusal(
                BadMethod(
                    f"{path[:_PATH_CHARS]} does not take {request.method}",
                    remedy=f"It takes {', '.join(allowed)}.",
                ),
                headers={"allow": ", ".join(allowed)},
            )
        if error.status_code == 404:
            return refusal(
                NoSuchPath(f"there is nothing at {path[:_PATH_CHARS]}", remedy=_hint(routes, path))
            )
        return refusal(BadRequest(str(error.detail), remedy="See /openapi.json."))

    return handle


def _methods_at(routes: list[Route], path: str) -> list[str]:
    found = [
        method for route in routes if route.path_regex.match(path) for method in route.methods or ()
    ]
    return [*found, "POST"] if is_soap_path(path) else found


def _hint(routes: list[Route], path: str) -> str:
    if len(path) > 1 and path.endswith("/"):
        return f"Try {path.rstrip('/')[:_PATH_CHARS]}, without the slash at the end."
    near = difflib.get_close_matches(path[:_PATH_CHARS], {route.path for route in routes}, n=1)
    return f"Did you mean {near[0]}?" if near else "/openapi.json lists what there is."
