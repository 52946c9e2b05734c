"""Heads of publishes that were read before are not read again: those without a credential for all
connections, those with one for its own. Who sends a publish is decided by what its connection and
it show, with real credentials, and by nothing that was shown before."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
import uvloop
from http_walk import code_in
from refusing import CUT, Refusing, Way, refusing
from site_clients import (
    ANONYMOUS,
    EVERYTHING,
    NOTHING,
    REQUIRED,
    Clients,
    show_bad,
    show_good,
    sign_in,
    site_broker,
)

from tocsin.access.policy.rights import EVERY_RIGHT
from tocsin.access.session import Session
from tocsin.drivers.http import connection as connection_module
from tocsin.drivers.http.request import Headers
from tocsin.drivers.http.session import Connected

BODY = json.dumps({"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}).encode()
KIND = "content-type: application/cloudevents+json\r\n"
STEPS = 300


def post(extra: str = "", body: bytes = BODY) -> bytes:
    head = f"POST /events HTTP/1.1\r\nhost: 127.0.0.1\r\n{KIND}{extra}"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


async def asked(way: Way, data: bytes) -> int:
    """The status of the answer; 0 for the end of the connection."""
    reader, writer = way
    try:
        writer.write(data)
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
        length = re.search(rb"content-length: (\d+)", head)
        text = await reader.readexactly(int(length[1]) if length else 0)
    except CUT:
        return 0
    status = int(head.split(b" ")[1])
    assert code_in(text.decode()) == {401: "T216", 403: "T215"}.get(status, code_in(text.decode()))
    return status


@dataclass
class Shown:
    """What a request says of its sender, and what it is answered."""

    header: Callable[[str], str]
    status: int


CREDENTIAL = "authorization: {}\r\n"
# `{}` is a good credential. Whatever is not exactly that header is nobody's, or refused altogether.
HEADERS: dict[str, Shown] = {
    "none": Shown(lambda good: "", 401),
    "the good one": Shown(lambda good: f"authorization: {good}\r\n", 202),
    "in other letters": Shown(lambda good: f"AuthoriZation: {good}\r\n", 202),
    "as a cookie": Shown(lambda good: f"cookie: tocsin_token={good.split()[1]}\r\n", 202),
    "a wrong one": Shown(lambda good: f"authorization: {good[:-1]}\r\n", 401),
    "for a proxy": Shown(lambda good: f"proxy-authorization: {good}\r\n", 401),
    "of another name": Shown(lambda good: f"x-authorization: {good}\r\n", 401),
    "of a cookie of another name": Shown(lambda good: f"cookie: a{good}\r\n", 401),
    "in the value of another": Shown(lambda good: f"x: authorization: {good}\r\n", 401),
}
# These end the connection: what follows might be read in two ways.
AMBIGUOUS: dict[str, Callable[[str], bytes]] = {
    "twice": lambda good: post(f"authorization: Bearer x\r\nauthorization: {good}\r\n"),
    "twice the same": lambda good: post(f"authorization: {good}\r\n" * 2),
    "folded": lambda good: post(f"x: y\r\n authorization: {good}\r\n"),
    "before a space": lambda good: post(f"authorization : {good}\r\n"),
    "behind a bare line feed": lambda good: post(f"x: y\nauthorization: {good}\r\n"),
    "behind a bare carriage return": lambda good: post(f"x: y\rauthorization: {good}\r\n"),
    "with a null byte": lambda good: post(f"authorization\0: {good}\r\n"),
}


def run(directory: Path, script: Callable[[Refusing, str], Awaitable[None]]) -> None:
    async def main() -> None:
        async with refusing(directory, settings_of=REQUIRED) as broker:
            sign_in(broker, EVERY_RIGHT)
            await script(broker, broker.headers["authorization"])

    uvloop.run(main())


def in_any_order(seed: int) -> Callable[[Refusing, str], Awaitable[None]]:
    """Some come in two pieces: then their heads are not looked up."""

    async def script(broker: Refusing, good: str) -> None:
        chance = Random(seed)
        signed_in = post(HEADERS["the good one"].header(good))
        ways = [await broker.open(broker.http.address) for _ in range(3)]
        assert await asked(ways[0], post()) == 401
        for _ in range(STEPS):
            shown = chance.choice(list(HEADERS.values()))
            data = post(shown.header(good))
            way = chance.choice(ways)
            if chance.random() < 0.2:
                cut = chance.randrange(1, len(data))
                way[1].write(data[:cut])
                await asyncio.sleep(0.001)
                data = data[cut:]
            assert await asked(way, data) == shown.status, data
            for _ in range(chance.randrange(3)):  # so that some heads are known
                again = post(shown.header(good))
                assert await asked(way, again) == shown.status, again
        # Those with a credential are known to their connections alone.
        shared = broker.http.server.heads
        assert await asked(ways[0], signed_in) == 202
        own = [each.reader._own_heads for each in broker.http.server.connections]
        assert shared.find(post()) is not None
        assert shared.find(signed_in) is None
        assert any(each and each.find(signed_in) for each in own)
        for _, writer in ways:
            writer.close()

    return script


@pytest.mark.parametrize("seed", range(3))
def test_each_request_is_answered_by_its_own_credential_whatever_was_read_before(
    seed: int, tmp_path: Path
) -> None:
    run(tmp_path, in_any_order(seed))


def test_a_connection_that_goes_on_as_who_has_signed_in_on_it_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def session_of(of: Connected, headers: Headers) -> Session:
        found = original(of, headers)
        return of.signed_in[1] if of.signed_in[0] else found

    original = connection_module.session_of
    monkeypatch.setattr(connection_module, "session_of", session_of)

    with pytest.raises(AssertionError, match="POST /events"):
        run(tmp_path, in_any_order(0))


@pytest.mark.parametrize("what", AMBIGUOUS)
def test_a_header_that_is_not_read_in_one_way_signs_nobody_in(what: str, tmp_path: Path) -> None:
    async def script(broker: Refusing, good: str) -> None:
        first = await broker.open(broker.http.address)
        for _ in range(2):  # so that a head is known
            assert await asked(first, post()) == 401
        way = await broker.open(broker.http.address)

        assert await asked(way, AMBIGUOUS[what](good)) == 400
        assert await asked(way, post()) in (0, 401)
        assert broker.app.port.head == 1

    run(tmp_path, script)


def test_a_request_that_is_smuggled_in_the_body_of_one_that_is_known_is_not_read(
    tmp_path: Path,
) -> None:
    """Its length says that it is a body; and where it is one request more, that one is its own."""

    async def script(broker: Refusing, good: str) -> None:
        inner = post(f"authorization: {good}\r\n")
        way = await broker.open(broker.http.address)
        for body in (BODY + b" " * (len(inner) - len(BODY)), inner, inner):
            assert await asked(way, post(body=body)) in (400, 401)
        assert broker.app.port.head == 1

        way[1].write(post() + inner + post())
        statuses = [await asked(way, b"") for _ in range(3)]

        assert statuses == [401, 202, 401]

    run(tmp_path, script)


def test_a_credential_in_the_trailer_of_chunks_is_nobodys(tmp_path: Path) -> None:
    async def script(broker: Refusing, good: str) -> None:
        head = f"POST /events HTTP/1.1\r\nhost: 127.0.0.1\r\n{KIND}transfer-encoding: chunked\r\n"
        chunks = b"%x\r\n%b\r\n0\r\n" % (len(BODY), BODY)
        trailer = f"authorization: {good}\r\n\r\n".encode()
        way = await broker.open(broker.http.address)

        for extra in ("", "trailer: authorization\r\n"):
            assert await asked(way, f"{head}{extra}\r\n".encode() + chunks + trailer) == 401
        assert await asked(way, post()) == 401
        assert broker.app.port.head == 1

    run(tmp_path, script)


def test_a_head_that_is_known_signs_in_by_the_certificate_of_its_own_connection(
    tmp_path: Path,
) -> None:
    clients = Clients(tmp_path)
    expected = {EVERYTHING: 202, NOTHING: 403, ANONYMOUS: 401}

    async def main() -> None:
        async with site_broker(clients, tmp_path / "log") as broker:
            ways: list[tuple[int, Way]] = []
            for principal, status in expected.items():
                show_good(clients, broker, principal)
                ways += [(status, await broker.open(broker.http.address)) for _ in range(2)]
            chance = Random(1)
            for _ in range(STEPS):
                status, way = chance.choice(ways)
                assert await asked(way, post()) == status
            assert broker.http.server.heads.find(post()) is not None

            show_bad(clients, broker, "revoked")
            assert await asked(await broker.open(broker.http.address), post()) == 401

    uvloop.run(main())
