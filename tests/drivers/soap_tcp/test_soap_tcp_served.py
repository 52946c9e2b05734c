"""The SOAP.TCP listener of a real broker: what comes in by it is published and answered."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from served import ROOT, Served, served
from tocsin.wire.dime import Decoder, envelope_message, read_envelope_message
from tocsin.wire.soap.envelope import read_envelope, write_envelope
from tocsin.wire.soap.names import WSA200408, WSN13

WAIT_S = 20.0
NOTIFY = (
    f'<n:Notify xmlns:n="{WSN13}"><n:NotificationMessage>'
    '<n:Topic Dialect="http://docs.oasis-open.org/wsn/t-1/TopicExpression/Concrete">lead/radar'
    "</n:Topic><n:Message><reading>%d</reading></n:Message></n:NotificationMessage></n:Notify>"
)


def connect(broker: Served) -> socket.socket:
    host, _, port = broker.soap_tcp.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=WAIT_S)


def read(opened: socket.socket) -> tuple[str, bytes] | None:
    decoder = Decoder()
    while (message := decoder.next_message()) is None:
        data = opened.recv(1 << 16)
        if not data:
            return None
        decoder.receive(data)
    return read_envelope_message(message)


def asked(number: int) -> bytes:
    """What is no operation, so that it is answered with a fault about this message."""
    header = (
        f'<a:MessageID xmlns:a="{WSA200408}">urn:ask:{number}</a:MessageID>'
        f'<a:Action xmlns:a="{WSA200408}">urn:nothing</a:Action>'
    )
    body = f'<n:Nonsense xmlns:n="{WSN13}"/>'
    return write_envelope("1.2", header=header.encode(), body=body.encode())


def test_notifications_by_tcp_are_in_the_log_in_order_and_questions_are_answered() -> None:
    with served() as broker, connect(broker) as opened:
        for number in range(3):
            notify = write_envelope("1.1", body=(NOTIFY % number).encode())
            opened.sendall(envelope_message("1.1", notify))
        opened.sendall(envelope_message("1.2", asked(7)))

        answer = read(opened)

        assert answer is not None
        soap, data = answer
        assert (soap, read_envelope(data).soap) == ("1.2", "1.2")
        assert b"urn:ask:7</" in data
        status, page = broker.call("GET", "/events?after=0")
        assert status == 200
        assert [event["topic"] for event in page["events"]] == ["lead/radar"] * 3
        assert [f"<reading>{n}</reading>" in str(page["events"][n]) for n in range(3)] == [True] * 3


def test_hostile_bytes_end_their_own_connection_and_are_noted() -> None:
    with served() as broker:
        with connect(broker) as hostile:
            hostile.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert read(hostile) is None
        with connect(broker) as opened:
            opened.sendall(envelope_message("1.2", b"<!DOCTYPE a><a/>"))
            answer = read(opened)
            opened.sendall(envelope_message("1.2", asked(8)))
            next_answer = read(opened)

        assert answer is not None
        assert b"Fault" in answer[1]
        assert next_answer is not None
        assert b"urn:ask:8" in next_answer[1]
        assert "T212" in broker.said()
        assert broker.stop() == 0


def test_an_open_connection_does_not_keep_the_broker_from_stopping() -> None:
    with served() as broker, connect(broker) as opened:
        opened.sendall(envelope_message("1.1", b"<begun>")[:20])

        assert broker.stop() == 0
        assert opened.recv(1) == b""


def test_the_listener_can_be_left_out() -> None:
    with served("--soap-tcp", "off") as broker:
        assert broker.soap_tcp == "off"
        assert broker.call("GET", "/livez")[0] == 200


def _refused(*flags: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory) / "data"
        command = [sys.executable, "-m", "tocsin", "serve", "--http", "127.0.0.1:0"]
        command += ["--frames", "off", "--link", "off"]
        return subprocess.run(
            [*command, "--data", str(place), *flags],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={**os.environ, **(env or {})},
            timeout=30,
            check=False,
        )


def test_a_port_in_use_names_the_flag_that_chooses_another() -> None:
    with served() as broker:
        second = _refused("--soap-tcp", broker.soap_tcp)

    assert second.returncode == 2
    assert "T001" in second.stderr
    assert "--soap-tcp" in second.stderr


def test_listening_beyond_this_machine_wants_a_word_here_too() -> None:
    refused = _refused("--soap-tcp", "0.0.0.0:0", env={"TOCSIN_AUTH__MODE": "open"})

    assert refused.returncode == 2
    assert "T002" in refused.stderr
    assert "soap_tcp.address" in refused.stderr


def test_what_is_no_address_is_told() -> None:
    refused = _refused("--soap-tcp", "nowhere")

    assert refused.returncode == 2
    assert "'nowhere' is not a valid address to listen on" in refused.stderr
