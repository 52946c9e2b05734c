"""How things become rows, and how a row proves that it is what was written. Pure.

Every row carries a CRC-32 over all its other columns, so that a changed bit is never served. A
record begins with a byte for its format; the rest is the event as a MessagePack array. One that
came from another broker has a second format: how it came is before it, with a length of two bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct
from struct import error as StructError
from typing import Self
from zlib import crc32

import msgspec

from tocsin.errors import BadEvent
from tocsin.event.event import Event
from tocsin.event.stored import Arrival, RepeatKey, Stored

FORMAT = b"\x01"
ARRIVAL_FORMAT = b"\x02"
ARRIVAL_HEAD = Struct(">cH")  # the format, and the length of the arrival
ROW_BYTES = 32  # what SQLite adds to a record: cell and row header, four integers, page slack

EVENT_COLUMNS = 5
Row = tuple[int, int, int, int, bytes]  # seq, received_ns, end_bytes, crc, record

_pack_place = Struct(">qqq").pack
_pack_marks = Struct(">qqqqq").pack
_pack_old_marks = Struct(">qqqq").pack  # before commits were counted
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Event).decode
_decode_arrival = msgspec.msgpack.Decoder(Arrival).decode


class _EventFront(msgspec.Struct, frozen=True, array_like=True):
    """Of a stored event: enough to know a repeat, without reading the rest."""

    id: str
    source: str


_decode_front = msgspec.msgpack.Decoder(_EventFront).decode


@dataclass(frozen=True, slots=True)
class LogMarks:
    """Where the log begins and ends. The events it holds are those in (trimmed_to, last_seq].

    The two byte counts are running totals since the log was made, so their difference is the size.
    Commits are counted so that a log that lost one is known (see `mark.py`).
    """

    trimmed_to: int = 0
    trimmed_bytes: int = 0
    last_seq: int = 0
    last_bytes: int = 0
    commits: int = 0

    def row(self) -> tuple[int, int, int, int, int, int]:
        columns = (self.trimmed_to, self.trimmed_bytes, self.last_seq, self.last_bytes)
        return (*columns, self.commits, crc32(_pack_marks(*columns, self.commits)))

    def old_row(self) -> tuple[int, int, int, int, int]:
        """As it was before commits were counted."""
        columns = (self.trimmed_to, self.trimmed_bytes, self.last_seq, self.last_bytes)
        return (*columns, crc32(_pack_old_marks(*columns)))

    @classmethod
    def from_row(cls, row: Sequence[object]) -> Self | None:
        """The marks, or None if the row is not what was written."""
        try:
            marks = cls(*row[:-1])  # type: ignore[arg-type]
            written = marks.row() if len(row) == len(marks.row()) else marks.old_row()
            return marks if written == tuple(row) else None
        except (StructError, TypeError):
            return None


def encode_rows(events: Sequence[Stored], marks: LogMarks) -> tuple[list[int | bytes], int]:
    """The rows of events that go on after `marks`, columns laid end to end, and the new total.

    Flat, because one statement takes many rows at once.
    """
    columns: list[int | bytes] = []
    seq, end_bytes = marks.last_seq, marks.last_bytes
    for stored in events:
        seq += 1
        assert stored.seq == seq, "the events of a batch go on where the log ends"
        record = encode_event(stored.event)
        if stored.arrival is not None:
            record = _with_arrival(stored.arrival, record)
        received_ns = stored.received_ns
        end_bytes += len(record) + ROW_BYTES
        crc = crc32(record, crc32(_pack_place(seq, received_ns, end_bytes)))
        columns += (seq, received_ns, end_bytes, crc, record)
    return columns, end_bytes


def encode_event(event: Event) -> bytes:
    try:
        return FORMAT + _encode(event)
    except (OverflowError, UnicodeEncodeError) as error:
        raise BadEvent(
            f"event {event.id[:80]!a} has a value that cannot be stored: {error}",
            remedy="Use whole numbers of at most 64 bits, and valid Unicode.",
        ) from error


def is_intact(row: Sequence[object]) -> bool:
    """True if the row is to the bit what `encode_rows` made."""
    try:
        seq, received_ns, end_bytes, crc, record = row
        if type(record) is not bytes:
            return False
        return crc == crc32(record, crc32(_pack_place(seq, received_ns, end_bytes)))
    except StructError:  # a damaged header turns a number into text or nothing
        return False


def decode_row(row: Row) -> Stored:
    """The event of an intact row."""
    record = row[4]
    if record[:1] == FORMAT:
        return Stored(row[0], row[1], _decode(memoryview(record)[1:]))
    event_at = _event_at(record)
    arrival = _decode_arrival(memoryview(record)[ARRIVAL_HEAD.size : event_at])
    return Stored(row[0], row[1], _decode(memoryview(record)[event_at:]), arrival)


def decode_key(row: Row) -> RepeatKey:
    """What the event of an intact row is known by (see `repeat_key`)."""
    record = row[4]
    event_at = _event_at(record)
    if record[:1] == FORMAT:
        front = _decode_front(memoryview(record)[event_at:])
        return front.source, front.id
    arrival = _decode_arrival(memoryview(record)[ARRIVAL_HEAD.size : event_at])
    return arrival.origin_log, arrival.number


def _event_at(record: bytes) -> int:
    """Where in the record the event begins."""
    if record[:1] == FORMAT:
        return 1
    form, size = ARRIVAL_HEAD.unpack_from(record)
    assert form == ARRIVAL_FORMAT
    return int(ARRIVAL_HEAD.size + size)


def _with_arrival(arrival: Arrival, record: bytes) -> bytes:
    how = _encode(arrival)
    return ARRIVAL_HEAD.pack(ARRIVAL_FORMAT, len(how)) + how + record[len(FORMAT) :]


def start_bytes(row: Row) -> int:
    """The running total before this row."""
    return row[2] - len(row[4]) - ROW_BYTES


def seal(name: str, content: bytes) -> int:
    """The checksum of the row of a subscription, dead letter or kept value."""
    return crc32(content, crc32(name.encode()))


def seal_cursor(name: str, seq: int) -> int:
    return seal(name, seq.to_bytes(8, "big", signed=True))
