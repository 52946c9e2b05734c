"""`tocsin archive`: what a broker has archived; whether it is whole; and published again."""

from __future__ import annotations

import math
from argparse import Namespace
from typing import TYPE_CHECKING

from tocsin.cli.parser import Parser, add_actions, add_broker, add_json

if TYPE_CHECKING:
    from tocsin.event.filter import Filter

SUMMARY = "List an archive of events, verify it, or publish it again"
EXAMPLES = """
  tocsin archive ls
  tocsin archive verify tocsin-data/archive
  tocsin archive replay --since 2h --speed 10x --broker http://127.0.0.1:8500
"""
REPLAY_EXAMPLES = """
  tocsin archive replay tocsin-data/archive --speed max
  tocsin archive replay --since 2026-03-01 --until 2026-03-02 --speed 60x
  tocsin archive replay --filter 'topic lead/** and load5 > 5' --from-seq 1000 --to-seq 2000
  tocsin archive replay --speed max --resume replay.json
"""
PATIENCE_S = 30.0


def add_arguments(parser: Parser) -> None:
    actions = add_actions(parser)
    listing = actions.add_parser("ls", examples=EXAMPLES, help="list it by date, or its files")
    listing.add_argument("--files", action="store_true", help="file by file")
    add_json(listing)
    verify = actions.add_parser(
        "verify", examples=EXAMPLES, help="read every file; exit 1 if one is damaged or unread"
    )
    add_json(verify)
    replay = actions.add_parser("replay", examples=REPLAY_EXAMPLES, help="publish events again")
    _add_replay(replay)
    for action in (listing, verify, replay):
        action.add_argument(
            "directory",
            metavar="DIR",
            nargs="?",
            help="the archive, or a broker's data directory (as the settings say)",
        )


def _add_replay(parser: Parser) -> None:
    option = parser.add_argument
    option("--speed", default="1x", help="times as fast as they came: 1x, 10x, 0.5x, max (1x)")
    option("--since", metavar="T", help="received from then on: 2026-03-01T12:00:00Z, 2h, 7d")
    option("--until", metavar="T", help="received before then")
    option("--from-seq", metavar="N", type=int, default=1, help="the first sequence number")
    option("--to-seq", metavar="N", type=int, help="the last sequence number")
    option("--filter", metavar="F", help="only events that match this filter")
    option("--resume", metavar="FILE", help="keep the position in FILE, and resume from there")
    option("--keep-going", action="store_true", help="skip what is bad, and exit with 7")
    option(
        "--patience",
        metavar="S",
        type=float,
        default=PATIENCE_S,
        help=f"keep trying for S seconds if the broker goes away ({PATIENCE_S:.0f})",
    )
    add_broker(parser)


def run(arguments: Namespace) -> int:
    from tocsin.cli.archive.location import find_archive

    directory = find_archive(arguments.directory)
    if arguments.action == "ls":
        from tocsin.cli.archive.show import show_archive

        return show_archive(directory, files=arguments.files, as_json=arguments.json)
    if arguments.action == "verify":
        from tocsin.cli.archive.show import verify_archive

        return verify_archive(directory, as_json=arguments.json)
    return _replay(directory, arguments)


def _filter(text: str | None) -> Filter | None:
    from tocsin.event.filter_text import parse_filter
    from tocsin.event.wildcards import without_foreign_wildcards

    return None if text is None else without_foreign_wildcards(parse_filter(text))


def _replay(directory: str, arguments: Namespace) -> int:
    from tocsin.cli.archive.replay import ReplayFilter, read_moment_ns, read_speed, replay
    from tocsin.errors import BadSetting

    if arguments.to_seq is not None and arguments.to_seq < arguments.from_seq:
        raise BadSetting(
            f"--to-seq {arguments.to_seq} is before --from-seq {arguments.from_seq}",
            remedy="Exchange them, or leave one out.",
        )
    since, until = (
        None if text is None else read_moment_ns(text, option)
        for option, text in (("--since", arguments.since), ("--until", arguments.until))
    )
    if since is not None and until is not None and since >= until:
        raise BadSetting(
            f"--since {arguments.since} is not before --until {arguments.until}",
            remedy="Exchange them, or leave one out.",
        )
    for name, least in (("from_seq", 1), ("patience", 0)):
        if not least <= getattr(arguments, name) < math.inf:
            raise BadSetting(
                f"--{name.replace('_', '-')} {getattr(arguments, name)} is out of range",
                remedy=f"Give a number from {least} on.",
            )
    wanted = ReplayFilter(
        after=arguments.from_seq - 1,
        through=2**63 - 1 if arguments.to_seq is None else arguments.to_seq,
        since_ns=since,
        until_ns=until,
        filter=_filter(arguments.filter),
    )
    return replay(
        directory,
        wanted,
        broker=arguments.broker,
        speed=read_speed(arguments.speed),
        resume=arguments.resume,
        patience_s=arguments.patience,
        keep_going=arguments.keep_going,
        as_json=arguments.json,
    )
