"""Samples: what the archive keeps beside events. How deliveries went, and what was looked for.

    ARCHIVE/_deliveries/date=2026-11-16/<at_us>.parquet     DELIVERIES_SCHEMA
    ARCHIVE/_deadletters/date=2026-11-16/<at_us>.parquet    DEADLETTERS_SCHEMA
    ARCHIVE/_discoveries/date=2026-11-16/<at_us>.parquet    DISCOVERIES_SCHEMA

A file is named by the moment of its first row, in microseconds, and never changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from tocsin.archive.members import MOMENT
from tocsin.archive.naming import DEADLETTERS, DELIVERIES, DISCOVERIES
from tocsin.archive.record import VERSION, VERSION_KEY

_METADATA: Final = {VERSION_KEY: str(VERSION).encode()}

DELIVERIES_SCHEMA: Final = pa.schema(
    [
        pa.field("at", MOMENT, nullable=False),
        pa.field("subscription", pa.string(), nullable=False),
        pa.field("sink", pa.string()),  # a URL, or none: a stream, a box
        pa.field("protocol", pa.string()),
        pa.field("state", pa.string()),
        pa.field("cursor", pa.int64()),  # the last sequence number that is done with
        pa.field("behind", pa.int64()),  # how many events the log is ahead of it
        pa.field("waiting", pa.int64()),  # how many are under way or held for it
        pa.field("delivered", pa.int64()),  # since the broker started, as the next three
        pa.field("failed_attempts", pa.int64()),
        pa.field("dead", pa.int64()),
        pa.field("dropped", pa.int64()),
        pa.field("sink_state", pa.string()),
        pa.field("last_error", pa.string()),
        pa.field("last_delivered", MOMENT),
    ],
    metadata=_METADATA,
)

DEADLETTERS_SCHEMA: Final = pa.schema(
    [
        pa.field("at", MOMENT, nullable=False),  # when it was given up
        pa.field("id", pa.string(), nullable=False),
        pa.field("subscription", pa.string(), nullable=False),
        pa.field("sink", pa.string()),
        pa.field("seq", pa.int64()),
        pa.field("type", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("reason", pa.string()),
        pa.field("attempts", pa.int64()),
        pa.field("status", pa.int64()),  # of HTTP, in the last answer
    ],
    metadata=_METADATA,
)

DISCOVERIES_SCHEMA: Final = pa.schema(
    [
        pa.field("at", MOMENT, nullable=False),
        pa.field("model", pa.string(), nullable=False),  # which way of finding: "directory"
        pa.field("request", pa.string()),
        pa.field("found", pa.int64()),
        pa.field("seconds", pa.float64()),
        pa.field("brokers", pa.int64()),  # that were asked; null where there is one
        pa.field("messages", pa.int64()),
        pa.field("shared", pa.int64()),  # answers that served another question as well
    ],
    metadata=_METADATA,
)

SCHEMAS: Final[Mapping[str, pa.Schema]] = {
    DELIVERIES: DELIVERIES_SCHEMA,
    DEADLETTERS: DEADLETTERS_SCHEMA,
    DISCOVERIES: DISCOVERIES_SCHEMA,
}
