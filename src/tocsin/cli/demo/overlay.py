"""Part: three brokers in a row; one end hears and finds what is at the other, past a crash."""

from __future__ import annotations

import re
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from tocsin.cli.broker_process import BrokerProcess
from tocsin.cli.demo.clients import Instrument, Received
from tocsin.cli.demo.context import DemoContext
from tocsin.cli.find.resources import age
from tocsin.cli.render import plural
from tocsin.client import Resources, WseClient
from tocsin.client.soap.subscription import Subscription
from tocsin.errors import SomeFailed
from tocsin.wire.api.resource_views import DiscoveryResult

TOPIC: Final = "lead/ohio/radar"
WANTED: Final = "lead/**"
READINGS: Final = 300
KILL_AT: Final = 0.3  # of all readings
RETURN_AT: Final = 0.5
ADVERTISED: Final = "[system,=,Linux],[disk,<=,320]"
DISKS: Final = {"node7": 200, "node8": 150, "node9": 20}
WIDE: Final = "system = Linux and disk > 120"
NARROW: Final = "system = Linux and disk > 160"
SETTINGS: Final = {
    "TOCSIN_ARCHIVE__ENABLED": "false",  # no archive and no account of runs: fewer processes
    "TOCSIN_MONITOR__ENABLED": "false",
    "TOCSIN_OVERLAY__PAUSE_S_MAX": "1",  # the default, 30 s, is for brokers that stay away
}


class Row(NamedTuple):
    """Three brokers: A and C are linked with B."""

    a: BrokerProcess
    b: BrokerProcess
    c: BrokerProcess


class Outcome(NamedTuple):
    """What was acknowledged at one end, and heard at the other."""

    acknowledged: int
    at_the_crash: int
    at_the_return: int
    received: Received


def run(demo: DemoContext) -> None:
    with _three_brokers() as row, Resources(row.a.url) as at_a, Resources(row.c.url) as at_c:
        ids = _until_linked(demo, row)
        demo.print("Three brokers are linked in a row, A - B - C. Machines register at A:")
        for name, disk in DISKS.items():
            at_a.register(name, ADVERTISED, model="dynamic", attributes={"disk": disk})
        # An answer from before a machine came is not shared: all of them are known at C first.
        demo.until(
            lambda: _overlay(demo, row.c)["discovery"]["advertisements"]["rows"] == len(DISKS),
            "the machines at the other end",
        )
        answers = {text: _find(at_c, text) for text in (WIDE, NARROW)}
        _show_answers(demo, answers, ids)
        outcome = _publish_past_a_crash(demo, row, ids)
        _show_outcome(demo, outcome)
        _until_linked(demo, row)
        at_a.update("node9", {"disk": 300})
        again = _find(at_c, WIDE, max_age_s=0)
    names = ", ".join(each.id for each in again.resources)
    demo.print(
        f"The disk of node9 is emptied. C asks for {WIDE} again, for nothing older:\n"
        f"  {names} ({plural(again.messages, 'message')})\n"
        "`tocsin overlay` shows the links of a broker, `tocsin find resources --explain` the cost "
        "of a request."
    )
    demo.results["overlay"] = _results(answers, outcome, again)
    check(outcome, answers, again)


@contextmanager
def _three_brokers() -> Iterator[Row]:
    """A and C connect to B. All are stopped in the end."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tocsin-demo-")))

        def started(name: str, *peers: str, link: str = "off") -> BrokerProcess:
            broker = BrokerProcess(directory / name, link=link, peers=peers, settings=SETTINGS)
            stack.callback(broker.stop)
            broker.start()
            return broker

        b = started("b", link="127.0.0.1:0")
        yield Row(started("a", b.link), b, started("c", b.link))


def _until_linked(demo: DemoContext, row: Row) -> dict[str, str]:
    """Until each broker reaches the two others; their names by their ids."""
    views = {name: _overlay(demo, broker) for name, broker in row._asdict().items()}
    ids = {view["broker"]: name.upper() for name, view in views.items()}
    for broker in row:
        demo.until(
            lambda broker=broker: len(_overlay(demo, broker)["brokers"]) == len(row) - 1,  # type: ignore[misc]
            "the link of three brokers",
        )
    return ids


def _overlay(demo: DemoContext, broker: BrokerProcess) -> dict[str, Any]:
    view: dict[str, Any] = demo.request("GET", "/overlay", broker=broker.url)
    return view


def _find(resources: Resources, text: str, max_age_s: float | None = None) -> DiscoveryResult:
    return resources.find(text, model="dynamic", order_by="disk desc", max_age_s=max_age_s)


def _show_answers(
    demo: DemoContext, answers: dict[str, DiscoveryResult], ids: dict[str, str]
) -> None:
    rows: list[list[object]] = [
        [
            text,
            ", ".join(each.id for each in answer.resources),
            ", ".join(ids[each] for each in answer.brokers),
            answer.messages,
            age(answer.oldest),
            "yes" if answer.shared else "no",
        ]
        for text, answer in answers.items()
    ]
    demo.table(["asked at C", "found", "answered by", "messages", "age", "shared"], rows)
    demo.print("The second request is covered by the first, whose answer is used again.")


def _publish_past_a_crash(demo: DemoContext, row: Row, ids: dict[str, str]) -> Outcome:
    """B dies while events flow from A to C, and comes back."""
    readings = [f'<r:reading xmlns:r="urn:demo" number="{n + 1}"/>' for n in range(READINGS)]
    instrument = Instrument(row.a.url, "radar", TOPIC, [text.encode() for text in readings])
    with WseClient(row.c.url) as client, client.subscribe(WANTED) as messages:
        _until_it_holds(demo, row, ids)
        demo.print(
            f"A consumer subscribes at C by WS-Eventing; {READINGS} CloudEvents are published at A."
        )
        listener = _Listener(messages, instrument.source)
        instrument.start()
        demo.until(lambda: instrument.acknowledged >= KILL_AT * READINGS, "publishing")
        row.b.kill()
        at_the_crash = instrument.acknowledged
        demo.until(lambda: instrument.acknowledged >= RETURN_AT * READINGS, "publishing at A")
        row.b.start()
        at_the_return = instrument.acknowledged
        demo.until(lambda: instrument.acknowledged == READINGS, "publishing to its end")
        demo.until(lambda: len(listener.received.first) == READINGS, "delivery at C")
    listener.join(5.0)
    return Outcome(instrument.acknowledged, at_the_crash, at_the_return, listener.received)


def _until_it_holds(demo: DemoContext, row: Row, ids: dict[str, str]) -> None:
    """Until the one subscription at C is known at A and B."""
    [found] = demo.request("GET", "/subscriptions", broker=row.c.url)["subscriptions"]
    path = f"/subscriptions/{quote(found['id'], safe='')}"
    others = {id for id, name in ids.items() if name != "C"}
    demo.until(
        lambda: set(demo.request("GET", path, broker=row.c.url).get("reached", ())) == others,
        "the subscription at the other brokers",
    )


class _Listener(threading.Thread):
    """Counts what a Web-services consumer receives, until its subscription is closed."""

    def __init__(self, messages: Subscription, source: str) -> None:
        super().__init__(name="consumer at C", daemon=True)
        self.received = Received("consumer at C", "WS-Eventing", WANTED)
        self._messages = messages
        self._source = source
        self.start()

    def run(self) -> None:
        for message in self._messages:
            number = re.search(rb'number="(\d+)"', message.payload)
            assert number is not None
            self.received.take(self._source, int(number[1]))


def _show_outcome(demo: DemoContext, outcome: Outcome) -> None:
    received = outcome.received
    demo.print(
        f"  kill -9 of B after {outcome.at_the_crash} events; "
        f"A had acknowledged {outcome.at_the_return} when B was back, on the same data"
    )
    demo.print(
        f"{outcome.acknowledged} acknowledged at A, {len(received.first)} received at C, "
        f"{outcome.acknowledged - len(received.first)} lost, {received.repeats} repeats, "
        f"order {'kept' if received.in_order else 'BROKEN'}."
    )


def _results(
    answers: dict[str, DiscoveryResult], outcome: Outcome, again: DiscoveryResult
) -> dict[str, Any]:
    return {
        "asked": [
            {
                "request": text,
                "found": [each.id for each in answer.resources],
                "brokers": len(answer.brokers),
                "messages": answer.messages,
                "shared": answer.shared,
            }
            for text, answer in answers.items()
        ],
        "acknowledged": outcome.acknowledged,
        "received": len(outcome.received.first),
        "repeats": outcome.received.repeats,
        "in_order": outcome.received.in_order,
        "found_after_the_crash": [each.id for each in again.resources],
    }


def check(outcome: Outcome, answers: dict[str, DiscoveryResult], again: DiscoveryResult) -> None:
    """Raises if something that was acknowledged is missing, or something else was found."""
    if len(outcome.received.first) != outcome.acknowledged or not outcome.received.in_order:
        raise SomeFailed("not everything arrived at C in order", remedy="Please report this.")
    found = [[each.id for each in answer.resources] for answer in (*answers.values(), again)]
    shared = [answer.shared for answer in (*answers.values(), again)]
    if found != [["node7", "node8"], ["node7"], ["node9", "node7", "node8"]]:
        raise SomeFailed("other machines were found than there are", remedy="Please report this.")
    if shared != [False, True, False]:
        raise SomeFailed("a request was answered from a wrong one", remedy="Please report this.")
