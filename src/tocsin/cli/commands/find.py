"""`tocsin find`: resources of the overlay; producers and consumers of events."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from tocsin.cli.parser import Parser, add_actions, add_broker

SUMMARY = "Find resources, producers and consumers"
EXAMPLES = """
  tocsin find resources 'system = Linux and disk > 120' --first 10
  tocsin find resources 'load1 < 1' --model dynamic --watch
  tocsin find producers --event UptimeCPULoad
  tocsin find consumers --json
"""
_RESOURCES = """
  tocsin find resources 'system = Linux and disk > 120'
  tocsin find resources 'load1 < 1' --model dynamic --order-by 'free_memory desc' --first 10
  tocsin find resources 'kind = service' --order-by distance --explain
  tocsin find resources "available > '8 a.m. Europe/Berlin'" --json
  tocsin find resources 'system = Linux' --model dynamic --watch
"""
_PRODUCERS = """
  tocsin find producers --event UptimeCPULoad
  tocsin find producers --host node7 'cores >= 16 and site = ohio'
  tocsin find producers --ldif --suffix dc=example,dc=org > producers.ldif
"""
_CONSUMERS = """
  tocsin find consumers
  tocsin find consumers --event UptimeCPULoad --json
"""


def add_arguments(parser: Parser) -> None:
    actions = add_actions(parser)
    _add_resources(actions)
    _add_directory(actions, "producers", _PRODUCERS, "who offers events, and where")
    _add_directory(actions, "consumers", _CONSUMERS, "who takes events, and where")


def _add_resources(actions: Any) -> None:
    parser = actions.add_parser("resources", examples=_RESOURCES, help="machines and services")
    parser.add_argument(
        "filter", metavar="REQUEST", nargs="?", help="conditions joined by and (everything)"
    )
    parser.add_argument(
        "--model",
        choices=("static", "dynamic"),
        default="static",
        help="what they advertise, or their current values (static)",
    )
    parser.add_argument(
        "--watch",
        action="store_true",
        help="go on with what comes, changes and goes; not with --order-by, --max-age or --timeout",
    )
    parser.add_argument("--first", metavar="N", type=int, help="stop when N are found")
    parser.add_argument(
        "--order-by",
        metavar="TEXT",
        help="an attribute, then asc or desc; or distance: links, then time to answer",
    )
    parser.add_argument(
        "--max-age", metavar="10s", help="how old a shared answer may be; 0 is never shared (100s)"
    )
    parser.add_argument(
        "--timeout", metavar="5s", help="print after so long, whatever is missing (30s)"
    )
    parser.add_argument(
        "--explain", action="store_true", help="say which brokers answered, and at what cost"
    )
    add_broker(parser)


def _add_directory(actions: Any, name: str, examples: str, help: str) -> None:
    parser = actions.add_parser(name, examples=examples, help=help)
    parser.add_argument(
        "filter", metavar="FILTER", nargs="?", help="on attributes, name, host and address"
    )
    parser.add_argument(
        "--event", metavar="NAME", help="only those with this event, as UptimeCPULoad"
    )
    parser.add_argument("--host", metavar="HOST", help="only those on this host")
    parser.add_argument("--ldif", action="store_true", help="print entries for an LDAP server")
    parser.add_argument(
        "--suffix", metavar="DN", help="with --ldif: the suffix of the entries (o=grid)"
    )
    parser.add_argument(
        "--schema",
        choices=("standard", "tocsin"),
        help="with --ldif: classes that every server has, or with ours (standard)",
    )
    add_broker(parser)


def run(arguments: Namespace) -> int:
    if arguments.action == "resources":
        from tocsin.cli.find.resources import find_resources

        return find_resources(arguments)
    from tocsin.cli.find.directory import find_entries

    return find_entries(arguments)
