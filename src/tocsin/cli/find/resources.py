"""`tocsin find resources`: machines and services of the overlay, once or watched."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tocsin.client.resources import FoundResource, ResourceWatch
    from tocsin.wire.api.resource_views import CurrentResources, DiscoveryResult

_ONE_TIME: Final = ("order_by", "max_age", "timeout")
ID_CHARS_MIN: Final = 8  # of a broker's id


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
        print_table(answer.resources)
    return _conclude(answer, arguments)


def _conclude(answer: DiscoveryResult, arguments: Namespace) -> int:
    from tocsin.cli.failure import NOT_FOUND
    from tocsin.cli.render import plural, say

    if arguments.explain:
        _explain(answer, arguments)
    if answer.incomplete:
        say(f"not everything was found: {answer.incomplete}")
    if answer.resources:
        if not arguments.json:
            say(plural(len(answer.resources), "resource"))
        return 0
    if answer.why_empty:
        say(f"no resource matches: {answer.why_empty}")
    elif answer.shared:
        say(f"no resource matched {age(answer.oldest)} ago: an earlier request's answer was used")
        say("--max-age 0 asks again")
    else:
        say("no resource matches")
    return NOT_FOUND


def print_table(found: list[FoundResource]) -> None:
    from tocsin.cli.render import table

    brokers = {each.broker for each in found}
    short = id_chars(brokers)
    rows = [
        (
            each.id,
            *((each.broker[:short],) if len(brokers) > 1 else ()),
            each.kind,
            each.address,
            resource_text(each),
            each.hops,
            age(each.as_of),
        )
        for each in found
    ]
    broker = ("broker",) if len(brokers) > 1 else ()
    table(("id", *broker, "kind", "address", "attributes", "hops", "age"), rows)


def id_chars(ids: Collection[str]) -> int:
    """With so many characters they can be told apart."""
    return next(
        (
            many
            for many in range(ID_CHARS_MIN, 64)
            if len({each[:many] for each in ids}) == len(ids)
        ),
        64,
    )


def resource_text(resource: FoundResource) -> str:
    """Its attributes, and what it advertises of those that have no single value."""
    ranges = (
        f"[{name} {text}]"
        for name, text in resource.ranges.items()
        if name not in resource.attributes
    )
    return " ".join(filter(None, [values_text(resource.attributes), *ranges]))


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


def _explain(answer: DiscoveryResult, arguments: Namespace) -> None:
    """How the answer came about, in words."""
    from tocsin.cli.render import say

    # In an order all are found, and then cut.
    stopped_early = answer.stopped_early and not arguments.order_by
    _explain_cost(answer, is_least=stopped_early)
    if arguments.model == "static":
        say("age: static resources are as they were when they were registered")
    else:
        say(f"age: the values are at most {age(answer.oldest)} old (since {answer.oldest})")
    shared = "an earlier request's answer was used" if answer.shared else "asked for this request"
    say(f"shared: {'yes' if answer.shared else 'no'}, {shared}")
    if stopped_early:
        say("there may be more: it stopped when enough were found")
    elif answer.stopped_early:
        say("there are more: these are the first in that order")


def _explain_cost(answer: DiscoveryResult | CurrentResources, *, is_least: bool = False) -> None:
    from tocsin.cli.render import plural, say

    brokers = ", ".join(answer.brokers) or "none"
    say(f"brokers that answered: {len(answer.brokers)} ({brokers})")
    least = "at least " if is_least or answer.incomplete else ""
    say(f"cost: {least}{plural(answer.messages, 'message')} between brokers")


def _watch(arguments: Namespace) -> int:
    from tocsin.cli.failure import NOT_FOUND
    from tocsin.cli.render import plural, say
    from tocsin.client.resources import Resources

    _check_watch(arguments)
    explained: list[CurrentResources] = []

    def explain(current: CurrentResources) -> None:
        if explained:
            return  # the connection was lost, and is there again
        explained.append(current)
        if arguments.explain:
            _explain_cost(current)
            say(f"shared: no; {plural(current.resources, 'resource')} at first, changes follow")
        if current.incomplete:
            say(f"not everything was found: {current.incomplete}")

    with Resources(arguments.broker) as resources:
        watch = resources.watch(arguments.filter or "", model=arguments.model, on_current=explain)
        with watch:
            is_enough = _print_changes(watch, arguments)
    if not is_enough:
        say(f"no resource can match: {watch.why_empty}")
        return NOT_FOUND
    if arguments.explain and not explained:
        say("cost: not known, it ended when enough were found and not all brokers had answered")
    say(f"{plural(arguments.first, 'resource')} found")
    return 0


def _check_watch(arguments: Namespace) -> None:
    from tocsin.errors import BadSetting

    for name in _ONE_TIME:
        if getattr(arguments, name) is not None:
            raise BadSetting(
                f"--{name.replace('_', '-')} and --watch cannot be used together",
                remedy="Leave one of them out: a watch tells what matches as it comes, for ever.",
            )
    if arguments.first is not None and arguments.first < 1:
        raise BadSetting(f"--first is {arguments.first}", remedy="Give a number from 1 on.")


def _print_changes(watch: ResourceWatch, arguments: Namespace) -> bool:
    """True once as many resources were found as are enough; False if none can match."""
    from tocsin.cli.render import show, show_json

    found: dict[tuple[str, str], None] = {}
    brokers: dict[str, None] = {}
    for change in watch:
        resource = change.resource
        brokers[resource.broker] = None
        if arguments.json:
            show_json({"change": change.change, **_plain(resource)})
        else:
            at = f" at {resource.broker[: id_chars(brokers)]}" if len(brokers) > 1 else ""
            show(f"{change.change:<8} {resource.id}{at}  {resource_text(resource)}")
        sys.stdout.flush()
        found[resource.id, resource.broker] = None
        if len(found) == arguments.first:
            return True
    return False


def _plain(resource: FoundResource) -> dict[str, Any]:
    import msgspec

    found: dict[str, Any] = msgspec.to_builtins(resource)
    return found
