"""The aggregate profile: what nobody subscribed to is left out of messages."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Event, Thread

import msgspec

from tocsin.client.blackboard.link import Link
from tocsin.wire.blackboard.messages import Message, Profile


@dataclass(frozen=True, slots=True)
class ProfileFilter:
    """`relevant` are the concepts that make a message worth sending: all but those of identity.

    Who a message is about is in every message, so it alone says nothing.
    """

    concepts: frozenset[str]
    relevant: frozenset[str]
    everything: bool = False

    def __contains__(self, concept: str) -> bool:
        return self.everything or concept in self.concepts

    def __or__(self, other: ProfileFilter) -> ProfileFilter:
        return ProfileFilter(
            self.concepts | other.concepts,
            self.relevant | other.relevant,
            self.everything or other.everything,
        )

    def apply(self, message: Message) -> Message | None:
        """The message with the pairs that were asked for, or None if it is not worth sending."""
        if self.everything:
            return message
        pairs = message.pairs
        if self.relevant.isdisjoint(pairs):
            return None
        concepts = self.concepts
        if concepts.issuperset(pairs):
            return message
        kept = {concept: value for concept, value in pairs.items() if concept in concepts}
        return msgspec.structs.replace(message, pairs=kept)


def profile_filter(profile: Profile, identity: Iterable[str]) -> ProfileFilter:
    """The filter of an aggregate profile; `identity` are the concepts that only say who or what."""
    concepts = frozenset(profile.concepts)
    return ProfileFilter(concepts, concepts.difference(identity), profile.everything)


POLL_S = 30.0
RETRY_S_MIN = 0.1
RETRY_S_MAX = 2.0
POLL_S_MIN = 1.0  # who answers sooner although nothing is new is asked no more often than this


class ProfileWatch:
    """Calls `on_profile` with each new profile, and `on_lost` each time that nobody answers."""

    def __init__(
        self,
        link: Link,
        on_profile: Callable[[Profile], None],
        on_lost: Callable[[Exception], None],
    ) -> None:
        self._link = link
        self._on_profile = on_profile
        self._on_lost = on_lost
        self._ended = Event()
        self._thread = Thread(target=self._run, name="tocsin-profile", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends soon; whoever closes the link wakes it."""
        self._ended.set()

    def _run(self) -> None:
        version: int | None = None
        pause_s = RETRY_S_MIN
        while not self._ended.is_set():
            asked_at = time.monotonic()
            try:
                wait_s = 0.0 if version is None else POLL_S
                profile = self._link.profile(after=version, wait_s=wait_s)
            except Exception as error:  # whatever a link does, a workflow goes on
                if self._ended.is_set():
                    return
                self._on_lost(error)
                self._ended.wait(pause_s)
                pause_s = min(pause_s * 2, RETRY_S_MAX)
                # A broker that was away may count its versions from the start.
                version = None
                continue
            pause_s = RETRY_S_MIN
            if profile.version != version:
                self._on_profile(profile)
            elif time.monotonic() - asked_at < POLL_S_MIN:
                self._ended.wait(POLL_S_MIN)
            version = profile.version
