"""Resources, registered and found by HTTP."""

from __future__ import annotations

from typing import Any

from served import Served


def register(broker: Served, **members: object) -> Any:
    status, answer = broker.call("POST", "/resources", members)
    assert status in (200, 201), answer
    return answer


def find(broker: Served, request: str, **members: object) -> Any:
    status, answer = broker.call("POST", "/discoveries", {"request": request, **members})
    assert status in (200, 201), answer
    return answer
