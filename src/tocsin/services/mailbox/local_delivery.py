"""Deliveries to message boxes of this very broker: handed to the dispatcher, not to the network.

The address of such a box is how the world reaches us: through a proxy, with TLS, from outside a
firewall. We need not go out to come in again, and from where we are might not even get through.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tocsin.access.session import internal
from tocsin.broker.delivery.address import parse_address
from tocsin.broker.delivery.outcome import Answered, Failed, Outcome
from tocsin.broker.delivery.soap_messages import RenderCache, envelope, soap_template
from tocsin.broker.effects import Push
from tocsin.broker.runtime import Runtime, Tasks
from tocsin.services.soap.call import Answer, SoapCall
from tocsin.services.soap.paths import parse_path
from tocsin.wire.soap.envelope import content_type

SERVICE: Final = internal("delivery")
Done = Callable[[int, Outcome], None]
"""Called once with the lane and what became of a push."""


def is_own_box(address: str, base: str) -> bool:
    """True if the address is that of a box here, as whoever asks knows us."""
    return address.startswith(f"{base}/") and parse_path(address[len(base) :]).kind == "boxes"


class OwnBoxes:
    """Puts what a subscription asked for into its box."""

    def __init__(self, runtime: Runtime, answer: Answer) -> None:
        self._runtime = runtime
        self._answer = answer
        self._cache = RenderCache()
        self._tasks = Tasks(runtime)

    def send(self, push: Push, done: Done) -> None:
        """Deliver; `done(push.lane, outcome)` is called once, later."""
        self._tasks.spawn(self._send(push, done))

    async def _send(self, push: Push, done: Done) -> None:
        outcome: Outcome
        try:
            outcome = await self._stored(push)
        except Exception as error:
            # A bug, but a lane that never hears back would stand still for ever.
            self._runtime.note("error", "a message for a box failed", error=repr(error))
            outcome = Failed(f"sending failed: {error!r}", reachable=True)
        done(push.lane, outcome)

    async def _stored(self, push: Push) -> Outcome:
        path = parse_address(push.sink).target
        if parse_path(path).kind != "boxes":  # elsewhere it would be stored as the broker's own
            return Failed(f"{push.sink} is not a message box", reachable=True)
        template = soap_template(push.subscription)
        _, message = envelope(template, push.events, self._cache)
        call = SoapCall(
            body=message,
            content_type=content_type(template.terms.soap),
            soap_action="",
            path=path,
            query="",
            base="",
            session=SERVICE,
        )
        answer = await self._answer(call)
        return Answered(answer.status)

    def close(self) -> None:
        self._tasks.cancel()
