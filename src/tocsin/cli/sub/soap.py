"""`tocsin sub --as SPEC`: the message viewer of the paper (000, section V.B).

A client of WS-Eventing or WS-Notification that shows what it is sent: the payload (brief), or the
envelope with its headers (whole). With `--pull` it pulls from a message box outside the firewall.
"""

from __future__ import annotations

import json
import signal
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from tocsin.cli.durations import seconds
from tocsin.cli.render import safe, say
from tocsin.cli.soap_options import client_of, namespaces, refuse
from tocsin.cli.sub.messages import show_messages
from tocsin.cli.xml_format import one_line, pretty
from tocsin.client.soap.message import Message
from tocsin.client.soap.subscription import Subscription
from tocsin.errors import BrokerRefused, NothingArrived

LEASE: Final = "PT10M"  # renewed while it runs; a killed process leaves no subscription for long
_KILLED: Final = 128 + signal.SIGTERM
_UNUSABLE: Final[dict[str, object]] = {
    "after": None,
    "since": None,
    "all": False,
    "format": None,
    "exit_at_end": False,
    "via": "sse",
    "period": None,
    "names": False,
    "query": False,
}

Show = Callable[[Message], str]


def follow_soap(arguments: Namespace) -> int:
    """Subscribe, show what comes until there is enough, unsubscribe; the exit code."""
    refuse(arguments, _UNUSABLE, "with --as")
    timeout_s = None if arguments.timeout is None else seconds(arguments.timeout)
    show = shown_as(arguments)
    signal.signal(signal.SIGTERM, _end)
    with client_of(arguments, listen=arguments.listen or "127.0.0.1:0") as client:
        with _signals_blocked():
            subscription = client.subscribe(
                arguments.filter or None,
                arguments.xpath,
                namespaces=namespaces(arguments.namespace),
                expires=LEASE,
                pull=arguments.pull,
                box=arguments.box,
            )
        if sys.stderr.isatty():
            wanted = " ".join(arguments.filter) or "everything"
            say(f"following {wanted} at {client.url} as {arguments.spec}; Ctrl-C stops")
        came = show_messages(
            subscription.take, lambda: subscription.is_over, show, arguments.count, timeout_s
        )
        if subscription.dropped:
            say(f"tocsin: {subscription.dropped} messages expired before they could be pulled")
    _check_enough(came, arguments.count, timeout_s, subscription)
    return 0


def shown_as(arguments: Namespace) -> Show:
    """How messages are written: brief, whole, or as JSON."""
    if arguments.json:
        return _json(whole=arguments.whole)
    show = _whole(is_pretty=arguments.pretty) if arguments.whole else _brief(arguments.pretty)
    if not sys.stdout.isatty():
        return show
    return lambda message: safe(show(message))


def _brief(is_pretty: bool) -> Show:
    write = pretty if is_pretty else one_line
    return lambda message: f"{write(message.payload)}\n"


def _whole(*, is_pretty: bool) -> Show:
    last = b""

    def show(message: Message) -> str:
        nonlocal last
        if message.envelope is last:  # it brought several messages, and was shown
            return ""
        last = message.envelope
        text = pretty(last) if is_pretty else last.decode("utf-8", "replace")
        return f"{text}\n\n" if is_pretty else f"{text}\n"

    return show


def _json(*, whole: bool) -> Show:
    def show(message: Message) -> str:
        members: dict[str, str | None] = {
            "topic": message.topic or None,
            "id": message.id,
            "action": message.action,
            "producer": message.producer,
            "payload": message.payload.decode("utf-8", "replace"),
        }
        if whole:
            members["envelope"] = message.envelope.decode("utf-8", "replace")
        return json.dumps(members, ensure_ascii=False, separators=(",", ":")) + "\n"

    return show


def _check_enough(
    came: int, count: int | None, timeout_s: float | None, subscription: Subscription
) -> None:
    wanted = count or (1 if timeout_s is not None else 0)
    ended = subscription.ended
    if ended is not None and (came < wanted or not wanted):
        raise BrokerRefused(
            f"the subscription was ended: {ended.status} {ended.reason}".rstrip(),
            remedy="Subscribe again when the service is ready.",
        )
    if came < wanted:
        raise NothingArrived(
            f"{came} of {wanted} messages arrived" if count else "no message arrived",
            remedy="Wait longer with -W; try --pull if a firewall may keep messages out.",
        )


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Block signals: a subscription whose response is not read yet cannot be ended."""
    held = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, held)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, held)


def _end(number: int, frame: FrameType | None) -> None:
    """SIGTERM: unsubscribe on the way out."""
    raise SystemExit(_KILLED)
