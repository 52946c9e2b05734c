"""`tocsin subs`: who is subscribed to what, and how far behind."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from tocsin.cli.parser import Parser, add_actions, add_broker

if TYPE_CHECKING:
    from tocsin.cli.rest import Rest

SUMMARY = "List, make, change and remove subscriptions"
EXAMPLES = """
  tocsin subs ls
  tocsin subs add http://127.0.0.1:9000/hook --topic 'lead/**' --filter 'load5 >= 5'
  tocsin subs add https://example.org/hook --topic 'lead/**' --sink-token-file token
  tocsin subs rm --filter 9000/hook --dry-run
"""

_LS = """
  tocsin subs ls                                    the slowest first
  tocsin subs ls --json | jq -r .id
"""
_SHOW = """
  tocsin subs show 2ddeb2889f1241f9e9def6ee
"""
_ADD = """
  tocsin subs add http://127.0.0.1:9000/hook --topic 'lead/**'
  tocsin subs add https://example.org/hook --filter 'load5 >= 5' --expires 1h --batch 100
  tocsin subs add gma://127.0.0.1:9401 --topic 'gma/UptimeCPULoad/**'    to an archive
"""
_RENEW = """
  tocsin subs renew 2ddeb2889f1241f9e9def6ee --expires 24h
"""


def add_arguments(parser: Parser) -> None:
    actions = add_actions(parser)
    ls = actions.add_parser("ls", examples=_LS, help="list subscriptions, the slowest first")
    ls.add_argument("--filter", metavar="TEXT", help="only those whose id, sink or filter has TEXT")
    add_broker(ls)
    show = actions.add_parser("show", examples=_SHOW, help="show one in detail")
    show.add_argument("id", metavar="ID", help="the subscription's id")
    add_broker(show)
    _add_add(actions.add_parser("add", examples=_ADD, help="have events pushed to a sink"))
    renew = actions.add_parser("renew", examples=_RENEW, help="extend the lease of one")
    renew.add_argument("id", metavar="ID", help="the subscription's id")
    renew.add_argument(
        "--expires", metavar="1h", required=True, help="the new lease, as in 24h, or never"
    )
    add_broker(renew)
    for verb, help in (
        ("rm", "remove subscriptions"),
        ("pause", "stop pushing; events are kept"),
        ("resume", "push again, from where it stopped"),
    ):
        _add_many(actions.add_parser(verb, examples=_many_examples(verb), help=help))


def _many_examples(verb: str) -> str:
    return f"""
  tocsin subs {verb} 2ddeb2889f1241f9e9def6ee e2abecb68f88c2c14ca36d9d
  tocsin subs {verb} --filter example.org --dry-run
"""


def _add_add(parser: ArgumentParser) -> None:
    parser.add_argument(
        "sink",
        metavar="SINK",
        help="the URL that gets a POST for each event; or gma://HOST:PORT (gmas: by TLS), "
        "a consumer of performance events",
    )
    parser.add_argument("--topic", metavar="PATTERN", help="a topic pattern")
    parser.add_argument("--filter", metavar="TEXT", help="a filter")
    parser.add_argument("--expires", metavar="1h", help="its lease, as in 24h (no end)")
    parser.add_argument(
        "--from", metavar="SEQ", dest="start", help="begin at a sequence number or a time"
    )
    parser.add_argument("--secret-file", metavar="FILE", help="the secret that signs each request")
    parser.add_argument(
        "--sink-token-file",
        metavar="FILE",
        help="the bearer token that the sink wants to see with each request",
    )
    parser.add_argument(
        "--batch", metavar="N", type=int, help="events in one request (1; gma: 100 at once)"
    )
    parser.add_argument("--structured", action="store_true", help="whole events as JSON")
    add_broker(parser)


def _add_many(parser: ArgumentParser) -> None:
    from tocsin.cli.bulk import add_bulk

    parser.add_argument("ids", metavar="ID", nargs="*", help="the ids of subscriptions")
    parser.add_argument("--filter", metavar="TEXT", help="those whose id, sink or filter has TEXT")
    add_bulk(parser)
    add_broker(parser)


def run(arguments: Namespace) -> int:
    from tocsin.cli.rest import Rest

    actions = {"ls": _ls, "show": _show, "add": _add, "renew": _renew}
    with Rest(arguments.broker) as rest:
        return actions.get(arguments.action, _many)(rest, arguments)


def _ls(rest: Rest, arguments: Namespace) -> int:
    from tocsin.cli.render import plural, say, show_json, table

    found = list(rest.pages("/subscriptions", "subscriptions", sort="behind", q=arguments.filter))
    if arguments.json:
        for view in found:
            show_json(view)
        return 0
    rows = [
        (
            view["id"],
            view.get("state"),
            view.get("behind"),
            view.get("dead"),
            view.get("sink"),
            filters_text(view),
            view.get("last_error"),
        )
        for view in found
    ]
    if rows:
        table(("id", "state", "behind", "dead", "sink", "filters", "last error"), rows)
        say(plural(len(rows), "subscription"))
    else:
        say("no subscriptions; make one with: tocsin subs add SINK --topic 'lead/**'")
    return 0


def filters_text(view: dict[str, Any]) -> str:
    """The filters of a subscription as short text."""
    import json

    parts = []
    for one in view.get("filters") or []:
        if isinstance(one, dict) and len(one) == 1:
            ((name, value),) = one.items()
            if isinstance(value, str):
                parts.append(value if name == "filter" else f"{name} {value}")
                continue
        parts.append(json.dumps(one, separators=(",", ":")))
    return " and ".join(parts) or "everything"


def _show(rest: Rest, arguments: Namespace) -> int:
    from tocsin.cli.rest import item

    return _print_view(rest.get(item("subscriptions", arguments.id)), arguments)


def _print_view(view: dict[str, Any], arguments: Namespace) -> int:
    from tocsin.cli.render import fields, show_json

    if arguments.json:
        show_json(view)
    else:
        fields((name, value) for name, value in {**view, "filters": filters_text(view)}.items())
    return 0


def _add(rest: Rest, arguments: Namespace) -> int:
    from tocsin.cli.durations import iso_duration
    from tocsin.cli.render import say, show

    filters = [{"topic": arguments.topic}] if arguments.topic else []
    filters += [{"filter": arguments.filter}] if arguments.filter else []
    config: dict[str, object] = {}
    if arguments.structured:
        config["mode"] = "structured"
    if arguments.batch is not None:
        config["batch"] = arguments.batch
    if arguments.start is not None:
        config["from"] = int(arguments.start) if arguments.start.isdecimal() else arguments.start
    if arguments.secret_file is not None:
        config["secret"] = _secret(arguments.secret_file)
    if arguments.sink_token_file is not None:
        config["credential"] = {"bearer": _sink_token(arguments.sink_token_file)}
    asked: dict[str, object] = {"sink": arguments.sink, "filters": filters, "config": config}
    if arguments.expires is not None:
        asked["expires"] = iso_duration(arguments.expires)
    view = rest.post("/subscriptions", asked)
    if arguments.json:
        return _print_view(view, arguments)
    show(view["id"])
    if view.get("state") == "pending":
        say("waiting for the sink to agree (consent handshake); see `tocsin subs show`")
    return 0


def _secret(name: str) -> str:
    from tocsin.errors import BadSetting

    try:
        with open(name, encoding="ascii") as file:
            return file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadSetting(
            f"cannot read {name}: {error}", remedy="Name a file with the secret in it."
        ) from None


def _sink_token(name: str) -> str:
    from tocsin.credentials.token_file import TokenFile

    return TokenFile(name).read().reveal()


def _renew(rest: Rest, arguments: Namespace) -> int:
    from tocsin.cli.durations import iso_duration
    from tocsin.cli.rest import item

    expires = None if arguments.expires == "never" else iso_duration(arguments.expires)
    view = rest.patch(item("subscriptions", arguments.id), {"expires": expires})
    return _print_view(view, arguments)


def _many(rest: Rest, arguments: Namespace) -> int:
    from tocsin.cli.bulk import apply_to_each, must_choose
    from tocsin.cli.rest import item

    must_choose(arguments, bool(arguments.ids or arguments.filter))
    ids = arguments.ids
    if not ids:
        views = rest.pages("/subscriptions", "subscriptions", q=arguments.filter)
        ids = [view["id"] for view in views]

    def remove(name: str) -> None:
        rest.delete(item("subscriptions", name))

    def change(name: str) -> None:
        state = "paused" if arguments.action == "pause" else "active"
        rest.patch(item("subscriptions", name), {"state": state})

    removes = arguments.action == "rm"
    verb = {"rm": "remove", "pause": "pause", "resume": "resume"}[arguments.action]
    confirm = not arguments.ids and removes
    return apply_to_each(
        arguments, verb, "subscription", ids, remove if removes else change, confirm=confirm
    )
