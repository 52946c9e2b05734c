"""Where a broker takes performance events, by what it says and where it was reached."""

from __future__ import annotations

import pytest

from tocsin.client.gma.broker_address import frames_address
from tocsin.client.transport.address import broker_address
from tocsin.errors import BrokerRefused

HEAD = broker_address("http://head:8400")


@pytest.mark.parametrize(
    ("reported", "address"),
    [
        ({"frames": "10.0.0.7:9000"}, "gma://10.0.0.7:9000"),
        ({"frames": "0.0.0.0:8401", "tls": True}, "gmas://head:8401"),
        ({"frames": "[::]:8401"}, "gma://head:8401"),
        ({"frames": ":8401"}, "gma://head:8401"),
        ({"frames": "[2001:db8::7]:8401"}, "gma://[2001:db8::7]:8401"),
    ],
)
def test_the_broker_says_where_events_go(reported: dict[str, object], address: str) -> None:
    assert frames_address(HEAD, reported) == address


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.0.1.1", "[::1]"])
def test_an_address_of_its_own_machine_is_for_who_is_there(host: str) -> None:
    reported = {"frames": f"{host}:8401", "tls": False}

    for near in ("http://127.0.0.1:8400", "http://localhost:8400", "http://[::1]:8400"):
        assert frames_address(broker_address(near), reported) == f"gma://{host}:8401"
    with pytest.raises(BrokerRefused, match="only programs on its own machine") as caught:
        frames_address(HEAD, reported)
    assert "--frames 0.0.0.0:8401" in caught.value.remedy


def test_an_address_for_all_of_a_near_broker_is_near() -> None:
    near = broker_address("http://[::1]:8400")
    assert frames_address(near, {"frames": "0.0.0.0:8401"}) == "gma://[::1]:8401"


@pytest.mark.parametrize(
    "reported", [{}, {"frames": None}, {"frames": 7}, [], None, {"frames": "off"}]
)
def test_a_broker_without_frames_is_named(reported: object) -> None:
    with pytest.raises(BrokerRefused, match=r"http://head:8400 takes no performance events"):
        frames_address(HEAD, reported)


@pytest.mark.parametrize("frames", ["a b:1", "x:99999", "h\u202eost:1", "http://x:1", ":" * 400])
def test_an_odd_address_is_the_broker_s_mistake(frames: str) -> None:
    with pytest.raises(BrokerRefused, match="invalid address") as caught:
        frames_address(HEAD, {"frames": frames})
    assert str(caught.value).isprintable()
