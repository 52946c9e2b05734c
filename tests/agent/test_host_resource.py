"""This machine as a resource: its values lie in what it advertises, whatever is free of it."""

from __future__ import annotations

import pytest

from tocsin.agent import resource as module
from tocsin.agent.gpus import Gpu, parse
from tocsin.agent.resource import HostDescription
from tocsin.overlay.region import admits
from tocsin.overlay.region_text import parse_region


def test_this_machine_advertises_what_it_has_and_is_in_it() -> None:
    description = HostDescription({"rack": 7, "site": "Ohio's"})
    values = description.values()
    advertised = parse_region(description.advertisement(values))

    assert values["system"] == "Linux"
    assert (values["rack"], values["site"]) == (7, "Ohio's")
    assert 0 < values["free_memory"] <= values["memory"]
    assert 0 < values["free_disk"] <= values["disk"]
    assert admits(advertised, values)
    assert admits(advertised, {**values, "load1": 99.5, "free_memory": 0.001})
    assert not admits(advertised, {**values, "free_memory": values["memory"] + 1})


def test_graphics_processors_are_counted_and_their_memory_is_free_or_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "NVIDIA A100, 81920, 1024, 35\nNVIDIA A100, 81920, 0, [N/A]\nbroken\n"
    processors = parse(text)
    monkeypatch.setattr(module, "gpus", lambda: processors)

    values = HostDescription({}).values()

    assert processors[1] == Gpu("NVIDIA A100", 81_920 << 20, 0, None)
    assert (values["gpus"], values["gpu"], values["gpu_usage"]) == (2, "NVIDIA A100", 35.0)
    assert values["gpu_memory"] == pytest.approx(171.799)
    assert values["free_gpu_memory"] == pytest.approx(170.725)


def test_what_cannot_be_read_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise RuntimeError("no /proc here")

    for name in ("load", "memory", "file_systems"):
        monkeypatch.setattr(module.machine, name, fails)

    values = HostDescription({}, []).values()

    assert "system" in values
    assert not {"load1", "memory", "disk"} & values.keys()
