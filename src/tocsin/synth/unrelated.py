"""Unrelated: events that have nothing to do with runs, of which every log has some."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from tocsin.synth import texts
from tocsin.synth.rows import UNRELATED, At, Kind, empty, figure
from tocsin.synth.texts import Ints, join, picked, pool
from tocsin.synth.world import World

TYPES: Final = {
    Kind.SENSOR: "org.example.sensor.reading",
    Kind.LOAD: "http://www.gridforum.org/Performance/Events/UptimeCPULoad",
    Kind.MEMORY: "urn:tocsin:host:1/MemoryUsage",
    Kind.NOTE: "org.example.log.line",
    Kind.DOCUMENT: "org.example.dataset.ready",
}
SHARES: Final = {
    Kind.SENSOR: 0.35,
    Kind.LOAD: 0.25,
    Kind.MEMORY: 0.2,
    Kind.NOTE: 0.12,
    Kind.DOCUMENT: 0.08,
}
MEMORY_BYTES: Final = 256 << 30  # of every host
SCHEMA_URL: Final = "https://schemas.example.org/dataset/1"


@dataclass(frozen=True, slots=True)
class Columns:
    """What such events have, in the order of their rows; None where none of them has any."""

    id: pa.StringArray
    source: pa.StringArray
    topic: pa.StringArray
    subject: pa.StringArray
    datacontenttype: str | None = None
    dataschema: str | None = None
    extensions: pa.StringArray | None = None
    attributes: pa.StringArray | None = None
    data: pa.StringArray | None = None


def rows_of(
    count: int, first: int, window_us: tuple[int, int], world: World, chance: np.random.Generator
) -> Ints:
    """So many of them, received within the window, numbered from `first`."""
    rows = empty(count)
    begin_us, end_us = window_us
    received_us = begin_us + (chance.random(count) * (end_us - begin_us)).astype(np.int64)
    kinds = np.array(UNRELATED, np.int64)
    host = chance.integers(0, len(world.hosts), count)
    kind = chance.choice(kinds, count, p=[SHARES[Kind(each)] for each in kinds])
    on_host = (kind == Kind.LOAD) | (kind == Kind.MEMORY)
    rows[:, At.RECEIVED_US] = received_us
    rows[:, At.KIND] = kind
    rows[:, At.RUN] = np.arange(first, first + count)
    rows[:, At.HOST] = host
    rows[:, At.TIME_MS] = received_us // 1_000 + np.where(on_host, world.clock_ms[host], 0)
    for place in range(3):
        rows[:, figure(place)] = chance.integers(0, 10_000, count)
    return rows


def columns_of(kind: Kind, rows: Ints, time: pa.StringArray, world: World) -> Columns:
    """The rows of one kind in words."""
    return _WORDS[kind](rows, time, world)


def _numbers(rows: Ints) -> pa.StringArray:
    return texts.whole(rows[:, At.RUN])


def _sensor(rows: Ints, time: pa.StringArray, world: World) -> Columns:
    sensor = texts.whole(rows[:, At.HOST])
    degrees = texts.decimal(rows[:, figure(0)] % 400, 1)
    return Columns(
        id=join("reading-", _numbers(rows)),
        source=join("/sensors/", sensor),
        topic=join("river/level/", sensor),
        subject=join("sensor-", sensor),
        attributes=join(
            *('{"temperature":{"value":', *degrees, ',"unit":"degC","accuracy":"+/-0.1"},'),
            *('"level":', texts.whole(rows[:, figure(1)]), ',"site":"river-', sensor, '"}'),
        ),
    )


def _performance(name: str, rows: Ints, world: World, **others: pa.StringArray) -> Columns:
    host = picked(pool(world.hosts), rows[:, At.HOST])
    return Columns(
        id=join(f"{name}-", _numbers(rows)),
        source=join("gma://", host),
        topic=join(f"gma/{name}/", host),
        subject=host,
        datacontenttype="application/xml",
        **others,
    )


def _load(rows: Ints, time: pa.StringArray, world: World) -> Columns:
    host = picked(pool(world.hosts), rows[:, At.HOST])
    one, five, fifteen = (texts.decimal(rows[:, figure(place)], 2) for place in range(3))
    data = join(
        '<UptimeCPULoad xmlns="http://www.gridforum.org/Performance/Events">',
        *("<Load1>", *one, "</Load1><Load5>", *five, "</Load5><Load15>", *fifteen, "</Load15>"),
        *("<HostName>", host, "</HostName><TimeStamp>", time, "</TimeStamp></UptimeCPULoad>"),
    )
    attributes = join(
        *('{"Load1":', *one, ',"Load5":', *five, ',"Load15":', *fifteen),
        *(',"HostName":"', host, '"}'),
    )
    return _performance("UptimeCPULoad", rows, world, data=data, attributes=attributes)


def _memory(rows: Ints, time: pa.StringArray, world: World) -> Columns:
    host = picked(pool(world.hosts), rows[:, At.HOST])
    usage = rows[:, figure(0)]  # hundredths of a percent
    percent = texts.decimal(usage, 2)
    available = texts.whole(MEMORY_BYTES - MEMORY_BYTES // 10_000 * usage)
    total = str(MEMORY_BYTES)
    data = join(
        '<MemoryUsage xmlns="urn:tocsin:host:1"><Usage units="%">',
        *(*percent, f'</Usage><Total units="B">{total}</Total><Available units="B">', available),
        *("</Available><HostName>", host, "</HostName><TimeStamp>", time),
        "</TimeStamp></MemoryUsage>",
    )
    of_bytes = '"unit":"B","accuracy":null}'
    attributes = join(
        *('{"Usage":{"value":', *percent, ',"unit":"%","accuracy":null},'),
        f'"Total":{{"value":{total},{of_bytes},"Available":{{"value":',
        *(available, f',{of_bytes},"HostName":"', host, '"}'),
    )
    return _performance("MemoryUsage", rows, world, data=data, attributes=attributes)


def _note(rows: Ints, time: pa.StringArray, world: World) -> Columns:
    host = picked(pool(world.hosts), rows[:, At.HOST])
    severities = pool([f'{{"severity":"{word}"}}' for word in ("debug", "info", "warning")])
    return Columns(
        id=join("line-", _numbers(rows)),
        source=join("/logs/", host),
        topic=join("logs/", host),
        subject=host,
        datacontenttype="text/plain",
        extensions=picked(severities, rows[:, figure(1)] % 3),
        data=join(
            *("checkpoint ", texts.whole(rows[:, figure(0)]), " written in "),
            *(*texts.decimal(rows[:, figure(2)], 2), " s"),
        ),
    )


def _document(rows: Ints, time: pa.StringArray, world: World) -> Columns:
    host = picked(pool(world.hosts), rows[:, At.HOST])
    return Columns(
        id=join("dataset-", _numbers(rows)),
        source=join("/stores/", host),
        topic=join("datasets/", host),
        subject=join("dataset-", _numbers(rows)),
        datacontenttype="application/xml",
        dataschema=SCHEMA_URL,
        data=join(
            *('<dataset xmlns="urn:example:data"><id>', _numbers(rows), "</id><size>"),
            *(texts.whole(rows[:, figure(0)] * 4_096), "</size><made>", time, "</made></dataset>"),
        ),
    )


_WORDS: Final[dict[Kind, Callable[[Ints, pa.StringArray, World], Columns]]] = {
    Kind.SENSOR: _sensor,
    Kind.LOAD: _load,
    Kind.MEMORY: _memory,
    Kind.NOTE: _note,
    Kind.DOCUMENT: _document,
}
