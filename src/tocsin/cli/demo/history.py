"""Scene: what was recorded of ten runs of Snakemake becomes tables, a page, and better answers."""

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

from tocsin.cli.demo.figures import values
from tocsin.cli.demo.stage import Stage
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


def play(stage: Stage) -> None:
    messages = recorded()
    try:
        _must_have_spark()
    except TocsinError as missing:
        stage.say(f"Left out: {missing.problem}. {missing.remedy}")
        stage.results["history"] = {"left_out": missing.problem}
        return
    _publish(stage, messages)
    done = _pipeline(stage)
    _show_tables(stage)
    report = _report(stage)
    answer = _learned(stage)
    stage.results["history"] = {
        "messages": len(messages),
        "tables": done["tables"],
        "seconds": done["seconds"],
        "starting_s": done["started_s"],
        "report": str(report),
        "learned": answer["learned"],
    }
    _check(stage, messages, answer)


def recorded() -> list[Message]:
    """The messages that the package brings along; its README says of what."""
    packed = files("tocsin.cli.demo").joinpath(RECORDING).read_bytes()
    read = msgspec.json.Decoder(Message).decode
    return [read(line) for line in gzip.decompress(packed).splitlines()]


def _must_have_spark() -> None:
    from tocsin.pipeline.spark.java import find_java

    if find_spec("pyspark") is None:
        raise SparkMissing(
            "the pipeline needs Spark's Python package, which is not there",
            remedy="Install it: pip install 'tocsin[spark]'.",
        )
    find_java()


def _publish(stage: Stage, messages: Sequence[Message]) -> None:
    runs = len({each.pairs["RunId"] for each in messages})
    stage.say(
        f"{len(messages):,} messages of Snakemake's adapter about {runs} runs are published;\n"
        "the broker puts them into Parquet files. Then `tocsin pipeline run`:"
    )
    link = open_link(stage.url)
    try:
        link.publish(messages)
    finally:
        link.close()
    head = _metrics(stage)["log_head"]
    stage.until(lambda: _metrics(stage)["archive_through"] >= head, "archiving")


def _metrics(stage: Stage) -> dict[str, float]:
    return values(str(stage.ask("GET", "/metrics")))


def _pipeline(stage: Stage) -> Row:
    begun_s = time.perf_counter()
    archive = str(stage.directory / "archive")
    done: Row = json.loads(_tocsin(stage, "run", "--archive", archive, "--json", "--verbose"))
    whole_s = time.perf_counter() - begun_s
    stage.say(
        f"  {done['counts']['events']:,} events made into {len(done['tables'])} tables by Spark\n"
        f"  in {whole_s:.1f} s, of which {done['started_s']:.1f} s to start it\n"
    )
    return done


def _tocsin(stage: Stage, action: str, *arguments: str) -> bytes:
    """What `tocsin pipeline` prints, in a process of its own; its steps are said as they come."""
    command = [sys.executable, "-m", "tocsin", "pipeline", action, *arguments]
    command += ["--tables", str(stage.directory / "tables")]
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
            stage.say(f"  {last}")
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


def _rows(stage: Stage, table: str) -> list[Row]:
    from tocsin.tables.published import read_table

    found: list[Row] = read_table(stage.directory / "tables", table).to_pylist()
    return found


def _show_tables(stage: Stage) -> None:
    stats = sorted(_rows(stage, "activity_stats"), key=lambda row: -(row["busy_s"] or 0))
    stage.table(
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
    lines = [row for row in _rows(stage, "cost_models") if row["slope"] is not None]
    lines.sort(key=lambda row: row["median_error"] or 0)
    stage.say("")
    stage.table(
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
    stage.say("")
    stage.table(
        ["failures", "attempt", "exit", "seen", "error"],
        [
            [
                f"{row['workflow']} {row['activity']}",
                *(row["attempt"], row["exit_code"], f"{row['seen']} times"),
                _short(row["error"] or ""),
            ]
            for row in _rows(stage, "failures")[:SHOWN]
        ],
    )
    stage.say("")


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.2f} s"


def _short(text: str, chars: int = 60) -> str:
    line = " ".join(text.split())
    return line if len(line) <= chars else line[: chars - 3] + "..."


def _report(stage: Stage) -> Path:
    """The page with plots, where it is still there when the demo is over."""
    if stage.stays:
        place = stage.directory / "report.html"
    else:
        place = Path(tempfile.mkdtemp(prefix="tocsin-demo-report-")) / "report.html"
    _tocsin(stage, "report", "--html", str(place))
    stage.say(f"A page with plots, to be opened in a browser: {place}")
    return place


def _learned(stage: Stage) -> Row:
    """What the broker answers about an activity, once it has seen the tables."""
    found: Row = {}

    def has_tables() -> bool:
        found.update(stage.ask("GET", f"/activities/{ACTIVITY}?workflow={WORKFLOW}"))
        return found.get("learned") is not None

    stage.until(has_tables, "that the broker reads the tables")
    learned = found["learned"]
    stage.say(
        f"GET /activities/{ACTIVITY} now answers from the tables (version {learned['version']}, "
        f"{learned['age_s']:.0f} s old): {found['count']} attempts,\n"
        f"half of them within {found['p50_s']:.2f} s, nine in ten within {found['p90_s']:.2f} s."
    )
    return found


def _check(stage: Stage, messages: Sequence[Message], answer: Row) -> None:
    """Counted by hand: as many attempts ended, of each activity, as messages say so."""
    told = Counter(
        (each.pairs["WorkflowName"], each.pairs["ActivityType"])
        for each in messages
        if any(end in each.pairs for end in ENDS)
    )
    stats = {
        (row["workflow"], row["activity"]): row["count"] for row in _rows(stage, "activity_stats")
    }
    held = all(stats.get(key) == count for key, count in told.items()) and (
        answer["count"] == told[WORKFLOW, ACTIVITY] and answer["learned"]["problem"] is None
    )
    if not held:
        raise SomeFailed("the tables differ from what was published", remedy="Please report this.")
