"""Message and Profile: what publishers, the blackboard and subscribers send to each other."""

from __future__ import annotations

import msgspec


class Message(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Concept-value pairs, both text, in the order in which they were published.

    The same source and id make a repetition known. `time` is by the clock of the source.
    """

    pairs: dict[str, str]
    id: str = ""
    source: str = ""
    time: str | None = None


class Profile(msgspec.Struct, frozen=True):
    """The aggregate subscription profile: what anybody wants, every concept written out.

    `everything`: somebody subscribed otherwise than by concept, so that no pair is to be left out.
    The version is another one exactly when the rest is.
    """

    version: int
    concepts: tuple[str, ...] = ()
    everything: bool = False
