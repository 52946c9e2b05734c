"""Checks of a data directory: free space, permissions, every record of the logs."""

from __future__ import annotations

import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tocsin.cli.doctor.broker import FREE_BYTES_LOW, Finding, Level
from tocsin.cli.progress import Progress
from tocsin.cli.render import plural
from tocsin.errors import DataDirectoryInUse, TocsinError

if TYPE_CHECKING:
    from tocsin.store.reader import CheckReport, Reader

FREE_BYTES_NONE = 200 << 20
DAMAGED_SHOWN_MAX = 10
WIDE_SHOWN_MAX = 5
BOXES = "boxes"
JUMP_DAYS = 1.0  # the default of log.clock_jump_s
NS_PER_DAY = 86_400 * 1_000_000_000


def disk_findings(directory: Path) -> list[Finding]:
    """Free space on the disk of the data directory."""
    usage = shutil.disk_usage(directory)
    level: Level = "ok"
    if usage.free < FREE_BYTES_LOW:
        level = "fail" if usage.free < FREE_BYTES_NONE else "warn"
    remedy = "Make room, or lower log.retain_bytes; a full disk refuses events."
    return [Finding(level, "disk", f"{usage.free / 2**30:.1f} GiB free in {directory}", remedy)]


def permission_findings(directory: Path) -> list[Finding]:
    """Files with events that others may read. Not of the archive, which may be meant for them."""
    if not directory.stat().st_mode & (stat.S_IXGRP | stat.S_IXOTH):
        return []  # no other user can enter it
    wide = [f"{path.relative_to(directory)} ({mode:04o})" for path, mode in _wide_files(directory)]
    if not wide:
        return []
    shown = ", ".join(wide[:WIDE_SHOWN_MAX]) + (", ..." if len(wide) > WIDE_SHOWN_MAX else "")
    remedy = f"If that is not intended: chmod go= {directory} (and the files in it)."
    return [Finding("warn", "permissions", f"other users may read {shown}", remedy)]


def _wide_files(directory: Path) -> Iterator[tuple[Path, int]]:
    for place in (directory, directory / BOXES):
        for path in sorted(place.iterdir()) if place.is_dir() else ():
            mode = stat.S_IMODE(path.lstat().st_mode)
            if path.is_file() and mode & (stat.S_IRWXG | stat.S_IRWXO):
                yield path, mode


def clock_findings(directory: Path) -> list[Finding]:
    """How far this machine's clock is from the last time in the log; not beside a broker, which
    reports it itself."""
    from tocsin.store.directory import LOG_NAME, lock_directory
    from tocsin.store.reader import Reader

    if not (directory / LOG_NAME).exists():
        return []
    try:
        held = lock_directory(directory)
        try:
            reader = Reader.open(directory)
            last_ns = _last_time_ns(reader)
            reader.close()
        finally:
            held.close()
    except TocsinError:
        return []  # store_findings reports it
    days = (time.time_ns() - last_ns) / NS_PER_DAY if last_ns else 0.0
    if abs(days) <= JUMP_DAYS:
        return []
    message = (
        f"it is {abs(days):.1f} days {'past' if days > 0 else 'before'} the last time in the log: "
        "the broker was off that long, or a clock is or was wrong"
    )
    remedy = (
        "If it is wrong, set it. If it is right, start with `tocsin serve --accept-clock`; until "
        "then no lease ends and nothing is dropped for its age."
    )
    return [Finding("warn", "clock", message, remedy)]


def _last_time_ns(reader: Reader) -> int:
    from tocsin.broker.state.state import CLOCK

    last = reader.read_one(reader.marks().last_seq)
    return reader.cursors().get(CLOCK, 0 if last is None else last.received_ns)


def store_findings(directory: Path) -> list[Finding]:
    """Every record and page of the logs against its checksum; not beside a running broker."""
    from tocsin.store.directory import LOG_NAME, lock_directory
    from tocsin.store.mark import MARK_SUFFIX

    names = (LOG_NAME, f"{LOG_NAME}{MARK_SUFFIX}")
    places = [
        place
        for place in (directory, directory / BOXES)
        if any((place / name).exists() for name in names)
    ]
    if not places:
        return [Finding("fail", "log", f"there is no log in {directory}", "Name a data directory.")]
    found: list[Finding] = []
    for place in places:
        subject = "log" if place == directory else "boxes' log"
        try:
            held = lock_directory(place)
        except DataDirectoryInUse:
            remedy = "Stop the broker to have every record checked."
            return [
                Finding("warn", "log", "not checked: a broker is running on this directory", remedy)
            ]
        except TocsinError as error:
            found.append(Finding("fail", subject, error.problem, error.remedy))
            continue
        try:
            found += _checked(place, subject)
        finally:
            held.close()
    return found


def _checked(place: Path, subject: str) -> list[Finding]:
    import apsw

    from tocsin.store.directory import LOG_NAME
    from tocsin.store.faults import open_failed
    from tocsin.store.loss import loss_in, refused
    from tocsin.store.reader import Reader

    path = str(place / LOG_NAME)
    try:
        loss = loss_in(place)
        if loss is not None and not loss.is_expected:
            incomplete = refused(path, loss)
            return [Finding("fail", subject, incomplete.problem, incomplete.remedy)]
        reader = Reader.open(place)
        try:
            with Progress("checking the log", reader.marks().last_seq) as progress:
                report = reader.check(progress.reach)
        finally:
            reader.close()
    except apsw.Error as failure:
        error = open_failed(path, failure)
        return [Finding("fail", subject, error.problem, error.remedy)]
    except TocsinError as error:
        return [Finding("fail", subject, error.problem, error.remedy)]
    return [*_check_result(report, subject), *_lost_events(report, subject)]


def _check_result(report: CheckReport, subject: str) -> list[Finding]:
    if not report.ok:
        return _damage(report, subject)
    gone = sum(max(0, last - max(first, report.first_seq) + 1) for first, last in report.lost)
    kept = max(0, report.last_seq - report.first_seq + 1 - gone)
    return [Finding("ok", subject, f"{plural(kept, 'event')}, {report.size_bytes:,} bytes, intact")]


def _lost_events(report: CheckReport, subject: str) -> list[Finding]:
    """Events that a broker was started without, by --accept-loss."""
    return [
        Finding(
            "warn",
            subject,
            f"events {first} to {last} were lost once, and the broker was started without them",
            "They may be in a copy of the data directory, or in the archive.",
        )
        for first, last in report.lost
    ]


def _damage(report: CheckReport, subject: str) -> list[Finding]:
    lines = list(report.damage)
    if report.corrupt_count:
        named = ", ".join(str(seq) for seq in report.corrupt[:DAMAGED_SHOWN_MAX])
        more = ", ..." if report.corrupt_count > DAMAGED_SHOWN_MAX else ""
        lines.insert(0, f"{plural(report.corrupt_count, 'record')} damaged: {named}{more}")
    remedy = "Make a copy of the directory first. The broker still serves the undamaged records."
    return [Finding("fail", subject, line, remedy if line is lines[0] else "") for line in lines]
