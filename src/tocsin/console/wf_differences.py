"""`tocsin wf compare`, `changes` and `hints`: what differs, what changed, what could be faster."""

from __future__ import annotations

from argparse import Namespace

from tocsin.console.render import say, show_json
from tocsin.console.rest import Rest
from tocsin.console.wf_asking import find_run, part
from tocsin.console.wf_tables import table
from tocsin.console.wf_words import ENDED, Clock, lasting


def hints(rest: Rest, arguments: Namespace, clock: Clock) -> int:
    """What ran one after the other without need."""
    run = find_run(rest, arguments.run)
    found = part(rest, run, "hints")["hints"]
    if arguments.json:
        for each in found:
            show_json({"run": run["id"], **each})
        return 0
    if not found:
        over = run["state"] in ENDED
        say(
            f"nothing in {run['id']} waited without need"
            if over
            else f"no hints yet: {run['id']} still goes on"
        )
        return 0
    rows = [
        (lasting(each.get("saves_s")), each.get("first"), each.get("second"), each.get("why"))
        for each in found
    ]
    table(("saves", "first", "second", "why"), rows)
    return 0
