"""Queries that compare: two runs, the versions of a workflow, and what changed between them."""

from __future__ import annotations

from typing import Final

from tocsin.drivers.monitor.database.attempt_rows import decode_message, decode_row
from tocsin.drivers.monitor.queries.index import MAY_READ, Page, RunIndex, event_record
from tocsin.event.instant import rfc3339
from tocsin.monitor.comparison import changed_files, differences, differing, type_compared
from tocsin.monitor.views import activity_record, run_record, whole_run
from tocsin.wire.api.run_views import (
    ChangeInfo,
    Comparison,
    FaultInfo,
    RunChanges,
    RunDetails,
    SideInfo,
    VersionInfo,
)

CHAIN_MAX: Final = 100  # versions between two runs
CHANGES_MAX: Final = 1_000
FAULTS_MAX: Final = 50
VERSIONS_PAGE: Final = 20
VERSIONS_BYTES_MAX: Final = 8 << 20  # a page of them; each brings the text of its files
_VERSION = (
    "SELECT v.previous, v.fork_of, v.at_ns, v.seq, v.message, (SELECT count(*) FROM changes AS c "
    "WHERE c.workflow = v.workflow AND c.version = v.version) "
    "FROM versions AS v WHERE v.workflow = ? AND v.version = ?"
)
SEQ_MAX: Final = 2**63 - 1


class ChangeQueries:
    """What runs and versions have in common, and what differs."""

    def __init__(self, index: RunIndex) -> None:
        self._index = index

    # Two runs

    def compare(self, one: str, other: str, now_ns: int) -> Comparison:
        """What differs between two runs."""
        with self._index.locked():
            (no_a, a), (no_b, b) = self._index.facts(one), self._index.facts(other)
            by_type = self._by_type(no_a), self._by_type(no_b)
            faults = self._faults(no_a), self._faults(no_b)
        silence_s = self._index.options.silence_s
        run_a = whole_run(run_record(a, now_ns, silence_s), a)
        run_b = whole_run(run_record(b, now_ns, silence_s), b)
        return Comparison(
            a=one,
            b=other,
            differences=differences(run_a, run_b),
            parameters=differing(run_a.parameters, run_b.parameters),
            files=changed_files(run_a, run_b),
            activities=[
                type_compared(kind, by_type[0].get(kind), by_type[1].get(kind))
                for kind in sorted(by_type[0].keys() | by_type[1].keys())
            ],
            new_failures=[text for fault, text in faults[1].items() if fault not in faults[0]],
            gone_failures=[text for fault, text in faults[0].items() if fault not in faults[1]],
        )

    def _by_type(self, run_no: int) -> dict[str, SideInfo]:
        found = self._index.rows(
            "SELECT type, count(*), sum(state = 'failed'), avg(duration_s), max(duration_s), "
            "total(duration_s) FROM attempts WHERE run = ? AND last GROUP BY type",
            run_no,
        )
        return {
            kind: SideInfo(
                count=count, failed=failed, mean_s=mean_s, longest_s=longest_s, total_s=total_s
            )
            for kind, count, failed, mean_s, longest_s, total_s in found
        }

    def _faults(self, run_no: int) -> dict[int, FaultInfo]:
        found = self._index.rows(
            "SELECT fault, activity, type, row FROM attempts WHERE run = ? AND fault IS NOT NULL "
            "ORDER BY ended_ns LIMIT ?",
            run_no,
            FAULTS_MAX,
        )
        faults: dict[int, FaultInfo] = {}
        for fault, name, kind, row in found:
            record = activity_record("", name, {1: decode_row(row)}, "", kind=kind)
            faults.setdefault(
                fault,
                FaultInfo(activity=name, type=kind, error=record.error, exit_code=record.exit_code),
            )
        return faults

    # Versions of a workflow

    def versions(
        self, workflow: str, *, limit: int = VERSIONS_PAGE, after: int | None = None
    ) -> Page[VersionInfo]:
        """The recorded versions of a workflow, the latest first, each with its whole message.

        The second is what to pass as `after` to go on; None at the end. Fewer than the limit, if
        they are large.
        """
        found: list[VersionInfo] = []
        taken_bytes = 0
        with self._index.locked():
            names = self._index.rows(
                "SELECT version FROM versions WHERE workflow = ? AND seq < ? "
                "ORDER BY seq DESC LIMIT ?",
                workflow,
                SEQ_MAX if after is None else after,
                limit + 1,
            )
            for (version,) in names:
                (columns,) = self._index.rows(_VERSION, workflow, version)
                taken_bytes += len(columns[4])
                if len(found) == limit or (found and taken_bytes > VERSIONS_BYTES_MAX):
                    return found, str(found[-1].seq)
                found.append(_version_info(version, *columns))
        return found, None

    def lineage(self, workflow: str) -> list[tuple[str, str, str, int]]:
        """Every version with the one before, the workflow that was another's, and when: for who
        may read all."""
        if not self._index.is_whole:
            return []
        return self._index.rows(
            "SELECT version, previous, fork_of, at_ns FROM versions WHERE workflow = ? "
            "ORDER BY seq DESC LIMIT ?",
            workflow,
            CHANGES_MAX,
        )

    def changes_of(self, workflow: str, version: str | None = None) -> list[ChangeInfo]:
        """What was recorded as changed, of one version or of all, in the order of the log."""
        clause = "" if version is None else " AND version = ?"
        values = (workflow,) if version is None else (workflow, version)
        found = self._index.rows(
            "SELECT seq, at_ns, at_ns, message FROM (SELECT * FROM changes "
            f"WHERE workflow = ?{clause} ORDER BY seq DESC LIMIT ?) ORDER BY seq",
            *values,
            CHANGES_MAX,
        )
        records = [event_record(*each) for each in found]
        return [ChangeInfo(seq=each.seq, time=each.time, pairs=each.pairs) for each in records]

    def changes(self, run_id: str, now_ns: int) -> RunChanges:
        """What changed in the workflow since the run of it before."""
        with self._index.locked():
            _, facts = self._index.facts(run_id)
            record = whole_run(run_record(facts, now_ns, self._index.options.silence_s), facts)
            before = self._run_before(record, now_ns)
            # What was said of versions may be on other topics than the run.
            recorded = self._between(record, before) if self._index.is_whole else []
        return RunChanges(
            run=run_id,
            workflow=record.workflow,
            version=record.version or None,
            previous_run=None if before is None else before.id,
            previous_version=None if before is None else before.version or None,
            changes=recorded,
            parameters={} if before is None else differing(before.parameters, record.parameters),
            files=[] if before is None else changed_files(before, record),
        )

    def _run_before(self, record: RunDetails, now_ns: int) -> RunDetails | None:
        if not record.workflow:
            return None
        found = self._index.rows(
            "SELECT runs.id FROM runs AS a JOIN runs ON runs.workflow = a.workflow AND "
            f"(runs.sort_ns, runs.id) < (a.sort_ns, a.id) WHERE a.id = ? AND {MAY_READ} "
            "ORDER BY runs.sort_ns DESC, runs.id DESC LIMIT 1",
            record.id,
        )
        for (run_id,) in found:
            _, facts = self._index.facts(run_id)
            return whole_run(run_record(facts, now_ns, self._index.options.silence_s), facts)
        return None

    def _between(self, record: RunDetails, before: RunDetails | None) -> list[ChangeInfo]:
        """The recorded changes on the way from the version of one run to that of the other."""
        previous = dict(
            self._index.rows(
                "SELECT version, previous FROM versions WHERE workflow = ?", record.workflow
            )
        )
        end = "" if before is None else before.version
        version, way = record.version, list[str]()
        while version and version != end and version not in way and len(way) < CHAIN_MAX:
            way.append(version)
            version = previous.get(version, "")
        return [
            change for each in reversed(way) for change in self.changes_of(record.workflow, each)
        ]


def _version_info(
    version: str, previous: str, fork_of: str, at_ns: int, seq: int, message: bytes, changes: int
) -> VersionInfo:
    return VersionInfo(
        version=version,
        previous=previous or None,
        previous_workflow=fork_of or None,
        time=rfc3339(at_ns),
        seq=seq,
        changes=changes,
        pairs=decode_message(message)[1],
    )
