"""`tocsin wf provenance` and `send`: what is kept of a run, and what is sent later."""

from __future__ import annotations

import io
import os
import sys
import zipfile
from argparse import Namespace
from pathlib import Path

from tocsin.cli.render import say, show, show_json
from tocsin.cli.rest import Rest, item
from tocsin.cli.wf.asking import find_run
from tocsin.cli.wf.words import Clock, size
from tocsin.client.requests import query
from tocsin.client.transport.refusal import refusal
from tocsin.errors import BadSetting

MISSING_SHOWN_MAX = 5
PROVENANCE_TIMEOUT_S = 600.0  # a run of very many activities takes its time to be written


def provenance(rest: Rest, arguments: Namespace, clock: Clock) -> int:
    """Where every file of a run comes from, in a form that others read."""
    run = find_run(rest, arguments.run)
    binary = arguments.format == "crate"
    if binary and arguments.output is None and (sys.stdout.isatty() or arguments.json):
        raise BadSetting(
            "a crate is a zip file, which cannot go to a terminal",
            remedy="Say where it goes: -o run.crate.zip",
        )
    target = f"{item('runs', run['id'])}/provenance{query(format=arguments.format)}"
    answer = rest.request("GET", target, timeout_s=PROVENANCE_TIMEOUT_S)
    if answer.status != 200:
        raise refusal(answer.status, answer.body)
    missing = _missing(answer.body) if binary else None
    if arguments.output is not None:
        _write(answer.body, arguments, missing)
        _say_missing(missing or [])
        return 0
    _say_missing(missing or [])
    if arguments.json and arguments.format != "prov-json":
        text = answer.body.decode("utf-8", "replace")
        show_json({"run": run["id"], "format": arguments.format, "text": text})
    elif sys.stdout.isatty():
        show(answer.body.decode("utf-8", "replace").rstrip("\n"))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(answer.body)
    return 0


def _write(data: bytes, arguments: Namespace, missing: list[str] | None) -> None:
    """Beside the file first and then over it, so that nobody finds half of one."""
    target = Path(arguments.output)
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        partial.write_bytes(data)
        partial.replace(target)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise BadSetting(
            f"cannot write {target}: {error.strerror}", remedy="Name a file that can be written."
        ) from None
    if arguments.json:
        told = {"file": str(target), "bytes": len(data), "format": arguments.format}
        show_json(told if missing is None else {**told, "missing": missing})
    else:
        say(f"{target}: {size(len(data))}")


def _missing(crate: bytes) -> list[str]:
    """What the crate lacks to be run again, as its README has it."""
    from tocsin.monitor.provenance.crate.missing import missing_in
    from tocsin.monitor.provenance.crate.plan import README

    with zipfile.ZipFile(io.BytesIO(crate)) as archive:
        return missing_in(archive.read(README).decode("utf-8", "replace"))


def _say_missing(missing: list[str]) -> None:
    if missing:
        say("The crate alone is not enough to run the workflow again:")
        for reason in missing[:MISSING_SHOWN_MAX]:
            say(f"  {reason}")
        if len(missing) > MISSING_SHOWN_MAX:
            say(f"  and {len(missing) - MISSING_SHOWN_MAX:,} more: see README.md in the crate")


def send(rest: Rest, arguments: Namespace, clock: Clock) -> int:
    """Hand in what runs wrote down while no broker could be reached."""
    from dataclasses import asdict

    from tocsin.cli.progress import Progress
    from tocsin.cli.render import plural
    from tocsin.client.tracking.spool import (
        SpoolCounts,
        default_directory,
        failure_of,
        send_each,
    )
    from tocsin.errors import SomeFailed

    directory = default_directory() if arguments.spool is None else Path(arguments.spool)
    if arguments.spool is not None and not directory.is_dir():
        raise BadSetting(
            f"{directory} is not a directory", remedy="Name one that a run spooled to."
        )
    with Progress("messages sent", quiet=arguments.json) as progress:
        done = 0

        def advance(counts: SpoolCounts) -> None:
            nonlocal done
            now = counts.sent + counts.duplicates + counts.filtered + counts.refused
            progress.advance(now - done)
            done = now

        counts, failures = send_each(arguments.broker, directory, advance)
    if arguments.json:
        problems = {address: error.problem for address, error in failures.items()}
        show_json({"spool": str(directory), **asdict(counts), "problems": problems})
    elif not counts.files and not counts.busy and not failures:
        say(f"nothing waits in {directory}: every run's messages were sent")
    else:
        words = [f"{plural(counts.sent, 'message')} sent from {plural(counts.files, 'file')}"]
        words += [f"{counts.duplicates:,} were known"] if counts.duplicates else []
        words += [f"{counts.filtered:,} without a subscriber"] if counts.filtered else []
        words += [f"{plural(counts.busy, 'file')} left to running workflows"] if counts.busy else []
        words += [f"{plural(counts.left, 'file')} could not be sent"] if counts.left else []
        say("; ".join(words))
    if (failure := failure_of(counts, failures)) is not None:
        raise failure
    if counts.refused or counts.damaged:
        raise SomeFailed(
            f"{counts.refused:,} messages were refused and {counts.damaged:,} damaged",
            remedy="Refused ones use concepts that the broker does not know: load their ontology.",
        )
    return 0
