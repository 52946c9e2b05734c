"""The artifacts of Apache CXF, which Maven fetches, and the Java that runs a class of ours."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "cxf"
FETCH_S = 280


def java_with(pom: str, build: Path) -> list[str]:
    """The command that runs a class with these artifacts beside it; a skip where they are not to
    be had."""
    for program in ("mvn", "java"):
        if shutil.which(program) is None:
            pytest.skip(f"there is no {program} here")
    shutil.copy(HERE / pom, build / "pom.xml")
    fetch = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib"]
    for command in ([*fetch, "-o"], fetch):  # what was fetched before is at hand
        try:
            done = subprocess.run(
                command, cwd=build, capture_output=True, text=True, timeout=FETCH_S, check=False
            )
        except subprocess.TimeoutExpired:
            pytest.skip("the artifacts of CXF did not come in time")
        if done.returncode == 0:
            return ["java", "-cp", f"{build}/lib/*"]
    pytest.skip(f"the artifacts of CXF cannot be had: {done.stdout[-300:]}")
