"""The Web-services specifications on the command line: their names, versions and options."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tocsin.client.soap.client import SoapClient

SPECS = ("wse", "wse11", "wsn13", "wsn12", "wsn10")
ADDRESSINGS = ("2003/03", "2004/03", "2004/08", "2005/08", "none")
INPUT = "-"


def add_specification(parser: argparse.ArgumentParser, *others: str, more_help: str = "") -> None:
    """`--as`, and the versions that go with it."""
    parser.add_argument(
        "--as",
        dest="spec",
        choices=(*SPECS, *others),
        help="act as a client of WS-Eventing (wse is 2004/08, wse11 2011/03) or WS-Notification"
        + more_help,
    )
    add_versions(parser)


def add_versions(parser: argparse.ArgumentParser) -> None:
    """`--soap` and `--addressing`."""
    parser.add_argument(
        "--soap", choices=("1.1", "1.2"), help="the SOAP version (as is usual with --as)"
    )
    parser.add_argument(
        "--addressing",
        choices=ADDRESSINGS,
        metavar="VERSION",
        help=f"the WS-Addressing version: {', '.join(ADDRESSINGS)}",
    )


def add_namespaces(parser: argparse.ArgumentParser) -> None:
    """`--namespace`, for prefixes in topics and expressions."""
    parser.add_argument(
        "--namespace",
        metavar="P=URI",
        action="append",
        default=[],
        help="what a prefix in a topic or an XPath stands for; may be repeated",
    )


def namespaces(pairs: list[str]) -> dict[str, str]:
    """The prefixes and what they stand for."""
    found: dict[str, str] = {}
    for pair in pairs:
        prefix, equals, uri = pair.partition("=")
        if not (prefix and equals and uri):
            from tocsin.errors import BadSetting

            raise BadSetting(f"--namespace {pair!r} has no =", remedy="Write --namespace P=URI.")
        found[prefix] = uri
    return found


def client_of(
    arguments: argparse.Namespace, *, listen: str = "127.0.0.1:0", patience_s: float = 0.0
) -> SoapClient:
    """The client for these options; raises at once if there is no broker."""
    from tocsin.client.wse import WseClient
    from tocsin.client.wsnt import WsntClient

    spec: str = arguments.spec
    kind = WseClient if spec.startswith("wse") else WsntClient
    return kind(
        arguments.broker,
        version="wse04" if spec == "wse" else spec,
        soap=arguments.soap,
        addressing=arguments.addressing,
        listen=listen,
        patience_s=patience_s,
    )


def refuse(arguments: argparse.Namespace, unusable: dict[str, object], mode: str) -> None:
    """Raise BadSetting for an option that was given and means nothing `with --as`, or without."""
    for name, unset in unusable.items():
        if getattr(arguments, name) != unset:
            from tocsin.errors import BadSetting

            option = f"--{_SPELLED.get(name, name).replace('_', '-')}"
            raise BadSetting(
                f"{option} cannot be used {mode}",
                remedy=f"Leave out {option}; --help shows which options go together.",
            )


_SPELLED = {"filed_under": "topic"}


def read_input(name: str) -> bytes:
    """A file, or all of standard input."""
    if name == INPUT:
        return sys.stdin.buffer.read()
    try:
        with open(name, "rb") as file:
            return file.read()
    except OSError as error:
        from tocsin.errors import BadSetting

        raise BadSetting(
            f"cannot read {name}: {error.strerror}", remedy="Name a file that can be read, or -."
        ) from None
