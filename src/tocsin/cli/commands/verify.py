"""`tocsin verify`: who signed which events, and whether the signatures hold."""

from __future__ import annotations

from argparse import Namespace

from tocsin.cli.parser import Parser, add_broker

SUMMARY = "Check the signatures of events, of a broker's log or of a file"
EXAMPLES = """
  tocsin verify --filter 'topic lead/**'
  tocsin verify --after 1000 --signer alice --ca-file ca.pem
  tocsin sub 'lead/**' --json | tocsin verify -
"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        help="CloudEvents in JSON, one a line; - is standard input. Without it, the broker's log",
    )
    parser.add_argument("--filter", metavar="F", help="of the log, the events that pass this")
    parser.add_argument("--after", metavar="N", type=int, default=0, help="begin after event N")
    parser.add_argument("--limit", metavar="N", type=int, help="check at most N events")
    parser.add_argument(
        "--signer",
        metavar="WHO",
        help="every event has to be signed by this id, or by this name in a certificate of an "
        "authority in --ca-file",
    )
    parser.add_argument(
        "--all", action="store_true", help="list every event, not only those that fail"
    )
    add_broker(parser)


def run(arguments: Namespace) -> int:
    from tocsin.cli.verify import verify

    return verify(arguments)
