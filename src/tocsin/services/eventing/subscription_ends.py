"""SubscriptionEnd: sent to who asked for it when a subscription is over before its time."""

from __future__ import annotations

from typing import Final

from tocsin.broker.effects import Ended
from tocsin.broker.runtime import Runtime, Semaphore, Tasks, new_uuid
from tocsin.errors import ShuttingDown, TocsinError
from tocsin.event.subscription import SoapTerms
from tocsin.wire.soap.addressing import EndpointReference, write_headers
from tocsin.wire.soap.envelope import http_headers, write_envelope
from tocsin.wire.wse.messages import SubscriptionEnd
from tocsin.wire.wse.write import action, identifier, write

ENDS_MAX: Final = 10_000  # messages to be sent; past it a consumer finds out by itself
AT_ONCE_MAX: Final = 32  # fewer than the requests that may be under way: others send some too
WAITS_S: Final = (1.0, 10.0, 60.0)  # before the second try and those after it


class SubscriptionEnds:
    """Notifies EndTo, with a few retries. What is unsent when the broker stops is never sent."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._under_way = Tasks(runtime)
        self._turns = Semaphore(runtime, AT_ONCE_MAX)
        self._overrun = False

    def ended(self, effect: Ended) -> None:
        terms = effect.subscription.soap
        if terms is None or terms.end_to is None or not terms.spec.startswith("wse"):
            return
        if len(self._under_way) >= ENDS_MAX:
            if not self._overrun:  # said once: very many subscriptions end just now
                self._overrun = True
                self._runtime.note(
                    "warning",
                    "too many subscriptions ended at once: some consumers are not notified",
                )
            return
        self._overrun = False
        body = end_message(effect, terms, f"urn:uuid:{new_uuid(self._runtime)}")
        self._under_way.spawn(self._send(terms, terms.end_to, body))

    async def _send(self, terms: SoapTerms, address: str, body: bytes) -> None:
        headers = dict(http_headers(terms.soap, end_action(terms)))
        problem = ""
        for wait_s in (*WAITS_S, None):
            try:
                async with self._turns:
                    answer = await self._runtime.post(address, body, headers)
                if answer.status < 300:
                    return
                problem = f"{address[:200]} answered {answer.status}"
            except ShuttingDown:
                return
            except TocsinError as error:
                problem = error.problem
            if wait_s is not None:
                await self._runtime.sleep(wait_s)
        self._runtime.note(
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
