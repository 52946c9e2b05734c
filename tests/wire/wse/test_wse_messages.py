"""What is written is what is read, in both versions; and the published schemas agree."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from schemas import validator
from tocsin.event.subscription import SoapTerms
from tocsin.wire.soap.addressing import EndpointReference
from tocsin.wire.soap.envelope import read_envelope, write_envelope
from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.soap.names import (
    NAMESPACE_OF,
    TOPIC_AND_XPATH,
    USUAL_WSA,
    WSA2005,
    WSA200408,
    WSA_NAMESPACES,
    WSE04,
    WSRM10,
    WSRM11,
    XPATH10,
)
from tocsin.wire.wse.messages import (
    EVENTS,
    PULL,
    WRAP,
    Events,
    Expression,
    Filter,
    GetStatus,
    GetStatusResponse,
    Message,
    Notify,
    Pull,
    PullResponse,
    Release,
    Renew,
    RenewResponse,
    Subscribe,
    SubscribeResponse,
    SubscriptionEnd,
    Unsubscribe,
    UnsubscribeResponse,
    status_uri,
)
from tocsin.wire.wse.read import read
from tocsin.wire.wse.write import action, identifier, write

NAMES = st.from_regex(r"[a-z][a-z0-9]{0,6}", fullmatch=True)
URIS = NAMES.map(lambda name: f"urn:{name}")
TEXTS = st.text(st.characters(min_codepoint=33, max_codepoint=0x2FF, exclude_characters="\x7f\x85"))
WORDS = TEXTS.map(str.strip).filter(bool)
SPECS = st.sampled_from(["wse04", "wse11"])
BLOCKS = NAMES.map(lambda name: f'<k:{name} xmlns:k="urn:k">v</k:{name}>'.encode())
TIMES = st.sampled_from(["PT10M", "2030-01-01T00:00:00.000Z", "PT0.5S"])
PAYLOADS = NAMES.map(lambda name: f"<{name}><b/>text</{name}>".encode())


@st.composite
def references(draw: st.DrawFn, wsa: str) -> EndpointReference:
    blocks = tuple(draw(st.lists(BLOCKS, max_size=2)))
    older = wsa not in (WSA2005, WSA200408)
    address = f"http://{draw(NAMES)}.example/{draw(NAMES)}"
    return EndpointReference(
        address,
        wsa,
        properties=blocks if older else (),
        parameters=() if older else blocks,
    )


@st.composite
def expressions(draw: st.DrawFn) -> Expression:
    prefixes = draw(st.dictionaries(NAMES, URIS, max_size=2))
    text = "/".join(f"{prefix}:{draw(NAMES)}" for prefix in prefixes) or draw(WORDS)
    return Expression(text, draw(URIS | st.just("")), tuple(sorted(prefixes.items())))


@st.composite
def filters(draw: st.DrawFn) -> Filter:
    if draw(st.booleans()):
        return Filter(draw(expressions()))
    return Filter(
        Expression("", TOPIC_AND_XPATH), topic=draw(expressions()), content=draw(expressions())
    )


@st.composite
def subscribes(draw: st.DrawFn, wsa: str) -> Subscribe:
    spec = draw(SPECS)
    older = spec == "wse04"
    return Subscribe(
        spec,
        draw(st.none() | references(wsa)),
        draw(st.none() | references(wsa)),
        mode=draw(st.sampled_from(["", EVENTS, PULL])) if older else "",
        format="" if older else draw(st.sampled_from(["", WRAP])),
        expires=(expires := draw(st.none() | TIMES)),
        best_effort=not older and expires is not None and draw(st.booleans()),
        filter=draw(st.none() | filters()),
        heartbeats=draw(st.none() | st.just("PT30S")),
        batch=draw(st.none() | st.integers(1, 1000)),
        send_bookmarks=draw(st.booleans()),
        bookmark=draw(st.none() | st.just("7")),
        reliable=draw(st.sampled_from(["", WSRM10, WSRM11])),
    )


@st.composite
def messages(draw: st.DrawFn, wsa: str) -> Message:
    spec = draw(SPECS)
    notifies = st.builds(Notify, PAYLOADS, st.none() | URIS)
    choices: list[st.SearchStrategy[Any]] = [
        subscribes(wsa),
        st.builds(
            SubscribeResponse, st.just(spec), references(wsa), TIMES, context=st.none() | WORDS
        ),
        st.builds(Renew, st.just(spec), TIMES, st.just(spec == "wse11")),
        st.builds(RenewResponse, st.just(spec), TIMES),
        st.just(GetStatus(spec)),
        st.builds(GetStatusResponse, st.just(spec), TIMES),
        st.just(Unsubscribe(spec)),
        st.builds(
            SubscriptionEnd,
            st.just(spec),
            st.sampled_from(["DeliveryFailure", "SourceCancelling"]),
            TEXTS.map(str.strip),
            references(wsa) if spec == "wse04" else st.none(),
        ),
        notifies,
        st.builds(Events, st.lists(notifies, min_size=1, max_size=3).map(tuple)),
        st.builds(Pull, WORDS, st.none() | st.integers(1, 999), st.none(), st.none() | TIMES),
        st.builds(
            PullResponse,
            st.lists(PAYLOADS, max_size=3).map(tuple),
            st.none() | WORDS,
            st.booleans(),
        ),
        st.builds(Release, WORDS),
    ]
    found: Message = draw(st.one_of(choices))
    return found


@given(st.data(), st.sampled_from(WSA_NAMESPACES), st.sampled_from(["1.1", "1.2"]))
def test_what_is_written_is_what_is_read(data: st.DataObject, wsa: str, soap: str) -> None:
    message = data.draw(messages(wsa))

    envelope = write_envelope(soap, body=write(message, wsa))

    assert read(read_envelope(envelope)) == message


def manager(spec: str) -> EndpointReference:
    return EndpointReference(
        "http://b.example/s/1", parameters=(identifier(SoapTerms(spec=spec, soap="1.1"), "1"),)
    )


def one_of_each(spec: str) -> list[Message]:
    sink = EndpointReference("http://c.example/in", parameters=(b'<k:k xmlns:k="urn:k">1</k:k>',))
    wanted = Filter(Expression("/p:a", XPATH10, (("p", "urn:p"),)))
    return [
        Subscribe(spec, sink, sink, expires="PT1H", filter=wanted),
        SubscribeResponse(spec, manager(spec), "PT1H"),
        Renew(spec, "2030-01-01T00:00:00Z"),
        RenewResponse(spec, "2030-01-01T00:00:00Z"),
        GetStatus(spec),
        GetStatusResponse(spec, "PT1H"),
        Unsubscribe(spec),
        SubscriptionEnd(spec, "DeliveryFailure", "it does not answer", manager(spec)),
    ]


@pytest.mark.parametrize("spec", ["wse04", "wse11"])
@pytest.mark.parametrize("soap", ["1.1", "1.2"])
def test_the_published_schemas_accept_every_message(spec: str, soap: str) -> None:
    judge = validator(spec)

    for message in one_of_each(spec):
        judge(write_envelope(soap, body=write(message, USUAL_WSA[spec])))


def test_the_schema_of_2004_accepts_every_addressing() -> None:
    judge = validator("wse04")

    for wsa in WSA_NAMESPACES:
        for message in one_of_each("wse04"):
            judge(write_envelope("1.2", body=write(message, wsa)))


def test_the_schema_of_2011_accepts_what_is_new_in_it() -> None:
    judge = validator("wse11")
    sink = EndpointReference("http://c.example/in")

    judge(write(UnsubscribeResponse("wse11")))
    judge(write(Notify(b"<a/>", "urn:a")))
    judge(write(Subscribe("wse11", sink, format=WRAP, expires="PT1H", best_effort=True), WSA2005))


def test_the_schema_of_enumeration_accepts_pulling() -> None:
    judge = validator("wsen")

    judge(write(Pull("c", 5, 1000, "PT30S")))
    judge(write(PullResponse((b'<p:a xmlns:p="urn:p"/>',), "c.2", ended=True)))
    judge(write(Release("c")))


def test_the_schema_of_management_accepts_a_batch() -> None:
    validator("wsman")(write(Events((Notify(b"<a/>", "urn:a"), Notify(b"<b/>", "urn:b")))))


def test_in_2004_nothing_is_left_of_a_subscription_but_the_action() -> None:
    gone = UnsubscribeResponse("wse04")

    assert write(gone) == b""
    assert action(gone) == f"{WSE04}/UnsubscribeResponse"


def test_the_end_of_2011_names_no_manager_and_both_name_the_whole_status() -> None:
    for spec in ("wse04", "wse11"):
        end = etree.fromstring(
            write(SubscriptionEnd(spec, "SourceCancelling", "", manager(spec)), USUAL_WSA[spec])
        )
        namespace = NAMESPACE_OF[spec]

        found = end.find(f"{{{namespace}}}SubscriptionManager")

        assert (found is None) == (spec == "wse11")
        assert end.findtext(f"{{{namespace}}}Status") == status_uri(spec, "SourceCancelling")


def body(text: str) -> Message | None:
    return read(read_envelope(write_envelope("1.2", body=text.encode())))


def refused(text: str) -> tuple[str, str] | None:
    with pytest.raises(SoapFault) as caught:
        body(text)
    return caught.value.subcode


def subscribe(inside: str) -> str:
    return (
        f'<e:Subscribe xmlns:e="{WSE04}" xmlns:a="{WSA2005}" xmlns:x="urn:x" xmlns:y="urn:y" '
        f'xmlns:w="http://schemas.dmtf.org/wbem/wsman/1/wsman.xsd">{inside}</e:Subscribe>'
    )


TO = "<e:Delivery><e:NotifyTo><a:Address>http://c.example/</a:Address></e:NotifyTo></e:Delivery>"


def test_a_filter_keeps_the_prefixes_that_it_uses_wherever_they_are_declared() -> None:
    message = body(subscribe(f"{TO}<e:Filter>/x:a[@b='1']</e:Filter>"))

    assert isinstance(message, Subscribe)
    assert message.filter == Filter(Expression("/x:a[@b='1']", "", (("x", "urn:x"),)))


def test_axes_and_the_ends_of_other_names_are_no_prefixes() -> None:
    message = body(subscribe(f"{TO}<e:Filter>x::n/ax:b/self::x/1-y:z</e:Filter>"))

    assert isinstance(message, Subscribe)
    assert message.filter is not None
    assert message.filter.expression.namespaces == (("y", "urn:y"),)


def test_a_filter_may_be_interrupted_by_a_comment() -> None:
    message = body(subscribe(f"{TO}<e:Filter>/a<!-- and -->/b</e:Filter>"))

    assert isinstance(message, Subscribe)
    assert message.filter == Filter(Expression("/a/b"))


def test_what_no_subscription_can_be_made_of_is_refused() -> None:
    bad = (WSE04, "InvalidMessage")

    assert refused(subscribe("")) == bad
    assert refused(subscribe("<e:Delivery><e:NotifyTo/></e:Delivery>")) == bad
    assert refused(subscribe(f"{TO}<e:Filter>/a</e:Filter><w:Filter>/b</w:Filter>")) == bad
    few = "<e:Delivery><w:MaxElements>0</w:MaxElements></e:Delivery>"
    assert refused(subscribe(few)) == bad
    assert refused(f'<e:SubscribeResponse xmlns:e="{WSE04}"/>') == bad
    assert refused(f'<e:SubscriptionEnd xmlns:e="{WSE04}"/>') == bad


def test_a_body_of_somebody_else_is_no_message_of_ours() -> None:
    assert body("<a/>") is None
    assert read(read_envelope(write_envelope("1.1"))) is None
