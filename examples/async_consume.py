# /// script
# requires-python = ">=3.11"
# dependencies = ["tocsin"]
# ///
"""Publish and consume in one asyncio program: `python examples/async_consume.py`."""

import asyncio

from tocsin.client import AsyncConsumer, AsyncPublisher

COUNT = 5


async def publish() -> None:
    async with AsyncPublisher(source="/examples/async") as publisher:
        for number in range(COUNT):
            await publisher.publish("examples/ticks", {"number": number})


async def main() -> None:
    # A box is made before the first event is published, so that none is missed.
    async with AsyncConsumer("topic examples/ticks", via="box") as events:
        publishing = asyncio.create_task(publish())
        async for event in events:
            print(event.topic, event.data)
            if event.data["number"] == COUNT - 1:
                break
        await publishing


asyncio.run(main())
