"""A running `tocsin agent`: a producer that others can subscribe to and that feeds a broker."""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tocsin.agent import Monitor
from tocsin.agent.machine import described
from tocsin.agent.resource import HostDescription
from tocsin.cli.agent.resource import HostResource
from tocsin.cli.durations import brief
from tocsin.cli.render import plural, say, show_json
from tocsin.client.gma import Producer
from tocsin.client.gma.broker_address import GMA_PATH, frames_address
from tocsin.client.gma.feed import ENDED, OPEN
from tocsin.client.transport.address import Address, broker_address
from tocsin.client.transport.connection import Connection
from tocsin.errors import TocsinError
from tocsin.event.value import Scalar
from tocsin.wire.gma.names import EventName

if TYPE_CHECKING:
    from tocsin.client.gma import Feed

CHECK_S = 1.0  # how often the connection to the broker is checked
RETRY_S_MAX = 30.0  # between attempts at a broker that was never reached
ANSWER_S = 10.0
LEASE_S = 600.0
STOP_S = 0.3  # for a request in flight to be interrupted
CLOSE_S_MAX = 2.4  # for the last events, and to unsubscribe
# The buffer for a broker that is away: a day of events, within these limits.
BUFFER_S = 86_400.0
BUFFER_EVENTS_MIN, BUFFER_EVENTS_MAX = 100, 100_000  # events of a kind
BUFFER_BYTES_MAX = 8 << 20  # of all kinds together

_ENDS = (signal.SIGINT, signal.SIGTERM)
_INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """The options of the command line. `broker` is None for none, and empty for the default one;
    `listen` is None for an agent that takes no subscriptions."""

    broker: str | None
    listen: str | None
    period_s: float
    name: str
    attributes: dict[str, Scalar] = field(default_factory=dict)
    as_json: bool = False
    ca_file: str | None = None  # authorities to trust besides the system's
    is_resource: bool = True  # registered at the broker, to be found by what it has


def run_agent(monitor: Monitor, options: AgentOptions) -> int:
    """Produce events until a signal ends it; the exit code."""
    broker = None if options.broker is None else broker_address(options.broker or None)
    _check_has_target(broker, options.listen)
    # Its warnings come once for every attempt; BrokerFeeds reports each problem once.
    logging.getLogger("tocsin.gma").setLevel(logging.ERROR)
    # Blocked from here on in all threads, and waited for below: no send is cut off.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
    try:
        with Producer(options.listen, host=monitor.host, ca_file=options.ca_file) as producer:
            _offer(producer, monitor, options.period_s)
            _print_ready(producer, monitor, options)
            feeds = None if broker is None else BrokerFeeds(producer, monitor, broker, options)
            if feeds is not None:
                feeds.start()
            resource = _start_resource(monitor, broker, options)
            number = signal.sigwait(_ENDS)
            if resource is not None:
                resource.stop()
            if feeds is not None:
                feeds.stop()
            producer.close(CLOSE_S_MAX)
            if feeds is not None:
                feeds.report_unsent()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return _INTERRUPTED if number == signal.SIGINT else 0


def _start_resource(
    monitor: Monitor, broker: Address | None, options: AgentOptions
) -> HostResource | None:
    if broker is None or not options.is_resource:
        return None
    description = HostDescription(options.attributes)
    resource = HostResource(monitor.host, broker, options.period_s, description, say)
    resource.start()
    return resource


def _check_has_target(broker: Address | None, listen: str | None) -> None:
    if broker is None and listen is None:
        from tocsin.errors import BadSetting

        raise BadSetting(
            "with --broker off and --listen off there is nowhere to send events",
            remedy="Give one of them an address, or use --once to print events.",
        )


def _offer(producer: Producer, monitor: Monitor, period_s: float) -> None:
    for name, probe in monitor.probes.items():
        producer.offer(
            str(name), monitor.maker(name), parameters=probe.parameters, period_s=period_s
        )


def _print_ready(producer: Producer, monitor: Monitor, options: AgentOptions) -> None:
    if options.as_json:
        names = [str(name) for name in monitor.probes]
        show_json({"ready": True, "listen": producer.address, "events": names})
        sys.stdout.flush()
    where = f" and listens on gma://{producer.address}" if producer.address else ""
    say(f"tocsin agent watches {monitor.host}{where}; Ctrl-C stops")


class BrokerFeeds:
    """Feeds every event to the broker and registers the agent in its directory. Prints one line
    when the broker is lost, and one when it is back."""

    def __init__(
        self,
        producer: Producer,
        monitor: Monitor,
        broker: Address,
        options: AgentOptions,
        report: Callable[[str], None] = say,
    ) -> None:
        self._producer = producer
        self._monitor = monitor
        self._broker = broker
        self._options = options
        self._report = report
        self._address = ""  # where events go, once that is known
        self._feeds: dict[EventName, Feed] = {}
        self._dropped_before = 0  # by feeds that have ended
        self._reported = 0  # dropped events that were reported
        self._is_dropping = False
        self._request: Connection | None = None
        self._locate_at_s = self._begin_at_s = 0.0
        self._begin_pause_s = CHECK_S
        self._is_registered = options.listen is None  # without a listener there is nothing to find
        self._is_there: bool | None = None  # None until it is known
        self._unlisted: str | None = None
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tocsin-feeds", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop; a request in flight is interrupted."""
        self._ending.set()
        if self._request is not None:
            self._request.interrupt()
        self._thread.join(STOP_S)

    def report_unsent(self) -> None:
        """At the end: how many events the broker never received, in one line."""
        unsent = sum(feed.waiting for feed in list(self._feeds.values()))
        if unsent:
            self._report(f"tocsin: {plural(unsent, 'event')} could not be sent to {self._broker}")

    def _run(self) -> None:
        pause_s = 0.0
        while not self._ending.wait(pause_s):
            try:
                is_known = self._step(time.monotonic())
            except Exception as error:
                # Any error: an agent that goes on without a report is worse.
                is_known = False
                self._set_reachable(False, f"{type(error).__name__}: {error}")
            pause_s = CHECK_S if is_known else min(max(2 * pause_s, CHECK_S), RETRY_S_MAX)

    def _step(self, now_s: float) -> bool:
        """Connect, register and report; False while the address for events is not known."""
        try:
            if not self._feeds or (not self._is_there and now_s >= self._locate_at_s):
                self._locate_at_s = now_s + RETRY_S_MAX
                self._feed_to(frames_address(self._broker, self._gma_description()))
            self._replace_ended(now_s)
            if not self._is_registered:
                self._register()
        except TocsinError as error:
            self._set_reachable(False, error.problem)
            return bool(self._feeds)
        down = [feed for feed in self._feeds.values() if feed.state != OPEN]
        why = next((feed.error for feed in down if feed.error), None)
        if not down:
            self._set_reachable(True, "")
            self._report_unlisted(self._producer.registration_error)
        elif why is not None:
            self._set_reachable(False, why.partition(" [T")[0])
        self._report_drops()
        return True

    def _gma_description(self) -> Any:
        with Connection(self._broker, timeout_s=ANSWER_S) as connection:
            self._request = connection
            try:
                return connection.request("GET", GMA_PATH).value()
            finally:
                self._request = None

    def _feed_to(self, address: str) -> None:
        """Push everything there. A broker that was started again may have moved."""
        if address != self._address:
            for feed in self._feeds.values():
                feed.close()
                self._dropped_before += feed.dropped + feed.waiting
            self._feeds = {name: self._push(address, name) for name in self._monitor.probes}
            self._address = address

    def _push(self, address: str, name: EventName) -> Feed:
        return self._producer.push_to(
            address,
            str(name),
            period=self._options.period_s,
            keep_max=buffer_events_max(self._options.period_s, self._monitor.counted(name)),
            keep_bytes_max=BUFFER_BYTES_MAX // len(self._monitor.probes),
        )

    def _replace_ended(self, now_s: float) -> None:
        """A broker that stops closes its feeds for good. Each is replaced at once, so that events
        are buffered until the broker is back; if that happens again and again, with back-off."""
        ended = [name for name, feed in self._feeds.items() if feed.state == ENDED]
        if not ended:
            if now_s >= self._begin_at_s + RETRY_S_MAX:
                self._begin_pause_s = CHECK_S
            return
        if now_s < self._begin_at_s:
            return
        for name in ended:
            self._dropped_before += self._feeds[name].dropped + self._feeds[name].waiting
            self._feeds[name] = self._push(self._address, name)
        self._begin_at_s = now_s + self._begin_pause_s
        self._begin_pause_s = min(2 * self._begin_pause_s, RETRY_S_MAX)

    def _register(self) -> None:
        self._producer.register(
            str(self._broker),
            name=self._options.name,
            attributes={**described(), **self._options.attributes},
            lease_s=LEASE_S,
        )
        self._is_registered = True

    def _set_reachable(self, is_there: bool, why: str) -> None:
        if is_there == self._is_there or self._ending.is_set():
            return
        was_there, self._is_there = self._is_there, is_there
        if not is_there:
            then = "events are buffered and sent when it is back" if self._feeds else "trying again"
            self._report(f"tocsin: {why}; {then}")
        elif was_there is None:
            events = plural(len(self._feeds), "kind")
            every = brief(self._options.period_s)
            self._report(f"tocsin: {events} of events go to {self._broker} every {every}")
        else:
            dropped = self._reported = self._dropped()
            self._is_dropping = False
            lost = f"; {plural(dropped, 'event')} dropped so far" if dropped else ""
            self._report(f"tocsin: the broker at {self._broker} is back{lost}")

    def _dropped(self) -> int:
        return self._dropped_before + sum(feed.dropped for feed in self._feeds.values())

    def _report_drops(self) -> None:
        """Once; the count is reported when the broker is back."""
        if self._is_dropping or self._dropped() <= self._reported:
            return
        self._is_dropping = True
        refused = [feed.error for feed in self._feeds.values() if feed.state == OPEN and feed.error]
        why = refused[0] if refused else "the buffer is full, the oldest events are dropped first"
        self._report(f"tocsin: events are dropped: {why}")

    def _report_unlisted(self, why: str | None) -> None:
        """Events arrive but the directory does not list the agent: report that once."""
        if why is not None and why != self._unlisted:
            self._report(f"tocsin: the directory does not list this agent: {why}")
        self._unlisted = why


def buffer_events_max(period_s: float, events_a_period: int) -> int:
    """How many events of a kind are buffered for a broker that is away."""
    wanted = BUFFER_S / period_s * max(1, events_a_period)
    return max(BUFFER_EVENTS_MIN, min(int(wanted), BUFFER_EVENTS_MAX))
