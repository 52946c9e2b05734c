"""Jars that tests need and Spark does not bring, by Maven; without it, the test is skipped."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

FETCH_S = 280


def fetched(pom: Path, directory: Path, **properties: str) -> Path | str:
    """The directory with what a description asks for; or why it cannot be had."""
    if shutil.which("mvn") is None:
        return "there is no mvn here"
    directory.mkdir(parents=True, exist_ok=True)
    shutil.copy(pom, directory / "pom.xml")
    given = [f"-D{name.replace('_', '.')}={value}" for name, value in properties.items()]
    fetch = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib", *given]
    said = ""
    for command in ([*fetch, "-o"], fetch):  # what was fetched before is at hand
        try:
            done = subprocess.run(
                command, cwd=directory, capture_output=True, text=True, timeout=FETCH_S, check=False
            )
        except subprocess.TimeoutExpired:
            return "the artifacts did not come in time"
        if done.returncode == 0:
            return directory / "lib"
        said = done.stdout[-300:]
    return f"the artifacts cannot be had: {said}"


def needed(found: Path | str) -> Path:
    """The directory, or the end of the test."""
    if isinstance(found, str):
        pytest.skip(found)
    return found
