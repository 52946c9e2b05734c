"""Every recorded subscription, sent to a running broker, lives the life that its client knows.

It is answered, gets events from publishers of every kind in its own versions, is renewed, and is
silent once it was ended in its own manner. The publishers are recorded ones too.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from lxml import etree

from interop.consumers import Consumer, Delivery, consumer
from interop.recordings import Answer, recording
from schemas import validator
from served import Served, served
from tocsin.wire.soap import names
from tocsin.wire.soap.addressing import EndpointReference

GT4_KEY = rb"<k:SubscriptionKey.*?</k:SubscriptionKey>"
GT4_TIME = b"2026-11-15T19:43:12.029Z"
SDC_ACTION = "http://a/b/Action1"
NOTIFY = "zeep43_wsn13_filter_02_Notify"
PUBLISH = "wsmessenger02_client_08_req"

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Speaks:
    """What a consumer must be sent: the specification, its form, SOAP and addressing."""

    spec: str
    soap: str
    wsa: str
    form: str = "wrapped"  # in Notify, or bare


@dataclass(frozen=True, slots=True)
class Made:
    """A subscription of a recorded client."""

    broker: Served
    reference: EndpointReference

    @property
    def id(self) -> str:
        return self.reference.address.rpartition("/")[2]

    @property
    def path(self) -> str:
        return self.reference.address.removeprefix(self.broker.url)

    @property
    def blocks(self) -> bytes:
        """What the reference asks to be echoed, as clients before 2005/08 do it: unmarked."""
        return b"".join((*self.reference.properties, *self.reference.parameters))


@dataclass(frozen=True, slots=True)
class Life:
    """One recorded subscription and how its client goes on with it."""

    subscribe: str
    speaks: Speaks
    reference: str  # the element of the answer that leads to the manager
    renew: Callable[[Made], Answer] | None
    end: Callable[[Made], Answer]
    topic: str = "demoTopic"
    element: str = "c"
    echoed: bytes = b""  # of the consumer's own reference, in every delivery

    @property
    def id(self) -> str:
        return self.subscribe.removesuffix("_req").removesuffix("_Subscribe")


def _soon(hours: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.029Z", time.gmtime(time.time() + hours * 3600))


# How each program renews and ends: by its own recorded message where there is one, and else by the
# same envelope with the operation that the program is known to send.


def _gt4(made: Made, action: str, content: str | None = None) -> Answer:
    said = recording("gt403_wsn12_07_Destroy").with_header(GT4_KEY, made.blocks)
    if content is not None:
        said = said.saying(f"{names.LIFETIME12_ACTIONS}/{action}", content)
    return said.send(made.broker, made.path)


def gt4_renew(made: Made) -> Answer:
    wanted = f"<RequestedTerminationTime>{_soon(2)}</RequestedTerminationTime>"
    content = f'<SetTerminationTime xmlns="{names.LIFETIME12}">{wanted}</SetTerminationTime>'
    return _gt4(made, "SetTerminationTime", content)


def gt4_end(made: Made) -> Answer:
    return _gt4(made, "Destroy")


def by_address(name: str) -> Callable[[Made], Answer]:
    """A client that knows a subscription by its address alone."""
    return lambda made: recording(name).send(made.broker, made.path)


def by_identifier(name: str, path: str = "") -> Callable[[Made], Answer]:
    """A client that echoes the identifier, at the manager's address or where it always posts."""

    def act(made: Made) -> Answer:
        said = recording(name).changed((b">uuid:42<", f">{made.id}<".encode()))
        return said.send(made.broker, path or made.path)

    return act


def wsmancli_end(made: Made) -> Answer:
    said = recording("wsmancli_280_05_Renew").changed((b">uuid:42<", f">{made.id}<".encode()))
    said = said.saying(f"{names.WSE04}/Unsubscribe", "<wse:Unsubscribe/>")
    return said.send(made.broker)


def _original_wse(made: Made, operation: str, content: str) -> Answer:
    said = recording("wsmessenger02_client_01_req").adding_header(made.blocks)
    element = f'<wse:{operation} xmlns:wse="{names.WSE04}">{content}</wse:{operation}>'
    return said.saying(f"{names.WSE04}/{operation}", element).send(made.broker)


def original_wse_renew(made: Made) -> Answer:
    return _original_wse(made, "Renew", "<wse:Expires>259200000</wse:Expires>")


def original_wse_end(made: Made) -> Answer:
    return _original_wse(made, "Unsubscribe", "")


def original_wsnt_end(made: Made) -> Answer:
    said = recording("wsmessenger02_client_04_req").adding_header(made.blocks)
    element = f'<wsnt:UnsubsribeRequest xmlns:wsnt="{names.WSN10}"/>'
    return said.saying(f"{names.WSN10}/UnsubsribeRequest", element).send(made.broker)


GT4 = Speaks("wsn12", "1.1", names.WSA200403)
ORIGINAL_WSE = Speaks("wse04", "1.1", names.WSA2005, "bare")
ORIGINAL_WSNT = Speaks("wsn10", "1.1", names.WSA2005)
SDC = Speaks("wse04", "1.2", names.WSA2005, "bare")
WSMAN = Speaks("wse04", "1.2", names.WSA200408, "bare")
ZEEP = Speaks("wsn13", "1.2", names.WSA2005)

ONVIF_RENEW = by_address("onvifzeepasync430_04_Renew")
ONVIF_END = by_address("onvifzeepasync430_08_Unsubscribe")
ZEEP_RENEW = by_address("zeep43_wsn13_02_Renew")
ZEEP_END = by_address("zeep43_wsn13_05_Unsubscribe")
SDC_RENEW = by_identifier("sdc11073_300_02_Renew")
SDC_END = by_identifier("sdc11073_300_04_Unsubscribe")
WSMAN_RENEW = by_identifier("wsmancli_280_05_Renew", "/wsman")
MANAGER, REFERENCE = "SubscriptionManager", "SubscriptionReference"

LIVES = (
    Life("gt403_wsn12_01_Subscribe", GT4, REFERENCE, gt4_renew, gt4_end, echoed=b"key-123"),
    Life("zeep43_wsn13_01_Subscribe", ZEEP, REFERENCE, ZEEP_RENEW, ZEEP_END),
    Life(
        "zeep43_wsn13_filter_01_Subscribe",
        Speaks("wsn13", "1.2", names.WSA2005, "bare"),
        REFERENCE,
        ZEEP_RENEW,
        ZEEP_END,
        topic="jobs/status",
        echoed=b"abc",
    ),
    Life("onvifzeepasync430_06_Subscribe", ZEEP, REFERENCE, ONVIF_RENEW, ONVIF_END),
    Life(
        "sdc11073_300_01_Subscribe",
        SDC,
        MANAGER,
        SDC_RENEW,
        SDC_END,
        element=f'Action1 xmlns="{SDC_ACTION.removesuffix("/Action1")}"',
    ),
    Life("wsmancli_280_01_Subscribe", WSMAN, MANAGER, WSMAN_RENEW, wsmancli_end),
    Life("wsmancli_280_02_Subscribe", WSMAN, MANAGER, WSMAN_RENEW, wsmancli_end),
    *(
        Life(
            f"wsmessenger02_client_0{number}_req",
            ORIGINAL_WSE,
            MANAGER,
            original_wse_renew,
            original_wse_end,
        )
        for number in (1, 2, 3)
    ),
    *(
        Life(
            f"wsmessenger02_client_0{number}_req", ORIGINAL_WSNT, REFERENCE, None, original_wsnt_end
        )
        for number in (4, 5)
    ),
)


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as running:
        yield running


@pytest.fixture
def sink() -> Iterator[Consumer]:
    with consumer() as listening:
        yield listening


def payload(life: Life) -> str:
    """What passes the filter of every recorded subscription, and is like no other."""
    name = life.element.partition(" ")[0]
    inside = f'<b xmlns=""><a>{next(_numbers)}</a></b><x xmlns=""/><s:state xmlns:s="urn:x"/>'
    return f"<{life.element}>{inside}</{name}>"


def publish_wsn(broker: Served, life: Life, text: str) -> None:
    """As zeep does: Notify of WS-Notification 1.3."""
    said = recording(NOTIFY).renumbered()
    said = said.changed(
        (b"t:jobs/status", life.topic.encode()), (b'<state xmlns="urn:x">done</state>', b"%s")
    )
    assert said.changed((b"%s", text.encode())).send(broker).status == 202


def publish_wse(broker: Served, life: Life, text: str) -> None:
    """As the original's client does: the bare payload, and the topic as a header."""
    said = recording(PUBLISH).renumbered().saying(SDC_ACTION, text)
    topic = f"widget:{life.topic}".encode()
    said = said.changed((b"http://widgets.com", _namespace(life)), (b"widget:demoTopic", topic))
    answer = said.send(broker)
    # What the client needs: an envelope, even of a message that is but taken.
    assert (answer.status, answer.addressing.relates_to is not None) == (200, True)


def _namespace(life: Life) -> bytes:
    """The namespace of the topic that the recorded filter means."""
    if life.subscribe.startswith("gt4"):
        return b"http://tutorial.globus.org/auction"
    return b"urn:demo:topics" if life.topic == "jobs/status" else b"http://widgets.com"


def publish_cloudevent(broker: Served, life: Life, text: str) -> None:
    broker.publish(
        {
            "datacontenttype": "application/xml",
            "data": text,
            "topic": life.topic,
            "type": SDC_ACTION,
        }
    )


PUBLISHERS = (publish_wsn, publish_wse, publish_cloudevent)


def canonical(element: etree._Element | str) -> bytes:
    found = etree.fromstring(element) if isinstance(element, str) else element
    return etree.tostring(found, method="c14n", exclusive=True, with_comments=False)


def check(delivery: Delivery, life: Life, text: str) -> None:
    """The event arrived in the versions of the subscription, its payload untouched."""
    speaks = life.speaks
    assert delivery.envelope.soap == speaks.soap
    assert delivery.addressing.wsa == speaks.wsa
    assert delivery.addressing.to is not None
    assert delivery.addressing.to.endswith(delivery.path)
    validator(speaks.spec, foreign=speaks.form == "bare")(delivery.body)
    content = delivery.content
    if speaks.form == "wrapped":
        assert content.tag == f"{{{names.NAMESPACE_OF[speaks.spec]}}}Notify"
        [message] = content.iter(f"{{{names.NAMESPACE_OF[speaks.spec]}}}Message")
        [content] = message
    assert canonical(content) == canonical(text)
    header = delivery.envelope.header
    assert header is not None
    assert life.echoed in etree.tostring(header)


def subscribe(broker: Served, sink: Consumer, life: Life) -> tuple[Made, Answer]:
    said = recording(life.subscribe).to_consumer(sink.url)
    if GT4_TIME in said.body:
        said = said.changed((GT4_TIME, _soon(1).encode()))
    answer = said.send(broker)
    assert answer.status == 200, answer.body
    validator(life.speaks.spec)(answer.body)
    return Made(broker, answer.reference(life.reference)), answer


def listed(broker: Served, subscription_id: str) -> bool:
    return broker.call("GET", f"/subscriptions/{subscription_id}")[0] == 200


@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.id)
def test_a_recorded_subscription_lives_and_ends(broker: Served, sink: Consumer, life: Life) -> None:
    made, answer = subscribe(broker, sink, life)
    assert answer.envelope.soap == life.speaks.soap
    assert answer.addressing.wsa == life.speaks.wsa
    assert answer.addressing.relates_to is not None
    assert listed(broker, made.id)

    for publish in PUBLISHERS:
        text = payload(life)
        publish(broker, life, text)
        check(sink.next(), life, text)

    if life.renew is not None:
        renewed = life.renew(made)
        assert (renewed.status, renewed.envelope.soap) == (200, life.speaks.soap), renewed.body
        assert renewed.name.endswith(("RenewResponse", "SetTerminationTimeResponse"))
        validator(life.speaks.spec)(renewed.body)

    ended = life.end(made)
    assert (ended.status, ended.name != "Fault") == (200, True), ended.body
    validator(life.speaks.spec)(ended.body)
    assert not listed(broker, made.id)
    for publish in PUBLISHERS:
        publish(broker, life, payload(life))
    assert sink.is_silent()
    again = life.end(made)
    assert (again.name, again.envelope.soap) == ("Fault", life.speaks.soap)


def test_what_is_renewed_lasts_as_long_as_it_was_asked(broker: Served, sink: Consumer) -> None:
    """sdc11073 reads durations alone; wsmancli sends fractions of seconds."""
    for life, lasts in ((LIVES[4], "PT20M"), (LIVES[5], "PT1200S")):
        made, _ = subscribe(broker, sink, life)
        assert life.renew is not None

        renewed = life.renew(made)

        assert renewed.text("Expires") in (lasts, "PT1200S", "PT20M")
        life.end(made)


def test_a_recorded_getstatus_is_answered_in_kind(broker: Served, sink: Consumer) -> None:
    life = LIVES[4]
    made, answer = subscribe(broker, sink, life)
    assert answer.text("Expires") == "PT600S"

    status = by_identifier("sdc11073_300_03_GetStatus")(made)

    assert status.name == "GetStatusResponse"
    assert status.text("Expires").startswith("PT")
    validator("wse04")(status.body)
    life.end(made)


def test_a_recorded_pause_holds_back_and_a_recorded_resume_lets_go(
    broker: Served, sink: Consumer
) -> None:
    life = LIVES[1]
    made, _ = subscribe(broker, sink, life)

    paused = by_address("zeep43_wsn13_03_PauseSubscription")(made)
    assert paused.name == "PauseSubscriptionResponse"
    text = payload(life)
    publish_wsn(broker, life, text)
    assert sink.is_silent()

    resumed = by_address("zeep43_wsn13_04_ResumeSubscription")(made)
    assert resumed.name == "ResumeSubscriptionResponse"
    check(sink.next(), life, text)
    for answer in (paused, resumed, life.end(made)):
        validator("wsn13")(answer.body)


@pytest.mark.parametrize(
    ("name", "topic", "spec"),
    [
        ("gt403_wsn12_05_GetCurrentMessage", "demoTopic", "wsn12"),
        ("zeep43_wsn13_09_GetCurrentMessage", "jobs/status", "wsn13"),
    ],
)
def test_a_recorded_question_for_the_current_message(
    broker: Served, name: str, topic: str, spec: str
) -> None:
    life = Life("gt4", GT4, "", None, gt4_end, topic=topic)
    text = payload(life)
    publish_cloudevent(broker, life, text)

    answer = recording(name).send(broker)

    assert answer.name == "GetCurrentMessageResponse"
    content = answer.envelope.content
    assert content is not None
    assert canonical(content[0]) == canonical(text)
    assert answer.envelope.soap == {"wsn12": "1.1", "wsn13": "1.2"}[spec]
