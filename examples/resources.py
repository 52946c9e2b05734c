# /// script
# requires-python = ">=3.11"
# dependencies = ["tocsin"]
# ///
"""Machines are found, and watched with asyncio: `python examples/resources.py`."""

import asyncio

from tocsin.client import AsyncResources, Resources

with Resources() as resources:
    # In which ranges its attributes lie, and their current values.
    resources.register("node7", "[disk,<=,320]", model="dynamic", attributes={"disk": 200})
    resources.register("node8", "[disk,<=,320]", model="dynamic", attributes={"disk": 20})
    found = resources.find("disk > 120", model="dynamic")
    print("found", [each.id for each in found.resources], "shared:", found.shared)


async def main() -> None:
    async with AsyncResources() as resources:
        # First what matches already, then what comes, changes and goes.
        async with resources.watch("disk > 120", model="dynamic", timeout_s=30) as watch:
            async for change in watch:
                print(change.change, change.resource.id)
                if change.resource.id == "node8":
                    break
                await resources.update("node8", {"disk": 300})
        for name in ("node7", "node8"):
            await resources.withdraw(name)


asyncio.run(main())
