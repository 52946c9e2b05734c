"""Part: what was recorded of ten runs of Snakemake becomes tables, a page, and better answers."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import msgspec

from tocsin.cli.demo.context import DemoContext
from tocsin.cli.demo.metrics import values
from tocsin.client.blackboard import open_link
from tocsin.errors import SomeFailed, TocsinError
from tocsin.errors.spark import SparkMissing
from tocsin.wire.blackboard.messages import Message

RECORDING: Final = "recordings/snakemake.jsonl.gz"
WORKFLOW: Final = "samples"
ACTIVITY: Final = "sort"  # its time follows the size of its input
SHOWN: Final = 5  # rows of each table
SPARK_S: Final = 180.0  # some 30 s of processor time: more on a machine that does much else
ENDS: Final = ("ActivitySucceeded", "ActivityFailed", "ActivityRetrying")
MB: Final = 1e6

Row = dict[str, Any]


def run(demo: DemoContext) -> None:
    messages = recorded()
    try:
        _check_spark()
    except TocsinError as missing:
        demo.print(f"Left out: {missing.problem}. {missing.remedy}")
        demo.results["history"] = {"left_out": missing.problem}
        return
    _publish(demo, messages)
    done = _pipeline(demo)
    _show_tables(demo)
    report = _report(demo)
    answer = _learned(demo)
    demo.results["history"] = {
        "messages": len(messages),
        "tables": done["tables"],
        "seconds": done["seconds"],
        "starting_s": done["started_s"],
        "report": str(report),
        "learned": answer["learned"],
    }
    _check(demo, messages, answer)


def recorded() -> list[Message]:
    """The messages that the package brings along; its README describes them."""
    packed = files("tocsin.cli.demo").joinpath(RECORDING).read_bytes()
    read = msgspec.json.Decoder(Message).decode
    return [read(line) for line in gzip.decompress(packed).splitlines()]


def _check_spark() -> None:
    from tocsin.pipeline.spark.java import find_java

    if find_spec("pyspark") is None:
        raise SparkMissing(
            "the pipeline needs Spark's Python package, which is not there",
            remedy="Install it: pip install 'tocsin[spark]'.",
        )
    find_java()


def _publish(demo: DemoContext, messages: Sequence[Message]) -> None:
    runs = len({each.pairs["RunId"] for each in messages})
    demo.print(
        f"{len(messages):,} messages of Snakemake's adapter about {runs} runs are published;\n"
        "the broker puts them into Parquet files. Then `tocsin pipeline run`:"
    )
    link = open_link(demo.url)
    try:
        link.publish(messages)
    finally:
        link.close()
    head = _metrics(demo)["log_head"]
    demo.until(lambda: _metrics(demo)["archive_through"] >= head, "archiving")


def _metrics(demo: DemoContext) -> dict[str, float]:
    return values(str(demo.request("GET", "/metrics")))


def _pipeline(demo: DemoContext) -> Row:
    begun_s = time.perf_counter()
    archive = str(demo.directory / "archive")
    done: Row = json.loads(_tocsin(demo, "run", "--archive", archive, "--json", "--verbose"))
    whole_s = time.perf_counter() - begun_s
    demo.print(
        f"  {done['counts']['events']:,} events made into {len(done['tables'])} tables by Spark\n"
        f"  in {whole_s:.1f} s, of which {done['started_s']:.1f} s to start it\n"
    )
    return done


def _tocsin(demo: DemoContext, action: str, *arguments: str) -> bytes:
    """The output of `tocsin pipeline` in its own process; its steps are printed as they come."""
    command = [sys.executable, "-m", "tocsin", "pipeline", action, *arguments]
    command += ["--tables", str(demo.directory / "tables")]
    last, begun_s = "", time.monotonic()
    with (
        tempfile.TemporaryFile() as printed,
        subprocess.Popen(command, stdout=printed, stderr=subprocess.PIPE, text=True) as running,
    ):
        timer = threading.Timer(SPARK_S, running.kill)
        timer.start()
        assert running.stderr is not None
        for line in running.stderr:
            last = line.strip()
            demo.print(f"  {last}")
        code = running.wait()
        timer.cancel()
        printed.seek(0)
        found = printed.read()
    if code and time.monotonic() - begun_s >= SPARK_S:
        raise SomeFailed(
            f"`tocsin pipeline {action}` did not end within {SPARK_S:.0f} s",
            remedy="Try again when the machine has less to do.",
        )
    if code:
        raise SomeFailed(
            f"`tocsin pipeline {action}` failed: {last or code}",
            remedy=f"Run: {' '.join(command)}, and read why.",
        )
    return found


def _rows(demo: DemoContext, table: str) -> list[Row]:
    from tocsin.tables.published import read_table

    found: list[Row] = read_table(demo.directory / "tables", table).to_pylist()
    return found


def _show_tables(demo: DemoContext) -> None:
    stats = sorted(_rows(demo, "activity_stats"), key=lambda row: -(row["busy_s"] or 0))
    demo.table(
        ["activity_stats", "ran", "failed", "mean", "p50", "p90", "in all"],
        [
            [
                f"{row['workflow']} {row['activity']}",
                *(row["count"], row["failed"]),
                *(_seconds(row[name]) for name in ("mean_s", "p50_s", "p90_s", "busy_s")),
            ]
            for row in stats[:SHOWN]
        ],
    )
    lines = [row for row in _rows(demo, "cost_models") if row["slope"] is not None]
    lines.sort(key=lambda row: row["median_error"] or 0)
    demo.print("")
    demo.table(
        ["cost_models", "target", "of", "as a line over input", "typically off by"],
        [
            [
                f"{row['workflow']} {row['activity']}",
                *(row["target"], row["count"]),
                f"{row['intercept']:+.2f} s {row['slope'] * MB:+.3f} s/MB",
                "" if row["median_error"] is None else f"{row['median_error']:.0%}",
            ]
            for row in lines
            if row["target"] == "duration_s"
        ][:SHOWN],
    )
    demo.print("")
    demo.table(
        ["failures", "attempt", "exit", "seen", "error"],
        [
            [
                f"{row['workflow']} {row['activity']}",
                *(row["attempt"], row["exit_code"], f"{row['seen']} times"),
                _short(row["error"] or ""),
            ]
            for row in _rows(demo, "failures")[:SHOWN]
        ],
    )
    demo.print("")


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.2f} s"


def _short(text: str, chars: int = 60) -> str:
    line = " ".join(text.split())
    return line if len(line) <= chars else line[: chars - 3] + "..."


def _report(demo: DemoContext) -> Path:
    """The page with plots, where it is still there when the demo is over."""
    if demo.keeps_data:
        place = demo.directory / "report.html"
    else:
        place = Path(tempfile.mkdtemp(prefix="tocsin-demo-report-")) / "report.html"
    _tocsin(demo, "report", "--html", str(place))
    demo.print(f"A page with plots, to be opened in a browser: {place}")
    return place


def _learned(demo: DemoContext) -> Row:
    """What the broker answers about an activity, once it has seen the tables."""
    found: Row = {}

    def has_tables() -> bool:
        found.update(demo.request("GET", f"/activities/{ACTIVITY}?workflow={WORKFLOW}"))
        return found.get("learned") is not None

    demo.until(has_tables, "that the broker reads the tables")
    learned = found["learned"]
    demo.print(
        f"GET /activities/{ACTIVITY} now answers from the tables (version {learned['version']}, "
        f"{learned['age_s']:.0f} s old): {found['count']} attempts,\n"
        f"half of them within {found['p50_s']:.2f} s, nine in ten within {found['p90_s']:.2f} s."
    )
    return found


def _check(demo: DemoContext, messages: Sequence[Message], answer: Row) -> None:
    """For each activity, the tables have as many ended attempts as the messages."""
    ended = Counter(
        (each.pairs["WorkflowName"], each.pairs["ActivityType"])
        for each in messages
        if any(end in each.pairs for end in ENDS)
    )
    stats = {
        (row["workflow"], row["activity"]): row["count"] for row in _rows(demo, "activity_stats")
    }
    held = all(stats.get(key) == count for key, count in ended.items()) and (
        answer["count"] == ended[WORKFLOW, ACTIVITY] and answer["learned"]["problem"] is None
    )
    if not held:
        raise SomeFailed("the tables differ from what was published", remedy="Please report this.")
