"""`tocsin wf watch` on recorded answers: each change once, until the run has ended."""

from __future__ import annotations

import json
from typing import Any

from recorded_answers import (
    COUNTS,
    ENDED,
    RUN,
    WHOLE,
    Recorded,
    Tocsin,
)

from cli.shell import at_terminal


def test_a_run_that_is_over_has_no_time_left(tocsin: Tocsin) -> None:
    code, out, words = tocsin("eta", "91bc-01")

    assert code == 0
    assert "state     failed after 12m03s" in out
    assert "it is over" in words
    assert json.loads(tocsin("eta", "91bc-01", "--json")[1])["remaining_s"] == 0


def test_watching_tells_each_change_once_and_ends_with_the_run(
    tocsin: Tocsin, monitor: Recorded
) -> None:
    looks = iter([WHOLE, WHOLE, WHOLE, {**WHOLE, "activities": {**COUNTS, "succeeded": 10}}])
    monitor.answers["/runs/7f3a-90"] = lambda: next(looks, {**ENDED, "id": "7f3a-90"})

    code, out, words = tocsin("watch", "7f3a-90", "--interval", "1ms")

    lines = [line[10:] for line in out.splitlines()]  # without the time
    assert code == 1
    assert lines == [
        "failed: s3, exit code 137: Killed",
        "running     45%  9 of 20; 3 running, 1 queued, 1 failed  left 6m10s (4m00s to 9m00s)",
        "running     45%  10 of 20; 3 running, 1 queued, 1 failed  left 6m10s (4m00s to 9m00s)",
        "failed      45%  9 of 20; 3 running, 1 queued, 1 failed  after 12m03s",
    ]
    assert words == "why: tocsin wf failures 7f3a-90\n"


def test_what_is_slower_than_usual_is_reported_once(tocsin: Tocsin, monitor: Recorded) -> None:
    alert = {"kind": "slower than usual", "activity": "s3", "type": "align", "why": "It is late."}
    slow = {**WHOLE, "alerts": [alert]}
    looks = iter([slow, slow, slow])
    monitor.answers["/runs/7f3a-90"] = lambda: next(looks, {**ENDED, "id": "7f3a-90"})

    _, out, _ = tocsin("watch", "7f3a-90", "--interval", "1ms")

    assert out.count("align s3 is slower than usual. It is late.\n") == 1
    monitor.answers["/runs/7f3a-90"] = slow
    assert "\nalerts\n-  align s3 is slower than usual. It is late.\n" in tocsin("show")[1]


def test_a_broker_that_goes_away_for_a_while_ends_no_watching(
    tocsin: Tocsin, monitor: Recorded
) -> None:
    calls = iter(range(100))

    def flaky() -> dict[str, Any]:
        number = next(calls)
        if 3 <= number <= 6:
            raise ConnectionAbortedError
        return {**WHOLE, "state": "completed"} if number > 6 else WHOLE

    monitor.answers["/runs/7f3a-90"] = flaky

    code, out, words = tocsin("watch", "7f3a-90", "--interval", "1ms", "--json")

    assert code == 0
    assert [json.loads(line)["state"] for line in out.splitlines()] == ["running", "completed"]
    assert words.count("trying again") == 1


def test_a_run_that_is_to_come_can_be_waited_for(tocsin: Tocsin, monitor: Recorded) -> None:
    lists = iter([[], [], [ENDED]])
    monitor.answers["/runs"] = lambda: {"runs": next(lists, [ENDED]), "next": None}
    assert tocsin("watch", "--interval", "1ms")[2].startswith("no runs yet; waiting for the next")

    lists = iter([[RUN], [RUN], [ENDED]])
    code, out, words = tocsin("watch", "--next", "--interval", "1ms", "--json")
    assert (code, json.loads(out)["id"]) == (1, "91bc-01")
    assert words.startswith("the latest is 7f3a-90; waiting for the next one")
    assert tocsin("watch", "7f3a-90", "--next")[0] == 2


def test_a_good_end_is_exit_code_zero_and_waiting_too_long_is_six(
    tocsin: Tocsin, monitor: Recorded
) -> None:
    monitor.answers["/runs/91bc-01"] = {**ENDED, "state": "completed"}

    code, out, _ = tocsin("watch", "91bc-01", "--json")
    assert (code, json.loads(out)["state"]) == (0, "completed")
    assert tocsin("watch", "7f3a-90", "--interval", "1ms", "-W", "20ms")[0] == 6


def test_on_a_terminal_a_run_is_watched_in_place(monitor: Recorded) -> None:
    looks = iter([WHOLE, WHOLE])
    monitor.answers["/runs/7f3a-90"] = lambda: next(looks, {**ENDED, "id": "7f3a-90"})

    code, shown = at_terminal(
        "wf", "watch", "7f3a-90", "--interval", "10ms", TOCSIN_BROKER=monitor.url
    )

    assert code == 1
    assert shown.count("\x1b[J") == 1
    assert shown.count("\r\nprogress") == 2
