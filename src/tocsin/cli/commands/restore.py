"""`tocsin restore`: a data directory from a backup."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from tocsin.cli.parser import Parser, add_json

SUMMARY = "Make a data directory from a backup"
EXAMPLES = """
  tocsin restore /backups/monday --data /var/lib/tocsin
  tocsin restore /backups/monday --data new --replaces /var/lib/tocsin
  tocsin restore /backups/monday --data new --next 200000
"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("backup", metavar="BACKUP", type=Path, help="what `tocsin backup` made")
    parser.add_argument(
        "--data",
        metavar="DIR",
        type=Path,
        required=True,
        help="a directory, missing or empty",
    )
    after = parser.add_mutually_exclusive_group()
    after.add_argument(
        "--replaces",
        metavar="OLD",
        type=Path,
        help="the old data directory, or what is left of it: its event numbers are not used again",
    )
    after.add_argument(
        "--next",
        metavar="N",
        type=int,
        help="the number of the next event (the one after the last)",
    )
    add_json(parser)


def run(arguments: Namespace) -> int:
    from tocsin.cli.progress import Progress
    from tocsin.cli.render import say, show_json
    from tocsin.drivers.storage.backup import last_given, read_manifest, restore

    manifest = read_manifest(arguments.backup)
    next_seq = arguments.next
    if arguments.replaces is not None:
        next_seq = max(last_given(arguments.replaces), manifest.last_seq) + 1
    data = arguments.data.absolute()
    with Progress("bytes", manifest.bytes, quiet=arguments.json) as progress:
        restore(arguments.backup, data, next_seq, progress.advance)
    follows = next_seq or manifest.last_seq + 1
    if arguments.json:
        show_json({"data": str(data), "last": manifest.last_seq, "next": follows})
        return 0
    say(
        f"{data}: events {manifest.first_seq:,} to {manifest.last_seq:,}, "
        f"as of {manifest.made:%Y-%m-%dT%H:%M:%SZ}"
    )
    say(f"The next event gets number {follows:,}.")
    if next_seq is None:
        say(
            "If consumers have seen higher numbers since the backup, restore with --replaces OLD "
            "or --next N instead: they would take new events for old ones."
        )
    return 0
