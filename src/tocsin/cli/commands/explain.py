"""`tocsin explain`: what an error code means and what to do about it."""

from __future__ import annotations

from argparse import Namespace
from inspect import cleandoc

from tocsin.cli.parser import Parser, add_json
from tocsin.cli.render import show, show_json, table
from tocsin.errors import BadSetting, TocsinError, catalogue

SUMMARY = "Explain an error code, or list all of them"
EXAMPLES = """
  tocsin explain T104
  tocsin explain
"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("code", metavar="CODE", nargs="?", help="a code such as T104")
    add_json(parser)


def run(arguments: Namespace) -> int:
    known = catalogue()
    if arguments.code is None:
        if arguments.json:
            show_json([_described(error) for error in known.values()])
        else:
            rows = [
                (code, error.__name__, _meaning(error).split("\n")[0])
                for code, error in known.items()
            ]
            table(("code", "name", "meaning"), rows)
        return 0
    error = known.get(arguments.code.strip("[]").upper())
    if error is None:
        raise BadSetting(
            f"there is no error code {arguments.code!r}", remedy="`tocsin explain` lists them."
        )
    if arguments.json:
        show_json(_described(error))
        return 0
    show(f"{error.code} {error.__name__}\n\n{_meaning(error)}\n")
    show(f"exit code {error.exit_code}, HTTP status {error.http_status}")
    return 0


def _meaning(error: type[TocsinError]) -> str:
    return cleandoc(error.__doc__ or "")


def _described(error: type[TocsinError]) -> dict[str, object]:
    return {
        "code": error.code,
        "name": error.__name__,
        "meaning": _meaning(error),
        "exit_code": error.exit_code,
        "http_status": error.http_status,
    }
