"""The demo, in parts. Each capability adds one; the whole takes under two minutes."""

from __future__ import annotations

import tempfile
from argparse import Namespace
from contextlib import ExitStack
from pathlib import Path

from tocsin.cli.demo import (
    access,
    dead_letter,
    forecast,
    history,
    mediation,
    metrics,
    overlay,
    performance_events,
    resources,
    run_command,
    workflow,
)
from tocsin.cli.demo.context import DemoContext
from tocsin.cli.render import show_json

# Title and function. It prints what it does, and raises if the outcome is wrong.
PARTS = (
    ("A forecast is published, the broker is killed, nothing is lost", forecast.run),
    ("A webhook refuses an event, and gets it after it is repaired", dead_letter.run),
    ("Five Web-services specifications and CloudEvents through one broker", mediation.run),
    ("A host monitor, its consumers, and an archive that is killed", performance_events.run),
    ("Machines are found by what is free on them, and watched", resources.run),
    ("Three linked brokers: heard and found from the far end, past a dead middle", overlay.run),
    ("Who may do what: a stranger, a viewer, and a right that ends", access.run),
    (
        "A workflow: how long it takes, why it failed, and a broker that dies meanwhile",
        workflow.run,
    ),
    ("Any command can report its run, and a file shows which run made it", run_command.run),
    ("What was recorded of ten runs of Snakemake, made into tables by Spark", history.run),
    ("The metrics", metrics.run),
)


def main(arguments: Namespace) -> int:
    """Run every part; exit code 0 if each succeeded."""
    with ExitStack() as stack:
        directory = arguments.data
        if directory is None:
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="tocsin-demo-"))
        keeps_data = arguments.data is not None
        demo = stack.enter_context(
            DemoContext(Path(directory), quiet=arguments.json, keeps_data=keeps_data)
        )
        demo.print(f"A broker listens on {demo.url} and stores its events in {demo.directory}")
        for number, (title, part) in enumerate(PARTS, start=1):
            demo.heading(f"{number}. {title}")
            part(demo)
        if arguments.json:
            show_json(demo.results)
        if arguments.keep:
            demo.print(f"\nThe broker keeps running: {demo.url} (Ctrl-C ends it)")
            demo.wait()
        else:
            demo.print(f"\nDone. `make demo STAY=1` keeps the broker up; its page was {demo.url}/")
    return 0
