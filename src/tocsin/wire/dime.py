"""DIME: messages cut into records, as Microsoft's WSE frames SOAP on a TCP connection.

A record is twelve bytes of head, then options, id, type and data, each filled up to four bytes. A
message is the records from one with the flag MB (begin) to one with ME (end); a part of it may be
spread over several records, all but the last with the flag CF (a chunk follows). The decoder takes
the stream cut anywhere. It judges a record by its head, before it keeps any of what follows.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from tocsin.errors import BadFrame
from tocsin.wire.soap.names import SOAP11, SOAP12

VERSION: Final = 1
MESSAGE_BEGIN: Final = 0b100
MESSAGE_END: Final = 0b010
CHUNK_FOLLOWS: Final = 0b001
UNCHANGED: Final = 0  # the type of a chunk: that of the first of its part
NONE: Final = 4  # the type of a record without content, such as the one that only says ME
HEAD: Final = struct.Struct(">BBHHHI")

MESSAGE_BYTES_MAX: Final = 16 << 20  # the same as a body by HTTP
RECORDS_MAX: Final = 10_000  # of one message; a sender that cuts 16 MB in chunks of 2 KB is served
FIELD_BYTES_MAX: Final = 4_096  # of options, id and type; a type is a URI of forty bytes

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
WSE_ID: Final = bytes(4)  # what WSE writes for the id of an envelope

REMEDY: Final = "Send DIME version 1, as WSE does. HTTP has another port."


class TypeFormat(IntEnum):
    """What the type of a part is."""

    MEDIA_TYPE = 1
    URI = 2
    UNKNOWN = 3


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that a message carries, put together from its chunks."""

    format: TypeFormat
    type: bytes
    id: bytes
    data: bytes


@dataclass(frozen=True, slots=True)
class Message:
    """The first part is the SOAP envelope; the others are attached to it."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class DimeLimits:
    """How much one message may be."""

    message_bytes_max: int = MESSAGE_BYTES_MAX
    records_max: int = RECORDS_MAX
    field_bytes_max: int = FIELD_BYTES_MAX


@dataclass(frozen=True, slots=True)
class _Head:
    flags: int
    format: int
    options_bytes: int
    id_bytes: int
    type_bytes: int
    data_bytes: int

    @property
    def record_bytes(self) -> int:
        lengths = (self.options_bytes, self.id_bytes, self.type_bytes, self.data_bytes)
        return HEAD.size + sum(map(_filled, lengths))


class Decoder:
    """A stream of messages. Give it what came with `receive`, take them with `next_message`."""

    def __init__(self, limits: DimeLimits | None = None) -> None:
        self._limits = limits or DimeLimits()
        self._buffer = bytearray()
        self._start = 0  # of what is not read yet
        self._head: _Head | None = None  # of the record that is not whole yet
        self._inside = False
        self._parts: list[Part] = []
        self._first: _Head | None = None  # of the part whose chunks are still coming
        self._type = self._id = b""
        self._chunks: list[bytes] = []
        self._records = 0
        self._data_bytes = 0
        self._failure: BadFrame | None = None

    @property
    def is_between_messages(self) -> bool:
        """True if nothing of a further message has come."""
        return not self._inside and self._start == len(self._buffer)

    @property
    def held_bytes(self) -> int:
        """How much has come of messages that are not taken yet."""
        return len(self._buffer) - self._start + self._data_bytes

    def receive(self, data: bytes) -> None:
        """More of the stream."""
        if self._failure is None:
            del self._buffer[: self._start]
            self._start = 0
            self._buffer += data

    def next_message(self) -> Message | None:
        """The next message that is whole, if any; raises BadFrame, and then for ever."""
        if self._failure is not None:
            raise _again(self._failure)
        try:
            return self._next()
        except BadFrame as error:
            self._failure = _again(error)
            self._chunks.clear()
            self._parts.clear()
            self._buffer.clear()
            self._start = 0
            raise

    def end(self) -> None:
        """The stream ended; raises BadFrame if that was within a message."""
        if self._failure is None and not self.is_between_messages:
            raise BadFrame(
                "the connection ended in the middle of a message",
                remedy="Send every message to its end.",
            )

    def _next(self) -> Message | None:
        while True:
            if self._head is None:
                if len(self._buffer) - self._start < HEAD.size:
                    self._check_first_byte()
                    return None
                self._head = self._checked(_read_head(self._buffer, self._start))
            head = self._head
            if len(self._buffer) - self._start < head.record_bytes:
                return None
            self._head = None
            message = self._take(head)
            if message is not None:
                return message

    def _check_first_byte(self) -> None:
        # Who speaks another protocol waits for an answer, and may never send twelve bytes.
        if self._start < len(self._buffer):
            _check_version(self._buffer[self._start])

    def _checked(self, head: _Head) -> _Head:
        """The head, if such a record may come here."""
        _check_order(head, inside=self._inside, in_chunks=self._first is not None)
        _check_lengths(head)
        limits = self._limits
        fields = (head.options_bytes, head.id_bytes, head.type_bytes)
        if max(fields) > limits.field_bytes_max:
            raise _too_much("a field of the record's head", max(fields), limits.field_bytes_max)
        if self._data_bytes + head.data_bytes > limits.message_bytes_max:
            size = self._data_bytes + head.data_bytes
            raise _too_much("the message", size, limits.message_bytes_max)
        if self._records >= limits.records_max:
            raise BadFrame(
                f"the message has more than {limits.records_max} records",
                remedy="Send it in fewer, larger records.",
            )
        return head

    def _take(self, head: _Head) -> Message | None:
        at = self._start + HEAD.size + _filled(head.options_bytes)
        id_at, type_at = at, at + _filled(head.id_bytes)
        data_at = type_at + _filled(head.type_bytes)
        data = bytes(memoryview(self._buffer)[data_at : data_at + head.data_bytes])
        if head.format != UNCHANGED:
            self._first = head
            self._id = bytes(self._buffer[id_at : id_at + head.id_bytes])
            self._type = bytes(self._buffer[type_at : type_at + head.type_bytes])
        self._start += head.record_bytes
        self._inside = True
        self._records += 1
        self._data_bytes += head.data_bytes + head.id_bytes + head.type_bytes
        self._chunks.append(data)
        if not head.flags & CHUNK_FOLLOWS:
            self._end_part()
        return self._end_message() if head.flags & MESSAGE_END else None

    def _end_part(self) -> None:
        first = self._first
        assert first is not None
        if first.format != NONE:
            data = b"".join(self._chunks)
            self._parts.append(Part(TypeFormat(first.format), self._type, self._id, data))
        self._first = None
        self._chunks.clear()

    def _end_message(self) -> Message:
        message = Message(tuple(self._parts))
        self._parts.clear()
        self._inside = False
        self._records = self._data_bytes = 0
        return message


def _again(error: BadFrame) -> BadFrame:
    """The same without a traceback, which has the decoder and all that it holds."""
    return BadFrame(error.problem, remedy=error.remedy)


def encode(
    message: Message, *, chunk_bytes_max: int | None = None, terminated: bool = False
) -> bytes:
    """The records of a message: one for a part, or more if its data is over `chunk_bytes_max`.

    `terminated`: the end is said by a record of its own, as WSE also does.
    """
    records: list[tuple[int, int, bytes, bytes, bytes]] = []  # flags, format, id, type, data
    for part in message.parts:
        step = chunk_bytes_max or max(1, len(part.data))
        pieces = [part.data[at : at + step] for at in range(0, len(part.data), step)] or [b""]
        more = CHUNK_FOLLOWS if len(pieces) > 1 else 0
        records.append((more, part.format, part.id, part.type, pieces[0]))
        records += [(CHUNK_FOLLOWS, UNCHANGED, b"", b"", piece) for piece in pieces[1:-1]]
        records += [(0, UNCHANGED, b"", b"", piece) for piece in pieces[1:][-1:]]
    if terminated or not records:
        records.append((0, NONE, b"", b"", b""))
    last = len(records) - 1
    written: list[bytes] = []
    for index, (flags, kind, id_, type_, data) in enumerate(records):
        begin = MESSAGE_BEGIN if index == 0 else 0
        end = MESSAGE_END if index == last else 0
        written.append(_record(flags | begin | end, kind, id_, type_, data))
    return b"".join(written)


def envelope_message(soap: str, envelope: bytes) -> bytes:
    """An envelope of SOAP "1.1" or "1.2" as a message of one record, the way WSE writes it."""
    kind = (SOAP12 if soap == "1.2" else SOAP11).encode("ascii")
    return _record(MESSAGE_BEGIN | MESSAGE_END, TypeFormat.URI, WSE_ID, kind, envelope)


_SOAP_TYPES: Final = {
    (TypeFormat.URI, SOAP11.encode()): "1.1",
    (TypeFormat.URI, SOAP12.encode()): "1.2",
    (TypeFormat.MEDIA_TYPE, b"text/xml"): "1.1",
    (TypeFormat.MEDIA_TYPE, b"application/soap+xml"): "1.2",
}


def read_envelope_message(message: Message) -> tuple[str, bytes]:
    """The SOAP version that a message announces, and its envelope; raises BadFrame."""
    if len(message.parts) != 1:
        raise BadFrame(
            f"the message has {len(message.parts)} parts",
            remedy="Send one SOAP envelope in each, without attachments.",
        )
    part = message.parts[0]
    soap = _SOAP_TYPES.get((part.format, part.type.partition(b";")[0].strip().lower()))
    if soap is None:
        raise BadFrame(
            f"the message is of the type {part.type[:100]!r}",
            remedy=f"The type of a SOAP envelope is its namespace, {SOAP11} or {SOAP12}.",
        )
    return soap, without_filling(part.data)


def without_filling(data: bytes) -> bytes:
    """The XML in what Mono sends: a whole buffer, with a mark before the text and NULs behind."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        # UTF-16: half of every character is a NUL, that of the last one too.
        size = len(data.rstrip(b"\0"))
        return data[: size + size % 2]
    return data.removeprefix(BYTE_ORDER_MARK).rstrip(b"\0")


def _record(flags: int, kind: int, id_: bytes, type_: bytes, data: bytes) -> bytes:
    head = HEAD.pack(VERSION << 3 | flags, kind << 4, 0, len(id_), len(type_), len(data))
    filled = (bytes_ + bytes(-len(bytes_) % 4) for bytes_ in (id_, type_))
    return b"".join((head, *filled, data, bytes(-len(data) % 4)))


def _filled(size: int) -> int:
    return size + -size % 4


def _read_head(buffer: bytearray, start: int) -> _Head:
    first, second, options, id_, type_, data = HEAD.unpack_from(buffer, start)
    _check_version(first)
    if second & 0b1111:
        raise BadFrame("a reserved bit of a record's head is set", remedy=REMEDY)
    return _Head(first & 0b111, second >> 4, options, id_, type_, data)


def _check_version(first: int) -> None:
    if first >> 3 != VERSION:
        raise BadFrame(
            f"a record begins with the byte 0x{first:02x}, which is not DIME", remedy=REMEDY
        )


def _check_order(head: _Head, *, inside: bool, in_chunks: bool) -> None:
    flags = head.flags
    if bool(flags & MESSAGE_BEGIN) == inside:
        raise _bad("begins a message within another" if inside else "does not begin a message")
    if (head.format == UNCHANGED) != in_chunks:
        raise _bad(
            "is not a chunk though one must follow" if in_chunks else "is a chunk of nothing"
        )
    if flags & CHUNK_FOLLOWS and flags & MESSAGE_END:
        raise _bad("ends the message though a chunk must follow")
    if flags & CHUNK_FOLLOWS and head.format == NONE:
        raise _bad("has no content and says that more of it follows")


def _check_lengths(head: _Head) -> None:
    if head.format > NONE:
        raise _bad(f"has the unknown type format {head.format}")
    if head.format in (UNCHANGED, TypeFormat.UNKNOWN, NONE) and head.type_bytes:
        raise _bad("has a type though its format says none")
    if head.format == UNCHANGED and head.id_bytes:
        raise _bad("is a chunk with an id of its own")
    if head.format == NONE and (head.data_bytes or head.id_bytes):
        raise _bad("has content though its format says none")
    if head.format in (TypeFormat.MEDIA_TYPE, TypeFormat.URI) and not head.type_bytes:
        raise _bad("has no type though its format says one")


def _bad(problem: str) -> BadFrame:
    return BadFrame(f"a record {problem}", remedy=REMEDY)


def _too_much(what: str, size: int, size_max: int) -> BadFrame:
    return BadFrame(f"{what} has {size} bytes", remedy=f"At most {size_max} are taken.")
