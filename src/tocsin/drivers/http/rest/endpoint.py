"""Endpoint: one method of one path, who answers it, and what the caller must be allowed to do.

Every REST endpoint is declared by one of these and becomes a route in `routes_of` alone. So none
can be served whose declaration does not say how access to it is decided.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope

from tocsin.access.decision import Action
from tocsin.access.session import Session
from tocsin.broker.port import BrokerPort
from tocsin.drivers.http.session import SCOPE_KEY

Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Asks:
    """The caller needs this right, and is asked for it before the handler is called.

    A resource may hold parameters of the path in braces, as in `run/{id}`.
    """

    action: Action
    resources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ByPort:
    """The calls of the port that the handler makes decide, which know topics, filters and ids."""


@dataclass(frozen=True, slots=True)
class Open:
    """Anybody may, for this reason."""

    reason: str


Access = Asks | ByPort | Open

BY_PORT: Final = ByPort()
DESCRIPTION: Final = Open("it describes the interface, the same for everybody")


def reads(*resources: str) -> Asks:
    """Whoever may read all of these."""
    return Asks(Action.READ, resources)


def manages(resource: str) -> Asks:
    """Whoever may manage this."""
    return Asks(Action.MANAGE, (resource,))


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method of one path. GET stands for HEAD too."""

    method: str
    path: str
    handler: Handler
    access: Access
    has_names: bool = False  # its parameters may have slashes, sent as %2F


def session_in(request: Request) -> Session:
    """Whose request it is."""
    session: Session = request.scope[SCOPE_KEY]
    return session


def routes_of(endpoints: Sequence[Endpoint], port: BrokerPort) -> list[Route]:
    """Routes that call a handler only when the caller may."""
    return [
        (NamedRoute if each.has_names else Route)(
            each.path, _checked(each, port), methods=[each.method]
        )
        for each in endpoints
    ]


def _checked(endpoint: Endpoint, port: BrokerPort) -> Handler:
    handle, access = endpoint.handler, endpoint.access
    if not isinstance(access, Asks):
        return handle

    async def checked(request: Request) -> Response:
        for resource in access.resources:
            port.check(session_in(request), access.action, resource.format(**request.path_params))
        return await handle(request)

    return checked


# It stands for a slash while a route is looked for. No path that was decoded has it.
_SLASH: Final = "\udc2f"


class NamedRoute(Route):
    """A route whose parameters may have slashes: one that was sent as %2F is part of a name.

    So `/runs/r1/events` are the events of the run r1, and `/runs/r1%2Fevents` is a run.
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        raw_path: bytes = scope.get("raw_path") or b""
        if b"%2f" not in raw_path.lower():
            return super().matches(scope)
        match, found = super().matches({**scope, "path": _decoded(raw_path)})
        params: dict[str, Any] = found.get("path_params", {})
        whole = {name: value.replace(_SLASH, "/") for name, value in params.items()}
        return match, {**found, "path_params": whole} if found else found


def _decoded(raw_path: bytes) -> str:
    pieces = raw_path.replace(b"%2f", b"%2F").split(b"%2F")
    return _SLASH.join(unquote_to_bytes(each).decode(errors="replace") for each in pieces)
