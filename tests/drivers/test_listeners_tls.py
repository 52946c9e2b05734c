"""TLS at the doors and for sinks of a private authority, with certificates made here."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from queue import Queue

import pytest

from pki import lock, server_files
from served import ROOT, Served, served
from tocsin.config import DeliverySettings, HttpSettings
from tocsin.drivers.tls.contexts import listener_context, sink_context
from tocsin.errors import BadSetting
from tocsin.wire.dime import Decoder, envelope_message

WAIT_S = 20.0


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A throw-away authority, and a certificate of it for this machine."""
    folder = server_files(tmp_path_factory.mktemp("tls"), "localhost", "127.0.0.1")
    lock(folder / "own.key", "secret")
    return folder


def trusting(made: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(made / "ca.pem"))


@pytest.fixture(scope="module")
def broker(made: Path) -> Iterator[Served]:
    flags = ("--tls-cert", str(made / "own.pem"), "--tls-key", str(made / "own.key"))
    with served(*flags, env={"TOCSIN_DELIVERY__CA_FILE": str(made / "ca.pem")}) as running:
        yield running


def call(broker: Served, made: Path, path: str, body: object = None) -> tuple[int, str]:
    kind = "application/cloudevents+json" if path == "/events" else "application/json"
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(broker.url + path, data, {"content-type": kind})
    with urllib.request.urlopen(asked, timeout=WAIT_S, context=trusting(made)) as answer:
        return answer.status, answer.read().decode()


def event(number: int) -> dict[str, object]:
    return {
        "specversion": "1.0",
        "id": f"tls-{number}",
        "source": "/t",
        "type": "t",
        "topic": "tls",
        "data": {"n": number},
    }


@pytest.fixture(scope="module")
def sink(made: Path) -> Iterator[tuple[str, Queue[bytes]]]:
    """A webhook behind a certificate of the throw-away authority."""
    got: Queue[bytes] = Queue()

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.put(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Hook)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made / "own.pem", made / "own.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"https://localhost:{server.server_port}/hook", got
    server.shutdown()
    server.server_close()


def test_an_event_published_by_https_reaches_a_sink_of_a_private_authority(
    broker: Served, made: Path, sink: tuple[str, Queue[bytes]]
) -> None:
    address, got = sink
    assert broker.url.startswith("https://")
    wanted = {"sink": address, "filters": [{"topic": "tls"}]}
    assert call(broker, made, "/subscriptions", wanted)[0] == 201

    status, _ = call(broker, made, "/events", event(1))

    assert status == 202
    assert json.loads(got.get(timeout=WAIT_S)) == {"n": 1}


def test_pages_name_https(broker: Served, made: Path) -> None:
    assert f"curl -N https://{broker.address}/" in call(broker, made, "/")[1]
    document = json.loads(call(broker, made, "/asyncapi.json")[1])
    assert {server["protocol"] for server in document["servers"].values()} == {"https", "wss"}


def test_our_own_client_publishes_by_https(broker: Served, made: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tocsin", "pub", "--broker", broker.url, "tls", '{"n": 2}'],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**broker.env, "SSL_CERT_FILE": str(made / "ca.pem")},
        timeout=WAIT_S,
        check=False,
    )

    assert done.returncode == 0, done.stderr


def secured(broker: Served, made: Path) -> ssl.SSLSocket:
    host, _, port = broker.soap_tcp.rpartition(":")
    plain = socket.create_connection((host, int(port)), timeout=WAIT_S)
    return trusting(made).wrap_socket(plain, server_hostname="localhost")


def test_soap_tcp_speaks_tls_as_well(broker: Served, made: Path) -> None:
    decoder = Decoder()
    with secured(broker, made) as opened:
        assert opened.version() in ("TLSv1.2", "TLSv1.3")
        opened.sendall(envelope_message("1.1", b"<no-envelope/>" + b" " * 100_000))
        while (message := decoder.next_message()) is None:
            data = opened.recv(1 << 16)
            assert data
            decoder.receive(data)

    assert b"Fault" in message.parts[0].data


@pytest.mark.parametrize("listener", ["http", "soap_tcp"])
def test_who_speaks_no_tls_is_not_answered(broker: Served, made: Path, listener: str) -> None:
    address = broker.address if listener == "http" else broker.soap_tcp
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=WAIT_S) as opened:
        opened.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        try:
            got = opened.recv(1 << 16)
        except ConnectionError:
            got = b""

    assert not got.startswith(b"HTTP/")
    assert call(broker, made, "/livez")[0] == 200


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_old_tls_is_refused(broker: Served, made: Path) -> None:
    host, _, port = broker.address.rpartition(":")
    context = trusting(made)
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1

    with (
        socket.create_connection((host, int(port)), timeout=WAIT_S) as plain,
        pytest.raises(ssl.SSLError, match=r"ALERT_PROTOCOL_VERSION|EOF"),
    ):
        context.wrap_socket(plain, server_hostname="localhost")


def test_a_request_that_is_refused_gets_its_last_word_by_tls_too(
    broker: Served, made: Path
) -> None:
    host, _, port = broker.address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=WAIT_S) as plain:
        opened = trusting(made).wrap_socket(plain, server_hostname="localhost")
        opened.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nA B: c\r\n\r\n")
        got = b""
        while data := opened.recv(1 << 16):
            got += data

    assert got.startswith(b"HTTP/1.1 400 ")
    assert b"T201" in got


def test_it_stops_cleanly_with_connections_open(made: Path) -> None:
    flags = ("--tls-cert", str(made / "own.pem"), "--tls-key", str(made / "own.key"))
    with served(*flags) as broker, secured(broker, made):
        assert broker.stop() == 0
        assert "Traceback" not in broker.said()


# What may be wrong with the files


def test_without_settings_there_is_no_tls() -> None:
    assert listener_context(HttpSettings()) is None


@pytest.mark.parametrize(
    ("certificate", "key", "said"),
    [
        ("own.pem", "", "http.tls_key is not set"),
        ("", "own.key", "http.tls_certificate is not set"),
        ("none.pem", "own.key", "none.pem, cannot be read"),
        ("own.pem", "none.key", "none.key, cannot be read"),
        ("own.key", "own.key", "own.key, holds no certificate"),
        ("own.pem", "own.pem", "own.pem, holds no private key"),
        ("own.pem", "ca.key", "does not belong to the certificate in"),
        ("own.pem", "locked.key", "locked.key, is encrypted with a password"),
        ("torn.pem", "own.key", "torn.pem and"),
    ],
)
def test_files_that_do_not_fit_are_told_by_name(
    made: Path, certificate: str, key: str, said: str
) -> None:
    (made / "torn.pem").write_text("-----BEGIN CERTIFICATE-----\nMIIB\n")
    paths = [str(made / name) if name else "" for name in (certificate, key)]

    with pytest.raises(BadSetting) as caught:
        listener_context(HttpSettings(tls_certificate=paths[0], tls_key=paths[1]))

    assert said in caught.value.problem
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("none.pem", "cannot be read"),
        ("own.key", "holds no certificate"),
        ("torn.pem", "cannot be read"),
    ],
)
def test_authorities_that_cannot_be_read_are_told_by_name(made: Path, name: str, said: str) -> None:
    (made / "torn.pem").write_text("-----BEGIN CERTIFICATE-----\nMIIB\n")

    with pytest.raises(BadSetting, match=f"delivery.ca_file, .*{name}, {said}"):
        sink_context(DeliverySettings(ca_file=str(made / name)))


def test_a_private_authority_is_believed_besides_the_system_s(made: Path) -> None:
    common = {cert["serialNumber"] for cert in sink_context(DeliverySettings()).get_ca_certs()}
    more_context = sink_context(DeliverySettings(ca_file=str(made / "ca.pem")))
    more = {cert["serialNumber"] for cert in more_context.get_ca_certs()}

    assert common < more
