"""`tocsin overlay`: the links of a broker to others, and brokers that are gone for good."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from tocsin.cli.parser import Parser, add_broker

if TYPE_CHECKING:
    from tocsin.cli.rest import Rest

SUMMARY = "Show the links to other brokers; forget a broker that is gone for good"
EXAMPLES = """
  tocsin overlay
  tocsin overlay --rows 20                          with 20 rows of each routing table
  tocsin overlay --json
  tocsin overlay forget 01JD3Z6V0M                  a broker that will not come back
"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "action",
        metavar="ACTION",
        nargs="?",
        choices=("show", "forget"),
        default="show",
        help="show, or forget ID (show)",
    )
    parser.add_argument("id", metavar="ID", nargs="?", help="the broker to forget, everywhere")
    parser.add_argument(
        "--rows", metavar="N", type=int, help="also show N rows of each routing table"
    )
    add_broker(parser)


def run(arguments: Namespace) -> int:
    from tocsin.cli.rest import Rest
    from tocsin.errors import BadSetting

    is_forget = arguments.action == "forget"
    if is_forget != bool(arguments.id):
        raise BadSetting(
            "forget needs the id of a broker" if is_forget else "show takes no id",
            remedy="Write `tocsin overlay forget ID`; `tocsin overlay` shows the ids.",
        )
    with Rest(arguments.broker) as rest:
        return _forget(rest, arguments) if is_forget else _show(rest, arguments)


def _show(rest: Rest, arguments: Namespace) -> int:
    from tocsin.cli.overlay.text import print_overlay
    from tocsin.cli.render import show_json

    rows = arguments.rows
    if arguments.json:
        show_json(rest.get("/overlay", rows=rows))
    else:
        print_overlay(rest.get("/overlay", rows=rows or 0), has_tables=bool(rows))
    return 0


def _forget(rest: Rest, arguments: Namespace) -> int:
    from tocsin.cli.rest import remove

    return remove(rest, "overlay/brokers", arguments, "forgotten")
