"""The listener of Pegasus: it gives no answers, so what it refuses it hangs up on."""

from __future__ import annotations

import asyncio

from refusing import CUT, NO_CONNECTION, Refusing

ANSWER_S = 10.0
CLOSED_S = 3.0


async def walk_pegasus(broker: Refusing) -> list[str]:
    """The one message that there is, if it was not refused by an end of the connection."""
    is_refused = False
    try:
        with broker.first():
            reader, writer = await broker.open(broker.pegasus.address)
            if broker.is_allowed_first:
                await _is_accepted(broker)
        writer.write(RECORD)
        is_refused = await asyncio.wait_for(reader.read(), CLOSED_S) == b""  # though we go on
        writer.close()
    except CUT:
        is_refused = True
    except TimeoutError:
        writer.close()
    is_stored = broker.app.node.broker.counters.acknowledged != 1
    is_read = bool(broker.pegasus.counts.records)
    is_right = is_refused and not is_stored and is_read == (broker.refusal != NO_CONNECTION)
    return [] if is_right else ["a record"]


async def _is_accepted(broker: Refusing) -> None:
    async with asyncio.timeout(ANSWER_S):
        while not broker.pegasus._sessions:
            await asyncio.sleep(0.01)


RECORD = (
    b'{"event": "stampede.xwf.start", "ts": 1767225600, "level": "Info", '
    b'"xwf.id": "01941f29-7c00-7000-8000-000000000000", "restart_count": 0}\n'
)
