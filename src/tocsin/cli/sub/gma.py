"""`tocsin sub --as gma HOST:PORT NAME`: a consumer of performance events on a terminal."""

from __future__ import annotations

import json
import re
import signal
import sys
from argparse import Namespace
from collections.abc import Callable
from difflib import get_close_matches
from types import FrameType
from typing import Final

from tocsin.cli.durations import seconds
from tocsin.cli.event_lines import Fields, check_fields, check_template, performance_json
from tocsin.cli.render import safe, say, show_json
from tocsin.cli.soap_options import refuse
from tocsin.cli.sub.messages import show_messages
from tocsin.cli.xml_format import pretty
from tocsin.client.gma import Consumer, EventName, PerformanceEvent
from tocsin.client.gma.broker_address import GMA_PATH, frames_address
from tocsin.client.transport.connection import Connection
from tocsin.errors import BadSetting, BrokerRefused, NothingArrived
from tocsin.wire.gma.messages import Element
from tocsin.wire.gma.names import read_name
from tocsin.wire.gma.write import event_element

_KILLED: Final = 128 + signal.SIGTERM
_ADDRESS: Final = re.compile(r"(?:gmas?://)?(?:\[[0-9a-fA-F:.]+\]|[\w.-]+):[0-9]{1,5}/?")
_UNUSABLE: Final[dict[str, object]] = {
    "soap": None,
    "addressing": None,
    "xpath": None,
    "namespace": [],
    "pull": False,
    "box": None,
    "listen": None,
    "since": None,
    "exit_at_end": False,
    "via": "sse",
}

Show = Callable[[PerformanceEvent], str]


def follow_performance(arguments: Namespace) -> int:
    """Subscribe at a producer, show what comes until there is enough, unsubscribe."""
    refuse(arguments, _UNUSABLE, "with --as gma")
    address, name, filter = _wanted(arguments)
    timeout_s = None if arguments.timeout is None else seconds(arguments.timeout)
    signal.signal(signal.SIGTERM, _end)
    where = address or _frames_address(arguments.broker)
    with Consumer(where, ca_file=arguments.ca_file) as consumer:
        if arguments.names:
            return _list_names(consumer, as_json=arguments.json)
        if name is None:
            raise BadSetting(
                "the name of an event is missing",
                remedy="Write `tocsin sub --as gma HOST:PORT NAME`; --names lists the names.",
            )
        show = _formatter(arguments)
        name = _full_name(consumer, name)
        if arguments.query:
            sys.stdout.write(show(consumer.query(name, filter)))
            return 0
        return _follow(consumer, name, filter, show, arguments, timeout_s)


def _wanted(arguments: Namespace) -> tuple[str | None, str | None, str | None]:
    """The producer's address, the event's name and the filter, of which each may be left out."""
    given = list(arguments.filter)
    address = given.pop(0) if given and _ADDRESS.fullmatch(given[0]) else None
    name = given.pop(0) if given else None
    return address, name, " and ".join(given) or None


def _frames_address(broker: str | None) -> str:
    """The address where the broker serves this protocol."""
    with Connection(broker) as connection:
        answer = connection.request("GET", GMA_PATH).value()
        return frames_address(connection.address, answer)


def _full_name(consumer: Consumer, name: str) -> str:
    """A short name is the Grid Forum's, or else the only one of the producer that ends so."""
    try:
        listed = consumer.event_names()
    except BrokerRefused:
        return name  # it lists none, and may have them yet
    is_short = not name.startswith("{") and ":" not in name
    matching = [known for known in listed if known.local == name] if is_short else []
    if len(matching) == 1 and not matching[0].is_grid_forum:
        return str(matching[0])
    if read_name(name) not in listed:
        _warn_unlisted(name, listed)
    return name


def _warn_unlisted(name: str, listed: list[EventName]) -> None:
    """The name may be mistyped, and then no event would ever come."""
    spelled = {
        word.casefold(): str(known) for known in listed for word in (known.local, str(known))
    }
    near = get_close_matches(name.casefold(), spelled, n=1)
    hint = f"; did you mean {spelled[near[0]]}?" if near else "; --names lists what there is"
    say(f"tocsin: there is no event {name} there{hint}")


def _list_names(consumer: Consumer, *, as_json: bool) -> int:
    names = consumer.event_names()
    if as_json:
        show_json([{"name": name.local, "namespace": name.namespace} for name in names])
    else:
        for name in names:
            print(safe(str(name)))
    return 0


def _follow(
    consumer: Consumer,
    name: str,
    filter: str | None,
    show: Show,
    arguments: Namespace,
    timeout_s: float | None,
) -> int:
    period_s = None if arguments.period is None else seconds(arguments.period)
    after = 0 if arguments.all else arguments.after
    subscription = consumer.subscribe(name, period=period_s, filter=filter, after=after)
    if subscription.detail is not None:
        say(f"tocsin: {subscription.detail}")
    if sys.stderr.isatty():
        say(f"following {name}; Ctrl-C stops")
    count = arguments.count
    came = show_messages(
        subscription.take, lambda: subscription.ended is not None, show, count, timeout_s
    )
    wanted = count or (1 if timeout_s is not None else 0)
    if subscription.ended is not None and (came < wanted or not wanted):
        raise BrokerRefused(
            f"the subscription was ended: {subscription.ended}",
            remedy="Subscribe again when the producer is ready.",
        )
    subscription.unsubscribe()
    if came < wanted:
        raise NothingArrived(
            f"{came} of {wanted} events arrived" if count else "no event arrived",
            remedy="Wait longer with -W, or check the Period, the filter and --names.",
        )
    return 0


def _formatter(arguments: Namespace) -> Show:
    if arguments.json:
        show: Show = performance_json
    elif arguments.format is not None:
        show = _by_format(arguments.format)
    elif arguments.whole or arguments.pretty:
        show = _xml(is_pretty=arguments.pretty)
    else:
        show = _brief
    return (lambda event: safe(show(event))) if sys.stdout.isatty() else show


def _brief(event: PerformanceEvent) -> str:
    """Time, name and values, one event a line."""
    values = [f"{each.name}={_value(each)}" for each in event.elements]
    return f"{event.time} {event.name} {' '.join(values)}".replace("\n", " ") + "\n"


def _value(element: Element) -> str:
    value = element.value
    if isinstance(value, tuple):
        return "{" + " ".join(f"{each.name}={_value(each)}" for each in value) + "}"
    text = json.dumps(value) if isinstance(value, bool) or " " in str(value) else str(value)
    return " ".join(each for each in (text, element.units, element.accuracy) if each)


def _xml(*, is_pretty: bool) -> Show:
    def show(event: PerformanceEvent) -> str:
        text = event_element(event)
        return f"{pretty(text.encode())}\n" if is_pretty else f"{text}\n"

    return show


def _by_format(template: str) -> Show:
    pattern = template.replace("\\t", "\t").replace("\\n", "\n") + "\n"
    wanted = check_template(pattern)
    checked = False

    def show(event: PerformanceEvent) -> str:
        nonlocal checked
        values = {each.name: each.value for each in reversed(event.elements)}
        fields = Fields(values, name=event.name.local, time=event.time)
        if not checked:
            check_fields(wanted, fields)
            checked = True
        return pattern.format_map(fields)

    return show


def _end(number: int, frame: FrameType | None) -> None:
    """SIGTERM: unsubscribe on the way out."""
    raise SystemExit(_KILLED)
