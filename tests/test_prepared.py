"""A command that is forked from the prepared interpreter is a process as any other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import prepared
from served import served

pytestmark = pytest.mark.skipif(
    subprocess.Popen is not prepared.PreparedPopen, reason="commands have interpreters of their own"
)
TOCSIN = [sys.executable, "-m", "tocsin"]


def command_line(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().decode().replace("\0", " ")


def test_it_has_its_own_streams_and_exit_code() -> None:
    found = subprocess.run([*TOCSIN, "explain", "T215"], capture_output=True, text=True)
    missing = subprocess.run([*TOCSIN, "nothing"], capture_output=True, text=True)

    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout.startswith("T215")
    assert (missing.returncode, missing.stdout) == (2, "")
    assert "no command 'nothing'" in missing.stderr


def test_it_has_its_own_directory_and_environment(tmp_path: Path) -> None:
    (tmp_path / "tocsin.toml").write_text('[http]\naddress = "127.0.0.1:1234"\n')
    environment = {**os.environ, "TOCSIN_LIMITS__STREAMS_MAX": "77"}
    command = [*TOCSIN, "config", "show", "--json"]

    shown = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    ).stdout

    assert "127.0.0.1:1234" in shown
    assert "77" in shown
    assert "TOCSIN_LIMITS__STREAMS_MAX" not in os.environ


def test_it_is_waited_for_and_killed_as_usual() -> None:
    with served() as broker:
        assert "prepared.py" in command_line(broker.pid)
        broker.kill()

        assert broker.process.returncode == -9


@pytest.mark.parametrize("name", ["PYTHONHASHSEED", "LC_ALL", "TZ"])
def test_whoever_asks_something_of_the_interpreter_gets_one(name: str) -> None:
    environment = {**os.environ, name: "1" if name == "PYTHONHASHSEED" else "C"}
    with served(env=environment) as broker:
        assert "-m tocsin serve" in command_line(broker.pid)
