"""Parsers whose help starts with examples, and the list of commands."""

from __future__ import annotations

import argparse
import os
import re
import sys
from importlib import import_module
from typing import Any, NoReturn, Protocol, cast

USAGE_EXIT = 2
HELP_WIDTH = 98  # where there is no terminal to ask


class Command(Protocol):
    """What a module in `cli/commands/` has."""

    SUMMARY: str
    EXAMPLES: str

    def add_arguments(self, parser: Parser) -> None:
        """Add the command's own arguments."""

    def run(self, arguments: argparse.Namespace) -> int:
        """Run the command; the exit code."""


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Finds its width without `shutil`, which argparse would load before it parses anything."""

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
        """As argparse does, but optional arguments may also follow an option.

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

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse does, but unknown arguments are not repeated: they may be secrets."""
        parsed, left = self.parse_known_args(args, namespace)
        if left:
            self._refuse_left_over(left, getattr(parsed, "action", None))
        return parsed

    def _refuse_left_over(self, left: list[str], action: object) -> NoReturn:
        parser = self._of_action(action)
        named = next((text for text in left if text.startswith("-") and text != "-"), None)
        if named is None:
            parser.error("too many arguments")
        option = named.partition("=")[0]
        near = _nearest_option(option, parser)
        hint = f". Did you mean {near}?" if near else ""
        # One that does not look like an option's name is more likely a value: -5, -secret
        shown = option if _OPTION.fullmatch(option) else "that begins with -"
        parser.error(f"unknown option {shown}{hint}")

    def _of_action(self, action: object) -> Parser:
        """The parser of the action that was chosen, with its own options."""
        for each in self._actions:
            if isinstance(each, argparse._SubParsersAction) and action in each.choices:
                chosen = each.choices[action]
                return chosen if isinstance(chosen, Parser) else self
        return self

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError as error:
            needed = _NEEDED.get(action.type)
            if needed is None:
                raise
            raise argparse.ArgumentError(action, needed) from error

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError:
            choices = [str(each) for each in action.choices or ()]
            expected = f"choose one of {', '.join(choices)}"
            from tocsin.errors.suggest import nearest

            near = nearest(str(value), choices)
            hint = f". Did you mean {near}?" if near else ""
            raise argparse.ArgumentError(action, expected + hint) from None

    def format_help(self) -> str:
        return f"Examples:\n{self.examples}\n\n{super().format_help()}"

    def error(self, message: str) -> NoReturn:
        message = _EXPLICIT.sub("it takes no value", message)
        print(f"{self.prog}: {message}\nSee `{self.prog} --help`.", file=sys.stderr)
        raise SystemExit(USAGE_EXIT)


_OPTION = re.compile(r"-[A-Za-z]|--[A-Za-z][A-Za-z-]{0,40}")
_EXPLICIT = re.compile(r"ignored explicit argument .*", re.DOTALL)
_NEEDED: dict[object, str] = {int: "needs a whole number", float: "needs a number"}


def _nearest_option(option: str, parser: Parser) -> str | None:
    from tocsin.errors.suggest import nearest

    names = [name for action in parser._actions for name in action.option_strings]
    bare = {name.lstrip("-"): name for name in names if name.startswith("--")}
    near = nearest(option.lstrip("-"), list(bare))
    return bare[near] if near is not None else None


def command_names() -> list[str]:
    """Every command there is."""
    from pkgutil import iter_modules

    directory = os.path.join(os.path.dirname(__file__), "commands")
    return sorted(module.name for module in iter_modules([directory]))


def find_command(name: str) -> Command | None:
    """The command's module, or None if there is no such command."""
    path = f"tocsin.cli.commands.{name}"
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
    """`--broker`, what signs in there, and `--json`, for commands that call a broker."""
    parser.add_argument(
        "--broker",
        metavar="URL",
        help="the broker's address (TOCSIN_BROKER, or else http://127.0.0.1:8400)",
    )
    add_sign_in(parser)
    add_json(parser)


def add_sign_in(parser: argparse.ArgumentParser) -> None:
    """`--ca-file`, and what a command signs in with. There is no option for a token itself: the
    list of processes shows those."""
    parser.add_argument(
        "--ca-file",
        metavar="FILE",
        help="PEM file of authorities to trust besides the system's, for https:// (TOCSIN_CA_FILE)",
    )
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        help="file with the token to sign in with (TOCSIN_TOKEN, TOCSIN_TOKEN_FILE, or else that "
        "of tocsin login)",
    )
    parser.add_argument(
        "--client-cert",
        metavar="FILE",
        help="PEM file of the certificate to sign in with, for https:// (TOCSIN_CLIENT_CERT)",
    )
    parser.add_argument(
        "--client-key",
        metavar="FILE",
        help="PEM file of its private key, unless it is in the same file (TOCSIN_CLIENT_KEY)",
    )


def add_identity(parser: argparse.ArgumentParser) -> None:
    """`--identity`, for commands that sign."""
    parser.add_argument(
        "--identity",
        metavar="DIR",
        help="directory of the identity to sign with (TOCSIN_IDENTITY, or else identity beside "
        "the credentials of tocsin login)",
    )


def add_actions(parser: argparse.ArgumentParser) -> Any:
    """A group of actions, as in `tocsin subs ls`."""
    return parser.add_subparsers(
        dest="action", required=True, metavar="ACTION", parser_class=Parser, title="actions"
    )
