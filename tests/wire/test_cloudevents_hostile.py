"""Reading CloudEvents: deep, strange and broken JSON, and two ways to read that have to agree."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import msgspec
import pytest
from cloudevents_read import (
    BATCH,
    LEAST,
    LIMITS,
    STRUCTURED,
    read_one,
    with_data,
    with_members,
)
from hypothesis import given
from hypothesis import strategies as st

from tocsin.errors import BadEvent, TocsinError
from tocsin.event.event import Event
from tocsin.wire.cloudevents import Limits, read_events
from tocsin.wire.cloudevents import read as reading
from tocsin.wire.cloudevents.attributes import check_event

HOSTILE = Path(__file__).parents[2] / "../shared/data/hostile"


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
