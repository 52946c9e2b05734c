"""Load for the benchmarks: cheap clients, so that the server is what is measured.

Each client keeps one request under way on its connection and looks at nothing of the answer but
its status. Requests are cut from a template, so that no event repeats another's id.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import uvloop

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

ID_DIGITS = 12
EVENT_BYTES = 600


def template(bytes_wanted: int = EVENT_BYTES, source: str = "/bench") -> tuple[bytes, bytes]:
    """What stands before and after the id in a structured event of about so many bytes."""
    event = {
        "specversion": "1.0",
        "id": "@",
        "source": source,
        "type": "org.tocsin.bench",
        "topic": "bench/load",
        "time": "2026-11-15T12:00:00Z",
        "datacontenttype": "application/json",
        "data": {"load5": 1.5, "text": ""},
    }
    missing = bytes_wanted - len(json.dumps(event)) - ID_DIGITS + 1
    event["data"] = {"load5": 1.5, "text": "x" * max(0, missing)}
    before, after = json.dumps(event).encode().split(b'"@"')
    return before + b'"', b'"' + after


class Requests:
    """POSTs of so many events each, with ids that go on from `first`."""

    def __init__(
        self, batch: int, first: int = 0, bytes_wanted: int = EVENT_BYTES, headers: bytes = b""
    ) -> None:
        """`headers`: further ones, each with its line end."""
        self.batch = batch
        self._next = first
        self._before, self._after = template(bytes_wanted)
        one = len(self._before) + ID_DIGITS + len(self._after)
        kind = b"cloudevents" if batch == 1 else b"cloudevents-batch"
        length = one if batch == 1 else batch * (one + 1) + 1
        self._head = (
            b"POST /events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/%s+json\r\n"
            b"Content-Length: %d\r\n%b\r\n" % (kind, length, headers)
        )

    def make(self) -> bytes:
        first = self._next
        self._next += self.batch
        if self.batch == 1:
            return b"%b%b%012d%b" % (self._head, self._before, first, self._after)
        events = b",".join(
            b"%b%012d%b" % (self._before, number, self._after)
            for number in range(first, first + self.batch)
        )
        return b"%b[%b]" % (self._head, events)


class Client(asyncio.Protocol):
    """One connection, so many requests under way."""

    def __init__(self, requests: Requests, under_way: int, counts: list[int]) -> None:
        self._requests = requests
        self._under_way = under_way
        self._counts = counts

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.transport.write(b"".join(self._requests.make() for _ in range(self._under_way)))  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        answers = data.count(b"HTTP/1.1 202")
        if not answers and data.startswith(b"HTTP/1.1 "):
            raise SystemExit(data.decode())
        self._counts[0] += answers * self._requests.batch
        if answers == 1:
            self.transport.write(self._requests.make())  # type: ignore[attr-defined]
        elif answers:
            self.transport.write(b"".join(self._requests.make() for _ in range(answers)))  # type: ignore[attr-defined]


async def _blast(
    host: str, port: int, connections: int, batch: int, under_way: int, seconds: float, size: int
) -> float:
    loop = asyncio.get_running_loop()
    counts = [0]
    base = int(time.time() * 1000) % 10**9 * 1000
    for number in range(connections):
        requests = Requests(batch, (base + number * 5_000_000) % 10**ID_DIGITS, size)
        await loop.create_connection(
            lambda r=requests: Client(r, under_way, counts),
            host,
            port,  # type: ignore[misc]
        )
    await asyncio.sleep(min(0.5, seconds / 4))
    start, before = time.perf_counter(), counts[0]
    await asyncio.sleep(seconds)
    return (counts[0] - before) / (time.perf_counter() - start)


def main() -> None:
    """`load.py ADDRESS CONNECTIONS BATCH UNDER_WAY SECONDS BYTES`: prints acknowledged a second."""
    address, connections, batch, under_way, seconds, size = sys.argv[1:]
    host, _, port = address.rpartition(":")
    rate = uvloop.run(
        _blast(
            host,
            int(port),
            int(connections),
            int(batch),
            int(under_way),
            float(seconds),
            int(size),
        )
    )
    print(rate)
    sys.stdout.flush()
    os._exit(0)


def start_load(
    address: str,
    *,
    connections: int = 64,
    batch: int = 1,
    under_way: int = 1,
    seconds: float = 3.0,
    size: int = EVENT_BYTES,
) -> subprocess.Popen[bytes]:
    """The load in a process of its own."""
    words = [address, connections, batch, under_way, seconds, size]
    return subprocess.Popen(
        [sys.executable, __file__, *map(str, words)], stdout=subprocess.PIPE, cwd=ROOT
    )


def rate_of(load: subprocess.Popen[bytes]) -> float:
    out, _ = load.communicate(timeout=120)
    if load.returncode != 0:
        raise SystemExit(f"the load failed: {out.decode()}")
    return float(out)


def cpu_s(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rate_and_cost(pid: int, load: subprocess.Popen[bytes], seconds: float) -> tuple[float, float]:
    """Events a second, and events a CPU-second of the server, while the load runs."""
    time.sleep(min(0.5, seconds / 4) + 0.3)
    start, before = time.perf_counter(), cpu_s(pid)
    time.sleep(seconds * 0.7)
    used = (cpu_s(pid) - before) / (time.perf_counter() - start)
    rate = rate_of(load)
    return rate, rate / used


@contextlib.contextmanager
def starlette_peer() -> Iterator[tuple[str, int]]:
    """uvicorn and Starlette answering 202 to a POST, storing nothing: address and process id."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "--app-dir", str(Path(__file__).parent)]
    command += ["starlette_202:app", "--port", str(port), "--no-access-log"]
    command += ["--log-level", "error", "--loop", "uvloop", "--http", "httptools"]
    process = subprocess.Popen(command)
    try:
        for _ in range(100):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1)
        yield f"127.0.0.1:{port}", process.pid
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    main()
