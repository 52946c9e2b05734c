"""The demo: a story in scenes. Each capability adds one; the whole stays under two minutes."""

from __future__ import annotations

import tempfile
from argparse import Namespace
from contextlib import ExitStack
from pathlib import Path

from tocsin.cli.demo import (
    command,
    figures,
    forecast,
    history,
    mediation,
    performance,
    refusal,
    workflow,
)
from tocsin.cli.demo.stage import Stage
from tocsin.cli.render import show_json

# Title and scene. A scene gets the stage, says what it does, and raises if it does not hold.
SCENES = (
    ("A forecast is published, the broker is killed, nothing is lost", forecast.play),
    ("A webhook refuses an event, and gets it after it is repaired", refusal.play),
    ("Five Web-services specifications and CloudEvents through one broker", mediation.play),
    ("A host monitor, its consumers, and an archive that is killed", performance.play),
    (
        "A workflow: how long it takes, why it failed, and a broker that dies meanwhile",
        workflow.play,
    ),
    ("Any command can report its run, and a file shows which run made it", command.play),
    ("What was recorded of ten runs of Snakemake, made into tables by Spark", history.play),
    ("The figures", figures.play),
)


def main(arguments: Namespace) -> int:
    """Play every scene; exit code 0 if each of them held."""
    with ExitStack() as stack:
        directory = arguments.data
        if directory is None:
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="tocsin-demo-"))
        stays = arguments.data is not None
        stage = stack.enter_context(Stage(Path(directory), quiet=arguments.json, stays=stays))
        stage.say(f"A broker listens on {stage.url} and keeps its events in {stage.directory}")
        for number, (title, scene) in enumerate(SCENES, start=1):
            stage.heading(f"{number}. {title}")
            scene(stage)
        if arguments.json:
            show_json(stage.results)
        if arguments.keep:
            stage.say(f"\nThe broker stays: {stage.url} (Ctrl-C ends it)")
            stage.wait()
        else:
            stage.say(
                f"\nThat was all. `make demo STAY=1` keeps the broker up; its page was {stage.url}/"
            )
    return 0
