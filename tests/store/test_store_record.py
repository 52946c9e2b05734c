"""A row proves that it is what was written."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from store_samples import make_events

from tocsin.event.event import Event
from tocsin.event.stored import Arrival, Stored, repeat_key
from tocsin.event.value import Quantity
from tocsin.store.record import (
    EVENT_COLUMNS,
    LogMarks,
    decode_key,
    decode_row,
    encode_rows,
    is_intact,
    start_bytes,
)

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
TEXT = st.text(max_size=12)
SCALAR = st.booleans() | INT64 | st.floats(allow_nan=False) | TEXT
VALUE = SCALAR | st.builds(Quantity, SCALAR, st.none() | TEXT, st.none() | TEXT)
EVENTS = st.builds(
    Event,
    id=TEXT,
    source=TEXT,
    type=TEXT,
    topic=TEXT,
    time=st.none() | TEXT,
    subject=st.none() | TEXT,
    datacontenttype=st.none() | TEXT,
    dataschema=st.none() | TEXT,
    extensions=st.dictionaries(TEXT, SCALAR, max_size=3),
    attributes=st.dictionaries(TEXT, VALUE, max_size=3),
    data=st.none() | st.binary(max_size=50),
)


ARRIVALS = st.builds(Arrival, TEXT, TEXT, INT64, INT64, TEXT, st.integers(0, 255))


@given(EVENTS, st.integers(0, (1 << 63) - 1), st.none() | ARRIVALS)
def test_a_row_gives_back_the_event(
    event: Event, received_ns: int, arrival: Arrival | None
) -> None:
    stored = Stored(1, received_ns, event, arrival)

    columns, _ = encode_rows([stored], LogMarks())

    assert is_intact(columns)
    assert decode_row(tuple(columns)) == stored
    assert decode_key(tuple(columns)) == repeat_key(event, arrival)


@given(EVENTS, st.data())
def test_a_changed_bit_is_always_seen(event: Event, data: st.DataObject) -> None:
    columns, _ = encode_rows([Stored(1, 5, event)], LogMarks())
    column = data.draw(st.integers(0, EVENT_COLUMNS - 1))
    value = columns[column]

    if isinstance(value, bytes):
        bit = data.draw(st.integers(0, len(value) * 8 - 1))
        changed = bytearray(value)
        changed[bit // 8] ^= 1 << bit % 8
        columns[column] = bytes(changed)
    else:
        columns[column] = value ^ (1 << data.draw(st.integers(0, 31)))

    assert not is_intact(columns)


@given(st.integers(0, EVENT_COLUMNS - 1), st.sampled_from([None, "text", 1.5, b"\x01"]))
def test_a_column_of_the_wrong_kind_is_seen(column: int, value: object) -> None:
    columns: list[object] = list(encode_rows(make_events(1, 1), LogMarks())[0])
    columns[column] = value

    assert not is_intact(columns)


def test_running_totals_join_up() -> None:
    columns, end_bytes = encode_rows(make_events(4, 3), LogMarks(last_seq=3, last_bytes=1000))
    rows = [tuple(columns[at : at + EVENT_COLUMNS]) for at in range(0, len(columns), EVENT_COLUMNS)]

    assert [start_bytes(row) for row in rows] == [1000, rows[0][2], rows[1][2]]
    assert rows[2][2] == end_bytes


@given(st.builds(LogMarks, *[st.integers(0, (1 << 62))] * 4), st.integers(0, 4), st.integers(0, 31))
def test_marks_come_back_or_are_known_to_be_damaged(marks: LogMarks, column: int, bit: int) -> None:
    row = list(marks.row())
    assert LogMarks.from_row(row) == marks

    row[column] ^= 1 << bit

    assert LogMarks.from_row(row) is None
