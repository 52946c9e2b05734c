"""`tocsin sub --as gma HOST:PORT NAME`: a consumer of performance events on a terminal."""

from __future__ import annotations

import json
import re
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from difflib import get_close_matches
from types import FrameType
from typing import Final

from tocsin.cli.durations import seconds
from tocsin.cli.event_lines import Fields, check_fields, check_template
from tocsin.cli.performance_lines import json_line
from tocsin.cli.render import safe, say, show_json
from tocsin.cli.web_services import refuse
from tocsin.cli.xml_text import pretty
from tocsin.client.gma import Consumer, EventName, PerformanceEvent
from tocsin.client.gma.broker_address import GMA_PATH, frames_address
from tocsin.client.transport.connection import Connection
from tocsin.errors import BadSetting, BrokerRefused, NothingArrived
from tocsin.wire.gma.messages import Element
from tocsin.wire.gma.names import read_name
from tocsin.wire.gma.write import event_element

POLL_S: Final = 1.0
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
    where = address or _broker_frames(arguments.broker)
    with Consumer(where, ca_file=arguments.ca_file) as consumer:
        if arguments.names:
            return _list_names(consumer, as_json=arguments.json)
        if name is None:
            raise BadSetting(
                "the name of an event is missing",
                remedy="Write `tocsin sub --as gma HOST:PORT NAME`; --names lists the names.",
            )
        show = _shown_as(arguments)
        name = _full_name(consumer, name)
        if arguments.query:
            sys.stdout.write(show(consumer.query(name, filter)))
            return 0
        return _follow(consumer, name, filter, show, arguments, timeout_s)


def _wanted(arguments: Namespace) -> tuple[str | None, str | None, str | None]:
    """The producer's address, the event's name and the filter, of which each may be left out."""
    words = list(arguments.filter)
    address = words.pop(0) if words and _ADDRESS.fullmatch(words[0]) else None
    name = words.pop(0) if words else None
    return address, name, " and ".join(words) or None


def _broker_frames(broker: str | None) -> str:
    """Where the broker itself speaks the protocol."""
    with Connection(broker) as connection:
        told = connection.request("GET", GMA_PATH).value()
        return frames_address(connection.address, told)


def _full_name(consumer: Consumer, name: str) -> str:
    """A short name is the Grid Forum's, or else the only one of the producer that ends so."""
    try:
        listed = consumer.event_names()
    except BrokerRefused:
        return name  # it lists none, and may have them yet
    is_short = not name.startswith("{") and ":" not in name
    alike = [known for known in listed if known.local == name] if is_short else []
    if len(alike) == 1 and not alike[0].is_grid_forum:
        return str(alike[0])
    if read_name(name) not in listed:
        _tell_unlisted(name, listed)
    return name


def _tell_unlisted(name: str, listed: list[EventName]) -> None:
    """Nothing may ever come: a person who mistyped it should not wait for that."""
    spelled = {
        word.casefold(): str(known) for known in listed for word in (known.local, str(known))
    }
    near = get_close_matches(name.casefold(), spelled, n=1)
    meant = f"; did you mean {spelled[near[0]]}?" if near else "; --names lists what there is"
    say(f"tocsin: there is no event {name} there{meant}")


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
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    came, count = 0, arguments.count
    while (count is None or came < count) and subscription.ended is None:
        left_s = POLL_S if deadline is None else deadline - time.monotonic()
        if left_s <= 0:
            break
        event = subscription.take(min(left_s, POLL_S))
        if event is not None:
            came += 1
            sys.stdout.write(show(event))
            sys.stdout.flush()
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


def _shown_as(arguments: Namespace) -> Show:
    if arguments.json:
        show: Show = json_line
    elif arguments.format is not None:
        show = _by_format(arguments.format)
    elif arguments.whole or arguments.pretty:
        show = _xml(is_pretty=arguments.pretty)
    else:
        show = _brief
    return (lambda event: safe(show(event))) if sys.stdout.isatty() else show


def _brief(event: PerformanceEvent) -> str:
    """Time, name and values, one event a line."""
    told = [f"{each.name}={_value(each)}" for each in event.elements]
    return f"{event.time} {event.name} {' '.join(told)}".replace("\n", " ") + "\n"


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
    """Told to go: unsubscribe on the way out."""
    raise SystemExit(_KILLED)
