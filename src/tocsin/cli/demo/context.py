"""What every part of the demo gets: a broker process to use, kill and start again; output."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from tocsin.cli.broker_process import BrokerProcess
from tocsin.cli.render import colour, table
from tocsin.client.transport.connection import Connection
from tocsin.errors import NothingArrived

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
        self._broker = BrokerProcess(directory, frames="127.0.0.1:0", settings=SETTINGS)

    @property
    def url(self) -> str:
        return self._broker.url

    @property
    def frames(self) -> str:
        return self._broker.frames

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._broker.stop()

    def start(self) -> float:
        """Start the broker, on the port it had before. Returns the seconds until it was ready."""
        return self._broker.start()

    def kill(self) -> None:
        """kill -9: no clean shutdown, no last write."""
        self._broker.kill()

    def wait(self) -> None:
        """Until the broker ends, or Ctrl-C."""
        with contextlib.suppress(KeyboardInterrupt):
            self._broker.wait()

    def request(
        self, method: str, path: str, body: object = None, broker: str | None = None
    ) -> Any:
        """Call the API of a broker, this one's if none is named; its JSON, or its text."""
        data = b"" if body is None else json.dumps(body).encode()
        headers = [("Content-Type", "application/json")] if body is not None else []
        answer = Connection(broker or self.url).request(method, path, body=data, headers=headers)
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
