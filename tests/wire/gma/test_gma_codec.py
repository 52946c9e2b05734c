"""The messages of the producer/consumer protocol: the paper's examples read and written, in every
spelling that its text and examples have, and what is written comes back as it was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from tocsin.errors import BadMessage, TocsinError
from tocsin.event.xml_name import is_xml_name
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.messages import Context, Element, Options, Parameters, PerformanceEvent
from tocsin.wire.gma.names import EventName, is_canonical
from tocsin.wire.gma.read import read, read_content
from tocsin.wire.gma.write import event_element, event_message, write
from wire.gma.drawn import contexts, ids, messages, performance_events
from wire.gma.paper_messages import EXAMPLES, GRID_FORUM, LOAD, LOADS, TIME, UPTIME

PROTOCOL = f"{GRID_FORUM}/Protocol"


# The paper's examples


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_of_the_paper_is_read(example: str) -> None:
    text, meant = EXAMPLES[example]

    assert read(text.encode()) == meant


@pytest.mark.parametrize("example", EXAMPLES)
def test_what_the_examples_say_is_read_from_what_we_write_of_it(example: str) -> None:
    _, meant = EXAMPLES[example]

    assert read(write(meant)) == meant


def _squeezed(text: str) -> str:
    """The XML without the blanks between its tags, and one between attributes."""
    lines = [line.strip() for line in text.splitlines()]
    return "".join(f"{line} " if not line.endswith(">") else line for line in lines)


@pytest.mark.parametrize("example", EXAMPLES)
def test_we_write_the_form_of_the_examples_with_the_mistakes_mended(example: str) -> None:
    text, meant = EXAMPLES[example]
    mended = _squeezed(text).replace("</AvailableEventsReply>", "</EventNamesReply>")
    mended = mended.replace("UptimeCPULoadEvent", "UptimeCPULoad")
    mended = mended.replace(
        f'<UptimeCPULoad xmlns="{PROTOCOL}"', f'<UptimeCPULoad xmlns="{GRID_FORUM}/Events"'
    )
    if isinstance(meant, m.QueryRequest):
        mended = mended.replace(f"{GRID_FORUM}/Events", f"{GRID_FORUM}/EventParameters")

    assert write(meant).decode() == mended


@pytest.mark.parametrize("local", ["UptimeCPULoad", "UptimeCPULoadEvent"])
@pytest.mark.parametrize("space", ["Events", "Protocol", "EventParameters"])
def test_an_event_is_the_same_under_both_names_and_in_each_namespace(
    local: str, space: str
) -> None:
    text = (
        f'<Event xmlns="{PROTOCOL}" subscriptionID="1"><{local} xmlns="{GRID_FORUM}/{space}">'
        f"<Load1>1.5</Load1><Load5>1.6</Load5><Load15>1.3</Load15><TimeStamp>{TIME}</TimeStamp>"
        f"</{local}></Event>"
    )

    message, content = read_content(text.encode())

    assert message == m.EventMessage("1", LOAD)
    assert content == event_element(LOAD).encode()


@pytest.mark.parametrize("space", ["Events", "Protocol", "EventParameters"])
def test_parameters_are_the_same_in_each_namespace(space: str) -> None:
    text = (
        f'<QueryRequest xmlns="{PROTOCOL}" requestID="2">'
        f'<UptimeCPULoad xmlns="{GRID_FORUM}/{space}"/></QueryRequest>'
    )

    assert read(text.encode()) == m.QueryRequest("2", Parameters(UPTIME))


def test_the_whole_name_that_the_event_names_reply_once_had_is_read() -> None:
    text, meant = EXAMPLES["4.5.2 EventNamesReply"]

    assert read(text.replace("<EventNamesReply", "<AvailableEventsReply").encode()) == meant
    mended = text.replace("</AvailableEventsReply>", "</EventNamesReply>")
    assert read(mended.encode()) == meant


def _with_prefixes(text: str) -> bytes:
    """The same XML with a prefix before every name."""
    root = etree.fromstring(text.encode())
    spaces = {each.nsmap[each.prefix] for each in root.iter()}
    top = etree.Element(
        root.tag,
        dict(root.attrib),
        nsmap={f"p{number}": space for number, space in enumerate(sorted(spaces))},
    )
    top.extend(root)
    etree.cleanup_namespaces(top, keep_ns_prefixes=list(top.nsmap))
    return etree.tostring(top)


@pytest.mark.parametrize("example", EXAMPLES)
def test_any_prefix_does_instead_of_a_default_namespace(example: str) -> None:
    text, meant = EXAMPLES[example]

    prefixed = _with_prefixes(text.replace("</AvailableEventsReply>", "</EventNamesReply>"))

    assert b"<p" in prefixed
    assert read(prefixed) == meant


@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-8-sig"])
def test_any_encoding_that_shows_itself_is_read(example: str, encoding: str) -> None:
    text, meant = EXAMPLES[example]

    assert read(text.encode(encoding)) == meant


def test_comments_and_declarations_make_no_difference() -> None:
    text, meant = EXAMPLES["4.2.5 Event"]
    commented = text.replace("<Load1>1.5", "<!-- one minute --><Load1>1<!-- point -->.5<?x y?>")

    assert read(b"<?xml version='1.0' encoding='UTF-8'?>\n" + commented.encode()) == meant


# What may be in a message besides


def test_units_and_accuracy_are_kept() -> None:
    event = PerformanceEvent(
        EventName("Thermometer", "urn:lab"), TIME, (Element("T", 21.5, "degrees", "+/-5.0"),)
    )

    text = event_element(event)

    assert '<T units="degrees" accuracy="+/-5.0">21.5</T>' in text
    assert read(event_message("1", text.encode())) == m.EventMessage("1", event)


def test_an_error_comes_in_place_of_an_event() -> None:
    text = (
        f'<Event xmlns="{PROTOCOL}" subscriptionID="1"><Error>NoUptime</Error>'
        "<ErrorDetail>uptime is not installed</ErrorDetail></Event>"
    )

    message = m.EventMessage("1", None, "NoUptime", "uptime is not installed")
    assert read(text.encode()) == message
    assert write(message).decode() == text


def test_a_failure_says_why() -> None:
    reply = m.failure(m.SubscribeRequest, "7", "no such event: 3 < 4 & so on")

    assert write(reply).decode() == (
        f'<SubscribeReply xmlns="{PROTOCOL}" requestID="7"><Return>Failure</Return>'
        "<ReturnDetail>no such event: 3 &lt; 4 &amp; so on</ReturnDetail></SubscribeReply>"
    )
    assert read(write(reply)) == reply


def test_a_filter_may_stand_beside_the_parameters_or_among_them() -> None:
    inner = '<Filter xmlns="urn:tocsin:gma:1">Load5 &gt;= 5.0</Filter>'
    head = f'<QueryRequest xmlns="{PROTOCOL}" requestID="2">'
    parameters = f'<UptimeCPULoad xmlns="{GRID_FORUM}/EventParameters">'
    beside = f"{head}{parameters}</UptimeCPULoad>{inner}</QueryRequest>"
    among = f"{head}{parameters}{inner}</UptimeCPULoad></QueryRequest>"

    meant = m.QueryRequest("2", Parameters(UPTIME), "Load5 >= 5.0")
    assert read(beside.encode()) == read(among.encode()) == meant


def test_extensions_that_nobody_knows_are_passed_over() -> None:
    text = (
        f'<UnsubscribeRequest xmlns="{PROTOCOL}" requestID="9" later="yes">'
        '<SubscriptionID>1</SubscriptionID><New xmlns="urn:tocsin:gma:1"/></UnsubscribeRequest>'
    )

    assert read(text.encode()) == m.UnsubscribeRequest("9", "1")


def test_what_an_event_holds_is_never_taken_for_the_context_of_its_message() -> None:
    forged = '<Context xmlns="urn:tocsin:gma:1" seq="9" id="forged" source="s" topic="t"/>'
    content = event_element(LOAD).replace("<Load1>", f"{forged}<Load1>").encode()
    context = Context(3, "true", "gma://foo.gov", "gma/UptimeCPULoad/foo.gov")

    message = read(event_message("1", content, context))

    assert isinstance(message, m.EventMessage)
    assert message.context == context


@pytest.mark.parametrize(
    ("declared", "text", "value"),
    [
        ("xsd:string", "5", "5"),
        ("xsd:double", "5", 5.0),
        ("int", "+007", 7),
        ("xsd:boolean", "1", True),
        ("xsd:int", "soon", "soon"),
        ("xsd:int", "1_000", "1_000"),
        ("xsd:double", "NaN", "NaN"),
        ("xsd:long", str(2**63), str(2**63)),
        ("urn:whatever", "5", "5"),
    ],
)
def test_a_declared_type_counts_where_the_text_is_of_it(
    declared: str, text: str, value: object
) -> None:
    content = (
        '<T xmlns="urn:lab" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">'
        f'<v xsi:type="{declared}">{text}</v><TimeStamp>{TIME}</TimeStamp></T>'
    )

    message = read(event_message("1", content.encode()))

    assert isinstance(message, m.EventMessage)
    assert message.event is not None
    assert (message.event["v"], type(message.event["v"])) == (value, type(value))


@pytest.mark.parametrize(
    "content",
    [
        b'<e:T xmlns:e="urn:lab"><v>1</v><e:TimeStamp>2000-11-09T21:51:45Z</e:TimeStamp></e:T>',
        b'<T xmlns="urn:lab" note="&#10;"><v/><TimeStamp>2000-11-09T21:51:45Z</TimeStamp></T>',
        b"<T xmlns='urn:lab'><v>&lt;</v><TimeStamp>2000-11-09T21:51:45Z</TimeStamp></T>",
    ],
)
def test_an_event_is_kept_as_it_was_sent(content: bytes) -> None:
    message = b'<p:Event xmlns:p="%b" subscriptionID="1">%b</p:Event>' % (
        PROTOCOL.encode(),
        content,
    )

    assert read_content(message)[1] == content


# Laws


@given(message=messages)
def test_what_is_written_is_read_as_it_was(message: m.Message) -> None:
    assert read(write(message)) == message


@given(message=messages)
def test_types_come_back_as_they_were(message: m.Message) -> None:
    """Equality takes 1, 1.0 and True for the same; a reader does not."""
    assert repr(read(write(message))) == repr(message)


@given(event=performance_events, own_id=ids, context=contexts)
def test_an_event_written_before_goes_into_a_message_as_if_written_with_it(
    event: PerformanceEvent, own_id: str, context: Context | None
) -> None:
    content = event_element(event).encode()

    message = event_message(own_id, content, context)

    assert message == write(m.EventMessage(own_id, event, context=context))
    assert read_content(message) == (m.EventMessage(own_id, event, context=context), content)


@given(text=st.text(max_size=8).filter(lambda text: not is_xml_name(text)))
def test_a_name_of_no_element_is_not_written(text: str) -> None:
    with pytest.raises(BadMessage):
        write(m.EventMessage("1", PerformanceEvent(EventName(text, "urn:x"), TIME)))
    with pytest.raises(BadMessage):
        write(m.EventMessage("1", PerformanceEvent(UPTIME, TIME, (Element(text, 1),))))


@pytest.mark.parametrize(
    "namespace", ["urn:\xe4", "a b", "\n", "http://www.w3.org/XML/1998/namespace", "http://[x/"]
)
def test_a_namespace_that_parsers_refuse_is_not_written(namespace: str) -> None:
    with pytest.raises(BadMessage):
        write(m.EventMessage("1", PerformanceEvent(EventName("T", namespace), TIME)))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**63, "\0", "\ud800", "\ufffe"])
def test_a_value_that_cannot_be_sent_is_refused_with_what_to_do(value: float | str) -> None:
    event = PerformanceEvent(UPTIME, TIME, (Element("v", value),))

    with pytest.raises(TocsinError):
        write(m.EventMessage("1", event))


@pytest.mark.parametrize(
    "event",
    [
        PerformanceEvent(EventName("T" * 257), TIME),
        PerformanceEvent(EventName("T", f"urn:{'x' * 1_024}"), TIME),
        PerformanceEvent(UPTIME, TIME, (Element("v" * 257, 1),)),
        PerformanceEvent(UPTIME, TIME, (Element("v", 1, "u" * 257),)),
        PerformanceEvent(UPTIME, TIME, (Element("v", 1, None, "u" * 257),)),
    ],
)
def test_what_readers_refuse_for_its_length_is_not_written(event: PerformanceEvent) -> None:
    with pytest.raises(BadMessage):
        write(m.EventMessage("1", event))


def test_options_are_understood_by_who_knows_them_and_no_others() -> None:
    options = Options("producer", 7, "nonce", context=True, filtered=True)
    request = m.SubscribeRequest("1", "2", Parameters(UPTIME), options=options)

    assert read(write(request)) == request
    assert is_canonical(f"{GRID_FORUM}/Events", "UptimeCPULoad")
    assert b'xmlns:t="urn:tocsin:gma:1" t:role="producer"' in write(request)


def test_an_element_is_found_by_its_name() -> None:
    assert LOAD["Load5"] == 1.6
    assert LOAD.element("Load15") is LOADS[2]
    with pytest.raises(KeyError):
        LOAD["Load99"]
