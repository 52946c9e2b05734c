"""A running `tocsin agent`: a producer that others may ask, and that keeps a broker told."""

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

TEND_S = 1.0  # how often somebody looks whether the broker is still there
RETRY_S_MAX = 30.0  # between attempts at a broker that was never reached
ANSWER_S = 10.0
LEASE_S = 600.0
STOP_S = 0.3  # for a call that is under way to hear that it is over
CLOSE_S_MAX = 2.4  # for what is left to go out, and to take leave
# What is kept for a broker that is away: a day of it, as long as it is not much.
KEEP_S = 86_400.0
KEEP_MIN, KEEP_MAX = 100, 100_000  # events of a kind
KEEP_BYTES_MAX = 8 << 20  # of all kinds together

_ENDS = (signal.SIGINT, signal.SIGTERM)
_INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the command line asks for. Without a broker nobody is told who does not ask; an empty
    one is the usual. `listen` is None for who cannot be asked."""

    broker: str | None
    listen: str | None
    period_s: float
    name: str
    attributes: dict[str, Scalar] = field(default_factory=dict)
    as_json: bool = False
    ca_file: str | None = None  # whom to believe besides the system's authorities


def run_agent(monitor: Monitor, wishes: Wishes) -> int:
    """Produce events until a signal ends it; the exit code."""
    broker = None if wishes.broker is None else broker_address(wishes.broker or None)
    _refuse_idleness(broker, wishes.listen)
    # What it warns of is told below, once; by itself it would be told for every attempt.
    logging.getLogger("tocsin.gma").setLevel(logging.ERROR)
    # Held back from here on, in all threads, and waited for below: nothing is cut off halfway.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
    try:
        with Producer(wishes.listen, host=monitor.host, ca_file=wishes.ca_file) as producer:
            _offer(producer, monitor, wishes.period_s)
            _tell_ready(producer, monitor, wishes)
            caller = None if broker is None else Caller(producer, monitor, broker, wishes)
            if caller is not None:
                caller.start()
            number = signal.sigwait(_ENDS)
            if caller is not None:
                caller.stop()
            producer.close(CLOSE_S_MAX)
            if caller is not None:
                caller.tell_unsent()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return _INTERRUPTED if number == signal.SIGINT else 0


def _refuse_idleness(broker: Address | None, listen: str | None) -> None:
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


def _tell_ready(producer: Producer, monitor: Monitor, wishes: Wishes) -> None:
    if wishes.as_json:
        names = [str(name) for name in monitor.probes]
        show_json({"ready": True, "listen": producer.address, "events": names})
        sys.stdout.flush()
    where = f" and listens on gma://{producer.address}" if producer.address else ""
    say(f"tocsin agent watches {monitor.host}{where}; Ctrl-C stops")


class Caller:
    """Calls the broker up: what is here goes to it, and into its directory. Tells a person once
    when the broker is lost, and once when it is back."""

    def __init__(
        self,
        producer: Producer,
        monitor: Monitor,
        broker: Address,
        wishes: Wishes,
        tell: Callable[[str], None] = say,
    ) -> None:
        self._producer = producer
        self._monitor = monitor
        self._broker = broker
        self._wishes = wishes
        self._tell = tell
        self._address = ""  # where events go, once that is known
        self._feeds: dict[EventName, Feed] = {}
        self._given_up = 0  # with feeds that have ended
        self._told_of = 0  # events that were given up
        self._is_dropping = False
        self._asking: Connection | None = None
        self._ask_at_s = self._begin_at_s = 0.0
        self._begin_pause_s = TEND_S
        self._is_registered = wishes.listen is None  # who cannot be asked need not be found
        self._is_there: bool | None = None  # None until it is known
        self._unlisted: str | None = None
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tocsin-caller", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """OutgoingConnection no more; a call that is under way is broken off."""
        self._ending.set()
        if self._asking is not None:
            self._asking.interrupt()
        self._thread.join(STOP_S)

    def tell_unsent(self) -> None:
        """At the end: what the broker never got, in one line."""
        unsent = sum(feed.waiting for feed in list(self._feeds.values()))
        if unsent:
            self._tell(f"tocsin: {plural(unsent, 'event')} could not be sent to {self._broker}")

    def _run(self) -> None:
        pause_s = 0.0
        while not self._ending.wait(pause_s):
            try:
                is_known = self._look(time.monotonic())
            except Exception as error:
                # Whatever it is: an agent that runs on and tells nobody is worse.
                is_known = False
                self._saw(False, f"{type(error).__name__}: {error}")
            pause_s = TEND_S if is_known else min(max(2 * pause_s, TEND_S), RETRY_S_MAX)

    def _look(self, now_s: float) -> bool:
        """Do what is left to do; False if it is not known yet where events go."""
        try:
            if not self._feeds or (not self._is_there and now_s >= self._ask_at_s):
                self._ask_at_s = now_s + RETRY_S_MAX
                self._go_to(frames_address(self._broker, self._where_frames_go()))
            self._begin_again(now_s)
            if not self._is_registered:
                self._register()
        except TocsinError as error:
            self._saw(False, error.problem)
            return bool(self._feeds)
        down = [feed for feed in self._feeds.values() if feed.state != OPEN]
        why = next((feed.error for feed in down if feed.error), None)
        if not down:
            self._saw(True, "")
            self._tell_if_unlisted(self._producer.registration_error)
        elif why is not None:
            self._saw(False, why.partition(" [T")[0])
        self._tell_if_dropping()
        return True

    def _where_frames_go(self) -> Any:
        with Connection(self._broker, timeout_s=ANSWER_S) as connection:
            self._asking = connection
            try:
                return connection.request("GET", GMA_PATH).value()
            finally:
                self._asking = None

    def _go_to(self, address: str) -> None:
        """Push everything there. A broker that was started again may have moved."""
        if address != self._address:
            for feed in self._feeds.values():
                feed.close()
                self._given_up += feed.dropped + feed.waiting
            self._feeds = {name: self._push(address, name) for name in self._monitor.probes}
            self._address = address

    def _push(self, address: str, name: EventName) -> Feed:
        return self._producer.push_to(
            address,
            str(name),
            period=self._wishes.period_s,
            keep_max=keep_max(self._wishes.period_s, self._monitor.counted(name)),
            keep_bytes_max=KEEP_BYTES_MAX // len(self._monitor.probes),
        )

    def _begin_again(self, now_s: float) -> None:
        """A broker that stops takes leave, which ends a feed for good: it gets another at once, so
        that events are kept until the broker is back; who takes leave all the time, ever later."""
        ended = [name for name, feed in self._feeds.items() if feed.state == ENDED]
        if not ended:
            if now_s >= self._begin_at_s + RETRY_S_MAX:
                self._begin_pause_s = TEND_S
            return
        if now_s < self._begin_at_s:
            return
        for name in ended:
            self._given_up += self._feeds[name].dropped + self._feeds[name].waiting
            self._feeds[name] = self._push(self._address, name)
        self._begin_at_s = now_s + self._begin_pause_s
        self._begin_pause_s = min(2 * self._begin_pause_s, RETRY_S_MAX)

    def _register(self) -> None:
        self._producer.register(
            str(self._broker),
            name=self._wishes.name,
            attributes={**described(), **self._wishes.attributes},
            lease_s=LEASE_S,
        )
        self._is_registered = True

    def _saw(self, is_there: bool, why: str) -> None:
        if is_there == self._is_there or self._ending.is_set():
            return
        was_there, self._is_there = self._is_there, is_there
        if not is_there:
            then = (
                "what it misses is kept, and sent when it is back" if self._feeds else "trying on"
            )
            self._tell(f"tocsin: {why}; {then}")
        elif was_there is None:
            events = plural(len(self._feeds), "kind")
            every = brief(self._wishes.period_s)
            self._tell(f"tocsin: {events} of events go to {self._broker} every {every}")
        else:
            given_up = self._told_of = self._dropped()
            self._is_dropping = False
            lost = f"; {plural(given_up, 'event')} dropped so far" if given_up else ""
            self._tell(f"tocsin: the broker at {self._broker} is back{lost}")

    def _dropped(self) -> int:
        return self._given_up + sum(feed.dropped for feed in self._feeds.values())

    def _tell_if_dropping(self) -> None:
        """Once; how many it were is told when the broker is back."""
        if self._is_dropping or self._dropped() <= self._told_of:
            return
        self._is_dropping = True
        refused = [feed.error for feed in self._feeds.values() if feed.state == OPEN and feed.error]
        why = refused[0] if refused else "the buffer is full, the oldest events are dropped first"
        self._tell(f"tocsin: events are dropped: {why}")

    def _tell_if_unlisted(self, why: str | None) -> None:
        """Events arrive, and yet the directory does not have us: somebody should know, once."""
        if why is not None and why != self._unlisted:
            self._tell(f"tocsin: the directory does not list this agent: {why}")
        self._unlisted = why


def keep_max(period_s: float, events_a_period: int) -> int:
    """How many events of a kind are kept for a broker that is away."""
    wanted = KEEP_S / period_s * max(1, events_a_period)
    return max(KEEP_MIN, min(int(wanted), KEEP_MAX))
