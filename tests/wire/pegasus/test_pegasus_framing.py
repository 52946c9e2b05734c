"""A stream of stampede events is cut into records, wherever the network cut it before."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.errors import BadMessage, TooLarge
from tocsin.wire.pegasus.framing import RECORD_BYTES_MAX, RecordSplitter, read_record

BP = b'ts=2012-03-13T12:35:36.000000Z event=stampede.xwf.end xwf.id=u argv="a \\"b\\" c" status=0'

_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_OBJECTS = st.dictionaries(_TEXTS, _TEXTS | st.dictionaries(_TEXTS, _TEXTS, max_size=2), max_size=3)


def cut(*parts: bytes, limit: int = RECORD_BYTES_MAX) -> tuple[list[bytes], RecordSplitter]:
    splitter = RecordSplitter(limit)
    records = [record for part in parts for record in splitter.receive(part)]
    return [*records, *filter(None, [splitter.end()])], splitter


@given(
    objects=st.lists(_OBJECTS, max_size=5),
    between=st.sampled_from([b"", b"\n", b" \r\n"]),
    data=st.data(),
)
def test_where_the_network_cuts_the_stream_makes_no_difference(
    objects: list[dict[str, Any]], between: bytes, data: st.DataObject
) -> None:
    """To files it is written with line breaks in between, to sockets without anything."""
    stream = between.join(json.dumps(each).encode() for each in objects)
    first = data.draw(st.integers(0, len(stream)))
    second = data.draw(st.integers(first, len(stream)))

    records, _ = cut(stream[:first], stream[first:second], stream[second:])

    assert [json.loads(record) for record in records] == objects


def test_the_old_form_is_a_record_a_line_and_both_may_be_mixed() -> None:
    records, _ = cut(BP + b"\n\n" + b'{"a": "}{"}{"b": "\\"}"}' + b"\n" + BP)

    assert records == [BP, b'{"a": "}{"}', b'{"b": "\\"}"}', BP]


def test_byte_by_byte_is_as_good() -> None:
    stream = b'{"a": "\\\\", "b": {"c": "}"}}' + BP + b"\n" + b'{"d": 1}'

    records, _ = cut(*(stream[at : at + 1] for at in range(len(stream))))

    assert records == [b'{"a": "\\\\", "b": {"c": "}"}}', BP, b'{"d": 1}']


def test_an_object_whose_end_was_lost_costs_no_other() -> None:
    records, _ = cut(b'{"a": "lost\n{"b": 2}\n}}\n{"c": 3}')

    assert records == [b'{"a": "lost', b'{"b": 2}', b"}}", b'{"c": 3}']


@pytest.mark.parametrize("chunk", [7, 64, 5_000])
def test_a_record_that_is_too_long_is_left_out_and_the_next_is_read(chunk: int) -> None:
    long = json.dumps({"a": "x" * 2_000, "b": {"c": "}" * 500}}).encode()
    stream = b'{"n": 1}' + long + b'{"n": 2}' + b"y" * 3_000 + b"\n" + b'{"n": 3}'

    records, splitter = cut(
        *(stream[at : at + chunk] for at in range(0, len(stream), chunk)), limit=1_000
    )

    assert records == [b'{"n": 1}', b'{"n": 2}', b'{"n": 3}']
    assert splitter.too_long == 2


def test_ten_megabytes_without_an_end_are_not_kept() -> None:
    splitter = RecordSplitter(1 << 20)

    for _ in range(160):
        assert list(splitter.receive(b'{"a": "' + b"x" * (64 << 10))) == []
        assert len(splitter._buffer) <= (1 << 20) + (128 << 10)

    assert list(splitter.receive(b'"}}\n{"b": 1}'))[-1:] == [b'{"b": 1}']


def test_names_are_those_of_json_in_both_forms() -> None:
    new = read_record(b'{"event": "stampede.xwf.end", "xwf__id": "u", "job_inst.id": 3}')

    assert new == {"event": "stampede.xwf.end", "xwf_id": "u", "job_inst_id": 3}
    assert read_record(BP) == {
        "ts": "2012-03-13T12:35:36.000000Z",
        "event": "stampede.xwf.end",
        "xwf_id": "u",
        "argv": 'a "b" c',
        "status": "0",
    }


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"hello",
        b"{}",
        b'{"event": 7}',
        b'{"event": "x"',
        b'{"a":' * 100_000,
        b'{"event": "\xff"}',
        b"GET / HTTP/1.1",
        b"\x16\x03\x01\x02",
        b" ".join(b"k%d=v" % n for n in range(1_000)),
    ],
    ids=range(10),
)
def test_what_is_no_event_is_refused(record: bytes) -> None:
    with pytest.raises(BadMessage):
        read_record(record)


def test_a_record_over_the_limit_is_refused() -> None:
    with pytest.raises(TooLarge):
        read_record(b'{"event": "' + b"x" * RECORD_BYTES_MAX + b'"}')
