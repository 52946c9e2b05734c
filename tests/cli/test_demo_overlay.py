"""The demo's part with three linked brokers: what it shows, and that it leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tocsin.cli.broker_process import BrokerProcess
from tocsin.cli.demo import overlay
from tocsin.cli.demo.clients import Received
from tocsin.cli.demo.context import DemoContext
from tocsin.errors import SomeFailed
from tocsin.wire.api.resource_views import DiscoveryResult

NOTHING_FOUND = DiscoveryResult(
    resources=[],
    brokers=[],
    messages=0,
    shared=False,
    oldest="2026-11-18T00:00:00Z",
    stopped_early=False,
    incomplete=None,
    why_empty=None,
)


def test_it_loses_nothing_and_finds_machines_at_the_other_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    demo = DemoContext(tmp_path, quiet=False)  # its own broker is not needed
    started: list[BrokerProcess] = []
    start = BrokerProcess.start

    def starting(self: BrokerProcess) -> float:
        started.append(self)
        return start(self)

    monkeypatch.setattr(BrokerProcess, "start", starting)

    overlay.run(demo)

    shown = capsys.readouterr().out
    result = demo.results["overlay"]
    assert result["acknowledged"] == result["received"] == overlay.READINGS
    assert [each["shared"] for each in result["asked"]] == [False, True]
    assert result["asked"][0]["messages"] > result["asked"][1]["messages"] == 0
    assert f"{overlay.READINGS} received at C, 0 lost, " in shown
    assert len(started) == 4  # one of three was killed, and came back
    assert not [each for each in started if each.is_running]


def test_an_event_that_is_missing_fails_the_demo() -> None:
    received = Received("consumer at C", "WS-Eventing", "lead/**")
    received.take("/lab/radar", 1)

    with pytest.raises(SomeFailed, match="not everything arrived at C"):
        overlay.check(overlay.Outcome(2, 1, 1, received), {}, NOTHING_FOUND)


def test_a_machine_that_is_missing_fails_the_demo() -> None:
    received = Received("consumer at C", "WS-Eventing", "lead/**")

    with pytest.raises(SomeFailed, match="other machines were found"):
        overlay.check(overlay.Outcome(0, 0, 0, received), {}, NOTHING_FOUND)
