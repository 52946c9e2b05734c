"""What is kept of the messages made of an event, for as long as the event is in memory."""

from __future__ import annotations

import json

from tocsin.event.stored import Stored
from tocsin.ontology import built_in
from tocsin.wire.blackboard.messages import Message
from tocsin.wire.blackboard.normal import to_event
from tocsin.wire.blackboard.write import KEPT_BYTES_MAX, PROFILES_KEPT_MAX, message_of

PROFILES = [frozenset({"LogTail", name}) for name in list(built_in().concepts)[:100]]


def stored(log: str) -> Stored:
    message = Message({"RunId": "r1", "LogTail": log}, id="1", source="/s")
    return Stored(7, 0, to_event(message, id="", source="", vocabulary=built_in()))


def test_a_message_is_made_once_for_all_with_the_same_profile() -> None:
    event = stored("x" * 1_000_000)

    assert message_of(event, PROFILES[0]) is message_of(event, PROFILES[0])


def test_many_profiles_do_not_multiply_the_memory_of_a_long_message() -> None:
    event = stored("x" * 1_000_000)

    for profile in PROFILES:
        assert json.loads(message_of(event, profile))["pairs"]["LogTail"] == "x" * 1_000_000

    assert event.messages is not None
    assert len(event.messages) == 1


def test_of_short_messages_several_are_kept() -> None:
    event = stored("x")

    for profile in PROFILES:
        message_of(event, profile)
        assert event.messages is not None
        assert len(event.messages) <= PROFILES_KEPT_MAX
        assert sum(map(len, event.messages.values())) <= KEPT_BYTES_MAX
    assert len(event.messages or ()) > 1
