"""Events -> the messages that subscribers of the blackboard get: only the pairs they asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from tocsin.errors import TocsinError
from tocsin.event.cloudevents_filters import read_filters
from tocsin.event.filter import ByConcept
from tocsin.event.stored import Stored
from tocsin.event.subscription import Subscription
from tocsin.ontology import in_use
from tocsin.wire.blackboard.normal import pairs_of

PROFILES_KEPT_MAX = 64  # renderings of one event; past it they are rendered again
KEPT_BYTES_MAX = 16 << 10  # of them together; one that is longer is kept alone

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[object]).decode


class Delivered(msgspec.Struct, omit_defaults=True):
    """A message as a subscriber gets it. `seq` is its place in the log."""

    seq: int
    id: str
    source: str
    pairs: dict[str, str]
    time: str | None = None


def profile_of(subscription: Subscription) -> frozenset[str] | None:
    """Which concepts a subscription's filters name; None if they name none, so that all are."""
    found: set[str] = set()
    for each in _decode(subscription.filters):
        if isinstance(each, dict) and "concepts" in each:
            try:
                wanted = read_filters([each])
            except TocsinError:
                continue  # a concept that a former ontology had
            if isinstance(wanted, ByConcept):
                found |= wanted.names()
    return frozenset(found) or None


def message_of(stored: Stored, profile: frozenset[str] | None) -> bytes:
    """The event as a message with the pairs of the profile, made once for all who have it."""
    renderings = stored.messages
    if renderings is not None and (known := renderings.get(profile)) is not None:
        return known
    message = _encode(_delivered(stored, profile))
    if renderings is None or not _has_room(renderings, message):
        renderings = stored.messages = {}
    renderings[profile] = message
    return message


def _has_room(renderings: Mapping[frozenset[str] | None, bytes], message: bytes) -> bool:
    """Events stay in memory for a while, each with all that is kept here."""
    if len(renderings) >= PROFILES_KEPT_MAX:
        return False
    return sum(map(len, renderings.values())) + len(message) <= KEPT_BYTES_MAX


def messages_of(
    events: Iterable[Stored], profile: frozenset[str] | None, *, batched: bool
) -> bytes:
    """One message, or the list of several."""
    renderings = [message_of(stored, profile) for stored in events]
    return b"[" + b",".join(renderings) + b"]" if batched else renderings[0]


def _delivered(stored: Stored, profile: frozenset[str] | None) -> Delivered:
    event = stored.event
    pairs = stored.pairs
    if pairs is None:
        pairs = stored.pairs = pairs_of(event, in_use())
    if profile is not None and not pairs.keys() <= profile:
        pairs = {name: value for name, value in pairs.items() if name in profile}
    return Delivered(stored.seq, event.id, event.source, pairs, event.time)
