"""What went through an outbox, as a test looks at it."""

from __future__ import annotations

import time

from tracked import PATIENCE_S

from served import Served
from tocsin.client.blackboard import HttpLink, Message

NOBODY = "http://127.0.0.1:9"


def reported(run: str, number: int) -> Message:
    pairs = {"RunId": run, "ActivityId": str(number), "ActivityExecuting": "now"}
    return Message(pairs, id=f"{run}/{number}")


def arrived(broker: Served, run: str, count: int) -> list[str]:
    """The activities of a run that the broker's log has, as often as it has them."""
    came: list[str] = []
    deadline = time.monotonic() + PATIENCE_S
    with HttpLink(broker.url).subscribe(["Event", "Identity"], after=0) as subscription:
        # A little longer than needed, to see what comes twice.
        while time.monotonic() < deadline:
            page = subscription.take(0.3)
            came += [m.pairs.get("ActivityId", "") for _, m in page if m.pairs.get("RunId") == run]
            if len(came) >= count and not page:
                break
    return [each for each in came if each]
