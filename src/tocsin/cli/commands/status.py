"""`tocsin status`: one screen about a broker."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any

from tocsin.cli.parser import Parser, add_broker

SUMMARY = "Show the state of a broker: ready or not, events, rates, subscriptions, lag, disk"
EXAMPLES = """
  tocsin status
  tocsin status --watch
  tocsin status --json --broker https://events.example.org
"""

NOT_READY = 1
PERIOD_S = 2.0
CLEAR = "\x1b[H\x1b[2J"


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "--watch", metavar="S", nargs="?", type=float, const=PERIOD_S, help="show it every S s (2)"
    )
    parser.add_argument("-n", "--count", metavar="N", type=int, help="with --watch: N times")
    add_broker(parser)


def run(arguments: Namespace) -> int:
    from tocsin.cli.rest import Rest

    with Rest(arguments.broker) as rest:
        if arguments.watch is None:
            return _show(rest, arguments)
        return _watch(rest, arguments)


def _watch(rest: Any, arguments: Namespace) -> int:
    """Again and again; a broker that went away is shown as such, and waited for."""
    import time

    from tocsin.cli.failure import error_text
    from tocsin.errors import CannotReachBroker

    code, shown = 0, 0
    while arguments.count is None or shown < arguments.count:
        if shown:
            time.sleep(max(0.1, arguments.watch))
        if sys.stdout.isatty() and not arguments.json:
            sys.stdout.write(CLEAR)
        try:
            code = _show(rest, arguments)
        except CannotReachBroker as error:
            if not shown:
                raise
            code = error.exit_code
            print(error_text(error), file=sys.stderr)
        shown += 1
        sys.stdout.flush()
    return code


def _show(rest: Any, arguments: Namespace) -> int:
    """Print it once; 1 if the broker is not ready."""
    from tocsin.cli.render import show_json

    status = rest.get("/status")
    if arguments.json:
        show_json(status)
    else:
        _print(str(rest.address), status)
    return 0 if status["ready"] else NOT_READY


def _print(address: str, status: dict[str, Any]) -> None:
    from tocsin.cli.render import colour, fields, say

    state = colour("ready", "32") if status["ready"] else colour("NOT READY", "31")
    print(f"Tocsin {status['version']} at {address}: {state}, up {_lasting(status['uptime_s'])}")
    fields(_lines(status))
    for reason in status["reasons"]:
        say(f"warning: {reason}")


def _lines(status: dict[str, Any]) -> list[tuple[str, object]]:
    from tocsin.cli.render import plural

    log, behind, disk = status["log"], status["behind"], status["disk"]
    states = ", ".join(f"{count:,} {name}" for name, count in status["subscriptions"].items())
    lag = f"{behind['most']:,} events ({behind['slowest']})" if behind["slowest"] else "none"
    room = f"{_size(disk['free'])} free of {_size(disk['size'])}" if disk else None
    numbers = f", number {log['first']:,} to {log['last']:,}"
    return [
        ("data", log["directory"]),
        ("listeners", ", ".join(f"{name} {at}" for name, at in status["listeners"].items())),
        ("events", f"{log['events']:,} in the log{numbers if log['events'] else ''}"),
        ("rate", f"{log['events_per_s']:,.1f} events/s in the last minute"),
        ("topics", f"{status['topics']:,} since the start (`tocsin topics ls`)"),
        ("subscriptions", states),
        ("boxes", f"{status['boxes']:,}"),
        ("streams", f"{status['streams']:,} open, {plural(status['connections'], 'connection')}"),
        ("largest lag", lag),
        ("dead letters", f"{status['dead_letters']:,}"),
        ("monitor", _monitor(status["monitor"])),
        ("archive", _archive(status["archive"])),
        ("overlay", _overlay(status.get("overlay"))),
        ("access", _access(status.get("auth"))),
        ("disk", room),
    ]


def _access(auth: dict[str, Any] | None) -> str | None:
    if auth is None:
        return None  # an older broker
    mode = "clients sign in" if auth["mode"] == "required" else "open to everybody who reaches it"
    audit = "on" if auth["audit"] else "off"
    tls = "TLS" if auth["tls"] else "no TLS"
    audit = f"failing: {auth['problem']}" if auth["problem"] else audit
    return f"{mode}, {tls}, audit log {audit}"


def _monitor(monitor: dict[str, Any]) -> str:
    if not monitor["on"]:
        return f"off: {monitor['problem']}" if monitor["problem"] else "off"
    return f"on, {monitor['behind']:,} events behind"


def _archive(archive: dict[str, Any]) -> str:
    if not archive["on"]:
        return f"off: {archive['problem']}" if archive["problem"] else "off"
    return f"on, up to number {archive['through']:,}, {archive['waiting']:,} events waiting"


def _overlay(overlay: dict[str, Any] | None) -> str | None:
    from tocsin.cli.render import plural

    if overlay is None:
        return None
    if not overlay["neighbours"] and not overlay["peers_not_linked"]:
        return "no links to other brokers"
    lost = overlay["peers_not_linked"]
    text = f"{overlay['up']:,} of {overlay['neighbours']:,} neighbours up, "
    text += f"{plural(overlay['reached'], 'other broker')} reached"
    return f"{text}, {plural(lost, 'peer')} not linked (`tocsin overlay`)" if lost else text


def _lasting(seconds: float) -> str:
    minutes, whole_s = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return (
        f"{days} d {hours:02}:{minutes:02}:{whole_s:02}"
        if days
        else (f"{hours:02}:{minutes:02}:{whole_s:02}")
    )


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"
        count /= 1024
    return f"{count:,.1f} TiB"
