"""The page docs/commands.md, made from the parsers.

python -m tocsin.cli.reference > docs/commands.md
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from tocsin.cli.commands.completion import actions
from tocsin.cli.parser import Parser, command_names, command_parser, find_command

HEAD = """\
# Commands

Made from the parsers by `python -m tocsin.cli.reference`; edit those, not this page.

Data goes to standard output, words to standard error. Every command has `--json`. There is colour,
a progress bar or a question only at a terminal; `NO_COLOR` turns colour off. The broker is the one
of `--broker`, or else of `TOCSIN_BROKER`, or else `http://127.0.0.1:8400`. For one with TLS whose
certificate is not signed by an authority of the system, `--ca-file` or `TOCSIN_CA_FILE` names the
PEM file of its authority. A broker on this machine that does not
listen yet is waited for: 5 seconds in all, or `TOCSIN_BROKER_WAIT_S`.

| exit code | meaning |
| --- | --- |
| 0 | done |
| 1 | failed |
| 2 | the command was used wrongly, or a setting is wrong |
| 3 | no broker could be reached |
| 4 | not allowed |
| 5 | not found |
| 6 | the time ran out, or nothing arrived |
| 7 | some of many failed |
| 130 | interrupted |

An error is two lines: what happened, with a code that `tocsin explain CODE` explains, and what to
do about it.
"""


def reference() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(line for name in command_names() for line in _command(name))])


def _command(name: str) -> Iterator[str]:
    command = find_command(name)
    assert command is not None
    parser = command_parser(name, command)
    yield f"## tocsin {name}\n\n{command.SUMMARY}.\n"
    yield _examples(command.EXAMPLES)
    yield from _arguments(parser)
    for action, sub in actions(parser).items():
        yield f"### tocsin {name} {action}\n"
        if isinstance(sub, Parser) and sub.examples != parser.examples:
            yield _examples(sub.examples)
        yield from _arguments(sub)


def _examples(text: str) -> str:
    lines = [line.removeprefix("  ") for line in text.strip("\n").splitlines()]
    return "\n".join(["```sh", *lines, "```", ""])


def _arguments(parser: argparse.ArgumentParser) -> Iterator[str]:
    shown = [a for a in parser._actions if not isinstance(a, argparse._SubParsersAction)]
    shown = [action for action in shown if action.dest != "help"]
    if shown:
        rows = [f"| `{_name(action)}` | {_meaning(action)} |" for action in shown]
        yield "\n".join(["| argument | meaning |", "| --- | --- |", *rows, ""])


def _name(action: argparse.Action) -> str:
    choices = "{" + ",".join(map(str, action.choices)) + "}" if action.choices else None
    value = choices or (action.metavar if isinstance(action.metavar, str) else None)
    if not action.option_strings:
        name = value or action.dest
        return f"[{name}]" if action.nargs in ("?", "*") else name
    takes = "" if action.nargs == 0 else f" {value or action.dest.upper()}"
    return ", ".join(action.option_strings) + takes


def _meaning(action: argparse.Action) -> str:
    return (action.help or "").replace("|", "\\|")


if __name__ == "__main__":
    print(reference(), end="")
