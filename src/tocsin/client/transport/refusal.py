"""What a broker answers, as a value or as the error that its words describe."""

from __future__ import annotations

import json
from typing import Any, NamedTuple, TypeVar

from tocsin.errors import BrokerRefused

DETAIL_CHARS_MAX = 2_000

T = TypeVar("T")


class Response(NamedTuple):
    """A broker's whole answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    def value(self) -> Any:
        """The JSON in a good answer; raises what a bad one says."""
        if self.status >= 300:
            raise refusal(self.status, self.body)
        if not self.body:
            return None
        try:
            return json.loads(self.body)
        except ValueError:
            raise refusal(self.status, self.body) from None

    def read(self, kind: type[T]) -> T:
        """A good answer as this type; raises what a bad one says."""
        import msgspec  # here: without it `tocsin pub` starts sooner

        if self.status >= 300:
            raise refusal(self.status, self.body)
        try:
            return msgspec.json.decode(self.body, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise refusal(self.status, self.body) from None


def refusal(status: int, body: bytes) -> BrokerRefused:
    """The error in an RFC 9457 problem, or the best that can be said without one."""
    try:
        problem = json.loads(body)
    except ValueError:
        problem = None
    if not isinstance(problem, dict) or "code" not in problem:
        excerpt = body[:200].decode("utf-8", "replace").strip()
        return BrokerRefused(
            f"the answer was HTTP {status}" + (f": {excerpt}" if excerpt else ""),
            remedy="Check that --broker names a Tocsin broker and not another service.",
            status=status,
        )
    return BrokerRefused(
        str(problem.get("detail") or problem.get("title") or "refused")[:DETAIL_CHARS_MAX],
        remedy=str(problem.get("remedy") or "")[:DETAIL_CHARS_MAX],
        status=status,
        broker_code=str(problem["code"])[:16],
        pointed=str(problem.get("pointed") or "")[:DETAIL_CHARS_MAX],
    )
