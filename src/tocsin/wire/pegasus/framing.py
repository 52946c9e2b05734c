"""Where one record of a stream ends and the next begins, and what a record says.

A BP record (name=value pairs) is a line. A JSON record ends with its closing brace: behind that,
pegasus-monitord writes a line break to files, and nothing at all to a socket. A line break within
an object can only mean that its end was lost, so the next record begins behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from tocsin.errors import BadMessage, BadRequest, TooLarge
from tocsin.wire.engines.checked_values import read_json

RECORD_BYTES_MAX: Final = 1 << 20  # monitord cuts what jobs printed at 64 KiB
FIELDS_MAX: Final = 200

_OUTSIDE: Final = re.compile(rb'["{}\n]')
_INSIDE: Final = re.compile(rb'["\\\n]')
_BP_FIELD: Final = re.compile(r'([A-Za-z_][\w.\-]*)=("(?:[^"\\]|\\.)*"|[^\s"]*)', re.ASCII)
_BLANKS: Final = b" \t\r\n"
_LEADING_BLANKS: Final = re.compile(rb"[ \t\r\n]+")


class RecordSplitter:
    """Cuts a stream into records. Every byte is looked at once, however the network cut it."""

    def __init__(self, record_bytes_max: int = RECORD_BYTES_MAX) -> None:
        self._bytes_max = record_bytes_max
        self._buffer = bytearray()
        self._seen = 0  # up to here the buffer was looked at
        self._is_object: bool | None = None  # what the record is; None before its first byte
        self._is_dropped = False  # it is too long: only its end is looked for
        self._depth = 0
        self._in_text = False
        self.too_long = 0
        """How many records were given up for their length."""

    def receive(self, data: bytes) -> Iterator[bytes]:
        """The records that are whole by now."""
        self._buffer += data
        while (record := self._next()) is not None:
            if record:
                yield record

    def end(self) -> bytes:
        """What is left when nothing more comes: the last line may lack its line break."""
        return self._cut(len(self._buffer))

    @property
    def waiting(self) -> int:
        """How many bytes of a record have come that is not yet whole."""
        return len(self._buffer)

    @property
    def is_between_records(self) -> bool:
        return self._is_object is None

    def _next(self) -> bytes | None:
        """The next record; empty if it was given up, None if it is not whole."""
        buffer = self._buffer
        if self._is_object is None:
            if (blanks := _LEADING_BLANKS.match(buffer)) is not None:
                del buffer[: blanks.end()]
            if not buffer:
                return None
            self._is_object = buffer[:1] == b"{"
        end = self._end_of_object() if self._is_object else self._end_of_line()
        if end is not None:
            self._is_dropped |= end > self._bytes_max
            return self._cut(end)
        if len(buffer) > self._bytes_max or self._is_dropped:
            self._is_dropped = True
            del buffer[: self._seen]
            self._seen = 0
        return None

    def _cut(self, end: int) -> bytes:
        record = b"" if self._is_dropped else bytes(self._buffer[:end]).strip(_BLANKS)
        self.too_long += self._is_dropped
        del self._buffer[:end]
        self._seen = self._depth = 0
        self._is_object = None
        self._is_dropped = self._in_text = False
        return record

    def _end_of_line(self) -> int | None:
        at = self._buffer.find(b"\n", self._seen)
        self._seen = len(self._buffer)
        return None if at < 0 else at + 1

    def _end_of_object(self) -> int | None:
        buffer = self._buffer
        while True:
            mark = (_INSIDE if self._in_text else _OUTSIDE).search(buffer, self._seen)
            if mark is None:
                self._seen = len(buffer)
                return None
            at, what = mark.start(), mark.group()
            self._seen = at + 1
            if what == b"\n":
                return at + 1
            if what == b"\\":
                if at + 1 == len(buffer):
                    self._seen = at  # what it escapes is yet to come
                    return None
                self._seen = at + 2
            elif what == b'"':
                self._in_text = not self._in_text
            else:
                self._depth += 1 if what == b"{" else -1
                if self._depth <= 0:
                    return at + 1


def read_record(record: bytes) -> dict[str, Any]:
    """The fields of a record, by their names in JSON: `xwf.id` of BP is `xwf_id` there."""
    if len(record) > RECORD_BYTES_MAX:
        raise TooLarge(
            f"a record has {len(record)} bytes", remedy=f"At most {RECORD_BYTES_MAX} are read."
        )
    fields = _json_fields(record) if record.lstrip()[:1] == b"{" else _bp_fields(record)
    if not isinstance(fields.get("event"), str):
        raise _not_stampede("it does not say which event it is")
    return fields


def _json_fields(record: bytes) -> dict[str, Any]:
    try:
        fields = read_json(record)
    except BadRequest as error:
        raise _not_stampede(error.problem) from None
    if not isinstance(fields, dict) or len(fields) > FIELDS_MAX:
        raise _not_stampede("it is not a small JSON object")
    return {_plain(key): value for key, value in fields.items()}


def _bp_fields(record: bytes) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    line = record.decode(errors="replace").lstrip()
    if not _BP_FIELD.match(line):
        # As a request of HTTP, whose path may well have fields in it.
        raise _not_stampede("it begins with neither a brace nor a field")
    for found in _BP_FIELD.finditer(line):
        key, value = found.groups()
        if value.startswith('"'):
            value = value[1:-1].replace('\\"', '"').replace("\\\\", "\\")
        fields[_plain(key)] = value
        if len(fields) > FIELDS_MAX:
            raise _not_stampede("it has too many fields")
    return fields


def _plain(key: str) -> str:
    return key.replace(".", "_").replace("__", "_")


def _not_stampede(problem: str) -> BadMessage:
    return BadMessage(
        f"this is not a stampede event: {problem}",
        remedy="Send what pegasus-monitord writes with -e json or -e bp.",
    )
