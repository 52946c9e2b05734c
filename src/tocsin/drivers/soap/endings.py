"""SubscriptionEnd: who asked for it is told when a subscription is over before its time."""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING, Final

from tocsin.broker.effects import Ended
from tocsin.errors import ShuttingDown, TocsinError
from tocsin.event.subscription import SoapTerms
from tocsin.wire.soap.addressing import EndpointReference, write_headers
from tocsin.wire.soap.envelope import http_headers, write_envelope
from tocsin.wire.wse.messages import SubscriptionEnd
from tocsin.wire.wse.write import action, identifier, write

if TYPE_CHECKING:
    from tocsin.drivers.node import Node

ENDS_MAX: Final = 10_000  # messages to be sent; past it a consumer finds out by itself
AT_ONCE_MAX: Final = 32  # fewer than the letters that may be under way: others write some too
WAITS_S: Final = (1.0, 10.0, 60.0)  # before the second try and those after it


class Endings:
    """Tells EndTo, a few times at most. What is not told when the broker stops stays untold."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._under_way: set[asyncio.Task[None]] = set()
        self._turns = asyncio.Semaphore(AT_ONCE_MAX)
        self._overrun = False
        node.on_ended.append(self.ended)

    def ended(self, effect: Ended) -> None:
        terms = effect.subscription.soap
        if terms is None or terms.end_to is None or not terms.spec.startswith("wse"):
            return
        if len(self._under_way) >= ENDS_MAX:
            if not self._overrun:  # said once: very many subscriptions end just now
                self._overrun = True
                self._node.note(
                    "warning",
                    "too many subscriptions ended at once: some consumers are not notified",
                )
            return
        self._overrun = False
        body = end_message(effect, terms, f"urn:uuid:{uuid.uuid4()}")
        task = self._node.loop.create_task(self._tell(terms, terms.end_to, body))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _tell(self, terms: SoapTerms, address: str, body: bytes) -> None:
        headers = dict(http_headers(terms.soap, end_action(terms)))
        problem = ""
        for wait_s in (*WAITS_S, None):
            try:
                async with self._turns:
                    answer = await self._node.letters.post(address, body, headers)
                if answer.status < 300:
                    return
                problem = f"{address[:200]} answered {answer.status}"
            except ShuttingDown:
                return
            except TocsinError as error:
                problem = error.problem
            if wait_s is not None:
                await asyncio.sleep(wait_s)
        self._node.note(
            "warning",
            "the message that a subscription ended could not be delivered",
            reason=problem,
        )


def end_action(terms: SoapTerms) -> str:
    return action(SubscriptionEnd(terms.spec, ""))


def end_message(effect: Ended, terms: SoapTerms, message_id: str) -> bytes:
    """The whole envelope, in the versions that the subscription was made in."""
    subscription_id = effect.subscription.id
    manager = EndpointReference(
        terms.manager + subscription_id,
        parameters=(identifier(terms, subscription_id),),
    )
    end = SubscriptionEnd(terms.spec, effect.status, effect.reason, manager)
    header = write_headers(
        terms.wsa, action=end_action(terms), message_id=message_id, to=terms.end_to
    )
    return write_envelope(
        terms.soap,
        header=header + terms.end_references.encode(),
        body=write(end, terms.wsa),
    )
