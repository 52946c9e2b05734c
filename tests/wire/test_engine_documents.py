"""What the documents about engines say of concepts and limits is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tocsin.drivers.pegasus.listener import ListenerLimits
from tocsin.ontology import built_in
from tocsin.wire.openlineage.events import BATCH_MAX
from tocsin.wire.pegasus.plan import TASKS_MAX

ENGINES = Path(__file__).parents[2] / "docs" / "engines"


@pytest.mark.parametrize("page", ["nextflow", "openlineage", "pegasus"])
def test_every_concept_that_is_named_exists(page: str) -> None:
    text = (ENGINES / f"{page}.md").read_text()

    named = set(
        re.findall(r"`((?:Workflow|Activity|Parent|Planned|Cpu|Memory|Io)[A-Za-z]+)`", text)
    )

    assert named
    assert {name for name in named if name not in built_in()} == set()


def test_the_limits_are_those_that_hold() -> None:
    limits = ListenerLimits()
    text = (ENGINES / "pegasus.md").read_text()

    assert f"At most {limits.connections_max} connections" in text
    assert limits.idle_s == 86_400
    assert f"more than {limits.record_bytes_max >> 20} MiB" in text
    assert f"at most {TASKS_MAX:,} jobs" in text
    assert f"up to {BATCH_MAX:,}" in (ENGINES / "openlineage.md").read_text().replace("\n", " ")
