"""Reading CloudEvents: the three modes, what is kept, and what is refused with which words."""

from __future__ import annotations

import base64
import contextlib
import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.errors import BadEvent, BadMediaType, BadTopic, TocsinError, TooLarge
from tocsin.event.event import Event
from tocsin.event.value import Quantity
from tocsin.wire.cloudevents import Limits, read_events
from tocsin.wire.cloudevents import read as reading
from tocsin.wire.cloudevents.attributes import check_event

STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"
LIMITS = Limits()
LEAST = {"specversion": "1.0", "id": "1", "source": "/radar", "type": "echo"}
HEADERS = {f"ce-{name}": value for name, value in LEAST.items()}
HOSTILE = Path(__file__).parents[2] / "../shared/data/hostile"


def read_one(body: bytes, limits: Limits = LIMITS) -> Event:
    (event,) = read_events(STRUCTURED, {}, body, limits)
    return event


def with_members(**members: object) -> bytes:
    return json.dumps({**LEAST, **members}).encode()


def with_data(data: bytes) -> bytes:
    return b'{"specversion":"1.0","id":"1","source":"/radar","type":"echo","data":%b}' % data


def test_a_structured_event_keeps_every_attribute() -> None:
    event = read_one(
        with_members(
            topic="lead/ohio/radar",
            time="2024-02-29T23:59:60.5+05:30",
            subject="run 7",
            datacontenttype="application/json",
            dataschema="https://example.org/schema",
            load5=1.5,
            nodes=12,
            urgent=True,
            owner="Zoë",
        )
    )

    assert event == Event(
        id="1",
        source="/radar",
        type="echo",
        topic="lead/ohio/radar",
        time="2024-02-29T23:59:60.5+05:30",
        subject="run 7",
        datacontenttype="application/json",
        dataschema="https://example.org/schema",
        extensions={"load5": 1.5, "nodes": 12, "urgent": True, "owner": "Zoë"},
    )


@pytest.mark.parametrize(
    ("media_type", "member", "kept"),
    [
        (None, b'{"b" : 1.00,\n "a":[ ]}', b'{"b" : 1.00,\n "a":[ ]}'),
        ("application/json", b'"text"', b'"text"'),
        ("application/vnd.x+json; v=1", b"[1, 2]", b"[1, 2]"),
        (None, b"null", b"null"),
        ("text/plain", b'"caf\\u00e9\\n"', "café\n".encode()),
        ("application/xml", b'"<a b=\\"c\\"/>"', b'<a b="c"/>'),
        ("text/plain", b"[1, 2]", b"[1, 2]"),
        ("text/plain", b"null", None),
    ],
)
def test_data_is_kept_as_it_was_sent(
    media_type: str | None, member: bytes, kept: bytes | None
) -> None:
    body = with_data(member)
    if media_type is not None:
        body = body[:-1] + b',"datacontenttype":"%b"}' % media_type.encode()

    assert read_one(body).data == kept


def test_base64_data_is_decoded_and_only_that_which_is_base64() -> None:
    packed = base64.b64encode(b"\x00\xffecho").decode()

    assert read_one(with_members(data_base64=packed)).data == b"\x00\xffecho"
    assert read_one(with_members(data_base64="")).data == b""
    assert read_one(with_members(data_base64=None, data=1)).data == b"1"
    for wrong in ("AA\n==", "A", "AA", "A-_=", "AA==AA==", 7, "é"):
        with pytest.raises(BadEvent, match="base64"):
            read_one(with_members(data_base64=wrong))


def test_data_twice_is_refused() -> None:
    with pytest.raises(BadEvent, match="both"):
        read_one(with_members(data=None, data_base64="AA=="))


def test_a_member_that_is_null_counts_as_absent() -> None:
    assert read_one(with_members(subject=None, load5=None, topic=None)) == Event(**_least())


def test_a_member_sent_twice_is_refused() -> None:
    with pytest.raises(BadEvent, match="'id' comes twice"):
        read_one(with_members()[:-1] + b',"id":"2"}')


def _least() -> dict[str, str]:
    return {name: value for name, value in LEAST.items() if name != "specversion"}


@pytest.mark.parametrize(
    ("members", "named"),
    [
        ({"specversion": "0.3"}, "specversion"),
        ({"specversion": 1.0}, "specversion"),
        ({"id": ""}, "id"),
        ({"id": 7}, "id"),
        ({"source": None}, "source is missing"),
        ({"source": "two words"}, "source"),
        ({"source": "no\u00a0break"}, "source"),
        ({"type": ["echo"]}, "type"),
        ({"dataschema": ""}, "dataschema"),
        ({"dataschema": "a b"}, "dataschema"),
        ({"datacontenttype": "json"}, "datacontenttype"),
        ({"datacontenttype": "text/plain;" + "x" * 1024}, "datacontenttype"),
        ({"time": f"2024-05-01T12:00:00.{'0' * 65}Z"}, "time"),
        ({"topic": "a\ufffeb"}, "topic"),
        ({"datacontenttype": "text/plain\r\nx: y"}, "datacontenttype"),
        ({"datacontenttype": "text/plain; name=é"}, "datacontenttype"),
        ({"time": "yesterday"}, "time"),
        ({"time": "2024-05-01"}, "time"),
        ({"time": "2024-05-01T12:00:00"}, "time"),
        ({"time": "2024-05-01T25:61:00Z"}, "time"),
        ({"time": "2024-05-01T12:00:61Z"}, "time"),
        ({"time": "2023-02-29T12:00:00Z"}, "time"),
        ({"time": "1900-02-29T12:00:00Z"}, "time"),
        ({"time": "0000-01-01T00:00:00Z"}, "time"),
        ({"time": "2024-13-01T00:00:00Z"}, "time"),
        ({"time": "2024-05-01T12:00:00+24:00"}, "time"),
        ({"time": "٢٠٢٤-05-01T12:00:00Z"}, "time"),
        ({"time": 1714564800}, "time"),
        ({"subject": "a\nb"}, r"subject.*U\+000A"),
        ({"subject": "a\x85b"}, r"subject.*U\+0085"),
        ({"subject": "a\ufdd0b"}, r"subject.*U\+FDD0"),
        ({"subject": "a\U0010ffffb"}, r"subject.*U\+10FFFF"),
        ({"owner": "a\x7fb"}, r"owner.*U\+007F"),
        ({"owner": {"name": "Zoë"}}, "owner"),
        ({"owner": "x" * 8193}, "owner.*8193"),
        ({"id": "x" * 8193}, "id.*8193"),
        ({"nodes": 1 << 63}, "nodes"),
        ({"Load": 1}, "Load"),
        ({"load_5": 1}, "load_5"),
        ({"": 1}, "name"),
        ({"x" * 65: 1}, "xxx"),
    ],
)
def test_a_bad_attribute_is_refused_by_name(members: dict[str, object], named: str) -> None:
    with pytest.raises(BadEvent, match=named) as caught:
        read_one(with_members(**members))

    assert caught.value.remedy
    assert len(str(caught.value)) < 400


def test_a_topic_must_be_a_topic() -> None:
    for topic in ("lead/*/radar", "a//b", ""):
        with pytest.raises(BadTopic):
            read_one(with_members(topic=topic))
    with pytest.raises(BadEvent, match="topic"):
        read_one(with_members(topic=7))


def test_numbers_beyond_32_bits_are_taken_and_stay_exact() -> None:
    numbers = {"low": -(1 << 63), "high": (1 << 63) - 1, "load5": 0.1}

    assert read_one(with_members(**numbers)).extensions == numbers


def test_a_batch_is_read_in_order_and_an_empty_one_is_empty() -> None:
    body = b"[%b,%b]" % (with_members(id="a"), with_members(id="b", load5=3))

    assert [event.id for event in read_events(BATCH, {}, body, LIMITS)] == ["a", "b"]
    assert read_events(BATCH, {}, b" [ ] ", LIMITS) == []


def test_one_bad_event_refuses_the_batch_and_is_named_by_its_place() -> None:
    for member, error in (({"id": ""}, BadEvent), ({"topic": "a//b"}, BadTopic)):
        body = b"[%b,%b]" % (with_members(), with_members(**member))
        with pytest.raises(error, match="event 1 of the batch"):
            read_events(BATCH, {}, body, LIMITS)


def test_limits_are_kept() -> None:
    small = Limits(event_bytes_max=200, batch_events_max=2, attributes_max=6, attribute_text_max=20)
    fine = with_members()

    assert len(read_events(BATCH, {}, b"[%b,%b]" % (fine, fine), small)) == 2
    with pytest.raises(TooLarge, match="3 events"):
        read_events(BATCH, {}, b"[%b,%b,%b]" % (fine, fine, fine), small)
    with pytest.raises(TooLarge, match="bytes"):
        read_one(with_members(data="x" * 200), small)
    with pytest.raises(TooLarge, match="event 0"):
        read_events(BATCH, {}, b"[%b]" % with_members(data="x" * 200), small)
    with pytest.raises(TooLarge):
        read_events("text/plain", HEADERS, b"x" * 201, small)
    with pytest.raises(BadEvent, match="7 attributes"):
        read_one(with_members(a=1, b=2, c=3), small)
    with pytest.raises(BadEvent, match="subject"):
        read_one(with_members(subject="x" * 21), small)


def test_binary_mode_takes_attributes_from_headers_and_data_from_the_body() -> None:
    headers = {**HEADERS, "ce-owner": "Zo%C3%AB%20%25", "ce-topic": "lead/ohio", "host": "x"}

    (event,) = read_events("Text/Plain; charset=latin-1", headers, b"\xe9\r\n", LIMITS)

    assert event == Event(
        **_least(),
        topic="lead/ohio",
        datacontenttype="Text/Plain; charset=latin-1",
        extensions={"owner": "Zoë %"},
        data=b"\xe9\r\n",
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Euro%20%E2%82%AC%20%F0%9F%98%80", "Euro € 😀"),
        ('"quoted \\"text\\""', 'quoted "text"'),
        ("%41%2f%2F", "A//"),
        ("100%", "100%"),
        ("Zo\u00c3\u00ab", "Zoë"),
        ("7", "7"),
    ],
)
def test_header_values_are_decoded_as_the_binding_says(value: str, text: str) -> None:
    (event,) = read_events("", {**HEADERS, "ce-owner": value}, b"", LIMITS)

    assert event.extensions == {"owner": text}
    assert event.data is None
    assert event.datacontenttype is None


@pytest.mark.parametrize("value", ["%C0%A0", "%ff", "\u00e9", "%0d%0aset-cookie: a"])
def test_header_values_that_carry_no_clean_text_are_refused(value: str) -> None:
    with pytest.raises(BadEvent, match="owner"):
        read_events("", {**HEADERS, "ce-owner": value}, b"", LIMITS)


def test_a_second_content_type_among_the_attributes_must_agree() -> None:
    headers = {**HEADERS, "ce-datacontenttype": "text/xml"}

    assert read_events("text/xml", headers, b"<a/>", LIMITS)[0].datacontenttype == "text/xml"
    with pytest.raises(BadEvent, match="datacontenttype"):
        read_events("text/plain", headers, b"<a/>", LIMITS)


def test_plain_json_without_attributes_gets_a_command_that_works() -> None:
    with pytest.raises(BadEvent) as caught:
        read_events("application/json", {"host": "x"}, b'{"load5": 1}', LIMITS)

    headers = dict(
        part.lower().split(": ", 1)
        for part in caught.value.remedy.split("'")
        if ": " in part and not part.startswith(("{", "Try"))
    )
    assert read_events(headers["content-type"], headers, b'{"load5": 1.5}', LIMITS)


@pytest.mark.parametrize(
    "content_type",
    [STRUCTURED, "Application/CloudEvents+JSON; charset=UTF-8", f'{STRUCTURED};charset="utf-8"'],
)
def test_the_content_type_may_say_utf8_in_any_case(content_type: str) -> None:
    assert len(read_events(content_type, {}, with_members(), LIMITS)) == 1


@pytest.mark.parametrize(
    "content_type",
    ["application/cloudevents+avro", "application/cloudevents", f"{STRUCTURED}; charset=latin-1"],
)
def test_other_formats_and_charsets_are_refused(content_type: str) -> None:
    with pytest.raises(BadMediaType):
        read_events(content_type, {}, with_members(), LIMITS)


def test_typed_attributes_are_read_from_their_extension_and_from_the_data() -> None:
    wanted = {"load5": 1.5, "wait": Quantity(2, "min", "+/-1"), "up": True}
    written = {"load5": 1.5, "wait": {"value": 2, "unit": "min", "accuracy": "+/-1"}, "up": True}

    beside = read_one(with_members(tocsinattributes=json.dumps(written), data=[1]))
    within = read_one(with_members(tocsinattributes="data", data=written))

    assert (beside.attributes, beside.data) == (wanted, b"[1]")
    assert (within.attributes, within.data) == (wanted, None)
    for wrong in ("data", "[]", '{"a":{"value":[]}}', '{"a":{"volume":1}}', 7, "{" * 9999):
        with pytest.raises(BadEvent, match="tocsinattributes"):
            read_one(with_members(tocsinattributes=wrong))


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**30])
def test_a_typed_attribute_that_no_log_can_hold_is_refused_at_the_door(number: int) -> None:
    for written in ({"size": number}, {"size": {"value": number, "unit": "MB"}}):
        for members in (
            {"tocsinattributes": json.dumps(written)},
            {"tocsinattributes": "data", "data": written},
        ):
            with pytest.raises(BadEvent, match=r"size.*64 bits"):
                read_one(with_members(**members))


@pytest.mark.parametrize("depth", [64, 65, 200, 100_000])
@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}"), (b"[[],", b"]")])
def test_nesting_ends_at_a_limit_with_a_clean_error(
    depth: int, opening: bytes, closing: bytes
) -> None:
    inner = b"[]" if opening == b"[[]," else b"1"
    levels = depth - (inner == b"[]")
    body = with_data(opening * levels + inner + closing * levels)
    limits = Limits(event_bytes_max=1 << 24)

    if depth <= 64:
        assert read_one(body, limits).data
        return
    with pytest.raises(BadEvent, match="deep"):
        read_one(body, limits)
    with pytest.raises(BadEvent, match="deep"):
        read_events(BATCH, {}, b"[" + body + b"]", limits)


def test_brackets_in_strings_and_side_by_side_are_not_nesting() -> None:
    for data in (json.dumps(["[{" * 500, '\\"[' * 99]), json.dumps([[{}] * 9] * 99)):
        assert read_one(with_data(data.encode())).data == data.encode()


SOME_VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=8), st.floats(allow_nan=False)
)
SOME_NAMES = st.sampled_from(
    [*LEAST, "time", "subject", "topic", "datacontenttype", "dataschema", "data", "data_base64"]
) | st.sampled_from(["load5", "Bad", "tocsinattributes"])


@given(members=st.dictionaries(SOME_NAMES, SOME_VALUES, max_size=5))
def test_the_quick_way_and_the_careful_way_agree(members: dict[str, object]) -> None:
    body = with_members(**members)

    assert _outcome(reading._structured, body) == _outcome(reading._unusual, body)


def _outcome(read: object, body: bytes) -> object:
    assert callable(read)
    try:
        return read(body, LIMITS)
    except TocsinError as error:
        return type(error)


@given(body=st.binary(max_size=60))
def test_any_bytes_at_all_give_an_event_or_a_clean_error(body: bytes) -> None:
    for content_type in (STRUCTURED, BATCH):
        for whole in (body, with_data(body)):
            with contextlib.suppress(TocsinError):
                read_events(content_type, {}, whole, LIMITS)


SUITE = sorted((HOSTILE / "jsontestsuite/test_parsing").glob("*.json"))


@pytest.mark.skipif(not SUITE, reason="the JSON parsing test suite is not here")
def test_data_is_taken_if_and_only_if_it_is_json() -> None:
    for path in SUITE:
        text = path.read_bytes()
        try:
            event = read_one(with_data(text))
        except TocsinError:
            well_formed = path.name.startswith("y_") and "duplicated_key" not in path.name
            assert not well_formed, path.name
            continue
        if path.name.startswith("n_"):
            assert _is_a_valid_member(text), path.name
        else:
            assert event.data == text.strip(b" \t\r\n"), path.name


@pytest.mark.skipif(not SUITE, reason="the JSON parsing test suite is not here")
@pytest.mark.parametrize("content_type", [STRUCTURED, BATCH])
def test_json_that_is_no_event_is_refused(content_type: str) -> None:
    for path in SUITE:
        try:
            events = read_events(content_type, {}, path.read_bytes(), LIMITS)
        except TocsinError:
            continue
        assert (content_type, events, path.name[:2]) == (BATCH, [], "y_")


def _is_a_valid_member(text: bytes) -> bool:
    """Some broken files become sound when they are put between `"data":` and `}`."""
    try:
        json.loads(with_data(text))
    except (ValueError, RecursionError):
        return False
    return True


NAUGHTY = HOSTILE / "blns/blns.json"


@pytest.mark.skipif(not NAUGHTY.exists(), reason="the list of naughty strings is not here")
@pytest.mark.parametrize("name", ["id", "source", "subject", "topic", "owner", "time", "type"])
def test_naughty_strings_are_kept_exactly_or_refused(name: str) -> None:
    kept = 0
    for text in json.loads(NAUGHTY.read_bytes()):
        try:
            event = read_one(msgspec.json.encode({**LEAST, name: text}))
        except TocsinError:
            continue
        kept += 1
        assert getattr(event, name, event.extensions.get(name)) == text

    assert kept == 0 if name == "time" else kept > 100


CONTEXT_TEXT = st.text(max_size=12) | st.sampled_from(
    ["", " ", "a b", "\x01", "/a", "a/b", "a//b", "text/plain", "2024-05-01T12:00:00Z", "x" * 9000]
)


@given(
    st.builds(
        Event,
        id=CONTEXT_TEXT,
        source=CONTEXT_TEXT,
        type=CONTEXT_TEXT,
        topic=CONTEXT_TEXT,
        time=st.none() | CONTEXT_TEXT,
        subject=st.none() | CONTEXT_TEXT,
        datacontenttype=st.none() | CONTEXT_TEXT,
        dataschema=st.none() | CONTEXT_TEXT,
    )
)
def test_an_event_is_checked_the_same_with_and_without_extensions(event: Event) -> None:
    def verdict(checked: Event) -> bool:
        try:
            check_event(checked, Limits())
        except TocsinError:
            return False
        return True

    extended = msgspec.structs.replace(event, extensions={"any": 1})
    assert verdict(event) is verdict(extended)


@pytest.mark.parametrize(
    "again",
    [
        b'"id":"2"',
        b'"topic":null',
        b'"\\u0069d":"1"',
        b'"data":{"a":1}',
        b'"data":{"a":1,"b":"x"},"data":{"a":1,"b":"x"}',
    ],
)
@pytest.mark.parametrize("count", [1, 2, 64])
def test_a_name_twice_is_found_wherever_it_is_in_a_batch(again: bytes, count: int) -> None:
    fine = with_data(b'{"a":1,"b":"x"}')
    twice = fine[:-1].replace(b'"type"', b'"topic":"t","type"') + b"," + again + b"}"
    body = b"[%b]" % b",".join([fine] * (count - 1) + [twice])

    with pytest.raises(BadEvent, match="comes twice"):
        read_events(BATCH, {}, body, LIMITS)
    with pytest.raises(BadEvent, match="comes twice"):
        read_one(twice)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(['"topic":"t"', '"time":null', '"subject":"s"', '"subject":"\\"s"']),
            st.sampled_from(
                ['"data":{"a":1}', '"data":"x\\"y"', '"data":{"a":1e999}', '"data":[]']
            ),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_the_quick_look_at_names_and_numbers_agrees_with_the_exact_one(
    members: list[tuple[str, ...]],
) -> None:
    head = '{"specversion":"1.0","id":"1","source":"/radar","type":"echo"'
    texts = [",".join([head, *each]).encode() + b"}" for each in members]
    sound = all(b"1e999" not in each for each in texts)

    with contextlib.nullcontext() if sound else pytest.raises(BadEvent, match="too large"):
        read_events(BATCH, {}, b"[%b]" % b",".join(texts), LIMITS)
