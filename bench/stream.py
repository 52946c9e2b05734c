"""`tocsin pipeline stream`: events a second from archive to tables, and how old an answer is.

    python bench/stream.py [--events 1M] [--rates 100 1000] [--seconds 240] [--json FILE]

`catching up` gives the stream an archive that is there (`tocsin synth`) and lets it end when all of
it is in the tables; beside it stands `tocsin pipeline run` on the same archive, which makes the
tables once. Both without the time that Spark takes to start.

`keeping up` runs a broker, publishes to it at a rate (the same archive, by `tocsin archive replay`)
and streams what the broker archives. An answer is as old as the youngest event that is in it:
youngest when the tables have just been made, oldest just before they are made again.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import load  # noqa: F401  # with it, what the tests have is within reach
import pipeline
import report
from served import served
from tocsin.archive.catalog import Catalog

MASTER: Final = "local[2]"
TRIGGER_S: Final = 2
REFRESH_S: Final = 10
WARM_EDITIONS: Final = 1  # in which Java compiles: left out
STOP_S: Final = 120.0


def stream_command(archive: str, tables: Path, *others: str) -> list[str]:
    places = ["--archive", archive, "--tables", str(tables)]
    return [
        *(str(pipeline.TOCSIN), "pipeline", "stream", *places),
        *("--master", MASTER, "--json", *others),
    ]


def received(process: subprocess.Popen[str]) -> Iterator[tuple[float, dict[str, Any]]]:
    """What the stream tells, and when."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("{"):
            yield time.time(), json.loads(line)


def catching_up(archive: Path, place: Path) -> dict[str, Any]:
    begun_s = time.time()
    command = stream_command(str(archive), place / "stream", "--once")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    lines = list(received(process))
    if process.wait():
        raise SystemExit("the stream failed")
    batches = [each for _, each in lines if each["kind"] == "batch"]
    last_s, made = lines[-1]
    first_s = lines[0][0] - batches[0]["took_s"]
    events = sum(each["events"] for each in batches)
    once = pipeline.run("spark", archive, place / "run")
    return {
        "events": events,
        "start_s": first_s - begun_s,
        "batches": len(batches),
        "batch_s": statistics.median(each["took_s"] for each in batches),
        "tables_s": made["took_s"],
        "stream_events_s": events / (last_s - first_s),
        "folded_events_s": events / sum(each["took_s"] for each in batches),
        "run_events_s": events / once.wall_s,
        "stream_over_run": once.wall_s / (last_s - first_s),
    }


def keeping_up(archive: Path, place: Path, rate: float, seconds: float) -> dict[str, Any]:
    pieces = Catalog(archive).pieces()
    with served(env={"TOCSIN_ARCHIVE__ROLL_S": "2"}) as broker:
        replay = subprocess.Popen(
            [
                *(str(pipeline.TOCSIN), "archive", "replay", str(archive)),
                *("--speed", f"{rate / own_rate(pieces):g}x", "--broker", broker.url),
                *("--keep-going", "--json"),
            ],
            stdout=subprocess.DEVNULL,
        )
        live = broker.directory / "archive"
        wait_for(live)
        paced = ["--trigger", str(TRIGGER_S), "--refresh", str(REFRESH_S)]
        command = stream_command(str(live), place, *paced)
        stream = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        editions: list[tuple[float, dict[str, Any]]] = []
        until = time.time() + seconds
        for at_s, each in received(stream):
            if each["kind"] == "tables":
                editions.append((at_s, each))
            if at_s > until and replay.poll() is None:
                replay.terminate()
                replay.wait(STOP_S)
                stream.send_signal(signal.SIGTERM)
        stream.wait(STOP_S)
    return {"rate": rate, **ages(editions)}


def wait_for(archive: Path) -> None:
    """Until the broker has archived something."""
    until = time.monotonic() + STOP_S
    while not (archive.is_dir() and Catalog(archive).pieces()):
        if time.monotonic() > until:
            raise SystemExit("the broker archives nothing")
        time.sleep(0.2)


def own_rate(pieces: list[Any]) -> float:
    """Events a second, as they came when they were archived."""
    days = len({Path(each.path).parent.name for each in pieces})
    return float(pieces[-1].last) / (days * 86_400)


def ages(editions: list[tuple[float, dict[str, Any]]]) -> dict[str, Any]:
    """How old answers were: when they were new, and just before the next."""
    warm = editions[WARM_EDITIONS:]
    if len(warm) < 2:
        raise SystemExit(f"only {len(editions)} times tables were made: give it more --seconds")
    young = [each["age_s"] for _, each in warm]
    old = [
        earlier["age_s"] + later_s - earlier_s
        for (earlier_s, earlier), (later_s, _) in pairwise(warm)
    ]
    events = warm[-1][1]["events"] - warm[0][1]["events"]
    return {
        "editions": len(warm),
        "events_s": events / (warm[-1][0] - warm[0][0]),
        "tables_s": statistics.median(each["took_s"] for _, each in warm),
        "new_age_s": statistics.median(young),
        "old_age_s": statistics.median(old),
        "oldest_age_s": max(old),
    }


def show(caught: dict[str, Any], kept: list[dict[str, Any]]) -> None:
    print("\ncatching up\n")
    report.table(("", ""), [(name.replace("_", " "), value) for name, value in caught.items()])
    print(f"\nkeeping up, a batch every {TRIGGER_S} s and tables every {REFRESH_S} s\n")
    report.table(
        ("rate", "events/s taken", "tables made in s", "age: new", "median before next", "oldest"),
        [
            (
                *(each["rate"], each["events_s"], each["tables_s"], each["new_age_s"]),
                *(each["old_age_s"], each["oldest_age_s"]),
            )
            for each in kept
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--events", default="1M", metavar="N")
    parser.add_argument("--rates", nargs="*", type=float, default=[100.0, 1000.0], metavar="R")
    parser.add_argument("--seconds", type=float, default=240.0, help="at each rate (240)")
    parser.add_argument("--quick", action="store_true", help="100k events, one rate")
    parser.add_argument("--json", metavar="FILE", help="keep the figures there")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.events, arguments.rates, arguments.seconds = "100k", [100.0], 240.0
    archive = pipeline.archive_of(arguments.events)
    place = Path(tempfile.mkdtemp(prefix="tocsin-stream-"))
    try:
        caught = catching_up(archive, place)
        kept = [
            keeping_up(archive, place / f"live-{rate:g}", rate, arguments.seconds)
            for rate in arguments.rates
        ]
    finally:
        shutil.rmtree(place, ignore_errors=True)
    show(caught, kept)
    if arguments.json:
        report.write("stream", {"catching_up": caught, "keeping_up": kept}, arguments.json)


if __name__ == "__main__":
    main()
