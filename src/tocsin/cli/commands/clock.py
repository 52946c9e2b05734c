"""`tocsin clock`: the broker's time, and whether it accepts the machine's clock."""

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
    for name, help in (
        ("show", "the broker's time, the machine's, and why they differ"),
        ("accept", "the machine's clock is right: let leases end and retention go on"),
    ):
        add_broker(actions.add_parser(name, examples=EXAMPLES, help=help))


def run(arguments: Namespace) -> int:
    from tocsin.cli.render import show, show_json
    from tocsin.cli.rest import Rest

    with Rest(arguments.broker) as rest:
        if arguments.action == "accept":
            answer = rest.request("POST", "/clock/accept").value()
        else:
            answer = rest.get("/clock")
    if arguments.json:
        show_json(answer)
        return 0
    show(f"the broker's time is {answer['time']}, the machine's {answer['machine']}")
    show(answer["problem"] or "the clock is accepted")
    return 0
