"""Background events: sensors, host metrics, log lines and documents, unrelated to any run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa

from tocsin.synth.rows import US_PER_MS, Col, Kind, empty
from tocsin.synth.texts import Ints, Part, decimal, join, pick, whole
from tocsin.synth.world import World

TYPES: Final = {
    Kind.SENSOR: "org.example.sensor.reading",
    Kind.LOAD: "http://www.gridforum.org/Performance/Events/UptimeCPULoad",
    Kind.MEMORY: "urn:tocsin:host:1/MemoryUsage",
    Kind.LOG_LINE: "org.example.log.line",
    Kind.DATASET: "org.example.dataset.ready",
}
SHARES: Final = (0.35, 0.25, 0.2, 0.12, 0.08)  # in the same order
MEMORY_BYTES: Final = 256 << 30  # of every host
SCHEMA_URL: Final = "https://schemas.example.org/dataset/1"


def rows_of(
    count: int, first: int, window_us: tuple[int, int], world: World, rng: np.random.Generator
) -> Ints:
    """`count` events received within the window, numbered from `first`."""
    rows = empty(count)
    begin_us, end_us = window_us
    received_us = begin_us + (rng.random(count) * (end_us - begin_us)).astype(np.int64)
    host = rng.integers(0, len(world.hosts), count)
    kind = rng.choice(np.array(list(TYPES), np.int64), count, p=SHARES)
    on_host = (kind == Kind.LOAD) | (kind == Kind.MEMORY)
    rows[:, Col.RECEIVED_US] = received_us
    rows[:, Col.KIND] = kind
    rows[:, Col.RUN] = np.arange(first, first + count)
    rows[:, Col.HOST] = host
    rows[:, Col.TIME_MS] = received_us // US_PER_MS + np.where(on_host, world.clock_ms[host], 0)
    for column in (Col.VALUE_1, Col.VALUE_2, Col.VALUE_3):
        rows[:, column] = rng.integers(0, 10_000, count)
    return rows


def columns_of(kind: Kind, rows: Ints, time: pa.StringArray, world: World) -> dict[str, Part]:
    """The columns of the archive's record that rows of one kind have."""
    host = whole(rows[:, Col.HOST]) if kind == Kind.SENSOR else pick(world.hosts, rows[:, Col.HOST])
    return _COLUMNS[kind](rows, whole(rows[:, Col.RUN]), time, host)


def _sensor(rows: Ints, number: Part, time: Part, sensor: Part) -> dict[str, Part]:
    degrees, level = decimal(rows[:, Col.VALUE_1] % 400, 1), whole(rows[:, Col.VALUE_2])
    return {
        "id": join("reading-", number),
        "source": join("/sensors/", sensor),
        "topic": join("river/level/", sensor),
        "subject": join("sensor-", sensor),
        "attributes": join(
            *('{"temperature":{"value":', degrees, ',"unit":"degC","accuracy":"+/-0.1"},'),
            *('"level":', level, ',"site":"river-', sensor, '"}'),
        ),
    }


def _host_metric(name: str, number: Part, host: Part) -> dict[str, Part]:
    return {
        "id": join(f"{name}-", number),
        "source": join("gma://", host),
        "topic": join(f"gma/{name}/", host),
        "subject": host,
        "datacontenttype": "application/xml",
    }


def _load(rows: Ints, number: Part, time: Part, host: Part) -> dict[str, Part]:
    columns = (Col.VALUE_1, Col.VALUE_2, Col.VALUE_3)
    one, five, fifteen = (decimal(rows[:, column], 2) for column in columns)
    return _host_metric("UptimeCPULoad", number, host) | {
        "data": join(
            '<UptimeCPULoad xmlns="http://www.gridforum.org/Performance/Events">',
            *("<Load1>", one, "</Load1><Load5>", five, "</Load5><Load15>", fifteen, "</Load15>"),
            *("<HostName>", host, "</HostName><TimeStamp>", time, "</TimeStamp></UptimeCPULoad>"),
        ),
        "attributes": join(
            *('{"Load1":', one, ',"Load5":', five, ',"Load15":', fifteen),
            *(',"HostName":"', host, '"}'),
        ),
    }


def _memory(rows: Ints, number: Part, time: Part, host: Part) -> dict[str, Part]:
    usage = rows[:, Col.VALUE_1]  # hundredths of a percent
    percent = decimal(usage, 2)
    available = whole(MEMORY_BYTES - MEMORY_BYTES // 10_000 * usage)
    in_bytes = '"unit":"B","accuracy":null}'
    return _host_metric("MemoryUsage", number, host) | {
        "data": join(
            '<MemoryUsage xmlns="urn:tocsin:host:1"><Usage units="%">',
            *(percent, f'</Usage><Total units="B">{MEMORY_BYTES}</Total><Available units="B">'),
            *(available, "</Available><HostName>", host, "</HostName><TimeStamp>", time),
            "</TimeStamp></MemoryUsage>",
        ),
        "attributes": join(
            *('{"Usage":{"value":', percent, ',"unit":"%","accuracy":null},'),
            f'"Total":{{"value":{MEMORY_BYTES},{in_bytes},"Available":{{"value":',
            *(available, f',{in_bytes},"HostName":"', host, '"}'),
        ),
    }


def _log_line(rows: Ints, number: Part, time: Part, host: Part) -> dict[str, Part]:
    severities = [f'{{"severity":"{word}"}}' for word in ("debug", "info", "warning")]
    checkpoint, seconds = whole(rows[:, Col.VALUE_1]), decimal(rows[:, Col.VALUE_3], 2)
    return {
        "id": join("line-", number),
        "source": join("/logs/", host),
        "topic": join("logs/", host),
        "subject": host,
        "datacontenttype": "text/plain",
        "extensions": pick(severities, rows[:, Col.VALUE_2] % 3),
        "data": join("checkpoint ", checkpoint, " written in ", seconds, " s"),
    }


def _dataset(rows: Ints, number: Part, time: Part, host: Part) -> dict[str, Part]:
    return {
        "id": join("dataset-", number),
        "source": join("/stores/", host),
        "topic": join("datasets/", host),
        "subject": join("dataset-", number),
        "datacontenttype": "application/xml",
        "dataschema": SCHEMA_URL,
        "data": join(
            *('<dataset xmlns="urn:example:data"><id>', number, "</id><size>"),
            *(whole(rows[:, Col.VALUE_1] * 4_096), "</size><made>", time, "</made></dataset>"),
        ),
    }


_COLUMNS: Final[dict[Kind, Callable[[Ints, Part, Part, Part], dict[str, Part]]]] = {
    Kind.SENSOR: _sensor,
    Kind.LOAD: _load,
    Kind.MEMORY: _memory,
    Kind.LOG_LINE: _log_line,
    Kind.DATASET: _dataset,
}
