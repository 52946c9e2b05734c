"""`tocsin wf` on recorded answers: what a person reads, what a program reads, and hostile words.

A small real server gives the answers, so that times, orders and oddities are those of the test.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from test_terminal import at_terminal

from tocsin.cli.main import run
from tocsin.cli.wf.runs import state_text

COUNTS = {"total": 20, "known": 14, "queued": 1, "running": 3, "succeeded": 9, "failed": 1}
RUN = {
    "id": "7f3a-90",
    "workflow": "variant-calling",
    "version": "3f2a9c55aa0123456789",
    "engine": "snakemake",
    "engine_version": "9.27",
    "user": "ana",
    "host": "node7",
    "state": "running",
    "started": "2026-03-01T12:00:00.000Z",
    "ended": None,
    "duration_s": 723.4,
    "last_event": "2026-03-01T12:12:03.000Z",
    "parent": None,
    "activities": COUNTS,
    "progress": 0.45,
    "anomalies": 1,
}
WHOLE = {
    **RUN,
    "resources": {"CpuSeconds": 3780.0, "MemoryPeak": 2_100_000_000},
    "anomaly_list": [
        {"kind": "end-before-start", "detail": "it ended 2 s early", "activity": "s3", "seq": 4}
    ],
    "alerts": [],
    "parameters": {"depth": 30},
    "files": [],
    "plan": {"align": 12, "merge": 8},
    "types": {"align": {"failed": 1}, "": {"running": 2}},
}
ENDED = {
    **WHOLE,
    "id": "91bc-01",
    "state": "failed",
    "ended": "2026-03-01T12:12:03.000Z",
    "progress": 0.45,
}
ESTIMATE = {
    "remaining_s": 370.0,
    "low_s": 240.0,
    "high_s": 540.0,
    "total_s": 1093.0,
    "eta": "2026-03-01T12:18:13.000Z",
    "eta_low": "2026-03-01T12:16:03.000Z",
    "eta_high": "2026-03-01T12:21:03.000Z",
    "method": "simulation",
    "reason": "critical path: 3 of align, then merge",
    "past_runs": 14,
    "past_error": 0.09,
}
ACTIVITY = {
    "id": "s3",
    "type": "align",
    "attempt": 3,
    "attempts": 3,
    "state": "failed",
    "started": "2026-03-01T12:10:00.000Z",
    "ended": "2026-03-01T12:10:12.000Z",
    "duration_s": 12.0,
    "host": "node7",
    "exit_code": 137,
    "error": "Killed",
    "log": "".join(f"line {n}\n" for n in range(30)),
    "log_file": "logs/s3.log",
    "command": "bwa mem ref.fa s3.fq",
    "resources": {"MemoryPeak": 64_000_000_000},
}
BEFORE = [
    {
        "seq": 41,
        "time": "2026-03-01T12:10:00.000Z",
        "pairs": {
            "RunId": "7f3a-90",
            "ActivityExecuting": "2026-03-01T12:10:00Z",
            "ActivityId": "s3",
        },
    },
    {
        "seq": 42,
        "time": "2026-03-01T12:10:05.000Z",
        "pairs": {"RunId": "7f3a-90", "ActivityId": "s3", "MemoryRss": "63000000000"},
    },
]
HISTORY = {
    "count": 1010,
    "failed": 3,
    "mean_s": 12.5,
    "p50_s": 11.0,
    "p90_s": 20.0,
    "p99_s": 65.0,
    "histogram": {"edges": [1.0, 10.0, 100.0, 1000.0], "counts": [6, 1000, 1]},
    "versions": ["v1", "v2"],
    "recent": [{**ACTIVITY, "run": "7f3a-90"}],
}

COMPARED = {
    "a": "7f3a-90",
    "b": "91bc-01",
    "differences": [
        {"what": "version", "a": "3f2a9c55aa0123456789", "b": ""},
        {"what": "duration_s", "a": 50.0, "b": 73.0},
        {"what": "MemoryPeak", "a": 2e9, "b": None},
    ],
    "parameters": {"depth": {"a": 30, "b": [60]}},
    "files": [{"path": "Snakefile", "change": "changed"}],
    "activities": [
        {
            "type": "align",
            "a": {"count": 3, "failed": 0, "mean_s": 10.0},
            "b": {"count": 3, "failed": 0, "mean_s": 20.0},
            "ratio": 2.0,
        },
        {"type": "merge", "a": {"count": 1, "failed": 0, "mean_s": 5.0}, "b": None, "ratio": None},
    ],
    "new_failures": [{"activity": "s3", "type": "align", "error": "Killed", "exit_code": 137}],
    "gone_failures": [],
}
REPLACED = {
    "ActivityReplaced": "2026-03-01T11:00:00Z",
    "WorkflowName": "variant-calling",
    "ActivityType": "align",
    "ChangeDetail": '{"what": "command", "was": "bwa", "is": {"does": "bwa2"}}',
}
CHANGED = {
    "run": "7f3a-90",
    "workflow": "variant-calling",
    "version": "v2",
    "previous_run": "91bc-01",
    "previous_version": "v1",
    "changes": [{"seq": 3, "time": "2026-03-01T11:00:00Z", "pairs": REPLACED}],
    "parameters": {"depth": {"a": 30, "b": 60}},
    "files": [],
}
HINT = {
    "first": "qc",
    "second": "align",
    "saves_s": 90.0,
    "why": "align waited for qc once. Side by side they would save up to 90.0 s.",
}

Answers = dict[str, Any]
Tocsin = Callable[..., tuple[int, str, str]]


class Recorded(ThreadingHTTPServer):
    """Answers by path; a function is asked each time."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: Answers = {}
        self.posted: list[Any] = []

    def handle_error(self, *_: object) -> None:
        """An answer that raises hangs up, and that is all."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Recorded

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        answer = self.server.answers.get(unquote(asked.path))
        if callable(answer):
            answer = answer()
        if asked.path == "/runs":
            answer = _narrowed(answer, dict(parse_qsl(asked.query)))
        self._answer(answer)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.posted.append(json.loads(body))
        self._answer(self.server.answers.get(self.path))

    def _answer(self, value: Any) -> None:
        status = 200
        if value is None:
            status = 404
            value = {"code": "T322", "detail": "there is no such run", "remedy": "See the list."}
        elif isinstance(value, dict) and "code" in value:
            status = 409
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Nothing on standard error."""


def _narrowed(answer: dict[str, Any], asked: dict[str, str]) -> dict[str, Any]:
    wanted = {name: asked[name] for name in ("state", "workflow") if name in asked}
    runs = [run for run in answer["runs"] if wanted.items() <= run.items()]
    return {**answer, "runs": runs[: int(asked["limit"])]}


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
def tocsin(monitor: Recorded, capsys: pytest.CaptureFixture[str]) -> Tocsin:
    """Runs the command in this process; its exit code, data and words."""

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run(["wf", *arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


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


def test_two_runs_are_compared_in_what_differs(tocsin: Tocsin) -> None:
    code, out, _ = tocsin("compare", "7f3a", "91bc")

    assert code == 0
    assert out.splitlines() == [
        "A  7f3a-90",
        "B  91bc-01",
        "",
        "differences",
        "what             A             B",
        "version          3f2a9c55aa01  -",
        "duration         50s           1m13s",
        "memory peak      2 GB          -",
        "parameter depth  30            [60]",
        "file Snakefile   -             changed",
        "",
        "activities",
        "type   A  B  failed A  failed B  mean A  mean B  B takes",
        "align  3  3         0         0     10s     20s  2 times as long",
        "merge  1  0         0         0    5.0s       -  -",
        "",
        "new failures",
        "type   activity  exit code  error",
        "align  s3        137        Killed",
    ]
    assert json.loads(tocsin("compare", "7f3a", "91bc", "--json")[1]) == COMPARED


def test_what_changed_in_the_workflow_is_reported_since_the_run_before(tocsin: Tocsin) -> None:
    code, out, _ = tocsin("changes", "7f3a")

    assert code == 0
    assert "ActivityReplaced  align     command  bwa  bwa2\n" in out
    assert "parameter depth  30   60\n" in out


def test_a_workflow_has_versions(tocsin: Tocsin, monitor: Recorded) -> None:
    version = {"version": "v2", "previous": "v1", "time": None, "seq": 4, "changes": 1, "pairs": {}}
    monitor.answers["/workflows/variant-calling/versions"] = {"versions": [version], "next": None}
    monitor.answers["/workflows/nothing/versions"] = {"versions": [], "next": None}
    monitor.answers["/workflows/variant-calling/changes"] = {"changes": CHANGED["changes"]}

    code, out, words = tocsin("changes", "variant-calling")

    assert (code, words) == (0, "1 version\n")
    assert out.splitlines()[1].split() == ["v2", "v1", "-", "1", "-"]
    code, out, words = tocsin("changes", "nothing")
    assert (code, out) == (5, "")
    assert "there is no run and no workflow with the name 'nothing'" in words


def test_hints_say_what_would_be_saved(tocsin: Tocsin, monitor: Recorded) -> None:
    assert "no hints yet" in tocsin("hints")[2]
    monitor.answers["/runs/7f3a-90/hints"] = {"hints": [HINT]}

    code, out, _ = tocsin("hints")

    assert code == 0
    assert out == "1m30s  align waited for qc once. Side by side they would save up to 90.0 s.\n"
    assert "\nhints\n-  align waited for qc once." in tocsin("show")[1]


def test_an_estimate_before_the_start(tocsin: Tocsin, monitor: Recorded, tmp_path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text('[{"id": "a", "type": "align", "parents": []}]')

    code, out, _ = tocsin("eta", "--workflow", "variant-calling")
    assert code == 0
    assert out.splitlines()[0] == "takes     18m13s (80%: 4m00s to 9m00s)"
    code, out, _ = tocsin("eta", "--plan", str(plan), "--workflow", "variant-calling", "--json")
    assert json.loads(out)["total_s"] == 1093.0
    assert monitor.posted == [
        {"tasks": [{"id": "a", "type": "align", "parents": []}], "workflow": "variant-calling"}
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "is not valid JSON"),
        ("[" * 100_000, "is not valid JSON"),
        ('{"workflow": "w"}', "has no list of tasks"),
        ('{"tasks": []}', "names no workflow"),
        (None, "cannot read"),
    ],
)
def test_a_plan_that_is_none_is_refused(
    tocsin: Tocsin, tmp_path, text: str | None, problem: str
) -> None:
    plan = tmp_path / "plan.json"
    if text is not None:
        plan.write_text(text)

    code, out, words = tocsin("eta", "--plan", str(plan))

    assert (code, out) == (2, "")
    assert problem in words


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


def test_on_a_terminal_a_run_is_watched_in_place(monitor: Recorded) -> None:
    looks = iter([WHOLE, WHOLE])
    monitor.answers["/runs/7f3a-90"] = lambda: next(looks, {**ENDED, "id": "7f3a-90"})

    code, shown = at_terminal(
        "wf", "watch", "7f3a-90", "--interval", "10ms", TOCSIN_BROKER=monitor.url
    )

    assert code == 1
    assert shown.count("\x1b[J") == 1
    assert shown.count("\r\nprogress") == 2
