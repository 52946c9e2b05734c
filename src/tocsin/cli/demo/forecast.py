"""Scene: instruments publish, five subscribers listen in four ways, and the broker is killed."""

from __future__ import annotations

import random
import time

from tocsin.cli.demo.cast import (
    ClientSubscriber,
    CommandSubscriber,
    Instrument,
    Reading,
    Subscriber,
)
from tocsin.cli.demo.stage import Stage
from tocsin.errors import SomeFailed

READINGS = 1_500  # an instrument: some seconds of publishing one by one, each on disk
KILL_AT = (0.3, 0.65)  # of all readings


def play(stage: Stage) -> None:
    chance = random.Random(7)
    radar: list[Reading] = [{"dbz": chance.randint(0, 70)} for _ in range(READINGS)]
    load: list[Reading] = [{"load5": round(chance.uniform(0, 8), 2)} for _ in range(READINGS)]
    jobs: list[Reading] = [
        {"state": chance.choice(["started", "done", "failed"])} for _ in range(READINGS)
    ]
    instruments = [
        Instrument(stage.url, "radar", "lead/ohio/radar", radar),
        Instrument(stage.url, "node7", "lead/ohio/load", load),
        Instrument(stage.url, "workflow", "lead/forecast/job", jobs),
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
    subscribers = _subscribe(stage, wanted)
    stage.say(
        f"Three instruments publish {3 * READINGS} readings, one at a time, "
        "each answered when it is on disk."
    )
    stage.say("Five subscribers listen: webhook, message box, server-sent events, WebSocket.")
    for instrument in instruments:
        instrument.start()
    _kill_in_the_middle(stage, instruments)
    for instrument in instruments:
        instrument.join()
    expected = {name: count for name, (_, count) in wanted.items()}
    stage.until(
        lambda: all(len(s.seen.first) >= expected[s.seen.name] for s in subscribers),
        "that everybody gets everything",
    )
    time.sleep(0.3)  # what should not come would come now
    for subscriber in subscribers:
        subscriber.stop()
    _verdict(stage, instruments, subscribers, expected)


def _subscribe(stage: Stage, wanted: dict[str, tuple[str, int]]) -> list[Subscriber]:
    ways = iter(("webhook", "message box", "SSE", "WebSocket (tocsin sub)", "webhook"))
    everyone: list[Subscriber] = []
    for name, (text, _) in wanted.items():
        way = next(ways)
        if way == "WebSocket (tocsin sub)":
            everyone.append(CommandSubscriber(stage.url, name, way, "ws", text))
        elif way == "message box":
            everyone.append(ClientSubscriber(stage.url, name, way, "box", text))
        elif way == "SSE":
            everyone.append(ClientSubscriber(stage.url, name, way, "stream", text))
        else:
            everyone.append(ClientSubscriber(stage.url, name, way, "push", text))
    return everyone


def _kill_in_the_middle(stage: Stage, instruments: list[Instrument]) -> None:
    for share in KILL_AT:
        goal = int(share * READINGS * len(instruments))
        stage.until(lambda goal=goal: _acknowledged(instruments) >= goal, "publishing")  # type: ignore[misc]
        stage.kill()
        at = _acknowledged(instruments)
        seconds = stage.start()
        stage.say(f"  kill -9 after {at} readings; back after {seconds:.1f} s, on the same data")


def _acknowledged(instruments: list[Instrument]) -> int:
    return sum(instrument.acknowledged for instrument in instruments)


def _verdict(
    stage: Stage,
    instruments: list[Instrument],
    subscribers: list[Subscriber],
    expected: dict[str, int],
) -> None:
    rows: list[list[object]] = []
    wrong: list[str] = []
    for seen in (subscriber.seen for subscriber in subscribers):
        lost = expected[seen.name] - len(seen.first)
        order = "kept" if seen.in_order else "BROKEN"
        rows.append([seen.name, seen.way, seen.wants, len(seen.first), seen.repeats, lost, order])
        if lost or not seen.in_order:
            wrong.append(seen.name)
    stage.table(["subscriber", "way", "filter", "events", "repeats", "lost", "order"], rows)
    stage.results["forecast"] = {
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
    stage.say(
        f"{_acknowledged(instruments)} acknowledged, {len(KILL_AT)} crashes, 0 lost. "
        "A repeat is an event that was on its way when the broker died."
    )
