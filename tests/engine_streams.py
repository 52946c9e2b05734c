"""Streams of workflow engines for tests: where recordings are, and what they come to."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tocsin.monitor.anomalies import of_attempt, of_run
from tocsin.monitor.fold import ConceptRules, Row, RunMessage, latest, merge_into, parse_message
from tocsin.monitor.states import attempt_state, attempt_times, in_run, run_state
from tocsin.ontology import built_in
from tocsin.wire.blackboard.messages import Message
from tocsin.wire.blackboard.normal import to_event
from tocsin.wire.cloudevents.attributes import check_event
from tocsin.wire.cloudevents.limits import Limits

SHARED = Path(__file__).parents[2] / "shared" / "data" / "workflows"
RECEIVED = "2026-11-16T06:40:00.000Z"
RECEIVED_NS = 1_794_811_200 * 10**9

_READING = ConceptRules(built_in())


def shared(*parts: str) -> Path:
    """A file that is not part of the project; the test is skipped where it is not there."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"{path.name} is not here")
    return path


@dataclass(slots=True)
class RunSeen:
    """A run as the monitor's rules fold it from messages."""

    row: Row = field(default_factory=dict)
    tries: dict[str, dict[int, Row]] = field(default_factory=dict)

    @property
    def state(self) -> str:
        return run_state(self.row)

    @property
    def states(self) -> dict[str, str]:
        """The state of each activity."""
        return {
            id: in_run(attempt_state(tries[max(tries)]), self.state)
            for id, tries in self.tries.items()
        }

    @property
    def counts(self) -> dict[str, int]:
        return dict(Counter(self.states.values()))

    @property
    def attempts(self) -> int:
        """Those that were really tried; what was only planned is none."""
        return sum(
            attempt_state(row) != "planned"
            for tries in self.tries.values()
            for row in tries.values()
        )

    @property
    def anomalies(self) -> set[str]:
        found = {each.kind for each in of_run(self.row, known=0, total=None)}
        for id, tries in self.tries.items():
            for row in tries.values():
                found |= {each.kind for each in of_attempt(row, attempt_times(row), id)}
        return found

    def reported(self, name: str) -> Any:
        return latest(self.row, name)

    def of(self, activity: str) -> Row:
        """The latest try of the activity."""
        tries = self.tries[activity]
        return tries[max(tries)]


def fold(messages: Iterable[Message]) -> dict[str, RunSeen]:
    """The runs, by their ids; every message must be one that a broker would take."""
    runs: dict[str, RunSeen] = {}
    vocabulary = built_in()
    for seq, message in enumerate(messages, 1):
        check(message)
        assert all(concept in vocabulary for concept in message.pairs), message
        found = parse_message(RunMessage(message.pairs, seq, RECEIVED_NS, message.time), _READING)
        assert found is not None, message
        seen = runs.setdefault(found.run, RunSeen())
        merge_into(seen.row, found.run_row)
        for (activity, attempt), row in found.activities.items():
            merge_into(seen.tries.setdefault(activity, {}).setdefault(attempt, {}), row)
    return runs


def check(message: Message) -> None:
    """A broker takes this message: its own id, texts that headers can hold, a size."""
    assert message.id
    assert message.source
    event = to_event(message, id="", source="", vocabulary=built_in())
    check_event(event, Limits())


# Nextflow's weblog, made from the trace files that it also writes

_SIZES = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
_SPANS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def trace_rows(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file, delimiter="\t"))


def weblog(rows: list[dict[str, str]], run_name: str = "sleepy_curie") -> Iterator[bytes]:
    """What `-with-weblog` posts in the course of a run that left this trace file."""
    posts: list[tuple[int, dict[str, Any]]] = []
    tries: Counter[str] = Counter()
    times = Counter(row["name"] for row in rows)
    for row in sorted(rows, key=lambda row: row["submit"]):
        tries[row["name"]] += 1
        trace = _trace(row, tries[row["name"]], last=tries[row["name"]] == times[row["name"]])
        unknown = {"complete": None, "exit": 0x7FFFFFFF, "status": "SUBMITTED", "start": None}
        began = {**trace, **unknown, "start": trace["start"], "status": "RUNNING"}
        posts.append(
            (trace["submit"], {"event": "process_submitted", "trace": {**trace, **unknown}})
        )
        posts.append((trace["start"], {"event": "process_started", "trace": began}))
        posts.append((trace["complete"], {"event": "process_completed", "trace": trace}))
    posts.sort(key=lambda post: post[0])
    first, last = posts[0][0] - 1_000, posts[-1][0] + 1_000
    success = all(row["status"] == "COMPLETED" for row in _last_tries(rows))
    yield _post(run_name, first, {"event": "started", "metadata": _metadata()})
    for at_ms, post in posts:
        yield _post(run_name, at_ms, post)
    end = _metadata(success=success, exitStatus=0 if success else 1)
    yield _post(run_name, last, {"event": "completed", "metadata": end})


def _last_tries(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    return list({row["name"]: row for row in sorted(rows, key=lambda row: row["submit"])}.values())


def _post(run_name: str, at_ms: int, more: dict[str, Any]) -> bytes:
    sent = datetime.fromtimestamp(at_ms // 1_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    session = "170aa09c-105f-49d0-99b4-8eb6a146e4a7"
    return json.dumps({"runName": run_name, "runId": session, "utcTime": sent, **more}).encode()


def _metadata(**workflow: Any) -> dict[str, Any]:
    reported = {
        "projectName": "openproblems",
        "scriptName": "main.nf",
        "revision": "main",
        "commitId": "4bcced898ee23600bd8c249ff085f8f88db90e7c",
        "userName": "ada",
        "commandLine": "nextflow run openproblems -with-weblog",
        "nextflow": {"version": "26.10.3", "build": 1},
    }
    return {"parameters": {"outdir": "results", "n": 3}, "workflow": reported | workflow}


def _trace(row: dict[str, str], attempt: int, *, last: bool) -> dict[str, Any]:
    submit = _epoch_ms(row["submit"])
    complete = submit + _span_ms(row["duration"])
    failed = row["status"] == "FAILED"
    return {
        "task_id": int(row["task_id"]),
        "hash": row["hash"],
        "native_id": row["native_id"],
        "process": row["name"].partition(" (")[0],
        "name": row["name"],
        "status": row["status"],
        "exit": int(row["exit"]) if row["exit"] != "-" else 0x7FFFFFFF,
        "attempt": attempt,
        "error_action": None if not failed else "TERMINATE" if last else "RETRY",
        "submit": submit,
        "start": complete - _span_ms(row["realtime"]),
        "complete": complete,
        "duration": complete - submit,
        "realtime": _span_ms(row["realtime"]),
        "%cpu": float(row["%cpu"].rstrip("%")) if row["%cpu"] != "-" else None,
        "peak_rss": _size(row["peak_rss"]),
        "peak_vmem": _size(row["peak_vmem"]),
        "rchar": _size(row["rchar"]),
        "wchar": _size(row["wchar"]),
        "cpus": 1,
        "workdir": f"/scratch/{row['hash']}",
        "script": "python main.py",
    }


def _epoch_ms(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1_000)


def _span_ms(text: str) -> int:
    found = re.findall(r"([\d.]+)(ms|s|m|h|d)", text)
    return round(sum(float(number) * _SPANS_MS[unit] for number, unit in found))


def _size(text: str) -> int | None:
    if text in ("-", "0"):
        return None if text == "-" else 0
    number, unit = text.split()
    return round(float(number) * _SIZES[unit])
