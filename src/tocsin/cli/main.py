"""`tocsin COMMAND ...`: finds a command by its name, runs it, and turns errors into exit codes.

Only `sys` is loaded here, and only the command's own module after that, because `tocsin pub` stands
in job scripts and runs thousands of times.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import Namespace

    from tocsin.cli.parser import Command

DONE = 0
FAILED = 1
USAGE = 2
INTERRUPTED = 130

USAGE_TEXT = """\
Examples:
  tocsin serve                                     run a broker on this machine
  tocsin sub 'lead/**'                             follow events by topic
  tocsin pub lead/ohio/radar '{"load5": 7}'        publish one event

Usage: tocsin COMMAND [OPTIONS]       tocsin COMMAND --help       tocsin --version

Commands:
"""


# Commands of other brokers, and what they are here.
_COMMANDS_ELSEWHERE = {
    "broker": "serve",
    "consume": "sub",
    "events": "sub",
    "health": "status",
    "info": "status",
    "list": "topics ls",
    "ls": "topics ls",
    "produce": "pub",
    "run-broker": "serve",
    "send": "pub",
    "start": "serve",
    "subscribe": "sub",
    "tail": "sub",
    "top": "status --watch",
    "watch": "sub",
    "workflow": "wf",
    "workflows": "wf",
}


def main(arguments: list[str] | None = None) -> None:
    """The entry point of the `tocsin` command."""
    from tocsin.client.transport import startup_wait

    startup_wait.begin()
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: list[str]) -> int:
    """Run one command; the exit code."""
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _abandon_stdout()
        return DONE
    except Exception as error:
        from tocsin.cli.failure import report

        return report(error)


def _abandon_stdout() -> None:
    """Whoever read our output has gone (`| head`); the last flush must not complain."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _dispatch(arguments: list[str]) -> int:
    first = arguments[0] if arguments else "--help"
    if first in ("--version", "-V", "version"):
        from tocsin import __version__

        print(f"tocsin {__version__}")
        return DONE
    if first in ("--help", "-h", "help"):
        if first == "help" and len(arguments) > 1:
            return _dispatch([arguments[1], *arguments[2:], "--help"])
        from tocsin.cli.parser import command_list

        print(USAGE_TEXT + command_list())
        return DONE
    from tocsin.cli.parser import command_parser, find_command

    command = find_command(first)
    if command is None:
        return _misplaced_option() if first.startswith("-") else _no_such_command(first)
    parsed = command_parser(first, command).parse_args(arguments[1:])
    if any(getattr(parsed, name, None) for name in _SIGN_IN_OPTIONS):
        return _run_signed_in(command, parsed)
    return command.run(parsed)


_SIGN_IN_OPTIONS = {
    "ca_file": "TOCSIN_CA_FILE",
    "token_file": "TOCSIN_TOKEN_FILE",
    "client_cert": "TOCSIN_CLIENT_CERT",
    "client_key": "TOCSIN_CLIENT_KEY",
}


def _run_signed_in(command: Command, parsed: Namespace) -> int:
    """Run it with the files in the environment, where every connection looks for them.

    So they hold for each protocol, and for the processes that the command starts. A variable that
    would come before an option, or belongs to another certificate, is left out meanwhile.
    """
    import os

    concerned = (*_SIGN_IN_OPTIONS.values(), "TOCSIN_TOKEN")
    before = {name: os.environ[name] for name in concerned if name in os.environ}
    if parsed.token_file:
        os.environ.pop("TOCSIN_TOKEN", None)
    if parsed.client_cert:
        for name in ("TOCSIN_CLIENT_KEY", "TOCSIN_TOKEN", "TOCSIN_TOKEN_FILE"):
            os.environ.pop(name, None)
    for name, variable in _SIGN_IN_OPTIONS.items():
        if path := getattr(parsed, name, None):
            os.environ[variable] = os.path.abspath(path)
    try:
        return command.run(parsed)
    finally:
        for name in concerned:
            os.environ.pop(name, None)
        os.environ.update(before)


def _misplaced_option() -> int:
    # The option is not repeated: its value may be a secret, and may be joined to its name.
    print(
        "tocsin: options come after the command\n"
        "Write it as in `tocsin status --json`; `tocsin --help` lists the commands.",
        file=sys.stderr,
    )
    return USAGE


def _no_such_command(name: str) -> int:
    from tocsin.cli.parser import command_names
    from tocsin.errors.suggest import nearest

    near = _COMMANDS_ELSEWHERE.get(name.lower()) or nearest(name, command_names())
    hint = f"Did you mean `tocsin {near}`?" if near else "`tocsin --help` lists the commands."
    print(f"tocsin: there is no command {name!r}\n{hint}", file=sys.stderr)
    return USAGE
