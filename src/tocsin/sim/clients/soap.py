"""SOAP clients: publishers, subscribers and owners of message boxes, in bytes as any other sends.

Each repeats what was not answered, and looks at every answer when it leaves the broker: what it
acknowledges must be on disk by then.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from tocsin.sim.machine import Machine
from tocsin.sim.network import Request, Response
from tocsin.sim.world import Violation
from tocsin.wire.msgbox import write as msgbox
from tocsin.wire.msgbox.read import box_id, dropped
from tocsin.wire.soap.addressing import EndpointReference, write_headers
from tocsin.wire.soap.element import element
from tocsin.wire.soap.envelope import Envelope, content_type, read_envelope, write_envelope
from tocsin.wire.soap.names import WSA2005, WSE04, WSN13, WSRM11
from tocsin.wire.wsrm.messages import CreateSequence, CreateSequenceResponse, Sequence, action
from tocsin.wire.wsrm.read import read_blocks, read_content
from tocsin.wire.wsrm.write import write_content, write_sequence

ANSWER_MS: Final = 150  # then it is sent again
PACE_MS: Final = 20.0
THINK_MS: Final = (5, 80)
RENEW_MS: Final = (50, 400)
LEASE: Final = "PT2H"
TOPICS: Final = ("lab/a", "sky/b")
FORMS: Final = ("eventing", "notification", "reliable", "reliable")
ANONYMOUS: Final = "http://www.w3.org/2005/08/addressing/anonymous"

_MANAGER = re.compile(rb"/soap/subscriptions/([0-9a-f]{24})")


class SoapCaller:
    """Somebody who sends envelopes to one broker."""

    _must_sign_in = False  # a sequence is known to whoever began it alone

    def __init__(self, machine: Machine, name: str) -> None:
        self._machine = machine
        self._world = machine.world
        self._name = name
        self._peer = f"{name}.example:5000"
        self._principal = machine.principal_of(name)
        self._sent_as: set[str] = set()  # the principals that the broker must take it for

    def _send(
        self,
        path: str,
        body: bytes,
        answered: Callable[[Response | None], None],
        *,
        action: str,
        message_id: str | None = None,
        headers: bytes = b"",
        departing: Callable[[Response], None] | None = None,
        timeout_ms: float = ANSWER_MS,
    ) -> None:
        """POST an envelope; `answered` gets None if no answer came in time."""
        base = f"http://{self._machine.host}"
        head = write_headers(WSA2005, action=action, message_id=message_id, to=base + path)
        message = write_envelope("1.2", header=head + headers, body=body)
        signed_in = self._machine.headers(self._principal)
        if self._must_sign_in and self._machine.access is not None and not signed_in:
            self._world.after_ms(timeout_ms, lambda: answered(None))
            return
        self._sent_as.add(self._principal if signed_in else "anonymous")
        fields = {"content-type": content_type("1.2"), **signed_in}
        request = Request(path, message, fields, self._peer)
        self._machine.network.request(base, request, timeout_ms, answered, departing)

    def _again(self, send: Callable[[], None]) -> None:
        self._world.soon(1, PACE_MS, send)


class SoapPublisher(SoapCaller):
    """Publishes numbered notifications in turn; by WS-ReliableMessaging, several at a time."""

    def __init__(self, machine: Machine, number: int, form: str, messages: int) -> None:
        super().__init__(machine, f"soap-publisher-{number}-{machine.host.split('.')[0]}")
        self._form = form
        self._must_sign_in = form == "reliable"
        self._left = list(range(messages, 0, -1))
        self._unacknowledged: set[int] = set()
        self._sequence = ""
        self._log = machine.checks.log
        self._log.promise_order(self._name)

    @property
    def is_done(self) -> bool:
        return not self._left and not self._unacknowledged

    def start(self) -> None:
        if self._form == "reliable":
            self._world.soon(0, PACE_MS, self._create_sequence)
        else:
            self._world.soon(0, PACE_MS, self._next)

    def _next(self) -> None:
        if self._left:
            number = self._left.pop()
            self._unacknowledged.add(number)
            self._publish(number)

    def _marker(self, number: int) -> str:
        return f"{self._name} {number}"

    def _publish(self, number: int) -> None:
        if number not in self._unacknowledged:
            return
        payload = b'<r:reading xmlns:r="urn:simulated" marker="%b"/>' % (
            self._marker(number).encode()
        )
        topic = TOPICS[number % len(TOPICS)].encode()
        body, headers, verb = payload, b"", "urn:simulated/reading"
        if self._form == "notification":
            body, verb = _notify(payload, topic), f"{WSN13}/NotificationConsumer/Notify"
        else:
            headers = b'<t:Topic xmlns:t="urn:tocsin:2026">%b</t:Topic>' % topic
        if self._sequence:
            headers += write_sequence(Sequence(WSRM11, self._sequence, number), "1.2")
        self._send(
            "/soap",
            body,
            lambda response: self._answered(number, response),
            action=verb,
            message_id=f"urn:simulated:{self._name}:{number}",
            headers=headers,
            departing=lambda response: self._departing(number, response),
        )

    def _departing(self, number: int, response: Response) -> None:
        if b"SequenceTerminated" in response.answer.body:
            raise Violation(f"sequence {self._sequence} is gone, and its lease is not over")
        for acknowledged in self._acknowledged(number, response):
            if self._sequence and self._is_held(acknowledged):
                self._world.seen["reliable message held"] += 1
                continue
            marker = self._marker(acknowledged)
            if self._sequence and self._log.refused.get(marker, set()) & self._sent_as:
                # It has come, and a fault says what became of it.
                self._world.seen["access: a reliable message was refused"] += 1
                continue
            self._log.check_stored(marker, self._form)
            self._world.seen[f"acknowledged by SOAP: {self._form}"] += 1

    def _is_held(self, number: int) -> bool:
        """Acknowledged because it is on disk, to be published when its turn comes."""
        node = self._machine.node
        assert node is not None
        return f"wsrm/in/{self._sequence}/{number}" in node.reader.service_state()

    def _acknowledged(self, number: int, response: Response) -> list[int]:
        if not self._sequence:
            return [number] if response.answer.status < 300 else []
        if not response.answer.body:
            return []
        blocks = read_blocks(read_envelope(response.answer.body))
        return [
            each
            for block in blocks.acknowledgements
            if block.identifier == self._sequence
            for low, high in block.ranges
            for each in range(low, high + 1)
        ]

    def _answered(self, number: int, response: Response | None) -> None:
        acknowledged = [] if response is None else self._acknowledged(number, response)
        for each in acknowledged:
            if each in self._unacknowledged:
                self._unacknowledged.remove(each)
                self._world.soon(0, PACE_MS, self._next)
        if number in self._unacknowledged:
            self._again(lambda: self._publish(number))

    def _create_sequence(self) -> None:
        content = CreateSequence(WSRM11, EndpointReference(ANONYMOUS))
        self._send(
            "/soap",
            write_content(content, WSA2005),
            self._created,
            action=action(WSRM11, "CreateSequence"),
            message_id=f"urn:simulated:{self._name}:create",
        )

    def _created(self, response: Response | None) -> None:
        envelope = _read(response)
        if envelope is None:
            self._again(self._create_sequence)
            return
        assert envelope.content is not None
        if response is not None and response.answer.status >= 300:
            # There is no room for sequences here: publish without one.
            self._world.seen["sequence refused"] += 1
            self._form = "eventing"
            self._next()
            return
        made = read_content(envelope)
        assert isinstance(made, CreateSequenceResponse)
        self._sequence = made.identifier
        for _ in range(3):
            self._next()


class SoapSubscriber(SoapCaller):
    """Subscribes a consumer by WS-Eventing or WS-Notification, renews, and may unsubscribe."""

    def __init__(self, machine: Machine, name: str, consumer: str, *, eventing: bool) -> None:
        """`consumer`: the address that notifications go to."""
        super().__init__(machine, name)
        self._consumer = consumer
        self._is_eventing = eventing
        self._subscription = ""
        self.is_done = False

    def start(self) -> None:
        consumer = f"<a:Address>{self._consumer}</a:Address>".encode()
        topic = self._world.random.choice((b"lab//.", b"lab/a", b"sky/*"))
        write = _eventing_subscribe if self._is_eventing else _notification_subscribe
        verb = f"{WSE04}/Subscribe" if self._is_eventing else _producer("SubscribeRequest")
        self._send(
            "/soap", write(consumer, topic), self._subscribed, action=verb, departing=self._check
        )

    def _check(self, response: Response) -> None:
        found = _MANAGER.search(response.answer.body)
        if response.answer.status >= 300 or found is None:
            return
        self._world.seen[f"subscribed by {'WSE' if self._is_eventing else 'WSN'}"] += 1
        if found[1].decode() not in self._machine.checks.records:
            raise Violation(f"subscription {found[1].decode()} was acknowledged and is not there")

    def _subscribed(self, response: Response | None) -> None:
        found = None if response is None else _MANAGER.search(response.answer.body)
        if found is None or (response is not None and response.answer.status >= 300):
            self._again(self.start)
            return
        self._subscription = found[1].decode()
        if self._world.random.random() < 0.5:
            self._world.soon(*RENEW_MS, self._renew)
        else:
            self.is_done = True

    def _renew(self) -> None:
        self.is_done = True
        ends = self._world.random.random() < 0.3
        path = f"/soap/subscriptions/{self._subscription}"
        if self._is_eventing:
            name = "Unsubscribe" if ends else "Renew"
            inside = b"" if ends else b"<e:Expires>PT1H</e:Expires>"
            body, verb = element("e", WSE04, name, inside), f"{WSE04}/{name}"
        else:
            name = "Unsubscribe" if ends else "Renew"
            inside = b"" if ends else b"<n:TerminationTime>PT1H</n:TerminationTime>"
            body, verb = element("n", WSN13, name, inside), _manager(f"{name}Request")
        self._send(path, body, lambda response: self._renewed(name, response), action=verb)

    def _renewed(self, name: str, response: Response | None) -> None:
        if response is not None and response.answer.status < 300:
            self._world.seen[f"{name} by SOAP"] += 1


class BoxOwner(SoapCaller):
    """Makes a message box, has notifications sent into it, and takes them out."""

    def __init__(self, machine: Machine, number: int, messages: int) -> None:
        super().__init__(machine, f"box-owner-{number}-{machine.host.split('.')[0]}")
        self._messages = list(range(messages, 0, -1))
        self._token = ""
        self._subscriber: SoapSubscriber | None = None

    @property
    def is_done(self) -> bool:
        is_subscribed = self._subscriber is not None and self._subscriber.is_done
        return is_subscribed and not self._messages

    def start(self) -> None:
        self._send(
            "/axis2/services/MsgBoxService",
            msgbox.request(msgbox.CREATE, "new"),
            self._created,
            action=msgbox.request_action(msgbox.CREATE),
        )

    def _created(self, response: Response | None) -> None:
        envelope = _read(response)
        if response is None or envelope is None or response.answer.status >= 300:
            self._again(self.start)
            return
        self._token = box_id(envelope)
        address = f"http://{self._machine.host}/soap/boxes/{self._token}"
        self._subscriber = SoapSubscriber(
            self._machine, self._name, address, eventing=self._world.random.random() < 0.5
        )
        self._subscriber.start()
        self._take()
        self._store()

    def _store(self) -> None:
        """Somebody writes to the box directly."""
        if not self._messages:
            return
        number = self._messages[-1]
        marker = f"{self._name} direct {number}"

        def departing(response: Response) -> None:
            if response.answer.status < 300:
                self._world.seen["acknowledged by SOAP: message box"] += 1
                self._machine.box_checks.log.check_stored(marker, "message box")

        def answered(response: Response | None) -> None:
            if response is not None and response.answer.status < 300 and number in self._messages:
                self._messages.remove(number)
            self._again(self._store)

        self._send(
            f"/soap/boxes/{self._token}",
            b'<r:reading xmlns:r="urn:simulated" marker="%b"/>' % marker.encode(),
            answered,
            action="urn:simulated/reading",
            message_id=f"urn:simulated:{self._name}:{number}",
            departing=departing,
        )

    def _take(self) -> None:
        self._send(
            f"/axis2/services/MsgBoxService/clientid/{self._token}",
            msgbox.request(msgbox.TAKE, self._token),
            self._taken,
            action=msgbox.request_action(msgbox.TAKE),
            timeout_ms=2_000 if self._world.calm else ANSWER_MS,
        )

    def _taken(self, response: Response | None) -> None:
        envelope = _read(response)
        if response is not None and envelope is not None and response.answer.status < 300:
            if dropped(envelope):
                self._world.seen["box says what it dropped"] += 1
            for record, events in response.taken:
                arrived = [
                    stored for stored in events if (stored.event.data or b"") in envelope.raw
                ]
                self._machine.box_checks.took(record, arrived)
        self._world.soon(*((400, 500) if self._world.calm else THINK_MS), self._take)


def _read(response: Response | None) -> Envelope | None:
    if response is None or not response.answer.body:
        return None
    return read_envelope(response.answer.body)


def _notify(payload: bytes, topic: bytes) -> bytes:
    return (
        b'<n:Notify xmlns:n="%b"><n:NotificationMessage>'
        b'<n:Topic Dialect="http://docs.oasis-open.org/wsn/t-1/TopicExpression/Concrete">%b</n:Topic>'
        b"<n:Message>%b</n:Message></n:NotificationMessage></n:Notify>"
    ) % (WSN13.encode(), topic, payload)


def _eventing_subscribe(consumer: bytes, topic: bytes) -> bytes:
    inside = (
        b'<e:Delivery><e:NotifyTo xmlns:a="%b">%b</e:NotifyTo></e:Delivery>'
        b"<e:Expires>PT2H</e:Expires>"
    ) % (WSA2005.encode(), consumer)
    return element("e", WSE04, "Subscribe", inside)


def _notification_subscribe(consumer: bytes, topic: bytes) -> bytes:
    inside = (
        b'<n:ConsumerReference xmlns:a="%b">%b</n:ConsumerReference><n:Filter>'
        b'<n:TopicExpression Dialect="http://docs.oasis-open.org/wsn/t-1/TopicExpression/Full">'
        b"%b</n:TopicExpression></n:Filter>"
    ) % (WSA2005.encode(), consumer, topic)
    return element("n", WSN13, "Subscribe", inside)


def _producer(name: str) -> str:
    return f"http://docs.oasis-open.org/wsn/bw-2/NotificationProducer/{name}"


def _manager(name: str) -> str:
    return f"http://docs.oasis-open.org/wsn/bw-2/SubscriptionManager/{name}"
