"""Crates, unpacked and read by a library that others wrote for them."""

from __future__ import annotations

import io
import json
import warnings
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec import structs
from rocrate.rocrate import ROCrate

from tocsin.monitor.provenance import RunView, crate_zip


def unpacked(view: RunView, directory: Path) -> Path:
    with zipfile.ZipFile(io.BytesIO(crate_zip(view))) as archive:
        archive.extractall(directory)
    return directory


def metadata(view: RunView) -> dict[str, dict[str, Any]]:
    with zipfile.ZipFile(io.BytesIO(crate_zip(view))) as archive:
        graph = json.loads(archive.read("ro-crate-metadata.json"))["@graph"]
    found = {entity["@id"]: entity for entity in graph}
    assert len(found) == len(graph)
    return found


def loaded(directory: Path) -> ROCrate:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return ROCrate(directory)


def of_type(entities: dict[str, dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [entity for entity in entities.values() if kind in as_list(entity["@type"])]


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def ids(value: Any) -> list[str]:
    return [each["@id"] for each in as_list(value)]


def dangling(view: RunView) -> set[str]:
    """References within the crate that lead nowhere."""
    entities = metadata(view)
    found: set[str] = set()

    def walk(value: object) -> None:
        if isinstance(value, dict):
            if set(value) == {"@id"} and not value["@id"].startswith("http"):
                found.add(value["@id"])
            for each in value.values():
                walk(each)
        elif isinstance(value, list):
            for each in value:
                walk(each)

    walk(list(entities.values()))
    return found - set(entities)


def without_files(view: RunView) -> RunView:
    return replace(view, run=structs.replace(view.run, files=()))
