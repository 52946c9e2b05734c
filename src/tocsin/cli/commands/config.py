"""`tocsin config show`: every setting, its value, and where the value came from."""

from __future__ import annotations

import os
from argparse import Namespace

from tocsin.cli.parser import Parser, add_actions, add_json
from tocsin.cli.render import say, show, show_json, table

SUMMARY = "Show every setting and where its value came from"
EXAMPLES = """
  tocsin config show
  tocsin config show --origin
  TOCSIN_HTTP__ADDRESS=127.0.0.1:9000 tocsin config show --json
"""


def add_arguments(parser: Parser) -> None:
    actions = add_actions(parser)
    show_parser = actions.add_parser("show", examples=EXAMPLES, help="print every setting")
    show_parser.add_argument("--config", metavar="FILE", help="the settings file to read")
    show_parser.add_argument(
        "--origin", action="store_true", help="show where each value comes from"
    )
    add_json(show_parser)


def run(arguments: Namespace) -> int:
    from tocsin.config import find_file, keys, load

    file = find_file(arguments.config, os.environ)
    settings, origins = load({}, os.environ, file)
    values = {}
    for name in keys():
        group, _, key = name.partition(".")
        values[name] = getattr(getattr(settings, group), key)
    if arguments.json:
        show_json({name: {"value": v, "origin": origins[name]} for name, v in values.items()})
        return 0
    say(f"settings file: {file or 'none found'}")
    if arguments.origin:
        rows = [(name, _toml(value), origins[name]) for name, value in values.items()]
        table(("setting", "value", "from"), rows)
    else:
        show("\n".join(f"{name} = {_toml(value)}" for name, value in values.items()))
    return 0


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value)
