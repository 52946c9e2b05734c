"""AccessPlan: who there is in a world with access, and what they are granted from the start."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from random import Random

from tocsin.sim.rights import (
    EVERY_ACTION,
    EVERYTHING,
    LINKS,
    MANAGE,
    PUBLISH,
    READ,
    RESOURCES,
    SUBSCRIBE,
    Right,
    draw_actions,
    draw_right,
)

NAMES = ("ann", "bob", "eve", "tom")
GROUPS = ("labs", "guests")
CHAIN = "chain"  # the broker that pushes into this one
USUAL = frozenset((PUBLISH, SUBSCRIBE, READ))


@dataclass(frozen=True, slots=True)
class SettingsRule:
    """A rule of the settings file: for one principal, or a group."""

    id: str
    right: Right
    principal: str = ""
    group: str = ""


@dataclass(frozen=True, slots=True)
class AccessPlan:
    """Of one broker."""

    members: dict[str, frozenset[str]]  # of the groups in the settings file
    rules: tuple[SettingsRule, ...]
    by_openid: frozenset[str]  # who signs in with another issuer's tokens
    changes: int  # of rights and credentials, while clients are at work
    readers: tuple[int, ...] = ()  # how often each reads
    neighbours: tuple[str, ...] = ()  # the principals of the brokers that may be linked


class Kind(Enum):
    """Of worlds, and the share of each in which everybody signs in; drawn by another name each, so
    that one can have another share."""

    APART = "access", 1 / 6  # the brokers push into each other at most
    LINKED = "principals of links", 1 / 4
    SHARED = "principals at one log", 1 / 4

    def __init__(self, draw: str, share: float) -> None:
        self.draw = draw
        self.share = share


def has_access(seed: int, kind: Kind) -> bool:
    return Random(f"{kind.draw} {seed}").random() < kind.share


def draw_readers(random: Random) -> tuple[int, ...]:
    return tuple(random.randint(2, 8) for _ in range(random.randint(0, 2)))


def add_neighbours(plan: AccessPlan, random: Random, names: tuple[str, ...]) -> AccessPlan:
    """The same, where these brokers may be linked: most by the settings, some with every right, and
    others when an administrator says so. What they may ask about resources is left to them."""
    rules = list(plan.rules)

    def add(right: Right, name: str) -> None:
        rules.append(SettingsRule(str(len(rules)), right, principal=name))

    for name in names:
        add(Right(frozenset((MANAGE, READ, SUBSCRIBE)), None, RESOURCES), name)
        if random.random() < 0.5:
            add(Right(EVERY_ACTION, EVERYTHING), name)
        elif random.random() < 0.8:
            add(Right(frozenset((MANAGE,)), None, LINKS), name)
            add(draw_right(random, frozenset((PUBLISH, SUBSCRIBE))), name)
    return replace(plan, rules=tuple(rules), neighbours=names)


def draw_access(random: Random) -> AccessPlan:
    members = {
        group: frozenset(name for name in NAMES if random.random() < 0.4) for group in GROUPS
    }
    rules: list[SettingsRule] = [
        SettingsRule("0", Right(frozenset((PUBLISH,)), EVERYTHING), principal=CHAIN)
    ]
    for name in NAMES:
        if random.random() < 0.4:
            right = Right(USUAL, EVERYTHING)
        elif random.random() < 0.8:
            right = draw_right(random, draw_actions(random))
        else:
            continue
        rules.append(SettingsRule(str(len(rules)), right, principal=name))
    for group in GROUPS:
        if random.random() < 0.6:
            right = draw_right(random, draw_actions(random))
            rules.append(SettingsRule(str(len(rules)), right, group=group))
    if random.random() < 0.2:
        right = draw_right(random, draw_actions(random))
        rules.append(SettingsRule(str(len(rules)), right, principal="anonymous"))
    return AccessPlan(
        members=members,
        rules=tuple(rules),
        by_openid=frozenset(name for name in NAMES if random.random() < 0.3),
        changes=random.choice((4, 10, 20)),
    )
