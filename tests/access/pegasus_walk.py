"""The listener of Pegasus: it gives no answers, so what it refuses it hangs up on."""

from __future__ import annotations

import asyncio

from refusing import Refusing


async def walk_pegasus(broker: Refusing) -> list[str]:
    host, _, port = broker.pegasus.address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(RECORD)
    answer = await asyncio.wait_for(reader.read(), 10)  # the end, though we go on
    writer.close()
    stored = broker.app.node.broker.counters.acknowledged
    return [] if answer == b"" and stored == 1 and broker.pegasus.counts.records else ["a record"]


RECORD = (
    b'{"event": "stampede.xwf.start", "ts": 1767225600, "level": "Info", '
    b'"xwf.id": "01941f29-7c00-7000-8000-000000000000", "restart_count": 0}\n'
)
