"""Parsers whose help starts with examples, and the list of commands."""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module
from typing import Any, NoReturn, Protocol, cast

USAGE_EXIT = 2
HELP_WIDTH = 98  # where there is no terminal to ask


class Command(Protocol):
    """What a module in `console/commands/` has."""

    SUMMARY: str
    EXAMPLES: str

    def add_arguments(self, parser: Parser) -> None:
        """Add the command's own arguments."""

    def run(self, arguments: argparse.Namespace) -> int:
        """Do it; the exit code."""


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Knows its width without `shutil`, which argparse would load before it parses anything."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_help_width())


def _help_width() -> int:
    try:
        return int(os.environ.get("COLUMNS", "")) - 2
    except ValueError:
        pass
    try:
        return os.get_terminal_size().columns - 2
    except OSError:
        return HELP_WIDTH


class Parser(argparse.ArgumentParser):
    """Examples first, then the usage; an error is two lines and exit code 2."""

    def __init__(self, *, examples: str = "", **options: Any) -> None:
        super().__init__(formatter_class=Formatter, allow_abbrev=False, **options)
        self.examples = examples.strip("\n")
        self._mixing = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse does, but what may be left out may also stand after an option.

        By itself it counts DATA as left out in `pub TOPIC --attr run=42 DATA`.
        """
        if self._mixing or not self._may_be_mixed():
            return super().parse_known_args(args, namespace)
        self._mixing = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._mixing = False

    def _may_be_mixed(self) -> bool:
        kinds = {action.nargs for action in self._get_positional_actions()}
        return bool(kinds & {argparse.OPTIONAL, argparse.ZERO_OR_MORE}) and not (
            kinds & {argparse.PARSER, argparse.REMAINDER}
        )

    def format_help(self) -> str:
        return f"Examples:\n{self.examples}\n\n{super().format_help()}"

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {message}\nSee `{self.prog} --help`.", file=sys.stderr)
        raise SystemExit(USAGE_EXIT)


def command_names() -> list[str]:
    """Every command there is."""
    from pkgutil import iter_modules

    directory = os.path.join(os.path.dirname(__file__), "commands")
    return sorted(module.name for module in iter_modules([directory]))


def find_command(name: str) -> Command | None:
    """The command's module, or None if there is no such command."""
    path = f"tocsin.console.commands.{name}"
    if not name.isidentifier() or name.startswith("_"):
        return None
    try:
        return cast(Command, import_module(path))
    except ModuleNotFoundError as error:
        if error.name == path:
            return None
        raise


def command_parser(name: str, command: Command) -> Parser:
    """The parser of one command."""
    parser = Parser(
        prog=f"tocsin {name}",
        description=command.SUMMARY,
        examples=command.EXAMPLES,
    )
    command.add_arguments(parser)
    return parser


def command_list() -> str:
    """The commands with a line each."""
    found = [(name, find_command(name)) for name in command_names()]
    return "\n".join(f"  {name:<12}{command.SUMMARY}" for name, command in found if command)


def add_json(parser: argparse.ArgumentParser) -> None:
    """`--json`, which every command has."""
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def add_broker(parser: argparse.ArgumentParser) -> None:
    """`--broker` and `--json`, for whatever asks a broker."""
    parser.add_argument(
        "--broker",
        metavar="URL",
        help="the broker's address (TOCSIN_BROKER, or else http://127.0.0.1:8400)",
    )
    add_json(parser)


def add_actions(parser: argparse.ArgumentParser) -> Any:
    """A group of actions, as in `tocsin subs ls`."""
    return parser.add_subparsers(
        dest="action", required=True, metavar="ACTION", parser_class=Parser, title="actions"
    )
