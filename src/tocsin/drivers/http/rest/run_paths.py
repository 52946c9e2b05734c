"""Paths with names in them: a slash that was sent as %2F is part of a name, and ends none.

So `/runs/r1/events` are the events of the run r1, and `/runs/r1%2Fevents` is a run of that name.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import unquote_to_bytes

from starlette.routing import Match, Route
from starlette.types import Scope

# It stands for a slash while a way is looked for. No path that was decoded has it.
_SLASH: Final = "\udc2f"


class NamedRoute(Route):
    """A route whose parameters may have slashes."""

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
