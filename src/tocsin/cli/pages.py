"""The generated pages of docs/: commands, settings and errors.

python -m tocsin.cli.pages commands > docs/commands.md
python -m tocsin.cli.pages settings > docs/settings.md
python -m tocsin.cli.pages errors > docs/errors.md
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import fields

from tocsin import config
from tocsin.cli.commands.completion import actions
from tocsin.cli.parser import Parser, command_names, command_parser, find_command
from tocsin.errors import catalogue

COMMANDS_HEAD = """\
# Commands

Made from the parsers by `python -m tocsin.cli.pages commands`; edit those, not this page.

Data goes to standard output, messages to standard error. Every command has `--json`. Colour, a
progress bar and questions appear only at a terminal; `NO_COLOR` turns colour off. The broker is the
one of `--broker`, or else of `TOCSIN_BROKER`, or else `http://127.0.0.1:8400`. For a broker with
TLS whose certificate is not signed by an authority of the system, `--ca-file` or `TOCSIN_CA_FILE`
names the PEM file of its authority. Who must sign in does so by `tocsin login`, `--token-file` or
`--client-cert` ([signing in](signing-in.md)). A broker on this machine that does not listen yet is
waited for: 5 seconds in all, or `TOCSIN_BROKER_WAIT_S`.

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

SETTINGS_HEAD = """\
# Settings

Made by `python -m tocsin.cli.pages settings`; the text is in `src/tocsin/config/tables.py`.

A setting comes from a flag, else from the environment, else from a file, else it has its default.
The file is the one that `--config` or `TOCSIN_CONFIG` names, or `./tocsin.toml`, or
`~/.config/tocsin/config.toml`, or `/etc/tocsin/tocsin.toml`. In the environment a setting is
`TOCSIN_TABLE__KEY`, as in `TOCSIN_HTTP__ADDRESS=127.0.0.1:8500`. An unknown name is an error that
suggests the nearest setting. `tocsin config show --origin` shows each value and its
origin.
"""

RULES_TAIL = """\
## [[access]], [groups] and [[quotas]]

Rules and no settings: who may do what, who belongs to which group, and how much each may have and
send. Only a file has them; [securing a broker](guide/securing.md) says how they are written.
"""

ERRORS_HEAD = """\
# Error codes

Made by `python -m tocsin.cli.pages errors`; the text is in `src/tocsin/errors`.

Every error has a code, which is stable, and a text, which may change. Over HTTP it is an RFC 9457
problem with `code` and `remedy`; on the command line it is two lines and an exit code.
`tocsin explain CODE` prints the entry of this table.

| code | name | HTTP | exit | what it means |
| --- | --- | --- | --- | --- |
"""


def commands() -> str:
    """Every command with its examples and arguments."""
    return "\n".join(
        [COMMANDS_HEAD, *(line for name in command_names() for line in _command(name))]
    )


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


def settings() -> str:
    """Every table of the settings with its keys, defaults and reasons."""
    tables = [each.name for each in fields(config.Settings) if each.name not in config.RULE_TABLES]
    return "\n".join(
        [SETTINGS_HEAD, *(line for name in tables for line in _table(name)), RULES_TAIL]
    )


def _table(name: str) -> Iterator[str]:
    group = getattr(config.Settings(), name)
    about = inspect.cleandoc(type(group).__doc__ or "").partition(": ")[2]
    yield f"## [{name}]\n\n{about[:1].upper()}{about[1:]}\n"
    yield "| key | default | |\n| --- | --- | --- |"
    reasons = _reasons(type(group))
    for key in fields(group):
        if f"{name}.{key.name}" in config.FILE_ONLY:
            continue
        shown = repr(getattr(group, key.name)).replace("'", '"')
        yield f"| `{key.name}` | `{shown}` | {reasons.get(key.name, '')} |"
    yield ""


def _reasons(kind: type) -> dict[str, str]:
    """The comment behind each key, which gives the reason."""
    found = re.findall(r"^    (\w+): [^#\n]*#\s*(.+)$", inspect.getsource(kind), re.M)
    return dict(found)


def errors() -> str:
    """Every error by its code."""
    rows = []
    for code, error in catalogue().items():
        meaning = " ".join((error.__doc__ or "").split()).replace("|", "\\|")
        rows.append(
            f"| {code} | {error.__name__} | {error.http_status} | {error.exit_code} | {meaning} |"
        )
    return ERRORS_HEAD + "\n".join(rows) + "\n"


PAGES = {"commands": commands, "settings": settings, "errors": errors}

if __name__ == "__main__":
    print(PAGES[sys.argv[1]](), end="")
