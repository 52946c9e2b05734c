"""What `tocsin serve` and `tocsin box serve` share: options, settings, and the line when ready."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from tocsin.cli.parser import Parser, add_json
from tocsin.cli.render import say, show_json

if TYPE_CHECKING:
    from tocsin.config import Settings
    from tocsin.drivers.logger import Logger
    from tocsin.drivers.serve import Ready

Addresses = Mapping[str, object]


class _Serve(Protocol):
    def __call__(
        self,
        settings: Settings,
        ready: Ready,
        logger: Logger,
        *,
        accept_loss: bool,
        accept_clock: bool,
    ) -> int: ...


def add_serve_options(parser: Parser) -> None:
    """The options of every command that serves."""
    parser.add_argument("--data", metavar="DIR", help="the data directory (tocsin-data)")
    parser.add_argument("--http", metavar="HOST:PORT", help="where to listen (127.0.0.1:8400)")
    parser.add_argument("--tls-cert", metavar="FILE", help="the certificate, which turns TLS on")
    parser.add_argument("--tls-key", metavar="FILE", help="the key of that certificate")
    parser.add_argument("--config", metavar="FILE", help="a settings file (tocsin.toml)")
    parser.add_argument(
        "--open",
        action="store_true",
        default=None,
        help="listen beyond this machine without protection",
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


def run_service(
    serve: _Serve,
    arguments: Namespace,
    flags: Mapping[str, object],
    welcome: Callable[[str, Addresses, Settings], str],
) -> int:
    """Serve with the settings of the flags, the environment and the file; print when ready."""
    from tocsin.config import find_file, load
    from tocsin.drivers.logger import Logger

    common = {
        "log.directory": arguments.data,
        "http.address": arguments.http,
        "http.open": arguments.open,
        "http.tls_certificate": arguments.tls_cert,
        "http.tls_key": arguments.tls_key,
    }
    settings, _ = load({**common, **flags}, os.environ, find_file(arguments.config, os.environ))

    def ready(addresses: dict[str, object]) -> None:
        if arguments.json:
            show_json(addresses)
            sys.stdout.flush()
        else:
            url = f"{settings.http.scheme}://{addresses['http']}"
            say(welcome(url, addresses, settings))

    return serve(
        settings,
        ready,
        Logger(as_json=arguments.log_format == "json"),
        accept_loss=arguments.accept_loss,
        accept_clock=arguments.accept_clock,
    )
