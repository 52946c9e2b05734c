"""What `tocsin doctor` looks at, one function each: settings, a broker, its clock, disks, sinks."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tocsin import __version__
from tocsin.console.failure import words
from tocsin.console.progress import Progress
from tocsin.console.render import plural
from tocsin.console.rest import Rest
from tocsin.errors import DataDirectoryInUse, TocsinError

if TYPE_CHECKING:
    from tocsin.store.reader import CheckReport

SKEW_S_MAX = 2.0
FREE_BYTES_LOW = 2 << 30
FREE_BYTES_NONE = 200 << 20
SLOW_SHOWN_MAX = 5
DEAD_COUNTED_MAX = 1_000
DAMAGED_SHOWN_MAX = 10
CORRUPT_FIGURE = "tocsin_records_corrupt_total"

Level = Literal["ok", "warn", "fail"]


class Finding(NamedTuple):
    """One line of the report."""

    level: Level
    subject: str
    words: str
    remedy: str = ""


def settings_findings() -> list[Finding]:
    """Which settings file there is, and whether it can be read."""
    from tocsin.config import find_file, load

    try:
        file = find_file(None, os.environ)
        load({}, os.environ, file)
    except TocsinError as error:
        return [Finding("fail", "settings", error.problem, error.remedy)]
    return [Finding("ok", "settings", f"{file}" if file else "no file; defaults and environment")]


def broker_findings(rest: Rest) -> list[Finding]:
    """Whether a broker answers, which one, whether it is ready and what its clock says."""
    answer = rest.request("GET", "/livez")
    answer.value()
    found = [_version(rest, answer.headers.get("server", ""))]
    skew_s = _skew_s(answer.headers.get("date", ""))
    if skew_s is not None:
        level: Level = "ok" if abs(skew_s) <= SKEW_S_MAX else "warn"
        found.append(
            Finding(
                level,
                "clock",
                f"the broker's differs by {skew_s:+.0f} s",
                "Set both machines' clocks by NTP; `--since` and expiry depend on them.",
            )
        )
    ready = rest.request("GET", "/readyz")
    if ready.status != 200:
        problem = ready.body.decode("utf-8", "replace")[:300]
        found.append(Finding("fail", "ready", problem, "See the broker's own log."))
    return found


def _version(rest: Rest, server: str) -> Finding:
    if server.partition("/")[0].lower() != "tocsin":
        remedy = "Name the broker with --broker."
        words = f"{rest.address} does not say that it is Tocsin"
        return Finding("warn", "broker", words, remedy)
    version = rest.get("/openapi.json")["info"]["version"]
    if version != __version__:
        remedy = "Install the same version on both sides."
        words = f"{rest.address} is {version}, this is {__version__}"
        return Finding("warn", "broker", words, remedy)
    return Finding("ok", "broker", f"{rest.address} answers, version {version}")


def _skew_s(date: str) -> float | None:
    """How far ahead the broker's clock is. Its Date has whole seconds, cut, not rounded."""
    try:
        ahead_s = (parsedate_to_datetime(date) - datetime.now(UTC)).total_seconds()
    except (TypeError, ValueError):
        return None
    return min(0.0, ahead_s + 1) if ahead_s < 0 else ahead_s


def subscription_findings(rest: Rest) -> list[Finding]:
    """Slow consumers and sinks that do not answer, by name."""
    found: list[Finding] = []
    count = 0
    for view in rest.pages("/subscriptions", "subscriptions", sort="behind"):
        count += 1
        trouble = _trouble(view)
        if trouble and len(found) < SLOW_SHOWN_MAX:
            remedy = f"See `tocsin subs show {view['id']}`."
            found.append(Finding("warn", "subscription", f"{view['id']} {trouble}", remedy))
    level: Level = "warn" if found else "ok"
    return [Finding(level, "subscriptions", plural(count, "subscription")), *found]


def _trouble(view: dict[str, Any]) -> str | None:
    sink = view.get("sink")
    if view.get("sink_state") in ("busy", "failing", "unreachable"):
        return f"to {sink}: {view['sink_state']}: {view.get('last_error')}"
    if view.get("state") in ("paused", "pending") and view.get("reason"):
        return f"to {sink} is {view['state']}: {view['reason']}"
    if view.get("lagging"):
        return f"to {sink} is {view.get('behind')} events behind"
    return None


def log_findings(rest: Rest) -> list[Finding]:
    """Damaged records that the running broker came across."""
    figures = rest.request("GET", "/metrics").body.decode("utf-8", "replace")
    for line in figures.splitlines():
        name, _, value = line.partition(" ")
        if name == CORRUPT_FIGURE and float(value):
            words = f"{plural(int(float(value)), 'record')} damaged, and not served"
            remedy = "The broker's own log names them; stop it and run `tocsin doctor --data DIR`."
            return [Finding("fail", "log", words, remedy)]
    return []


def dead_letter_findings(rest: Rest) -> list[Finding]:
    """How many events were given up."""
    page = rest.get("/deadletters", limit=DEAD_COUNTED_MAX)
    count = len(page["deadletters"])
    if not count:
        return [Finding("ok", "dead letters", "none")]
    more = "at least " if page.get("next") is not None else ""
    remedy = "Look with `tocsin dlq ls`; send them again with `tocsin dlq redrive --all`."
    return [Finding("warn", "dead letters", f"{more}{count}", remedy)]


def disk_findings(directory: Path) -> list[Finding]:
    """How much room is left where events are kept."""
    usage = shutil.disk_usage(directory)
    level: Level = "ok"
    if usage.free < FREE_BYTES_LOW:
        level = "fail" if usage.free < FREE_BYTES_NONE else "warn"
    remedy = "Make room, or lower log.retain_bytes; a full disk refuses events."
    return [Finding(level, "disk", f"{usage.free / 2**30:.1f} GiB free in {directory}", remedy)]


def store_findings(directory: Path) -> list[Finding]:
    """Every record and page of the log against its checksum; not beside a running broker."""
    from tocsin.store.directory import LOG_NAME, lock_directory
    from tocsin.store.reader import Reader

    if not (directory / LOG_NAME).exists():
        return [Finding("fail", "log", f"there is none in {directory}", "Name a data directory.")]
    try:
        held = lock_directory(directory)
    except DataDirectoryInUse:
        remedy = "Stop the broker to have every record checked."
        return [Finding("warn", "log", "not checked: a broker works here", remedy)]
    try:
        reader = Reader.open(directory)
        try:
            with Progress("checking the log", reader.marks().last_seq) as progress:
                report = reader.check(progress.reach)
        finally:
            reader.close()
    except TocsinError as error:
        return [Finding("fail", "log", error.problem, error.remedy)]
    finally:
        os.close(held)
    if report.ok:
        kept = max(0, report.last_seq - report.first_seq + 1)
        return [
            Finding("ok", "log", f"{plural(kept, 'event')}, {report.size_bytes:,} bytes, sound")
        ]
    return _damage(report)


def _damage(report: CheckReport) -> list[Finding]:
    lines = list(report.damage)
    if report.corrupt_count:
        named = ", ".join(str(seq) for seq in report.corrupt[:DAMAGED_SHOWN_MAX])
        more = ", ..." if report.corrupt_count > DAMAGED_SHOWN_MAX else ""
        lines.insert(0, f"{plural(report.corrupt_count, 'record')} damaged: {named}{more}")
    remedy = "Copy the directory before anything else; the broker serves what is sound."
    return [Finding("fail", "log", line, remedy if line is lines[0] else "") for line in lines]


def unreachable_finding(error: TocsinError) -> Finding:
    """The broker does not answer."""
    return Finding(
        "fail", "broker", words(error).removeprefix("tocsin: ").split("\n")[0], error.remedy
    )
