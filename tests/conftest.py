"""Settings that every test shares."""

from __future__ import annotations

import gc
import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A shell has what it starts in the background ignore interrupts, and so would every command that a
# test starts, of which some are interrupted to see what they do.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Commands wait for a broker that does not listen yet. Tests without one know that there is none.
os.environ.setdefault("TOCSIN_BROKER_WAIT_S", "0")

HERE = Path(__file__).parent

# Tests import what they share by its own name.
sys.path.insert(0, str(HERE))

import prepared  # noqa: E402 - found by the line above

prepared.use()

# Deadlines are for machines of one's own; on a shared one they only make noise.
settings.register_profile(
    "tocsin", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("tocsin")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where Spark cannot run, what needs it is skipped, with what to install."""
    needing = [
        each
        for each in items
        if each.path.is_relative_to(HERE / "pipeline") or each.get_closest_marker("java")
    ]
    if not needing:
        return
    from java_here import missing

    if why := missing():
        for each in needing:
            each.add_marker(pytest.mark.skip(reason=why))


def pytest_collection_finish() -> None:
    """What all tests were collected as is never garbage: the collector need not look at it again.
    Tests that collect to see what is left alive are ten times as quick for it."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    gc.unfreeze()  # libraries in C look for what is left when the interpreter ends
