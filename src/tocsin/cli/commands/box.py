"""`tocsin box`: message boxes that store events until they are fetched; a service of boxes."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import TYPE_CHECKING

from tocsin.cli.parser import Parser, add_actions, add_broker
from tocsin.cli.serve_options import Addresses, add_serve_options, run_service

if TYPE_CHECKING:
    from tocsin.cli.rest import Rest
    from tocsin.config import Settings

SUMMARY = "Make a message box, fetch from it, remove it; serve boxes by SOAP"
EXAMPLES = """
  box=$(tocsin box create --topic 'lead/**')
  tocsin box pull $box --max 10 --wait 30s
  tocsin box rm $box
"""
_SERVE = """
  tocsin box serve --data /var/lib/tocsin --http 127.0.0.1:8400
  tocsin box serve --http 0.0.0.0:8400 --open       outside the firewall, for everybody
  tocsin box serve --http 127.0.0.1:0 --json        any free port, one line when ready
"""
_LS = """
  tocsin box ls
  tocsin box ls --json
"""

WAIT_S_EACH = 20.0
MAX_EACH = 500


def add_arguments(parser: Parser) -> None:
    actions = add_actions(parser)
    create = actions.add_parser("create", examples=EXAMPLES, help="make a box; prints its id")
    create.add_argument("--topic", metavar="PATTERN", help="a topic pattern")
    create.add_argument("--filter", metavar="TEXT", help="a filter")
    create.add_argument(
        "--from", metavar="SEQ", dest="start", help="begin at a sequence number or a time"
    )
    create.add_argument("--expires", metavar="24h", help="its lease, as in 24h (no end)")
    add_broker(create)
    pull = actions.add_parser("pull", examples=EXAMPLES, help="fetch events, one JSON line each")
    pull.add_argument("id", metavar="ID", help="the box's id")
    pull.add_argument("--max", metavar="N", type=int, default=100, help="at most N events (100)")
    pull.add_argument(
        "--wait", metavar="30s", default="0", help="how long to wait for the first event (0)"
    )
    pull.add_argument("--follow", action="store_true", help="continue until --max have come")
    release = pull.add_mutually_exclusive_group()
    release.add_argument("--ack", metavar="TOKEN", help="acknowledge what an earlier pull returned")
    release.add_argument(
        "--keep", action="store_true", help="leave them in the box; prints a token"
    )
    add_broker(pull)
    ls = actions.add_parser("ls", examples=_LS, help="list the boxes")
    add_broker(ls)
    rm = actions.add_parser("rm", examples=EXAMPLES, help="remove boxes and what is in them")
    rm.add_argument("ids", metavar="ID", nargs="+", help="the ids of boxes")
    rm.set_defaults(all=False, dry_run=False, yes=True)
    add_broker(rm)
    serve = actions.add_parser("serve", examples=_SERVE, help="message boxes by SOAP, no broker")
    add_serve_options(serve)


def run(arguments: Namespace) -> int:
    if arguments.action == "serve":
        return _serve(arguments)
    from tocsin.cli.rest import Rest

    actions = {"create": _create, "pull": _pull, "ls": _ls, "rm": _rm}
    with Rest(arguments.broker) as rest:
        return actions[arguments.action](rest, arguments)


def _create(rest: Rest, arguments: Namespace) -> int:
    from tocsin.cli.durations import iso_duration
    from tocsin.cli.render import show, show_json

    filters = [{"topic": arguments.topic}] if arguments.topic else []
    filters += [{"filter": arguments.filter}] if arguments.filter else []
    asked: dict[str, object] = {"filters": filters}
    if arguments.start is not None:
        start = int(arguments.start) if arguments.start.isdecimal() else arguments.start
        asked["config"] = {"from": start}
    if arguments.expires is not None:
        asked["expires"] = iso_duration(arguments.expires)
    box = rest.post("/boxes", asked)
    show_json(box) if arguments.json else show(box["id"])
    return 0


def _pull(rest: Rest, arguments: Namespace) -> int:
    import time

    from tocsin.cli.durations import seconds
    from tocsin.cli.event_lines import json_lines
    from tocsin.client.incoming.box import page_messages
    from tocsin.client.requests import messages_target
    from tocsin.wire.api.views import MessagesPulled

    deadline = time.monotonic() + seconds(arguments.wait)
    ack, came, dropped = arguments.ack, 0, 0
    while came < arguments.max:
        left_s = deadline - time.monotonic()
        wait_s = WAIT_S_EACH if arguments.follow else min(max(0.0, left_s), WAIT_S_EACH)
        count = min(arguments.max - came, MAX_EACH)
        target = messages_target(arguments.id, count=count, wait_s=round(wait_s, 3), ack=ack)
        page = rest.request("GET", target).read(MessagesPulled)
        ack = page.next
        dropped += page.dropped
        came += len(page.events)
        if page.events:
            sys.stdout.buffer.write(json_lines(page_messages(page)))
            sys.stdout.flush()
        if not arguments.follow and (came or left_s <= 0):
            break
        if arguments.keep:
            break
    return _settle(rest, arguments, ack, came, dropped)


def _settle(rest: Rest, arguments: Namespace, ack: str, came: int, dropped: int) -> int:
    from tocsin.cli.render import plural, say
    from tocsin.client.requests import messages_target
    from tocsin.errors import NothingArrived

    if dropped:
        say(f"{plural(dropped, 'event')} expired before they were fetched")
    if not came:
        raise NothingArrived(
            f"box {arguments.id} is empty", remedy="Wait for events with --wait 30s."
        )
    if arguments.keep:
        say(f"still in the box; acknowledge them with: tocsin box pull {arguments.id} --ack {ack}")
        return 0
    rest.get(messages_target(arguments.id, count=1, wait_s=0, ack=ack))
    return 0


def _ls(rest: Rest, arguments: Namespace) -> int:
    from tocsin.cli.commands.subs import filters_text
    from tocsin.cli.render import show_json, table

    found = list(rest.pages("/boxes", "boxes"))
    if arguments.json:
        for box in found:
            show_json(box)
        return 0
    rows = [
        (box["id"], box.get("behind"), box.get("dropped"), box.get("expires"), filters_text(box))
        for box in found
    ]
    table(("id", "behind", "dropped", "expires", "filters"), rows)
    return 0


def _rm(rest: Rest, arguments: Namespace) -> int:
    from tocsin.cli.bulk import apply_to_each
    from tocsin.cli.rest import item

    def remove(name: str) -> None:
        rest.delete(item("boxes", name))

    return apply_to_each(arguments, "remove", "box", arguments.ids, remove, confirm=False)


def _serve(arguments: Namespace) -> int:
    from tocsin.drivers import box_serve

    return run_service(box_serve.run, arguments, {}, _welcome)


def _welcome(url: str, addresses: Addresses, settings: Settings) -> str:
    return (
        f"message boxes are at {url}/axis2/services/MsgBoxService (createMsgBox)\n"
        f"and at {url}/soap (CreatePullPoint); their data is in {settings.log.directory}\n"
        "Stop with Ctrl-C."
    )
