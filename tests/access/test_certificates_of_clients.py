"""Our clients and commands show a certificate, by argument, flag and environment."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from served import ROOT, Served
from tls_site import Site
from tocsin.client import Consumer, Publisher, WsntClient
from tocsin.client.gma import Consumer as GmaConsumer
from tocsin.client.gma import Producer
from tocsin.credentials.lookup import VARIABLES
from tocsin.errors import TocsinError

WAIT_S = 20.0


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def broker(site: Site) -> Iterator[Served]:
    with site.broker() as running:
        yield running


@pytest.fixture
def shown(site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, str]:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("TOCSIN_CA_FILE", str(site.ca))
    certificate, key = site.issue("olga", units=("operators",))
    os.chmod(key, 0o600)
    return {"client_certificate": certificate, "client_key": key}


def url(broker: Served) -> str:
    return f"https://localhost:{broker.address.rpartition(':')[2]}"


def test_the_library(broker: Served, shown: dict[str, str]) -> None:
    with pytest.raises(TocsinError):
        Publisher(url(broker)).publish("lab/a", 1)
    with Publisher(url(broker), **shown) as publisher:
        seq = publisher.publish("lab/a", 1)
    with Consumer("lab/a", after=seq - 1, broker=url(broker), timeout_s=WAIT_S, **shown) as found:
        assert next(found).seq == seq
    with WsntClient(url(broker), **shown) as client:
        client.publish("<a/>", "lab/a")


def test_a_client_that_leaves_in_the_middle_of_an_answer_is_no_warning(
    broker: Served, shown: dict[str, str], site: Site
) -> None:
    context = ssl.create_default_context(cafile=str(site.ca))
    context.load_cert_chain(shown["client_certificate"], shown["client_key"])
    port = int(broker.address.rpartition(":")[2])
    with socket.create_connection(("localhost", port)) as plain:
        connection = context.wrap_socket(plain, server_hostname="localhost")
        connection.sendall(b"GET /events/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b" 200 " in connection.recv(100)
        with suppress(ssl.SSLError, OSError):
            connection.unwrap()  # it says that it ends, as curl does

    deadline = time.monotonic() + 1
    while time.monotonic() < deadline and "eof_received" not in broker.said():
        time.sleep(0.1)

    assert "eof_received" not in broker.said()


def test_performance_events(broker: Served, shown: dict[str, str]) -> None:
    frames = f"gmas://localhost:{broker.frames.rpartition(':')[2]}"
    with GmaConsumer(frames, **shown) as consumer, Producer(None, host="n7", **shown) as producer:
        producer.offer("Warm", lambda _: {"Celsius": 21.5})
        feed = producer.push_to(frames, "Warm", period=0.1)
        deadline = time.monotonic() + WAIT_S
        while not any(str(each) == "Warm" for each in consumer.event_names()):
            assert time.monotonic() < deadline, feed.error
            time.sleep(0.1)
    with GmaConsumer(frames) as stranger, pytest.raises(TocsinError):
        stranger.event_names()


def test_commands(broker: Served, shown: dict[str, str]) -> None:
    flags = ["--client-cert", shown["client_certificate"], "--client-key", shown["client_key"]]
    variables = {
        "TOCSIN_CLIENT_CERT": shown["client_certificate"],
        "TOCSIN_CLIENT_KEY": shown["client_key"],
    }

    assert command(broker, *flags).returncode == 0
    assert command(broker, **variables).returncode == 0
    assert command(broker).returncode == 4
    os.chmod(shown["client_key"], 0o644)
    refused = command(broker, *flags)
    assert refused.returncode == 2
    assert f"chmod 600 {shown['client_key']}" in refused.stderr


def command(broker: Served, *flags: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **more}
    return subprocess.run(
        [sys.executable, "-m", "tocsin", "pub", "lab/a", "1", "--broker", url(broker), *flags],
        env=environment, cwd=ROOT, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
