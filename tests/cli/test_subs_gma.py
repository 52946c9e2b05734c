"""`tocsin subs add gma://...`: a consumer of performance events is subscribed from the shell."""

from __future__ import annotations

import time

import pytest

from served import Served, served
from tocsin.cli.main import run

WAIT_S = 20.0


def test_a_gma_sink_is_subscribed_shown_and_removed(
    broker: Served, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with served() as archive:
        sink = f"gma://{archive.frames}"
        assert run(["subs", "add", sink, "--topic", topic, "--broker", broker.url]) == 0
        name = capsys.readouterr().out.strip()

        broker.publish({"topic": topic, "type": "Load", "data": {"load": 7}})
        until_s = time.monotonic() + WAIT_S
        while not archive.call("GET", "/events?after=0")[1]["events"]:
            assert time.monotonic() < until_s, "nothing came"
            time.sleep(0.05)

        assert run(["subs", "show", name, "--broker", broker.url]) == 0
        shown = capsys.readouterr().out
        assert sink in shown
        assert "Grid Forum performance events" in shown
        assert run(["subs", "rm", name, "--broker", broker.url]) == 0


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["gma://collector.example:8401"], 4, "is not trusted"),
        (["gma://127.0.0.1:9/archive"], 1, "has a path"),
        (["gma://127.0.0.1:9", "--structured"], 1, "not CloudEvents"),
    ],
)
def test_a_gma_sink_that_cannot_be_is_refused_with_a_remedy(
    broker: Served,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    said: str,
) -> None:
    assert run(["subs", "add", *arguments, "--broker", broker.url]) == code

    assert said in capsys.readouterr().err


def test_the_help_names_gma_sinks_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(["subs", "add", "--help"])

    reported = capsys.readouterr().out
    assert "gma://HOST:PORT" in reported
    assert "tocsin subs add gma://127.0.0.1:9401" in reported
