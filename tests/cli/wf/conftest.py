"""`tocsin wf` beside a server of recorded answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from recorded_answers import (
    ACTIVITY,
    BEFORE,
    CHANGED,
    COMPARED,
    ENDED,
    ESTIMATE,
    HISTORY,
    RUN,
    WHOLE,
    Recorded,
    Tocsin,
)


@pytest.fixture
def monitor(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorded]:
    """A broker with one run that goes on and one that failed."""
    server = Recorded()
    server.answers = {
        "/runs": {"runs": [RUN, ENDED], "next": None},
        "/runs/7f3a-90": WHOLE,
        "/runs/91bc-01": ENDED,
        "/runs/7f3a-90/estimate": ESTIMATE,
        "/runs/7f3a-90/activities": {"activities": [ACTIVITY], "next": None},
        "/runs/91bc-01/activities": {"activities": [ACTIVITY], "next": None},
        "/runs/7f3a-90/hints": {"hints": []},
        "/runs/7f3a-90/failures": {"failures": []},
        "/runs/91bc-01/failures": {"failures": [{**ACTIVITY, "seen_before": 4, "before": BEFORE}]},
        "/runs/7f3a-90/compare/91bc-01": COMPARED,
        "/runs/7f3a-90/changes": CHANGED,
        "/workflows/7f3a/versions": {"versions": [], "next": None},
        "/activities/align": HISTORY,
        "/workflows/variant-calling/estimate": {**ESTIMATE, "eta": None},
        "/estimates": {**ESTIMATE, "eta": None},
        "/runs/7f3a-90/provenance": b'{"prefix": {}}\n',
    }
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
    monkeypatch.setenv("TOCSIN_BROKER", server.url)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield server
    server.shutdown()
    server.server_close()
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def tocsin(monitor: Recorded, in_process: Tocsin) -> Tocsin:
    """Runs `tocsin wf` in this process; its exit code, output and errors."""
    return lambda *arguments: in_process("wf", *arguments)
