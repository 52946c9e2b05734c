"""On one connection nothing is stored that came behind an event which could not be."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from frames_peer import Peer, content, event, framed, new_name, producing

from served import Served
from small_disk import small_disk

EVENTS = 500
PADDING = "x" * 40_000  # all of them together are more than the disk has room for


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to mount a small file system")
def test_what_came_behind_an_event_that_was_not_stored_is_not_stored_either() -> None:
    with small_disk(36) as place:
        filler = place / "filler"
        filler.write_bytes(b"x" * (24 << 20))
        env = {"TOCSIN_LOG__FREE_BYTES_MIN": "1"}
        broker = Served(place / "data", "--soap-tcp", "off", env=env)
        try:
            returned = _returned(broker, filler)
        finally:
            broker.process.kill()
            broker.process.wait()

    assert "Success" in returned
    assert "Failure" in returned
    assert "Success" not in returned[returned.index("Failure") :]


def _returned(broker: Served, filler: Path) -> list[str]:
    """What became of events that are sent without waiting. After the first refusal there is room,
    and one more is sent."""
    name = new_name()
    peer, own = producing(broker, name, nonce="run")

    def numbered(number: int) -> bytes:
        return framed(event(own, content(name, host=f"{PADDING}{number}"), f"e{number}"))

    returned: list[str] = []
    with peer:
        stream = b"".join(map(numbered, range(EVENTS)))
        pouring = threading.Thread(target=_pour, args=(peer, stream))
        pouring.start()
        while len(returned) < EVENTS and (said := peer.take()) is not None:
            if said.kind == "EventReply":
                returned.append(said.returned or "")
            if said.returned == "Failure" and filler.exists():
                filler.unlink()
        pouring.join()
        _pour(peer, numbered(EVENTS))
        if (said := peer.take()) is not None:
            returned.append(said.returned or "")
    return returned


def _pour(peer: Peer, stream: bytes) -> None:
    with suppress(OSError):  # it is hung up on
        peer.raw(stream)
