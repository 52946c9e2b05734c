"""`tocsin backup`: a copy of a data directory, also while its broker runs."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from tocsin.cli.parser import Parser, add_json

SUMMARY = "Copy a data directory, also while its broker runs"
EXAMPLES = """
  tocsin backup /backups/monday                     the data directory of the settings
  tocsin backup /backups/monday --data /var/lib/tocsin
  tocsin restore /backups/monday --data /var/lib/tocsin-again
"""
SOME_FAILED = 7


def add_arguments(parser: Parser) -> None:
    parser.add_argument("out", metavar="OUT", type=Path, help="a directory that does not exist yet")
    parser.add_argument("--data", metavar="DIR", help="the data directory (tocsin-data)")
    parser.add_argument("--config", metavar="FILE", help="the settings file (tocsin.toml)")
    parser.add_argument("--no-archive", action="store_true", help="leave the archive out")
    add_json(parser)


def run(arguments: Namespace) -> int:
    import os

    from tocsin.cli.progress import Progress
    from tocsin.cli.render import say, show_json
    from tocsin.config import find_file, load
    from tocsin.drivers.storage.backup import ARCHIVE_NAME, back_up, size_of

    file = find_file(arguments.config, os.environ)
    settings, _ = load({"log.directory": arguments.data}, os.environ, file)
    data = Path(settings.log.directory)
    archive = Path(settings.archive.directory or data / ARCHIVE_NAME)
    kept = None if arguments.no_archive else archive
    out = arguments.out.absolute()
    with Progress("bytes", size_of(data, kept), quiet=arguments.json) as progress:
        made = back_up(data, kept, out, progress.advance)
    if arguments.json:
        show_json(
            {
                "backup": str(out),
                "first": made.first_seq,
                "last": made.last_seq,
                "files": len(made.files),
                "bytes": made.bytes,
                "corrupt": made.corrupt,
            }
        )
    else:
        size = f"{len(made.files):,} files, {made.bytes / 2**20:,.1f} MiB, checked"
        say(f"{out}: events {made.first_seq:,} to {made.last_seq:,}, {size}")
    if made.corrupt:
        say(f"damaged in the log already: {len(made.corrupt):,} events, from {made.corrupt[0]} on")
        return SOME_FAILED
    return 0
