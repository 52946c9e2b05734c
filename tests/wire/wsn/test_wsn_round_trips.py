"""What one side of WS-BaseNotification writes, the other reads, in every version."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas import validator
from tocsin.errors import BadSubscription
from tocsin.wire.soap.addressing import EndpointReference
from tocsin.wire.soap.envelope import read_envelope, write_envelope
from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.soap.names import (
    WSA2003,
    WSA2005,
    WSA200403,
    WSA200408,
    WSA_NAMESPACES,
    WSRM10,
    WSRM11,
)
from tocsin.wire.soap.topics import TopicName
from tocsin.wire.wsn import messages as say
from tocsin.wire.wsn.operations import REQUESTS, WORDINGS, Operation, response_action
from tocsin.wire.wsn.read import read
from tocsin.wire.wsn.write import write

SPECS = ("wsn13", "wsn12", "wsn10")
USUAL = {"wsn13": WSA2005, "wsn12": WSA200403, "wsn10": WSA2005}
DIALECT = "http://docs.oasis-open.org/wsn/t-1/TopicExpression/Concrete"

letters = st.text("abcxyzäλ-_", min_size=1, max_size=6).map(lambda text: f"w{text}")
phrases = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=20
)
prefixes = st.sampled_from(["p", "q", "n", "n0", "wsnt", "tns1"])
namespaces = st.sampled_from(["urn:a", "http://b.example/?c&d", "urn:e"])
bindings = st.dictionaries(prefixes, namespaces, max_size=3)
moments = st.integers(0, 4_000_000_000_000).map(lambda ms: ms * 1_000_000)


def _expression(bound: dict[str, str], words: list[str], dialect: str) -> say.Expression:
    steps = [*(f"{prefix}:{words[0]}" for prefix in sorted(bound)), *words]
    return say.Expression("/".join(steps), dialect, tuple(sorted(bound.items())))


expressions = st.builds(
    _expression,
    bindings,
    st.lists(letters, min_size=1, max_size=3),
    st.sampled_from(["", DIALECT, "urn:a&b"]),
)


@st.composite
def references(draw: st.DrawFn, wsa: str) -> EndpointReference:
    blocks = tuple(
        b'<k:tag xmlns:k="urn:k">%b</k:tag>' % word.encode()
        for word in draw(st.lists(letters, max_size=2))
    )
    address = f"http://consumer.example/{draw(letters)}?a&b"
    if wsa in (WSA2003, WSA200403):
        return EndpointReference(address, wsa, properties=blocks)
    if wsa == WSA200408 and draw(st.booleans()):
        return EndpointReference(address, wsa, properties=blocks)
    return EndpointReference(address, wsa, parameters=blocks)


@st.composite
def messages(draw: st.DrawFn, spec: str, wsa: str) -> say.Message:
    many = 3 if spec == "wsn13" else 1
    several = st.lists(expressions, max_size=many).map(tuple)
    ends = st.one_of(st.none(), st.just(say.NEVER), phrases)
    times = st.one_of(st.none(), st.just(say.NEVER), moments)
    kind = draw(st.sampled_from(Operation))
    if kind is Operation.SUBSCRIBE and draw(st.booleans()):
        return say.Subscribe(
            draw(references(wsa)),
            draw(several),
            draw(several),
            draw(several),
            draw(ends),
            draw(st.booleans()),
            draw(st.sampled_from(["", WSRM10, WSRM11])),
        )
    if kind is Operation.SUBSCRIBE:
        reference = draw(references(wsa))
        if spec == "wsn13":
            return say.SubscribeResponse(reference, draw(st.none() | moments), draw(times))
        return say.SubscribeResponse(reference)
    if kind is Operation.RENEW and spec != "wsn10":
        answer = say.RenewResponse(draw(st.just(say.NEVER) | moments), draw(st.none() | moments))
        return draw(st.sampled_from([say.Renew(draw(phrases)), say.Renew(say.NEVER), answer]))
    if kind is Operation.CURRENT_MESSAGE:
        payload = draw(st.none() | letters.map(lambda word: f'<p xmlns="u">{word}</p>'.encode()))
        answer_now = say.GetCurrentMessageResponse(payload)
        return draw(st.sampled_from([say.GetCurrentMessage(draw(expressions)), answer_now]))
    bare: list[say.Message] = [say.Unsubscribe(), say.UnsubscribeResponse()]
    bare += [say.PauseSubscription(), say.PauseSubscriptionResponse()]
    bare += [say.ResumeSubscription(), say.ResumeSubscriptionResponse()]
    return draw(st.sampled_from(bare))


@st.composite
def notifies(draw: st.DrawFn, spec: str, wsa: str) -> say.Notify:
    found = []
    for _ in range(draw(st.integers(1, 3))):
        root, names = draw(letters), draw(st.lists(letters, max_size=2))
        topic = TopicName("/".join([f"t:{root}", *names]), (("t", "urn:t"),))
        subscription = draw(st.none() | references(wsa)) if spec == "wsn13" else None
        found.append(
            say.NotificationMessage(
                payload=b'<x:e xmlns:x="urn:x">%b</x:e>' % draw(letters).encode(),
                topic=draw(st.none() | st.just(topic)),
                producer=draw(st.none() | references(wsa)),
                subscription=subscription,
            )
        )
    return say.Notify(tuple(found))


def again(body: bytes, soap: str = "1.1") -> say.Message:
    envelope = read_envelope(write_envelope(soap, body=body))
    assert envelope.content is not None
    return read(envelope)


@pytest.mark.parametrize("spec", SPECS)
@settings(max_examples=60)
@given(data=st.data())
def test_what_is_written_is_read_as_the_same_message(spec: str, data: st.DataObject) -> None:
    wsa = data.draw(st.sampled_from(WSA_NAMESPACES))
    message = data.draw(messages(spec, wsa) | notifies(spec, wsa))

    assert again(write(message, spec, wsa)) == message


@pytest.mark.parametrize("spec", SPECS)
@settings(max_examples=40)
@given(data=st.data())
def test_what_is_written_is_valid_by_the_published_schema(spec: str, data: st.DataObject) -> None:
    judge, wsa = validator(spec), USUAL[spec]
    message = data.draw(messages(spec, wsa) | notifies(spec, wsa))
    if not _can_be_valid(message, spec):
        return

    judge(write_envelope("1.1", body=write(message, spec, wsa)))


def _can_be_valid(message: say.Message, spec: str) -> bool:
    """False for what people send all the same: words as times, no dialect, no topic."""
    match message:
        case say.Subscribe(topics=topics, contents=contents, properties=properties):
            asked = (*topics, *contents, *properties)
            dialects = all(each.dialect for each in asked) or spec != "wsn13"
            one = len(topics) == 1 or spec == "wsn13"
            return message.termination is None and dialects and one
        case say.Renew(termination):
            return termination is say.NEVER
        case say.GetCurrentMessage(topic):
            return bool(topic.dialect)
        case say.GetCurrentMessageResponse(payload):
            return payload is not None and spec != "wsn10"
        case say.RenewResponse(current_ns=current):
            return current is not None or spec == "wsn13"
        case say.Notify(found):
            return all(each.topic for each in found) or spec == "wsn13"
    return True


@pytest.mark.parametrize("name", REQUESTS)
def test_every_name_of_a_request_is_read(name: tuple[str, str]) -> None:
    namespace, local = name
    inside = {
        "Subscribe": f'<ConsumerReference xmlns="{namespace}"><a:Address xmlns:a="{WSA2005}">'
        "http://c/</a:Address></ConsumerReference>",
        "GetCurrentMessage": f'<Topic xmlns="{namespace}">t</Topic>',
    }.get(local.removesuffix("Request"), "")

    found = again(f'<{local} xmlns="{namespace}">{inside}</{local}>'.encode())

    assert isinstance(found, say.Request)


def test_the_older_versions_have_no_place_for_a_second_expression() -> None:
    twice = (say.Expression("a", DIALECT), say.Expression("b", DIALECT))
    asked = say.Subscribe(EndpointReference("http://c/", WSA200403), topics=twice)

    with pytest.raises(BadSubscription, match="one TopicExpression"):
        write(asked, "wsn12", WSA200403)


def test_the_original_has_no_renewal() -> None:
    with pytest.raises(BadSubscription, match="no Renew"):
        write(say.Renew("PT1H"), "wsn10", WSA2005)


def test_the_times_of_a_renewal_come_the_other_way_round_than_those_of_a_subscription() -> None:
    reference = EndpointReference("http://m/1", WSA2005)

    made = write(say.SubscribeResponse(reference, 10**18, 2 * 10**18), "wsn13", WSA2005)
    renewed = write(say.RenewResponse(2 * 10**18, 10**18), "wsn13", WSA2005)

    assert made.index(b":CurrentTime") < made.index(b":TerminationTime")
    assert renewed.index(b":TerminationTime") < renewed.index(b":CurrentTime")


def test_an_answer_has_the_action_of_the_port_type_that_was_asked() -> None:
    pausable = "http://docs.oasis-open.org/wsn/bw-2/PausableSubscriptionManager"
    broker = "http://docs.oasis-open.org/wsn/brw-2/NotificationBroker"

    def of(operation: Operation, asked: str | None) -> str:
        return response_action("wsn13", operation, asked)

    assert of(Operation.RENEW, f"{pausable}/RenewRequest") == f"{pausable}/RenewResponse"
    assert of(Operation.SUBSCRIBE, f"{broker}/SubscribeRequest") == f"{broker}/SubscribeResponse"
    usual = WORDINGS["wsn13"][Operation.RENEW].response_action
    assert of(Operation.RENEW, None) == of(Operation.RENEW, f"{broker}/SubscribeRequest") == usual


@pytest.mark.parametrize(
    "body",
    [
        '<Notify xmlns="{n}"/>',
        '<Notify xmlns="{n}"><NotificationMessage/></Notify>',
        '<Notify xmlns="{n}"><NotificationMessage><Message>text</Message></NotificationMessage>'
        "</Notify>",
        '<Notify xmlns="{n}"><NotificationMessage><Message><a/><b/></Message>'
        "</NotificationMessage></Notify>",
        '<Subscribe xmlns="{n}"/>',
        '<Subscribe xmlns="{n}"><ConsumerReference/></Subscribe>',
        '<SubscribeResponse xmlns="{n}"/>',
        '<GetCurrentMessage xmlns="{n}"/>',
        '<Unheard xmlns="{n}"/>',
    ],
)
def test_what_lacks_its_content_is_refused(body: str) -> None:
    with pytest.raises(SoapFault) as refused:
        again(body.format(n="http://docs.oasis-open.org/wsn/b-2").encode())

    assert refused.value.code == "Sender"
