"""The write-ahead log as SQLite left it: which frames are whole, and which are missing for certain.

SQLite takes up the frames of a write-ahead log until the first whose checksum does not fit, and
drops the rest without a word. After a power cut that is right: the last transaction was not
confirmed, and the disk may have kept any part of it. But it does the same for a bit that changed in
the first frame, and then everything after it is gone.

Each frame's checksum goes on from the checksum of the frame before it, so that a frame can be
checked against what its predecessor says of itself, also behind a damaged one. The writer syncs
each transaction before it begins the next. So two transactions in one unbroken row of frames behind
a bad frame prove that the first of them was synced, and with it the bad frame: that is damage. A
single one may be the unconfirmed last, torn; whether it is, the high-water mark knows (`mark.py`).
Frames of an earlier use of the file have other salts, and what a refused transaction left is a row
of its own, with one transaction at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from struct import Struct
from typing import Any

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint32]

HEADER_BYTES = 32
FRAME_HEADER_BYTES = 24
MAGIC = 0x377F0682  # the lowest bit: the words that are summed are big-endian
FRAMES_AT_ONCE = 256
PAGE_BYTES_MIN, PAGE_BYTES_MAX = 512, 65_536
WORD_MASK = 0xFFFFFFFF

_header = Struct(">8I")


@dataclass(frozen=True, slots=True)
class WalScan:
    """What is in a write-ahead log. Frames are counted from 1."""

    bad_frame: int = 0
    """A damaged frame before one that was synced later: what follows it is lost. 0 if none is."""
    commits_after: int = 0
    """Transactions that still show behind it, or that the bad frame itself ends."""
    frames_after: int = 0


@dataclass(frozen=True, slots=True)
class _Frame:
    is_linked: bool
    """Its checksum fits what the frame before it says of itself."""
    ends_commit: bool
    identity: tuple[int, ...]
    """Page, size and sums: SQLite repeats the last frame of a transaction to fill a sector."""


def scan_wal(read: Callable[[int, int], bytes], size_bytes: int) -> WalScan:
    """Look at every frame. `read` gives so many bytes from an offset on."""
    header = read(HEADER_BYTES, 0) if size_bytes > HEADER_BYTES else b""
    if len(header) < HEADER_BYTES:
        return WalScan()
    magic, _, page_bytes, _, *rest = _header.unpack(header)
    order = ">u4" if magic & 1 else "<u4"
    sums = _sums(np.frombuffer(header, order, 6).astype(np.uint32)[None, :])
    is_ours = magic & ~1 == MAGIC and PAGE_BYTES_MIN <= page_bytes <= PAGE_BYTES_MAX
    if not is_ours or page_bytes % 8 or tuple(int(s) for s in sums[0]) != (rest[2], rest[3]):
        return WalScan()  # SQLite takes nothing of it, and there is nothing to compare with
    frames = list(_frames(read, size_bytes, page_bytes, header[16:32], order))
    first_bad = next((n for n, frame in enumerate(frames) if not frame.is_linked), len(frames))
    return _judge(frames, first_bad)


def _judge(frames: list[_Frame], first_bad: int) -> WalScan:
    behind = frames[first_bad + 1 :]
    most = in_row = commits = 0
    before: _Frame | None = None
    for frame in behind:
        if not frame.is_linked:
            in_row, before = 0, None
            continue
        is_repeated = before is not None and before.identity == frame.identity
        if frame.ends_commit and not is_repeated:
            in_row, commits = in_row + 1, commits + 1
            most = max(most, in_row)
        before = frame
    if most < 2:
        return WalScan()
    commits += frames[first_bad].ends_commit
    return WalScan(first_bad + 1, commits, len(behind) + 1)


def _frames(
    read: Callable[[int, int], bytes], size_bytes: int, page_bytes: int, salted: bytes, order: str
) -> Iterator[_Frame]:
    """The frames with the header's salts. `salted`: the header's salts and checksum."""
    salts = np.frombuffer(salted[:8], ">u4").astype(np.uint32)
    stored = np.frombuffer(salted[8:], ">u4").astype(np.uint32)
    frame_bytes = FRAME_HEADER_BYTES + page_bytes
    count = (size_bytes - HEADER_BYTES) // frame_bytes
    for start in range(0, count, FRAMES_AT_ONCE):
        rows = min(FRAMES_AT_ONCE, count - start)
        content = read(rows * frame_bytes, HEADER_BYTES + start * frame_bytes)
        rows = len(content) // frame_bytes
        data = np.frombuffer(content, np.uint8, rows * frame_bytes).reshape(rows, frame_bytes)
        heads = np.ascontiguousarray(data[:, :FRAME_HEADER_BYTES]).view(">u4").astype(np.uint32)
        covered = np.concatenate((data[:, :8], data[:, FRAME_HEADER_BYTES:]), axis=1)
        words = np.ascontiguousarray(covered).view(order).astype(np.uint32)
        before = np.concatenate((stored[None, :], heads[:-1, 4:]))
        stored = heads[-1, 4:] if rows else stored
        own = _sums(words)
        fits = np.all(_sums_onto(own, before, words.shape[1] // 2) == heads[:, 4:], axis=1)
        salted_alike = np.all(heads[:, 2:4] == salts, axis=1)
        for n in range(rows):
            alike = bool(salted_alike[n])
            page, size_pages = int(heads[n, 0]), int(heads[n, 1])
            identity = (page, size_pages, int(own[n, 0]), int(own[n, 1]))
            yield _Frame(alike and bool(fits[n]), alike and size_pages > 0, identity)


# SQLite's sums: for each pair of words a, b: s0 += a + s1, then s1 += b + s0, modulo 2**32. That is
# linear: the sums of a frame are its words times fixed numbers, plus the former sums times others.


def _sums(words: Words) -> Words:
    """The two sums of each row of words, from zero."""
    weights, _ = _weights(words.shape[1] // 2)
    found: Words = words @ weights
    return found


def _sums_onto(own: Words, before: Words, pairs: int) -> Words:
    """The same, from the sums before them."""
    _, power = _weights(pairs)
    found: Words = own + before @ power
    return found


@cache
def _weights(pairs: int) -> tuple[Any, Any]:
    """What each word counts for in either sum, and what the former sums do."""
    weights = np.zeros((2 * pairs, 2), np.uint32)
    m00, m01, m11 = 1, 0, 1  # the matrix of one step, to the power of the steps that follow
    for pair in reversed(range(pairs)):
        weights[2 * pair] = ((m00 + m01) & WORD_MASK, (m01 + m11) & WORD_MASK)
        weights[2 * pair + 1] = (m01, m11)
        m00, m01, m11 = (
            (m00 + m01) & WORD_MASK,
            (m01 + m11) & WORD_MASK,
            (m01 + 2 * m11) & WORD_MASK,
        )
    return weights, np.array([[m00, m01], [m01, m11]], np.uint32)
