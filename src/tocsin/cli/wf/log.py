"""`tocsin wf log`: the logging service, from the command line."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from tocsin.cli.format import Clock
from tocsin.cli.render import plural, say, show_json
from tocsin.cli.rest import Rest
from tocsin.client.blackboard import open_link
from tocsin.client.blackboard.logging_service import open_journal, write_log
from tocsin.errors import TocsinError


def log(rest: Rest, arguments: Namespace, clock: Clock) -> int:
    """Write messages as they arrive, until `--count` are written or it is interrupted."""
    journal = open_journal(Path(arguments.file))
    concepts = [name.strip() for name in arguments.concepts.split(",")]
    after = 0 if arguments.all else None
    link = open_link(arguments.broker)
    if journal.place is not None:
        say(f"going on after message {journal.place}")
    try:
        written = write_log(
            link, concepts, journal, after=after, count_max=arguments.count, on_unreachable=_wait
        )
    finally:
        journal.close()
        link.close()
    if arguments.json:
        show_json({"file": arguments.file, "written": written, "place": journal.place})
    else:
        say(f"{plural(written, 'message')} written to {arguments.file}")
    return 0


def _wait(error: TocsinError) -> None:
    say(f"{error.problem}; waiting for the broker")
