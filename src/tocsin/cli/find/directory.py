"""`tocsin find producers` and `tocsin find consumers`: entries of the directory, printed."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tocsin.client.directory import Directory
    from tocsin.wire.api.directory_views import EntryInfo

EVENTS_SHOWN = 3  # in a row of the table; the rest is counted
KINDS = {"producers": "producer", "consumers": "consumer"}


def find_entries(arguments: Namespace) -> int:
    """Print who offers what is asked for; the exit code."""
    from tocsin.client.directory import Directory
    from tocsin.errors import BadSetting

    if not arguments.ldif and (arguments.suffix or arguments.schema):
        raise BadSetting(
            "--suffix and --schema need --ldif", remedy="Add --ldif, or leave them out."
        )
    if arguments.ldif and arguments.json:
        raise BadSetting(
            "--ldif and --json cannot be used together", remedy="Leave one of them out."
        )
    with Directory(arguments.broker) as directory:
        return _print_ldif(directory, arguments) if arguments.ldif else _print(directory, arguments)


def _wanted(arguments: Namespace) -> dict[str, Any]:
    return {
        "kind": KINDS[arguments.action],
        "event": arguments.event,
        "host": arguments.host,
        "filter": arguments.filter,
    }


def _print(directory: Directory, arguments: Namespace) -> int:
    from tocsin.cli.render import show_json

    found = sorted(directory.look_up(**_wanted(arguments)), key=_order)
    if not found:
        return _nothing()
    if arguments.json:
        import msgspec

        for entry in found:
            show_json(msgspec.to_builtins(entry))
        return 0
    _print_table(found)
    return 0


def _order(entry: EntryInfo) -> tuple[str, str, str, str]:
    return entry.kind, entry.host, entry.name, entry.id


def _nothing() -> int:
    from tocsin.cli.failure import NOT_FOUND
    from tocsin.cli.render import say

    say("no entry of the directory matches")
    return NOT_FOUND


def _print_table(found: list[EntryInfo]) -> None:
    import time

    from tocsin.cli.render import say, table

    now_s = time.time()
    rows = [
        (
            entry.name,
            entry.kind,
            entry.host,
            entry.address,
            _events_text(entry),
            _left(entry.expires, now_s),
        )
        for entry in found
    ]
    table(("name", "kind", "host", "address", "events", "expires in"), rows)
    say("1 entry" if len(found) == 1 else f"{len(found):,} entries")


def _events_text(entry: EntryInfo) -> str:
    from tocsin.wire.gma.names import EventName

    names = [str(EventName(each.name, each.namespace)) for each in entry.events]
    more = len(names) - EVENTS_SHOWN
    return ", ".join(names[:EVENTS_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _left(expires: str | None, now_s: float) -> str:
    """How long a lease still holds."""
    from tocsin.cli.durations import brief
    from tocsin.event.instant import NS_PER_S, rfc3339_ns

    moment = None if expires is None else rfc3339_ns(expires)
    return "never" if moment is None else brief(max(0.0, moment / NS_PER_S - now_s))


def _print_ldif(directory: Directory, arguments: Namespace) -> int:
    wanted = _wanted(arguments)
    if not list(directory.look_up(**wanted, limit=1)):
        return _nothing()
    from tocsin.cli.render import safe

    text = directory.ldif(**wanted, suffix=arguments.suffix, schema=arguments.schema)
    print(safe(text), end="")  # LDIF is plain ASCII: anything else is not from a broker
    return 0
