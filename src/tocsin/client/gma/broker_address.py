"""Where a broker speaks the protocol: its answer to GET /gma, as an address that we can use."""

from __future__ import annotations

from tocsin.client.gma.address import PeerAddress, is_loopback, read_address
from tocsin.client.gma.peer_errors import one_line
from tocsin.client.transport.address import Address
from tocsin.errors import BadSetting, BrokerRefused

GMA_PATH = "/gma"


def frames_address(broker: Address, answer: object) -> str:
    """Where the broker takes and gives performance events; BrokerRefused if nowhere we can go."""
    found = answer if isinstance(answer, dict) else {}
    frames = found.get("frames")
    if not isinstance(frames, str) or ":" not in frames:
        raise BrokerRefused(
            f"the broker at {broker} takes no performance events",
            remedy="Start it with --frames HOST:PORT.",
        )
    # It may listen on every address of its machine, and we know one of them.
    address = _read(broker, frames).seen_as(broker.host)
    if address.is_loopback and not is_loopback(broker.host):
        raise BrokerRefused(
            f"the broker at {broker} takes performance events at {address.authority}, which only "
            "programs on its own machine can reach",
            remedy="Start it with --frames HOST:PORT for others, as --frames 0.0.0.0:8401.",
        )
    return str(address._replace(tls=bool(found.get("tls"))))


def _read(broker: Address, frames: str) -> PeerAddress:
    try:
        return read_address(frames, listening=True)
    except BadSetting as error:
        raise BrokerRefused(
            f"the broker at {broker} gives an invalid address for performance events: "
            f"{one_line(error.problem)}",
            remedy="Check that this is the address of a Tocsin broker.",
        ) from None
