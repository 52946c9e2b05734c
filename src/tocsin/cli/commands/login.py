"""`tocsin login`: signs this user in at a broker, for every command that follows."""

from __future__ import annotations

from argparse import Namespace

from tocsin.cli.parser import Parser, add_broker

SUMMARY = "Sign in at a broker, and say who one is"
EXAMPLES = """
  tocsin login                                        asks for the token, and keeps it
  tocsin login --broker https://events.example.org < token.txt
  tocsin login --issuer https://id.example.org --client-id tocsin
  tocsin login --show
  tocsin login --remove
"""


def add_arguments(parser: Parser) -> None:
    actions = parser.add_mutually_exclusive_group()
    actions.add_argument("--show", action="store_true", help="say who one is, without the token")
    actions.add_argument("--remove", action="store_true", help="forget the login for this broker")
    actions.add_argument(
        "--issuer",
        metavar="URL",
        help="sign in at this OpenID issuer, in a browser on any machine",
    )
    parser.add_argument("--client-id", metavar="ID", help="who asks there, as the issuer knows it")
    parser.add_argument(
        "--scope",
        metavar="WORDS",
        default="openid offline_access",
        help="what to ask the issuer for (openid offline_access)",
    )
    parser.add_argument(
        "--audience",
        metavar="NAME",
        help="whom the token is for, where the issuer wants to be told",
    )
    add_broker(parser)


def run(arguments: Namespace) -> int:
    from tocsin.cli import login

    if arguments.show:
        return login.show_identity(arguments)
    if arguments.remove:
        return login.remove(arguments)
    return login.sign_in(arguments)
