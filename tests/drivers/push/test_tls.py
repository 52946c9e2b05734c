"""Sinks over TLS: the certificate must be for the name that was subscribed."""

from __future__ import annotations

import ssl
from pathlib import Path

from world import World, here, read_request, trusting

from tocsin.broker.delivery.outcome import Answered, Failed

OK = b"HTTP/1.1 204 No Content\r\n\r\n"


def tls_sink(world: World, certificates: Path, host: str) -> str:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "own.pem", certificates / "own.key")

    async def script(reader, writer) -> None:  # type: ignore[no-untyped-def]
        while True:
            world.requests.append(await read_request(reader))
            writer.write(OK)

    address = world.sink(script, ssl=context)
    return address.replace("http://127.0.0.1", f"https://{host}")


def test_a_sink_with_a_certificate_for_its_name_is_served(world: World, certificates: Path) -> None:
    address = tls_sink(world, certificates, "sink.example")
    world.restart(resolve=here, tls=trusting(certificates))

    outcomes = [world.push(address) for _ in range(3)]

    assert outcomes == [Answered(204)] * 3
    assert world.connections == 1
    assert world.requests[0].headers["host"].startswith("sink.example:")


def test_a_certificate_for_another_name_gets_nothing(world: World, certificates: Path) -> None:
    address = tls_sink(world, certificates, "other.example")
    world.restart(resolve=here, tls=trusting(certificates))

    outcome = world.push(address)

    assert isinstance(outcome, Failed)
    assert not outcome.reachable
    assert outcome.reason.startswith("the sink's TLS certificate is not trusted")
    assert world.requests == []


def test_a_certificate_of_an_unknown_authority_gets_nothing(
    world: World, certificates: Path
) -> None:
    address = tls_sink(world, certificates, "sink.example")
    world.restart(resolve=here)

    outcome = world.push(address)

    assert isinstance(outcome, Failed)
    assert outcome.reason.startswith("the sink's TLS certificate is not trusted")
    assert world.requests == []


def test_a_plain_sink_at_a_tls_address_is_no_sink(world: World, certificates: Path) -> None:
    address = world.answering(OK).replace("http://127.0.0.1", "https://sink.example")
    world.restart(resolve=here, tls=trusting(certificates))

    outcome = world.push(address, timeout_s=1)

    assert isinstance(outcome, Failed)
    assert not outcome.reachable
