"""`tocsin wf` on recorded answers: what a person reads, what a program reads, and hostile words."""

from __future__ import annotations

import json
from datetime import datetime

from recorded_answers import (
    ACTIVITY,
    ESTIMATE,
    HISTORY,
    RUN,
    WHOLE,
    Recorded,
    Tocsin,
)

from cli.shell import at_terminal
from tocsin.cli.main import run
from tocsin.cli.wf.runs import state_text


def here(time: str) -> str:
    """A time of that day as it is shown in this machine's zone."""
    return f"{datetime.fromisoformat(f'2026-03-01T{time}Z').astimezone():%Y-%m-%d %H:%M}"


def test_a_list_has_the_time_left_of_what_still_runs(tocsin: Tocsin) -> None:
    code, out, words = tocsin("ls")

    assert code == 0
    assert out.splitlines() == [
        "run      workflow         state    progress      started           duration  time left",
        f"7f3a-90  variant-calling  running   45% 9 of 20  {here('12:00:00')}  12m03s    "
        "6m10s (4m00s to 9m00s)",
        f"91bc-01  variant-calling  failed    45% 9 of 20  {here('12:00:00')}  12m03s    -",
    ]
    assert words == "2 runs\n"


def test_a_program_gets_a_run_a_line_with_exact_times(tocsin: Tocsin) -> None:
    _, out, _ = tocsin("ls", "--json")

    first, second = map(json.loads, out.splitlines())
    assert first == {**RUN, "estimate": ESTIMATE}
    assert (second["id"], second["estimate"]) == ("91bc-01", None)


def test_no_runs_yet_says_how_runs_come(tocsin: Tocsin, monitor: Recorded) -> None:
    monitor.answers["/runs"] = {"runs": [], "next": None}

    assert tocsin("ls")[:2] == (0, "")
    assert "no runs yet. Run a workflow that reports to this broker" in tocsin("ls")[2]
    assert "no such runs" in tocsin("ls", "--state", "lost")[2]
    code, out, words = tocsin("show")
    assert (code, out) == (5, "")
    assert "there are no runs yet [T322]" in words


def test_a_run_is_shown_with_what_is_left_and_why(tocsin: Tocsin) -> None:
    code, out, words = tocsin("show", "7f")

    assert code == 0
    assert out.splitlines()[:11] == [
        "run         7f3a-90",
        "workflow    variant-calling, version 3f2a9c55aa01; snakemake 9.27; ana on node7",
        f"state       running for 12m03s, started {here('12:00:00')}, "
        f"last event {here('12:12:03')}",
        "progress    █████████░░░░░░░░░░░ 45%  9 of 20 activities; 3 running, 1 queued, 1 failed",
        f"time left   6m10s (80%: 4m00s to 9m00s), ends about {here('12:18:13')}",
        "why         critical path: 3 of align, then merge",
        "            from 14 past runs, usually off by 9%; method: simulation",
        "resources   cpu seconds 1h03m, memory peak 2.1 GB",
        "parameters  depth=30",
        "",
        "activities",
    ]
    assert "align   12     0        0       1  11 to come" in out
    assert "-        2     0        2       0" in out
    assert "end-before-start (s3): it ended 2 s early" in out
    assert "why it failed: tocsin wf failures 7f3a-90" in words


def test_for_a_lost_run_the_time_since_its_last_message_is_shown() -> None:
    now = datetime.fromisoformat("2026-03-01T14:17:03Z")
    lost = {**RUN, "state": "lost", "duration_s": 3.0}

    assert state_text(lost, now).startswith("lost, no event for 2h05m, started ")


def test_what_was_cached_is_counted_once_and_what_was_retried_leaves_a_trace(
    tocsin: Tocsin, monitor: Recorded
) -> None:
    counts = {"total": 5, "known": 6, "succeeded": 2, "cached": 1, "running": 3}
    monitor.answers["/runs/7f3a-90"] = {
        **WHOLE,
        "activities": counts,
        "progress": 0.5,
        "retried": 2,
        "types": {"align": {"succeeded": 2, "cached": 1, "running": 3}},
        "plan": {},
    }

    out = tocsin("show", "7f3a-90")[1]

    assert " 50%  3 of 6 activities; 3 running, 1 cached, 2 retried\n" in out
    assert "align    6     3        3       0  -\n" in out


def test_why_there_are_no_hints_is_said(tocsin: Tocsin, monitor: Recorded) -> None:
    reason = "the engine does not report which activity depends on which"
    monitor.answers["/runs/7f3a-90/hints"] = {"hints": [], "reason": reason}

    assert tocsin("hints", "7f3a-90")[2] == f"no hints for 7f3a-90: {reason}\n"


def test_what_cannot_be_estimated_says_why(tocsin: Tocsin, monitor: Recorded) -> None:
    monitor.answers["/runs/7f3a-90/estimate"] = {
        "code": "T323",
        "detail": "nothing has ended yet",
        "remedy": "Wait.",
    }

    assert "time left   not known: nothing has ended yet\n" in tocsin("show")[1]
    assert tocsin("ls")[1].splitlines()[1].endswith("  -")
    code, out, words = tocsin("eta")
    assert (code, out) == (1, "")
    assert "nothing has ended yet [T323]" in words


def test_the_beginning_of_an_id_must_fit_one_run(tocsin: Tocsin, monitor: Recorded) -> None:
    monitor.answers["/runs"]["runs"].append({**RUN, "id": "7f3b"})

    assert tocsin("show", "7f3a")[0] == 0
    code, _, words = tocsin("show", "7f")
    assert code == 2
    assert "2 runs begin with '7f': 7f3a-90, 7f3b" in words
    code, _, words = tocsin("show", "7f3a-91")
    assert code == 5
    assert "Did you mean 7f3a-90" in words


def test_the_name_of_a_workflow_stands_for_its_latest_run(tocsin: Tocsin) -> None:
    assert json.loads(tocsin("show", "variant-calling", "--json")[1])["id"] == "7f3a-90"


def test_why_it_failed_comes_first_and_what_was_before_last(tocsin: Tocsin) -> None:
    code, out, words = tocsin("failures", "91bc")

    lines = out.splitlines()
    assert code == 0
    assert lines[0] == f"align s3, attempt 3, failed {here('12:10:00')} after 12s on node7"
    assert "  exit code  137 (SIGKILL: often too little memory)" in lines
    assert "  seen       4 times before" in lines
    assert lines[lines.index("  log") + 1] == "    ... 10 lines before"
    assert lines[-2:] == [
        f"    {here('12:10:00')}:00  ActivityExecuting s3",
        f"    {here('12:10:05')}:05  memory rss 63 GB s3",
    ]
    assert words == "\nrun 91bc-01, failed: 1 failed attempt\n"


def test_a_run_without_failures_points_at_one_that_has_some(
    tocsin: Tocsin, monitor: Recorded
) -> None:
    code, out, words = tocsin("failures")

    assert (code, out) == (0, "")
    assert "no activity of 7f3a-90 has failed; it is running" in words
    assert "tocsin wf failures 91bc-01" in words


def test_history_is_numbers_and_a_histogram(tocsin: Tocsin) -> None:
    code, out, _ = tocsin("history", "align")

    assert code == 0
    assert "ended       1,010 times, 3 failed\n" in out
    assert "    1.0s to 10s      6  ▎\n" in out
    assert f"   10s to 1m40s  1,000  {'█' * 40}\n" in out
    assert "1m40s to 16m40s      1  ▏\n" in out
    assert json.loads(tocsin("history", "align", "--json")[1]) == HISTORY


def test_provenance_goes_to_the_given_file(monitor: Recorded, tmp_path, capfdbinary) -> None:
    file = tmp_path / "run.json"

    assert run(["wf", "provenance", "7f3a"]) == 0
    assert capfdbinary.readouterr().out == b'{"prefix": {}}\n'
    assert run(["wf", "provenance", "7f3a", "-o", str(file)]) == 0
    assert file.read_bytes() == b'{"prefix": {}}\n'
    assert list(tmp_path.iterdir()) == [file]
    assert run(["wf", "provenance", "7f3a", "-o", str(tmp_path / "no" / "run.json")]) == 2


def test_words_of_a_run_cannot_steer_a_terminal(monitor: Recorded) -> None:
    evil = "x\x1b[2J\x9b31m\u202e"
    monitor.answers["/runs/7f3a-90"] = {**WHOLE, "workflow": evil, "error": evil}
    failure = {**ACTIVITY, "id": evil, "error": evil, "log": evil, "seen_before": 0, "before": []}
    monitor.answers["/runs/7f3a-90/failures"] = {"failures": [failure]}
    monitor.answers["/runs"] = {"runs": [{**RUN, "workflow": evil}], "next": None}

    for action in ("ls", "show", "failures", "eta"):
        _, shown = at_terminal("wf", action, TOCSIN_BROKER=monitor.url)
        assert "\x1b[2J" not in shown
        assert "\x9b" not in shown
        assert "\u202e" not in shown


def test_on_a_terminal_everything_fits_its_width_and_states_have_colour(monitor: Recorded) -> None:
    for action in (["ls"], ["show"], ["failures", "91bc"], ["history", "align"], ["eta"]):
        _, shown = at_terminal("wf", *action, TOCSIN_BROKER=monitor.url, COLUMNS="80")
        plain = shown.replace("\r", "")
        for code in ("\x1b[0m", "\x1b[1m", "\x1b[36m", "\x1b[31m", "\x1b[1;31m"):
            plain = plain.replace(code, "")
        assert "\x1b" not in plain
        assert max(map(len, plain.splitlines())) <= 80, plain
    assert "\x1b[36mrunning\x1b[0m" in at_terminal("wf", "ls", TOCSIN_BROKER=monitor.url)[1]
