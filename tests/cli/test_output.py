"""The small languages of the command line: durations, lines of input, formats, errors."""

from __future__ import annotations

import io
import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.cli.bench.load import histogram, quantile
from tocsin.cli.commands.pub import guess_type
from tocsin.cli.durations import brief, iso_duration, seconds
from tocsin.cli.event_lines import brief_lines, format_lines, json_lines, whole_lines
from tocsin.cli.failure import error_text, exit_code
from tocsin.cli.pub.line_events import Line, LineEvents, blocks
from tocsin.cli.render import fields, safe
from tocsin.client.transport.sse import Message
from tocsin.errors import BadEvent, BadFilter, BadSetting, BrokerRefused, CannotReachBroker
from tocsin.event.instant import iso_duration_ns

EVENT = (
    b'{"specversion":"1.0","id":"7","source":"/s","type":"t","topic":"a/b",'
    b'"time":"2026-03-01T12:00:00Z","data":{"load5": 7,"deep":{"x":1}}}'
)
DEFAULTS = {"source": "/me", "type": "t", "topic": "given/topic", "subject": None}


@pytest.mark.parametrize(
    ("text", "expected"),
    [("90", 90), ("2.5", 2.5), ("10m", 600), ("1h30m", 5400), ("7d", 604800), ("PT1H", 3600)],
)
def test_a_duration_is_read_as_people_write_it(text: str, expected: float) -> None:
    assert seconds(text) == expected
    assert iso_duration_ns(iso_duration(text)) == expected * 10**9


@pytest.mark.parametrize("text", ["", "P", "PT", "ten", "5x", "-1", "1e9", "9" * 20])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(BadSetting):
        seconds(text)


def test_a_long_time_is_shown_in_few_characters() -> None:
    assert [brief(0.25), brief(90), brief(7200), brief(10 * 86400)] == ["250ms", "90s", "2h", "10d"]


def read_through_pipe(data: bytes) -> list[Line]:
    receiving, sending = os.pipe()
    child = os.fork()
    if not child:
        with os.fdopen(sending, "wb") as pipe:
            pipe.write(data)
        os._exit(0)
    os.close(sending)
    with os.fdopen(receiving, "rb") as source:
        lines = [line for block in blocks(source) for line in block]
    os.waitpid(child, 0)
    return lines


def test_lines_are_numbered_as_an_editor_numbers_them() -> None:
    assert read_through_pipe(b"one\n\n  \nfour\nno newline at the end") == [
        Line(1, b"one"),
        Line(4, b"four"),
        Line(5, b"no newline at the end"),
    ]


def test_many_lines_come_in_order_and_in_batches() -> None:
    lines = read_through_pipe(b"".join(b"line %d\n" % number for number in range(100_000)))

    assert [line.text for line in lines] == [b"line %d" % number for number in range(100_000)]
    assert lines[-1].number == 100_000


def test_a_cloud_event_on_a_line_is_passed_on_to_the_byte() -> None:
    assert LineEvents(DEFAULTS).event(EVENT + b"\r") == EVENT


def test_a_cloud_event_that_lacks_members_gets_the_given_ones() -> None:
    event = json.loads(LineEvents(DEFAULTS).event(b'{"specversion":"1.0","type":"mine","data":1}'))

    assert (event["type"], event["source"], event["topic"]) == ("mine", "/me", "given/topic")
    assert event["id"]


@pytest.mark.parametrize(
    ("line", "data"),
    [(b'{"load5": 7}', {"load5": 7}), (b"[1,2]", [1, 2]), (b"12", 12), (b"plain", "plain")],
)
def test_any_other_line_is_the_data_of_an_event(line: bytes, data: object) -> None:
    event = json.loads(LineEvents(DEFAULTS).event(line))

    assert event["data"] == data
    assert event["topic"] == "given/topic"


@pytest.mark.parametrize("line", [b'{"load5": 7', b"[1,]", b'{"x": NaN}', b"\xff"])
def test_a_line_that_is_neither_sound_json_nor_text_is_refused(line: bytes) -> None:
    with pytest.raises(BadEvent):
        LineEvents(DEFAULTS).event(line)


@pytest.mark.parametrize("line", [b"not json", b"12", b'{"load5": 7}', b"[1,2]", b'"text"'])
def test_without_a_topic_a_line_that_is_no_event_is_refused(line: bytes) -> None:
    with pytest.raises(BadEvent, match="is not an event"):
        LineEvents({"source": "/me", "type": "t", "topic": None}).event(line)


def test_without_a_topic_an_event_on_a_line_is_passed_on_to_the_byte() -> None:
    assert LineEvents({"source": "/me", "type": "t"}).event(EVENT) == EVENT


@given(text=st.text(max_size=40))
def test_every_line_of_text_becomes_an_event_or_is_refused(text: str) -> None:
    line = text.replace("\n", " ").encode("utf-8", "surrogatepass")
    try:
        event = LineEvents(DEFAULTS).event(line)
    except BadEvent:
        return
    assert json.loads(event)["specversion"]


def test_undeclared_data_is_json_if_it_can_be_then_text_then_bytes() -> None:
    assert guess_type(b'{"a":1}') == "application/json"
    assert guess_type(b"hello") == "text/plain"
    assert guess_type(b"\xff\xfe") == "application/octet-stream"


def test_json_lines_are_the_events_as_they_came_one_a_line() -> None:
    assert json_lines([Message("", 1, EVENT), Message("", 2, b'{"a":\n1}')]) == (
        EVENT + b'\n{"a": 1}\n'
    )


def test_a_brief_line_has_time_topic_and_data() -> None:
    line = brief_lines([Message("", 1, EVENT)])

    assert line == '2026-03-01T12:00:00Z a/b {"load5": 7,"deep":{"x":1}}\n'


def test_a_whole_event_says_its_place_in_the_log() -> None:
    text = whole_lines([Message("", 12, EVENT)])

    assert text.startswith("#12\n{\n")
    assert '"load5": 7' in text


def test_a_format_names_members_of_the_event_and_of_its_data() -> None:
    lines = format_lines(r"{seq}\t{topic}\t{load5}\t{nothing?}|{data}")

    assert lines([Message("", 3, EVENT)]) == '3\ta/b\t7\t|{"load5":7,"deep":{"x":1}}\n'


@pytest.mark.parametrize("data", [b"null", b"true", b"[1]", b'{"x":{}}', b'"t"', b"7", b"1.5"])
def test_a_format_holds_for_whatever_the_data_is(data: bytes) -> None:
    lines = format_lines("{data:>9s}|{x?:<3}|{id:^3}")

    text = lines([Message("", 1, b'{"id":"7","data":%b}' % data), Message("", 2, b'{"id":"8"}')])

    assert text.endswith("         |   | 8 \n")
    assert text.startswith(data.decode().strip('"').rjust(9) if data != b"null" else " " * 9)


def test_a_field_that_the_first_event_lacks_is_an_error_that_names_those_it_has() -> None:
    lines = format_lines("{topic} {laod5}")

    with pytest.raises(BadSetting, match="no field 'laod5'") as caught:
        lines([Message("", 3, EVENT)])

    assert "Did you mean {load5}? It has: data, deep, id, load5," in caught.value.remedy
    assert "{laod5?}" in caught.value.remedy


def test_a_later_event_may_lack_a_field_and_every_event_may_lack_a_member() -> None:
    lines = format_lines("{subject}|{load5}")

    assert lines([Message("", 1, EVENT), Message("", 2, b'{"id":"8"}')]) == "|7\n|\n"


@pytest.mark.parametrize("template", ["{", "{0}", "{id.__class__}", "{data[x]}", "{}", "{id:z}"])
def test_a_format_that_reaches_further_is_refused(template: str) -> None:
    with pytest.raises(BadSetting):
        format_lines(template)


@given(text=st.text(max_size=50))
def test_nothing_shown_on_a_terminal_can_command_it(text: str) -> None:
    shown = safe(text)

    assert not any((ord(c) < 32 and c not in "\t\n") or 127 <= ord(c) < 160 for c in shown)
    assert not set(shown) & set("\u202e\u2066\u200f")


def test_a_bad_filter_is_shown_with_a_mark_under_it() -> None:
    error = BadFilter("there is no value", remedy="Add one.", text="load5 >= ", position=9)

    assert error_text(error) == (
        "tocsin: there is no value [T104]\n  load5 >= \n           ^\nAdd one."
    )


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [("T302", 404, 5), ("T307", 403, 4), ("T104", 400, 1), ("T999", 403, 4), (None, 404, 5)],
)
def test_a_refusal_has_the_exit_code_of_the_brokers_error(code, status, expected) -> None:
    refused = BrokerRefused("no", remedy="", status=status, broker_code=code)

    assert exit_code(refused) == expected
    assert exit_code(CannotReachBroker("gone", remedy="")) == 3


def test_a_histogram_counts_every_value() -> None:
    values = [0.0001, 0.0003, 0.001, 0.001, 2.0]

    bars = histogram(values)

    assert sum(int(bar.rsplit(" ", 1)[1]) for bar in bars) == len(values)
    assert quantile(values, 0.5) == 0.001
    assert histogram([]) == []


def test_an_empty_input_has_no_lines() -> None:
    with open(os.devnull, "rb") as nothing:
        assert list(blocks(io.BufferedReader(nothing.raw))) == []


def test_what_is_shown_of_one_thing_is_words_and_not_python(capsys) -> None:
    config = {"batch": 1, "secret": False, "attempts": None}
    fields([("lagging", True), ("config", config), ("reached", ["a", "b"]), ("sinks", [])])

    lines = capsys.readouterr().out.splitlines()
    assert [line.split(None, 1)[1] for line in lines] == [
        "yes",
        "batch 1, secret no",
        "a, b",
        "none",
    ]
