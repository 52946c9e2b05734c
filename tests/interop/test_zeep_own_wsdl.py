"""zeep loads the WSDL that a running broker serves, and calls every operation in it.

Each answer and each delivery is held against the published schemas of its specification.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Empty, Queue
from typing import Any

import pytest
from lxml import etree
from zeep import Client
from zeep.exceptions import Fault
from zeep.plugins import HistoryPlugin

import schemas
import wsdl_calls
from served import Served, served
from tocsin.wire import wsdl

ARRIVES_S = 10.0
SILENCE_S = 0.5
PUBLISHED = {"wsman": "wsen"}


class Sink(ThreadingHTTPServer):
    """A consumer of deliveries."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _SinkHandler)
        self.arrived: Queue[bytes] = Queue()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/sink"

    def body_with(self, value: str, within_s: float = ARRIVES_S) -> etree._Element | None:
        """The body's content of the next delivery that ends with this value; others are dropped."""
        until = time.monotonic() + within_s
        with contextlib.suppress(Empty):
            while True:
                left_s = max(0.0, until - time.monotonic())
                body = etree.fromstring(self.arrived.get(timeout=left_s)).find("{*}Body")
                assert body is not None
                if "".join(body.itertext()).endswith(value):
                    return body[0]
        return None

    def never_gets(self, value: str) -> bool:
        return self.body_with(value, SILENCE_S) is None


class _SinkHandler(BaseHTTPRequestHandler):
    server: Sink

    def do_POST(self) -> None:
        self.server.arrived.put(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(202)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """A test's output is the test's."""


class Caller:
    """zeep with one service of the broker, remembering which operations it called."""

    def __init__(self, broker: Served, service: str) -> None:
        self.service = service
        self.history = HistoryPlugin()
        self.client = Client(f"{broker.url}/soap?wsdl", plugins=[self.history])
        self.called: set[tuple[str, str]] = set()

    def call(
        self, port: str, operation: str, *, at: Any = None, text: Any = None, **changed: Any
    ) -> Any:
        """Call an operation, at a reference of the broker's or where the WSDL says."""
        given = text or wsdl_calls.arguments(self.service, operation)
        proxy = self._proxy(port, at)
        method = getattr(proxy, operation)
        answer = method(**{**given, **changed}) if isinstance(given, dict) else method(given)
        self.called.add((port, operation))
        if self.history.last_received is not None:  # a one-way message has no answer
            self.judge(self.last_answer())
        return answer

    def _proxy(self, port: str, at: Any) -> Any:
        if at is None:
            return self.client.bind(self.service, port)
        binding = self.client.wsdl.services[self.service].ports[port].binding.name.text
        address = at["Address"]
        return self.client.create_service(binding, _text(address))

    def last_answer(self) -> etree._Element:
        """The envelope that was received last."""
        received = self.history.last_received
        assert received is not None
        envelope: etree._Element = received["envelope"]
        return envelope

    def judge(self, message: etree._Element) -> None:
        """Hold a message against the published schema, where there is one."""
        kind = PUBLISHED.get(self.service, self.service)
        if schemas.missing(kind) is None:
            schemas.validator(kind)(message)

    def has_called_everything(self) -> bool:
        every = {(port, op.name) for port, op in wsdl_calls.operations(self.service)}
        assert self.called == every, f"not called: {sorted(every - self.called)}"
        return True


def _text(value: Any) -> str:
    """The text of a zeep value, which is a mapping if the element may have attributes."""
    return str(value if isinstance(value, str) else value["_value_1"])


def _payload(value: str) -> etree._Element:
    return wsdl_calls.an_event(value)


def _wsn13_message(value: str) -> dict[str, Any]:
    topic = {"_value_1": "weather/ohio", "Dialect": wsdl_calls.CONCRETE}
    return {"Topic": topic, "Message": {"_value_1": _payload(value)}}


def _older_message(value: str, dialect: str) -> dict[str, Any]:
    topic = {"_value_1": "weather", "Dialect": dialect}
    return {"Topic": topic, "Message": {"_value_1": [_payload(value)]}}


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as running:
        yield running


@pytest.fixture
def sink() -> Iterator[Sink]:
    server = Sink()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(("spec", "soap"), [("wse04", ""), ("wse04", "12"), ("wse11", "12")])
def test_every_operation_of_ws_eventing(broker: Served, sink: Sink, spec: str, soap: str) -> None:
    caller = Caller(broker, spec)
    publisher = Caller(broker, "wsn13")
    wanted = wsdl_calls.arguments(spec, "SubscribeOp", sink.url)
    source, manager = f"EventSource{soap}", f"SubscriptionManager{soap}"

    subscription = caller.call(source, "SubscribeOp", **wanted)["SubscriptionManager"]
    publisher.call("NotificationConsumer", "Notify", NotificationMessage=[_wsn13_message("72")])
    delivered = sink.body_with("72")
    assert delivered is not None
    assert delivered.tag == "{urn:example}reading"

    caller.call(manager, "GetStatusOp", at=subscription)
    caller.call(manager, "RenewOp", at=subscription)
    caller.call(manager, "UnsubscribeOp", at=subscription)
    publisher.call("NotificationConsumer", "Notify", NotificationMessage=[_wsn13_message("73")])
    assert sink.never_gets("73")
    assert {name for _, name in caller.called} == {op.name for _, op in wsdl_calls.operations(spec)}


def test_every_operation_of_ws_management_pull(broker: Served) -> None:
    eventing = Caller(broker, "wse04")
    caller = Caller(broker, "wsman")
    delivery = {"Mode": "http://schemas.dmtf.org/wbem/wsman/1/wsman/Pull"}

    answer = eventing.call("EventSource12", "SubscribeOp", Delivery=delivery, _value_1=[])
    context = eventing.last_answer().findtext(".//{*}EnumerationContext")
    publisher = Caller(broker, "wsn13")
    publisher.call("NotificationConsumer", "Notify", NotificationMessage=[_wsn13_message("74")])
    pulled = caller.call(
        "DataSource12", "PullOp", EnumerationContext=context, at=answer["SubscriptionManager"]
    )
    assert [item.text for item in pulled["Items"]["_value_1"]] == ["74"]

    caller.call(
        "DataSource12", "ReleaseOp", EnumerationContext=context, at=answer["SubscriptionManager"]
    )
    assert {name for _, name in caller.called} == {
        op.name for _, op in wsdl_calls.operations("wsman")
    }


def test_every_operation_of_ws_notification_1_3(broker: Served, sink: Sink) -> None:
    caller = Caller(broker, "wsn13")
    wanted = wsdl_calls.arguments("wsn13", "Subscribe", sink.url)

    for producer in ("NotificationProducer", "NotificationBroker"):
        publisher = producer.replace("Producer", "Consumer")
        subscription = caller.call(producer, "Subscribe", **wanted)["SubscriptionReference"]
        message = _wsn13_message(producer)
        caller.call(publisher, "Notify", NotificationMessage=[message])
        delivered = sink.body_with(producer)
        assert delivered is not None
        caller.judge(delivered)
        current = caller.call(producer, "GetCurrentMessage")
        assert current[0].text == producer

        pausable = "PausableSubscriptionManager"
        caller.call(pausable, "PauseSubscription", at=subscription)
        while_paused = f"to {producer} while paused"
        caller.call(publisher, "Notify", NotificationMessage=[_wsn13_message(while_paused)])
        assert sink.never_gets(while_paused)
        caller.call(pausable, "ResumeSubscription", at=subscription)
        manager = "SubscriptionManager" if producer.endswith("Broker") else pausable
        caller.call(manager, "Renew", at=subscription)
        caller.call(manager, "Unsubscribe", at=subscription)

    _call_pull_point(caller)
    for registrar in ("NotificationBroker", "RegisterPublisher"):
        registered = caller.call(registrar, "RegisterPublisher")
        caller.call(
            "PublisherRegistrationManager",
            "DestroyRegistration",
            at=registered["PublisherRegistrationReference"],
        )
    caller.call("GetResourceProperty", "GetResourceProperty")
    assert caller.last_answer().find(f".//{{{wsdl_calls.B2}}}FixedTopicSet") is not None
    for name in (
        "GetMultipleResourceProperties",
        "QueryResourceProperties",
        "GetResourcePropertyDocument",
    ):
        assert caller.call(name, name)
    assert caller.has_called_everything()


def _call_pull_point(caller: Caller) -> None:
    point = caller.call("CreatePullPoint", "CreatePullPoint")["PullPoint"]
    subscription = caller.call("NotificationProducer", "Subscribe", ConsumerReference=point)
    caller.call("NotificationConsumer", "Notify", NotificationMessage=[_wsn13_message("75")])
    caller.call("PullPoint", "Notify", NotificationMessage=[_wsn13_message("76")], at=point)
    values: list[str] = []
    until = time.monotonic() + ARRIVES_S
    while len(values) < 2 and time.monotonic() < until:
        got = caller.call("PullPoint", "GetMessages", at=point)["NotificationMessage"]
        values += [message["Message"]["_value_1"].text for message in got]
    assert sorted(values) == ["75", "76"]
    manager = "PausableSubscriptionManager"
    caller.call(manager, "Unsubscribe", at=subscription["SubscriptionReference"])
    caller.call("PullPoint", "DestroyPullPoint", at=point)


def test_every_operation_of_ws_notification_1_2(broker: Served, sink: Sink) -> None:
    caller = Caller(broker, "wsn12")
    wanted = wsdl_calls.arguments("wsn12", "Subscribe", sink.url)
    manager = "SubscriptionManager"

    answer = caller.call("NotificationProducer", "Subscribe", **wanted)
    subscription = getattr(answer, "SubscriptionReference", answer)
    message = _older_message("77", wsdl_calls.SIMPLE_12)
    caller.call("NotificationConsumer", "Notify", NotificationMessage=[message])
    delivered = sink.body_with("77")
    assert delivered is not None
    caller.judge(delivered)
    caller.call("NotificationProducer", "GetCurrentMessage")
    caller.call("NotificationProducer", "GetResourceProperty")
    for operation in ("PauseSubscription", "ResumeSubscription", "SetTerminationTime"):
        caller.call(manager, operation, at=subscription)
    use_notify = etree.QName(wsdl_calls.BASE_12, "UseNotify")
    caller.call(manager, "GetResourceProperty", at=subscription, text=use_notify)
    caller.call(manager, "Destroy", at=subscription)
    late = _older_message("late", wsdl_calls.SIMPLE_12)
    caller.call("NotificationConsumer", "Notify", NotificationMessage=[late])
    assert sink.never_gets("late")
    assert caller.has_called_everything()


def test_every_operation_of_the_original(broker: Served, sink: Sink) -> None:
    caller = Caller(broker, "wsn10")
    wanted = wsdl_calls.arguments("wsn10", "Subscribe", sink.url)
    port = "NotificationService"

    answer = caller.call(port, "Subscribe", **wanted)
    subscription = getattr(answer, "SubscriptionReference", answer)
    message = _older_message("78", wsdl_calls.SIMPLE_10)
    caller.call(port, "Notify", NotificationMessage=[message])
    delivered = sink.body_with("78")
    assert delivered is not None
    caller.judge(delivered)
    caller.call(port, "GetCurrentMessage")
    for operation in ("PauseSubscription", "ResumeSubscription", "Unsubscribe"):
        caller.call(port, operation, at=subscription)
    late = _older_message("late", wsdl_calls.SIMPLE_10)
    caller.call(port, "Notify", NotificationMessage=[late])
    assert sink.never_gets("late")
    assert caller.has_called_everything()


def test_every_operation_of_the_message_box(broker: Served) -> None:
    caller = Caller(broker, "msgbox")

    box = caller.call("MsgBoxPT", "createMsgBox")
    # Whatever is sent to a box is kept; at the original's address that is answered.
    at = {"Address": f"{broker.url}/axis2/services/MsgBoxService/clientid/{box}"}
    assert caller.call("MsgBoxPT", "storeMessages", at=at, _value_1=[_payload("79")])
    caller.call("MsgBoxPT", "takeMessages", MsgBoxId=box)
    assert "79" in list(caller.last_answer().itertext())
    assert caller.call("MsgBoxPT", "destroyMsgBox", MsgBoxId=box)
    assert caller.has_called_everything()


def test_every_operation_of_onvif(broker: Served, sink: Sink) -> None:
    caller = Caller(broker, "onvif")
    pulls, manager = "PullPointSubscription", "SubscriptionManager"

    for operation in (
        "GetServices",
        "GetCapabilities",
        "GetDeviceInformation",
        "GetSystemDateAndTime",
    ):
        assert caller.call("Device", operation)
    for operation in ("GetServiceCapabilities", "GetEventProperties"):
        caller.call("EventPortType", operation)
    point = caller.call("EventPortType", "CreatePullPointSubscription")["SubscriptionReference"]
    publisher = Caller(broker, "wsn13")
    publisher.call("NotificationConsumer", "Notify", NotificationMessage=[_wsn13_message("80")])
    pulled = caller.call(pulls, "PullMessages", at=point)["NotificationMessage"]
    assert [message["Message"]["_value_1"].text for message in pulled] == ["80"]
    caller.call(pulls, "SetSynchronizationPoint", at=point)
    caller.call(manager, "Renew", at=point)
    caller.call(manager, "Unsubscribe", at=point)

    wanted = wsdl_calls.arguments("onvif", "Subscribe", sink.url)
    caller.call("NotificationProducer", "Subscribe", **wanted)
    caller.call("NotificationProducer", "GetCurrentMessage")
    assert caller.has_called_everything()


def _details(caller: Caller) -> list[str]:
    """The names of what the last answer, a fault, gives for details; the fault is judged too."""
    fault = caller.last_answer()
    caller.judge(fault)
    return [
        etree.QName(element).localname
        for element in fault.iterfind(".//{*}Fault/*/*")
        if etree.QName(element.getparent()).localname.lower() == "detail"
    ]


@pytest.mark.parametrize("soap", ["", "12"])
def test_a_fault_has_the_detail_that_the_wsdl_declares(broker: Served, soap: str) -> None:
    caller = Caller(broker, "wsn13")
    declared = {op.name: op.faults for _, op in wsdl_calls.operations("wsn13")}
    nowhere = {"Address": f"{broker.url}/soap/subscriptions/none"}
    topic = {"_value_1": "weather", "Dialect": "urn:no:such:dialect"}

    with pytest.raises(Fault):
        caller.call(f"SubscriptionManager{soap}", "Renew", at=nowhere)
    assert _details(caller) == ["ResourceUnknownFault"]
    assert "r:ResourceUnknownFault" in declared["Renew"]

    with pytest.raises(Fault):
        caller.call(f"NotificationProducer{soap}", "GetCurrentMessage", Topic=topic)
    assert _details(caller) == ["TopicExpressionDialectUnknownFault"]
    assert "b:TopicExpressionDialectUnknownFault" in declared["GetCurrentMessage"]


@pytest.mark.parametrize("service", wsdl.services())
def test_a_service_s_own_document_is_served_with_the_broker_s_address(
    broker: Served, service: str
) -> None:
    client = Client(f"{broker.url}/soap?wsdl={service}")

    for port in client.wsdl.services[service].ports.values():
        assert port.binding_options["address"] == f"{broker.url}/soap"
