"""`tocsin clock`: what time it is at the broker, and whether that is sure."""

from __future__ import annotations

from argparse import Namespace

from tocsin.cli.parser import Parser, add_actions, add_broker

SUMMARY = "Show the broker's time; accept a clock that jumped"
EXAMPLES = """
  tocsin clock show
  tocsin clock accept                               it is right: leases that are over end now
"""


def add_arguments(parser: Parser) -> None:
    actions = add_actions(parser)
    for name, words in (
        ("show", "the broker's time, the machine's, and why they differ"),
        ("accept", "the machine's clock is right: let leases end and retention go on"),
    ):
        add_broker(actions.add_parser(name, examples=EXAMPLES, help=words))


def run(arguments: Namespace) -> int:
    from tocsin.cli.render import show, show_json
    from tocsin.cli.rest import Rest

    with Rest(arguments.broker) as rest:
        if arguments.action == "accept":
            told = rest.request("POST", "/clock/accept").value()
        else:
            told = rest.get("/clock")
    if arguments.json:
        show_json(told)
        return 0
    show(f"the broker's time is {told['time']}, the machine's {told['machine']}")
    show(told["problem"] or "the clock is believed")
    return 0
