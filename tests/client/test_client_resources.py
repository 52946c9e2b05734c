"""Resources and AsyncResources with a real broker, also past a restart of it."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from served import Served, served
from tocsin.client import AsyncResources, Resources
from tocsin.errors import BrokerRefused

RANGES = "[system,=,Linux],[memory,<=,2],[disk,<=,320]"


@pytest.fixture
def lab() -> str:
    """An attribute's value that no other test uses."""
    return f"lab{os.urandom(4).hex()}"


def test_the_example_of_the_manual_runs(broker: Served) -> None:
    root = Path(__file__).parents[2]
    manual = (root / "docs" / "resources.md").read_text()
    [block] = re.findall(r"```python\n(.*?)```", manual, re.DOTALL)

    done = subprocess.run(
        [sys.executable, "-c", block],
        env={**os.environ, "PYTHONPATH": str(root / "src"), "TOCSIN_BROKER": broker.url},
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == 0, done.stderr
    assert "added node7" in done.stdout


def test_a_program_registers_updates_finds_and_withdraws(broker: Served, lab: str) -> None:
    with Resources(broker.url) as resources:
        resources.register(lab, f"{RANGES},[lab,=,{lab}]", model="dynamic", kind="machine")
        resources.update(lab, {"memory": 1, "disk": 200})
        found = resources.find(f"lab = {lab} and disk > 120", model="dynamic", order_by="distance")
        listed = resources.registered(model="dynamic", kind="machine")
        resources.withdraw(lab)

        with pytest.raises(BrokerRefused) as refused:
            resources.get(lab)

    assert [each.id for each in found.resources] == [lab]
    assert found.resources[0].attributes["disk"] == 200
    assert lab in [each.id for each in listed]
    assert refused.value.broker_code == "T351"


def test_asyncio_does_the_same(broker: Served, lab: str) -> None:
    async def work() -> tuple[list[str], list[tuple[str, str]]]:
        async with AsyncResources(broker.url) as resources:
            await resources.register(lab, attributes={"lab": lab})
            found = await resources.find(f"lab = {lab}")
            changes: list[tuple[str, str]] = []
            async with resources.watch(f"lab = {lab}") as watch, asyncio.timeout(10):
                async for change in watch:
                    changes.append((change.change, change.resource.id))
                    if change.change == "removed":
                        break
                    await resources.withdraw(lab)
            return [each.id for each in found.resources], changes

    found, changes = asyncio.run(work())

    assert found == [lab]
    assert changes == [("added", lab), ("removed", lab)]


def test_a_watch_tells_the_difference_after_the_broker_was_away() -> None:
    with served() as broker, Resources(broker.url) as resources:
        for name in ("stays", "goes", "changes"):
            resources.register(name, attributes={"cores": 4})
        watch = resources.watch("cores >= 1", timeout_s=20)
        begins = sorted(next(watch).resource.id for _ in range(3))

        broker.kill()
        broker.start()
        resources.withdraw("goes")
        resources.register("changes", attributes={"cores": 8})
        after = sorted((change.change, change.resource.id) for change in (next(watch), next(watch)))
        watch.close()

    assert begins == ["changes", "goes", "stays"]
    assert after == [("changed", "changes"), ("removed", "goes")]


def test_a_watch_that_can_match_nothing_ends_and_says_why(broker: Served) -> None:
    with Resources(broker.url) as resources, resources.watch("a > 5 and a < 3") as watch:
        assert list(watch) == []
        assert "no value fulfils" in str(watch.why_empty)
