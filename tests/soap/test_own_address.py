"""A broker is nobody's consumer at its own listeners, by whatever name they are called."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import pytest

from served import Served, served
from soap.notification_peers import PEERS, Refused, ask
from soap.wse_source import Client, consumer
from tocsin.wire.soap.addressing import EndpointReference
from tocsin.wire.soap.names import WSA2005
from tocsin.wire.wse.messages import Subscribe
from tocsin.wire.wsn import messages as say

PUBLIC = "https://broker.example.org/tocsin"


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    env = {"TOCSIN_HTTP__PUBLIC_URL": PUBLIC}
    with served("--trust", "broker.example.org", env=env) as running:
        yield running


def addresses(broker: Served) -> list[str]:
    http, soap_tcp, frames = (
        each.rpartition(":")[2] for each in (broker.address, broker.soap_tcp, broker.frames)
    )
    hosts = ("127.0.0.1", "127.0.0.2", "localhost", "LOCALHOST.", "[::1]", socket.gethostname())
    return [
        *(f"soap.tcp://{host}:{soap_tcp}/soap" for host in hosts),
        *(f"http://{host}:{http}/soap" for host in hosts),
        *(f"{scheme}://127.0.0.1:{http}/soap" for scheme in ("https", "soap.tcp")),
        f"http://127.0.0.1:{frames}/",
        f"{PUBLIC}/soap/topic/a",
    ]


def test_ws_eventing_is_refused_at_every_listener_of_ours(broker: Served) -> None:
    for address in addresses(broker):
        asked = Subscribe("wse11", EndpointReference(address, WSA2005), expires="PT1H")

        answer = Client(broker, "wse11").ask(asked)

        assert answer.subcode == "UnusableEPR", address
        assert b"this broker itself" in answer.body, address


def test_ws_notification_is_refused_at_every_listener_of_ours(broker: Served) -> None:
    for address in addresses(broker):
        with pytest.raises(Refused, match="this broker itself"):
            ask(
                PEERS[0],
                say.Subscribe(EndpointReference(address)),
                EndpointReference(f"{broker.url}/soap"),
            )


@pytest.mark.parametrize("path", ["/events", "/soap"])
def test_a_webhook_is_refused_at_our_own_address(broker: Served, path: str) -> None:
    for sink in (f"http://localhost:{broker.address.rpartition(':')[2]}{path}", f"{PUBLIC}{path}"):
        status, body = broker.call("POST", "/subscriptions", {"sink": sink})

        assert status == 403, sink
        assert "this broker itself" in json.dumps(body)


def test_another_service_behind_the_same_proxy_may_be_a_consumer(broker: Served) -> None:
    asked = Subscribe("wse11", EndpointReference("https://broker.example.org/other", WSA2005))

    assert Client(broker, "wse11").ask(asked).status == 200


def test_who_listens_everywhere_knows_itself_by_every_address_of_this_machine() -> None:
    everywhere = ("--open", "--http", "0.0.0.0:0", "--soap-tcp", "0.0.0.0:0")
    with served(*everywhere, "--trust", "127.0.0.0/8") as broker:
        port = broker.address.rpartition(":")[2]
        broker.address = f"127.0.0.1:{port}"
        other = broker.soap_tcp.rpartition(":")[2]
        for address in (f"http://127.0.0.1:{port}/soap", f"soap.tcp://127.0.0.3:{other}/"):
            asked = Subscribe("wse11", EndpointReference(address, WSA2005))

            assert b"this broker itself" in Client(broker, "wse11").ask(asked).body, address
        with consumer() as sink:
            assert Client(broker).subscribe(sink.url).manager.address
