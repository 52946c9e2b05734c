"""`tocsin keys`: the small authority of a site, and the certificates that it issues."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from tocsin.cli.parser import Parser, add_actions, add_json

if TYPE_CHECKING:
    from argparse import ArgumentParser

SUMMARY = "Make a site's own authority; issue, show, renew and revoke certificates"
EXAMPLES = """
  tocsin keys init --name "Radar site"               once: the authority, in ./tocsin-keys
  tocsin keys issue broker1 --kind broker --host broker1.example
  tocsin keys issue alice --group operators          a client; alice.pem and alice.key
  tocsin keys show
  tocsin keys revoke alice
"""
_INIT = """
  tocsin keys init
  tocsin keys init --dir /srv/keys --name "Radar site" --days 7300
"""
_ISSUE = """
  tocsin keys issue alice --group operators --group radar
  tocsin keys issue broker1 --kind broker --host broker1.example --host 192.0.2.7
  tocsin keys issue topics --kind tdn --host topics.example
  tocsin keys issue agent-7 --key ed25519 --days 90
"""
_SHOW = """
  tocsin keys show                                   everything that was issued
  tocsin keys show alice --json
"""
_ROTATE = """
  tocsin keys rotate alice                           a new key and certificate, as before
  tocsin keys rotate --crl                           the same revocation list, valid for longer
"""
_REVOKE = """
  tocsin keys revoke alice                           every certificate of alice
  tocsin keys revoke 5f3a09c41b                      one, by its serial number
"""
DIRECTORY = "tocsin-keys"
KINDS = ("client", "broker", "tdn")
KEYS = ("p256", "rsa", "ed25519")
AUTHORITY_KEYS = ("p256", "rsa")  # verifiers of chains refuse authorities with Ed25519
DAYS, AUTHORITY_DAYS = 365, 3650


def add_arguments(parser: Parser) -> None:
    actions = add_actions(parser)
    init = actions.add_parser("init", examples=_INIT, help="make the authority")
    init.add_argument("--name", metavar="TEXT", default="Tocsin site", help="what it is called")
    init.add_argument("--key", choices=AUTHORITY_KEYS, default="p256", help="its key (p256)")
    init.add_argument(
        "--days", metavar="N", type=int, default=AUTHORITY_DAYS, help="valid so long (3650)"
    )
    issue = actions.add_parser("issue", examples=_ISSUE, help="issue a certificate and its key")
    issue.add_argument("name", metavar="NAME", help="the principal: a person, a program, a broker")
    issue.add_argument("--kind", choices=KINDS, default="client", help="what it is for (client)")
    issue.add_argument(
        "--group", metavar="G", action="append", default=[], help="a group of NAME; repeatable"
    )
    issue.add_argument(
        "--host",
        metavar="H",
        action="append",
        default=[],
        help="a host name or address by which NAME is reached; repeatable",
    )
    issue.add_argument("--key", choices=KEYS, default="p256", help="the key (p256)")
    issue.add_argument("--days", metavar="N", type=int, default=DAYS, help="valid so long (365)")
    show = actions.add_parser("show", examples=_SHOW, help="list certificates, or show one")
    show.add_argument("name", metavar="NAME", nargs="?", help="the name, for its newest one")
    rotate = actions.add_parser("rotate", examples=_ROTATE, help="a new key and certificate")
    rotate.add_argument("name", metavar="NAME", nargs="?", help="whose")
    rotate.add_argument("--crl", action="store_true", help="the revocation list instead")
    rotate.add_argument("--days", metavar="N", type=int, help="valid so long (as before)")
    revoke = actions.add_parser("revoke", examples=_REVOKE, help="revoke certificates")
    revoke.add_argument("which", metavar="NAME|SERIAL", help="a name, or one serial number")
    for each in (init, issue, show, rotate, revoke):
        _add_directory(each)
        add_json(each)


def _add_directory(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--dir", metavar="DIR", default=DIRECTORY, help="where the authority is (tocsin-keys)"
    )


def run(arguments: Namespace) -> int:
    from tocsin.cli.keys.actions import ACTIONS

    return ACTIONS[arguments.action](arguments)
