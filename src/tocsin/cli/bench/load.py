"""A short load on a running broker: publishers that wait for each answer, one subscriber."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import suppress
from typing import NamedTuple

from tocsin.client.consumer import AsyncConsumer
from tocsin.client.publisher import AsyncPublisher

OPENING_S = 0.2  # for the stream to be open
SETTLE_S = 5.0  # how long the last events may take to arrive
PADDING = "x" * 100


class Load(NamedTuple):
    """What was measured. Times are in seconds."""

    published: int
    received: int
    elapsed_s: float
    answer_s: list[float]
    delivery_s: list[float]


async def run_load(broker: str | None, *, publishers: int, seconds: float) -> Load:
    """Publish from several connections at once and receive the same on one stream."""
    topic = f"tocsin/bench/{os.urandom(6).hex()}"
    answer_s: list[float] = []
    delivery_s: list[float] = []
    async with AsyncConsumer(f"topic {topic}", broker=broker) as events:
        arrived = asyncio.Event()
        receiving = asyncio.create_task(_receive(events, delivery_s, arrived))
        try:
            await asyncio.wait({receiving}, timeout=OPENING_S)
            if receiving.done():
                await receiving  # raises what went wrong
            began = time.perf_counter()
            await asyncio.gather(
                *(_publish(broker, topic, began + seconds, answer_s) for _ in range(publishers))
            )
            elapsed_s = time.perf_counter() - began
            await _settle(answer_s, delivery_s, arrived)
        finally:
            receiving.cancel()
            await asyncio.gather(receiving, return_exceptions=True)
    return Load(len(answer_s), len(delivery_s), elapsed_s, answer_s, delivery_s)


async def _publish(broker: str | None, topic: str, until: float, answer_s: list[float]) -> None:
    async with AsyncPublisher(broker, patience_s=0) as publisher:
        while (now := time.perf_counter()) < until:
            await publisher.publish(topic, {"sent": time.time(), "padding": PADDING})
            answer_s.append(time.perf_counter() - now)


async def _receive(events: AsyncConsumer, delivery_s: list[float], arrived: asyncio.Event) -> None:
    async for event in events:
        delivery_s.append(time.time() - event.data["sent"])
        arrived.set()


async def _settle(sent: list[float], received: list[float], arrived: asyncio.Event) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(SETTLE_S):
            while len(received) < len(sent):
                await arrived.wait()
                arrived.clear()


def quantile(values: list[float], fraction: float) -> float:
    """The value below which so much of the values lie; 0 if there are none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(fraction * len(ordered)))] if ordered else 0.0


def histogram(values: list[float], *, width: int = 40) -> list[str]:
    """Counts by powers of two of milliseconds, as bars."""
    counts: dict[int, int] = {}
    for value in values:
        bucket = max(0, int(value * 1000 / 0.25)).bit_length()
        counts[bucket] = counts.get(bucket, 0) + 1
    if not counts:
        return []
    most = max(counts.values())
    return [
        f"{'< ' + format(0.25 * 2**bucket, 'g') + ' ms':>12}  "
        f"{'█' * round(width * counts.get(bucket, 0) / most)} {counts.get(bucket, 0):,}"
        for bucket in range(min(counts), max(counts) + 1)
    ]
