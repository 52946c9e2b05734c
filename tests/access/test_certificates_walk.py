"""The walk over every operation of every listener with certificates of clients: without one, with
each kind that is not valid, with one that is over by the time it is used, with one that gives no
right, rights elsewhere, or every right. The operations come from the tables of the handlers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import uvloop
from frames_conversation import Posts, converse
from frames_walk import Tcp, walk_frames, walk_gma, walk_tcp
from http_walk import walk_http
from link_walk import walk_dialled_link, walk_link
from pegasus_walk import RECORD, walk_pegasus
from refusing import NOT_SIGNED_IN, Refusing, Walk
from site_clients import (
    ANONYMOUS,
    BAD,
    ELSEWHERE,
    ENDS,
    EVERYTHING,
    NOTHING,
    Clients,
    check_answers,
    nothing_happened,
    show_bad,
    show_ending,
    show_good,
    site_broker,
)
from soap_walk import walk_soap, walk_soap_tcp
from sockets_walk import walk_sockets
from test_one_way_in import WALKS as EVERY_WALK

BY_HTTP = (walk_http, walk_soap, walk_gma)
AT_ONCE = (*BY_HTTP, walk_soap_tcp, walk_tcp, walk_pegasus, walk_link, walk_dialled_link)
WALKS = (*AT_ONCE, walk_sockets)  # their messages come later than the request that opens them
# Those of hundreds of connections are made with the main kinds of certificates that are not valid.
LONG = (walk_http, walk_soap)
MAIN = ("of a foreign authority", "expired", "revoked")

Script = Callable[[Clients, Refusing], Awaitable[None]]


def test_each_walk_that_there_is_is_walked_with_certificates() -> None:
    every = {walk for walks in EVERY_WALK.values() for walk in walks}

    assert every - {walk_frames} == {*WALKS} - {walk_tcp, walk_gma}  # and UDP, which has no TLS


def run(directory: Path, script: Script) -> None:
    clients = Clients(directory)

    async def main() -> None:
        async with site_broker(clients, directory / "log") as broker:
            await script(clients, broker)

    uvloop.run(main())


@pytest.mark.parametrize(
    ("what", "walk"),
    [(what, walk) for what in BAD for walk in AT_ONCE if what in MAIN or walk not in LONG],
)
def test_with_a_certificate_that_is_not_valid_nothing_is_done(
    what: str, walk: Walk, tmp_path: Path
) -> None:
    async def script(clients: Clients, broker: Refusing) -> None:
        show_bad(clients, broker, what)
        if what == "revoked" and walk in BY_HTTP:
            broker.refusal = NOT_SIGNED_IN  # TLS knows nothing of that, and HTTP has an answer
        await nothing_happened(broker, walk)

    run(tmp_path, script)


@pytest.mark.parametrize("walk", WALKS)
@pytest.mark.parametrize("principal", [ANONYMOUS, NOTHING])
def test_without_a_certificate_or_a_right_nothing_is_done(
    principal: str, walk: Walk, tmp_path: Path
) -> None:
    async def script(clients: Clients, broker: Refusing) -> None:
        show_good(clients, broker, principal)
        await nothing_happened(broker, walk)

    run(tmp_path, script)


@pytest.mark.parametrize("walk", WALKS)
@pytest.mark.parametrize("how", ENDS)
def test_with_a_certificate_that_is_over_by_then_nothing_is_done(
    how: str, walk: Walk, tmp_path: Path
) -> None:
    async def script(clients: Clients, broker: Refusing) -> None:
        show_ending(clients, broker, how)
        await nothing_happened(broker, walk)

    run(tmp_path, script)


@pytest.mark.parametrize("walk", [*BY_HTTP, walk_tcp, walk_soap_tcp, walk_sockets, walk_pegasus])
def test_with_rights_elsewhere_nothing_is_published_or_shown(walk: Walk, tmp_path: Path) -> None:
    """What neighbours may do then is in `test_links_walk.py`."""

    async def script(clients: Clients, broker: Refusing) -> None:
        head, *_ = broker.stored()
        show_good(clients, broker, ELSEWHERE)
        await walk(broker)

        assert broker.stored()[0] == head
        assert broker.shown == []

    run(tmp_path, script)


@pytest.mark.parametrize("walk", [*BY_HTTP, walk_tcp, walk_soap_tcp, walk_sockets])
def test_with_every_right_everything_is_answered(walk: Walk, tmp_path: Path) -> None:
    async def script(clients: Clients, broker: Refusing) -> None:
        show_good(clients, broker, EVERYTHING)
        await walk(broker)

        check_answers(broker, walk)

    run(tmp_path, script)


@pytest.mark.parametrize("way", ["frames", "POST /gma"])
def test_performance_events_come_through_with_the_right_certificate(
    way: str, tmp_path: Path
) -> None:
    async def script(clients: Clients, broker: Refusing) -> None:
        show_good(clients, broker, EVERYTHING)
        consumer = Tcp(*await broker.open(broker.frames.address))
        by_frames = way == "frames"
        producer = Tcp(*await broker.open(broker.frames.address)) if by_frames else Posts(broker)

        await converse(consumer, producer)

    run(tmp_path, script)


@pytest.mark.parametrize("principal", [EVERYTHING, ANONYMOUS])
def test_events_of_pegasus_are_stored_of_who_has_the_right(principal: str, tmp_path: Path) -> None:
    """By its certificate; and without one, if a rule gives it to `anonymous`."""

    async def script(clients: Clients, broker: Refusing) -> None:
        show_good(clients, broker, principal)
        counters = broker.app.node.broker.counters
        with broker.allowing():
            _, writer = await broker.open(broker.pegasus.address)
            writer.write(RECORD)
            async with asyncio.timeout(10):
                while counters.acknowledged == 1:
                    await asyncio.sleep(0.01)
            writer.close()

    run(tmp_path, script)


def test_where_tls_is_wanted_there_are_no_datagrams(tmp_path: Path) -> None:
    async def script(clients: Clients, broker: Refusing) -> None:
        assert "frames" in broker.listeners
        assert "datagrams" not in broker.listeners

    run(tmp_path, script)
