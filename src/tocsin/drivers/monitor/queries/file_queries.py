"""Files across runs: who wrote one, who read it, what it came from and what was made from it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from tocsin.drivers.monitor.database.attempt_rows import decode_row
from tocsin.drivers.monitor.queries.index import Page, RunIndex, bad_page_token
from tocsin.errors import BadRequest
from tocsin.monitor.file_names import LAST_CHARACTER, AskedName, asked_name, base_of, resolved
from tocsin.monitor.fold import Row, latest
from tocsin.monitor.views import activity_record, state_at
from tocsin.wire.api.file_views import FileFound, FilesFound, LineageInfo, LineageStepInfo
from tocsin.wire.api.run_views import ActivityInfo

PATHS_MAX: Final = 2_000  # names that one question may fit
LOOKED_AT_MAX: Final = 10_000  # uses of them, for one page
STEPS_MAX: Final = 200  # of a lineage, in each direction
READERS_MAX: Final = 100  # of one file
DEPTH_MAX: Final = 20
LEVELS_MAX: Final = 16  # directories above a file that a step may have written whole

_USES: Final = (
    "SELECT f.run, f.path, f.activity, p.name FROM files AS f JOIN paths AS p ON p.no = f.path "
    "WHERE f.path IN (SELECT value FROM json_each(?)) AND f.wrote = ? "
    "AND (f.run, f.path, f.activity) < (?, ?, ?) "
    "ORDER BY f.run DESC, f.path DESC, f.activity DESC LIMIT ?"
)
_LAST_PLACE: Final = (2**63 - 1, 2**63 - 1, LAST_CHARACTER)
_SAME_BASE: Final = (
    "SELECT f.run, f.activity, p.name FROM paths AS p JOIN files AS f ON f.path = p.no "
    "WHERE p.base = ? AND f.wrote = ? ORDER BY f.run = ? DESC, f.run DESC LIMIT ?"
)
_READ_UNDER: Final = (
    "SELECT f.run, f.activity, p.name FROM paths AS p JOIN files AS f ON f.path = p.no "
    "WHERE p.name >= ? AND p.name < ? AND f.wrote = 0 ORDER BY f.run = ? DESC, f.run DESC LIMIT ?"
)


@dataclass(frozen=True, slots=True)
class _Run:
    id: str
    row: Row
    state: str

    @property
    def directory(self) -> str | None:
        found: str | None = latest(self.row, "working_directory")
        return found


@dataclass(frozen=True, slots=True)
class _Step:
    """An activity of a run."""

    run: int
    activity: str


class FileSearch:
    """Answers one question; what it has looked up is remembered until then."""

    def __init__(self, index: RunIndex, now_ns: int) -> None:
        self._index = index
        self._now_ns = now_ns
        self._runs: dict[int, _Run] = {}
        self._activities: dict[_Step, ActivityInfo | None] = {}

    # Which are meant

    def find(
        self, name: str, *, wrote: bool, limit: int, after: str | None = None
    ) -> Page[FileFound]:
        """Who wrote, or read, the files of this name; the latest run first."""
        asked = asked_name(name)
        if asked is None:
            raise BadRequest(
                "the query has no `name`",
                remedy="Name one, as in /files?name=results/a.txt; * stands for anything.",
            )
        paths = self._paths(asked)
        found: list[FileFound] = []
        place = _LAST_PLACE if after is None else _place(after)
        for run, path, activity, name_given in self._uses_of(paths, wrote, place):
            if len(found) == limit:
                return found, f"{place[0]}.{place[1]}.{place[2]}"
            place = (run, path, activity)
            if asked.fits(resolved(name_given, self._run(run).directory)) or asked.fits(name_given):
                record = self._record(_Step(run, activity), name_given, wrote=wrote)
                found += [record] if record is not None else []
        if wrote and not found and after is None and not asked.is_wild:
            return self._written_whole(asked, paths, limit), None
        return found, None

    def _written_whole(self, asked: AskedName, paths: list[int], limit: int) -> list[FileFound]:
        """Who wrote the directory that the file was read from, where nobody named the file."""
        found: dict[_Step, FileFound | None] = {}
        for run, _, activity, name_given in self._uses_of(paths, wrote=False, place=_LAST_PLACE):
            reader = _Step(run, activity)
            if asked.fits(self._path(reader, name_given)) or asked.fits(name_given):
                for writer, name in self._writers(name_given, reader):
                    found[writer] = self._record(writer, name, wrote=True)
            if len(found) >= limit:
                break
        return [record for record in found.values() if record is not None]

    def _paths(self, asked: AskedName) -> list[int]:
        """The names that may be meant, by what their last part begins or ends with."""
        begins, ends = asked.base_from, asked.base_until
        if not asked.is_wild:
            clause, values = "base = ?", [begins]
        elif begins or not ends:
            clause, values = "base >= ? AND base < ?", [begins, begins + LAST_CHARACTER]
        else:
            tail = ends[::-1]
            clause, values = "tail >= ? AND tail < ?", [tail, tail + LAST_CHARACTER]
        rows = self._index.rows(
            f"SELECT no, name FROM paths WHERE {clause} ORDER BY no DESC LIMIT ?",
            *values,
            LOOKED_AT_MAX,
        )
        return [no for no, name in rows if asked.may_fit(name)][:PATHS_MAX]

    def _uses_of(
        self, paths: list[int], wrote: bool, place: tuple[int, int, str]
    ) -> Iterator[tuple[int, int, str, str]]:
        numbers = f"[{','.join(map(str, paths))}]"
        yield from self._index.rows(_USES, numbers, int(wrote), *place, LOOKED_AT_MAX)

    # Where it comes from, and what came of it

    def lineage(self, record: FileFound, depth: int) -> LineageInfo:
        """Up: what the file was made from. Down: what was made from it. Nearest first."""
        run_no, _ = self._index.facts(record.run)
        start = _Step(run_no, record.activity)
        up, more_up = self._walk(start, depth, self._sources) if depth else ([], False)
        down, more_down = (
            self._walk(start, depth, self._uses, record.path) if depth else ([], False)
        )
        return LineageInfo(up=up, down=down, more=more_up or more_down)

    def _walk(
        self, start: _Step, depth: int, following: Any, only: str | None = None
    ) -> tuple[list[LineageStepInfo], bool]:
        """Breadth first, each activity once. The second is true if there is more."""
        found: list[LineageStepInfo] = []
        seen = {start}
        waiting: deque[tuple[_Step, int]] = deque([(start, 0)])
        while waiting:
            step, far = waiting.popleft()
            for file, other in following(step):
                if only is not None and step == start and self._path(step, file) != only:
                    continue
                if other is not None and other in seen:
                    continue
                if far >= depth or len(found) >= STEPS_MAX:
                    return found, True
                found.append(self._lineage_step(file, other, far + 1))
                if other is not None:
                    seen.add(other)
                    waiting.append((other, far + 1))
        return found, False

    def _sources(self, step: _Step) -> Iterator[tuple[str, _Step | None]]:
        """What an activity read, each with who wrote it: None for what came from outside."""
        activity = self._activity(step)
        for name in activity.inputs if activity else ():
            yield name, self._writer(name, step)

    def _uses(self, step: _Step) -> Iterator[tuple[str, _Step | None]]:
        """What an activity wrote, with each that read it."""
        activity = self._activity(step)
        for name in activity.outputs if activity else ():
            path = self._path(step, name)
            rows = self._index.rows(_SAME_BASE, base_of(name), 0, step.run, READERS_MAX)
            for run, reader, name_given in [*rows, *self._read_under(name, path, step.run)]:
                other = _Step(run, reader)
                there = self._path(other, name_given)
                is_it = there == path or there.startswith(f"{path}/")
                if is_it and self._writer(name_given, other) == step:
                    yield name, other

    def _read_under(self, name: str, path: str, run: int) -> Iterator[tuple[int, str, str]]:
        """Who read what lies in a directory, by its name and by its whole path."""
        for place in dict.fromkeys((name.rstrip("/"), path)):
            begin, end = f"{place}/", f"{place}/{LAST_CHARACTER}"
            yield from self._index.rows(_READ_UNDER, begin, end, run, READERS_MAX)

    def _writer(self, name: str, reader: _Step) -> _Step | None:
        """Who wrote the file that an activity read: in its own run, or else the last one before."""
        return next((step for step, _ in self._writers(name, reader)), None)

    def _writers(self, name: str, reader: _Step) -> Iterator[tuple[_Step, str]]:
        """The first who wrote the file, or else a directory that it lies in, and the name given."""
        path, by = self._path(reader, name), self._activity(reader)
        for whole in _and_above(path):
            rows = self._index.rows(_SAME_BASE, base_of(whole), 1, reader.run, READERS_MAX)
            for run, activity, name_given in rows:
                other = _Step(run, activity)
                if other == reader or self._path(other, name_given) != whole:
                    continue
                made = self._activity(other)
                if made is None or made.state in ("planned", "skipped", "queued"):
                    continue
                ended_late = by and by.started and made.ended and made.ended > by.started
                if run == reader.run or not ended_late:
                    yield other, name_given
                    return

    # What is known of them

    def _record(self, step: _Step, name: str, *, wrote: bool) -> FileFound | None:
        activity, run = self._activity(step), self._run(step.run)
        if activity is None:
            return None
        names, size = (
            (activity.outputs, activity.output_bytes)
            if wrote
            else (activity.inputs, activity.input_bytes)
        )
        return FileFound(
            name=name,
            path=resolved(name, run.directory),
            run=run.id,
            workflow=latest(run.row, "workflow") or "",
            engine=latest(run.row, "engine") or "",
            activity=step.activity,
            type=activity.type,
            state=activity.state,
            role="output" if wrote else "input",
            time=(activity.ended if wrote else activity.started) or activity.started,
            size=size if len(names) == 1 else None,
            host=activity.host,
            command=activity.command,
        )

    def _lineage_step(self, file: str, step: _Step | None, depth: int) -> LineageStepInfo:
        activity = None if step is None else self._activity(step)
        if step is None or activity is None:
            return LineageStepInfo(
                file=file, depth=depth, run=None, activity=None, type=None, state=None, time=None
            )
        return LineageStepInfo(
            file=file,
            depth=depth,
            run=self._run(step.run).id,
            activity=step.activity,
            type=activity.type,
            state=activity.state,
            time=activity.ended or activity.started,
        )

    def _path(self, step: _Step, name: str) -> str:
        return resolved(name, self._run(step.run).directory)

    def _run(self, run_no: int) -> _Run:
        found = self._runs.get(run_no)
        if found is None:
            ((run_id, packed),) = self._index.rows("SELECT id, row FROM runs WHERE no = ?", run_no)
            row = decode_row(packed)
            state = state_at(row, self._now_ns, self._index.options.silence_s)
            found = self._runs[run_no] = _Run(run_id, row, state)
        return found

    def _activity(self, step: _Step) -> ActivityInfo | None:
        if step not in self._activities:
            run = self._run(step.run)
            attempts = self._index.attempts(step.run, [step.activity]).get(step.activity)
            self._activities[step] = (
                activity_record(run.id, step.activity, attempts, run.state) if attempts else None
            )
        return self._activities[step]


def _and_above(path: str) -> Iterator[str]:
    """The path, and the directories that it lies in, the nearest first."""
    for _ in range(LEVELS_MAX + 1):
        yield path
        path = path.rpartition("/")[0]
        if not path or path.endswith("/"):  # the root, or what follows the scheme of a URL
            return


def _place(token: str) -> tuple[int, int, str]:
    run, _, rest = token.partition(".")
    path, dot, activity = rest.partition(".")
    if not dot or not run.isdigit() or not path.isdigit() or max(len(run), len(path)) > 18:
        raise bad_page_token(token)
    return int(run), int(path), activity


def find_files(
    index: RunIndex,
    now_ns: int,
    name: str,
    *,
    wrote: bool = True,
    limit: int = 100,
    after: str | None = None,
    depth: int = 0,
) -> FilesFound:
    """Who wrote, or read, the files of this name; and the lineage of the first that is listed."""
    with index.locked():
        asked = FileSearch(index, now_ns)
        found, following = asked.find(name, wrote=wrote, limit=limit, after=after)
        lineage = asked.lineage(found[0], depth) if found and depth else None
    return FilesFound(files=found, next=following, lineage=lineage)
