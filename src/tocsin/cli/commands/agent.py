"""`tocsin agent`: a monitor of this host, as a producer of performance events."""

from __future__ import annotations

import time
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from tocsin.cli.parser import Parser, add_json, add_sign_in

if TYPE_CHECKING:
    from tocsin.agent import Monitor, Probe

SUMMARY = "Watch this host: load, cores, memory, disks, network, heat, energy"
EXAMPLES = """
  tocsin agent --list                               what can be measured on this machine
  tocsin agent --once                               measure it and print it; needs no broker
  tocsin agent                                      send to the broker on this machine, every 10 s
  tocsin agent --broker http://head:8400 --period 1m --attr rack=7
                                                    one far away, every minute; listed with its rack
  tocsin agent --broker off --listen 0.0.0.0:8404   no broker: only for those that subscribe
"""

LISTEN = "127.0.0.1:8404"
OFF = "off"
ONCE_S = 1.0  # between the two readings that rates need


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "--broker",
        metavar="URL",
        help="the broker's address, or off (TOCSIN_BROKER, or else http://127.0.0.1:8400)",
    )
    parser.add_argument(
        "--period",
        metavar="T",
        default="10s",
        help="how often events are sent: 0.5s, 10s, 5m (10s)",
    )
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        default=LISTEN,
        help=f"where others may subscribe, or off ({LISTEN}, for programs on this machine; "
        "0.0.0.0:8404 is for other machines too)",
    )
    add_sign_in(parser)
    parser.add_argument(
        "--only",
        metavar="EVENT",
        nargs="+",
        action="extend",
        default=[],
        help="only these events, by the names that --list shows",
    )
    parser.add_argument(
        "--name", metavar="N", help="its name in the directory, besides the host (agent)"
    )
    parser.add_argument(
        "--attr",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="an attribute for the directory, as in rack=7; may be repeated",
    )
    parser.add_argument(
        "--no-resource",
        action="store_true",
        help="do not register this host as a resource (see `tocsin find resources`)",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--list",
        action="store_true",
        help="list what can be measured here and what cannot, and exit",
    )
    what.add_argument(
        "--once", action="store_true", help="measure for a second, print each event, and exit"
    )
    add_json(parser)


def run(arguments: Namespace) -> int:
    from socket import gethostname

    from tocsin.agent import Monitor

    period_s = _period_s(arguments.period)
    attributes = _attributes(arguments.attr)
    monitor = Monitor(gethostname(), _probes(arguments.only), period_s=period_s)
    if arguments.list:
        from tocsin.cli.agent.output import show_list

        show_list(monitor, as_json=arguments.json)
        return 0
    _refuse_missing(monitor, arguments.only)
    if arguments.once:
        return _once(monitor, as_json=arguments.json)
    from tocsin.cli.agent.run import AgentOptions, run_agent

    options = AgentOptions(
        broker=None if arguments.broker == OFF else arguments.broker or "",
        listen=None if arguments.listen == OFF else arguments.listen,
        period_s=period_s,
        name=arguments.name or "agent",
        attributes=attributes,
        as_json=arguments.json,
        ca_file=arguments.ca_file,
        is_resource=not arguments.no_resource,
    )
    return run_agent(monitor, options)


def _period_s(text: str) -> float:
    from tocsin.cli.durations import seconds
    from tocsin.errors import BadSetting
    from tocsin.wire.gma.parameters import PERIOD_S_MAX, PERIOD_S_MIN

    found = seconds(text)
    if not PERIOD_S_MIN <= found <= PERIOD_S_MAX:
        raise BadSetting(
            f"the period is {text}",
            remedy=f"Give {PERIOD_S_MIN:g} seconds or more, and at most a year.",
        )
    return found


def _attributes(pairs: list[str]) -> dict[str, bool | int | float | str]:
    from tocsin.wire.gma.values import typed

    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            from tocsin.errors import BadSetting

            raise BadSetting(f"--attr {pair!r} has no =", remedy="Write --attr NAME=VALUE.")
        found[name] = typed(value)
    return found


def _probes(names: list[str]) -> list[Probe[Any]]:
    """Those of these names, with or without the namespace; all, if there are none."""
    from tocsin.agent import PROBES

    by_name = {name: probe for probe in PROBES for name in (probe.name.local, str(probe.name))}
    unknown = [name for name in names if name not in by_name]
    if unknown:
        from tocsin.errors import BadSetting

        there_are = ", ".join(probe.name.local for probe in PROBES)
        raise BadSetting(
            f"there is no host event {unknown[0]!r}", remedy=f"There are: {there_are}."
        )
    wanted = {by_name[name].name for name in names}
    return [probe for probe in PROBES if not names or probe.name in wanted]


def _refuse_missing(monitor: Monitor, names: list[str]) -> None:
    """An event that was asked for by name must be available."""
    from tocsin.errors import CannotMeasure

    if monitor.missing and (names or not monitor.probes):
        name, why = next(iter(monitor.missing.items()))
        raise CannotMeasure(
            f"{name.local} cannot be measured here: {why}",
            remedy="`tocsin agent --list` shows what can be.",
        )


def _once(monitor: Monitor, *, as_json: bool) -> int:
    from tocsin.cli.agent.output import show_event
    from tocsin.cli.failure import error_text
    from tocsin.cli.render import say
    from tocsin.errors import CannotMeasure, SomeFailed

    time.sleep(ONCE_S)
    failed = 0
    for name in monitor.probes:
        try:
            for event in monitor.sample(name):
                show_event(event, as_json=as_json)
        except CannotMeasure as error:
            say(error_text(error))
            failed += 1
    if failed:
        raise SomeFailed(
            f"{failed} of {len(monitor.probes)} events could not be measured",
            remedy="The lines above say why.",
        )
    return 0
