"""`tocsin wf` on recorded answers: runs beside other runs, and beside what could be."""

from __future__ import annotations

import json

import pytest
from recorded_answers import (
    CHANGED,
    COMPARED,
    Recorded,
    Tocsin,
)

HINT = {
    "first": "qc",
    "second": "align",
    "saves_s": 90.0,
    "why": "align waited for qc once. Side by side they would save up to 90.0 s.",
}


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
