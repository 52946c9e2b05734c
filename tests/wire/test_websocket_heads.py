"""A WebSocket message is judged by what its frames announce, wherever the network cut them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.wire.websocket import FrameHeads

TEXT, MORE, PING, FINAL = 1, 0, 9, 0x80


def frame(opcode: int, size: int, payload: bytes = b"", *, masked: bool = True) -> bytes:
    mask_bit = 0x80 if masked else 0
    if size <= 125:
        head = bytes((opcode, mask_bit | size))
    elif size <= 0xFFFF:
        head = bytes((opcode, mask_bit | 126)) + size.to_bytes(2, "big")
    else:
        head = bytes((opcode, mask_bit | 127)) + size.to_bytes(8, "big")
    return head + (bytes(4) if masked else b"") + payload


def judged(data: bytes, bytes_max: int, piece: int) -> bool:
    heads = FrameHeads(bytes_max)
    return any(heads.announces_too_much(data[at : at + piece]) for at in range(0, len(data), piece))


@pytest.mark.parametrize("size", [1001, 70_000, 2**62, 2**63 - 1])
@pytest.mark.parametrize("piece", [1, 3, 1000])
def test_a_frame_is_refused_by_its_head(size: int, piece: int) -> None:
    assert judged(frame(FINAL | TEXT, size), 1000, piece)


@given(
    sizes=st.lists(st.sampled_from([0, 1, 125, 126, 500, 1000]), max_size=6),
    piece=st.integers(1, 700),
    masked=st.booleans(),
)
def test_messages_within_the_limit_pass_however_they_are_cut(
    sizes: list[int], piece: int, masked: bool
) -> None:
    sent = b"".join(frame(FINAL | TEXT, each, b"\xff" * each, masked=masked) for each in sizes)

    assert not judged(sent, 1000, piece)


@given(piece=st.integers(1, 700))
def test_the_frames_of_one_message_count_together(piece: int) -> None:
    first = frame(TEXT, 600, b"x" * 600)
    ping = frame(FINAL | PING, 100, b"x" * 100)
    rest = frame(FINAL | MORE, 400, b"x" * 400)

    assert not judged(first + ping + rest + first + rest, 1000, piece)
    assert judged(first + ping + frame(FINAL | MORE, 401), 1000, piece)
