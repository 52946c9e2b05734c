"""Streams without a socket: what a session writes, when it waits, how it ends."""

from __future__ import annotations

import pytest
from wires import Wire, publish, stream, trimmed

from manual_runtime import ManualRuntime
from tocsin.access.decision import DecidedBy, deny_all
from tocsin.errors import NotAllowed
from tocsin.services.streams.sse_session import HEARTBEAT_S


def test_a_stream_says_first_where_to_go_on() -> None:
    runtime, wire = ManualRuntime(), Wire()
    publish(runtime, 1, 2)

    stream(runtime, wire)

    assert wire.taken() == b"retry: 3000\nid: 2\n\n"


def test_a_reader_that_is_full_gets_nothing_until_it_has_read() -> None:
    runtime, wire = ManualRuntime(), Wire()
    opened = stream(runtime, wire)
    wire.is_full = True
    publish(runtime, 1)
    wire.taken()
    publish(runtime, 2)
    assert wire.taken() == b""

    wire.is_full = False
    opened.writable()
    runtime.settle()

    assert b"id: 2\n" in wire.taken()


def test_a_stream_that_begins_in_what_was_trimmed_is_told_how_much_is_gone() -> None:
    runtime, wire = trimmed(through=7, last=9), Wire()

    stream(runtime, wire, b"after=2")
    runtime.settle()

    begin, dropped, *events = wire.taken().split(b"\n\n")
    assert begin.endswith(b"id: 2")
    assert dropped == b'event: dropped\ndata: {"dropped":5}'
    assert [each.partition(b"\n")[0] for each in events] == [b"id: 8", b"id: 9", b""]


def test_a_silent_stream_has_a_heartbeat_and_no_other() -> None:
    runtime, wire = ManualRuntime(), Wire()
    opened = stream(runtime, wire)
    wire.taken()

    assert opened.tick() == pytest.approx(HEARTBEAT_S)
    assert wire.taken() == b""
    runtime.pass_s(HEARTBEAT_S)
    assert opened.tick() == pytest.approx(HEARTBEAT_S)
    assert wire.taken() == b":\n\n"


def test_a_stream_ends_with_a_reason_and_leaves_the_broker() -> None:
    runtime, wire = ManualRuntime(), Wire()
    opened = stream(runtime, wire)

    opened.stop()

    assert wire.taken().endswith(b'event: bye\ndata: {"reason":"the broker is stopping"}\n\n')
    assert wire.is_closed
    assert runtime.streams_open == 0


def test_who_may_not_subscribe_gets_no_stream() -> None:
    runtime, wire = ManualRuntime(access=DecidedBy(deny_all)), Wire()

    with pytest.raises(NotAllowed):
        stream(runtime, wire)

    assert wire.written == b""
    assert runtime.streams_open == 0
