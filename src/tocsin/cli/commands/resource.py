"""`tocsin resource`: register machines and services, give their values, list, withdraw."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from tocsin.cli.parser import Parser, add_actions, add_broker

if TYPE_CHECKING:
    from tocsin.client.resources import Resources

SUMMARY = "Register machines and services, give their values, list and withdraw them"
EXAMPLES = """
  tocsin resource add node7 system=Linux disk=320 --kind machine
  tocsin resource add node8 --model dynamic --advertise '[system,=,Linux],[memory,<=,2]' memory=1
  tocsin resource set node8 memory=0.5
  tocsin resource ls
"""
_ADD = """
  tocsin resource add node7 system=Linux disk=320 --kind machine
  tocsin resource add node8 --model dynamic --advertise '[system,=,Linux],[memory,<=,2]' memory=1
  tocsin resource add gate --advertise "[available,>,'8 a.m. Europe/Berlin']" --lease none
"""
_SET = """
  tocsin resource set node8 memory=0.5 disk='200 GB'
  tocsin resource set node8                            renew its lease, and nothing else
"""
_LS = """
  tocsin resource ls
  tocsin resource ls --model dynamic --json
"""
_RM = """
  tocsin resource rm node7 node8
"""


def add_arguments(parser: Parser) -> None:
    actions = add_actions(parser)
    _add_add(actions)
    change = actions.add_parser("set", examples=_SET, help="change values, and renew the lease")
    change.add_argument("id", metavar="ID", help="the resource's id")
    change.add_argument("values", metavar="NAME=VALUE", nargs="*", help="current values")
    change.add_argument(
        "--replace", action="store_true", help="these are all its values: forget the others"
    )
    add_broker(change)
    ls = actions.add_parser("ls", examples=_LS, help="list what is registered at this broker")
    ls.add_argument("--kind", metavar="KIND", help="only those of this kind")
    ls.add_argument("--model", choices=("static", "dynamic"), help="only those of this model")
    add_broker(ls)
    rm = actions.add_parser("rm", examples=_RM, help="withdraw resources")
    rm.add_argument("ids", metavar="ID", nargs="+", help="the ids of resources")
    rm.set_defaults(all=False, dry_run=False, yes=True)
    add_broker(rm)


def _add_add(actions: Any) -> None:
    add = actions.add_parser("add", examples=_ADD, help="register one; prints its id")
    add.add_argument("id", metavar="ID", help="its id, to be chosen by you")
    add.add_argument("values", metavar="NAME=VALUE", nargs="*", help="its first values")
    add.add_argument(
        "--advertise",
        metavar="TEXT",
        help="in which ranges its attributes lie (static resources: their values)",
    )
    add.add_argument(
        "--model",
        choices=("static", "dynamic"),
        default="static",
        help="whether its values change (static)",
    )
    add.add_argument("--kind", metavar="KIND", help="what it is, as in machine or service")
    add.add_argument("--address", metavar="TEXT", help="where it is used, as in a URL")
    add.add_argument(
        "--lease",
        metavar="10m",
        default="10m",
        help="how long it stays after its last update; none is until it is withdrawn (10m)",
    )
    add_broker(add)


def run(arguments: Namespace) -> int:
    from tocsin.client.resources import Resources

    actions = {"add": _add, "set": _set, "ls": _ls, "rm": _rm}
    with Resources(arguments.broker) as resources:
        return actions[arguments.action](resources, arguments)


def _add(resources: Resources, arguments: Namespace) -> int:
    from tocsin.cli.durations import seconds
    from tocsin.cli.render import show, show_json

    added = resources.register(
        arguments.id,
        arguments.advertise,
        model=arguments.model,
        attributes=read_values(arguments.values),
        kind=arguments.kind,
        address=arguments.address,
        lease_s=None if arguments.lease == "none" else seconds(arguments.lease),
    )
    show_json(_plain(added)) if arguments.json else show(added.id)
    return 0


def _set(resources: Resources, arguments: Namespace) -> int:
    from tocsin.cli.find.resources import values_text
    from tocsin.cli.render import say, show_json

    values = read_values(arguments.values)
    changed = resources.update(arguments.id, values, whole=arguments.replace)
    if arguments.json:
        show_json(_plain(changed))
    else:
        until = "stays until withdrawn" if changed.expires is None else f"until {changed.expires}"
        say(f"{changed.id}: {values_text(changed.attributes) or 'no values'}; {until}")
    return 0


def _ls(resources: Resources, arguments: Namespace) -> int:
    from tocsin.cli.find.resources import values_text
    from tocsin.cli.render import plural, say, show_json, table

    found = resources.registered(kind=arguments.kind, model=arguments.model)
    if arguments.json:
        for each in found:
            show_json(_plain(each))
        return 0
    rows = [
        (each.id, each.model, each.kind, each.address, values_text(each.attributes), each.expires)
        for each in found
    ]
    table(("id", "model", "kind", "address", "values", "expires"), rows)
    say(plural(len(found), "resource"))
    return 0


def _rm(resources: Resources, arguments: Namespace) -> int:
    from tocsin.cli.bulk import apply_to_each

    names = arguments.ids
    return apply_to_each(
        arguments, "withdraw", "resource", names, resources.withdraw, confirm=False
    )


def read_values(texts: list[str]) -> dict[str, object]:
    """`NAME=VALUE` on the command line: numbers, true and false, quantities as `2 GB`, texts."""
    from tocsin.errors import BadSetting

    values: dict[str, object] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise BadSetting(
                f"{text[:100]!r} is not NAME=VALUE",
                remedy="Write it as in memory=2 or system=Linux.",
            )
        values[name] = _value(value)
    return values


def _value(text: str) -> object:
    import json

    from tocsin.event.value import UNITS

    if text in ("true", "false"):
        return text == "true"
    number, _, unit = text.partition(" ")
    try:
        found = json.loads(number)
    except ValueError:
        return text
    if isinstance(found, bool) or not isinstance(found, int | float):
        return text
    if not unit:
        return found
    return {"value": found, "unit": unit} if unit in UNITS else text


def _plain(resource: object) -> Any:
    import msgspec

    return msgspec.to_builtins(resource)
