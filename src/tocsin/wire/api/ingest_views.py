"""What the addresses for engines' own messages answer with."""

from __future__ import annotations

import msgspec


class IngestResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of one post: messages on disk, of them known already, events that say nothing."""

    accepted: int
    duplicates: int = 0
    ignored: int = 0


class BatchSummary(msgspec.Struct, frozen=True):
    received: int
    successful: int
    failed: int
    retriable: int
    non_retriable: int


class FailedEvent(msgspec.Struct, frozen=True):
    index: int
    reason: str
    retriable: bool


class BatchResult(msgspec.Struct, frozen=True):
    """The answer to a batch, in the form that OpenLineage gives it."""

    status: str
    summary: BatchSummary
    failed_events: list[FailedEvent]


class ReceivedCounts(msgspec.Struct):
    """What came by one dialect since the broker started."""

    posts: int = 0
    messages: int = 0
    ignored: int = 0
    refused: int = 0


class ReceiverCounts(msgspec.Struct, frozen=True):
    nextflow: ReceivedCounts
    openlineage: ReceivedCounts
