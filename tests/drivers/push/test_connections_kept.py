"""How many connections are kept, for how long, and how quickly all of them end."""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter
from dataclasses import replace

from world import World, read_request

from tocsin.broker.delivery.outcome import Answered, Failed

OK = b"HTTP/1.1 204 No Content\r\n\r\n"


def test_a_quiet_connection_is_closed_and_forgotten(world: World) -> None:
    world.options = replace(world.options, idle_s=0.3)
    world.restart()
    address = world.answering(OK)
    world.push(address)
    assert world.pusher.open == 1

    world.wait(0.9)

    assert world.pusher.open == 0
    assert world.push(address) == Answered(204)
    assert world.connections == 2


def test_past_the_limit_the_longest_idle_connection_is_closed(world: World) -> None:
    world.options = replace(world.options, sinks_open_max=3)
    world.restart()
    address = world.answering(OK)

    for lane in (1, 2, 3, 1, 4):  # the second lane is the longest idle when the fourth comes
        world.push(address, lane=lane)
        world.wait(0.002)
    assert (world.pusher.open, world.connections) == (3, 4)
    world.push(address, lane=1)
    world.push(address, lane=3)

    assert world.connections == 4
    world.push(address, lane=2)
    assert world.connections == 5


def test_connections_in_use_are_never_closed_to_make_room(world: World) -> None:
    async def slow(reader: StreamReader, writer: StreamWriter) -> None:
        await read_request(reader)
        await asyncio.sleep(0.1)
        writer.write(OK)

    world.options = replace(world.options, sinks_open_max=2)
    world.restart()
    address = world.sink(slow)

    waiting = [world.pushing(address, lane=lane) for lane in range(5)]
    outcomes = world.loop.run_until_complete(asyncio.gather(*waiting))

    assert outcomes == [Answered(204)] * 5


def test_there_are_never_more_connections_than_the_limit_and_all_get_their_turn(
    world: World,
) -> None:
    now, most = 0, 0

    async def slow(reader: StreamReader, writer: StreamWriter) -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        try:
            while True:  # the connection stays open: idle ones must make room for those who wait
                await read_request(reader)
                await asyncio.sleep(0.01)
                writer.write(OK)
        finally:
            now -= 1

    world.options = replace(world.options, sinks_open_max=3)
    world.restart()
    address = world.sink(slow)

    waiting = [world.pushing(address, lane=lane) for lane in range(20)]
    outcomes = world.loop.run_until_complete(asyncio.gather(*waiting))

    assert outcomes == [Answered(204)] * 20
    assert most <= 3
    assert world.pusher.open <= 3


def test_who_waits_for_a_turn_in_vain_is_told_and_leaves_the_turn_to_others(world: World) -> None:
    async def hang(reader: StreamReader, writer: StreamWriter) -> None:
        await asyncio.sleep(60)

    world.options = replace(world.options, sinks_open_max=1)
    world.restart()
    holding = world.pushing(world.sink(hang), lane=1, timeout_s=0.8)
    fine = world.answering(OK)
    in_vain = world.pushing(fine, lane=2, timeout_s=0.1)
    patient = world.pushing(fine, lane=3, timeout_s=10)

    outcomes = world.loop.run_until_complete(asyncio.gather(holding, in_vain, patient))

    assert isinstance(outcomes[0], Failed)
    assert outcomes[1:] == [Failed("too many other sinks are being connected"), Answered(204)]
    assert len(world.requests) == 1


def test_closing_is_quick_and_reports_nothing(world: World) -> None:
    async def hang(reader: StreamReader, writer: StreamWriter) -> None:
        await asyncio.sleep(60)

    address = world.sink(hang)
    waiting = [world.pushing(address, lane=lane) for lane in range(10)]
    world.wait(0.05)
    unconnected = world.pushing(address, lane=99)
    before = world.loop.time()

    world.pusher.close()
    world.wait(0.02)

    assert world.loop.time() - before < 0.5
    assert not any(push.done() for push in [*waiting, unconnected])
    assert world.pusher.open == 0
