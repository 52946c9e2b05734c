"""Which gma addresses there are, and who must be found there."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from gma_consumers import TAKEN, Archive, event, push
from world import World, here, trusting

from tocsin.broker.delivery.address import PORTS, is_gma_address
from tocsin.broker.delivery.outcome import Failed
from tocsin.broker.delivery.sinks import Sinks, url_sink
from tocsin.errors import BadSubscription


def test_the_guard_judges_where_a_gma_address_leads(world: World) -> None:
    outcome = push(world, "gma://169.254.169.254:8401", event(1))

    assert isinstance(outcome, Failed)
    assert "cloud metadata" in outcome.reason


def test_a_gmas_sink_is_spoken_to_by_tls_and_must_be_who_it_says(
    world: World, certificates: Path
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "own.pem", certificates / "own.key")
    archives = [Archive(acknowledge=True), Archive(acknowledge=False)]
    ports = [world.sink(each, ssl=context).split(":")[2].split("/")[0] for each in archives]
    world.restart(resolve=here, tls=trusting(certificates))

    for port in ports:
        address = f"gmas://sink.example:{port}"
        assert [push(world, address, event(n), seq=n) for n in (1, 2)] == [TAKEN] * 2
    stranger = push(world, f"gmas://other.example:{ports[0]}", event(3), seq=3)
    world.wait(0.05)

    assert [archive.values for archive in archives] == [[1, 2]] * 2
    assert isinstance(stranger, Failed)
    assert stranger.reason.startswith("the sink's TLS certificate is not trusted")


SINKS = Sinks(PORTS, url_sink)


@pytest.mark.parametrize(
    ("address", "host", "port", "tls"),
    [
        ("gma://127.0.0.1:9", "127.0.0.1", 9, False),
        ("GMA://Node7.Example/", "node7.example", 8401, False),
        ("gmas://[::1]", "::1", 8401, True),
    ],
)
def test_a_gma_address_is_a_host_and_a_port(address: str, host: str, port: int, tls: bool) -> None:
    sink = SINKS.parse(address)

    assert (sink.host, sink.port, sink.tls) == (host, port, tls)
    assert is_gma_address(address)
    with pytest.raises(BadSubscription, match="takes no SOAP messages"):
        SINKS.parse(address, soap=True)


def test_an_address_with_a_path_is_no_gma_address() -> None:
    with pytest.raises(BadSubscription, match="has a path"):
        SINKS.parse("gma://127.0.0.1:9/archive")
