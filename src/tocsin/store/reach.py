"""How far retention reaches into a log."""

from __future__ import annotations

from tocsin.broker.log import LogReader


def retention_reach(reader: LogReader, before_ns: int | None, bytes_max: int | None) -> int:
    """The last event that age or size lets go of; zero if none."""
    reach = 0
    if before_ns is not None:
        reach = max(reach, reader.seq_at(before_ns))
    if bytes_max is not None:
        reach = max(reach, reader.seq_for_size(bytes_max))
    return reach
