"""`tocsin serve`: run a broker."""

from __future__ import annotations

import os
from argparse import Namespace

from tocsin.console.parser import Parser, add_json
from tocsin.console.render import say, show_json

SUMMARY = "Run a broker"
EXAMPLES = """
  tocsin serve
  tocsin serve --data /var/lib/tocsin --http 127.0.0.1:8400
  tocsin serve --http 127.0.0.1:0 --json            any free port, one line when ready
"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--data", metavar="DIR", help="where events are kept (tocsin-data)")
    parser.add_argument("--http", metavar="HOST:PORT", help="where to listen (127.0.0.1:8400)")
    parser.add_argument("--config", metavar="FILE", help="a settings file (tocsin.toml)")
    parser.add_argument(
        "--open",
        action="store_true",
        default=None,
        help="listen beyond this machine without protection",
    )
    parser.add_argument(
        "--trust",
        metavar="HOST",
        action="append",
        help="a sink's host or network that is pushed to without asking it first",
    )
    parser.add_argument(
        "--log-format", choices=("text", "json"), default="text", help="the form of log lines"
    )
    add_json(parser)


def run(arguments: Namespace) -> int:
    from tocsin.config import find_file, load
    from tocsin.drivers import serve
    from tocsin.drivers.notes import Notes

    flags = {
        "log.directory": arguments.data,
        "http.address": arguments.http,
        "http.open": arguments.open,
        "delivery.trusted": arguments.trust,
    }
    settings, _ = load(flags, os.environ, find_file(arguments.config, os.environ))

    def ready(addresses: dict[str, object]) -> None:
        if arguments.json:
            show_json(addresses)
            _flush()
        else:
            say(_welcome(str(addresses["http"]), settings.log.directory))

    return serve.run(settings, ready, Notes(as_json=arguments.log_format == "json"))


def _flush() -> None:
    import sys

    sys.stdout.flush()


def _welcome(address: str, directory: str) -> str:
    named = "" if address == "127.0.0.1:8400" else f" --broker http://{address}"
    return (
        f"tocsin listens on http://{address} and keeps events in {directory}\n"
        f"Follow events:    tocsin sub{named} 'lead/**'\n"
        f"Publish one:      tocsin pub{named} lead/ohio/radar '{{\"load5\": 7}}'\n"
        "Stop with Ctrl-C."
    )
