"""Answers of a monitor as they were recorded, and a small real server that gives them.

So times, orders and oddities are those of the test."""

from __future__ import annotations

import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

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
Answers = dict[str, Any]
Tocsin = Callable[..., tuple[int, str, str]]


class Recorded(ThreadingHTTPServer):
    """Answers by path; a function is asked each time."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: Answers = {}
        self.posted: list[Any] = []

    def handle_error(self, *_: object) -> None:
        """An answer that raises hangs up, and that is all."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Recorded

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        answer = self.server.answers.get(unquote(asked.path))
        if callable(answer):
            answer = answer()
        if asked.path == "/runs":
            answer = narrowed(answer, dict(parse_qsl(asked.query)))
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


def narrowed(answer: dict[str, Any], asked: dict[str, str]) -> dict[str, Any]:
    wanted = {name: asked[name] for name in ("state", "workflow") if name in asked}
    runs = [run for run in answer["runs"] if wanted.items() <= run.items()]
    return {**answer, "runs": runs[: int(asked["limit"])]}
