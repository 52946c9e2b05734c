"""How an engine's script tells what took how long: a line of JSON for each table."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

Make = Callable[[Path, Path], Iterator[tuple[str, int]]]


def main(parser: argparse.ArgumentParser, make: Make) -> None:
    """Read the arguments, make the tables, and say when each was there, by the wall clock."""
    parser.add_argument("--archive", type=Path, required=True)
    parser.add_argument(
        "--tables", type=Path, required=True, help="a directory, empty or not there"
    )
    arguments = parser.parse_args()
    arguments.tables.mkdir(parents=True, exist_ok=True)
    say("ready")
    for name, rows in make(arguments.archive, arguments.tables):
        say(name, rows=rows)
    say("done")


def say(what: str, **others: object) -> None:
    print(json.dumps({"what": what, "at": time.time(), **others}), flush=True)
    sys.stdout.flush()
