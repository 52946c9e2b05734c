"""XPath filters that many subscriptions share, beside asking each subscription in turn.

    python bench/xpath.py [--quick] [--json FILE]

10,000 subscriptions have 1,000 distinct expressions between them, and ten topics. `shared`: the
matcher, for which the payload is parsed once and an expression evaluated at most once an event.
`naive`: parsed once too, but evaluated for every subscription. In `order` every message has all the
names that the expressions ask for; in `catalogue` an expression asks for one name of a thousand,
and a message has ten of them, so most expressions need not be evaluated at all.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import report
from tocsin.event.event import Event
from tocsin.event.filter import All, TopicIs, XPath
from tocsin.event.filter_eval import passes, seen
from tocsin.event.topic import TopicPattern
from tocsin.event.xpath import Inquiry, compile_xpath
from tocsin.matching.matcher import Matcher
from tocsin.safexml import parse

SUBSCRIPTIONS = 10_000
EXPRESSIONS = 1_000
TOPICS = 10
EVENTS = 100
QUICK_EVENTS = 10
SEED = 20_050_711


def order_expression(number: int) -> str:
    return f"/order[total > {number}]/line[@kind = 'k{number % 7}']"


def order_message(dice: random.Random) -> bytes:
    lines = "".join(
        f'<line kind="k{dice.randrange(7)}"><name>thing {n}</name></line>' for n in range(12)
    )
    return f"<order><total>{dice.randrange(EXPRESSIONS)}</total>{lines}</order>".encode()


def catalogue_expression(number: int) -> str:
    return f"/catalogue/thing{number}[price < 50]"


def catalogue_message(dice: random.Random) -> bytes:
    things = "".join(
        f"<thing{n}><price>{dice.randrange(100)}</price></thing{n}>"
        for n in dice.sample(range(EXPRESSIONS), 10)
    )
    return f"<catalogue>{things}</catalogue>".encode()


WORKLOADS: dict[str, tuple[Callable[[int], str], Callable[[random.Random], bytes]]] = {
    "order": (order_expression, order_message),
    "catalogue": (catalogue_expression, catalogue_message),
}


def topic(number: int) -> str:
    return f"bench/topic{number % TOPICS}"


def subscriptions(workload: str) -> list[All]:
    """Every expression with every topic."""
    expression = WORKLOADS[workload][0]
    return [
        All(
            (
                TopicIs(TopicPattern.parse(topic(key // EXPRESSIONS) if key % 2 else "bench/*")),
                XPath(expression(key % EXPRESSIONS)),
            )
        )
        for key in range(SUBSCRIPTIONS)
    ]


def messages(workload: str, count: int) -> list[Event]:
    write = WORKLOADS[workload][1]
    return [
        Event(
            str(number),
            "/bench",
            "measured",
            topic=topic(number),
            datacontenttype="application/xml",
            data=write(random.Random(SEED + number)),
        )
        for number in range(count)
    ]


def evaluations(wanted: list[All], event: Event) -> int:
    """How many expressions the matcher evaluates for this event."""
    asked = Inquiry(event)
    for leaf in {part for each in wanted for part in each.parts if isinstance(part, XPath)}:
        asked.holds(leaf)
    return asked.evaluations


def naive(wanted: list[All], event: Event) -> tuple[list[int], int]:
    """The keys that want it, and how many expressions were evaluated for that."""
    assert event.data is not None
    root = parse(event.data)
    opened = seen(event)
    found: list[int] = []
    evaluated = 0
    for key, each in enumerate(wanted):
        pattern, leaf = each.parts
        assert isinstance(leaf, XPath)
        if passes(pattern, opened):
            evaluated += 1
            if compile_xpath(leaf).evaluate(root):
                found.append(key)
    return found, evaluated


def measure(workload: str, count: int) -> list[dict[str, object]]:
    wanted = subscriptions(workload)
    matcher = Matcher(use_numba=False)
    for key, filter in enumerate(wanted):
        matcher.add(key, filter)
    sent = messages(workload, count)
    matcher.match(sent[0])  # compiles the expressions
    shared_s, naive_s, naive_evaluated = [], [], []
    for event in sent:
        started = time.perf_counter()
        found = matcher.match(event)
        shared_s.append(time.perf_counter() - started)
        started = time.perf_counter()
        expected, evaluated = naive(wanted, event)
        naive_s.append(time.perf_counter() - started)
        naive_evaluated.append(evaluated)
        assert found == expected, event.id
    fast, slow = statistics.median(shared_s), statistics.median(naive_s)
    asked = statistics.mean(evaluations(wanted, event) for event in sent)
    return [
        _row(workload, "shared", asked, fast, slow / fast),
        _row(workload, "naive", statistics.mean(naive_evaluated), slow, 1.0),
    ]


def _row(
    workload: str, engine: str, evaluated: float, event_s: float, times_naive: float
) -> dict[str, object]:
    return {
        "workload": workload,
        "engine": engine,
        "evaluations_per_event": evaluated,
        "ms_per_event": event_s * 1e3,
        "events_per_s": 1 / event_s,
        "times_naive": times_naive,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer events")
    parser.add_argument("--json", type=Path, help="write the results here")
    options = parser.parse_args()
    count = QUICK_EVENTS if options.quick else EVENTS
    results = [row for workload in WORKLOADS for row in measure(workload, count)]
    headers = {
        "workload": "workload",
        "engine": "engine",
        "evaluations_per_event": "evaluations/event",
        "ms_per_event": "ms/event",
        "events_per_s": "events/s",
        "times_naive": "x naive",
    }
    report.table(list(headers.values()), [[row[name] for name in headers] for row in results])
    if options.json:
        report.write("xpath", results, options.json)


if __name__ == "__main__":
    main()
