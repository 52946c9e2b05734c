"""What a person may see of the control messages of one broker."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tocsin.event.control_topic import ControlGroup


class TdnsAt(msgspec.Struct, frozen=True):
    """A broker with topic discovery nodes, and their ids."""

    broker: str
    tdns: tuple[str, ...]


class ControlInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Messages by their groups since the start, and what there is now."""

    tdns: tuple[TdnsAt, ...]  # of this broker, and of those that can be reached
    sent: Mapping[str, int]
    received: Mapping[str, int]
    forwarded: Mapping[str, int]
    delivered: Mapping[str, int]
    dropped: Mapping[str, int]  # by the reason
    repeats: int
    remembered: int  # messages that would be known if they came again
    waiting_bytes: int  # for neighbours
    streams: int  # of entities
    mailbox_bytes: int  # that wait for those


def by_group(counted: Mapping[ControlGroup, int]) -> dict[str, int]:
    """With each group, also where nothing is counted."""
    return {group.value: counted.get(group, 0) for group in ControlGroup}
