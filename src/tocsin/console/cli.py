"""`tocsin COMMAND ...`: finds a command by its name, runs it, and turns errors into exit codes.

Only `sys` is loaded here, and only the command's own module after that, because `tocsin pub` stands
in job scripts and runs thousands of times.
"""

from __future__ import annotations

import sys

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


def main(arguments: list[str] | None = None) -> None:
    """The entry point of the `tocsin` command."""
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
        from tocsin.console.failure import report

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
        from tocsin.console.parser import command_list

        print(USAGE_TEXT + command_list())
        return DONE
    from tocsin.console.parser import command_parser, find_command

    command = find_command(first)
    if command is None:
        return _no_such_command(first)
    parsed = command_parser(first, command).parse_args(arguments[1:])
    code: int = command.run(parsed)
    return code


def _no_such_command(name: str) -> int:
    from difflib import get_close_matches

    from tocsin.console.parser import command_names

    near = get_close_matches(name, command_names(), n=1, cutoff=0.5)
    hint = f"Did you mean `tocsin {near[0]}`?" if near else "`tocsin --help` lists the commands."
    print(f"tocsin: there is no command {name!r}\n{hint}", file=sys.stderr)
    return USAGE
