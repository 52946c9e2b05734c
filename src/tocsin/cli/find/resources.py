"""`tocsin find resources`: machines and services of the overlay, once or watched."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tocsin.client.resources import FoundResource
    from tocsin.wire.api.resource_views import DiscoveryResult

_ONE_TIME = ("first", "order_by", "max_age", "timeout", "explain")


def find_resources(arguments: Namespace) -> int:
    """Print what matches; the exit code."""
    return _watch(arguments) if arguments.watch else _find(arguments)


def _find(arguments: Namespace) -> int:
    from tocsin.cli.durations import seconds
    from tocsin.cli.render import show_json
    from tocsin.client.resources import Resources

    with Resources(arguments.broker) as resources:
        answer = resources.find(
            arguments.filter or "",
            model=arguments.model,
            first=arguments.first,
            order_by=arguments.order_by,
            max_age_s=None if arguments.max_age is None else seconds(arguments.max_age),
            timeout_s=None if arguments.timeout is None else seconds(arguments.timeout),
        )
    if arguments.json:
        for each in answer.resources:
            show_json(_plain(each))
    elif answer.resources:
        _print_table(answer.resources)
    return _conclude(answer, arguments)


def _conclude(answer: DiscoveryResult, arguments: Namespace) -> int:
    from tocsin.cli.failure import NOT_FOUND
    from tocsin.cli.render import plural, say

    if arguments.explain:
        _explain(answer)
    if answer.incomplete:
        say(f"not everything was found: {answer.incomplete}")
    if answer.resources:
        if not arguments.json:
            say(plural(len(answer.resources), "resource"))
        return 0
    say(f"no resource matches: {answer.why_empty}" if answer.why_empty else "no resource matches")
    return NOT_FOUND


def _print_table(found: list[FoundResource]) -> None:
    from tocsin.cli.render import table

    rows = [
        (
            each.id,
            each.kind,
            each.address,
            values_text(each.attributes),
            each.hops,
            age(each.as_of),
        )
        for each in found
    ]
    table(("id", "kind", "address", "attributes", "hops", "age"), rows)


def values_text(attributes: dict[str, Any]) -> str:
    """Attributes in one line: `cores=64 memory=2 GB`."""
    return " ".join(f"{name}={_value_text(value)}" for name, value in attributes.items())


def _value_text(value: object) -> str:
    if isinstance(value, dict):
        return f"{value.get('value')} {value.get('unit') or ''}".rstrip()
    return str(value).lower() if isinstance(value, bool) else str(value)


def age(moment: str) -> str:
    """How long ago it was, in short."""
    import time

    from tocsin.cli.durations import brief
    from tocsin.event.instant import NS_PER_S, rfc3339_ns

    at_ns = rfc3339_ns(moment)
    return "-" if at_ns is None else brief(max(0.0, time.time() - at_ns / NS_PER_S))


def _explain(answer: DiscoveryResult) -> None:
    """How the answer came about, in words."""
    from tocsin.cli.render import plural, say

    brokers = ", ".join(answer.brokers) or "none"
    say(f"brokers that answered: {len(answer.brokers)} ({brokers})")
    say(f"cost: {plural(answer.messages, 'message')} between brokers")
    say(f"age: the values are at most {age(answer.oldest)} old (since {answer.oldest})")
    shared = "an earlier request's answer was used" if answer.shared else "asked for this request"
    say(f"shared: {'yes' if answer.shared else 'no'}, {shared}")
    if answer.stopped_early:
        say("there are more: it stopped when enough were found")


def _watch(arguments: Namespace) -> int:
    from tocsin.cli.failure import NOT_FOUND
    from tocsin.cli.render import say, show, show_json
    from tocsin.client.resources import Resources
    from tocsin.errors import BadSetting

    for name in _ONE_TIME:
        if getattr(arguments, name):
            raise BadSetting(
                f"--{name.replace('_', '-')} and --watch cannot be used together",
                remedy="Leave one of them out.",
            )
    with Resources(arguments.broker) as resources:
        watch = resources.watch(arguments.filter or "", model=arguments.model)
        with watch:
            for change in watch:
                resource = change.resource
                if arguments.json:
                    show_json({"change": change.change, **_plain(resource)})
                else:
                    show(f"{change.change:<8} {resource.id}  {values_text(resource.attributes)}")
                sys.stdout.flush()
    say(f"no resource can match: {watch.why_empty}")
    return NOT_FOUND


def _plain(resource: FoundResource) -> dict[str, Any]:
    import msgspec

    found: dict[str, Any] = msgspec.to_builtins(resource)
    return found
