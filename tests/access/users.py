"""An operator and her users at a broker that asks who they are."""

from __future__ import annotations

import time
from typing import Any

from served import Served

REQUIRED = {"TOCSIN_AUTH__MODE": "required"}
EVENT = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "topic": "lead/ohio"}
CLOUD_EVENT = {"content-type": "application/cloudevents+json"}


def bearer(text: str) -> dict[str, str]:
    return {"authorization": f"Bearer {text}"}


def admin(running: Served) -> dict[str, str]:
    return bearer((running.directory / "admin.token").read_text().strip())


def token(running: Served, principal: str, *rights: object, **also: object) -> dict[str, Any]:
    asked = {"principal": principal, **({"rights": list(rights)} if rights else {}), **also}
    status, made = running.call("POST", "/access/tokens", asked, admin(running))
    assert status == 201, made
    return made  # type: ignore[no-any-return]


def publish(running: Served, headers: dict[str, str], topic: str = "lead/ohio") -> tuple[int, Any]:
    event = {**EVENT, "id": str(time.time_ns()), "topic": topic}
    return running.call("POST", "/events", event, {**CLOUD_EVENT, **headers})
