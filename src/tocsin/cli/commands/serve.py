"""`tocsin serve`: run a broker."""

from __future__ import annotations

import os
from argparse import Namespace

from tocsin.cli.parser import Parser, add_json
from tocsin.cli.render import say, show_json

SUMMARY = "Run a broker"
EXAMPLES = """
  tocsin serve
  tocsin serve --data /var/lib/tocsin --http 127.0.0.1:8400
  tocsin serve --http 127.0.0.1:0 --json            any free port, one line when ready
  tocsin serve --tls-cert broker.pem --tls-key broker.key
  tocsin serve --accept-loss                        once, after T406: start without what is lost
  tocsin serve --accept-clock                       once, after weeks off: leases that are over end
"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--data", metavar="DIR", help="the data directory (tocsin-data)")
    parser.add_argument("--http", metavar="HOST:PORT", help="where to listen (127.0.0.1:8400)")
    parser.add_argument(
        "--frames",
        metavar="HOST:PORT",
        help="where to listen for performance events, on TCP and UDP, or off (127.0.0.1:8401)",
    )
    parser.add_argument(
        "--archive",
        metavar="HOST:PORT",
        help="another address for performance events, for producers only (off)",
    )
    parser.add_argument(
        "--soap-tcp",
        metavar="HOST:PORT",
        help="where to listen for SOAP in DIME messages, or off (127.0.0.1:8402)",
    )
    parser.add_argument(
        "--pegasus",
        metavar="HOST:PORT",
        help="where to listen for events of pegasus-monitord, by TCP (off)",
    )
    parser.add_argument(
        "--tls-cert", metavar="FILE", help="the broker's certificate, which turns TLS on"
    )
    parser.add_argument("--tls-key", metavar="FILE", help="the key of that certificate")
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
        help="a host or network whose sinks get events without the consent handshake",
    )
    parser.add_argument(
        "--accept-loss",
        action="store_true",
        help="start although acknowledged events are missing (T406); numbers are not reused",
    )
    parser.add_argument(
        "--accept-clock",
        action="store_true",
        help="the machine's clock is right, however far it is from the last time in the log",
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
        "http.tls_certificate": arguments.tls_cert,
        "http.tls_key": arguments.tls_key,
        "frames.address": arguments.frames,
        "frames.archive": arguments.archive,
        "soap_tcp.address": arguments.soap_tcp,
        "pegasus.address": arguments.pegasus,
        "delivery.trusted": arguments.trust,
    }
    settings, _ = load(flags, os.environ, find_file(arguments.config, os.environ))

    def ready(addresses: dict[str, object]) -> None:
        if arguments.json:
            show_json(addresses)
            _flush()
        else:
            url = f"{settings.http.scheme}://{addresses['http']}"
            say(_welcome(url, addresses, settings.log.directory))

    notes = Notes(as_json=arguments.log_format == "json")
    return serve.run(
        settings,
        ready,
        notes,
        accept_loss=arguments.accept_loss,
        accept_clock=arguments.accept_clock,
    )


def _flush() -> None:
    import sys

    sys.stdout.flush()


def _welcome(url: str, addresses: dict[str, object], directory: str) -> str:
    named = "" if url == "http://127.0.0.1:8400" else f" --broker {url}"
    others = {"frames": "gma", "soap_tcp": "soap.tcp"}
    also = "".join(
        f", {scheme}://{addresses[name]}" for name, scheme in others.items() if name in addresses
    )
    return (
        f"tocsin listens on {url}{also} and stores events in {directory}\n"
        f"Follow events:    tocsin sub{named} 'lead/**'\n"
        f"Publish one:      tocsin pub{named} lead/ohio/radar '{{\"load5\": 7}}'\n"
        "Stop with Ctrl-C."
    )
