"""Part: this host is monitored; every consumer gets events at its own period."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

from tocsin.cli.demo.context import WAIT_S_MAX, DemoContext
from tocsin.client.gma import Consumer, Producer
from tocsin.errors import SomeFailed

LOAD = "UptimeCPULoad"
STEP = "{urn:demo}SolverStep"
STEPS = 300
WATCH_S = 3.0
PERIODS_S = (0.2, 1.0)


def run(demo: DemoContext) -> None:
    with _agent(demo.url):
        address = _found(demo)
        demo.print(
            f"`tocsin agent` monitors this host; the directory lists it at {address}.\n"
            "Two consumers of the Grid Forum's protocol ask it for its load, at different Periods."
        )
        came = {f"asks every {period:g} s": _watched(address, period) for period in PERIODS_S}
        fast, slow = came.values()
        solver = _solver(demo)
        loads = _loads(demo)
    rows: list[list[object]] = [[who, f"{count} in {WATCH_S:g} s"] for who, count in came.items()]
    rows.append(["the broker, as an archive, every 0.5 s", f"{loads} so far"])
    rows.append([f"a solver pushed {STEPS} steps; the broker was killed meanwhile", solver])
    demo.table(["who", "events"], rows)
    demo.results["performance"] = {"fast": fast, "slow": slow, "solver": solver}
    if solver != STEPS or not fast > slow > 0 or not loads:
        raise SomeFailed("performance events are missing", remedy="Please report this.")
    demo.print(f"`tocsin sub --as gma {demo.frames} {LOAD} 'Load5 >= 5'` follows busy hosts alone.")


@contextmanager
def _agent(broker: str) -> Iterator[None]:
    """The host monitor, as its own process."""
    command = [sys.executable, "-m", "tocsin", "agent", "--broker", broker]
    command += ["--period", "0.5s", "--listen", "127.0.0.1:0"]
    monitor = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        monitor.send_signal(signal.SIGTERM)
        try:
            monitor.wait(5.0)
        except subprocess.TimeoutExpired:
            monitor.kill()
            monitor.wait()


def _found(demo: DemoContext) -> str:
    """The address of the agent in the directory."""
    found: list[str] = []

    def is_there() -> bool:
        page = demo.request(
            "GET", f"/directory?kind=producer&event={LOAD}&filter={quote('name = agent')}"
        )
        found[:] = [entry["address"] for entry in page["entries"]]
        return bool(found)

    demo.until(is_there, "the agent's registration")
    return found[0]


def _watched(address: str, period_s: float) -> int:
    """How many events come in a while to one who asks for this period."""
    came = 0
    with Consumer(address) as consumer, consumer.subscribe(LOAD, period=period_s) as events:
        until = time.monotonic() + WATCH_S
        while (left_s := until - time.monotonic()) > 0:
            came += events.take(left_s) is not None
    return came


def _solver(demo: DemoContext) -> int:
    """How many of a producer's events are in the log, if the broker dies while they come."""
    with Producer(None, host="demo") as producer:
        producer.offer(STEP)
        feed = producer.push_to(f"gma://{demo.frames}", STEP)
        for step in range(STEPS):
            producer.emit(STEP, {"Step": step, "Residual": 1.0 / (step + 1)})
            if step == STEPS // 2:
                demo.kill()
                demo.start()
        feed.flush(WAIT_S_MAX)
    wanted = quote("type = 'urn:demo/SolverStep'")
    page = demo.request("GET", f"/events?after=0&limit=1000&filter={wanted}")
    return len(page["events"])


def _loads(demo: DemoContext) -> int:
    page = demo.request("GET", f"/events?after=0&limit=1000&filter={quote(f'topic gma/{LOAD}/**')}")
    return len(page["events"])
