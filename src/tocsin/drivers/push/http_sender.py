"""HttpSender: sends events and SOAP messages to one http or https address."""

from __future__ import annotations

from typing import Final

from tocsin.broker.delivery.address import SinkAddress
from tocsin.broker.delivery.answer import DELIVERED, refusal
from tocsin.broker.delivery.outcome import Failed, Outcome
from tocsin.broker.effects import Push
from tocsin.drivers.push.connection import Connection, Familiar
from tocsin.drivers.push.request_template import (
    RequestCache,
    RequestTemplate,
    request,
    request_template,
)
from tocsin.drivers.push.sender import ConnectionSender, Done, PushContext, SinkConnection
from tocsin.errors import TocsinError
from tocsin.event.subscription import Subscription

TEMPLATES_MAX: Final = 64  # subscriptions of one sink whose first lines are kept
SHARED: Final = "http"
HIDDEN: Final = b"(credential)"


class HttpCaches:
    """What all senders of a pusher share: rendered events, and answers seen before."""

    __slots__ = ("familiar", "rendered")

    def __init__(self) -> None:
        self.rendered = RequestCache()
        self.familiar: Familiar = {}


def http_caches(context: PushContext) -> HttpCaches:
    caches: HttpCaches | None = context.shared.get(SHARED)
    if caches is None:
        caches = context.shared[SHARED] = HttpCaches()
    return caches


class HttpSender(ConnectionSender):
    """POSTs events, each request answered by one call of its `done`."""

    __slots__ = ("_caches", "_hidden", "_templates", "head")

    def __init__(self, context: PushContext, number: int, address: str, sink: SinkAddress) -> None:
        super().__init__(context, number, address, sink)
        self._caches = http_caches(context)
        self._templates: dict[str, RequestTemplate] = {}
        self._hidden = b""  # of the credential in the request under way
        self.head = b""  # of the latest answer

    def push(self, push: Push, done: Done) -> None:
        template = self._templates.get(push.subscription.id)
        if template is None or template.subscription is not push.subscription:
            try:
                template = self._new_template(push.subscription)
            except TocsinError as error:
                self._context.loop.call_soon(done, push.lane, Failed(error.problem))
                return
        soap = template.soap
        if soap is not None and not soap.is_plain and self._context.soap.send(push, done):
            return
        self._hidden = template.hidden
        asked = request(template, push.events, self._caches.rendered, self._context.clock)
        self.ask(asked, done, self._context.loop.time() + push.timeout_s)

    def _new_template(self, subscription: Subscription) -> RequestTemplate:
        if len(self._templates) >= TEMPLATES_MAX:
            self._templates.clear()
        template = self._templates[subscription.id] = request_template(
            self.sink, subscription, self._context.unseal
        )
        return template

    def answered(self, status: int, head: bytes, body: bytes) -> None:
        self.head = head
        outcome: Outcome | None = DELIVERED.get(status)
        if outcome is None:
            if self._hidden:  # a sink that repeats its requests must not make us show it
                head, body = (part.replace(self._hidden, HIDDEN) for part in (head, body))
            outcome = refusal(status, head, body, self._context.clock())
        self._finish(outcome)
        self._make_room()

    def _new_connection(self) -> SinkConnection:
        return Connection(self, self._caches.familiar)
