"""What the monitor's tables say of many runs: history, comparisons, versions."""

from __future__ import annotations

import json

from failing_run import FAILING, NOW_NS

from monitor.kept import Kept
from monitor.runs import activity_pairs, at, received, run_pairs
from tocsin.drivers.monitor.queries.provenance import provenance
from tocsin.monitor.fold import RunMessage
from tocsin.wire.api.run_views import (
    FileChangeInfo,
    TypeInfo,
    ValuesInfo,
)


def test_history_counts_what_ran_and_measures_what_succeeded(kept: Kept) -> None:
    messages = []
    for n in range(1, 11):
        messages.append(activity_pairs(f"align-{n}", "ActivityExecuting", 0, run=f"r{n % 2}"))
        messages.append(activity_pairs(f"align-{n}", "ActivitySucceeded", n, run=f"r{n % 2}"))
    messages.append(activity_pairs("align-11", "ActivityFailed", 99, run="r1"))
    messages.append(activity_pairs("align-12", "ActivityCached", 99, run="r1"))
    kept.fold(received(*messages))

    history = kept.asked.history.history("align", NOW_NS)

    assert (history.count, history.failed) == (11, 1)
    assert (history.mean_s, history.p50_s) == (5.5, 5.5)
    assert sum(history.histogram.counts) == 10
    assert (history.histogram.edges[0], history.histogram.edges[-1]) == (1.0, 10.0)
    assert history.recent[0].id == "align-11"
    assert kept.asked.history.types() == [
        TypeInfo(type="align", workflow="", activities=12, runs=2, failed=1)
    ]


def test_two_runs_are_compared_and_a_new_failure_stands_out(kept: Kept) -> None:
    other = (
        run_pairs("WorkflowStarted", 100, run="s", WorkflowName="blast", Parameters='{"k": 2}'),
        activity_pairs("split-1", "ActivityExecuting", 101, run="s"),
        activity_pairs("split-1", "ActivitySucceeded", 109, run="s"),
        run_pairs("WorkflowCompleted", 110, run="s"),
    )
    kept.fold(received(*FAILING, *other))

    found = kept.asked.changes.compare("s", "r", NOW_NS)

    assert {each.what for each in found.differences} >= {"state", "version", "duration_s"}
    assert found.parameters == {"k": ValuesInfo(a=2, b=None)}
    by_type = {each.type: each for each in found.activities}
    assert by_type["split"].ratio == 0.5
    assert [each.error for each in found.new_failures] == ["disk 7 full"]
    assert found.gone_failures == []


def test_what_changed_between_two_runs_is_what_was_recorded_on_the_way(kept: Kept) -> None:
    def version(now: str, before: str, **more: str) -> dict[str, str]:
        pairs = {"WorkflowName": "blast", "WorkflowVersion": now, "PreviousVersion": before}
        return {**pairs, **more}

    file = json.dumps([{"path": "Snakefile", "sha256": "1", "text": None}])
    new = json.dumps([{"path": "Snakefile", "sha256": "2", "text": None}])
    kept.fold(
        received(
            version("1", "", VersionSaved=at(0)),
            run_pairs(
                "WorkflowStarted", 1, WorkflowName="blast", WorkflowVersion="1", WorkflowFile=file
            ),
            version("2", "1", ActivityAdded=at(2), ActivityType="trim"),
            version("2", "1", VersionSaved=at(2)),
            version("3", "2", ActivityRemoved=at(3), ActivityType="join"),
            version("3", "2", VersionSaved=at(3)),
            run_pairs(
                "WorkflowStarted",
                4,
                run="s",
                WorkflowName="blast",
                WorkflowVersion="3",
                WorkflowFile=new,
            ),
        )
    )

    found = kept.asked.changes.changes("s", NOW_NS)

    assert (found.previous_run, found.previous_version, found.version) == ("r", "1", "3")
    assert [each.pairs["ActivityType"] for each in found.changes] == ["trim", "join"]
    assert found.files == [FileChangeInfo(path="Snakefile", change="changed")]
    assert [each.version for each in kept.asked.changes.versions("blast")[0]] == ["3", "2", "1"]


def test_versions_come_page_by_page_and_fewer_if_they_are_large(kept: Kept) -> None:
    def version(n: int, text: str = "") -> dict[str, str]:
        pairs = {"WorkflowName": "w", "WorkflowVersion": str(n), "VersionSaved": at(n)}
        return {**pairs, "WorkflowFile": text}

    def all_pages(limit: int) -> list[list[str]]:
        pages: list[list[str]] = []
        after: int | None = None
        while True:
            found, following = kept.asked.changes.versions("w", limit=limit, after=after)
            pages.append([each.version for each in found])
            if following is None:
                return pages
            after = int(following)

    kept.fold(received(*(version(n) for n in range(5))))
    small = all_pages(2)
    kept.fold([RunMessage(version(n, "x" * (5 << 20)), 10 + n, NOW_NS) for n in range(2)])

    assert small == [["4", "3"], ["2", "1"], ["0"]]
    assert all_pages(9) == [["1"], ["0", "4", "3", "2"]]
    assert all_pages(5) == [["1"], ["0", "4", "3", "2"]]
    assert kept.asked.changes.versions("never")[0] == []


def test_a_version_that_was_forked_says_from_which_workflow(kept: Kept) -> None:
    fork = {"WorkflowName": "new", "WorkflowVersion": "2", "PreviousVersion": "1"}
    detail = json.dumps({"what": "name", "was": "old", "is": "new"})
    saved = {"WorkflowName": "new", "WorkflowVersion": "2", "PreviousVersion": "1"}
    kept.fold(
        received(
            {"VersionForked": at(0), **fork, "ChangeDetail": detail},
            {"ActivityAdded": at(0), **fork, "ActivityType": "trim"},
            {"VersionSaved": at(1), **saved, "ChangeDetail": "{}"},
            run_pairs("WorkflowStarted", 2, WorkflowName="new", WorkflowVersion="2"),
        )
    )

    ((version,), _) = kept.asked.changes.versions("new")
    assert (version.previous, version.previous_workflow) == ("1", "old")
    assert (version.changes, version.pairs["ChangeDetail"]) == (2, "{}")
    assert kept.asked.changes.lineage("new")[0][:3] == ("2", "1", "old")
    reported = provenance(kept.asked, "r", NOW_NS, "prov-n").decode()
    assert "wasDerivedFrom(" in reported
    assert "old" in reported
