"""`tocsin serve`: run a broker."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from tocsin.cli.parser import Parser
from tocsin.cli.serve_options import Addresses, add_serve_options, run_service

if TYPE_CHECKING:
    from tocsin.config import Settings

SUMMARY = "Run a broker"
EXAMPLES = """
  tocsin serve
  tocsin serve --data /var/lib/tocsin --http 127.0.0.1:8400
  tocsin serve --http 127.0.0.1:0 --json            any free port, one line when ready
  tocsin serve --tls-cert broker.pem --tls-key broker.key
  tocsin serve --peer one.example:8403              linked with another broker
  tocsin serve --peer one.example:8403,two.example:8403       the second if the first is away
  tocsin serve --accept-loss                        once, after T406: start without what is lost
  tocsin serve --accept-clock                       once, after weeks off: leases that are over end
"""


def add_arguments(parser: Parser) -> None:
    add_serve_options(parser)
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
        "--link",
        metavar="HOST:PORT",
        help="where to listen for other brokers, or off (127.0.0.1:8403)",
    )
    parser.add_argument(
        "--peer",
        metavar="HOST:PORT[,...]",
        action="append",
        help="a broker to connect to; with commas, standby peers of which one is used",
    )
    parser.add_argument(
        "--trust",
        metavar="HOST",
        action="append",
        help="a host or network whose sinks get events without the consent handshake",
    )


def run(arguments: Namespace) -> int:
    from tocsin.drivers import serve

    flags = {
        "frames.address": arguments.frames,
        "frames.archive": arguments.archive,
        "soap_tcp.address": arguments.soap_tcp,
        "pegasus.address": arguments.pegasus,
        "overlay.address": arguments.link,
        "overlay.peers": arguments.peer,
        "delivery.trusted": arguments.trust,
    }
    return run_service(serve.run, arguments, flags, _welcome)


def _welcome(url: str, addresses: Addresses, settings: Settings) -> str:
    named = "" if url == "http://127.0.0.1:8400" else f" --broker {url}"
    frames = "gmas" if settings.http.tls_certificate else "gma"
    others = {"frames": frames, "soap_tcp": "soap.tcp"}
    also = "".join(
        f", {scheme}://{addresses[name]}" for name, scheme in others.items() if name in addresses
    )
    return (
        f"tocsin listens on {url}{also} and stores events in {settings.log.directory}\n"
        f"Follow events:    tocsin sub{named} 'lead/**'\n"
        f"Publish one:      tocsin pub{named} lead/ohio/radar '{{\"load5\": 7}}'\n"
        "Stop with Ctrl-C."
    )
