"""Answers of the REST application: JSON from types, and problems from errors."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from starlette.responses import Response

from tocsin.errors import TocsinError
from tocsin.wire.api.problem import MEDIA_TYPE, problem_json, retry_after_s

_encode = msgspec.json.Encoder().encode


def answer(
    shown: msgspec.Struct, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """The type as JSON. Nothing here is worth a cache's while."""
    headers = {"cache-control": "no-store", **(headers or {})}
    return Response(_encode(shown), status, headers, "application/json")


def refusal(error: TocsinError, headers: Mapping[str, str] | None = None) -> Response:
    """The error as a problem."""
    all_headers = dict(headers or {})
    wait_s = retry_after_s(error)
    if wait_s is not None:
        all_headers["retry-after"] = str(wait_s)
    return Response(problem_json(error), error.http_status, all_headers, MEDIA_TYPE)
