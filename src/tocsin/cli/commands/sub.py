"""`tocsin sub`: follow events as they come."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from typing import TYPE_CHECKING

from tocsin.cli.parser import Parser, add_broker
from tocsin.cli.soap_options import add_namespaces, add_specification, refuse

if TYPE_CHECKING:
    from tocsin.cli.event_lines import Lines
    from tocsin.cli.sub.sources import EventSource

SUMMARY = "Follow events as they come"
EXAMPLES = """
  tocsin sub 'lead/**'
  tocsin sub 'topic lead/*/radar and load5 >= 5' --format '{time}\\t{topic}\\t{load5}'
  tocsin sub 'concept ActivityProblem'
  tocsin sub --all --exit-at-end --json > events.ndjson
  tocsin sub --as wse 'lead/**' --xpath '//load5 > 5'
  tocsin sub --as wsn13 --pull --whole --pretty lead/ohio/radar
  tocsin sub --as gma 127.0.0.1:8401 UptimeCPULoad --period 10s
  tocsin sub --as gma 127.0.0.1:8401 UptimeCPULoad 'Load5 >= 5' --format '{HostName} {Load5}'
"""

_NEEDS_SPECIFICATION: dict[str, object] = {
    "soap": None,
    "addressing": None,
    "xpath": None,
    "namespace": [],
    "pull": False,
    "box": None,
    "listen": None,
    "pretty": False,
    "period": None,
    "names": False,
    "query": False,
}


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "filter",
        metavar="FILTER",
        nargs="*",
        help="a topic pattern or a filter; joined by and; with --as gma: HOST:PORT NAME [FILTER]",
    )
    parser.add_argument("-n", "--count", metavar="N", type=int, help="stop after N events")
    parser.add_argument(
        "-W", "--timeout", metavar="S", help="stop after S seconds; exit 6 if too few came"
    )
    start = parser.add_mutually_exclusive_group()
    start.add_argument("--after", metavar="SEQ", type=int, help="begin after this sequence number")
    start.add_argument(
        "--since", metavar="10m", help="begin with events received since then, as in 10m"
    )
    start.add_argument("--all", action="store_true", help="begin with the oldest event in the log")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--brief", action="store_true", help="time, topic and data (the default)")
    form.add_argument("--whole", action="store_true", help="every member of an event")
    form.add_argument(
        "--format", metavar="TEXT", help="a line such as '{topic}\\t{load5}'; {x?} may be missing"
    )
    parser.add_argument(
        "--exit-at-end", action="store_true", help="stop at the end of the log, do not follow"
    )
    parser.add_argument(
        "--via", choices=("sse", "ws", "box"), default="sse", help="how events are received (sse)"
    )
    add_specification(parser, "gma", more_help="; or of a producer of performance events (gma)")
    parser.add_argument("--period", metavar="10s", help="with --as gma: how often")
    parser.add_argument(
        "--names", action="store_true", help="with --as gma: which events there are"
    )
    parser.add_argument(
        "--query", action="store_true", help="with --as gma: one event, as it is now"
    )
    parser.add_argument(
        "--xpath", metavar="E", help="with --as: an XPath that the payload must match"
    )
    add_namespaces(parser)
    parser.add_argument(
        "--pull",
        action="store_true",
        help="with --as: pull from a message box instead of being pushed to",
    )
    parser.add_argument("--box", metavar="URL", help="with --as: pull from a box made there")
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        help="with --as: the address to receive messages at (127.0.0.1:0)",
    )
    parser.add_argument("--pretty", action="store_true", help="with --as: indent the XML")
    add_broker(parser)


def run(arguments: Namespace) -> int:
    if arguments.spec == "gma":
        from tocsin.cli.sub.gma import follow_performance

        return follow_performance(arguments)
    if arguments.spec is not None:
        from tocsin.cli.sub.soap import follow_soap

        return follow_soap(arguments)
    refuse(arguments, _NEEDS_SPECIFICATION, "without --as")
    from tocsin.cli.durations import seconds

    timeout_s = None if arguments.timeout is None else seconds(arguments.timeout)
    lines = _lines(arguments)
    source = _source(arguments)
    if sys.stderr.isatty() and not arguments.exit_at_end:
        _print_filter(arguments)
    try:
        came = _follow(source, lines, arguments.count, timeout_s)
    finally:
        source.close()
        if source.dropped:
            _warn(f"{source.dropped} events expired before they could be read")
        if source.withheld:
            _warn(f"{source.withheld} events that match were withheld: no right to them")
    wanted = arguments.count or (1 if timeout_s is not None else 0)
    if came < wanted:
        from tocsin.errors import NothingArrived

        raise NothingArrived(
            f"{came} of {wanted} events arrived" if arguments.count else "no event arrived",
            remedy="Wait longer with -W, or check the filter and the publisher.",
        )
    return 0


def _lines(arguments: Namespace) -> Lines:
    from tocsin.cli import event_lines

    if arguments.json:
        lines: Lines = event_lines.json_lines
    elif arguments.format is not None:
        lines = event_lines.format_lines(arguments.format)
    else:
        lines = event_lines.whole_lines if arguments.whole else event_lines.brief_lines
    return event_lines.for_terminal(lines) if sys.stdout.isatty() else lines


def _source(arguments: Namespace) -> EventSource:
    from tocsin.cli.sub import sources
    from tocsin.client.requests import filter_text

    text = filter_text(*arguments.filter)
    after = _start(arguments)
    if arguments.exit_at_end:
        return sources.LogSource(text, after or 0, arguments.broker)
    if arguments.via == "box":
        return sources.box_source(text, after, arguments.broker)
    if arguments.via == "ws":
        from tocsin.cli.sub.websocket import WebSocketSource

        return WebSocketSource(text, after, arguments.broker, _reconnecting)
    return sources.stream_source(text, after, arguments.broker, _reconnecting)


def _start(arguments: Namespace) -> int | None:
    if arguments.all:
        return 0
    if arguments.since is not None:
        from tocsin.cli.sub.sources import position_since

        return position_since(arguments.since, arguments.broker)
    after: int | None = arguments.after
    return after


def _print_filter(arguments: Namespace) -> None:
    from tocsin.cli.render import say
    from tocsin.client.requests import filter_text
    from tocsin.client.transport.address import broker_address

    wanted = filter_text(*arguments.filter) or "everything"
    say(f"following {wanted} at {broker_address(arguments.broker)}; Ctrl-C stops")


def _reconnecting(why: str) -> None:
    _warn(f"{why}; connecting again")


def _warn(text: str) -> None:
    print(f"tocsin: {text}", file=sys.stderr, flush=True)


def _follow(source: EventSource, lines: Lines, count: int | None, timeout_s: float | None) -> int:
    """Write what comes until there is enough; how many came."""
    came = 0
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    while count is None or came < count:
        messages = source.read(deadline)
        if messages is None:
            break
        if count is not None:
            messages = messages[: count - came]
        if messages:
            came += len(messages)
            _write(lines(messages))
        if deadline is not None and time.monotonic() >= deadline:
            break
    return came


def _write(text: str | bytes) -> None:
    if isinstance(text, bytes):
        sys.stdout.buffer.write(text)
    else:
        sys.stdout.write(text)
    sys.stdout.flush()
