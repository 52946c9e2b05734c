"""`tocsin dlq`: dead letters, that is, events which a sink did not take."""

from __future__ import annotations

import time
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from tocsin.cli.parser import Parser, add_actions, add_broker

if TYPE_CHECKING:
    from tocsin.cli.rest import Rest

SUMMARY = "Look at dead letters, send them again, drop them"
EXAMPLES = """
  tocsin dlq ls
  tocsin dlq show 9c41f08e2b7d5a630e8f1c24
  tocsin dlq redrive --subscription 2ddeb2889f1241f9e9def6ee
"""

RATE_DEFAULT = 50.0


def add_arguments(parser: Parser) -> None:
    from tocsin.cli.bulk import add_bulk

    actions = add_actions(parser)
    ls = actions.add_parser("ls", examples=EXAMPLES, help="list dead letters")
    ls.add_argument("--subscription", metavar="ID", help="only those of one subscription")
    add_broker(ls)
    show = actions.add_parser("show", examples=EXAMPLES, help="one, with every attempt")
    show.add_argument("id", metavar="ID", help="the dead letter's id")
    add_broker(show)
    for verb, help in (("redrive", "send again to their sinks"), ("drop", "delete them")):
        many = actions.add_parser(verb, examples=_many_examples(verb), help=help)
        many.add_argument("ids", metavar="ID", nargs="*", help="the ids of dead letters")
        many.add_argument("--subscription", metavar="ID", help="those of one subscription")
        if verb == "redrive":
            many.add_argument(
                "--rate",
                metavar="N",
                type=float,
                default=RATE_DEFAULT,
                help=f"at most N a second ({RATE_DEFAULT:g})",
            )
        add_bulk(many)
        add_broker(many)


def _many_examples(verb: str) -> str:
    return f"""
  tocsin dlq {verb} 9c41f08e2b7d5a630e8f1c24
  tocsin dlq {verb} --subscription 2ddeb2889f1241f9e9def6ee --dry-run
  tocsin dlq {verb} --all --yes
"""


def run(arguments: Namespace) -> int:
    from tocsin.cli.rest import Rest

    actions = {"ls": _ls, "show": _show}
    with Rest(arguments.broker) as rest:
        return actions.get(arguments.action, _many)(rest, arguments)


def _ls(rest: Rest, arguments: Namespace) -> int:
    from tocsin.cli.render import plural, say, show_json, table

    found = _in_order(rest, arguments.subscription)
    if arguments.json:
        for letter in found:
            show_json(letter)
        return 0
    if not found:
        say("no dead letters")
        return 0
    rows = [
        (
            letter["id"],
            letter.get("subscription"),
            letter.get("sink"),
            letter.get("sequence"),
            _count(letter.get("attempts")),
            letter.get("reason"),
        )
        for letter in found
    ]
    table(("id", "subscription", "sink", "sequence", "attempts", "reason"), rows)
    say(plural(len(rows), "dead letter"))
    return 0


def _in_order(rest: Rest, subscription: str | None) -> list[dict[str, Any]]:
    """In the order of their events; the broker lists them by id."""
    pages = rest.pages("/deadletters", "deadletters", subscription=subscription)
    return sorted(pages, key=lambda letter: (letter["sequence"], letter["id"]))


def _count(attempts: object) -> object:
    return len(attempts) if isinstance(attempts, list) else attempts


def _show(rest: Rest, arguments: Namespace) -> int:
    import json

    from tocsin.cli.render import fields, show, show_json
    from tocsin.cli.rest import item

    letter: dict[str, Any] = rest.get(item("deadletters", arguments.id))
    if arguments.json:
        show_json(letter)
        return 0
    fields((name, value) for name, value in letter.items() if name not in ("attempts", "event"))
    for number, attempt in enumerate(letter.get("attempts") or [], 1):
        show(f"attempt {number}: {json.dumps(attempt, ensure_ascii=False)}")
    show(json.dumps(letter.get("event"), indent=2, ensure_ascii=False))
    return 0


def _many(rest: Rest, arguments: Namespace) -> int:
    from tocsin.cli.bulk import apply_to_each, must_choose
    from tocsin.cli.rest import item

    must_choose(arguments, bool(arguments.ids or arguments.subscription))
    ids = arguments.ids
    if not ids:
        ids = [letter["id"] for letter in _in_order(rest, arguments.subscription)]

    def drop(name: str) -> None:
        rest.delete(item("deadletters", name))

    def redrive(name: str) -> None:
        began = time.monotonic()
        rest.post(f"{item('deadletters', name)}/redrive")
        time.sleep(max(0.0, 1 / max(arguments.rate, 0.001) - (time.monotonic() - began)))

    drops = arguments.action == "drop"
    confirm = drops and not arguments.ids
    action = drop if drops else redrive
    return apply_to_each(arguments, arguments.action, "dead letter", ids, action, confirm=confirm)
