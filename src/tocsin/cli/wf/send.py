"""`tocsin wf send`: messages that runs spooled, sent to their brokers."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict
from pathlib import Path

from tocsin.cli.format import Clock
from tocsin.cli.progress import Progress
from tocsin.cli.render import plural, say, show_json
from tocsin.cli.rest import Rest
from tocsin.client.tracking.spool import SpoolCounts, default_directory, failure_of, send_each
from tocsin.errors import BadSetting, SomeFailed


def send(rest: Rest, arguments: Namespace, clock: Clock) -> int:
    """Send the events that runs spooled while no broker could be reached."""
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
        say(f"no messages are spooled in {directory}")
    else:
        parts = [f"{plural(counts.sent, 'message')} sent from {plural(counts.files, 'file')}"]
        parts += [f"{counts.duplicates:,} were known"] if counts.duplicates else []
        parts += [f"{counts.filtered:,} without a subscriber"] if counts.filtered else []
        parts += [f"{plural(counts.busy, 'file')} left to running workflows"] if counts.busy else []
        parts += [f"{plural(counts.left, 'file')} could not be sent"] if counts.left else []
        say("; ".join(parts))
    if (failure := failure_of(counts, failures)) is not None:
        raise failure
    if counts.refused or counts.damaged:
        raise SomeFailed(
            f"{counts.refused:,} messages were refused and {counts.damaged:,} damaged",
            remedy="Refused ones use concepts that the broker does not know: load their ontology.",
        )
    return 0
