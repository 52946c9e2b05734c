"""What every part of the demo gets: a broker process to use, kill and start again; output."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tocsin.cli.render import colour, table
from tocsin.client.transport.connection import Connection
from tocsin.errors import NothingArrived

STOP_S = 5.0
WAIT_S_MAX = 40.0  # no part waits longer than this for a condition
SETTINGS = {
    "TOCSIN_ARCHIVE__ROLL_S": "1",  # the default is ten seconds
    "TOCSIN_ARCHIVE__FREE_BYTES_MIN": str(64 << 20),  # some MB are written
}


class DemoContext:
    """A broker on a free port, text on the screen, and results for `--json`."""

    def __init__(self, directory: Path, *, quiet: bool, keeps_data: bool = False) -> None:
        """`keeps_data`: the directory is still there when the demo is over."""
        self.directory = directory
        self.keeps_data = keeps_data
        self.results: dict[str, Any] = {}
        self._quiet = quiet
        self._address = "127.0.0.1:0"
        self.frames = "127.0.0.1:0"
        self._broker: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://{self._address}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._broker is not None and self._broker.poll() is None:
            self._broker.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._broker.wait(STOP_S)
            self.kill()

    def start(self) -> float:
        """Start the broker, on the port it had before. Returns the seconds until it was ready."""
        begun = time.perf_counter()
        command = [sys.executable, "-m", "tocsin", "serve", "--json"]
        command += ["--data", str(self.directory), "--http", self._address]
        command += ["--frames", self.frames, "--soap-tcp", "off"]
        with open(os.devnull, "wb") as nowhere:
            self._broker = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=nowhere, env={**os.environ, **SETTINGS}
            )
        assert self._broker.stdout is not None
        line = self._broker.stdout.readline()
        if not line:
            raise NothingArrived(
                "the broker did not start", remedy=f"Run: {' '.join(command)}, and read why."
            )
        addresses = json.loads(line)
        self._address, self.frames = addresses["http"], addresses["frames"]
        return time.perf_counter() - begun

    def kill(self) -> None:
        """kill -9: no clean shutdown, no last write."""
        assert self._broker is not None
        self._broker.kill()
        self._broker.wait()
        if self._broker.stdout is not None:
            self._broker.stdout.close()

    def wait(self) -> None:
        """Until the broker ends, or Ctrl-C."""
        assert self._broker is not None
        with contextlib.suppress(KeyboardInterrupt):
            self._broker.wait()

    def request(self, method: str, path: str, body: object = None) -> Any:
        """Call the broker's API; the JSON of its response, or its text."""
        data = b"" if body is None else json.dumps(body).encode()
        headers = [("Content-Type", "application/json")] if body is not None else []
        answer = Connection(self.url).request(method, path, body=data, headers=headers)
        text = answer.body.decode()
        return json.loads(text) if text.startswith(("{", "[")) else text

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait for a condition that must hold in the end."""
        deadline = time.monotonic() + WAIT_S_MAX
        while not holds():
            if time.monotonic() > deadline:
                raise NothingArrived(f"{what} did not happen", remedy="Please report this.")
            time.sleep(0.02)

    def heading(self, text: str) -> None:
        self.print(f"\n{colour(text, '1')}")

    def print(self, text: str) -> None:
        if not self._quiet:
            print(text, flush=True)

    def table(self, headers: list[str], rows: list[list[object]]) -> None:
        if not self._quiet:
            table(headers, rows)
            sys.stdout.flush()
