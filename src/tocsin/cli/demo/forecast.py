"""Part: instruments publish, five subscribers listen in four ways, and the broker is killed."""

from __future__ import annotations

import random
import time

from tocsin.cli.demo.clients import (
    ClientSubscriber,
    CommandSubscriber,
    Instrument,
    Reading,
    Subscriber,
)
from tocsin.cli.demo.context import DemoContext
from tocsin.errors import SomeFailed

READINGS = 1_500  # an instrument: some seconds of publishing one by one, each on disk
KILL_AT = (0.3, 0.65)  # of all readings


def run(demo: DemoContext) -> None:
    chance = random.Random(7)
    radar: list[Reading] = [{"dbz": chance.randint(0, 70)} for _ in range(READINGS)]
    load: list[Reading] = [{"load5": round(chance.uniform(0, 8), 2)} for _ in range(READINGS)]
    jobs: list[Reading] = [
        {"state": chance.choice(["started", "done", "failed"])} for _ in range(READINGS)
    ]
    instruments = [
        Instrument(demo.url, "radar", "lead/ohio/radar", radar),
        Instrument(demo.url, "node7", "lead/ohio/load", load),
        Instrument(demo.url, "workflow", "lead/forecast/job", jobs),
    ]
    wanted = {
        "everything of the forecast": ("topic lead/**", 3 * READINGS),
        "only the radar": ("topic lead/*/radar", READINGS),
        "heavy load": ("load5 >= 5", sum(float(str(r["load5"])) >= 5 for r in load)),
        "failed jobs": ("[state,=,failed]", sum(r["state"] == "failed" for r in jobs)),
        "strong echoes": (
            "dbz > 60 and topic lead/ohio/*",
            sum(int(str(r["dbz"])) > 60 for r in radar),
        ),
    }
    subscribers = _subscribe(demo, wanted)
    demo.print(
        f"Three instruments publish {3 * READINGS} readings, one at a time, "
        "each answered when it is on disk."
    )
    demo.print("Five subscribers listen: webhook, message box, server-sent events, WebSocket.")
    for instrument in instruments:
        instrument.start()
    _kill_in_the_middle(demo, instruments)
    for instrument in instruments:
        instrument.join()
    expected = {name: count for name, (_, count) in wanted.items()}
    demo.until(
        lambda: all(len(s.received.first) >= expected[s.received.name] for s in subscribers),
        "delivery of every event",
    )
    time.sleep(0.3)  # an unwanted event would arrive now
    for subscriber in subscribers:
        subscriber.stop()
    _check(demo, instruments, subscribers, expected)


def _subscribe(demo: DemoContext, wanted: dict[str, tuple[str, int]]) -> list[Subscriber]:
    ways = iter(("webhook", "message box", "SSE", "WebSocket (tocsin sub)", "webhook"))
    everyone: list[Subscriber] = []
    for name, (text, _) in wanted.items():
        way = next(ways)
        if way == "WebSocket (tocsin sub)":
            everyone.append(CommandSubscriber(demo.url, name, way, "ws", text))
        elif way == "message box":
            everyone.append(ClientSubscriber(demo.url, name, way, "box", text))
        elif way == "SSE":
            everyone.append(ClientSubscriber(demo.url, name, way, "stream", text))
        else:
            everyone.append(ClientSubscriber(demo.url, name, way, "push", text))
    return everyone


def _kill_in_the_middle(demo: DemoContext, instruments: list[Instrument]) -> None:
    for share in KILL_AT:
        goal = int(share * READINGS * len(instruments))
        demo.until(lambda goal=goal: _acknowledged(instruments) >= goal, "publishing")  # type: ignore[misc]
        demo.kill()
        at = _acknowledged(instruments)
        seconds = demo.start()
        demo.print(f"  kill -9 after {at} readings; back after {seconds:.1f} s, on the same data")


def _acknowledged(instruments: list[Instrument]) -> int:
    return sum(instrument.acknowledged for instrument in instruments)


def _check(
    demo: DemoContext,
    instruments: list[Instrument],
    subscribers: list[Subscriber],
    expected: dict[str, int],
) -> None:
    rows: list[list[object]] = []
    wrong: list[str] = []
    for received in (subscriber.received for subscriber in subscribers):
        lost = expected[received.name] - len(received.first)
        order = "kept" if received.in_order else "BROKEN"
        rows.append(
            [
                received.name,
                received.way,
                received.wants,
                len(received.first),
                received.repeats,
                lost,
                order,
            ]
        )
        if lost or not received.in_order:
            wrong.append(received.name)
    demo.table(["subscriber", "way", "filter", "events", "repeats", "lost", "order"], rows)
    demo.results["forecast"] = {
        "acknowledged": _acknowledged(instruments),
        "kills": len(KILL_AT),
        "subscribers": [
            dict(
                zip(("name", "way", "filter", "events", "repeats", "lost", "order"), r, strict=True)
            )
            for r in rows
        ],
    }
    if wrong:
        raise SomeFailed(
            f"not everything arrived: {', '.join(wrong)}", remedy="Please report this."
        )
    demo.print(
        f"{_acknowledged(instruments)} acknowledged, {len(KILL_AT)} crashes, 0 lost. "
        "A repeat is an event that was on its way when the broker died."
    )
