"""Links on sockets: bytes arrive in order, an end is told once, nobody takes more than a share."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st
from link_pair import Remembering, Side, closing, play

from tocsin.config import OverlaySettings
from tocsin.drivers.link.frame_count import FrameCount
from tocsin.errors import BadSetting, PeerFailed
from tocsin.wire.framing import FrameSplitter, framed
from waiting import async_wait_until

MB = 1 << 20


@given(bodies=st.lists(st.binary(min_size=1, max_size=20)), data=st.data())
def test_what_waits_is_counted_as_the_reader_counts_it(
    bodies: list[bytes], data: st.DataObject
) -> None:
    begun = data.draw(st.sampled_from([b"", b"\0\0", b"\0\0\0\7x"]))
    stream = b"".join(map(framed, bodies)) + begun
    splitter, count = FrameSplitter(100), FrameCount()

    while stream:
        cut = data.draw(st.integers(1, len(stream)))
        splitter.split(stream[:cut])
        count.receive(stream[:cut])
        stream = stream[cut:]

        assert count.waiting == splitter.waiting


@asynccontextmanager
async def linked(there: Side, here: Side) -> AsyncIterator[tuple[Remembering, Remembering]]:
    """Two sides, the first listening, and their receivers."""
    async with closing(here, there):
        outgoing = await here.connect(await there.listen())
        await async_wait_until(lambda: there.receivers, "the connection is accepted")
        yield there.receivers[0], outgoing


def test_what_is_written_arrives_in_order_both_ways_and_both_ends_hear_of_the_end_once() -> None:
    async def scene() -> None:
        async with linked(Side(), Side()) as (accepted, outgoing):
            sent = [b"%d," % number for number in range(10_000)]
            for each in sent:
                outgoing.transport.write(each)
            accepted.transport.write(b"hello")
            await async_wait_until(
                lambda: len(accepted.data) == len(b"".join(sent)), "all of it arrives"
            )
            await async_wait_until(lambda: outgoing.data, "and the answer")
            outgoing.transport.close()
            outgoing.transport.write(b"too late")
            await async_wait_until(
                lambda: accepted.has_ended and outgoing.has_ended, "both have ended"
            )
            await asyncio.sleep(0.05)

            assert accepted.data == b"".join(sent)
            assert outgoing.data == b"hello"
            for side in accepted, outgoing:
                assert side.calls.count("ended") == 1
                assert side.calls[-1] == "ended"
            assert outgoing.calls.count("written") >= 1
            assert outgoing.reason == "this broker closed the connection"
            assert accepted.reason == "the other side closed the connection"

    play(scene)


def test_each_side_knows_the_address_of_the_other() -> None:
    async def scene() -> None:
        there = Side()
        async with linked(there, Side()) as (accepted, outgoing):
            assert there.listener is not None
            assert outgoing.transport.peer == there.listener.address
            assert accepted.transport.peer.startswith("127.0.0.1:")

    play(scene)


def test_what_the_network_has_not_taken_is_known_and_then_that_it_has() -> None:
    async def scene() -> None:
        async with linked(Side(), Side()) as (accepted, outgoing):
            outgoing.transport.write(b"x" * 30 * MB)
            assert outgoing.transport.waiting == 30 * MB
            await async_wait_until(lambda: len(accepted.data) == 30 * MB, "all of it arrives")
            await async_wait_until(lambda: "written" in outgoing.calls, "and that is told")

            assert outgoing.transport.waiting == 0
            assert outgoing.calls == ["written"]

    play(scene)


def test_a_peer_that_reads_nothing_is_cut_off() -> None:
    settings = OverlaySettings(stalled_reader_s=0.5)

    async def scene() -> None:
        side = Side(settings)
        address = await side.listen()
        host, _, port = address.rpartition(":")
        async with closing(side):
            with socket.create_connection((host, int(port))):
                await async_wait_until(lambda: side.receivers, "the connection is accepted")
                [receiver] = side.receivers
                receiver.transport.write(b"x" * 64 * MB)
                await async_wait_until(lambda: receiver.has_ended, "it is cut off")

            assert receiver.reason == "it does not read what it is sent"
            assert side.said("a link to another broker was cut off")

    play(scene)


def test_a_peer_that_reads_slowly_is_not_cut_off() -> None:
    settings = OverlaySettings(stalled_reader_s=0.6)

    async def scene() -> None:
        side = Side(settings)
        host, _, port = (await side.listen()).rpartition(":")
        async with closing(side):
            reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 16)
            await async_wait_until(lambda: side.receivers, "the connection is accepted")
            [receiver] = side.receivers
            receiver.transport.write(b"x" * 40 * MB)
            for _ in range(15):
                await reader.readexactly(MB)
                await asyncio.sleep(0.1)

            assert not receiver.has_ended
            writer.close()

    play(scene)


@pytest.mark.parametrize("begin", [b"\0", b"\0\0\1\0only the begin"])
def test_a_message_that_does_not_come_whole_in_time_ends_the_connection(begin: bytes) -> None:
    settings = OverlaySettings(message_deadline_s=0.3, bytes_per_s_min=1000)

    async def scene() -> None:
        side = Side(settings)
        host, _, port = (await side.listen()).rpartition(":")
        async with closing(side):
            with socket.create_connection((host, int(port))) as client:
                client.sendall(framed(b"whole") + begin)
                await async_wait_until(
                    lambda: side.receivers and side.receivers[0].has_ended, "it ends"
                )

            [receiver] = side.receivers
            assert receiver.data == framed(b"whole") + begin
            assert "of a message arrived in time" in receiver.reason

    play(scene)


def test_a_connection_between_messages_may_be_silent() -> None:
    async def scene() -> None:
        side = Side(OverlaySettings(message_deadline_s=0.2))
        host, _, port = (await side.listen()).rpartition(":")
        async with closing(side):
            with socket.create_connection((host, int(port))) as client:
                client.sendall(framed(b"whole"))
                await async_wait_until(
                    lambda: side.receivers and side.receivers[0].data, "it is taken"
                )
                await asyncio.sleep(0.8)

            assert not side.receivers[0].has_ended

    play(scene)


def test_all_together_may_hold_only_so_much_of_what_is_not_whole() -> None:
    async def scene() -> None:
        side = Side(receiving_bytes_max=MB)
        host, _, port = (await side.listen()).rpartition(":")
        async with closing(side):
            with socket.create_connection((host, int(port))) as client:
                client.sendall((16 * MB).to_bytes(4, "big") + b"x" * (MB - 5))
                await async_wait_until(
                    lambda: side.budget.held_bytes > MB // 2, "much of it has come"
                )
                assert not side.receivers[0].has_ended
                client.sendall(b"x" * 200_000)
                await async_wait_until(lambda: side.receivers[0].has_ended, "it is cut off")

            assert "messages being received already take" in side.receivers[0].reason
            assert side.budget.held_bytes == 0

    play(scene)


def test_there_are_only_so_many_connections_and_room_again_when_one_ends() -> None:
    async def scene() -> None:
        there, here = Side(OverlaySettings(links_max=2)), Side()
        async with closing(here, there):
            address = await there.listen()
            kept = [await here.connect(address), await here.connect(address)]
            await async_wait_until(lambda: len(there.receivers) == 2, "both are accepted")
            third = await here.connect(address)
            await async_wait_until(lambda: third.has_ended, "the third is refused")

            assert len(there.receivers) == 2
            assert there.listener is not None
            assert there.listener.refused == 1
            assert there.said("as many connections as overlay.links_max allows")

            kept[0].transport.close()
            await async_wait_until(lambda: there.receivers[0].has_ended, "one has ended")
            again = await here.connect(address)
            await async_wait_until(lambda: len(there.receivers) == 3, "there is room again")
            assert not again.has_ended

    play(scene)


def test_a_failure_costs_one_connection_and_is_in_the_log() -> None:
    class Failing(Remembering):
        def received(self, data: bytes) -> None:
            super().received(data)
            if data == b"bad":
                raise KeyError("a bug")

    async def scene() -> None:
        there, here = Side(receiver=Failing), Side()
        async with closing(here, there):
            address = await there.listen()
            one, other = await here.connect(address), await here.connect(address)
            one.transport.write(b"bad")
            await async_wait_until(lambda: one.has_ended, "the one is closed")
            other.transport.write(b"good")
            await async_wait_until(lambda: there.receivers[1].data == b"good", "the other goes on")

            assert there.said("a link to another broker failed")
            assert there.receivers[0].calls[-1] == "ended"

    play(scene)


def test_closing_lets_what_was_written_go_out() -> None:
    async def scene() -> None:
        there, here = Side(), Side()
        async with closing(there):
            outgoing = await here.connect(await there.listen())
            outgoing.transport.write(b"x" * MB)
            outgoing.transport.write(b"goodbye")
            await here.close()
            await async_wait_until(
                lambda: there.receivers and there.receivers[0].has_ended, "it has ended"
            )

            assert there.receivers[0].data == b"x" * MB + b"goodbye"
            assert outgoing.has_ended

    play(scene)


def test_after_an_abort_nothing_is_received() -> None:
    async def scene() -> None:
        async with linked(Side(), Side()) as (accepted, outgoing):
            accepted.transport.write(b"x")
            outgoing.transport.abort()
            await async_wait_until(
                lambda: outgoing.has_ended and accepted.has_ended, "both have ended"
            )

            assert outgoing.calls == ["ended"]

    play(scene)


def test_no_connection_no_timer() -> None:
    async def scene() -> None:
        there, here = Side(), Side()
        async with closing(here, there):
            outgoing = await here.connect(await there.listen())
            assert here.connections.has_timer
            outgoing.transport.close()
            await async_wait_until(lambda: not here.connections.has_timer, "the timer has ended")
            assert len(here.connections) == 0

    play(scene)


def test_an_address_in_use_names_the_flag_that_chooses_another() -> None:
    async def scene() -> None:
        there, here = Side(), Side()
        async with closing(here, there):
            await there.listen()
            assert there.listener is not None
            taken = there.listener.address
            await here.listen()
            assert here.listener is not None
            with pytest.raises(BadSetting, match="already in use") as caught:
                await here.listener.open(taken, None)

            assert "--link" in caught.value.remedy

    play(scene)


def test_a_peer_that_is_not_there_is_named_with_the_reason() -> None:
    async def scene() -> None:
        here = Side()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{probe.getsockname()[1]}"
        async with closing(here):
            with pytest.raises(PeerFailed) as caught:
                await here.connect(address)

        assert caught.value.problem == f"cannot connect to {address}: connection refused"
        assert here.receivers == []

    play(scene)


@pytest.mark.parametrize("address", ["nothing", "host:", ":8403", "host:0", "host:99999", "::1:84"])
def test_what_is_no_address_is_not_tried(address: str) -> None:
    async def scene() -> None:
        with pytest.raises(PeerFailed, match="is not the address of a broker"):
            await Side().connect(address)

    play(scene)
