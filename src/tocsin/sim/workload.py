"""What is published and what is asked for: few shapes of events, a small pool of filters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

import msgspec

from tocsin.event.cloudevents_filters import read_filters
from tocsin.event.event import Event
from tocsin.event.filter import Filter
from tocsin.event.filter_eval import matches

TOPICS = ("lab/a", "lab/b", "sky/a", "sky/b")
TYPES = ("reading", "alarm")
LEVELS = 10
POISON_LEVEL = 9
"""What some sinks refuse for ever."""
PADDING_BYTES = (0, 0, 40, 700, 6_000)  # the last spans pages of the log, so it can be torn

WANTS: tuple[list[object], ...] = (
    [],
    [{"topic": "lab/**"}],
    [{"topic": "lab/a"}],
    [{"filter": "level >= 5"}],
    [{"topic": "*/b"}, {"filter": "level < 7"}],
    [{"sql": "level > 3 AND kind = 'x'"}],
    [{"any": [{"topic": "sky/*"}, {"exact": {"type": "alarm"}}]}],
    [{"not": {"prefix": {"topic": "lab"}}}],
)


@dataclass(frozen=True, slots=True)
class Want:
    """One filter of the pool, as a subscriber writes it and ready to use."""

    number: int
    raw: msgspec.Raw
    filter: Filter


POOL: tuple[Want, ...] = tuple(
    Want(number, msgspec.Raw(msgspec.json.encode(wants)), read_filters(wants))
    for number, wants in enumerate(WANTS)
)
_by_text = {bytes(want.raw): want for want in POOL}
_answers: dict[tuple[int, str, str, str | None, str | None], bool] = {}


def want_of(raw: msgspec.Raw) -> Want:
    """The filter that a subscription was stored with; services write their own."""
    text = bytes(raw)
    want = _by_text.get(text)
    if want is None:
        filter = read_filters(msgspec.json.decode(text))
        want = _by_text[text] = Want(len(_by_text), msgspec.Raw(text), filter)
    return want


def wants(want: Want, event: Event) -> bool:
    """The naive definition; remembered by shape, because an event's padding changes nothing."""
    shape = (want.number, event.topic, event.type, event.subject, event.datacontenttype)
    answer = _answers.get(shape)
    if answer is None:
        answer = _answers[shape] = matches(want.filter, event)
    return answer


def draw_event(random: Random, source: str, number: int) -> Event:
    level, kind = random.randrange(LEVELS), random.choice("xy")
    padding = "." * random.choice(PADDING_BYTES)
    return Event(
        id=str(number),
        source=source,
        type=random.choice(TYPES),
        topic=random.choice(TOPICS),
        subject=f"{level}{kind}",
        data=msgspec.json.encode({"level": level, "kind": kind, "padding": padding}),
    )


@dataclass(frozen=True, slots=True)
class BoardProfile:
    """What a subscriber of the blackboard asks for, and which names in use here that covers."""

    concepts: tuple[str, ...]
    covers: frozenset[str]

    def of(self, pairs: Mapping[str, str]) -> dict[str, str]:
        """The pairs that the subscriber gets."""
        return {name: value for name, value in pairs.items() if name in self.covers}


# Each shape of a message by the names of its pairs; the first pair tells the shape, as a subject.
MESSAGES: tuple[tuple[str, ...], ...] = (
    ("ActivityFailed", "CpuSeconds"),
    ("ActivitySucceeded", "RunId"),
    ("WorkflowStarted", "RunId", "WorkflowName"),
    ("MemoryPeak", "CpuSeconds"),
    ("ActivityOutOfMemory", "MemoryPeak"),
)
PROFILES: tuple[BoardProfile, ...] = (
    BoardProfile(("ActivityProblem",), frozenset({"ActivityFailed", "ActivityOutOfMemory"})),
    BoardProfile(("ActivityFailed",), frozenset({"ActivityFailed", "ActivityOutOfMemory"})),
    BoardProfile(("ActivitySucceeded", "RunId"), frozenset({"ActivitySucceeded", "RunId"})),
    BoardProfile(("Resource",), frozenset({"CpuSeconds", "MemoryPeak"})),
    BoardProfile(("WorkflowEvent", "Cpu"), frozenset({"WorkflowStarted", "CpuSeconds"})),
)
_MESSAGE = "bb."


def draw_message(random: Random, source: str, number: int) -> Event:
    """A message of the blackboard, as the event that it is to become."""
    shape = random.randrange(len(MESSAGES))
    pairs = {"ActivityId": f"shape-{shape}"}
    pairs |= {name: str(random.randrange(LEVELS)) for name in MESSAGES[shape]}
    return Event(
        id=str(number), source=source, type=_MESSAGE, topic="", data=msgspec.json.encode(pairs)
    )


def pairs_of(event: Event) -> dict[str, str]:
    """The concept-value pairs of a message; other events of the simulation have none."""
    if not event.type.startswith(_MESSAGE):
        return {}
    return msgspec.json.decode(event.data or b"{}", type=dict[str, str])


_MARKER = re.compile(rb'marker="([^"]+)"')


def marker_of(data: bytes | None) -> str | None:
    """What names an event whose id the broker gives: the attribute that its publisher put there."""
    found = _MARKER.search(data or b"")
    return None if found is None else found[1].decode()


def is_poison(event: Event) -> bool:
    return event.subject is not None and event.subject.startswith(str(POISON_LEVEL))
