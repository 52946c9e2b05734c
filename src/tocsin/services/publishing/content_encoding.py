"""Bodies that came compressed, unpacked up to a limit: a bomb is refused before it goes off."""

from __future__ import annotations

import zlib

from tocsin.errors import BadMediaType, BadRequest, TooLarge

# What zlib.decompressobj takes for these: 16 + 15 reads the gzip frame, 15 the zlib one.
_WINDOW_BITS = {b"gzip": 31, b"x-gzip": 31, b"deflate": 15}
_MEMBERS_MAX = 64  # gzip files may be joined; nobody joins many into one request


def decoded(body: bytes, coding: bytes, bytes_max: int) -> bytes:
    """The body as it was before it was compressed."""
    coding = coding.strip().lower()
    if coding in (b"", b"identity"):
        return body
    if coding not in _WINDOW_BITS:
        raise BadMediaType(
            f"the Content-Encoding {coding[:40].decode('latin-1')!r} is not supported",
            remedy="Send the body plain, or compressed with gzip or deflate.",
        )
    parts: list[bytes] = []
    room = bytes_max
    for _ in range(_MEMBERS_MAX):
        part, body = _one_member(body, _WINDOW_BITS[coding], room)
        parts.append(part)
        room -= len(part)
        if not body:
            return b"".join(parts)
    raise _damaged("it has too many parts")


def _one_member(body: bytes, window_bits: int, room: int) -> tuple[bytes, bytes]:
    unpacker = zlib.decompressobj(window_bits)
    try:
        part = unpacker.decompress(body, room + 1)
    except zlib.error as error:
        raise _damaged(str(error)) from None
    if len(part) > room:
        raise TooLarge(
            "the body of the request is over its limit once unpacked",
            remedy="Send less at a time, for instance smaller batches.",
        )
    if not unpacker.eof:
        raise _damaged("it ends early")
    return part, unpacker.unused_data


def _damaged(problem: str) -> BadRequest:
    return BadRequest(
        f"the compressed body cannot be unpacked: {problem}",
        remedy="Check that the body is what its Content-Encoding says.",
    )
