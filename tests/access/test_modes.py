"""Modes, and the administrator's token."""

from __future__ import annotations

import json
import os
import select
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from users import EVENT, REQUIRED, admin

from served import ROOT, Served, served


def refused_start(
    *flags: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as directory:
        return subprocess.run(
            [sys.executable, "-m", "tocsin", "serve", *flags, "--data", directory],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={**os.environ, **(env or {})},
            timeout=30,
            check=False,
        )


# Modes


def test_to_be_open_beyond_this_machine_wants_a_word() -> None:
    found = refused_start("--http", "0.0.0.0:0", env={"TOCSIN_AUTH__MODE": "open"})

    assert found.returncode == 2
    assert "T002" in found.stderr
    assert "--open" in found.stderr


def test_beyond_this_machine_clients_must_sign_in() -> None:
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-m", "tocsin", "serve", "--http", "0.0.0.0:0", "--json"]
        command += ["--frames", "off", "--soap-tcp", "off", "--link", "off", "--data", directory]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
        )
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            assert select.select([process.stdout], [], [], 30)[0]
            said = json.loads(process.stdout.readline())
            port = int(said["http"].rpartition(":")[2])
            with socket.create_connection(("127.0.0.1", port), 10) as client:
                client.sendall(
                    b"GET /events HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
                )
                answer = client.makefile("rb").read()
        finally:
            process.terminate()
            notes = process.communicate(timeout=20)[1].decode()

    assert answer.startswith(b"HTTP/1.1 401 ")
    assert b"www-authenticate: Bearer" in answer
    assert said["admin_token"].endswith("admin.token")
    assert "there is no TLS" in notes


def test_on_loopback_everybody_may_do_everything_and_nothing_can_be_granted() -> None:
    with served() as running:
        assert running.publish(EVENT)["accepted"] == 1
        assert not (running.directory / "admin.token").exists()
        for path, body in (
            ("/access/tokens", {"principal": "ann"}),
            ("/access/rules", {"principal": "ann", "action": "read"}),
        ):
            status, problem = running.call("POST", path, body)
            assert (status, problem["code"]) == (403, "T215")
            assert "auth.mode" in problem["detail"]


def test_rules_that_nobody_would_enforce_stop_the_start(tmp_path: Path) -> None:
    file = tmp_path / "tocsin.toml"
    file.write_text('[[access]]\nprincipal = "ann"\naction = "read"\n')

    found = refused_start("--config", str(file), "--http", "127.0.0.1:0")

    assert found.returncode == 2
    assert "auth.mode" in found.stderr


# The administrator's token


def test_the_first_start_writes_an_administrators_token_for_its_owner_alone(broker: Served) -> None:
    path = broker.directory / "admin.token"

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "admin.token" in broker.said()
    assert path.read_text().strip() not in broker.said()
    assert broker.call("GET", "/access/whoami", headers=admin(broker))[1]["principal"] == "admin"


def test_a_lost_administrators_token_is_made_anew_and_the_old_one_is_over() -> None:
    with served(env=REQUIRED) as running:
        path, old = running.directory / "admin.token", admin(running)
        running.stop()
        running.start()
        assert admin(running) == old
        running.stop()
        path.unlink()
        running.start()

        assert admin(running) != old
        assert running.call("GET", "/status", headers=old)[0] == 401
        assert running.call("GET", "/status", headers=admin(running))[0] == 200


def test_an_administrators_token_that_others_can_read_stops_the_start() -> None:
    with served(env=REQUIRED) as running:
        running.stop()
        (running.directory / "admin.token").chmod(0o644)

        with pytest.raises(AssertionError, match="chmod 600"):
            running.start()
