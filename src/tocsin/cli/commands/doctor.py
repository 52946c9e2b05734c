"""`tocsin doctor`: is everything well, and if not, what to do."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from tocsin.cli.parser import Parser, add_broker

if TYPE_CHECKING:
    from tocsin.cli.doctor.broker import Finding

SUMMARY = "Check settings, broker, clock, disk, log, sinks, Spark, tables; say what to do"
EXAMPLES = """
  tocsin doctor
  tocsin doctor --data tocsin-data                  also check every record of the log
"""

COLOURS = {"ok": "32", "warn": "33", "fail": "31"}
CANNOT_REACH = 3


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--data", metavar="DIR", help="a data directory to check as well")
    add_broker(parser)


def run(arguments: Namespace) -> int:
    from tocsin.cli.doctor import broker, pipeline, store
    from tocsin.cli.rest import Rest
    from tocsin.errors import CannotReachBroker, TocsinError

    found = broker.settings_findings()
    unreachable = False
    with Rest(arguments.broker) as rest:
        try:
            found += broker.broker_findings(rest)
            found += broker.access_findings(rest)
            found += broker.space_findings(rest)
            found += broker.log_findings(rest)
            found += broker.subscription_findings(rest)
            found += broker.dead_letter_findings(rest)
            found += broker.peer_findings(rest)
        except TocsinError as error:
            unreachable = isinstance(error, CannotReachBroker)
            found.append(broker.unreachable_finding(error))
    directory = Path(arguments.data) if arguments.data else None
    if directory is not None:
        if directory.is_dir():
            found += store.disk_findings(directory)
            found += store.permission_findings(directory)
        found += store.store_findings(directory)
        found += store.clock_findings(directory)
    found += pipeline.spark_findings()
    found += pipeline.table_findings(pipeline.tables_of(directory))
    _print(found, as_json=arguments.json)
    failed = [finding for finding in found if finding.level == "fail"]
    if unreachable and len(failed) == 1:
        return CANNOT_REACH
    return 1 if failed else 0


def _print(found: list[Finding], *, as_json: bool) -> None:
    from tocsin.cli.render import colour, show, show_json

    for finding in found:
        if as_json:
            show_json(finding._asdict())
            continue
        mark = colour(f"{finding.level:<4}", COLOURS[finding.level])
        print(f"{mark}  ", end="")
        show(f"{finding.subject}: {finding.message}")
        if finding.level != "ok" and finding.remedy:
            show(f"      {finding.remedy}")
