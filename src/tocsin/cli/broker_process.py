"""A broker as a process of its own: started on a free port, killed, started again on the same."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from tocsin.errors import NothingArrived

START_S_MAX = 40.0  # one to two seconds; more on a machine that does much else
STOP_S = 5.0


class BrokerProcess:
    """One broker. Addresses are those that it was given, or `off`; port 0 is any free one."""

    def __init__(
        self,
        directory: Path,
        *,
        frames: str = "off",
        link: str = "off",
        peers: tuple[str, ...] = (),
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.directory = directory
        self.frames = frames
        self.link = link
        self._address = "127.0.0.1:0"
        self._peers = peers
        self._settings = dict(settings or {})
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://{self._address}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, wait_s: float = START_S_MAX) -> float:
        """Start it, on the ports it had before. Returns the seconds until it was ready."""
        begun = time.perf_counter()
        command = [sys.executable, "-m", "tocsin", "serve", "--json"]
        command += ["--data", str(self.directory), "--http", self._address]
        command += ["--frames", self.frames, "--soap-tcp", "off", "--link", self.link]
        command += [word for peer in self._peers for word in ("--peer", peer)]
        with open(os.devnull, "wb") as nowhere:
            self._process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=nowhere,
                env={**os.environ, **self._settings},
            )
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], wait_s)
        line = self._process.stdout.readline() if ready else b""
        if not line:
            self.kill()
            raise NothingArrived(
                "the broker did not start", remedy=f"Run: {' '.join(command)}, and read why."
            )
        addresses = json.loads(line)
        self._address = addresses["http"]
        self.frames = addresses.get("frames", "off")
        self.link = addresses.get("link", "off")
        return time.perf_counter() - begun

    def kill(self) -> None:
        """kill -9: no clean shutdown, no last write."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def stop(self) -> None:
        """As an operator would; by force if that takes too long."""
        if self._process is None or not self.is_running:
            return
        self._process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_S)
        self.kill()

    def wait(self) -> None:
        """Until it ends."""
        assert self._process is not None
        self._process.wait()
