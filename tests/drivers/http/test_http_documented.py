"""docs/http.md is true: its paths are those of the API, its limits are the defaults."""

from __future__ import annotations

import re
from pathlib import Path

from tocsin.config import EventSettings, HttpSettings, LimitSettings
from tocsin.services.streams.sse_session import HEARTBEAT_S, RETRY_MS
from tocsin.services.streams.websocket import PING_S, PONG_S_MAX
from tocsin.wire.api.openapi.document import description

TEXT = (Path(__file__).parents[3] / "docs" / "http.md").read_text()


def test_every_path_and_method_is_in_the_table_and_no_other() -> None:
    table = TEXT.partition("\n\n## Publishing")[0]
    documented = {
        (path, method.lower())
        for row in re.findall(r"^\| (`/.*?) \| ([A-Z, ]+) \|", table, re.M)
        for path in re.findall(r"`(.*?)`", row[0])
        for method in row[1].split(", ")
    }

    paths = description()["paths"]

    assert documented == {(path, method) for path in paths for method in paths[path]}


def test_the_limits_are_those_of_a_broker_that_is_told_nothing() -> None:
    http, events, limits = HttpSettings(), EventSettings(), LimitSettings()
    rows = dict(
        re.findall(r"^\| ([a-z][^|]*?) \| ([^|]*?) \|", TEXT.partition("## Limits")[2], re.M)
    )

    assert rows["head of a request"].startswith(
        f"{http.header_bytes_max >> 10} KiB, {http.headers_max} headers, "
        f"complete within {http.header_deadline_s:g} s"
    )
    assert rows["body"].startswith(f"{http.body_bytes_max >> 20} MiB")
    assert f"{http.body_deadline_s:g} s" in rows["body"]
    assert f"{http.body_bytes_per_s_min >> 10} KiB/s" in rows["body"]
    assert rows["event, batch"] == (
        f"{events.event_bytes_max >> 20} MiB, {events.batch_events_max:,} events"
    )
    assert rows["idle connection"] == f"{http.idle_s:g} s"
    assert rows["requests of one connection not yet answered"] == str(http.pipelined_max)
    assert rows["answers not read by the client"].startswith(f"{http.stalled_reader_s:g} s")
    assert rows["connections"] == f"{http.connections_max:,}"
    assert rows["streams and sockets"] == f"{limits.streams_max:,}"
    assert (
        rows["being received, all listeners together"] == f"{limits.receiving_bytes_max >> 20} MiB"
    )
    assert rows["connections of one address"].startswith(f"{limits.connections_per_peer_max:,}, ")
    assert f"A comment every {HEARTBEAT_S:g} s" in TEXT
    assert f"retry: {RETRY_MS}" in TEXT
    assert f"pings every {PING_S:g} s and hangs up if no pong comes within {PONG_S_MAX:g} s" in TEXT
