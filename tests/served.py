"""A real broker process for a test: started on a free port, stopped by its own process id."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
START_S = 30.0
STOP_S = 10.0


class Served:
    """One broker process, and the simplest of clients for it."""

    def __init__(self, directory: Path, *flags: str, env: Mapping[str, str] | None = None) -> None:
        self.directory = directory
        self.flags = flags
        self.env = {**os.environ, **(env or {})}
        self.errors = directory.with_name(directory.name + ".stderr")
        self.address = "127.0.0.1:0"
        self.soap_tcp = "127.0.0.1:0"
        self.frames = "127.0.0.1:0"
        self.link = "127.0.0.1:0"
        self.start()

    def start(self) -> None:
        """Start, or start again on the same port."""
        command = [sys.executable, "-m", "tocsin", "serve", "--json", "--data", str(self.directory)]
        command += ["--http", self.address, "--soap-tcp", self.soap_tcp]
        command += ["--frames", self.frames, "--link", self.link, *self.flags]
        with self.errors.open("ab") as errors:
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=errors, env=self.env, cwd=ROOT
            )
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], START_S)
        line = self.process.stdout.readline() if ready else b""
        if not line:
            self.process.kill()
            raise AssertionError(f"no broker: {self.process.wait()} {self.said()[-2000:]}")
        addresses = json.loads(line)
        self.address = addresses["http"]
        self.soap_tcp = addresses.get("soap_tcp", "off")
        self.frames = addresses.get("frames", "off")
        self.link = addresses.get("link", "off")
        self.archive = addresses.get("archive", "off")
        self.scheme = "https" if addresses.get("tls") else "http"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.address}"

    @property
    def pid(self) -> int:
        return self.process.pid

    def said(self) -> str:
        """What it wrote to standard error."""
        return self.errors.read_text(errors="replace")

    def kill(self) -> None:
        """As a power cut would, but for the disk's cache."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """As an operator would. Returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self.kill()
                raise AssertionError(f"it does not stop: {self.said()[-2000:]}") from None
        return self.process.returncode

    def call(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Any]:
        """Status and the JSON of the answer; a body that is not bytes is sent as JSON."""
        host, _, port = self.address.rpartition(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=30)
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        kind = {} if body is None else {"content-type": "application/json"}
        try:
            connection.request(method, path, data, {**kind, **(headers or {})})
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text else None
        finally:
            connection.close()

    def publish(self, *events: Mapping[str, object]) -> Any:
        """Publish CloudEvents, given their members; what must be there has a default."""
        whole = [
            {"specversion": "1.0", "id": f"{time.time_ns()}-{n}", "source": "/t", "type": "t", **e}
            for n, e in enumerate(events)
        ]
        status, answer = self.call(
            "POST", "/events", whole, {"content-type": "application/cloudevents-batch+json"}
        )
        assert status == 202, answer
        return answer


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A directory for a broker. One that was killed has a child that ends a little later."""
    path = Path(tempfile.mkdtemp(prefix="tocsin-"))
    try:
        yield path
    finally:
        deadline = time.monotonic() + STOP_S
        while path.exists() and time.monotonic() < deadline:
            shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def served(*flags: str, env: Mapping[str, str] | None = None) -> Iterator[Served]:
    """A broker on a fresh data directory, gone afterwards."""
    with folder() as parent:
        broker = Served(parent / "data", *flags, env=env)
        try:
            yield broker
        finally:
            if broker.process.poll() is None:
                broker.process.kill()
            broker.process.wait()
            if broker.process.stdout is not None:
                broker.process.stdout.close()
