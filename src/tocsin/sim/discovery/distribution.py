"""Where resources are registered, where requests are issued, and when."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tocsin.event.instant import NS_PER_S

GEOMETRIC_P = 1 / 3


def balanced(count: int, brokers: Sequence[str]) -> list[str]:
    """As many at each broker."""
    return [brokers[number % len(brokers)] for number in range(count)]


def geometric(count: int, brokers: Sequence[str]) -> list[str]:
    """A third at the first broker, a third of the rest at the second, and so on to the last."""
    shares = [GEOMETRIC_P * (1 - GEOMETRIC_P) ** place for place in range(len(brokers))]
    found: list[str] = []
    reached = 0.0
    for broker, share in zip(brokers, shares, strict=True):
        reached += share / sum(shares)
        found += [broker] * (round(reached * count) - len(found))
    return found


def uniform_in_space(count: int, brokers: Sequence[str], random: Random) -> list[str]:
    return random.choices(brokers, k=count)


def zipf_in_space(count: int, brokers: Sequence[str], random: Random) -> list[str]:
    """Most requests at few brokers: the n-th, in an order of chance, gets 1/n of the first's."""
    order = random.sample(brokers, len(brokers))
    weights = [1 / rank for rank in range(1, len(brokers) + 1)]
    return random.choices(order, weights, k=count)


def times_of(time: str, count: int, duration_s: float, random: Random) -> list[int]:
    """When requests are issued: `uniform`, or `gaussian/8` for a deviation of an eighth."""
    name, _, part = time.partition("/")
    if name == "uniform":
        return uniform_in_time(count, duration_s)
    return gaussian_in_time(count, duration_s, random, deviation=1 / int(part or "8"))


def uniform_in_time(count: int, duration_s: float) -> list[int]:
    """Evenly over the duration, in nanoseconds."""
    return [round(duration_s * NS_PER_S * number / count) for number in range(count)]


def gaussian_in_time(
    count: int, duration_s: float, random: Random, *, deviation: float = 1 / 8
) -> list[int]:
    """Around the middle of the duration, with a deviation given as a share of it."""
    times = (random.gauss(duration_s / 2, duration_s * deviation) for _ in range(count))
    return sorted(round(min(max(time, 0.0), duration_s) * NS_PER_S) for time in times)
