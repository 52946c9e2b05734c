"""Tokens and the secrets of sinks are where they belong, and nowhere else: every file, output, log
and list of processes is searched for them."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil
import pytest

from served import ROOT, Served, served
from tocsin.cli.rest import Rest
from tocsin.client import Publisher
from tocsin.client.transport.address import broker_address
from tocsin.credentials.lookup import VARIABLES
from waiting import wait_until

WAIT_S = 20.0
# Started anew, with its own arguments: those of a process of tests/prepared.py are others.
TOCSIN = str(Path(sys.executable).parent / "tocsin")
SINK_TOKEN = "sinkverysecret0123456789"
SIGNING = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
PASSWORD = "passwordverysecret987"


class Sink(BaseHTTPRequestHandler):
    """Wants its token, and repeats what it was sent where it is not content."""

    seen: list[str | None] = []

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        shown = self.headers.get("Authorization")
        Sink.seen.append(shown)
        good = shown in (f"Bearer {SINK_TOKEN}", None) and self.path != "/angry"
        body = b"" if good else f"you sent {shown}".encode()
        self.send_response(204 if good else 403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def sink() -> Iterator[str]:
    Sink.seen.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Sink)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


class Terminal:
    """Runs commands as somebody who is signed in, and keeps all that they wrote."""

    def __init__(self, broker: Served, home: Path) -> None:
        self.broker = broker
        self.home = home
        self.written: list[str] = []
        kept = {name: value for name, value in os.environ.items() if name not in VARIABLES}
        self.env = {
            **kept,
            "PYTHONPATH": str(ROOT / "src"),
            "TOCSIN_BROKER": broker.url,
            "XDG_CONFIG_HOME": str(home / "config"),
            "XDG_STATE_HOME": str(home / "state"),
        }

    def run(self, *arguments: str, **more: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "tocsin", *arguments], env={**self.env, **more},
            cwd=ROOT, capture_output=True, text=True, timeout=60, input="",
        )  # fmt: skip
        self.written += [done.stdout, done.stderr]
        return done.stdout


def private(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


def command_lines() -> str:
    """What `ps` shows of the processes that this test started, and of theirs."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it has ended
            found.append(" ".join(process.cmdline()))
    return "\n".join(found)


def files_with(directory: Path, secret: str) -> list[str]:
    needle = secret.encode()
    return [
        str(path) for path in directory.rglob("*") if path.is_file() and needle in path.read_bytes()
    ]


def test_they_are_nowhere_else(sink: str, tmp_path: Path) -> None:
    with served(env={"TOCSIN_AUTH__MODE": "required"}) as broker:
        admin = str(broker.directory / "admin.token")
        terminal = Terminal(broker, tmp_path)
        made = json.loads(terminal.run("access", "token", "ann", "--json", "--token-file", admin))
        token = made["token"]
        terminal.written.clear()  # a token that is made is shown, once
        terminal.env["TOCSIN_TOKEN"] = token
        terminal.run("access", "allow", "ann", "publish,subscribe,read,manage",
                     "--token-file", admin)  # fmt: skip

        subscription = subscribe(terminal, sink, tmp_path)
        terminal.run("pub", "in/a", "1")
        wait_until(lambda: f"Bearer {SINK_TOKEN}" in Sink.seen)
        refuse_somewhere(terminal, sink)
        use_every_command(terminal, subscription, tmp_path)
        processes = run_beside(terminal)
        move_away(terminal, sink, subscription)

        broker.stop()
        secrets = [token, token.split("_", 2)[2], SINK_TOKEN, SIGNING, PASSWORD]
        secrets.append(base64.b64encode(f"ann:{PASSWORD}".encode()).decode())
        for secret in secrets:
            assert files_with(broker.directory, secret) == []
            assert secret not in broker.said()
            assert secret not in "\n".join(terminal.written)
            assert secret not in processes
        assert files_with(tmp_path / "state", token) == []


def subscribe(terminal: Terminal, sink: str, tmp_path: Path) -> str:
    return terminal.run(
        "subs", "add", f"{sink}/hook", "--topic", "in/**",
        "--sink-token-file", private(tmp_path / "sink-token", SINK_TOKEN + "\n"),
        "--secret-file", private(tmp_path / "signing", SIGNING + "\n"),
    ).strip()  # fmt: skip


def refuse_somewhere(terminal: Terminal, sink: str) -> None:
    """A sink that repeats its credential in the answer by which it refuses an event."""
    body = {
        "sink": f"{sink}/angry",
        "filters": [{"topic": "angry"}],
        "config": {"credential": {"basic": {"user": "ann", "password": PASSWORD}}, "attempts": 1},
    }
    address = broker_address(terminal.broker.url, token=terminal.env["TOCSIN_TOKEN"])
    with Rest(address) as rest:
        view = rest.post("/subscriptions", body)
        assert view["config"]["credential"] == "basic"
        terminal.run("pub", "angry", "1")
        wait_until(lambda: bool(rest.get("/deadletters")["deadletters"]))
        terminal.written.append(json.dumps(rest.get("/deadletters")))
        terminal.written.append(json.dumps(rest.get(f"/subscriptions/{view['id']}")))
        bad = {**body, "config": {"credential": {"bearer": f"{PASSWORD}\n"}}}
        terminal.written.append(rest.request(
            "POST", "/subscriptions", body=json.dumps(bad).encode(),
            headers=(("Content-Type", "application/json"),),
        ).body.decode())  # fmt: skip


def use_every_command(terminal: Terminal, subscription: str, tmp_path: Path) -> None:
    shown = json.loads(terminal.run("subs", "show", subscription, "--json"))
    assert shown["config"]["credential"] == "bearer"
    assert shown["config"]["secret"] is True
    for line in (
        "subs ls", "subs ls --json", f"subs show {subscription}", "dlq ls", "dlq ls --json",
        "status", "status --json", "config show", "config show --json", "doctor", "doctor --json",
        "access tokens --json", "access whoami", "login --show", "login --show --json",
        "wf ls", "run -- true", "run --json -- env", "sub ** --all --exit-at-end --json",
        "subs add http://127.0.0.1:1/ --token verysecret", "pub", "login --remove",
        f"backup {tmp_path / 'backup'} --data {terminal.broker.directory}",
    ):  # fmt: skip
        if line == "run --json -- env":
            # Its own environment is the command's to print: that a token is in it is its user's
            # wish. What is recorded of the run must not have it.
            subprocess.run(
                [sys.executable, "-m", "tocsin", *line.split()], env=terminal.env, cwd=ROOT,
                capture_output=True, timeout=60,
            )  # fmt: skip
            continue
        terminal.run(*line.split())
    terminal.run("pub", "in/a", "1", TOCSIN_TOKEN=terminal.env["TOCSIN_TOKEN"] + "x")
    terminal.run("pub", "in/a", "1", TOCSIN_BROKER="http://192.0.2.1:8400")
    terminal.run("login", "--token-file", private(tmp_path / "mine", terminal.env["TOCSIN_TOKEN"]))


def run_beside(terminal: Terminal) -> str:
    """The list of processes while commands run that signed in by each of the ways."""
    mine = str(terminal.home / "mine")
    kept = {name: value for name, value in terminal.env.items() if name != "TOCSIN_TOKEN"}
    started = [
        subprocess.Popen(
            [TOCSIN, *arguments], env=env, cwd=ROOT,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        for arguments, env in (
            (("sub", "in/**"), terminal.env),
            (("sub", "in/**", "--via", "ws", "--token-file", mine), kept),
            (("agent", "--listen", "off"), terminal.env),
            (("run", "--", "sleep", "30"), kept),
        )
    ]  # fmt: skip
    wait_until(lambda: all(name in command_lines() for name in ("sub in", "agent", "sleep 30")))
    time.sleep(1.0)
    processes = command_lines()
    for each in started:
        each.send_signal(signal.SIGTERM)
        terminal.written.append(each.communicate(timeout=20)[1])
    return processes


def move_away(terminal: Terminal, sink: str, subscription: str) -> None:
    """Another address gets the events, and not the credential."""
    address = broker_address(terminal.broker.url, token=terminal.env["TOCSIN_TOKEN"])
    with Rest(address) as rest:
        view = rest.patch(f"/subscriptions/{subscription}", {"sink": f"{sink}/elsewhere"})
        assert view["config"]["credential"] is None
    Sink.seen.clear()
    with Publisher(terminal.broker.url, token=terminal.env["TOCSIN_TOKEN"]) as publisher:
        publisher.publish("in/a", 2)
    wait_until(lambda: bool(Sink.seen))
    assert set(Sink.seen) == {None}


def test_a_sink_is_signed_in_to_again_after_a_restart(sink: str, tmp_path: Path) -> None:
    with served() as broker:
        terminal = Terminal(broker, tmp_path)
        subscribe(terminal, sink, tmp_path)
        assert broker.stop() == 0
        broker.start()

        with Publisher(broker.url) as publisher:
            publisher.publish("in/a", 1)
        wait_until(lambda: f"Bearer {SINK_TOKEN}" in Sink.seen)


def test_a_credential_is_not_sent_over_plain_http_to_another_machine(tmp_path: Path) -> None:
    with served() as broker:
        terminal = Terminal(broker, tmp_path)

        subscribe(terminal, "http://sink.example:80", tmp_path)

        assert "a credential is not sent over plain http" in terminal.written[-1]
