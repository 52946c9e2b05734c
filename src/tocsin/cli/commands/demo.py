"""`tocsin demo`: a short demonstration of a broker."""

from __future__ import annotations

from argparse import Namespace

from tocsin.cli.parser import Parser, add_json

SUMMARY = "Show a broker at work in a minute"
EXAMPLES = """
  tocsin demo
  tocsin demo --keep                                leave the broker running at the end
"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--keep", action="store_true", help="leave the broker running at the end")
    parser.add_argument("--data", metavar="DIR", help="keep its data here (a temporary directory)")
    add_json(parser)


def run(arguments: Namespace) -> int:
    from tocsin.cli import demo

    return demo.main(arguments)
